# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Shared functions, sourced by the shell scripts.

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # used by those who source this
BUILD=$TOP/build
# Each base except the first has its own directory, as in lab/build/place.py.
[ "${BASE:-6.12}" = 6.12 ] || BUILD+=/$BASE
# Everything in the cache may be deleted at any time; it is created again.
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

# Prints the comment at the head of the script, whose first indented line is the usage.
usage() {
	sed '1,3d; /^#/!Q; s/^# \?//; 0,/^\t/s/^\t/usage: /' "$0"
}

case ${1:-} in
-h | --help)
	usage
	exit
	;;
esac

# elapsed SECONDS: prints 75 as 1:15
elapsed() {
	printf '%d:%02d' $(($1 / 60)) $(($1 % 60))
}

# on_exit COMMAND...: runs it when the script ends, also by a signal, after background
# jobs have been ended. Only the last command registered is run.
on_exit() {
	# Once it ends, a second signal does not keep it from tidying up. One that comes
	# as the trap of EXIT begins would, if its own trap only called exit.
	local tidy="trap '' HUP INT TERM; trap - EXIT; end_jobs;"

	tidy+=$(printf ' %q' "$@")
	# shellcheck disable=SC2064 # expanded now on purpose
	{
		trap "$tidy" EXIT
		trap "$tidy; exit 129" HUP
		trap "$tidy; exit 130" INT
		trap "$tidy; exit 143" TERM
	}
}

# child COMMAND...: runs it and returns its exit status, like a plain call. But bash runs
# traps only after a called command has returned; with this and on_exit, a signal ends
# this script and COMMAND at once.
child() {
	"$@" <&0 &
	wait $!
}

# Ends background jobs, the last one first, with their process groups, and waits for
# them. Scripts that they run end what they have started themselves. What is left after
# 10 seconds is killed: unshare --fork, for example, ignores SIGTERM.
end_jobs() {
	local job pid _

	for pid in $(jobs -p | tac); do
		job=-$pid
		kill -- "$job" 2>/dev/null || job=$pid
		[ "$job" != "$pid" ] || kill "$pid" 2>/dev/null || continue
		for _ in {1..100}; do
			kill -0 -- "$job" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL -- "$job" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
}

# skip REASON: ends the script with the exit status of kselftest for a skipped test.
readonly SKIP=4
skip() {
	note "${0##*/}: skipped: $*"
	exit $SKIP
}

# Checks whether this output of apt or pip reports that there is no network.
says_no_network() {
	grep -qE "Could not (resolve|connect)|Temporary failure|Unable to connect|\
Cannot initiate the connection|Failed to establish|Network is unreachable|\
Connection (refused|timed out|failed)|from versions: none" "$1"
}

# Prints the code name of the machine's Debian suite.
codename() {
	(. /etc/os-release && echo "$VERSION_CODENAME")
}

# foreign ARCH: gets what make test ARCH= needs, see lab/build/foreign; sets cross to
# the prefix of that compiler's programs, which are in PATH then, with the libraries
# of its assembler and linker.
# shellcheck disable=SC2034 # used by those who source this
foreign() {
	local usr=$CACHE/foreign-$1/cross/usr

	"$TOP/lab/build/foreign" "$1" || exit
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
