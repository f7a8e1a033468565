#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The port works again after every type of reset, and after unbind and bind.
# shellcheck disable=SC2317,SC2086 source=lib.sh
. "$(dirname "$0")/lib.sh"

TIMES=${SHORT:+3}
TIMES=${TIMES:-20}
DEBUG=/sys/kernel/debug/i40e

traffic() {
	wait_for 20 links_up && addresses &&
		wait_for 10 n0 ping -q -c 1 -W 1 $IP1 &&
		n0 ping -q -c 5 -i 0.1 -W 2 $IP1
}

debugfs_reset() {
	echo "$1" >"$DEBUG/$PCI0/command" || return 1
	sleep 1
	traffic
}

# A rule of ethtool -N survives: the driver writes it again
rule_survives() {
	n0 ethtool -N "$IF0" flow-type udp4 src-port 5 dst-port 6 \
		src-ip $IP1 dst-ip $IP0 action 0 loc 3 &&
		debugfs_reset pfr &&
		n0 ethtool -n "$IF0" rule 3 | grep 'Filter: 3' &&
		n0 ethtool -N "$IF0" delete 3
}

pci_reset() {
	echo 1 >"/sys/bus/pci/devices/$PCI0/reset" || return 1
	traffic
}

# The netdev is removed and returns with the same name, in the first netns
unbind_bind() {
	local drv=/sys/bus/pci/drivers/i40e

	echo "$PCI0" >$drv/unbind || return 1
	echo "$PCI0" >$drv/bind || return 1
	wait_for 10 port_netdev "$PCI0" || return 1
	IF0=$(port_netdev "$PCI0")
	ip link set "$IF0" netns $NS0 && n0 ip link set "$IF0" up
}

unbind_bind_many() {
	local i

	for ((i = 0; i < TIMES; i++)); do
		unbind_bind || { echo "time $i"; return 1; }
	done
	traffic
}

setup
check "reset: ping" n0 ping -q -c 2 -i 0.1 -W 2 $IP1
if [ -d "$DEBUG/$PCI0" ]; then
	check "reset: PF reset" debugfs_reset pfr
	check "reset: core reset" debugfs_reset corer
	check "reset: global reset" debugfs_reset globr
	check "reset: rules survive" rule_survives
else
	skip "reset: PF, core and global" "no debugfs"
fi
if n0 ethtool --reset "$IF0" all >/dev/null 2>&1; then
	check "reset: ethtool --reset" traffic
else
	skip "reset: ethtool --reset" "this driver has no ethtool reset"
fi
if [ -f "/sys/bus/pci/devices/$PCI0/reset" ]; then
	check "reset: PCI function reset" pci_reset
fi
# PCI addresses are looked up in the first netns, so the netdev must be there
check "reset: unbind and bind, $TIMES times" unbind_bind_many
finish
