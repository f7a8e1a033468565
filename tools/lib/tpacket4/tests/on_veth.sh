#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
#	on_veth.sh COMMAND...
#
# runs a command in a new network namespace with a veth pair, tp4A and tp4B. Its
# exit codes are those of the kernel's selftests.

set -euo pipefail

[ "$(id -u)" = 0 ] || { echo "SKIP: needs root"; exit 4; }
if [ -z "${ON_VETH-}" ]; then
	ON_VETH=1 exec unshare --net --mount "$0" "$@"
fi
mount -t sysfs none /sys
ip link add tp4A mtu 9000 type veth peer name tp4B mtu 9000
for i in tp4A tp4B; do
	# No neighbour discovery
	if [ -e "/proc/sys/net/ipv6/conf/$i/disable_ipv6" ]; then
		echo 1 >"/proc/sys/net/ipv6/conf/$i/disable_ipv6"
	fi
	ip link set "$i" up
done
# The stack drops packets before it detects the carrier.
for i in tp4A tp4B; do
	for ((n = 0; n < 600; n++)); do
		[ "$(cat "/sys/class/net/$i/operstate")" != up ] || break
		sleep 0.1
	done
done
exec "$@"
