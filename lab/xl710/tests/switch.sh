#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# tpswitch connects a container to the network behind a port in zero-copy mode, and a
# program on a ring port counts the packets of both.
# shellcheck disable=SC2317 source=lib.sh
. "$(dirname "$0")/lib.sh"

APP=$BUILD/tpswitch
TCP=$HERE/../../../apps/tpswitch/tests/tcp.py
NS=swc IP=10.71.0.9	# the container
DIR=$(mktemp -d)
SOCK=$DIR/port

inside() { ip netns exec "$NS" "$@"; }
ctl() { "$APP/tpswitch" ctl -S "$SOCK" "$@"; }

container() {
	ip netns add "$NS" &&
		ip -n "$NS1" link add swc type veth peer name eth0 netns "$NS" &&
		inside sysctl -qw net.ipv6.conf.all.disable_ipv6=1 &&
		n1 sysctl -qw net.ipv6.conf.swc.disable_ipv6=1 &&
		ip -n "$NS" addr add "$IP"/24 dev eth0 &&
		ip -n "$NS" link set eth0 up &&
		ip -n "$NS1" link set swc up
}

# The host's stack has the port no more, and is to be silent.
quiet() {
	n1 ip addr flush dev "$IF1"
	n1 sysctl -qw "net.ipv6.conf.$IF1.disable_ipv6=1"
	n0 sysctl -qw "net.ipv6.conf.$IF0.disable_ipv6=1"
}

ring_is_connected() {
	ctl list | grep ' ring '
}

ping_both() {
	wait_for 20 inside ping -qc 1 -W 1 "$IP0" && n0 ping -qc 3 -W 5 "$IP"
}

# eight megabytes from $1 to $2, and back; $3 is the address of $2
tcp() {
	local rc=0 server

	ip netns exec "$2" python3 -B "$TCP" server "$3" &
	server=$!
	ip netns exec "$1" python3 -B "$TCP" client "$3" || rc=1
	wait "$server" || rc=1
	return "$rc"
}

# A hub sends all packets that it receives to the ring port. Those that find no room
# there are counted.
same_count() {
	local all counted lost

	sleep 1
	ctl count
	all=$(ctl count | awk 'NR > 1 && !/^ring/ { n += $2 } END { print n }')
	lost=$(ctl count | awk '/^ring/ { print $7 }')
	kill "$SWITCH"
	wait_for 30 grep packets "$DIR/count"
	cat "$DIR/count" "$DIR/switch.log"
	counted=$(sed 's/.*"packets": \([0-9]*\).*/\1/' "$DIR/count")
	[ "$all" -gt 50 ] && [ "$counted" -gt $((all / 2)) ] &&
		[ $((counted + lost)) = "$all" ]
}

cleanup() {
	set +e
	teardown
	ip netns del "$NS"
	rm -rf "$DIR"
} 2>/dev/null

if [ ! -x "$APP/tpswitch" ]; then
	skip "${0##*/}" "no tpswitch: lab/build/progs tpswitch"
	exit 0
fi
setup
trap cleanup EXIT
check "switch: a container" container
check "switch: no other packets" quiet
ip netns exec "$NS1" "$APP/tpswitch" -S "$SOCK" --lookup hub "zc:$IF1" swc \
	2>"$DIR/switch.log" &
SWITCH=$!
PIDS+=("$SWITCH")
check "switch: starts" wait_for 30 ctl list
check "switch: the link comes back" wait_for 30 links_up
# It ends with the switch.
"$APP/swperf" -S "$SOCK" --meta --count 600 >"$DIR/count" &
PIDS+=("$!")
check "switch: a program connects" wait_for 10 ring_is_connected
check "switch: ping" ping_both
check "switch: TCP from the container" tcp "$NS" "$NS0" "$IP0"
check "switch: TCP to the container" tcp "$NS0" "$NS" "$IP"
check "switch: a ring port sees the same packets" same_count
finish
