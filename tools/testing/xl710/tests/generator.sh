#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A port with gen-rate set receives by itself, and one with sink=on swallows.
# shellcheck disable=SC2317,SC2086,SC2034 source=lib.sh
. "$(dirname "$0")/lib.sh"

rx()
{
	cat "/sys/class/net/$DEV/statistics/rx_packets"
}

# Port-level counters: what arrived, delivered or lost
arrived()
{
	ethtool -S "$DEV" | awk '$1 == "port.rx_unicast:" { print $2 }'
}

receives()
{
	local before after

	before=$(arrived)
	sleep 3
	after=$(arrived)
	echo "$((after - before)) packets in 3 s"
	[ $((after - before)) -gt 1000 ]
}

delivers()
{
	local before after

	before=$(rx)
	sleep 2
	after=$(rx)
	echo "$(((after - before) / 2)) packets a second reach the stack"
	[ $((after - before)) -gt 500 ]
}

# Several flows end up on several queues
spreads()
{
	ethtool -S "$DEV" | awk '
		/^ *rx-[0-9]+\.packets:/ { n++; if ($2 > 100) hit++ }
		END { print hit " of " n " queues"; exit hit < 2 }'
}

sinks()
{
	local before after

	before=$(cat "/sys/class/net/$DEV/statistics/tx_packets")
	ip neigh replace 10.73.0.2 dev "$DEV" lladdr 02:00:00:00:00:01
	ping -q -c 50 -i 0.01 -W 1 10.73.0.2
	after=$(cat "/sys/class/net/$DEV/statistics/tx_packets")
	[ $((after - before)) -ge 50 ]
}

# The port that receives though nobody sends
find_generator()
{
	local pci dev before

	for pci in $(pci_ports); do
		dev=$(port_netdev "$pci") || continue
		ip link set "$dev" up
		sleep 2
		DEV=$dev
		before=$(arrived)
		sleep 2
		[ $(($(arrived) - before)) -lt 500 ] || return 0
		ip link set "$dev" down
	done
	return 1
}

if ! find_generator; then
	skip "${0##*/}" "no port with gen-rate set"
	exit 0
fi
trap 'ip link set "$DEV" down; ip addr flush dev "$DEV"' EXIT
DMESG_START=$(dmesg | wc -l)
ip addr add 10.73.0.1/24 dev "$DEV"
check "generator: packets arrive" receives
check "generator: the stack gets them" delivers
if [ "$(nproc)" -gt 1 ]; then
	check "generator: flows spread over the queues" spreads
fi
check "generator: the port sends too" sinks
finish
