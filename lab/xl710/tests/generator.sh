#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# A port with gen-rate receives generated packets, and one with sink=on drops sent ones.
# XL710_GEN_RATE is its rate, if not the default of lab/run/vm.
# shellcheck disable=SC2317,SC2086,SC2034 source=lib.sh
. "$(dirname "$0")/lib.sh"

RATE=${XL710_GEN_RATE:-20000}
SECS=${SHORT:+4}
SECS=${SECS:-15}

usecs() {
	echo $(($(date +%s%N) / 1000))
}

# Prints the packets that arrived, those lost without a descriptor, those of the queues, and
# the time in microseconds before and after reading them
look() {
	local before

	before=$(usecs)
	echo "$(ethtool -S "$DEV" | awk '
		$1 == "port.rx_unicast:" { arrived = $2 }
		$1 == "port.rx_discards:" { lost = $2 }
		$1 ~ /^rx-[0-9]+\.packets:$/ { got += $2 }
		END { print arrived + 0, lost + 0, got + 0 }') $before $(usecs)"
}

# observe SECONDS: sets ARRIVED, LOST, GOT to the changes in that time, which was MIN to MAX
# microseconds
observe() {
	local -a a b

	read -r -a a <<<"$(look)"
	sleep "$1"
	read -r -a b <<<"$(look)"
	ARRIVED=$((b[0] - a[0])) LOST=$((b[1] - a[1])) GOT=$((b[2] - a[2]))
	MIN=$((b[3] - a[4])) MAX=$((b[4] - a[3]))
}

# The rate is right by the guest's own clock, within 2 %
at_its_rate() {
	[ $((ARRIVED * 50000000)) -ge $((RATE * MIN * 49)) ] &&
		[ $((ARRIVED * 50000000)) -le $((RATE * MAX * 51)) ]
}

# Each packet that arrived reached the stack or was counted as lost, except for those that
# were in a ring at the first or the last reading
all_accounted_for() {
	local slack rings off

	rings=$(find "/sys/class/net/$DEV/queues/" -name 'rx-*' | wc -l)
	slack=$((rings * $(ethtool -g "$DEV" |
		awk '/Current/ { cur = 1 } cur && $1 == "RX:" { print $2 }')))
	off=$((ARRIVED - LOST - GOT))
	[ ${off#-} -le "$slack" ] && [ "$GOT" -gt 0 ]
}

# Several flows use several queues
spreads() {
	ethtool -S "$DEV" | awk '
		/^ *rx-[0-9]+\.packets:/ { n++; if ($2 > 100) hit++ }
		END { print hit + 0 " of " n " queues"; exit hit < 2 }'
}

sent() {
	ethtool -S "$DEV" | awk '$1 == "port.tx_unicast:" { print $2 }'
}

sinks() {
	local before after

	before=$(sent)
	ip neigh replace 10.73.0.2 dev "$DEV" lladdr 02:00:00:00:00:01
	ping -q -c 50 -i 0.01 -W 1 10.73.0.2
	after=$(sent)
	echo "$((after - before)) packets left"
	[ $((after - before)) -ge 50 ]
}

# Without a link, no partner can send
stops_with_the_link() {
	ethtool --set-priv-flags "$DEV" link-down-on-close on &&
		ip link set "$DEV" down && sleep 1 || return 1
	observe 1
	echo "link down: $ARRIVED arrived"
	[ "$ARRIVED" -eq 0 ] || return 1
	ip link set "$DEV" up && sleep 2 || return 1
	observe 1
	echo "link up: $ARRIVED arrived"
	[ "$ARRIVED" -gt 0 ]
}

# The port that receives without a sender
find_generator() {
	local pci

	for pci in $(pci_ports); do
		DEV=$(port_netdev "$pci") || continue
		ip link set "$DEV" up
		sleep 2
		observe 1
		[ "$ARRIVED" -lt 500 ] || return 0
		ip link set "$DEV" down
	done
	return 1
}

if ! find_generator; then
	skip "${0##*/}" "no port with gen-rate set (--nic xl710-gen)"
	exit 0
fi
trap 'ethtool --set-priv-flags "$DEV" link-down-on-close off
	ip link set "$DEV" down; ip addr flush dev "$DEV"' EXIT
DMESG_START=$(dmesg | wc -l)
ip addr add 10.73.0.1/24 dev "$DEV"
observe "$SECS"
echo "# in $MIN to $MAX us: $ARRIVED arrived, $LOST lost, $GOT to the stack"
check "generator: packets arrive, $RATE a second" at_its_rate
check "generator: each is delivered or counted as lost" all_accounted_for
if [ "$(nproc)" -gt 1 ]; then
	check "generator: flows spread over the queues" spreads
else
	skip "generator: flows spread over the queues" "one processor"
fi
check "generator: the port sends too" sinks
check "generator: no link, no packets" stops_with_the_link
finish
