#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# tcpdump and an AF_PACKET V4 program capture real traffic on one interface at
# the same time. Both must receive the same packets in the same order, byte for
# byte: ping, UDP and TCP in both directions, small and large packets, with and
# without VLAN tags.

# shellcheck source-path=SCRIPTDIR source=net.sh
source "$(dirname "$0")/net.sh"
need tcpdump ping python3 ip

# set_up_end NAMESPACE NUMBER PEER'S-NUMBER: addresses end in the number
set_up_end() {
	# ARP requests could be sent between the start of the two programs
	ip -n "$1" -batch - <<-END
		link set veth0 up
		link add link veth0 name vlan7 type vlan id 7
		link set vlan7 up
		addr add 192.0.2.$2/24 dev veth0
		addr add 198.51.100.$2/24 dev vlan7
		neigh add 192.0.2.$3 dev veth0 lladdr 02:00:00:00:00:0$3
		neigh add 198.51.100.$3 dev vlan7 lladdr 02:00:00:00:00:0$3
	END
}

setup() {
	local ns

	setup_ns left right
	for ns in "$left" "$right"; do
		ip netns exec "$ns" sysctl -qw \
			net.ipv6.conf.default.disable_ipv6=1 2>/dev/null || :
	done
	ip -n "$left" link add veth0 mtu 9000 address 02:00:00:00:00:01 \
		type veth peer name veth0 mtu 9000 \
		address 02:00:00:00:00:02 netns "$right"
	set_up_end "$left" 1 2
	set_up_end "$right" 2 1
	wait_for 20 in_left ping -c 1 -W 1 192.0.2.2 ||
		fail "no connection on veth0"
	wait_for 20 in_left ping -c 1 -W 1 198.51.100.2 ||
		fail "no connection on vlan7"
}

# The packets of two pcap files, without their times, must be the same.
cat >"$tmp/compare.py" <<'PY'
import struct
import sys


def packets(path):
    with open(path, "rb") as f:
        (magic,) = struct.unpack("=I", f.read(24)[:4])
        if magic != 0xA1B2C3D4:
            sys.exit(f"{path}: not a pcap file of this machine")
        while head := f.read(16):
            _, _, size, wire = struct.unpack("=4I", head)
            if size != wire:
                sys.exit(f"{path}: a packet of {wire} bytes was cut to {size}")
            data = f.read(size)
            if len(data) < size:
                sys.exit(f"{path}: ends in the middle of a packet")
            yield data


a, b = (list(packets(path)) for path in sys.argv[1:])
if len(a) != len(b):
    sys.exit(f"{len(a)} packets and {len(b)}")
# Two sockets may receive packets that two CPUs process in different order.
if sorted(a) != sorted(b):
    x, y = next(pair for pair in zip(sorted(a), sorted(b)) if pair[0] != pair[1])
    sys.exit(f"packets differ:\n{x[:200].hex(' ')}\n{y[:200].hex(' ')}")
for i, x in enumerate(a):
    if x not in b[max(i - 8, 0) : i + 9]:
        sys.exit(f"packet {i} is in another place:\n{x[:200].hex(' ')}")
if len(a) < 60:
    sys.exit(f"only {len(a)} packets")
print(f"{len(a)} packets, of {min(map(len, a))} to {max(map(len, a))} bytes")
PY

# compare WHAT TCPDUMP'S V4'S
compare() {
	local what=$1 a=$2 b=$3 tagged='vlan 7, p 0, ethertype IPv4 (0x0800)'
	local packets part

	python3 "$tmp/compare.py" "$a" "$b" ||
		fail "$what: tcpdump and V4 have seen different packets"
	# and the traffic was what it should be
	packets=$(tcpdump -r "$b" -nn -t -e 2>/dev/null)
	for part in 'ICMP echo request' 'ICMP echo reply' '.40007: UDP,' \
		'.40007: Flags' \
		"$tagged, 198.51.100.1 > 198.51.100.2: ICMP echo request" \
		"$tagged, 198.51.100.2.40007 > 198.51.100.1."; do
		[[ $packets == *"$part"* ]] || fail "$what: no '$part'"
	done
	echo "ok: $what: the same byte for byte"
}

# capture_both NETNS NAME: starts both programs on veth0 in NETNS
capture_both() {
	local ns=$1 name=$2

	# unbuffered packets, a snapshot of all bytes, 16 MiB: none is lost
	ip netns exec "$ns" tcpdump -i veth0 -s 262144 -B 16384 -U \
		-w "$tmp/$name.tcpdump" 2>"$tmp/$name.log" &
	pids+=($!)
	ip netns exec "$ns" ./cap veth0 "$tmp/$name.v4" \
		>"$tmp/$name.out" &
	pids+=($!)
	wait_for 600 grep -q 'listening on' "$tmp/$name.log" ||
		fail "$name: tcpdump does not start: $(cat "$tmp/$name.log")"
	wait_for 600 grep -q 'capturing on' "$tmp/$name.out" ||
		fail "$name: cap does not start"
}

setup
start_server 192.0.2.2 198.51.100.2

# Without IPv6 and ARP, there is no other traffic than the following.
capture_both "$left" left
capture_both "$right" right
traffic 300000 192.0.2.2 198.51.100.2
# Both write packets immediately. When the files are equal, both have received
# all packets. If they never are, report the final difference.
for name in left right; do
	wait_for 20 python3 "$tmp/compare.py" "$tmp/$name.tcpdump" \
		"$tmp/$name.v4" || :
done

status=0
kill -INT "${pids[@]:1}"
for pid in "${pids[@]:1}"; do
	wait "$pid" || status=$?
done
cat "$tmp"/*.out
for name in left right; do
	grep -q '^0 packets dropped by kernel' "$tmp/$name.log" ||
		fail "$name: tcpdump lost some: $(cat "$tmp/$name.log")"
done
[ "$status" -eq 0 ] || fail "a capture ended with status $status"
for name in left right; do
	compare "$name end" "$tmp/$name.tcpdump" "$tmp/$name.v4"
done
echo "PASS"
