#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The kernel's own AF_XDP test, xskxceiver, from one port to the other: generic
# and native XDP with copies, and zero-copy; by interrupts and by busy polling.
#
# Stable kernels change AF_XDP, and not always its test. If a case about descriptors that
# AF_XDP itself refuses fails, it runs again on a veth pair. It is skipped with its message
# if it fails there, too.
#
#	XSKXCEIVER=PATH  if not what lab/build/progs xskxceiver built
#	XSK_MODES, XSK_CASES, XSK_POLLING  run only these
# shellcheck disable=SC2317,SC2086 source=lib.sh
. "$(dirname "$0")/lib.sh"

XSKXCEIVER=${XSKXCEIVER:-$BUILD/selftests/bpf/xskxceiver}
VETH=xlv
HUGE=/proc/sys/vm/nr_hugepages
DMA_DEBUG=/sys/kernel/debug/dma-api
GLPRT_RDPC=0x00300600
MODES=${XSK_MODES:-${SHORT:+drv zc}}
MODES=${MODES:-skb drv zc}
CASES=${XSK_CASES:-${SHORT:+SEND_RECEIVE SEND_RECEIVE_UNALIGNED BIDIRECTIONAL XDP_SHARED_UMEM}}
POLLING=${XSK_POLLING:-softirq busy}

# no_xdp NETNS DEV: a program outlives the process that attached it
no_xdp() {
	ip netns exec "$1" ip link set "$2" xdp off
	ip netns exec "$1" ip link set "$2" xdpgeneric off
}

# quiet NETNS DEV: only packets of the test, to any address
quiet() {
	ip -n "$1" link set "$2" promisc on
	ip netns exec "$1" ip addr flush dev "$2"
	ip netns exec "$1" sysctl -q "net.ipv6.conf.$2.disable_ipv6=1"
}

# polling NETNS DEV HOW: the same settings as in test_xsk.sh
polling() {
	local sys=/sys/class/net/$2 irqs=0 timeout=0

	[ "$3" != busy ] || irqs=2 timeout=200000
	ip netns exec "$1" sh -c "echo $irqs >$sys/napi_defer_hard_irqs &&
		echo $timeout >$sys/gro_flush_timeout"
}

# run NETNS DEV DEV MODE POLLING CASE: prints the output of xskxceiver. Resets the MTU: a
# case with jumbo frames does not, and native XDP would be refused in the next one.
run() {
	local busy=

	ip -n "$1" link set "$2" mtu 1500
	ip -n "$1" link set "$3" mtu 1500
	[ "$5" != busy ] || busy=-b
	timeout 120 ip netns exec "$1" "$XSKXCEIVER" -i "$2" -i "$3" -m "$4" \
		-t "$6" $busy 2>&1 | uniq | tail -n 100
}

# Prints the lines with error messages as one line
why() {
	grep -E 'ERROR|Error|expected|Too many|incorrect' <<<"$1" |
		sed -e 's/^# //' -e 's/^not ok 1 //' | awk '!seen[$0]++' |
		head -n 3 | paste -sd ';'
}

make_veth() {
	local dev

	ip netns del $VETH 2>/dev/null || :
	ip netns add $VETH
	ip -n $VETH link add v0 numtxqueues 4 numrxqueues 4 type veth \
		peer name v1 numtxqueues 4 numrxqueues 4
	for dev in v0 v1; do
		quiet $VETH $dev
		ip -n $VETH link set $dev up
	done
}

# fails_on_veth MODE POLLING CASE NAME: sets WHY to the message. A veth has no zero-copy
# mode.
fails_on_veth() {
	local out mode=$1

	case $4 in
	*INV_DESC* | STAT_TX_INVALID | STAT_RX_DROPPED | TOO_MANY_FRAGS) ;;
	*) return 1 ;;
	esac
	[ "$mode" != zc ] || mode=drv
	make_veth
	polling $VETH v0 "$2"
	polling $VETH v1 "$2"
	out=$(run $VETH v0 v1 $mode "$2" "$3") || :
	WHY=$(why "$out") || :
	grep -q '^not ok 1' <<<"$out"
}

# loses_count OUTPUT: checks for a fault of the test, __receive_pkts() in 6.12.y: it read the
# first fragments of a packet, put them back, and then expected the next packet.
loses_count() {
	[[ $1 =~ expected\ pkt_nb\ \[([0-9]+)\],\ got\ pkt_nb\ \[([0-9]+)\] ]] &&
		[ "${BASH_REMATCH[1]}" -eq $((BASH_REMATCH[2] + 1)) ]
}

