#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
#	test.sh [swtest|net [CASE...]]
#
# shellcheck disable=SC2317 # cases are called by their names
#
# Tests of tpswitch, in the directory that it was built in: swtest with ring ports, and
# here with network devices, as root on a kernel with TPACKET_V4. Prints TAP.

set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
sock=/run/tpswitch-test/port
tmp=$(mktemp -d)
cases=(swperf tcp_copy tcp_zerocopy tcp_whole tcp_mixed vlans bridge bridge_zerocopy port_dies
	stack_gets_queue_back config reload loop service examples)

# switch ARGUMENT...: starts it
switch() {
	./tpswitch -S "$sock" "$@" 2>"$tmp/err" &
	pid=$!
	for _ in {1..200}; do
		# A killed switch leaves its socket behind.
		! ctl list >/dev/null 2>&1 || return 0
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	echo "# $(<"$tmp/err")"
	return 1
}

ctl() {
	./tpswitch ctl -S "$sock" "$@"
}

stop() {
	local rc=0

	[ "$pid" ] || return 0
	kill "$pid" 2>/dev/null || rc=1
	wait "$pid" || rc=$?
	pid=
	return "$rc"
}

# container NAME ADDRESS: a network namespace, whose eth0 has the end swNAME here
container() {
	ip netns add "$1"
	ip link add "sw$1" type veth peer name eth0 netns "$1"
	echo 1 >"/proc/sys/net/ipv6/conf/sw$1/disable_ipv6"
	ip netns exec "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=1
	ip -n "$1" addr add "$2/24" dev eth0
	ip -n "$1" link set eth0 up
	ip -n "$1" link set lo up
	ip link set "sw$1" up
}

clean() {
	local name

	for name in br0 bri{0..3} swi{0..3}; do
		ip link del "$name" 2>/dev/null || :
	done
	for name in a b; do
		ip netns del "$name" 2>/dev/null || :
		ip link del "sw$name" 2>/dev/null || :
	done
	# A namespace goes in the background, and its devices with it.
	for _ in {1..100}; do
		[ -e /sys/class/net/swa ] || [ -e /sys/class/net/swb ] || break
		sleep 0.1
	done
}

# tcp: a megabyte and more from container a to b, and back
tcp() {
	ip netns exec b python3 -B "$here/tcp.py" server 10.9.0.2 &
	ip netns exec a python3 -B "$here/tcp.py" client 10.9.0.2
	wait $!
}

pinged() {
	ip netns exec a ping -qc 1 -W 5 10.9.0.2 >/dev/null
}

# unreachable ADDRESS
unreachable() {
	if ip netns exec a ping -qc 1 -W 1 "$1" >/dev/null; then
		echo "# $1 is reached"
		return 1
	fi
}

# --- cases --------------------------------------------------------------------

# TCP from container to container, and a program that counts the packets
count_tcp() {
	local after counted counter lost

	container a 10.9.0.1
	container b 10.9.0.2
	switch --lookup hub "$@"
	./swperf -S "$sock" --meta --count 600 >"$tmp/count" &
	counter=$!
	for _ in {1..100}; do
		! ctl list 2>/dev/null | grep -q ' ring ' || break
		sleep 0.05
	done
	pinged
	sleep 0.5
	tcp
	sleep 0.5
	after=$(ctl count | awk '/^sw/ { n += $2 } END { print n }')
	lost=$(ctl count | awk '/^ring/ { print $7 }')
	ctl count | sed 's/^/# /'
	# It ends with the switch, and says what it has seen.
	stop
	wait "$counter"
	sed 's/^/# counted: /' "$tmp/count"
	counted=$(sed 's/.*"packets": \([0-9]*\).*/\1/' "$tmp/count")
	[ "$after" -gt 50 ]
	# What it had no room for, on a busy machine, is counted, too.
	[ $((counted + lost)) = "$after" ]
	[ "$counted" -gt $((after / 2)) ]
}

# All packets arrive, with those of the warm-up and on their way at the end.
test_swperf() {
	container a 10.9.0.1
	switch swa
	./swperf -S "$sock" -n 20000 >"$tmp/perf"
	sed 's/^/# /' "$tmp/perf"
	python3 - "$tmp/perf" <<-'EOF'
		import json, sys
		r = json.load(open(sys.argv[1]))
		assert r["lost"] == 0 and r["warmup"] + r["packets"] >= 20000, r
	EOF
}

