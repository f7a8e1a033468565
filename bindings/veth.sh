#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
#	veth.sh EXAMPLES IF PEER
#
# Runs a binding's programs, capture, forward and perhaps echo, in the folder EXAMPLES on a
# veth pair.

set -euo pipefail

[ $# -eq 3 ] || { echo "usage: veth.sh EXAMPLES IF PEER"; exit "$([ "${1:-}" = --help ] && echo 0 || echo 2)"; }
examples=$1 ifname=$2 peer=$3
tmp=$(mktemp -d)
program=
trap '[ ! "$program" ] || kill "$program" 2>/dev/null || :; rm -rf "$tmp"' EXIT
tests=0 failed=0

# start COMMAND...: in the background, until it is ready
start() {
	rm -f "$tmp/err"
	mkfifo "$tmp/err"
	"$@" >"$tmp/out" 2>"$tmp/err" &
	program=$!
	read -r line <"$tmp/err" || line='no output'
	[ "$line" = ready ] || echo "# $1: $line"
}

# result NAME EXPECTED: the program's end, and the first line of its output
result() {
	local rc=0 said

	wait "$program" || rc=$?
	program=
	said=$(head -n 1 "$tmp/out")
	tests=$((tests + 1))
	if [ $rc -eq 0 ] && [ "$said" = "$2" ]; then
		echo "ok $tests $1"
	else
		echo "not ok $tests $1: status $rc, said '$said', not '$2'"
		failed=1
	fi
}

# send SIZE COUNT [COMMAND...]: packets of a broadcast protocol that no one answers, and
# with echo, as many are to come back
send() {
	python3 - "$peer" "$@" <<'PYTHON'
import socket
import sys

name, size, count, *echo = sys.argv[1:]
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5))
s.bind((name, 0x88B5))
s.settimeout(20)
own = b"\x02\0\0\0\0\x01"
for i in range(int(count)):
    data = i.to_bytes(4, "big") + bytes(int(size) - 18)
    s.send(b"\xff" * 6 + own + b"\x88\xb5" + data)
    if echo and i % 16 == 15:
        for k in range(i - 15, i + 1):
            while True:  # packets that were sent are received, too
                got, address = s.recvfrom(65536)
                if address[2] != socket.PACKET_OUTGOING:
                    break
            assert got[:6] == own and got[14:18] == k.to_bytes(4, "big"), got[:20]
PYTHON
}

timeout=(timeout 120)
start "${timeout[@]}" "$examples/capture" "$ifname" "$tmp/file" 64
send 200 32
send 5000 32 # in several frames
result 'capture: packets of one and of several frames' '64 packets, 0 dropped'
if ! command -v tshark >/dev/null; then
	echo "# no tshark: the file was not read back"
else
	tests=$((tests + 1))
	read_back=$(tshark -r "$tmp/file" -T fields -e frame.len 2>/dev/null | sort | uniq -c | xargs)
	if [ "$read_back" = '32 200 32 5000' ]; then
		echo "ok $tests capture: read by tshark"
	else
		echo "not ok $tests capture: tshark read '$read_back'"
		failed=1
	fi
fi
for queue in '' 0; do
	# shellcheck disable=SC2086 # may be none
	start "${timeout[@]}" "$examples/forward" "$ifname" 320 $queue
	send 60 320 echo || { echo "# packets were lost or wrong"; failed=1; }
	result "forward: in ${queue:+zero-}copy mode" '320 packets'
done
[ -x "$examples/echo" ] || {
	echo "1..$tests"
	exit $failed
}
start "${timeout[@]}" "$examples/echo" "$ifname" 3
echo 0 >"/proc/sys/net/ipv6/conf/$peer/disable_ipv6"
ip addr add 2001:db8::1/64 dev "$peer" nodad
ip neigh add 2001:db8::2 lladdr 02:00:00:00:00:02 dev "$peer"
ping -c 3 -i 0.2 -W 20 2001:db8::2 >"$tmp/ping" || { cat "$tmp/ping"; failed=1; }
result 'echo: pings of IPv6' '3 answered'
echo "1..$tests"
exit $failed
