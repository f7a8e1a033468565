# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced by the shell scripts here: where things are, and how to say so.

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # used by those who source this
BUILD=$TOP/build
# Everything below the cache may vanish at any time; it is made again.
# shellcheck disable=SC2034
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/tpacket4
# shellcheck disable=SC2034 # used by those who source this
JOBS=${JOBS:-$(nproc)}

note() {
	echo "$*" >&2
}

die() {
	note "${0##*/}: $*"
	exit 1
}

# elapsed SECONDS: prints 75 as 1:15
elapsed() {
	printf '%d:%02d' $(($1 / 60)) $(($1 % 60))
}

# on_exit COMMAND...: runs it when the script ends, also on Ctrl-C; the last
# one registered wins.
on_exit() {
	# shellcheck disable=SC2064 # expanded now on purpose
	trap "$(printf '%q ' "$@")" EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
}