test_tcp_copy() {
	count_tcp swa swb
}

test_tcp_zerocopy() {
	count_tcp zc:swa zc:swb
}

# Packets stay as long as the stacks make them, and in their frames.
test_tcp_whole() {
	container a 10.9.0.1
	container b 10.9.0.2
	switch zc:swa zc:swb
	pinged
	tcp
	ctl count | sed 's/^/# /'
	ctl count | awk '/^sw/ { n += $2; bytes += $3 }
		END { exit bytes < 4000 * n }'
}

# One end leaves checksums and segments to the other, which has no metadata.
test_tcp_mixed() {
	container a 10.9.0.1
	container b 10.9.0.2
	switch swa
	ctl add zc:swb meta=off
	pinged
	tcp
	ctl count | sed 's/^/# /'
}

# TCP between an access port and a trunk, whose container has a VLAN device
test_vlans() {
	local ports

	container a 10.9.0.1
	container b 10.9.1.2
	ip -n b link add link eth0 name vlan10 type vlan id 10
	ip -n b addr add 10.9.0.2/24 dev vlan10
	ip -n b link set vlan10 up
	# In one of them, the tag is changed in the frame, in the other one in a copy.
	for ports in "swa zc:swb" "zc:swa swb"; do
		echo "# $ports"
		printf 'add %s\nadd %s\nvlan swa 10\ntrunk swb 10,20 native=30\n' \
			"${ports% *}" "${ports#* }" >"$tmp/conf"
		switch --config "$tmp/conf"
		until_true pinged
		tcp
		# The native VLAN is another one.
		ip -n a addr add 10.9.1.1/24 dev eth0
		unreachable 10.9.1.2
		reread "$(sed 's/vlan swa 10/vlan swa 30/' "$tmp/conf")"
		# That address may still be one that nobody has answered for.
		until_true ip netns exec a ping -qc 1 -W 5 10.9.1.2 >"$tmp/ping"
		unreachable 10.9.0.2
		ip -n a addr del 10.9.1.1/24 dev eth0
		ip -n a neigh flush all
		ip -n b neigh flush all
		stop
	done
}

# The same packets through a Linux bridge and through the switch
judge() {
	local i ports=()

	ip link add br0 type bridge mcast_snooping 0 forward_delay 0
	echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
	ip link set br0 up
	for i in 0 1 2 3; do
		ip link add "bri$i" type veth peer name "bro$i"
		ip link add "swi$i" type veth peer name "swo$i"
		ip link set "bri$i" master br0
		ip link set "bri$i" up
		ip link set "bro$i" up
		ip link set "swi$i" up
		ip link set "swo$i" up
		ports+=("$1swi$i")
	done
	switch "${ports[@]}"
	sleep 1
	python3 -B "$here/judge.py" 4 "$2"
	stop
	echo 0 >/proc/sys/net/ipv6/conf/default/disable_ipv6
}

test_bridge() {
	judge '' 1
}

test_bridge_zerocopy() {
	judge zc: 2
}

test_port_dies() {
	local n

	container a 10.9.0.1
	container b 10.9.0.2
	switch swa swb
	pinged
	for n in 1 2; do
		ip netns exec a ping -qf -w 2 10.9.0.2 >/dev/null 2>&1 &
		sleep 0.5
		# The device goes away under traffic.
		ip -n b link del eth0
		wait $! || :
		for _ in {1..100}; do
			ctl list | grep -q swb || break
			sleep 0.05
		done
		if ctl list | grep -q swb; then
			return 1
		fi
		ip netns del b
		container b 10.9.0.2
		if [ "$n" = 2 ]; then
			ctl add zc:swb
		else
			ctl add swb
		fi
		# It has another address now.
		ip -n a neigh flush all
		pinged
	done
	grep -q 'swb is gone' "$tmp/err"
}

test_stack_gets_queue_back() {
	local how

	container a 10.9.0.1
	for how in TERM KILL; do
		switch zc:swa
		ip addr replace 10.9.0.3/24 dev swa
		if ip netns exec a ping -qc 1 -W 1 10.9.0.3 >/dev/null; then
			return 1
		fi
		kill "-$how" "$pid"
		wait "$pid" || :
		pid=
		ip netns exec a ping -qc 1 -W 5 10.9.0.3 >/dev/null
	done
}

