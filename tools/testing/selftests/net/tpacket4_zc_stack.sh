#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A stack in one namespace talks to a stack in another through a V4 socket in
# zero-copy mode: ARP, IPv6 neighbour discovery, ping, UDP and TCP over IPv4 and
# IPv6, with TSO, GRO and checksum offload on at the veth that faces it.
#
#	left: stack - veth0  <->  right: veth0 - tpacket4_zc_bridge - tap - stack
#
# The bridge looks at each packet's checksums; the programs at both ends compare
# what they receive with what was sent.

set -euo pipefail

readonly KSFT_SKIP=4
cd "$(dirname "$0")"
readonly left=tp4-left-$$ right=tp4-right-$$
tmp=$(mktemp -d)
pids=()

for tool in ping python3 ip ethtool tcpdump; do
	if ! command -v "$tool" >/dev/null; then
		echo "SKIP: needs $tool"
		exit "$KSFT_SKIP"
	fi
done
if [ "$(id -u)" -ne 0 ]; then
	echo "SKIP: needs root"
	exit "$KSFT_SKIP"
fi
if [ ! -c /dev/net/tun ]; then
	echo "SKIP: needs /dev/net/tun"
	exit "$KSFT_SKIP"
fi

# As the other tests: a debug kernel gets less to do.
total=2000000
if [ "${TPACKET4_FAST:-}" ]; then
	[ "$TPACKET4_FAST" = 0 ] || total=100000
elif [ -e /sys/kernel/debug/kmemleak ]; then
	total=100000
fi
echo "$total bytes each way a connection"

# shellcheck disable=SC2317 # called by the trap
cleanup() {
	local pid

	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null || :
	done
	ip netns del "$left" 2>/dev/null || :
	ip netns del "$right" 2>/dev/null || :
	rm -rf "$tmp"
}
trap cleanup EXIT

