# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# QEMU's options for the machines of the tests. Sourced after lab/lib.sh.

# find_accel CPU: sets accel to QEMU's options for KVM or, with this CPU, for TCG, as ACCEL
# requests (see lab/run/vm). Without ACCEL, KVM is used only if the CPU has hardware
# virtualization: without it, /dev/kvm may exist and create a VM, and then hang every
# kernel.
#
# TCG exposes the TSC of this machine. A guest measures its rate against the PIT, and gets
# it wrong if it is descheduled meanwhile, once by a factor of 90. Where this machine is a
# guest itself, the rate is known: accel_append is a kernel argument with it.
# shellcheck disable=SC2034 # callers use both
find_accel() {
	accel_append=''
	if [ ! "${ACCEL:-}" ]; then
		ACCEL=tcg
		if grep -qwE 'vmx|svm' /proc/cpuinfo && [ -w /dev/kvm ]; then
			ACCEL=kvm
		fi
	fi
	case $ACCEL in
	tcg | tcg,thread=*)
		accel=(-accel "${ACCEL/%tcg/tcg,thread=multi}" -cpu "$1")
		grep -qsw hypervisor /proc/cpuinfo || return 0
		accel_append=tsc_early_khz=$(awk '/^cpu MHz/ {
			printf "%.0f", $4 * 1000; exit }' /proc/cpuinfo)
		;;
	kvm) accel=(-accel kvm -cpu host) ;;
	*) die "ACCEL=$ACCEL: must be kvm, tcg or tcg,thread=single" ;;
	esac
}

# wire_devices DEVICE: sets wire to QEMU's options for two devices of this model with a
# wire between them. A hub would reorder packets that had to wait; a netdev that lets the
# sender wait may crash QEMU when a queue of virtio_net is reset. An igb needs a root port,
# as it uses the slots after its own for virtual functions. With --icount, igbs have a hub,
# which forwards packets in the thread of the sender: it takes no instructions of the guest.
# shellcheck disable=SC2034
wire_devices() {
	local net=127.$(($$ >> 16)).$(($$ >> 8 & 255)).$(($$ & 255)) at i

	wire=()
	for i in 0 1; do
		at="local.type=inet,local.host=$net,local.port=$((5000 + i))"
		at+=",remote.type=inet,remote.host=$net,remote.port=$((5001 - i))"
		at=dgram,id=wire$i,$at
		[[ ${icount:-} != 1 || $1 != igb* ]] || at=hubport,id=wire$i,hubid=0
		wire+=(-netdev "$at")
		case $1 in
		igb*) wire+=(-device "pcie-root-port,id=root$i,chassis=$((i + 1))"
			-device "$1,bus=root$i,netdev=wire$i") ;;
		*) wire+=(-device "$1,id=vn$i,netdev=wire$i") ;;
		esac
	done
}
