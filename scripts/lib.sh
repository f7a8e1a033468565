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

# on_exit COMMAND...: runs it when the script ends, also by a signal; the last
# one registered wins. What runs in the background is ended before.
on_exit() {
	# Once it ends, a second signal does not keep it from tidying up.
	# shellcheck disable=SC2064 # expanded now on purpose
	trap "trap '' HUP INT TERM; end_jobs; $(printf '%q ' "$@")" EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

# child COMMAND...: runs it and returns its exit code, as if it were called. But
# bash runs no trap before what it has called returns; so, after on_exit, a
# signal ends this script and COMMAND at once.
child() {
	"$@" <&0 &
	wait $!
}

# Ends what runs in the background, the last one first, and returns when it is
# gone: if it is a process group, all of that. Other scripts of ours see to what they started.
end_jobs() {
	local pid _

	for pid in $(jobs -p | tac); do
		if kill -- "-$pid" 2>/dev/null; then
			for _ in {1..50}; do
				kill -0 -- "-$pid" 2>/dev/null || break
				sleep 0.1
			done
			kill -KILL -- "-$pid" 2>/dev/null || :
		else
			kill "$pid" 2>/dev/null || continue
		fi
		wait "$pid" 2>/dev/null || :
	done
}

# skip REASON: ends the script with kselftest's code for it.
readonly SKIP=4
skip() {
	note "${0##*/}: skipped: $*"
	exit $SKIP
}

# Does this output of apt or pip say that they reached nobody?
says_no_network() {
	grep -qE "Could not (resolve|connect)|Temporary failure|Unable to connect|\
Cannot initiate the connection|Failed to establish|Network is unreachable|\
Connection (refused|timed out|failed)|from versions: none" "$1"
}

# foreign ARCH: gets what make test ARCH= needs, see scripts/foreign; sets cross to
# the prefix of that compiler's programs, which are in PATH then, with the libraries
# of its assembler and linker.
# shellcheck disable=SC2034 # used by those who source this
foreign() {
	local usr=$CACHE/foreign-$1/cross/usr

	"$TOP/scripts/foreign" "$1" || exit
	PATH=$usr/bin:$PATH
	LD_LIBRARY_PATH=$usr/lib/$(gcc -print-multiarch)
	export LD_LIBRARY_PATH
	cross=''
	case $1 in
	arm64) cross=aarch64-linux-gnu- ;;
	s390) cross=s390x-linux-gnu- ;;
	arm) cross=arm-linux-gnueabi- ;;
	esac
}
