#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# AF_XDP, copy and zero-copy: tpbench sends back what it receives.
# shellcheck disable=SC2317,SC2086 source=lib.sh
. "$(dirname "$0")/lib.sh"

TPBENCH=$BUILD/tpbench/tpbench
# an address of no host: the stack does not answer, tpbench does
IPX=10.71.0.77

start_bench() {
	ip netns exec $NS1 "$TPBENCH" -i "$IF1" -v xdp $1 --l2fwd -b 1 -d 3600 \
		--warmup 0 >"$LOG" 2>&1 &
	PIDS+=($!)
	BENCH=$!
	# its first line of rates, which takes minutes on a debug kernel
	wait_for 300 grep -q 'packets/s' "$LOG" && wait_for 10 links_up
}

# Frames return with their addresses exchanged
echoes() {
	local before after i

	for i in 1 2 3; do
		sleep 2
		before=$(stat $NS0 "$IF0" port.rx_unicast)
		n0 ping -q -c 100 -i 0.01 -W 1 $IPX >/dev/null
		sleep 2
		after=$(stat $NS0 "$IF0" port.rx_unicast)
		echo "round $i: $((after - before)) of 100 came back"
		[ $((after - before)) -lt 100 ] || return 0
	done
	tail -n 20 "$LOG"
	return 1
}

zero_copy_in_log() {
	dmesg | tail -n +$((DMESG_START + 1)) | grep MEM_TYPE_XSK_BUFF_POOL
}

run() {
	local mode=$1 opts=$2

	if ! start_bench "$opts"; then
		not_ok "afxdp: $mode" "tpbench does not start"
		tail -n 20 "$LOG" | sed 's/^/# /'
		kill "$BENCH" || :
		return
	fi
	check "afxdp: $mode: frames come back" echoes
	if [ "$mode" = copy ]; then
		if zero_copy_in_log; then
			not_ok "afxdp: $mode is what ran" "zero-copy did"
		else
			ok "afxdp: $mode is what ran"
		fi
	else
		check "afxdp: $mode is what ran" zero_copy_in_log
	fi
	kill -INT "$BENCH" || not_ok "afxdp: $mode: tpbench is alive at the end"
	wait "$BENCH" 2>/dev/null || :
	sleep 0.5
	wait_for 10 links_up || :
	check "afxdp: the stack has the port back after $mode" \
		wait_for 10 ping_other
}

cleanup() {
	set +e
	n1 ethtool -L "$IF1" combined "$CHANNELS"
	rm -rf "$DIR"
	teardown
} 2>/dev/null

ping_other() {
	n0 ping -q -c 1 -W 1 $IP1
}

if ! ldd "$TPBENCH" 2>/dev/null | grep -q libxdp; then
	skip "${0##*/}" "no tpbench with AF_XDP (package libxdp-dev)"
	exit 0
fi
setup
CHANNELS=$(n1 ethtool -l "$IF1" | awk '$1 == "Combined:" { n = $2 } END { print n }')
trap cleanup EXIT
DIR=$(mktemp -d)
LOG=$DIR/log
# one queue, on which tpbench listens
[ "$CHANNELS" = 1 ] || n1 ethtool -L "$IF1" combined 1
sleep 0.5
wait_for 10 links_up
n0 ip neigh replace $IPX dev "$IF0" \
	lladdr "$(n1 cat /sys/class/net/"$IF1"/address)" nud permanent
run copy ""
run zero-copy "-z 0"
finish
