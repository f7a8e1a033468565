#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The carrier is lost and returns at both ends, and so does traffic.
# shellcheck disable=SC2317,SC2086 source=lib.sh
. "$(dirname "$0")/lib.sh"

FLAPS=${SHORT:+3}
FLAPS=${FLAPS:-10}

down_up() {
	n0 ip link set "$IF0" down || return 1
	wait_for 10 carrier $NS1 "$IF1" 0 || { echo "partner stays up"; return 1; }
	n0 ip link set "$IF0" up || return 1
	wait_for 10 links_up || { echo "does not come up"; return 1; }
	addresses
	wait_for 10 n0 ping -q -c 1 -W 1 $IP1
}

flaps() {
	local i

	for ((i = 0; i < FLAPS; i++)); do
		down_up || return 1
	done
}

restart_an() {
	n0 ethtool -r "$IF0" && sleep 0.5 && wait_for 10 links_up &&
		wait_for 10 n0 ping -q -c 1 -W 1 $IP1
}

# By default, the driver keeps the link on after ip link set down
stays_up() {
	n0 ip link set "$IF0" down && sleep 1 && carrier $NS1 "$IF1" 1 &&
		n0 ip link set "$IF0" up && wait_for 10 links_up && addresses &&
		wait_for 10 n0 ping -q -c 1 -W 1 $IP1
}

setup
check "link: ping" n0 ping -q -c 2 -i 0.1 -W 2 $IP1
check "link: down and up, the PHY stays on" stays_up
check "link: link-down-on-close" \
	n0 ethtool --set-priv-flags "$IF0" link-down-on-close on
check "link: $FLAPS flaps, seen by the partner" flaps
check "link: autonegotiation restarts" restart_an
n0 ethtool --set-priv-flags "$IF0" link-down-on-close off
finish
