#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
#	test.sh
#
# Tests of tp4, in the directory that it was built in, as root on a kernel with
# TPACKET_V4. lab/xl710/tests/steering.sh tests the rules that it makes. Prints TAP.
#
# shellcheck disable=SC2317 # functions are called by check and by a trap

set -euo pipefail

usage() {
	sed -n 's/^# \?//; 3,7p' "$0"
}
case ${1-} in
-h | --help) usage; exit ;;
esac
[ "$(id -u)" = 0 ] || { echo "SKIP: needs root"; exit 4; }
if [ -z "${TP4_NETNS-}" ]; then
	TP4_NETNS=1 exec unshare --net --mount "$0"
fi
mount -t sysfs none /sys

tmp=$(mktemp -d)
pids=()
bad=0
tidy() {
	[ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || :
	wait
	rm -rf "$tmp"
}
trap tidy EXIT

check() { # NAME COMMAND...
	local name=$1

	shift
	if "$@"; then
		echo "ok - $name"
	else
		echo "not ok - $name"
		bad=1
	fi
}

# receive DEVICE OPTION...: a program with a V4 socket
receive() {
	../tpgen/tpgen rx -q -i "$@" >"$tmp/rx" 2>&1 &
	pids+=($!)
}

# shows PATTERN OPTION...: a line of the list, sooner or later
shows() {
	local pattern=$1 _

	shift
	for _ in {1..100}; do
		./tp4 list "$@" >"$tmp/list"
		! grep -qE "$pattern" "$tmp/list" || return 0
		sleep 0.1
	done
	sed 's/^/# /' "$tmp/list" "$tmp/rx"
	return 1
}

# fails STATUS TEXT COMMAND...
fails() {
	local status=$1 text=$2 rc=0

	shift 2
	"$@" >/dev/null 2>"$tmp/err" || rc=$?
	if [ "$rc" != "$status" ] || ! grep -q "$text" "$tmp/err"; then
		echo "# $rc: $(<"$tmp/err")"
		return 1
	fi
}

# agrees: the JSON has what the table has
agrees() {
	./tp4 list --json >"$tmp/json"
	python3 - "$tmp/json" "$@" <<'PY'
import json, socket, sys
devices = {d["device"]: d for d in json.load(open(sys.argv[1]))}
left, right = devices["left"], devices["right"]
assert set(devices) == {name for _, name in socket.if_nameindex()}, devices
assert devices["lo"]["zerocopy"] is None and not devices["lo"]["sockets"]
assert left["zerocopy"] == "driver" and left["queues"] == 2, left
modes = [(s["mode"], s.get("queue")) for s in left["sockets"]]
assert modes == [("zero-copy", 1), ("copy", None)], modes
assert {p["name"] for s in left["sockets"] for p in s["processes"]} == {"tpgen"}
assert [p["pid"] for s in left["sockets"] for p in s["processes"]] == [
    int(pid) for pid in sys.argv[2:]
]
assert all(s["rx_descriptors"] >= 256 for s in left["sockets"]), left
assert not right["sockets"], right
PY
}

# counts CONDITION OPTION...: sooner or later, one of the sockets in a report has it
counts() {
	local condition=$1 _

	shift
	for _ in {1..20}; do
		./tp4 stats --json -1 "$@" >"$tmp/json" || return 1
		! python3 - "$tmp/json" "$condition" <<'PY' || return 0
import json, sys
for s in json.load(open(sys.argv[1])):
    if eval(sys.argv[2], {"s": s, "total": s["total"], "rate": s["per_second"]}):
        sys.exit()
sys.exit(1)
PY
	done
	sed 's/^/# /' "$tmp/json" "$tmp/rx"
	return 1
}

# has_column PID NAME: the table has a number that is not 0 for this process
has_column() {
	local _

	for _ in {1..20}; do
		./tp4 stats -1 "$1" >"$tmp/table"
		! awk -v "name=$2" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
			NR == 2 && $1 == "left" && $2 == 1 && $(at[name]) > 0 { found = 1 }
			END { exit !found || NR != 2 }' "$tmp/table" || return 0
	done
	sed 's/^/# /' "$tmp/table"
	return 1
}

# grows PID: what two reports say of the receiver
grows() {
	./tp4 stats -j -c 2 "$1" >"$tmp/json"
	python3 - "$tmp/json" <<'PY'
import json, sys
first, second = (json.loads(line) for line in open(sys.argv[1]))
assert len(first) == len(second) == 1, (first, second)
assert first[0]["inode"] == second[0]["inode"]
assert first[0]["device"] == "left" and first[0]["queue"] == 1
assert first[0]["mode"] == "zero-copy"
assert {p["name"] for p in first[0]["processes"]} == {"tpgen"}
old, new = (s[0]["total"]["rx_packets"] for s in (first, second))
rate = second[0]["per_second"]["rx_packets"]
assert new > old and rate > 0, (old, new, rate)
# The interval is one second, or longer on a busy machine.
assert rate <= (new - old) * 1.1, (old, new, rate)
PY
}

# ends_with PID: the reports of a process end when it does
ends_with() {
	local stats rc=0

	./tp4 stats -j "$1" >"$tmp/reports" &
	stats=$!
	for _ in {1..300}; do
		[ ! -s "$tmp/reports" ] || break
		sleep 0.1
	done
	kill "$1"
	wait "$1" || :
	wait "$stats" || rc=$?
	[ -s "$tmp/reports" ] && [ "$rc" = 0 ]
}

ip link add left numtxqueues 2 numrxqueues 2 type veth \
	peer name right numtxqueues 2 numrxqueues 2
ip link set left up
ip link set right up

check 'a device without zero-copy mode' shows '^lo +-'
check 'a device with it, and two queues' shows '^left +driver +2$'
check 'only the device asked for' shows '^left' left
check 'no other then' test "$(wc -l <"$tmp/list")" = 2
receive left -z 1
check 'a program in zero-copy mode' \
	shows "^left +driver +2  zero-copy +1  tpgen \\(${pids[0]}\\)$"
receive left
check 'a program in copy mode' shows "^ +copy +-  tpgen \\(${pids[1]}\\)$"
check 'the same as JSON' agrees "${pids[@]}"

../tpgen/tpgen tx -q -i right -z 1 -R 3k >"$tmp/tx" 2>&1 &
pids+=($!)
check 'stats: packets received' counts 'rate["rx_packets"] > 0' "${pids[0]}"
check 'stats: packets sent' counts 'rate["tx_descs"] > 0' "${pids[2]}"
check 'stats: in the table' has_column "${pids[0]}" RX
check 'stats: totals grow' grows "${pids[0]}"
check 'stats: none of them is lost' counts 'total["rx_drops"] == 0' "${pids[0]}"
kill -STOP "${pids[0]}"
check 'stats: a program that does not read' has_column "${pids[0]}" NO-FRAMES
check 'stats: what it loses, of all sockets' \
	counts 'rate["rx_no_desc"] > 0 and rate["rx_drops"] >= rate["rx_no_desc"]'
kill -CONT "${pids[0]}"
check 'stats: until the process ends' ends_with "${pids[0]}"
check 'stats: a process without sockets' fails 1 'has no V4 socket' ./tp4 stats $$
check 'stats: not a process' fails 2 'is not a process' ./tp4 stats x
check 'stats: two processes' fails 2 'only one' ./tp4 stats 1 2
check 'stats: not a number' fails 2 'not a number' ./tp4 stats -c 0
kill "${pids[@]:1}"
wait
pids=()
check 'nobody' shows '^left +driver +2$'

check 'list: no such device' fails 1 'No such device' ./tp4 list nodevice
check 'steer: no such device' fails 1 'No such device' ./tp4 steer nodevice udp dport 1 0
check 'steer: no rules' fails 1 'the driver has no rules' ./tp4 steer left udp dport 1 0
for flow in 'udp 0' 'udp dport 0' 'icmp dport 1 0' 'udp dport 65536 0' 'udp dport 1 x' \
	'udp src 300.0.0.1 0' 'udp src ::1 dst 10.0.0.1 0' 'udp port 1 0' \
	'udp dport 1 dport 2 0' 'udp src 10.0.0.1 src 10.0.0.2 0' 'udp dport -1 0' \
	'ip sport 1 0' 'ip src 10.0.0.0/33 0' 'ip src 10.0.0.0/0 0' 'ip src 10.0.0.0/ 0' \
	'ether src 10.0.0.1 0' 'ether src 2:0:0:0:0:1 0' 'udp vlan 4096 0' 'udp vlan 1 vlan 2 0' \
	'udp dport 1 dropped' 'ip drop' 'udp dport 1 65536' 'udp dport 1 18446744073709551616'; do
	# shellcheck disable=SC2086 # words
	check "steer: not a flow: $flow" fails 2 'tp4 --help' ./tp4 steer left $flow
done
for rule in x -1 +1 4294967299 2147483648 18446744073709551619; do
	check "steer -d: not a rule: $rule" \
		fails 2 'not the number' ./tp4 steer -d left "$rule"
done
check 'steer -d: no such rule' fails 1 'removing the rule' ./tp4 steer -d left 3
check 'no command' fails 2 usage ./tp4
check 'an unknown option' fails 2 '^tp4: .*unknown-option' ./tp4 list --unknown-option

# A card with rules, which writes the one that it is given to $RULE
gcc -shared -fPIC -o "$tmp/card.so" -xc - <<'EOF'
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <net/if.h>
#include <linux/types.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>

static void hex(FILE *f, const char *name, const void *p, int len)
{
	fprintf(f, " %s ", name);
	for (int i = 0; i < len; i++)
		fprintf(f, "%02x", ((const unsigned char *)p)[i]);
}

static void write_rule(const struct ethtool_rx_flow_spec *fs)
{
	FILE *f = fopen(getenv("RULE"), "w");

	fprintf(f, "type %x to %llx", fs->flow_type, fs->ring_cookie);
	hex(f, "is", &fs->h_u, 40);
	hex(f, "mask", &fs->m_u, 40);
	hex(f, "vlan", &fs->h_ext.vlan_tci, 2);
	hex(f, "of", &fs->m_ext.vlan_tci, 2);
	hex(f, "mac", fs->h_ext.h_dest, 6);
	hex(f, "of", fs->m_ext.h_dest, 6);
	fclose(f);
	f = fopen(getenv("STORED"), "w");
	fwrite(fs, sizeof(*fs), 1, f);
	fclose(f);
}

/* It has written the IPv6 masks for IPv4, too, and the ports' where IPv4 has them. */
static void masks_of_i40e(struct ethtool_rx_flow_spec *fs)
{
	int type = fs->flow_type & 0xff, ipv4 = type < 4 || type == IP_USER_FLOW;

	if (ipv4 && fs->m_u.tcp_ip4_spec.ip4src)
		memset(&fs->m_u, 0xff, 16);
	if (ipv4 && fs->m_u.tcp_ip4_spec.ip4dst)
		memset((char *)&fs->m_u + 16, 0xff, 16);
	if (!ipv4) {
		fs->m_u.tcp_ip4_spec.psrc |= fs->m_u.tcp_ip6_spec.psrc;
		fs->m_u.tcp_ip4_spec.pdst |= fs->m_u.tcp_ip6_spec.pdst;
		fs->m_u.tcp_ip6_spec.psrc = fs->m_u.tcp_ip6_spec.pdst = 0;
	}
}

static void read_rule(struct ethtool_rx_flow_spec *fs)
{
	FILE *f = fopen(getenv("STORED"), "r");
	char *odd = getenv("ODD");

	if (!f || fs->location != 7 || fread(fs, sizeof(*fs), 1, f) != 1)
		abort();
	fclose(f);
	if (!odd)
		return;
	switch (*odd) {
	case 't': fs->m_u.tcp_ip4_spec.tos = 0xff; break;
	case 'p': fs->m_u.tcp_ip4_spec.pdst = 0xff00; break;
	case 'a': fs->m_u.tcp_ip4_spec.ip4dst = 0xff00ff00; break;
	case 'v': fs->ring_cookie |= 1ull << 32; break;
	case 'r': fs->flow_type |= FLOW_RSS; break;
	case 'u':
		fs->flow_type |= FLOW_EXT;
		fs->m_ext.data[1] = 1;
		break;
	case 'I': masks_of_i40e(fs); break;
	case 'i':	/* as i40e says it */
		fs->flow_type |= FLOW_EXT;
		fs->m_ext.vlan_etype = fs->m_ext.vlan_tci = 0xffff;
		fs->h_ext.vlan_etype = 0x81;
		fs->h_ext.vlan_tci = 0x0700;
		break;
	}
}

int ioctl(int fd, unsigned long request, ...)
{
	struct ethtool_rxnfc *nfc;
	va_list args;

	va_start(args, request);
	nfc = (void *)va_arg(args, struct ifreq *)->ifr_data;
	va_end(args);
	if (request != SIOCETHTOOL)
		abort();
	if (nfc->cmd == ETHTOOL_GDRVINFO) {
		char *odd = getenv("ODD");

		strcpy(((struct ethtool_drvinfo *)nfc)->driver,
		       odd && *odd == 'I' ? "i40e" : "other");
	} else if (nfc->cmd == ETHTOOL_GRXCLSRLCNT) {
		nfc->data = RX_CLS_LOC_SPECIAL;
		nfc->rule_cnt = 1;
	} else if (nfc->cmd == ETHTOOL_GRXCLSRLALL) {
		nfc->rule_cnt = 1;
		nfc->rule_locs[0] = 7;
	} else if (nfc->cmd == ETHTOOL_GRXCLSRULE) {
		read_rule(&nfc->fs);
	} else if (nfc->cmd == ETHTOOL_GFLAGS) {
		((struct ethtool_value *)nfc)->data =
			getenv("OFF") ? 0 : ETH_FLAG_NTUPLE;
	} else if (nfc->cmd == ETHTOOL_SRXCLSRLINS) {
		nfc->fs.location = 7;
		write_rule(&nfc->fs);
		errno = getenv("REFUSE") ? atoi(getenv("REFUSE")) : 0;
		return errno ? -1 : 0;
	}
	return 0;
}
EOF
export RULE=$tmp/rule STORED=$tmp/stored
card=(env "LD_PRELOAD=$tmp/card.so")

# listed LINE [ODD]: tp4 lists the rule like this
listed() {
	local line

	line=$("${card[@]}" ${2:+"ODD=$2"} ./tp4 steer -l left) || return 1
	[ "$line" = "rule 7: $1" ] || { echo "# $line"; return 1; }
}

# rule PATTERN FLOW...: the card gets this rule, and tp4 lists it in the same words
rule() {
	local pattern=$1

	shift
	"${card[@]}" ./tp4 steer -k left "$@" >"$tmp/out" || return 1
	grep -qE "^$pattern" "$RULE" || { sed 's/^/# /' "$RULE"; return 1; }
	case ${!#} in
	drop) listed "${*:1:$#-1}: dropped" ;;
	*) listed "${*:1:$#-1}: to queue ${!#}" ;;
	esac
}

