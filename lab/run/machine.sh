# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# QEMU's options for the machines of the tests. Sourced after lab/lib.sh.

# find_accel CPU: sets accel to QEMU's options for a machine, with this CPU where it is
# emulated, as ACCEL says (see lab/run/vm). Without ACCEL, KVM is only taken where the CPU
# has it: /dev/kvm may be there, and even make a VM, and still hang every kernel. It
# does so in guests whose host gives them no hardware virtualization.
#
# TCG hands out this machine's TSC. A guest that is kept waiting while it compares it
# with the PIT gets it wrong, once by a factor of 90. Where this machine is a guest
# itself, its TSC's rate is known: accel_append is a kernel argument that says it.
# shellcheck disable=SC2034 # both are for who calls this
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

# virtio_wire [PROPERTIES]: sets wire to QEMU's options for two virtio_net devices with a
# wire between them. Not a hub, which changes the order of packets that had to wait; not
# what lets the sender wait: QEMU may not survive the reset of a queue then.
# shellcheck disable=SC2034
virtio_wire() {
	local net=127.$(($$ >> 16)).$(($$ >> 8 & 255)).$(($$ & 255)) at i

	wire=()
	for i in 0 1; do
		at="local.type=inet,local.host=$net,local.port=$((5000 + i))"
		at+=",remote.type=inet,remote.host=$net,remote.port=$((5001 - i))"
		wire+=(-netdev "dgram,id=wire$i,$at"
			-device "virtio-net-pci,id=vn$i,netdev=wire$i${1:-}")
	done
}
