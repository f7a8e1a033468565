# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced by the tests of AF_PACKET V4 with real traffic: two network namespaces,
# $left and $right, the traffic, and the cleanup.

set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=../lib.sh
source ../lib.sh

left='' right='' # named by setup_ns
tmp=$(mktemp -d)
pids=()

end_programs() {
	local pid

	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null || :
	done
	pids=()
}

# shellcheck disable=SC2317 # called by the trap
cleanup() {
	end_programs
	cleanup_all_ns
	rm -rf "$tmp"
}
trap cleanup EXIT

skip() {
	echo "SKIP: $*"
	# shellcheck disable=SC2154 # lib.sh
	exit "$ksft_skip"
}

fail() {
	echo "FAIL: $*"
	cat "$tmp"/*.out 2>/dev/null || :
	exit 1
}

# need TOOL...: skips the test without root or one of the tools
need() {
	local tool

	for tool in "$@"; do
		command -v "$tool" >/dev/null || skip "needs $tool"
	done
	[ "$(id -u)" -eq 0 ] || skip "needs root"
}

# wait_for SECONDS COMMAND...: until it succeeds
wait_for() {
	slowwait "$@" >/dev/null 2>&1
}

in_left() {
	ip netns exec "$left" "$@"
}

in_right() {
	ip netns exec "$right" "$@"
}

# start_server ADDRESS...: starts the echo server in $right
start_server() {
	# not by in_right: $! has to be the program itself
	ip netns exec "$right" python3 echo.py serve "$@" \
		>"$tmp/server.out" &
	pids+=($!)
	wait_for 120 grep -q ready "$tmp/server.out" || fail "no server"
}

# traffic BYTES ADDRESS...: ping, TCP (so many bytes each way) and UDP to each,
# from $left
traffic() {
	local bytes=$1 address

	shift
	for address in "$@"; do
		in_left ping -q -c 10 -i 0.05 -W 20 "$address" || fail "ping"
		in_left ping -q -c 5 -i 0.05 -W 20 -s 8000 "$address" ||
			fail "ping of 8000 bytes"
		in_left ping -q -c 3 -i 0.05 -W 20 -s 20000 "$address" ||
			fail "ping of 20000 bytes"
		in_left python3 echo.py talk "$address" "$bytes" ||
			fail "$address: no true echo"
	done
}