check 'steer: ports' rule 'type 2 to 3 is 0{16}04d20035.* mask 0{16}ffffffff0+ ' \
	udp sport 1234 dport 53 3
check 'steer: what it prints' grep -qx 'rule 7: to queue 3 of left' "$tmp/out"
check 'steer: networks' rule 'type 1 to 0 is 0a000000c0a80180.* mask ff000000ffffff80' \
	tcp src 10.0.0.0/8 dst 192.168.1.128/25 0
check 'steer: a network of IPv6' \
	rule 'type 6 to 1 is 0{32}20010db8f0{23}.* mask 0{32}f{9}0{23}0' \
	udp dst 2001:db8:f000::/36 1
check 'steer: addresses alone' rule 'type d to 2 is 0a0000010{18}010' ip src 10.0.0.1 2
check 'steer: IPv6 addresses alone' rule 'type e to 2 is 0{30}01' ip src ::1 2
check 'steer: MAC addresses' \
	rule 'type 12 to 2 is 02000000000a02000000000b0+ mask f{24}0' \
	ether src 02:00:00:00:00:0b dst 02:00:00:00:00:0a 2
check 'steer: a VLAN and a destination' \
	rule 'type c0000002 .* vlan 0007 of 0fff mac 020000000001 of f{12}$' \
	udp dport 1 mac 02:00:00:00:00:01 vlan 7 0
