#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
#	live/tests/guest.sh copy|[card-]i40e|[card-]igb|virtio_net MODULE SELFTESTS TPBENCH [OTHER]
#
# Tests the module in the guest, as root: copy mode, with loads and unloads, or zero-copy mode
# or, with card-, tpacket4-card on two devices of a driver. SELFTESTS is the directory of the selftests, with psock_* above
# it, and OTHER is a module for another kernel. The output is TAP.

set -uo pipefail
here=$(dirname "$(realpath "$0")")
# Each begins with a function that has a hook.
readonly HOOKS=/sys/kernel/tracing/enabled_functions
# What all drivers of AF_XDP can do
readonly PORT='-T pieces -v both -v to_stack -v from_stack -v headroom -v down_up -v channels
	-t af_xdp -t hundred_thousand_packets -t out_of_frames -t kill_under_load'
failed=0

# ok NAME STATUS: prints the result of something that prints none
ok() {
	if [ "$2" -eq 0 ]; then
		echo "ok - $1"
	else
		echo "not ok - $1"
		failed=1
	fi
}

# run NAME COMMAND...: its own results, or one for all of it
run() {
	local name=$1 rc=0 out=/tmp/out

	shift
	timeout 600 "$@" >$out 2>&1 || rc=$?
	sed "s/^\(not ok\|ok\) \([0-9]\+\) /\1 \2 $name./" $out
	if ! grep -qE '^(not )?ok ' $out || { [ $rc -ne 0 ] && ! grep -q '^not ok ' $out; }; then
		[ $rc -eq 0 ] || tail -n 3 $out | sed 's/^/# error: /'
		ok "$name, status $rc" $rc
	fi
	[ $rc -eq 0 ] || failed=1
}

# within SECONDS COMMAND...: waits until it succeeds
within() {
	local end=$((SECONDS + $1))

	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return
		sleep 0.1
	done
}

load() {
	insmod "$module"
	ok load $?
}

unload() {
	rmmod tpacket4
	ok unload $?
}

copy() {
	local test

	modprobe -a veth tun
	run life python3 -B "$here/life.py" "$module" "${other[@]}"
	load
	cd "$selftests" || exit
	# The kernel's packet_diag shows what it knows of.
	run abi ./abi -T packet_diag
	for test in data desc dev_types meta packed send send_refused send_wait sock units \
		rx_limits options life huge_pages; do
		run $test ./$test
	done
	# The module has no zero-copy mode on veth.
	run poll ./poll -V zero_copy -V zero_copy_epoll -V zero_copy_edge
	# Nor for tunnels.
	run meta_tunnel ./meta_tunnel -v copy
	for test in psock_tpacket psock_fanout; do
		run $test ../$test
	done
	cd .. || exit
	run psock_snd ./psock_snd.sh
	run programs "$here/programs.sh"
	unload
}

# has_hooks: whether the kernel's functions have them
has_hooks() {
	grep -q __xsk_map_redirect $HOOKS
}

no_hooks() {
	! has_hooks
}

# in_mode DEVICE: a socket in zero-copy mode, until it is ended
in_mode() {
	"$tpbench" -q -i "$1" -v 4 -z 0 -r -w 0 -d 600 --promisc >/dev/null 2>/tmp/in_mode &
	job=$!
	within 20 ip_has_xdp "$1"
}

ip_has_xdp() {
	ip link show "$1" | grep -qw xdp
}

# What a socket in zero-copy mode does to the device, and gives back
zc_life() {
	local dev=$1 vlan

	vlan=$(ethtool -k "$dev" | grep rx-vlan-offload)
	no_hooks
	ok "no hooks before the mode" $?
	in_mode "$dev"
	ok "the mode" $?
	has_hooks
	ok "hooks" $?
	! rmmod tpacket4 2>/dev/null
	ok "unloading is refused meanwhile" $?
	ip -force link set "$dev" xdp off && ip_has_xdp "$dev"
	ok "the XDP program stays" $?
	ethtool -k "$dev" | grep -q 'rx-vlan-offload: off'
	ok "VLAN tags stay" $?
	kill -KILL $job
	wait $job 2>/dev/null
	! ip_has_xdp "$dev"
	ok "no XDP program after the mode" $?
	[ "$(ethtool -k "$dev" | grep rx-vlan-offload)" = "$vlan" ]
	ok "VLAN tags as before: $vlan" $?
	# Before the hooks are removed
	unload
	no_hooks
	ok "no hooks without the module" $?
	load
	in_mode "$dev"
	ok "the mode again" $?
	kill -INT $job
	wait $job
	within 30 no_hooks
	ok "no hooks some time after the mode" $?
}

# Sets devices to those of the driver.
find_devices() {
	local path

	modprobe "$kind"
	for path in /sys/class/net/*/device/driver; do
		[ "$(basename "$(realpath "$path")")" != "$kind" ] ||
			devices+=("$(cut -d/ -f5 <<<"$path")")
	done
	[ ${#devices[@]} -ge 2 ] || { ok "two devices of $kind" 1; exit 1; }
}

# Stock i40e would crash with long packets for the stack, and igb cuts them.
long_packets() {
	local text

	run zc_xsk env TPACKET4_PORT_MTU=9000 TPACKET4_PORT_TEST=zc_xsk bash zc_ports.sh \
		-t tx_alone_long_packets
	for text; do
		dmesg | grep -q "$kind of this kernel .*$text"
		ok "the log: $text" $?
	done
}

card() {
	find_devices
	"$here/../../apps/card/tests/test.sh" "${devices[@]}" || failed=1
}

zero_copy() {
	find_devices
	mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
	ip link set "${devices[0]}" up
	ip link set "${devices[1]}" up
	load
	if [ "$kind" = igb ]; then
		# Its driver would cut packets in pieces.
		! "$tpbench" -q -i "${devices[0]}" -v 4 -z 0 -r -d 1 >/dev/null 2>&1 &&
			dmesg | grep -q 'igb of this kernel .*use frames of 4096 bytes'
		ok "frames of 2048 bytes are refused, and the log says why" $?
	else
		zc_life "${devices[0]}"
	fi
	cd "$selftests" || exit
	export TPACKET4_PORT_DEVICES="${devices[*]}" TPACKET4_PORT_MTU=1500
	if [ "$kind" = igb ]; then
		long_packets 'an MTU of at most 3046'
		unload
		return
	fi
	run zc_xsk env TPACKET4_PORT_TEST=zc_xsk bash zc_ports.sh
	[ "$kind" != i40e ] || long_packets 'an MTU of at most 3814' 'the MTU stays'
	# shellcheck disable=SC2086 # a list
	run zc_port bash zc_ports.sh $PORT
	if [ "$kind" = virtio_net ]; then
		# After resume it has no pools, and crashes when the mode ends.
		echo "ok - suspend # SKIP virtio_net of Linux 7.3 loses its pools"
	elif insmod "$(dirname "$module")/stay_up.ko"; then
		run suspend env TPACKET4_PORT_TEST=zc_suspend bash zc_ports.sh
		rmmod stay_up
	else
		ok "the module for suspend" 1
	fi
	unload
}

case ${1:-} in
-h | --help) sed '1,3d; /^#/!Q; s/^# \?//' "$0"; exit ;;
esac
kind=${1#card-} module=$2 selftests=$3 tpbench=$4 other=("${@:5}")
[ -x "$tpbench" ] || exit
devices=()
case $1 in
copy) copy ;;
card-*) card ;;
*) zero_copy ;;
esac
exit $failed