# Prints the packets that arrived while a ring had no buffer, from the register of both
# ports: the resets that XDP needs clear the count of ethtool -S, but not the register.
discards() {
	local pci sum=0 value

	for pci in "$PCI0" "$PCI1"; do
		echo "read $GLPRT_RDPC" >"/sys/kernel/debug/i40e/$pci/command"
		value=$(dmesg | sed -n "s/.* $pci: read: $GLPRT_RDPC = //p" | tail -n 1)
		sum=$((sum + value))
	done
	echo $sum
}

# one MODE POLLING CASE NAME: runs it, and again if a ring had no buffer for a packet:
# nothing limits the sender when a receiver gets no CPU in time.
one() {
	local out try before lost name="xskxceiver: $1, $2: $4"

	# i40e_add_xsk_frag() takes virt_to_page() of a buffer that is vmapped.
	# With a virtual memory map that is harmless, else it is an oops.
	case $1-$4 in
	zc-*9K_PACKETS | zc-*INV_DESC_MULTI_BUFF)
		if ! grep ' vmemmap_populate_basepages$' /proc/kallsyms >/dev/null; then
			skip "$name" "i40e needs SPARSEMEM_VMEMMAP for it"
			return
		fi
		;;
	esac
	if [[ $1-$4 = zc-*UNALIGNED* ]] && [ -e $DMA_DEBUG ]; then
		skip "$name" "AF_XDP syncs across the pages that it mapped one by one, DMA_API_DEBUG calls that an error"
		return
	fi
	# Its sender has 1024 frames and waits for 2048 to be free: with whatever
	# driver, it sends nothing.
	if [ "$4" = HW_SW_MAX_RING_SIZE ]; then
		skip "$name" "the test's batches are larger than its area"
		return
	fi
	for try in {1..30}; do
		before=$(discards)
		out=$(run $NS0 "$IF0" "$IF1" "$1" "$2" "$3") || :
		case $out in
		*'ok 1 PASS'* | *'ok 1 # SKIP '*) break ;;
		esac
		lost=$(($(discards) - before))
		echo "# $name: try $try: $(why "$out" || :)," \
			"$lost packets found no buffer"
		[ "$lost" -ne 0 ] || break
	done
	case $out in
	*'ok 1 PASS'*)
		ok "$name"
		;;
	*'ok 1 # SKIP '*)
		skip "$name" "$(sed -n 's/^ok 1 # SKIP //p' <<<"$out")"
		;;
	*)
		if [[ $4 = *9K_PACKETS ]] && loses_count "$out"; then
			skip "$name" "the test loses count: $(why "$out")"
			return
		fi
		# It sends 4096 packets, each by a sendto() of its own and with an
		# interrupt. Built with THREAD_TMOUT of 60, it passes.
		if [ "$1-$2-$4" = zc-softirq-HW_SW_MIN_RING_SIZE ] && [ "$lost" -eq 0 ] &&
		   [[ $out = *'Receive loop timed out'* ]]; then
			skip "$name" "this machine is too slow for the test's three seconds"
			return
		fi
		if fails_on_veth "$@"; then
			skip "$name" "it fails on a veth pair too: $WHY"
			return
		fi
		not_ok "$name" "$(why "$out" || :)"
		tail -n 30 <<<"$out" | sed 's/^[^#]/# &/'
		;;
	esac
}

cleanup() {
	set +e
	ip netns del $VETH 2>/dev/null
	no_xdp $NS0 "$IF0"
	no_xdp $NS0 "$IF1"
	ip -n $NS0 link set "$IF0" mtu 1500 promisc off
	ip -n $NS0 link set "$IF1" mtu 1500 promisc off
	polling $NS0 "$IF0" softirq
	polling $NS0 "$IF1" softirq
	n0 sysctl -q net.ipv6.conf.all.disable_ipv6=0
	n0 ip link set "$IF1" netns $NS1
	[ ! -e $HUGE ] || echo "$PAGES" >$HUGE
	teardown
} 2>/dev/null

if [ ! -x "$XSKXCEIVER" ]; then
	skip "${0##*/}" "no xskxceiver: lab/build/progs xskxceiver builds it"
	exit 0
fi
setup
trap cleanup EXIT
n1 ip link set "$IF1" netns $NS0
n0 ip link set "$IF1" up
quiet $NS0 "$IF0"
quiet $NS0 "$IF1"
if [ -e $HUGE ]; then
	PAGES=$(<$HUGE)
	echo 32 >$HUGE
fi
for mode in $MODES; do
	no_xdp $NS0 "$IF0"
	no_xdp $NS0 "$IF1"
	for how in $POLLING; do
		polling $NS0 "$IF0" "$how"
		polling $NS0 "$IF1" "$how"
		while IFS=': ' read -r number name; do
			case " ${CASES:-$name} " in
			*" $name "*) one "$mode" "$how" "$number" "$name" ;;
			esac
		done <<<"$("$XSKXCEIVER" -l | grep -E '^[0-9]+: ')"
	done
done
finish
