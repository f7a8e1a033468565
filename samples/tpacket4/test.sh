#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs each benchmark of tpbench with each version and in each mode for a short
# time. Packets are numbered and verified, and the output of tpbench must report
# no errors. To be called by tools/lib/tpacket4/tests/on_veth.sh, in the directory
# where tpbench was built.

set -euo pipefail

number=0
failed=0

# value NAME: prints a number of the JSON object in $out
value()
{
	[[ $out =~ \"$1\":\ ([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

# run PACKETS OPTION...: runs tpbench and checks its output
run()
{
	local packets=$1 out='' rc=0 bad='' received=1 name

	shift
	# The count ends the run. The time is a limit in case of failure.
	out=$(timeout 120 ./tpbench -q --verify -s 200 --warmup 16 -d 100 \
		-n "$packets" "$@" 2>&1) || rc=$?
	number=$((number + 1))
	[ $rc -eq 0 ] || bad="exit code $rc"
	[ "$(value packets || :)" -eq "$packets" ] 2>/dev/null ||
		bad+=" packets"
	# txpush has no receiver; l2fwd tests the contents.
	[[ $* != *--txpush* ]] || received=0
	[ "$(value checked || :)" -ge $((packets * received)) ] 2>/dev/null ||
		bad+=" checked"
	for name in reordered corrupt; do
		[ "$(value $name || :)" = 0 ] || bad+=" $name"
	done
	if [ "$bad" ]; then
		echo "# error: $bad: ${out//$'\n'/ | }"
		echo "not ok $number tpbench $*"
		failed=1
	else
		echo "ok $number tpbench $*"
	fi
}

# refused MESSAGE OPTION...: tpbench must refuse the options, run by $as
as=()
refused()
{
	local out rc=0

	out=$(timeout 120 "${as[@]}" ./tpbench -q -n 100 "${@:2}" 2>&1) || rc=$?
	number=$((number + 1))
	if [ $rc -ne 0 ] && [[ $out == *$1* ]]; then
		echo "ok $number tpbench ${*:2}: $1"
	else
		echo "# error: $rc: $out"
		echo "not ok $number tpbench ${*:2}: $1"
		failed=1
	fi
}

is_bound()
{
	# Iface is the fifth column, and 0 before bind()
	awk -v "i=$(cat /sys/class/net/tp4A/ifindex)" \
		'$5 == i { found = 1 } END { exit !found }' /proc/net/packet
}

# long_packet: V3 receives a packet that does not fit a Tx frame
long_packet()
{
	local title="tpbench -v 3 --l2fwd says that a packet is too long"
	local out rc=0 pid n

	number=$((number + 1))
	if ! command -v python3 >/dev/null; then
		echo "ok $number $title # SKIP needs python3"
		return
	fi
	out=$(mktemp)
	timeout 120 ./tpbench -q -i tp4A -v 3 --l2fwd -d 100 >"$out" 2>&1 &
	pid=$!
	for ((n = 0; n < 600; n++)); do
		! is_bound || break
		sleep 0.1
	done
	python3 -c 'import socket
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sock.bind(("tp4B", 0))
sock.send(bytes(12) + b"\x88\xb5" + bytes(8000))'
	wait $pid || rc=$?
	if [ $rc -eq 1 ] && grep -q "cannot forward 8014 bytes" "$out"; then
		echo "ok $number $title"
	else
		echo "# error: $rc: $(head -c 300 "$out")"
		echo "not ok $number $title"
		failed=1
	fi
	rm "$out"
}

# interrupted_warmup: there is no result of it
interrupted_warmup()
{
	local title="tpbench measures nothing if the warm-up is interrupted"
	local out rc=0 pid n

	number=$((number + 1))
	out=$(mktemp)
	./tpbench -q -i tp4A --rxdrop -d 100 >"$out" 2>&1 &
	pid=$!
	for ((n = 0; n < 600; n++)); do
		! is_bound || break
		sleep 0.1
	done
	kill -INT $pid
	wait $pid || rc=$?
	if [ $rc -eq 1 ] && grep -q "during the warm-up" "$out"; then
		echo "ok $number $title"
	else
		echo "# error: $rc: $(head -c 300 "$out")"
		echo "not ok $number $title"
		failed=1
	fi
	rm "$out"
}

# short_of_warmup: fewer packets than the warm-up wants are not lost without a word
short_of_warmup()
{
	local title="tpbench says how many packets came in the warm-up"
	local out rc=0 pid n

	number=$((number + 1))
	out=$(mktemp)
	./tpbench -q -i tp4A --rxdrop -d 2 >"$out" 2>&1 &
	pid=$!
	for ((n = 0; n < 600; n++)); do
		! is_bound || break
		sleep 0.1
	done
	./tpbench -q -i tp4B --txpush -w 0 -n 100 -d 100 >/dev/null
	wait $pid || rc=$?
	if [ $rc -eq 1 ] && grep -q '"warmup": 100, "packets": 0,' "$out" &&
		grep -q "only 100 of [0-9]* packets of the warm-up" "$out"; then
		echo "ok $number $title"
	else
		echo "# error: $rc: $(head -c 900 "$out")"
		echo "not ok $number $title"
		failed=1
	fi
	rm "$out"
}

echo "TAP version 13"
pair=(-i "tp4A,tp4B")

# benchmarks OPTION...: runs all benchmarks that all versions support
benchmarks()
{
	local version=("${pair[@]}" "$@")

	run 4000 "${version[@]}" --rxdrop
	run 4000 "${version[@]}" --txpush
	run 4000 "${version[@]}" --l2fwd
	run 4000 "${version[@]}" --veth 64
	# A V3 packet waits for a timer.
	run 200 "${version[@]}" --veth 1
	run 4000 "${version[@]}" --rxdrop --lockstep
	run 4000 "${version[@]}" --veth 64 --lockstep
	run 1000 "${version[@]}" --rxdrop --poll
}

versions=(2 3 4 "4 -z 0")
if [ -e /sys/kernel/debug/kmemleak ] || [ -e /sys/kernel/debug/kcsan ]; then
	echo "# a slow kernel: without V2 and V3"
	versions=(4 "4 -z 0")
fi
for v in "${versions[@]}"; do
	# shellcheck disable=SC2086 # two words for zero-copy
	benchmarks -v $v
	# shellcheck disable=SC2086
	run 1000 "${pair[@]}" -v $v --veth 64 --poll
done
run 4000 "${pair[@]}" --veth 64 --shared
run 4000 "${pair[@]}" --veth 64 --shared -z 0
run 4000 "${pair[@]}" --veth 64 --shared -z 0 -B 20
run 4000 "${pair[@]}" --rxdrop -z 0 -B 20
run 4000 "${pair[@]}" --veth 64 -z 0 -R 256 -b 32
for type in lb cpu rnd qm hash cbpf xdp; do
	run 1000 "${pair[@]}" --rxdrop -z 0 --fanout $type
done

# fanout_in_flood: packets that arrive before the queue is in zero-copy mode keep no
# frame of its small ring
fanout_in_flood()
{
	local count=/sys/class/net/tp4A/statistics/rx_packets
	local pid n before

	before=$(cat $count)
	./tpbench -q --verify -s 200 -i tp4B --txpush -d 100 >/dev/null 2>&1 &
	pid=$!
	for ((n = 0; n < 600; n++)); do
		[ "$(cat $count)" -eq "$before" ] || break
		sleep 0.1
	done
	run 1000 -i tp4A --rxdrop -z 0 --fanout cbpf -R 256 -b 32 -d 30
	kill $pid
	wait $pid || :
}
fanout_in_flood

# Three queues, of which each has its own packets
three="numtxqueues 3 numrxqueues 3"
# shellcheck disable=SC2086 # words
ip link add tp4C $three type veth peer name tp4D $three
for i in tp4C tp4D; do
	if [ -e "/proc/sys/net/ipv6/conf/$i/disable_ipv6" ]; then
		echo 1 >"/proc/sys/net/ipv6/conf/$i/disable_ipv6"
	fi
	ip link set "$i" up
done
for q in all 0-2 1-2 2-2; do
	run 3000 -i tp4C,tp4D --veth 64 -Q "$q"
	run 3000 -i tp4C --txpush -Q "$q"
done
run 3000 -i tp4C,tp4D --veth 64 -Q 2 -z 1
refused "no such queue pair" -i tp4C --txpush -Q 1-3
refused "not a number" -i tp4C --txpush -Q 1-0
refused "not a number" -i tp4C --txpush -Q every
refused "number of queues: No such device" -i nothing --txpush -Q all
as=(prlimit --memlock=65536 setpriv --bounding-set=-ipc_lock)
refused "RLIMIT_MEMLOCK" -i tp4C --rxdrop
refused "RLIMIT_MEMLOCK" -i tp4C --rxdrop -z 0
as=()
ip link del tp4C

refused "--fanout needs --rxdrop" "${pair[@]}" --veth 64 -z 0 --fanout lb

# AF_XDP: generic and native XDP, and unsupported modes
program_of()
{
	ip link show tp4A | grep -o 'prog/xdp' || :
}

detached()
{
	number=$((number + 1))
	if [ "$(program_of)" ]; then
		echo "not ok $number the XDP program is gone after $1"
		failed=1
	else
		echo "ok $number the XDP program is gone after $1"
	fi
}

# interrupted SIGNAL: ends tpbench while a program is attached
interrupted()
{
	local pid n

	./tpbench -q "${pair[@]}" -v xdp --rxdrop -d 100 >/dev/null 2>&1 &
	pid=$!
	for ((n = 0; n < 600; n++)); do
		[ ! "$(program_of)" ] || break
		sleep 0.1
	done
	if [ ! "$(program_of)" ]; then
		number=$((number + 1))
		echo "not ok $number AF_XDP attaches a program"
		failed=1
	fi
	kill "-$1" $pid
	wait $pid || :
	# A work item removes an unused link asynchronously.
	for ((n = 0; n < 100; n++)); do
		[ "$(program_of)" ] || break
		sleep 0.1
	done
	detached "$1"
}

if [[ $(ldd ./tpbench) == *libxdp* ]]; then
	for v in xdp-skb xdp "xdp -B 20"; do
		# shellcheck disable=SC2086 # several words
		benchmarks -v $v
	done
	run 4000 "${pair[@]}" -v xdp --veth 64 -R 256 -b 32
	detached "the end"
	interrupted INT
	interrupted KILL
	refused "Operation not supported" "${pair[@]}" -v xdp -z 0 --rxdrop
	refused "Invalid argument" "${pair[@]}" -v xdp -Q 2 --rxdrop
else
	number=$((number + 1))
	echo "ok $number tpbench -v xdp # SKIP built without libxdp-dev"
	refused "without libxdp" "${pair[@]}" -v xdp --rxdrop
fi
long_packet
for v in 2 3 4; do
	run 10 "${pair[@]}" -v $v --txpush
	run 10 "${pair[@]}" -v $v --rxdrop
done
refused "no packets" -i tp4A --rxdrop -w 0 -d 0.2
interrupted_warmup
short_of_warmup
ip link set tp4B down
refused "no carrier" -i tp4A --txpush -d 1
ip link set tp4B up
refused "driver's XDP" -i tp4A -v xdp-skb -z 0 --txpush
refused "no zero-copy mode" -i lo -z 0 --txpush
refused "No such device" -i nothing --txpush
refused "both ends" -i tp4A --veth 1
number=$((number + 1))
if [[ $(./tpbench --version) =~ ^tpbench\ with\ tpacket4.h\ [0-9]+\.[0-9]+$ ]]; then
	echo "ok $number tpbench --version"
else
	echo "not ok $number tpbench --version"
	failed=1
fi
echo "1..$number"
exit $failed
