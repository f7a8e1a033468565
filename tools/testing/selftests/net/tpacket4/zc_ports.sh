#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs zc_port, or the program in TPACKET4_PORT_TEST, with the given options on two
# devices that are connected to each other: those named in TPACKET4_PORT_DEVICES, or
# two of virtio_net.

set -uo pipefail
cd "$(dirname "$0")" || exit 1

ns=v4ports
names=(v4a v4b)
read -ra devices <<<"${TPACKET4_PORT_DEVICES:-}"
for path in /sys/class/net/*; do
	[ ${#devices[@]} -lt 2 ] || break
	driver=$(readlink "$path/device/driver") || continue
	[ "${driver##*/}" != virtio_net ] || devices+=("${path##*/}")
done
if [ ${#devices[@]} -lt 2 ]; then
	echo "SKIP: needs two virtio_net devices"
	exit 4
fi

# not ip netns exec, which hides debugfs behind a new /sys
nsx() { nsenter --net=/run/netns/$ns "$@"; }

# a command that removes a device, rescans the bus and makes it port $2 again
replug() {
	local pci
	local back="nsenter --net=/proc/1/ns/net ip link set"

	pci=$(realpath "/sys/class/net/$1/device")
	pci=${pci%/virtio*}
	echo "echo 1 >$pci/remove; echo 1 >/sys/bus/pci/rescan; until n=\$(" \
		"cd $pci && ls -d net/* virtio*/net/*); n=\${n##*/}; [ \"\$n\" ];" \
		"do :; done; $back \$n netns $ns name $2; ip link set $2 up"
}

restore() {
	local i

	for i in 0 1; do
		nsx ip link set "${names[i]}" down
		nsx ip link set "${names[i]}" netns 1 name "${devices[i]}"
	done
	ip netns del $ns
}

ip netns add $ns
trap restore EXIT
# no packets but those of the test
nsx sysctl -qw net.ipv6.conf.default.disable_ipv6=1
TPACKET4_PORT_REPLUG=$(replug "${devices[1]}" "${names[1]}")
export TPACKET4_PORT_REPLUG TPACKET4_PORTS=1
for i in 0 1; do
	ip link set "${devices[i]}" netns $ns name "${names[i]}"
	nsx ip link set "${names[i]}" up
done

export PATH=$PWD:$PATH
nsx "${TPACKET4_PORT_TEST:-zc_port}" "$@"
