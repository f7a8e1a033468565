#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# AF_PACKET V4 in zero-copy mode: the selftests zc_port and, in the long form,
# fault on both ports, a stack that answers through zc_bridge, and tcpdump.
#
#	TP4_PARTS=PART one of them only: ports, faults, bridge or tcpdump; or netkit,
#	               suspend, stamp or fanout, for the selftests zc_netkit, zc_suspend,
#	               zc_stamp, or zc_fanout and zc_fanout_life; or xsk, for zc_xsk, and
#	               zc_port by AF_XDP's driver interface
#	TP4_TESTS=...  options of zc_port, "-t xdp" for example
# shellcheck disable=SC2317,SC2086 source=lib.sh
. "$(dirname "$0")/lib.sh"

SELFTESTS=$BUILD/selftests/net/tpacket4
PCAP=$BUILD/pcap/lib
PARTS=${TP4_PARTS:-ports $([ "$SHORT" ] || echo faults) bridge tcpdump}
NS=xlp			# both ports, as v4a and v4b
DIR=$(mktemp -d)

# The selftest prints one result per line
port_tests() {
	nsx ip link set dev v4a up
	nsx ip link set dev v4b up
	nsx "$SELFTESTS/zc_port" ${TP4_TESTS:-} ||
		not_ok "tp4: zc_port"
}

# Setup without memory, which the kernel logs
fault_tests() {
	check "tp4: nothing bad in the log yet" log_clean
	# The short form: each try resets a queue pair.
	nsx env TPACKET4_FAST=1 "$SELFTESTS/fault" "$@" || not_ok "tp4: fault"
	# shellcheck disable=SC2034 # log_clean() reads it
	DMESG_START=$(dmesg | wc -l)
}

# By AF_XDP's driver interface instead of that of V4. zc_xsk tests the differences: so
# there are no cases of offloads of the hardware, frames that overlap, and ethtool -G, which
# i40e refuses; and none of when a ring is looked at: the driver is woken up once more after
# each setup.
# A frame that is not a whole packet holds less, as the driver keeps room for
# skb_shared_info.
xsk_tests() {
	nsx ip link set dev v4a up
	nsx ip link set dev v4b up
	check "tp4: operations of V4 are hidden" modprobe afxdp_only
	nsx "$SELFTESTS/zc_xsk" || not_ok "tp4: zc_xsk"
	# A failed setup of a pool leaves the queue pair as it was.
	fault_tests -T fail_from_nth -v pair_of_two
	TP4_TESTS='-v both -v reset -t af_xdp -t hundred_thousand_packets
		-t kill_under_load -t steering -t blocked_sender -t one_ring
		-t offloads -t xdp -v xdp'
	[ "$SHORT" ] || TP4_TESTS+=' -v to_stack -v from_stack -v headroom -v page
		-v down_up -v mtu -v channels -t out_of_frames -t stack_sends'
	TPACKET4_PORT_MTU=6900 port_tests
	modprobe -r afxdp_only
}

# The timestamps of all kinds of packets, and those of the hardware
stamp_tests() {
	local cases=()

	[ ! "$SHORT" ] || cases=(-v to_ring -f stamp_option -f hw_stamp)
	nsx ip link set dev v4a up
	nsx ip link set dev v4b up
	nsx "$SELFTESTS/zc_stamp" "${cases[@]}" || not_ok "tp4: zc_stamp"
}

# Queues that feed a fanout group
fanout_tests() {
	local prog

	nsx ip link set dev v4a mtu 1500 up
	nsx ip link set dev v4b mtu 1500 up
	for prog in zc_fanout zc_fanout_life; do
		nsx "$SELFTESTS/$prog" || not_ok "tp4: $prog"
	done
}

# One of them removes port 1, finds it again, and makes it v4b once more.
netkit_tests() {
	local pci back="nsenter --net=/proc/1/ns/net ip link set"

	pci=$(realpath "/sys/bus/pci/devices/$PCI1")
	nsx env TPACKET4_PORT_REPLUG="echo 1 >$pci/remove;
		echo 1 >/sys/bus/pci/rescan; until n=\$(ls $pci/net); do :; done;
		$back \$n netns $NS name v4b; ip link set v4b up" \
		"$SELFTESTS/zc_netkit" || not_ok "tp4: zc_netkit"
}

