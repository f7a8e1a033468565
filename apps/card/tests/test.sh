#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
#	apps/card/tests/test.sh IF IF
#
# Tests that tpacket4-card gives a report on two ports that are connected, that it gives them
# back as they were, however it ends, and that it refuses what it should. It needs root, on a
# kernel without V4 and with a module in build/live. The output is TAP.

set -uo pipefail
# Each job has a process group, as on a terminal.
set -m
case ${1:-} in
-h | --help) sed '1,3d; /^#/!Q; s/^# \?//' "$0"; exit ;;
esac
[ $# -eq 2 ] || exit 2
card=$(realpath "$(dirname "$0")/../tpacket4-card")
a=$1 b=$2 failed=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# ok NAME STATUS
ok() {
	if [ "$2" -eq 0 ]; then
		echo "ok - $1"
	else
		echo "not ok - $1"
		failed=1
	fi
}

# within SECONDS COMMAND...: waits until it succeeds
within() {
	local end=$((SECONDS + $1))

	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

# What a person sees of the machine
state() {
	local dev

	# A port that is down has no queueing discipline after it was moved, and the driver
	# i40e forgets the port's ID in a reset.
	ip -d addr | sed 's/ qdisc noop state DOWN/ qdisc mq state DOWN/; s/ portid [0-9a-f]*//'
	ip route show table all
	ip -6 route show table all | sed 's/ expires [0-9a-z]*//'
	for dev in "$a" "$b"; do
		ethtool -l "$dev"
		ethtool -g "$dev"
		ethtool -k "$dev"
		grep -s '' /proc/sys/net/ipv[46]/{conf,neigh}/"$dev"/*
	done
	cut -d: -f1 /proc/net/dev
	cat /proc/mounts
	grep ^tpacket4 /proc/modules
	cat /proc/net/packet
	ls /run /run/netns
}

is_same() {
	state >"$tmp/now" 2>&1
	diff "$tmp/before" "$tmp/now" >"$tmp/diff"
}

# same NAME: whether the machine is as before; a link takes a while to come up
same() {
	within 30 is_same
	ok "$1: the machine is as before" $?
	[ ! -s "$tmp/diff" ] || sed 's/^/# error: /' "$tmp/diff" | head -n 20
	! { pgrep -x tpbench || pgrep -x zc_port || pgrep -x zc_xsk; } >/dev/null
	ok "$1: no process is left" $?
}

# refused PATTERN COMMAND...
refused() {
	local pattern=$1

	shift
	! "$@" >"$tmp/out" 2>&1 && grep -qE "$pattern" "$tmp/out"
	ok "refused: $pattern" $?
	is_same
	ok "refused: nothing has changed" $?
}

# start STAGE: runs it until its progress has a line with STAGE
start() {
	"$card" -f -s "$a" "$b" >"$tmp/report" 2>"$tmp/progress" &
	job=$!
	within 300 grep -q "$1" "$tmp/progress"
	ok "it comes to $1" $?
}

# ended NAME STATUS
ended() {
	local rc=0

	wait $job || rc=$?
	[ $rc -eq "$2" ]
	ok "$1: status $rc" $?
	same "$1"
}

hostname test-host
# Ports in use, with settings that a move to another namespace loses
ip link set "$a" mtu 1400 up
ip link set "$b" up
sysctl -qw "net.ipv6.conf.$a.accept_ra=0" "net.ipv4.conf.$b.rp_filter=1"
ethtool -K "$a" gro off
ip addr add 192.0.2.1/24 dev "$a"
ip addr add 2001:db8::1/64 dev "$a" nodad
ip link set "$b" down
within 30 sh -c "! ip addr show tentative | grep -q inet6"
within 30 ip route add 198.51.100.0/24 via 192.0.2.2
state >"$tmp/before" 2>&1

refused 'no network card' "$card" lo
refused 'there is no nosuch' "$card" "$b" nosuch
refused 'has addresses' "$card" "$a" "$b"
refused 'needs root' setpriv --reuid 65534 --clear-groups "$card" "$a" "$b"
refused 'name it once' "$card" "$b" "$b"
ip link add br0 type bridge
ip link set "$b" master br0
! "$card" -f "$a" "$b" >"$tmp/out" 2>&1 && grep -q "$b belongs to br0" "$tmp/out"
ok "refused: a bridge's port" $?
ip link set "$b" nomaster down
ip link del br0
same "after the bridge"

# QEMU has no such counters: a cycle is a nanosecond.
mkdir "$tmp/bin"
cat >"$tmp/bin/perf" <<'PERF'
#!/bin/sh
while [ "$1" != -o ]; do shift; done
cat >"$2" <<DATA
# started

1000000000,ns,duration_time,1000000000,100.00,,
600000000,,cpu_core/cycles/,1000000000,100.00,,
400000000,,cpu_atom/cycles/,1000000000,100.00,,
2000000000,,instructions,1000000000,100.00,,
<not supported>,,LLC-load-misses,0,100.00,,
DATA
PERF
chmod +x "$tmp/bin/perf"
PATH=$tmp/bin:$PATH "$card" -f -s "$a" "$b" >"$tmp/report" 2>"$tmp/progress"
rc=$?
ok "a report, status $rc" $rc
sed 's/^/# /' "$tmp/report"
[ $rc -eq 0 ] || sed 's/^/# error: /' "$tmp/progress"
same "after a report"
for row in rxdrop txpush l2fwd; do
	for version in V3 V4 'V4 zero-copy' 'AF_XDP zero-copy'; do
		sed -nE "s/^$row +64 +$version +([0-9]+ .*)/\1/p" "$tmp/report" | awk '
			{ n++ } NF != 5 || $1 * $2 < 9e8 || $1 * $2 > 11e8 { bad = 1 }
			$3 < $2 - 1 || $3 > $2 + 1 || $4 < 2 * $2 - 1 || $5 != "-" { bad = 1 }
			END { exit n != 1 || bad }'
		ok "the report has $row, $version" $?
	done
done
grep -q 'zc_port: .*fail:0' "$tmp/report" &&
	grep -qE 'ok: zc_xsk: .*fail:0|skipped: zc_xsk, whose MTU is 1500' "$tmp/report" &&
	grep -q '^To send it' "$tmp/report"
ok "the report has the checks and an address to send it to" $?
[ "$(wc -l <"$tmp/report")" -le 70 ] &&
	! grep -qiE "([0-9a-f]{2}:){5}[0-9a-f]{2}|test-host|\<($a|$b)\>|192\.0\.2\.1|2001:db8::1" \
		"$tmp/report"
ok "the report is short, and has no name or address" $?

# What it sends does not come back.
ip link set "$b" up
"$card" -f -s "$a" >"$tmp/report" 2>"$tmp/progress"
rc=$?
ok "a report on one port, status $rc" $rc
[ $rc -eq 0 ] || sed 's/^/# error: /' "$tmp/progress" "$tmp/report"
ip link set "$b" down
[ "$(grep -cE '^txpush +64 .* [0-9]+ +[0-9.]+ +' "$tmp/report")" -eq 4 ] &&
	! grep -q '^rxdrop\|^l2fwd' "$tmp/report" && grep -q '^no loop' "$tmp/report"
ok "one port without a loop only sends" $?
same "after one port"

start 'zc_port'
kill -INT -- -$job
ended "Ctrl-C" 130
start 'rxdrop'
kill -HUP $job
ended "a lost connection" 129
start 'zc_port'
within 60 pgrep -x zc_port
pkill -KILL -x zc_port
within 300 grep -q 'rxdrop' "$tmp/progress"
kill -TERM $job
ended "a test that is killed, then SIGTERM" 143

start 'zc_port'
kill -KILL $job
wait $job
! "$card" lo >"$tmp/out" 2>&1 && grep -q 'call that was killed' "$tmp/out"
ok "the call after SIGKILL says what it gives back" $?
same "after SIGKILL and another call"
exit $failed
