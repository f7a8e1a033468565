#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# ping and iperf3 between the ports, offloads on and off, small and large MTU.
# shellcheck disable=SC2317,SC2086 source=lib.sh
. "$(dirname "$0")/lib.sh"

SECS=${SHORT:+1}
SECS=${SECS:-3}

listening() {
	n1 ss -Hltn sport = 5201 | grep . >/dev/null
}

# iperf ARGS...: from port 0 to port 1; something must arrive
iperf() {
	local out pid

	n1 iperf3 -s -1 >/dev/null 2>&1 &
	pid=$!
	PIDS+=("$pid")
	wait_for 10 listening
	out=$(n0 iperf3 -c $IP1 -t "$SECS" --connect-timeout 5000 "$@" 2>&1) || {
		echo "$out"
		kill $pid 2>/dev/null
		return 1
	}
	wait $pid
	echo "$out" | grep -E 'receiver|sender' | grep -vE ' 0\.00 (bits|Bytes)' |
		tail -2 | sed 's/^/# /'
	grep -q receiver <<<"$out"
}

# Print the rate, too
run() {
	local name=$1 out

	shift
	if out=$(iperf "$@"); then
		ok "$name"
	else
		not_ok "$name" "iperf3 $*"
	fi
	echo "$out" | tail -n 12
}

OFFLOADS=(rx tx sg tso gso gro rxvlan txvlan)

set_offloads() {
	local o args=()

	for o in "${OFFLOADS[@]}"; do
		args+=("$o" "$1")
	done
	n0 ethtool -K "$IF0" "${args[@]}" && n1 ethtool -K "$IF1" "${args[@]}"
}

csum_errors() {
	echo "$(stat $NS0 "$IF0" port.rx_csum_bad)" \
		"$(stat $NS1 "$IF1" port.rx_csum_bad)"
}

# Packets of earlier tests count, too.
no_more_csum_errors() {
	[ "$(csum_errors)" = "$csum_errors" ]
}

tcp_csum_clean() {
	n1 nstat -az TcpInCsumErrors UdpInCsumErrors IpExtInCsumErrors |
		awk '!/^#/ && $2 { bad = 1; print } END { exit bad }'
}

sizes() {
	local s

	for s in 0 1 18 100 1000 "$1"; do
		n0 ping -q -c 2 -i 0.05 -W 2 -M "do" -s "$s" $IP1 || return 1
	done
}

# For each RST that it sends, port 1 removes the flow from its flow director, which does not
# have it and reports an error on the Rx queue.
refused() {
	local i

	for i in {1..20}; do
		! n0 bash -c "exec 3<>/dev/tcp/$IP1/$((7000 + i))" || return 1
	done
	n0 ping -q -c 5 -i 0.05 -W 2 $IP1
}

# Copy headers, and leave the rest where the device wrote it
legacy_rx() {
	n0 ethtool --set-priv-flags "$IF0" legacy-rx "$1" &&
		n1 ethtool --set-priv-flags "$IF1" legacy-rx "$1" &&
		wait_for 10 links_up && addresses &&
		wait_for 10 n0 ping -q -c 1 -W 1 $IP1
}

set_rx_ring() {
	n0 ethtool -G "$IF0" rx "$1" && wait_for 10 n0 ping -q -c 1 -W 1 $IP1
}

# A ring whose size is no power of two allocates one page a descriptor, and few more
# for packets that are still in use
one_page_each() {
	local nr=$1 before after queues

	queues=$(n0 ethtool -l "$IF0" | awk '/^Combined:/ { n = $2 } END { print n }')
	before=$(stat $NS0 "$IF0" rx_cache_alloc) && set_rx_ring "$nr" || return 1
	after=$(stat $NS0 "$IF0" rx_cache_alloc)
	echo "$((after - before)) pages for $queues rings of $nr"
	[ $((after - before)) -ge $((queues * (nr - 1))) ] &&
		[ $((after - before)) -le $((queues * nr + 16)) ]
}

vlan() {
	n0 ip link add link "$IF0" name v0 type vlan id 71 &&
		n1 ip link add link "$IF1" name v1 type vlan id 71 &&
		n0 ip addr add 10.72.0.1/24 dev v0 &&
		n1 ip addr add 10.72.0.2/24 dev v1 &&
		n0 ip link set v0 up && n1 ip link set v1 up &&
		wait_for 5 n0 ping -q -c 1 -W 1 10.72.0.2 &&
		n0 ping -q -c 5 -i 0.1 -W 2 10.72.0.2
}

vlan_off() {
	n0 ip link del v0 || :
	n1 ip link del v1 || :
}

