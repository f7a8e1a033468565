#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
#	lab/run/modules/habits.sh [HABITS...]
#
# Tests zero-copy mode by AF_XDP's driver interface in the guest, with the habits of AF_XDP's
# drivers that habits.c has: for each of the lines below, or only those with these habits,
# zc_port's tests of the contents, zc_xsk, tests of habits_test, or which programs say that
# the link goes down.
# BUILD is the directory of the programs.

set -uo pipefail
case ${1:-} in
-h | --help)
	sed -n '4,10{s/^# \?//; s/^\t/usage: /; p}' "$0"
	exit
	;;
esac
tests=$BUILD/selftests/net/tpacket4
export TPACKET4_PORTS=1
rc=0

nsx() { nsenter --net=/run/netns/v4habits "$@"; }

# HABITS DRIVER PROGRAM OPTION...
table() {
	cat <<-'END'
	- habits zc_xsk
	- habits zc_port -T pieces -v both -t one_ring
	chain habits zc_port -v both -v page -t offloads -t xdp -t to_stack -v xdp
	chain habits zc_xsk -t checksums -t long_segments -t tx_alone_long_packets
	copy,other_napi,single habits zc_port -T pieces -v both
	copy,other_napi,single habits zc_xsk -t segments -t segments_cut_short -t tx_alone
	link,offset,single habits zc_port -T pieces -v both
	units habits zc_port -T pieces -v both
	kib habits zc_port -T pieces -v page
	hard_start habits habits_test -t moved
	twice habits habits_test -t twice
	chain,twice habits habits_test -t twice_in_packet
	hard_start fsl_dpaa2_eth habits_test -t not_supported
	stack rvu_nicpf habits_test -t not_supported
	stack habits habits_test -t wrong_buffer
	kib,no_eop habits habits_test -t parts
	kib habits habits_test -t parts_dropped
	drop_tx habits habits_test -t dropped_tx
	early_tx habits habits_test -t early_tx
	units habits habits_test -t units
	fail habits habits_test -t fails
	stuck habits habits_test -t stuck
	late habits habits_test -t quiet
	need_frames habits habits_test -t empty_at_first -t ran_dry
	- habits habits_test -t counted_once -t netpoll
	single habits habits_test -t counted_once
	units habits habits_test -t counted_once
	vlan habits habits_test -t tag_is_kept -t stripping_is_off
	vlan_kfunc habits habits_test -t tag_is_kept
	vlan_fixed habits habits_test -t not_supported
	- habits link_notice 0
	- igb link_notice 1
	END
}

# says WANT PROGRAM: whether it has said that the link goes down: 1 line, or 0
says() {
	if [ "$(grep -c 'the link goes down' "$out")" = "$1" ]; then
		echo "ok - $2"
	else
		echo "not ok - $2"
		sed 's/^/# /' "$out"
		rc=1
	fi
}

# start READY COMMAND...: in the background, until the command READY succeeds
start() {
	local _

	# not nsx(): its shell would get the signal
	nsenter --net=/run/netns/v4habits "${@:2}" >"$out" 2>&1 &
	pids+=($!)
	for _ in {1..200}; do
		! eval "$1" || return 0
		sleep 0.1
	done
	sed 's/^/# /' "$out"
	return 1
}

# stop_last: ends the program that was started last
stop_last() {
	kill "${pids[-1]}"
	wait "${pids[-1]}"
	unset 'pids[-1]'
}

# link_notice WANT: the programs say that the link goes down, unless the device has a program
link_notice() {
	local out=/run/link_notice pids=() ready="grep -q 'stays up' /run/link_notice"
	local tx=("$BUILD/tpgen/tpgen" tx -q -n 1 -i v4a -z 0)
	local hold=("$BUILD/tp4/tp4" hold v4a)
	local switch=("$BUILD/tpswitch/tpswitch" -S /run/link_notice.sock zc:v4a)

	nsx "${tx[@]}" >"$out" 2>&1
	says "$1" 'tpgen'
	nsx "$BUILD/tpbench/tpbench" -q -i v4a -v 4 -z 0 -t -d 0.1 >"$out" 2>&1
	says "$1" 'tpbench'
	start "$ready" "${hold[@]}" || rc=1
	says "$1" 'tp4 hold'
	nsx "${tx[@]}" >"$out" 2>&1
	says 0 'tpgen, while the link is held'
	stop_last
	rm -f /run/link_notice.sock
	start 'nsx ip link show v4a | grep -q xdp' "${switch[@]}" || rc=1
	says "$1" 'tpswitch'
	start "$ready" "${hold[@]}" || rc=1
	says 0 'tp4 hold, while the switch has the device'
	stop_last
	stop_last
}

# run HABITS DRIVER PROGRAM OPTION...
run() {
	local habits=${1#-} driver=$2 program=$tests/$3 mtu=1500

	[ "$3" != habits_test ] || program=$BUILD/habits/habits_test
	[[ $habits != *chain* ]] || mtu=9000
	echo "# habits=$habits driver=$driver: ${*:3}"
	modprobe habits habits="$habits" driver="$driver" || return
	# a program takes long to start on the debug kernel
	printf 'link set %s netns v4habits\n' v4a v4b | ip -batch - &&
		printf 'link set %s promisc on mtu 1500 up\n' v4a v4b |
		ip -n v4habits -batch - || return
	if [ "$3" = link_notice ]; then
		link_notice "$4"
	else
		TPACKET4_FAST=1 TPACKET4_PORT_MTU=$mtu nsx "$program" "${@:4}" || rc=1
	fi
	modprobe -r habits || rc=1
}

for habits; do
	table | grep -q "^$habits " || {
		echo "habits.sh: no line above has the habits $habits" >&2
		exit 2
	}
done
ip netns add v4habits
# no packets but those of the test
nsx sysctl -qw net.ipv6.conf.default.disable_ipv6=1
while read -ra words; do
	[ $# -eq 0 ] || [[ " $* " == *" ${words[0]} "* ]] || continue
	run "${words[@]}" </dev/null || rc=1
done < <(table)
ip netns del v4habits
exit $rc