test_config() {
	container a 10.9.0.1
	container b 10.9.0.2
	cat >"$tmp/conf" <<-CONF
	# two containers
	add swa
	add swb rx=512 tx=512	# a short ring

	limit swa pps=50
	CONF
	switch --config "$tmp/conf"
	ctl list | grep -q '^2 swb dev copy mode, metadata$'
	pinged
	sleep 1
	ip netns exec a ping -qc 1000 -i 0.002 -W 1 10.9.0.2 >/dev/null || :
	[ "$(ctl count swa | sed -n 's/^in_limited *//p')" -gt 100 ]
	stop
	echo "add nonsense" >>"$tmp/conf"
	if switch --config "$tmp/conf"; then
		return 1
	fi
	grep -q 'conf, line 6: not done' "$tmp/err"
	wait "$pid" || pid=
}

# reread CONFIG: the switch reads it as its file again, and ends none of its other ports
reread() {
	local was

	was=$(grep -c 'read again' "$tmp/err") || :
	echo "$1" >"$tmp/conf"
	kill -HUP "$pid"
	for _ in {1..600}; do
		[ "$(grep -c 'read again' "$tmp/err")" = "$was" ] || return 0
		sleep 0.05
	done
	return 1
}

test_reload() {
	container a 10.9.0.1
	container b 10.9.0.2
	ip link add swi0 type veth peer name swi1
	ip link set swi0 up
	ip link set swi1 up
	echo "add zc:swa" >"$tmp/conf"
	switch --config "$tmp/conf"
	ctl add swi0
	reread $'add zc:swa\nadd swb'
	pinged
	[ "$(ctl list | cut -d' ' -f1-4 | paste -sd,)" = \
		"1 swa dev zero-copy,,2 swi0 dev copy,3 swb dev copy" ]
	# Another mode, and a port less; what ctl has added stays.
	reread "add swa rx=512"
	[ "$(ctl list | cut -d' ' -f2-4 | sort | paste -sd,)" = \
		"swa dev copy,swi0 dev copy" ]
	# What it does not change goes on: the port keeps its counters.
	ctl add swb
	pinged
	reread $'add swa rx=512\nadd swb'
	pinged
	[ "$(ctl count swa | sed -n 's/^in  *//p')" -gt 1 ]
	# A line that is the same as before is what ctl has added.
	! grep 'not done' "$tmp/err"
}

# sent PORT: packets that it has sent
sent() {
	ctl count "$1" | sed -n 's/^out  *//p'
}

# sent_more PORT PACKETS
sent_more() {
	[ "$(sent "$1")" -gt "$2" ]
}

# ports: their names
ports() {
	ctl list | cut -d' ' -f2 | paste -sd' '
}

# until_true COMMAND...
until_true() {
	for _ in {1..1200}; do
		! "$@" || return 0
		sleep 0.05
	done
	return 1
}

test_loop() {
	local was

	container a 10.9.0.1
	container b 10.9.0.2
	switch --loop 1 swa swb
	ip netns exec b python3 -B "$here/loop.py" ./tpswitch "$sock" || return 1
	grep -q 'swb: a frame that swb has sent came back' "$tmp/err"
	[ "$(ports)" = swa ]
	# A bridge behind two ports
	ctl add swb
	ip link add swi0 type veth peer name swi1
	echo 1 >/proc/sys/net/ipv6/conf/swi0/disable_ipv6
	ip link set swi1 netns a
	ip -n a link add br0 type bridge
	ip -n a link set eth0 master br0
	ip -n a link set swi1 master br0
	ip -n a link set swi1 up
	ip -n a link set br0 up
	ip link set swi0 up
	ctl add swi0
	until_true grep -q 'swa: a frame that swi0 has\|swi0: a frame that swa has' "$tmp/err"
	[ "$(ports)" = "swa swb" ] || [ "$(ports)" = "swb swi0" ]
	# The other one stays.
	was=$(sent swb)
	until_true sent_more swb $((was + 2))
	[ "$(ports | wc -w)" = 2 ]
}

# unit NAME: a setting of the systemd unit
unit() {
	sed -n "s/^$1=//p" "$here/../tpswitch.service"
}

