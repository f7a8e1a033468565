#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The driver probes two ports without a warning, and they can ping each other.
# shellcheck disable=SC2317,SC2086 source=lib.sh
. "$(dirname "$0")/lib.sh"

probe_log_clean() {
	! dmesg --level=emerg,alert,crit,err,warn | grep -E 'i40e|BUG|WARNING'
}

has_driver() {
	[ "$(basename "$(readlink "/sys/bus/pci/devices/$1/driver")")" = i40e ]
}

setup
check "probe: $PCI0 has the driver" has_driver "$PCI0"
check "probe: $PCI1 has the driver" has_driver "$PCI1"
check "probe: no warning of the driver" probe_log_clean
check "probe: ping, IPv4" n0 ping -q -c 5 -i 0.2 -W 2 $IP1
check "probe: ping, IPv6" n0 ping -q -c 5 -i 0.2 -W 2 $IP61
check "probe: ping, 8000 bytes in fragments" n1 ping -q -c 3 -i 0.2 -W 2 \
	-s 8000 $IP0
finish
