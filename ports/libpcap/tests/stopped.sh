#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
#	ports/libpcap/tests/stopped.sh PCAP veth|virtio_net|i40e [PINGS]
#
# A stopped capture does not take the host off the net: tcpdump captures on zc:DEV+stack and
# is stopped, while its host is sent PINGS (10000) packets and answers all of them. Then it
# goes on. As root, on a veth pair or on the two devices of that driver. PCAP is build/pcap.

set -euo pipefail
case ${1:---help} in
-h | --help)
	sed -n '4,8{s/^# \?//; s/^\t/usage: /; p}' "$0"
	exit
	;;
esac
pcap=$1 driver=$2 pings=${3:-10000}
tmp=$(mktemp -d)
devices=()
tcpdump=

far() { ip netns exec v4far "$@"; }
host() { ip netns exec v4host "$@"; }

cleanup() {
	[ ! "$tcpdump" ] || kill -KILL "$tcpdump"
	ip netns del v4far
	ip netns del v4host
	rm -rf "$tmp"
} 2>/dev/null

skip() {
	echo "SKIP: $*"
	exit 4
}

# wait_for COMMAND...: waits until it succeeds
wait_for() {
	local end=$((SECONDS + 120))

	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || { echo "not ok: no $*"; return 1; }
		sleep 0.1
	done
}

command -v tcpdump >/dev/null || skip "no tcpdump"
if [ "$driver" = veth ]; then
	ip link add v4a type veth peer name v4b
	devices=(v4a v4b)
else
	for path in /sys/class/net/*; do
		[ "$(basename "$(readlink "$path/device/driver")")" != "$driver" ] ||
			devices+=("${path##*/}")
	done
	[ ${#devices[@]} -eq 2 ] || skip "needs two devices of $driver"
fi
ip netns add v4far
ip netns add v4host
trap cleanup EXIT
ip link set "${devices[0]}" netns v4far name v4a
ip link set "${devices[1]}" netns v4host name v4b
# One queue, or the capture might not see the packets.
far ethtool -L v4a combined 1 >/dev/null 2>&1 || :
host ethtool -L v4b combined 1 >/dev/null 2>&1 || :
far ip addr add 10.72.0.1/24 dev v4a
host ip addr add 10.72.0.2/24 dev v4b
far ip link set v4a up
host ip link set v4b up
wait_for far ping -q -c 1 -W 1 10.72.0.2

# Not by a function, which would be the process that is stopped.
ip netns exec v4host env LD_LIBRARY_PATH="$pcap/lib" \
	tcpdump -Z root -n -w "$tmp/got" -i zc:v4b+stack icmp 2>"$tmp/log" &
tcpdump=$!
wait_for grep -q listening "$tmp/log" || { cat "$tmp/log"; exit 1; }
# i40e stops the queue for it.
wait_for far ping -q -c 1 -W 1 10.72.0.2
kill -STOP $tcpdump
wait_for grep -q '^State:.T' /proc/$tcpdump/status
[ "$(<"/proc/$tcpdump/comm")" = tcpdump ]
far ping -q -f -c "$pings" -W 10 10.72.0.2 >"$tmp/ping" || :
cat "$tmp/ping"
grep -q "^$pings packets transmitted, $pings received, 0% packet loss" "$tmp/ping" || {
	echo "not ok: pings were lost while tcpdump was stopped"
	exit 1
}
kill -CONT $tcpdump
far ping -q -c 5 -i 0.1 -W 10 10.72.0.2 >/dev/null
sleep 1
kill -TERM $tcpdump
wait $tcpdump || { cat "$tmp/log"; exit 1; }
tcpdump=
cat "$tmp/log"
# It has lost packets, and says so, but not its own end of the ring.
captured=$(awk '/captured/ { print $1 }' "$tmp/log")
dropped=$(awk '/dropped by kernel/ { print $1 }' "$tmp/log")
if [ "$captured" -le 5 ] || [ "$dropped" -eq 0 ]; then
	echo "not ok: $captured captured and $dropped dropped, of $pings"
	exit 1
fi
