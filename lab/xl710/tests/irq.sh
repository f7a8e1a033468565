#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Packets are received with the interrupts of the card: MSI-X, MSI or INTx. XL710_IRQ is
# the expected type.
# shellcheck disable=SC2317,SC2086 source=lib.sh
. "$(dirname "$0")/lib.sh"

WANT=${XL710_IRQ:-msix}

# kind PCI: prints msix, msi or intx
kind() {
	local irqs=/sys/bus/pci/devices/$1/msi_irqs

	if [ -d "$irqs" ]; then
		sort -u "$irqs"/*
	else
		echo intx
	fi
}

# fired PCI: prints the number of interrupts of all its vectors
fired() {
	local dev=/sys/bus/pci/devices/$1 irqs

	if [ -d "$dev/msi_irqs" ]; then
		irqs=$(ls "$dev/msi_irqs")
	else
		irqs=$(<"$dev/irq")
	fi
	awk -v irqs="$irqs" -v cpus="$(nproc)" '
		BEGIN { n = split(irqs, list); while (n) ours[list[n--] ":"] }
		$1 in ours { for (i = 2; i < 2 + cpus; i++) sum += $i }
		END { print sum + 0 }' /proc/interrupts
}

is_kind() {
	echo "$1 has $(kind "$1")"
	[ "$(kind "$1")" = "$WANT" ]
}

# A ping every 50 ms causes an interrupt each, or fewer on a busy machine. Without
# interrupts, the driver's service task would find packets once or twice a second.
fires() {
	local before after

	before=$(fired "$1")
	n0 ping -q -c 20 -i 0.05 -W 5 $IP1 || return 1
	after=$(fired "$1")
	echo "$((after - before)) interrupts"
	[ $((after - before)) -ge 5 ]
}

setup
check "irq: $PCI0 uses $WANT" is_kind "$PCI0"
check "irq: $PCI1 uses $WANT" is_kind "$PCI1"
check "irq: $PCI0 fires" fires "$PCI0"
check "irq: $PCI1 fires" fires "$PCI1"
check "irq: bursts of fragments" n0 ping -q -c 5 -i 0.05 -W 2 -s 20000 $IP1
finish
