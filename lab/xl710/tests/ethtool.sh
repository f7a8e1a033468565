#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Every query of ethtool succeeds, and settings take effect.
# shellcheck disable=SC2317,SC2086 source=lib.sh
. "$(dirname "$0")/lib.sh"

# has TEXT COMMAND...: the output contains it
has() {
	local text=$1 out

	shift
	out=$(n0 "$@" 2>&1) || { echo "$out"; return 1; }
	grep -qE "$text" <<<"$out" || { echo "$out"; return 1; }
}

ring_is() {
	n0 ethtool -g "$IF0" | awk -v n="$1" '
		/Current/ { cur = 1 }
		cur && $1 == "RX:" { exit $2 != n }'
}

set_ring() {
	n0 ethtool -G "$IF0" rx "$1" tx "$1" && ring_is "$1" &&
		wait_for 10 n0 ping -q -c 1 -W 1 $IP1
}

set_channels() {
	n0 ethtool -L "$IF0" combined "$1" &&
		has "Combined:[[:space:]]+$1" ethtool -l "$IF0" &&
		wait_for 10 n0 ping -q -c 1 -W 1 $IP1
}

set_coalesce() {
	n0 ethtool -C "$IF0" adaptive-rx off adaptive-tx off rx-usecs 30 \
		tx-usecs 40 && has 'rx-usecs:[[:space:]]+30' ethtool -c "$IF0"
}

# Every queue of the table gets the requested share
set_rss() {
	n0 ethtool -X "$IF0" weight 1 0 || return 1
	! n0 ethtool -x "$IF0" | grep -E '^ +[0-9]+: ' | grep -w '[1-9]$' ||
		return 1
	n0 ethtool -X "$IF0" default
}

set_rss_key() {
	local key

	key=$(printf '%02x:' {1..52})
	n0 ethtool -X "$IF0" hkey "${key%:}" &&
		has '01:02:03:04:05' ethtool -x "$IF0"
}

counts() {
	local before after

	before=$(stat $NS0 "$IF0" port.rx_unicast)
	n0 ping -q -c 10 -i 0.05 -W 2 $IP1 || return 1
	# the driver reads the registers once a second
	sleep 2
	after=$(stat $NS0 "$IF0" port.rx_unicast)
	[ $((after - before)) -ge 10 ]
}

selftest() {
	n0 ethtool -t "$IF0" "$1" && wait_for 15 links_up && addresses &&
		wait_for 10 n0 ping -q -c 1 -W 1 $IP1
}

# Autonegotiation takes a quarter of a second to start and as long to end
settle() {
	sleep 0.5
	wait_for 10 links_up && sleep 0.2 && wait_for 10 links_up
}

pause_frames() {
	n0 ethtool -A "$IF0" rx on tx on
	settle && has 'TX:[[:space:]]+on' ethtool -a "$IF0" &&
		n0 ethtool -A "$IF0" rx off tx off
	settle && has 'TX:[[:space:]]+off' ethtool -a "$IF0"
}

setup
check "ethtool: link speed" has 'Speed: 40000Mb/s' ethtool "$IF0"
check "ethtool -i" has 'driver: i40e' ethtool -i "$IF0"
check "ethtool -i: firmware" has 'firmware-version: 9.30 0x80000710' ethtool -i "$IF0"
check "ethtool -k" has 'tcp-segmentation-offload: on' ethtool -k "$IF0"
check "ethtool -l" has 'Combined:' ethtool -l "$IF0"
check "ethtool -g" has 'RX:[[:space:]]+8160|RX:[[:space:]]+4096' \
	ethtool -g "$IF0"
check "ethtool -G 1024" set_ring 1024
check "ethtool -G 512" set_ring 512
check "ethtool -S" has 'port.rx_unicast' ethtool -S "$IF0"
check "ethtool -S: the registers count" counts
check "ethtool -c" has 'rx-usecs:' ethtool -c "$IF0"
check "ethtool -C" set_coalesce
check "ethtool -x" has 'RX flow hash indirection table' ethtool -x "$IF0"
check "ethtool -X weight" set_rss
check "ethtool -X hkey" set_rss_key
check "ethtool -n" has 'RX rings available' ethtool -n "$IF0"
check "ethtool -n rx-flow-hash" has 'IP SA' \
	ethtool -n "$IF0" rx-flow-hash udp4
check "ethtool -N rx-flow-hash" n0 ethtool -N "$IF0" rx-flow-hash udp4 sdfn
check "ethtool -d" n0 ethtool -d "$IF0"
check "ethtool -e" n0 ethtool -e "$IF0" offset 0 length 256
check "ethtool -m" has 'QSFP' ethtool -m "$IF0"
check "ethtool -a" has 'Autonegotiate' ethtool -a "$IF0"
check "ethtool -A" pause_frames
check "ethtool --show-priv-flags" has 'flow-director-atr' \
	ethtool --show-priv-flags "$IF0"
if [ "$(nproc)" -gt 1 ]; then
	check "ethtool -L 1" set_channels 1
	check "ethtool -L $(nproc)" set_channels "$(nproc)"
else
	skip "ethtool -L" "one processor"
fi
check "ethtool -t online" selftest online
check "ethtool -t offline" selftest offline
finish
