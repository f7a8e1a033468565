#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
#	lab/run/modules/guide.sh [MODE...]
#
# Tests guide.c, the driver of the guide to V4 for authors of drivers, in the guest: for each
# of its modes (default: 0 1 2), zc_port's tests of the contents (fewer with a MODE) and of
# XDP, guide_test, and tpgen's test of hardware time stamps.
# BUILD is the directory of the programs.

set -uo pipefail
case ${1:-} in
-h | --help)
	sed -n '4,9{s/^# \?//; s/^\t/usage: /; p}' "$0"
	exit
	;;
esac
contents=(-v both -v units)
[ $# -gt 0 ] || { set -- 0 1 2; contents=(-f contents); }
tpgen=$(dirname "$0")/../../../apps/tpgen/tests/guest.py
port=$BUILD/selftests/net/tpacket4/zc_port
export TPACKET4_PORTS=1
without=()
# Bounce buffers are shorter than a run of frames in a huge page.
! grep -q swiotlb=force /proc/cmdline || without=(-V units)
rc=0

nsx() { nsenter --net=/run/netns/v4guide "$@"; }

ip netns add v4guide
# no packets but those of the test
nsx sysctl -qw net.ipv6.conf.default.disable_ipv6=1
for mode in "$@"; do
	modprobe guide mode="$mode" || { rc=1; break; }
	for name in v4a v4b; do
		ip link set $name netns v4guide
		nsx ip link set $name promisc on mtu 9000 up
	done
	echo "# mode $mode"
	nsx "$port" "${without[@]}" "${contents[@]}" -t to_stack -t stopped -t xdp || rc=1
	# zc_port has lowered the MTU.
	for name in v4a v4b; do
		nsx ip link set $name mtu 9000
	done
	nsx "$BUILD/guide/guide_test" -f meta || rc=1
	# The last one: the stack of its address sends packets, too.
	nsx "$BUILD/guide/guide_test" -t hardware_time_reaches_udp || rc=1
	# It turns the clock on.
	ip netns exec v4guide python3 -B "$tpgen" "$BUILD/tpgen/tpgen" v4a v4b hardware_stamps || rc=1
	modprobe -r guide || rc=1
done
ip netns del v4guide
exit $rc