# What the systemd unit starts, with its capabilities, tells systemd that it is ready.
test_service() {
	local all caps command listener notify=$tmp/notify

	container a 10.9.0.1
	container b 10.9.0.2
	printf 'add zc:swa\nadd swb\n' >"$tmp/conf"
	sock=/run/tpswitch/port
	mkdir -p "$(dirname "$sock")"
	python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(60)
print(s.recv(100).decode())' "$notify" >"$tmp/said" &
	listener=$!
	for _ in {1..200}; do
		[ ! -S "$notify" ] || break
		sleep 0.05
	done
	caps=$(unit CapabilityBoundingSet | sed 's/CAP_/+/g; s/ /,/g' |
		tr "[:upper:]" "[:lower:]")
	[ "$(unit NoNewPrivileges)" = yes ]
	[ "$(unit Type)" = notify ]
	command=$(unit ExecStart)
	[ "${command%% *}" = /usr/bin/tpswitch ]
	command=${command#* }
	read -ra words <<<"${command//\/etc\/tpswitch.conf/$tmp/conf}"
	NOTIFY_SOCKET=$notify setpriv --bounding-set "-all,$caps" --no-new-privs \
		./tpswitch "${words[@]}" 2>"$tmp/err" &
	pid=$!
	wait "$listener"
	grep -qx 'READY=1' "$tmp/said"
	# It has room for all that programs may have.
	all=$(ctl quota | sed -n 's,^all .* bytes .*/,,p')
	[ $((all + (128 << 20))) -lt "$(unit MemoryMax | numfmt --from=iec)" ]
	[ "$(unit TasksMax)" -gt 2 ]
	# It is: nobody has to try again.
	[ "$(ctl list | wc -l)" = 2 ]
	ctl mirror swa "$tmp/swa.pcap"
	pinged
	ctl mirror swa off
	[ "$(wc -c <"$tmp/swa.pcap")" -gt 100 ]
	stop
}

# The commands of tpswitch(8), which begin with a #
test_examples() {
	local line n=0

	container a 10.9.0.1
	container b 10.9.0.2
	sock=/run/tpswitch/port
	mkdir -p /run/tpswitch
	while read -r line; do
		n=$((n + 1))
		echo "# $line"
		case $line in
		'tpswitch '[^c]*)
			read -ra words <<<"$line"
			switch "${words[@]:1}"
			;;
		*)
			PATH=$PWD:$PATH bash -ec "$line" >/dev/null
			;;
		esac
	done < <(sed -n 's/^# \(.*\)/\1/p' "$here/../tpswitch.8" | sed 's/\\-/-/g')
	[ "$n" -gt 4 ]
}

# ------------------------------------------------------------------------------

# shellcheck disable=SC2317 # called by a trap
tidy() {
	stop 2>/dev/null || :
	clean
	rm -rf "$tmp"
}
pid=
what=${1:-}
[ $# -eq 0 ] || shift
case $what in
'' | swtest | net) ;;
*) echo "usage: test.sh [swtest|net [CASE...]]"; exit 2 ;;
esac
bad=0
if [ "$what" != net ]; then
	[ $# -gt 0 ] || ./offload_test || bad=1
	./swtest ./tpswitch-asan "$@" || bad=1
	[ $# -gt 0 ] || python3 -B "$here/ctl_test.py" ./tpswitch-asan ./swperf || bad=1
fi
[ "$what" != swtest ] || exit $bad

[ "$(id -u)" = 0 ] || { echo "SKIP: needs root"; exit 4; }
if [ -z "${TPSWITCH_NETNS-}" ]; then
	TPSWITCH_NETNS=1 unshare --net --mount "$0" net "$@" || bad=1
	exit $bad
fi
mount -t sysfs none /sys
ip link set lo up
mkdir -p /run/tpswitch-test
trap tidy EXIT
[ $# -gt 0 ] || set -- "${cases[@]}"
for name; do
	sock=/run/tpswitch-test/port
	rc=0
	# In a subshell, set -e holds.
	set +e
	(set -e; trap 'stop || :; clean' EXIT; "test_$name")
	rc=$?
	set -e
	if [ $rc -eq 0 ]; then
		echo "ok - $name"
	else
		echo "not ok - $name"
		sed 's/^/# error: /' "$tmp/err"
		bad=1
	fi
done
exit $bad