fail() {
	echo "FAIL: $*"
	cat "$tmp"/*.out 2>/dev/null || :
	exit 1
}

# wait_for SECONDS COMMAND...: until it succeeds
wait_for() {
	local end=$((SECONDS + $1))

	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.1
	done
}

in_left() {
	ip netns exec "$left" "$@"
}

in_right() {
	ip netns exec "$right" "$@"
}

# An echo server for TCP and UDP, and a client that checks what comes back.
cat >"$tmp/echo.py" <<'PY'
import hashlib
import socket
import sys
import threading

PORT = 40007


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def serve_udp(address):
    udp = socket.socket(family(address), socket.SOCK_DGRAM)
    udp.bind((address, PORT))
    while True:
        data, peer = udp.recvfrom(65536)
        udp.sendto(data, peer)


def serve_tcp(tcp):
    while True:
        conn, _ = tcp.accept()
        with conn:
            while data := conn.recv(65536):
                conn.sendall(data)


def serve(addresses):
    threads = []
    for address in addresses:
        tcp = socket.create_server((address, PORT), family=family(address))
        threads.append(threading.Thread(target=serve_tcp, args=(tcp,)))
        threads.append(threading.Thread(target=serve_udp, args=(address,)))
    for thread in threads:
        thread.start()
    print("ready", flush=True)


def talk(address, total):
    data = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(total // 32))
    with socket.create_connection((address, PORT), timeout=120) as tcp:
        sender = threading.Thread(target=tcp.sendall, args=(data,))
        sender.start()
        got = b""
        while len(got) < len(data):
            part = tcp.recv(65536)
            if not part:
                break
            got += part
        sender.join()
    if got != data:
        sys.exit(f"TCP: the echo differs: {len(got)} of {len(data)} bytes")
    udp = socket.socket(family(address), socket.SOCK_DGRAM)
    udp.settimeout(120)
    udp.connect((address, PORT))
    # the longest is a datagram of several IP fragments
    for size in (0, 1, 2, 99, 100, 1452, 1472, 1473, 4000, 8952, 8972, 30000):
        udp.send(data[:size])
        if udp.recv(65536) != data[:size]:
            sys.exit(f"UDP: the echo of {size} bytes differs")


if sys.argv[1] == "serve":
    serve(sys.argv[2:])
else:
    talk(sys.argv[2], int(sys.argv[3]))
PY

setup() {
	local mtu=$1 ns

	for ns in "$left" "$right"; do
		ip netns add "$ns"
		ip -n "$ns" link set lo up
	done
	in_right sysctl -qw net.ipv6.conf.default.disable_ipv6=1
	ip -n "$left" link add veth0 mtu "$mtu" address 02:00:00:00:00:01 \
		type veth peer name veth0 mtu "$mtu" \
		address 02:00:00:00:00:02 netns "$right"
	in_right sysctl -qw net.ipv6.conf.default.disable_ipv6=0
	ip -n "$right" tuntap add dev tap0 mode tap
	ip -n "$right" link set tap0 mtu "$mtu" address 02:00:00:00:00:03
	# All that a stack may leave to a device, and that a ring cannot do
	in_left ethtool -K veth0 tx on sg on tso on gso on gro on >/dev/null
	in_right ethtool -K veth0 gro on >/dev/null
	for ns in "$left" "$right"; do
		ip -n "$ns" link set veth0 up
	done
	ip -n "$left" addr add 192.0.2.1/24 dev veth0
	ip -n "$left" addr add 2001:db8::1/64 dev veth0 nodad
}

start_bridge() {
	# not by in_right: $! has to be the program itself
	ip netns exec "$right" ./tpacket4_zc_bridge veth0 tap0 \
		>"$tmp/bridge.out" 2>&1 &
	bridge=$!
	pids+=("$bridge")
	wait_for 120 grep -q bridging "$tmp/bridge.out" ||
		fail "the bridge does not start"
	ip -n "$right" link set tap0 up
	ip -n "$right" addr add 192.0.2.2/24 dev tap0
	ip -n "$right" addr add 2001:db8::2/64 dev tap0 nodad
	ip netns exec "$right" python3 "$tmp/echo.py" serve 192.0.2.2 2001:db8::2 \
		>"$tmp/server.out" &
	pids+=($!)
	wait_for 120 grep -q ready "$tmp/server.out" || fail "no server"
}

# The stack has to have left something to the device: a packet longer than the
# MTU on its way out says so.
watch_tso() {
	ip netns exec "$left" tcpdump -i veth0 -nn -p -c 1 -w "$tmp/tso" \
		"tcp and src host 192.0.2.1 and greater $(($1 + 1000))" \
		2>"$tmp/tcpdump.log" &
	tso=$!
	pids+=("$tso")
	wait_for 120 grep -q 'listening on' "$tmp/tcpdump.log" ||
		fail "tcpdump does not start"
}

traffic() {
	local address

	for address in 192.0.2.2 2001:db8::2; do
		in_left ping -q -c 10 -i 0.05 -W 20 "$address" || fail "ping"
		in_left ping -q -c 5 -i 0.05 -W 20 -s 8000 "$address" ||
			fail "ping of 8000 bytes"
		in_left ping -q -c 3 -i 0.05 -W 20 -s 20000 "$address" ||
			fail "ping of 20000 bytes"
		in_left python3 "$tmp/echo.py" talk "$address" "$total" ||
			fail "$address: no true echo"
	done
}

# value NAME: a number of the bridge's last report
value() {
	sed -nE "s/(^|.* )$1 ([0-9]+)( .*|$)/\2/p" "$tmp/bridge.out"
}

run() {
	local mtu=$1 name

	setup "$mtu"
	start_bridge
	watch_tso "$mtu"
	wait_for 60 in_left ping -c 1 -W 2 192.0.2.2 ||
		fail "MTU $mtu: no connection"
	wait_for 60 in_left ping -c 1 -W 2 2001:db8::2 ||
		fail "MTU $mtu: no connection over IPv6"
	traffic
	wait_for 5 sh -c "! kill -0 $tso" ||
		fail "MTU $mtu: the stack has segmented everything itself"
	kill -INT "$bridge"
	wait "$bridge" || fail "MTU $mtu: the bridge is not content"
	cat "$tmp/bridge.out"
	for name in arp icmp icmp6 nd tcp tcp6 udp udp6 fragments; do
		[ "$(value "$name")" -gt 0 ] || fail "MTU $mtu: no $name seen"
	done
	for name in bad_ip bad_checksum too_long errors strays; do
		[ "$(value "$name")" -eq 0 ] || fail "MTU $mtu: $name"
	done
	if [ "$mtu" -gt 2000 ] && [ "$(value chains)" -eq 0 ]; then
		fail "MTU $mtu: no packet of several frames"
	fi
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null || :
	done
	pids=()
	ip netns del "$left"
	ip netns del "$right"
	echo "ok: MTU $mtu"
}

run 1500
run 9000
echo "PASS"
