#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Native XDP: pass, drop, tx and redirect.
# shellcheck disable=SC2317,SC2086 source=lib.sh
. "$(dirname "$0")/lib.sh"

BPFFS=/sys/fs/bpf
PINS=()

# load NAME [IFINDEX]: loads it and pins it as $BPFFS/xl_NAME
load() {
	rm -f "$BPFFS/xl_$1"
	PINS+=("$BPFFS/xl_$1")
	python3 "$HERE/bpf.py" "$1" "$BPFFS/xl_$1" --ifindex "${2:-0}"
}

# ip netns exec hides the bpf file system behind a new /sys; bind it in
ipx() {
	local ns=$1

	shift
	nsenter --net=/run/netns/"$ns" ip "$@"
}

attach() {
	# the driver resets the port: give the other end time to see it
	ipx "$1" link set "$2" xdpdrv pinned "$BPFFS/xl_$3" &&
		sleep 0.5 && wait_for 10 links_up
}

detach() {
	ipx "$1" link set "$2" xdpdrv off && sleep 0.5 && wait_for 10 links_up
}

# xdp_pass PROGRAM BYTES
xdp_pass() {
	load "$1" && attach $NS1 "$IF1" "$1" &&
		wait_for 10 n0 ping -q -c 1 -W 1 $IP1 &&
		n0 ping -q -c 20 -i 0.02 -W 2 -s "$2" $IP1 &&
		detach $NS1 "$IF1"
}

# xdp_drop BYTES
xdp_drop() {
	load drop && attach $NS1 "$IF1" drop || return 1
	n0 ping -q -c 3 -i 0.1 -W 1 -s "$1" $IP1 && return 1
	detach $NS1 "$IF1" && wait_for 10 n0 ping -q -c 1 -W 1 $IP1
}

# xdp_tx BYTES: the packets that port 0 sends return with the addresses exchanged
xdp_tx() {
	local before after

	load tx && attach $NS1 "$IF1" tx || return 1
	sleep 2
	before=$(stat $NS0 "$IF0" port.rx_unicast)
	n0 ping -q -c 20 -i 0.02 -W 1 -s "$1" $IP1
	sleep 2
	after=$(stat $NS0 "$IF0" port.rx_unicast)
	detach $NS1 "$IF1"
	echo "came back: $((after - before)) packets"
	[ $((after - before)) -ge 20 ]
}

# Port 1 redirects to a veth, and the other end of that counts
xdp_redirect() {
	local idx before after

	n1 ip link add xv0 type veth peer name xv1 || return 1
	n1 ip link set xv0 up && n1 ip link set xv1 up
	# a veth takes XDP frames if its peer has a program
	load pass && ipx $NS1 link set xv1 xdpdrv pinned "$BPFFS/xl_pass"
	idx=$(n1 cat /sys/class/net/xv0/ifindex)
	load redirect "$idx" && attach $NS1 "$IF1" redirect || return 1
	before=$(n1 cat /sys/class/net/xv1/statistics/rx_packets)
	n0 ping -q -c 30 -i 0.02 -W 1 $IP1
	after=$(n1 cat /sys/class/net/xv1/statistics/rx_packets)
	detach $NS1 "$IF1"
	n1 ip link del xv0
	echo "redirected: $((after - before)) packets"
	[ $((after - before)) -ge 20 ]
}

# From port 0's partner through its XDP Tx queues
xdp_redirect_to_port() {
	local idx before after

	idx=$(n1 cat /sys/class/net/"$IF1"/ifindex)
	load redirect "$idx" && attach $NS1 "$IF1" redirect || return 1
	sleep 2
	before=$(stat $NS0 "$IF0" port.rx_bytes)
	n0 ping -q -c 20 -i 0.02 -s 1000 -W 1 $IP1
	sleep 2
	after=$(stat $NS0 "$IF0" port.rx_bytes)
	detach $NS1 "$IF1"
	echo "came back: $((after - before)) bytes"
	[ $((after - before)) -ge 20000 ]
}

setup
mountpoint -q $BPFFS || mount -t bpf bpf $BPFFS
trap 'rm -f "${PINS[@]}"; teardown' EXIT
n0 ip neigh replace $IP1 dev "$IF0" \
	lladdr "$(n1 cat /sys/class/net/"$IF1"/address)" nud permanent
check "xdp: pass" xdp_pass pass 56
check "xdp: pass with metadata" xdp_pass meta 56
check "xdp: drop" xdp_drop 56
check "xdp: tx" xdp_tx 56
check "xdp: redirect to a veth" xdp_redirect
# the driver wants a queue for each processor there
if [ "$(n1 ls /sys/class/net/"$IF1"/queues | grep -c rx-)" -ge "$(nproc)" ]; then
	check "xdp: redirect to a port" xdp_redirect_to_port
else
	skip "xdp: redirect to a port" "fewer queues than processors"
fi
# packets of several frames
check "xdp: MTU 9000" set_mtu 9000
check "xdp: MTU 9000: pass" xdp_pass pass 8000
check "xdp: MTU 9000: drop" xdp_drop 8000
check "xdp: MTU 9000: tx" xdp_tx 8000
check "xdp: MTU 1500" set_mtu 1500
check "xdp: traffic without a program" n0 ping -q -c 5 -i 0.1 -W 2 $IP1
finish