suspend_tests() {
	[ ! -e /sys/power/pm_test ] ||
		check "tp4: the root directory's devices stay up" modprobe stay_up
	nsx ip link set dev v4a up
	nsx ip link set dev v4b up
	nsx "$SELFTESTS/zc_suspend" || not_ok "tp4: zc_suspend"
}

# not ip netns exec, which hides debugfs behind a new /sys
nsx() { nsenter --net=/run/netns/$NS "$@"; }

to_one_netns() {
	local n

	ip netns add $NS
	# only packets of the test
	nsx sysctl -qw net.ipv6.conf.default.disable_ipv6=1
	for n in 0 1; do
		local from=xl$n if=IF$n name=v4a

		[ $n = 0 ] || name=v4b
		ip -n $from link set "${!if}" down
		ip -n $from addr flush dev "${!if}"
		ip -n $from link set "${!if}" netns $NS name $name
	done
	nsx ip link set lo up
}

from_one_netns() {
	nsx ip link set v4a down
	nsx ip link set v4b down
	nsx ip link set v4a netns $NS0 name "$IF0"
	nsx ip link set v4b netns $NS1 name "$IF1"
	n0 ip link set "$IF0" up
	n1 ip link set "$IF1" up
	addresses
	wait_for 10 links_up
}

# A stack in $NS1 behind a tap talks to that of $NS0
start_bridge() {
	n1 ethtool -L "$IF1" combined 1
	n1 ip addr flush dev "$IF1"
	n1 sysctl -qw "net.ipv6.conf.$IF1.disable_ipv6=1"
	n1 ip link set "$IF1" mtu "$1" promisc on up
	n0 ip link set "$IF0" mtu "$1"
	n1 ip tuntap add dev tap0 mode tap
	n1 ip link set tap0 mtu "$1" address "$(n1 cat /sys/class/net/"$IF1"/address)"
	wait_for 10 links_up || return 1
	ip netns exec $NS1 "$SELFTESTS/zc_bridge" "$IF1" tap0 \
		>"$DIR/bridge" 2>&1 &
	echo $! >"$DIR/bridge.pid"
	wait_for 60 grep -q bridging "$DIR/bridge" || return 1
	n1 ip link set tap0 up
	n1 ip addr add $IP1/24 dev tap0
	n1 ip addr add $IP61/64 dev tap0 nodad
	ip netns exec $NS1 python3 "$SELFTESTS/echo.py" serve \
		$IP1 $IP61 >"$DIR/server" 2>&1 &
	echo $! >"$DIR/server.pid"
	wait_for 60 grep -q ready "$DIR/server"
}

bridge_traffic() {
	local ip

	for ip in $IP1 $IP61; do
		wait_for 20 n0 ping -q -c 1 -W 1 $ip || return 1
		n0 ping -q -c 20 -i 0.02 -W 10 $ip || return 1
		n0 ping -q -c 5 -i 0.02 -W 10 -s 8000 $ip || return 1
		n0 python3 "$SELFTESTS/echo.py" talk $ip 100000 ||
			return 1
	done
}

# The bridge prints its counters at the end: no bad checksum, no wrong length
bridge_content() {
	kill -INT "$(cat "$DIR/bridge.pid")"
	wait_for 20 grep strays "$DIR/bridge"
	cat "$DIR/bridge"
	grep -Eq 'to_tap [1-9][0-9]+ to_ring [1-9][0-9]+' "$DIR/bridge" &&
		grep -q 'bad_ip 0 bad_checksum 0 too_long 0 errors 0 strays 0' \
			"$DIR/bridge"
}

stop_bridge() {
	kill "$(cat "$DIR/server.pid")"
	n1 ip link del tap0
	n1 ip link set "$IF1" mtu 1500 promisc off
	n0 ip link set "$IF0" mtu 1500
	n1 sysctl -qw "net.ipv6.conf.$IF1.disable_ipv6=0"
	addresses
	wait_for 10 n0 ping -q -c 1 -W 1 $IP1
}

both_listen() {
	grep -q listening "$DIR/sent.log" && grep -q listening "$DIR/got.log"
}

