#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Two stacks communicate through a V4 socket in zero-copy mode: ARP, IPv6
# neighbour discovery, ping, UDP and TCP over IPv4 and IPv6, with TSO, GRO and
# checksum offload enabled at the other end of the veth.
#
#	left: stack - veth0  <->  right: veth0 - zc_bridge - tap - stack
#
# The bridge verifies the checksums of each packet. The programs at both ends
# compare the received data with the sent data.

# shellcheck source-path=SCRIPTDIR source=net.sh
source "$(dirname "$0")/net.sh"
need ping python3 ip ethtool tcpdump
[ -c /dev/net/tun ] || skip "needs /dev/net/tun"

# Like the other tests, do less on a debug kernel.
fast=0
[ ! -e /sys/kernel/debug/kmemleak ] || fast=1
total=2000000
mtus='1500 9000'
if [ "${TPACKET4_FAST:-$fast}" != 0 ]; then
	total=100000
	mtus=9000
fi
echo "$total bytes each way a connection"

setup() {
	local mtu=$1

	setup_ns left right
	in_right sysctl -qw net.ipv6.conf.default.disable_ipv6=1
	ip -n "$left" link add veth0 mtu "$mtu" address 02:00:00:00:00:01 \
		type veth peer name veth0 mtu "$mtu" \
		address 02:00:00:00:00:02 netns "$right"
	in_right sysctl -qw net.ipv6.conf.default.disable_ipv6=0
	# All that a stack may leave to a device, and that a ring cannot do
	in_left ethtool -K veth0 tx on sg on tso on gso on gro on >/dev/null
	in_right ethtool -K veth0 gro on >/dev/null
	ip -n "$right" -batch - <<-END
		tuntap add dev tap0 mode tap
		link set tap0 mtu $mtu address 02:00:00:00:00:03
		link set veth0 up
	END
	ip -n "$left" -batch - <<-END
		link set veth0 up
		addr add 192.0.2.1/24 dev veth0
		addr add 2001:db8::1/64 dev veth0 nodad
	END
}

start_bridge() {
	# not by in_right: $! has to be the program itself
	ip netns exec "$right" ./zc_bridge veth0 tap0 \
		>"$tmp/bridge.out" 2>&1 &
	bridge=$!
	pids+=("$bridge")
	wait_for 120 grep -q bridging "$tmp/bridge.out" ||
		fail "the bridge does not start"
	ip -n "$right" -batch - <<-END
		link set tap0 up
		addr add 192.0.2.2/24 dev tap0
		addr add 2001:db8::2/64 dev tap0 nodad
	END
	start_server 192.0.2.2 2001:db8::2
}

# The offloads must have been used: the stack has sent a packet longer than the
# MTU.
watch_tso() {
	ip netns exec "$left" tcpdump -i veth0 -nn -p -c 1 -w "$tmp/tso" \
		"tcp and src host 192.0.2.1 and greater $(($1 + 1000))" \
		2>"$tmp/tcpdump.log" &
	tso=$!
	pids+=("$tso")
	wait_for 120 grep -q 'listening on' "$tmp/tcpdump.log" ||
		fail "tcpdump does not start"
}

# The last report of the bridge: counters by name
declare -A value
read_report() {
	local i words

	value=()
	while read -r -a words; do
		for ((i = 0; i + 1 < ${#words[@]}; i += 2)); do
			value[${words[i]}]=${words[i + 1]}
		done
	done <"$tmp/bridge.out"
}

run() {
	local mtu=$1 name

	setup "$mtu"
	start_bridge
	watch_tso "$mtu"
	wait_for 60 in_left ping -c 1 -W 2 192.0.2.2 ||
		fail "MTU $mtu: no connection"
	wait_for 60 in_left ping -c 1 -W 2 2001:db8::2 ||
		fail "MTU $mtu: no connection over IPv6"
	traffic "$total" 192.0.2.2 2001:db8::2
	wait_for 5 sh -c "! kill -0 $tso" ||
		fail "MTU $mtu: the stack has segmented everything itself"
	kill -INT "$bridge"
	wait "$bridge" || fail "MTU $mtu: the bridge is not content"
	cat "$tmp/bridge.out"
	read_report
	for name in arp icmp icmp6 nd tcp tcp6 udp udp6 fragments; do
		[ "${value[$name]}" -gt 0 ] || fail "MTU $mtu: no $name seen"
	done
	for name in bad_ip bad_checksum too_long errors strays; do
		[ "${value[$name]}" -eq 0 ] || fail "MTU $mtu: $name"
	done
	if [ "$mtu" -gt 2000 ] && [ "${value[chains]}" -eq 0 ]; then
		fail "MTU $mtu: no packet of several frames"
	fi
	end_programs
	cleanup_all_ns
	echo "ok: MTU $mtu"
}

for mtu in $mtus; do
	run "$mtu"
done
echo "PASS"