check 'steer: drop' rule 'type 2 to f{16} ' udp dport 1 drop
check 'steer: that it drops' grep -qx 'rule 7: dropped by left' "$tmp/out"
rule .* udp dst 10.0.0.1 dport 1 3
for odd in tos port address vf rss user; do
	check "steer -l: a rule of another kind: $odd" \
		listed 'of another kind: ethtool -n left rule 7' "$odd"
done
check "steer -l: a VLAN with its type" \
	listed 'udp dst 10.0.0.1 dport 1 vlan 7: to queue 3' i40e
for flow in "udp src 10.0.0.2 dst 10.0.0.1 sport 5 dport 1" "sctp dport 1" \
	"tcp src 10.0.0.2" "ip dst 10.0.0.1" "udp src ::2 dst ::1 sport 5 dport 1" \
	"tcp src ::2 sport 5" "ip src ::2" "udp dst ::1 dport 7 vlan 9"; do
	# shellcheck disable=SC2086 # words
	rule .* $flow 3
	check "steer -l: as i40e has it: $flow" listed "$flow: to queue 3" I40E
done
rule .* udp dst 10.0.0.1 dport 1 3
# What tp4 takes in other words, it lists in its own.
"${card[@]}" ./tp4 steer -k left ether dst 02:00:00:00:00:0A src 02:00:00:00:00:0b 2 >/dev/null
check 'steer -l: another order' \
	listed 'ether src 02:00:00:00:00:0b dst 02:00:00:00:00:0a: to queue 2'
