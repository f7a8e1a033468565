#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The model at its slowest: packets are sent late, and a queue does not stop.
# shellcheck disable=SC2317,SC2086 source=lib.sh
. "$(dirname "$0")/lib.sh"

knob() { python3 -B "$HERE/knob.py" "$@"; }

slow() {
	local pci

	for pci in "$PCI0" "$PCI1"; do
		knob "$pci" tx-burst "$1" tx-delay "$2" || return 1
	done
}

listening() {
	n1 ss -Hltn sport = 5201 | grep . >/dev/null
}

# A packet every 50 us, so the ring is never empty for long
traffic() {
	n0 ping -q -c 20 -i 0.02 -W 10 $IP1 &&
		n0 ping -q -c 20 -i 0.02 -W 10 -s 8000 $IP61 || return 1
	n1 iperf3 -s -1 >/dev/null 2>&1 &
	wait_for 10 listening
	n0 iperf3 -c $IP1 -n 2M --connect-timeout 5000
}

# Nothing may arrive: the queue would write to freed buffers
does_not_stop() {
	local lines

	n0 ip link set "$IF0" down
	lines=$(dmesg | wc -l)
	knob "$PCI1" stuck-rx 0
	n1 ip link set "$IF1" down
	knob "$PCI1" stuck-rx -1
	n0 ip link set "$IF0" up
	n1 ip link set "$IF1" up
	addresses
	dmesg | tail -n +$((lines + 1)) | grep 'Rx ring 0 disable timeout'
}

works_again() {
	wait_for 10 links_up && wait_for 20 n0 ping -q -c 1 -W 1 $IP1
}

setup
check "strict: the knobs turn" slow 1 50000
check "strict: traffic while packets wait to be sent" traffic
check "strict: and turn back" slow 32 1000
check "strict: the driver reports a queue that does not stop" does_not_stop
check "strict: it works again when the queue has stopped" works_again
finish
