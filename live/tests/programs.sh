#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
#	live/tests/programs.sh
#
# Runs Debian's own programs on packet sockets of the module, which is loaded: tcpdump, two DHCP
# clients, and DPDK's testpmd. Needs root, in the guest. The output is TAP.

set -uo pipefail
case ${1:-} in
-h | --help) sed '1,3d; /^#/!Q; s/^# \?//' "$0"; exit ;;
esac
readonly NEAR=v4near FAR=v4far NS=v4programs ENABLED=/sys/module/tpacket4/parameters/enabled
tmp=$(mktemp -d)
failed=0

# ok NAME STATUS
ok() {
	if [ "$2" -eq 0 ]; then
		echo "ok - $1"
	else
		echo "not ok - $1"
		failed=1
	fi
}

# has PROGRAM: or says that its test is skipped
has() {
	command -v "$1" >/dev/null || { echo "ok - $1 # SKIP not installed"; return 1; }
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

# is_ours PROGRAM: the module says that it has a socket of it
is_ours() {
	echo 0 >$ENABLED
	echo 1 >$ENABLED
	dmesg | grep -q "tpacket4: in use by a packet socket of $1 "
}

# said: the last lines of what a program printed
said() {
	tail -n 20 "$1" | sed 's/^/# error: /'
}

far() {
	ip netns exec $NS "$@"
}

test_tcpdump() {
	has tcpdump || return 0
	timeout 120 tcpdump -Z root -n -i $NEAR -c 40 icmp >"$tmp/out" 2>"$tmp/err" &
	within 60 grep -q 'listening on' "$tmp/err" && is_ours tcpdump
	ok "tcpdump has a socket of the module" $?
	ping -q -c 20 -i 0.2 192.0.2.2 >/dev/null
	wait
	[ "$(grep -c 'ICMP echo request' "$tmp/out")" -eq 20 ] &&
		[ "$(grep -c 'ICMP echo reply' "$tmp/out")" -eq 20 ]
	ok "tcpdump gets all packets of both directions" $?
}

# client NAME COMMAND...: has an address within a minute; it is ended by end_client
client() {
	local name=$1

	shift
	LEASE=$tmp/$name "$@" >"$tmp/out" 2>&1 &
	client=$!
	within 60 grep -q '^192\.0\.2\.1[01][0-9]$' "$tmp/$name"
	ok "$name gets an address" $?
	[ -s "$tmp/$name" ] || said "$tmp/out"
}

end_client() {
	kill $client 2>/dev/null
	wait $client
}

# Clients wait for the answer on a packet socket. dhclient also sends by it.
test_dhcp() {
	local server

	has busybox || return 0
	cat >"$tmp/udhcpd.conf" <<-CONF
	interface $FAR
	start 192.0.2.100
	end 192.0.2.110
	option subnet 255.255.255.0
	lease_file $tmp/leases
	pidfile $tmp/udhcpd.pid
	CONF
	: >"$tmp/leases"
	# Notes the address, and sets nothing.
	cat >"$tmp/script" <<-'SCRIPT'
	#!/bin/sh
	case ${1:-}:${reason:-} in
	bound:*) echo "$ip" >"$LEASE" ;;
	*:BOUND) echo "$new_ip_address" >"$LEASE" ;;
	esac
	SCRIPT
	chmod +x "$tmp/script"
	far busybox udhcpd -f "$tmp/udhcpd.conf" >"$tmp/server" 2>&1 &
	server=$!
	client udhcpc busybox udhcpc -i $NEAR -n -q -t 10 -s "$tmp/script"
	end_client
	if has dhclient; then
		client dhclient dhclient -1 -d -v -e "LEASE=$tmp/dhclient" -sf "$tmp/script" \
			-lf "$tmp/client.leases" -pf "$tmp/client.pid" -cf /dev/null $NEAR
		is_ours dhclient
		ok "dhclient has a socket of the module" $?
		end_client
	fi
	kill $server
	wait $server
}

# forwarded: whether testpmd has received more than a few packets
forwarded() {
	[ "$(sed -n 's/.*RX-packets: \([0-9]*\).*/\1/p' "$tmp/out" | tail -n 1)" -gt 1000 ]
}

test_testpmd() {
	has dpdk-testpmd || return 0
	ip link add v4pmd0 type veth peer name v4pmd1
	ip link set v4pmd0 up
	ip link set v4pmd1 up
	dpdk-testpmd --lcores 0@0,1@0 --no-pci --no-huge --no-shconf -m 256 \
		--vdev net_af_packet0,iface=v4pmd0 --vdev net_af_packet1,iface=v4pmd1 \
		-- --tx-first --total-num-mbufs=8192 --stats-period 1 >"$tmp/out" 2>&1 &
	within 120 forwarded
	ok "testpmd forwards between two ports" $?
	forwarded 2>/dev/null || said "$tmp/out"
	is_ours dpdk-testpmd
	ok "testpmd has sockets of the module" $?
	kill -INT $! 2>/dev/null
	wait
	ip link del v4pmd0
}

ip netns add $NS
ip link add $NEAR type veth peer name $FAR netns $NS
sysctl -qw net.ipv6.conf.$NEAR.disable_ipv6=1
far sysctl -qw net.ipv6.conf.$FAR.disable_ipv6=1
ip addr add 192.0.2.1/24 dev $NEAR
far ip addr add 192.0.2.2/24 dev $FAR
ip link set $NEAR up
far ip link set $FAR up
test_tcpdump
test_dhcp
test_testpmd
ip netns del $NS
rm -rf "$tmp"
exit $failed