"${card[@]}" ./tp4 steer -k left tcp src 10.1.2.3/8 2 >/dev/null
check 'steer -l: an address of a network' listed 'tcp src 10.0.0.0/8: to queue 2'
check 'steer -l: no rules' fails 1 'listing the rules.*has no rules' ./tp4 steer -l left
check 'steer -l: no device' fails 2 'a device: tp4 --help' ./tp4 steer -l
check 'steer: rules are off' fails 1 'ntuple on' \
	"${card[@]}" OFF=1 REFUSE=95 ./tp4 steer left udp dport 1 0
check 'steer: not such rules' fails 1 'refuses this flow' \
	"${card[@]}" REFUSE=95 ./tp4 steer left udp dport 1 0
check 'steer: no room' fails 1 'No space left on device$' \
	"${card[@]}" REFUSE=28 ./tp4 steer left udp dport 1 0

# held PATTERN: what ip link shows of the device's XDP program
held() {
	ip link show left >"$tmp/link"
	grep -qE "$1" "$tmp/link" || { sed 's/^/# /' "$tmp/link"; return 1; }
}

# hold DEVICE...: ready when it has printed a line for each
hold() {
	local _

	exec {lines}< <(exec ./tp4 hold "$@")
	holder=$!
	pids+=("$holder")
	for _; do
		read -r -t 60 -u "$lines" || return 1
	done
}

