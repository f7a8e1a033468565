#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs the example and the programs of the documentation in the current
# directory, where "make tests" has built them. To be called by on_veth.sh.
#
# shellcheck disable=SC2317 # functions that a trap, or another function, calls

set -euo pipefail

for tool in tcpdump tc python3 stdbuf; do
	command -v $tool >/dev/null || { echo "SKIP: needs $tool"; exit 4; }
done
dir=$(mktemp -d)
pid=
number=0
failed=0

cleanup()
{
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || :
	rm -rf "$dir"
}
trap cleanup EXIT

# result TITLE STATUS MESSAGE: prints a TAP result, with diagnostics on failure
result()
{
	number=$((number + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $number $1"
		return
	fi
	echo "# $3"
	sed 's/^/# /' "$dir"/*.err 2>/dev/null || :
	echo "not ok $number $1"
	failed=1
}

# check TITLE COMMAND...: tests that the command succeeds
check()
{
	local rc=0

	"${@:2}" || rc=$?
	result "$1" $rc "error: ${*:2}: $rc"
}

# wait_for COMMAND...: repeats it for up to a minute until it succeeds
wait_for()
{
	local i

	for ((i = 0; i < 600; i++)); do
		! "$@" || return 0
		sleep 0.1
	done
	return 1
}

# send_packets LENGTH...: sends one packet of each length from tp4B, and writes
# them to $dir/sent in hex, one per line
send_packets()
{
	python3 - tp4B "$@" >"$dir/sent" <<'PYTHON'
import socket, sys

sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sock.bind((sys.argv[1], 0))
for number, length in enumerate(map(int, sys.argv[2:])):
    data = bytes([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xB5])
    data += bytes((i * 7 + number) % 251 for i in range(14, length))
    sock.send(data)
    print(data.hex())
PYTHON
}

# start COMMAND...: starts it in the background, with output to $dir/out and
# $dir/prog.err
start()
{
	rm -f "$dir"/*.err "$dir/out"
	"$@" >"$dir/out" 2>"$dir/prog.err" &
	pid=$!
}

has_ended()
{
	! kill -0 "$pid" 2>/dev/null
}

# ends_with STATUS: waits up to a minute for the exit status of the program
ends_with()
{
	local rc=0

	wait_for has_ended || return 99
	wait "$pid" || rc=$?
	pid=
	[ "$rc" -eq "$1" ] || return $((100 + rc))
}

is_bound()
{
	# Iface is the fifth column, and 0 before bind()
	awk -v "i=$(cat /sys/class/net/tp4A/ifindex)" \
		'$5 == i { found = 1 } END { exit !found }' /proc/net/packet
}

link_up()
{
	ip link set tp4A up
	wait_for grep -q up /sys/class/net/tp4A/operstate
}

# CPU time of the program so far, in clock ticks
ticks()
{
	awk '{ print $14 + $15 }' "/proc/$pid/stat"
}

# --- a program that prints the length of each packet --------------------------

lines()
{
	[ "$(wc -l <"$dir/out")" -ge "$1" ]
}

printer()	# program, what it is
{
	start stdbuf -oL "./$1" tp4A
	wait_for is_bound || :
	send_packets 60 1000 5000 61
	wait_for lines 4 || :
	printf '%s bytes\n' 60 1000 5000 61 >"$dir/want"
	check "$2 prints the length of each packet" \
		cmp "$dir/want" "$dir/out"
	ip link set tp4A down
	check "$2 ends when the device goes down" ends_with 1
	link_up
}

# --- capture ------------------------------------------------------------------

# in_file: prints the packets of $dir/file in the format of send_packets()
in_file()
{
	tcpdump -nr "$dir/file" -xx 2>/dev/null | awk '
		/^\t0x/ { $1 = ""; gsub(/ /, ""); hex = hex $0; next }
		hex { print hex; hex = "" }
		END { if (hex) print hex }'
}

# captured: does the file contain the sent packets?
captured()
{
	in_file | cmp -s - "$dir/sent"
}

is_listening()
{
	grep -q listening "$dir/prog.err"
}

promiscuity()
{
	ip -d link show tp4A | sed -n 's/.*promiscuity \([0-9]*\).*/\1/p'
}

# listen OUTPUT OPTION...: starts capture
listen()
{
	rm -f "$dir"/*.err "$dir/file"
	./capture "${@:2}" tp4A >"$1" 2>"$dir/prog.err" &
	pid=$!
	wait_for is_listening || :
}

test_capture()
{
	local before

	listen "$dir/file"
	check "capture is promiscuous" test "$(promiscuity)" = 1
	send_packets 60 1514 5000 61
	wait_for captured || :
	check "tcpdump reads the sent packets from the file" \
		diff "$dir/sent" <(in_file)
	kill -INT "$pid"
	check "capture ends on SIGINT" ends_with 0
	check "capture counts received packets" \
		grep -q '^4 packets received, 0 of them dropped' "$dir/prog.err"
	check "the file is complete at the end" captured

	listen "$dir/file" -p
	check "capture -p is not promiscuous" test "$(promiscuity)" = 0
	send_packets 99
	wait_for captured || :
	check "capture -p receives" captured
	kill -INT "$pid"
	ends_with 0 || :

	listen "$dir/file"
	send_packets 80 81
	wait_for captured || :
	ip link set tp4A down
	check "capture ends when the device goes down" ends_with 1
	check "capture reports that the device went down" \
		grep -q "Network is down" "$dir/prog.err"
	check "the file has all packets before that" captured
	link_up

	listen /dev/full
	send_packets 80
	check "capture ends when the disk is full" ends_with 1
	check "capture reports that the disk is full" \
		grep -q "No space left" "$dir/prog.err"

	# It must use no CPU time. A program that spins uses one second per
	# second, on any machine.
	listen "$dir/file"
	before=$(ticks)
	sleep 2
	check "capture sleeps without packets" \
		test $(($(ticks) - before)) -lt 100
	kill -INT "$pid"
	ends_with 0 || :
}

# --- the loop in README.md ----------------------------------------------------

# on_the_wire PACKETS: are this many packets in flight?
on_the_wire()
{
	tc -s qdisc show dev tp4A | grep -q " ${1}p requeues"
}

# poll() must sleep although frames in flight are not posted.
test_forward_sleeps()
{
	local before

	tc qdisc add dev tp4A root netem delay 100s limit 10000
	start ./forward tp4A tp4B 32
	check "the loop in README.md sends all packets" \
		wait_for on_the_wire 32
	before=$(ticks)
	sleep 2
	check "the loop in README.md sleeps while it sends" \
		test $(($(ticks) - before)) -lt 100
	kill "$pid"
	wait "$pid" || :
	pid=
	tc qdisc del dev tp4A root
}

echo "TAP version 13"
check "the loop with a pool in README.md forwards each packet once" \
	timeout 120 ./forward tp4A tp4B 0
test_capture
printer page_example "the program in tpacket4.rst"
printer man_example "the program in tpacket4(7)"
test_forward_sleeps
tc qdisc add dev tp4A root netem delay 200ms limit 10000
check "the loop in README.md forwards each packet once" \
	timeout 120 ./forward tp4A tp4B
# The device is down.
ip link set tp4A up
check "the loop in README.md for several queue pairs receives" \
	timeout 120 ./forward tp4A tp4B drop
echo "1..$number"
exit $failed