# A tunnel, with checksums and segmentation of the inner packet by hardware
vxlan() {
	n0 ip link add vx0 type vxlan id 7 local $IP0 remote $IP1 dstport 4789 &&
		n1 ip link add vx1 type vxlan id 7 local $IP1 remote $IP0 \
			dstport 4789 || return 2
	n0 ip addr add 10.74.0.1/24 dev vx0 && n0 ip link set vx0 up &&
		n1 ip addr add 10.74.0.2/24 dev vx1 && n1 ip link set vx1 up &&
		wait_for 5 n0 ping -q -c 1 -W 1 10.74.0.2
}

setup
csum_errors=$(csum_errors)
check "traffic: ping, all sizes to MTU 1500" sizes 1472
run "traffic: TCP"
run "traffic: TCP, 4 flows" -P 4
check "traffic: TCP, refused" refused
run "traffic: UDP" -u -b 50M -l 1400
check "traffic: VLAN, offloaded" vlan
if [[ $(uname -r) == 6.12.* && -e /proc/lockdep ]]; then
	# takes a mutex of the driver under a spinlock: this kernel warns
	skip "traffic: VXLAN" "Linux 6.12's is at fault on a debug kernel"
elif n0 ip link add vx9 type vxlan id 9 dstport 4790 2>/dev/null; then
	n0 ip link del vx9
	check "traffic: VXLAN" vxlan
	run "traffic: TCP in VXLAN" -c 10.74.0.2
	check "traffic: no bad checksum in VXLAN" tcp_csum_clean
	n0 ip link del vx0 || :
	n1 ip link del vx1 || :
else
	skip "traffic: VXLAN" "not in this kernel"
fi
check "traffic: offloads off" set_offloads off
check "traffic: VLAN, not offloaded" n0 ping -q -c 5 -i 0.1 -W 2 10.72.0.2
vlan_off
run "traffic: TCP, offloads off"
if [ -z "$SHORT" ]; then
	run "traffic: UDP, offloads off" -u -b 50M -l 1400
	run "traffic: TCP over IPv6, offloads off" -6 -c $IP61
fi
check "traffic: offloads on" set_offloads on
check "traffic: MTU 9000" set_mtu 9000
check "traffic: ping, all sizes to MTU 9000" sizes 8972
run "traffic: TCP, MTU 9000"
if [ -z "$SHORT" ]; then
	run "traffic: TCP, 4 flows, MTU 9000" -P 4
	run "traffic: UDP, MTU 9000" -u -b 100M -l 8900
	run "traffic: TCP over IPv6, MTU 9000" -6 -c $IP61
	check "traffic: MTU 9000, offloads off" set_offloads off
	run "traffic: TCP, MTU 9000, offloads off"
	check "traffic: offloads on again" set_offloads on
fi
check "traffic: no bad checksum" no_more_csum_errors
# legacy-rx has five buffers of 1728 bytes a packet, too little for MTU 9000
check "traffic: MTU 8000" set_mtu 8000
check "traffic: legacy-rx, MTU 8000" legacy_rx on
csum_errors=$(csum_errors)	# which the reset has cleared
check "traffic: legacy-rx, ping, all sizes to MTU 8000" sizes 7972
run "traffic: legacy-rx, TCP, MTU 8000"
check "traffic: legacy-rx, MTU 1500" set_mtu 1500
check "traffic: legacy-rx, ping, all sizes to MTU 1500" sizes 1472
run "traffic: legacy-rx, TCP"
check "traffic: legacy-rx, no bad checksum" no_more_csum_errors
check "traffic: legacy-rx off" legacy_rx off
csum_errors=$(csum_errors)
check "traffic: MTU 9702, the most that the driver takes" set_mtu 9702
check "traffic: ping, all sizes to MTU 9702" sizes 9674
check "traffic: MTU 1500" set_mtu 1500
check "traffic: no bad checksum with packets of up to 9702 bytes" no_more_csum_errors
check "traffic: 544 Rx descriptors" one_page_each 544
run "traffic: TCP, 544 Rx descriptors"
check "traffic: MTU 9000 with 544 Rx descriptors" set_mtu 9000
run "traffic: TCP, MTU 9000, 544 Rx descriptors"
check "traffic: 64 Rx descriptors" set_rx_ring 64
run "traffic: TCP, MTU 9000, 64 Rx descriptors"
check "traffic: 512 Rx descriptors" set_rx_ring 512
check "traffic: MTU 1500 again" set_mtu 1500
check "traffic: no bad checksum in the stack" tcp_csum_clean
finish