# ends_holding SIGNAL STATUS
ends_holding() {
	local rc=0

	kill "-$1" "$holder"
	wait "$holder" || rc=$?
	exec {lines}<&-
	[ "$rc" = "$2" ] && ip link show left >"$tmp/link" && ! grep prog/xdp "$tmp/link"
}

check 'hold: a device' hold left
check 'hold: it has a program' held 'prog/xdp'
check 'hold: a device that has one' fails 1 'an XDP program already' ./tp4 hold left
receive left -z 1
check 'hold: a program in zero-copy mode' \
	shows "^left +driver +2  zero-copy +1  tpgen \\(${pids[-1]}\\)$"
kill "${pids[-1]}"
wait "${pids[-1]}" || :
check 'hold: the device is still held' held 'prog/xdp'
check 'hold: until Ctrl-C' ends_holding INT 0
check 'hold: two devices' hold left right
check 'hold: killed' ends_holding KILL 137
check 'hold: no such device' fails 1 'No such device' ./tp4 hold nosuch
check 'hold: no device' fails 2 'needs a device' ./tp4 hold

# A kernel that does not know TPACKET_V4
gcc -shared -fPIC -o "$tmp/old.so" -xc - <<'EOF'
#include <errno.h>
#include <sys/socket.h>
#include <linux/if_packet.h>

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	errno = level == SOL_PACKET && name == PACKET_VERSION ? EINVAL : ENOSYS;
	return -1;
}
EOF
for command in list stats hold 'steer left udp dport 1 0'; do
	# shellcheck disable=SC2086 # words
	check "$command: a kernel without V4" \
		fails 1 'has no AF_PACKET V4' env LD_PRELOAD="$tmp/old.so" ./tp4 $command
done
exit $bad