# The packets that one port sends with V3 are received by the other one, with zc:
tcpdump_gets_all() {
	local args=(-Z root -c 20 icmp) name

	n1 ethtool -L "$IF1" combined 1 || :
	wait_for 10 links_up || return 1
	n0 ip neigh replace $IP1 dev "$IF0" \
		lladdr "$(n1 cat /sys/class/net/"$IF1"/address)"
	n0 tcpdump "${args[@]}" -Q out -i "$IF0" -w "$DIR/sent" \
		2>"$DIR/sent.log" &
	n1 env LD_LIBRARY_PATH="$PCAP" tcpdump "${args[@]}" -i "zc:$IF1" \
		-w "$DIR/got" 2>"$DIR/got.log" &
	if ! wait_for 30 both_listen; then
		cat "$DIR"/*.log
		# shellcheck disable=SC2046 # several
		kill $(jobs -p)
		return 1
	fi
	# the host does not see them
	! n0 ping -q -c 20 -i 0.02 -W 1 $IP1 || return 1
	wait_for 10 grep -q captured "$DIR/sent.log"
	if ! wait_for 10 grep -q captured "$DIR/got.log"; then
		# shellcheck disable=SC2046
		kill $(jobs -p)
	fi
	wait
	cat "$DIR/got.log"
	for name in sent got; do
		tcpdump -ntxxr "$DIR/$name" >"$DIR/$name.txt" || return 1
	done
	grep -q 'ICMP echo request' "$DIR/got.txt" &&
		cmp "$DIR/sent.txt" "$DIR/got.txt"
}

cleanup() {
	set +e
	kill "$(cat "$DIR/bridge.pid")" "$(cat "$DIR/server.pid")"
	from_one_netns
	ip netns del $NS
	rm -rf "$DIR"
	teardown
} 2>/dev/null

for prog in zc_port zc_netkit zc_suspend zc_stamp zc_fanout zc_fanout_life fault \
	zc_bridge echo.py; do
	if [ ! -e "$SELFTESTS/$prog" ]; then
		skip "${0##*/}" "no $prog in $SELFTESTS: lab/build/progs selftests"
		exit 0
	fi
done
setup
trap cleanup EXIT
export TPACKET4_PORTS=1
MTUS='1500 8900'
if [ "$SHORT" ]; then
	export TPACKET4_FAST=1
	# Where a packet may have almost as many fragments as a short ring has
	# descriptors
	sizes=
	[ "$(cat /proc/sys/net/core/max_skb_frags)" -le 17 ] ||
		sizes='-t ring_sizes'
	# A test begins with a reset of the ports: some five seconds
	TP4_TESTS=${TP4_TESTS:--v both -v reset -t af_xdp -t hundred_thousand_packets
		-t empty_ring_needs_kick -t kill_under_load -t steering
		-t xdp -t metadata -t stopped -t not_started -t copies_have_offloads $sizes}
	MTUS=8900
fi
if [ -d "/sys/kernel/debug/i40e/$PCI1" ]; then
	export TPACKET4_PORT_RESET="echo pfr >/sys/kernel/debug/i40e/$PCI1/command"
fi
if [[ $PARTS =~ ports|faults|netkit|suspend|stamp|xsk|fanout ]]; then
	to_one_netns
	[[ $PARTS != *ports* ]] || port_tests
	[[ $PARTS != *faults* ]] || fault_tests -v zerocopy_before_bind
	[[ $PARTS != *netkit* ]] || netkit_tests
	[[ $PARTS != *suspend* ]] || suspend_tests
	[[ $PARTS != *stamp* ]] || stamp_tests
	[[ $PARTS != *xsk* ]] || xsk_tests
	[[ $PARTS != *fanout* ]] || fanout_tests
	from_one_netns
fi
if [[ $PARTS == *bridge* ]]; then
	for mtu in $MTUS; do
		check "tp4: MTU $mtu: bridge" start_bridge $mtu
		check "tp4: MTU $mtu: ping, TCP and UDP" bridge_traffic
		check "tp4: MTU $mtu: what the bridge saw" bridge_content
		check "tp4: MTU $mtu: the stack has the port back" stop_bridge
	done
fi
if [[ $PARTS == *tcpdump* ]]; then
	if [ ! -e "$PCAP/libpcap.so.0.8" ]; then
		skip "tp4: tcpdump" "no libpcap with V4: make pcap"
	elif ! command -v tcpdump >/dev/null; then
		skip "tp4: tcpdump" "not installed"
	else
		check "tp4: tcpdump -i zc: gets what is sent" tcpdump_gets_all
	fi
fi
finish
