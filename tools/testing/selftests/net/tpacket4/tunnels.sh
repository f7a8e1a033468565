#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# tunnels.sh [-k KIND] [COMMAND...]: TCP in each kind of tunnel, and SCTP in none, between
# two stacks whose packets a program forwards:
#
#	left: t0 - veth0  <->  middle: v4a - relay - v4b  <->  right: veth0 - t0
#
# All data must arrive, without a retransmission of TCP. First, a Linux bridge forwards, to
# show that the tunnel works, then relay in copy mode and in zero-copy mode. In copy
# mode, relay must receive GSO packets with the description of the tunnel, and packets of
# SCTP that need a checksum.
#
# With COMMAND, only that program forwards. It is started in the namespace of v4a and
# v4b.

# shellcheck source-path=SCRIPTDIR source=net.sh
source "$(dirname "$0")/net.sh"
need python3 ip ping

middle='' # named by setup_ns
kinds=(sctp vxlan vxlan_csum geneve gre gretap ipip sit fou gue esp mpls)
ways=(bridge copy zerocopy)
if [ "${1-}" = -k ]; then
	kinds=("$2")
	shift 2
fi
command=("$@")
[ $# -eq 0 ] || ways=(command)
total=1000000
[ ! -e /sys/kernel/debug/kmemleak ] || total=200000

in_middle() {
	ip netns exec "$middle" "$@"
}

setup() {
	local ns

	setup_ns left right middle
	in_middle sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
		net.ipv6.conf.default.disable_ipv6=1
	ip -n "$middle" link add v4a type veth peer name veth0 netns "$left"
	ip -n "$middle" link add v4b type veth peer name veth0 netns "$right"
	for ns in "$left" "$right"; do
		# A packet that is late is not lost.
		ip netns exec "$ns" sysctl -qw \
			net.ipv4.tcp_rto_min_us=100000000 \
			net.ipv4.tcp_early_retrans=0 \
			net.ipv4.tcp_rmem='4096 131072 262144' \
			net.ipv4.tcp_wmem='4096 131072 262144'
		ip -n "$ns" link set lo up
		ip -n "$ns" link set veth0 up
	done
	ip -n "$middle" link set v4a up
	ip -n "$middle" link set v4b up
	# With fixed neighbours, no packet of a tunnel is answered by an error before
	# there is a forwarder. Tunnels remember such errors for 30 seconds.
	both 'link set veth0 address 02:00:00:00:00:0%M
addr add 10.1.0.%M/24 dev veth0
addr add fd01::%M/64 dev veth0 nodad
neigh add 10.1.0.%P lladdr 02:00:00:00:00:0%P dev veth0
neigh add fd01::%P lladdr 02:00:00:00:00:0%P dev veth0' ||
		fail "$(cat "$tmp/ip.log")"
}

# both COMMANDS [OPTION...]: ip -batch on both sides. %M and %P are replaced by the
# numbers of this side and of its peer.
both() {
	local ns=$left side text

	for side in 1 2; do
		text=${1//%M/$side}
		text=${text//%P/$((3 - side))}
		ip -n "$ns" "${@:2}" -batch - <<<"$text" >"$tmp/ip.log" 2>&1 || return 1
		ns=$right
	done
}

# --- kinds of tunnels ---------------------------------------------------------------

ends='local 10.1.0.%M remote 10.1.0.%P'
esp_state='proto esp spi 7 reqid 7 mode transport aead rfc4106(gcm(aes))'
esp_key='0x0102030405060708090a0b0c0d0e0f1011121314 128'
esp_policy='tmpl proto esp reqid 7 mode transport'

device() {
	both "link add t0 mtu 1400 type $*
link set t0 up
addr add 10.2.0.%M/24 dev t0
addr add fd02::%M/64 dev t0 nodad"
}

# both_set NAME=VALUE...: sysctl on both sides
both_set() {
	in_left sysctl -qw "$@" >"$tmp/ip.log" 2>&1 &&
		in_right sysctl -qw "$@" >"$tmp/ip.log" 2>&1
}

# Sets up a tunnel, and sets the address of its right side.
set_up() {
	protocol=tcp
	address=10.2.0.2
	case $1 in
	sctp)
		protocol=sctp
		address=10.1.0.2
		both_set net.sctp.addip_enable=0
		;;
	vxlan) device "vxlan id 1 dstport 4789 $ends noudpcsum" ;;
	vxlan_csum) device "vxlan id 1 dstport 4789 $ends udpcsum" ;;
	geneve) device "geneve id 1 dstport 6081 remote fd01::%P" ;;
	gre) device "gre $ends" ;;
	gretap) device "gretap $ends key 1 csum" ;;
	ipip) device "ipip $ends" ;;
	sit)
		address=fd02::2
		device "sit $ends"
		;;
	fou)
		modprobe -q fou || :
		both 'fou add port 5555 ipproto 4' &&
			device "ipip $ends encap fou encap-sport auto" \
				encap-dport 5555
		;;
	gue)
		modprobe -q fou || :
		both 'fou add port 5556 gue' &&
			device "gre $ends encap gue encap-sport auto" \
				encap-dport 5556 encap-csum
		;;
	esp)
		address=10.4.0.2
		both "addr add 10.4.0.%M/24 dev veth0
xfrm state add src 10.4.0.%M dst 10.4.0.%P $esp_state $esp_key
xfrm state add src 10.4.0.%P dst 10.4.0.%M $esp_state $esp_key
xfrm policy add src 10.4.0.%M dst 10.4.0.%P dir out $esp_policy
xfrm policy add src 10.4.0.%P dst 10.4.0.%M dir in $esp_policy"
		;;
	mpls)
		modprobe -qa mpls_router mpls_iptunnel || :
		address=10.3.0.2
		both_set net.mpls.platform_labels=1000 \
			net.mpls.conf.veth0.input=1 net.mpls.conf.lo.input=1 &&
			both 'addr add 10.3.0.%M/32 dev lo
route add 10.3.0.%P/32 encap mpls 101/102 via inet 10.1.0.%P src 10.3.0.%M' &&
			both 'route add 101 dev lo
route add 102 dev lo' -f mpls
		;;
	esac
}

# --- ways from v4a to v4b -----------------------------------------------------------

start() {
	ip netns exec "$middle" "$@" >"$tmp/way.out" 2>&1 &
	program=$!
}

begin() {
	program=''
	case $1 in
	bridge)
		ip -n "$middle" -batch - <<-END
			link add br0 type bridge mcast_snooping 0
			link set v4a master br0
			link set v4b master br0
			link set br0 up
		END
		;;
	copy) start ./relay v4a v4b ;;
	zerocopy) start ./relay v4a v4b zerocopy ;;
	command) start "${command[@]}" ;;
	esac
	# Until it forwards, or has ended
	for _ in {1..12}; do
		! in_left ping -qc 1 -i 0.1 -w 5 10.1.0.2 >/dev/null || return 0
		[ ! "$program" ] || kill -0 "$program" 2>/dev/null || break
	done
	error='no connection'
	return 1
}

end() {
	local rc=0

	if [ ! "$program" ]; then
		ip -n "$middle" link del br0
		return
	fi
	kill "$program" 2>/dev/null || :
	wait "$program" || rc=$?
	program=''
	[ "$1" = command ] || [ $rc -eq 0 ] || error+=" the program failed: $rc"
}

# The offloads must have been used, or the test would say nothing.
described() {
	case $kind in
	sctp) grep -q 'crc32c [1-9]' "$tmp/way.out" ;;
	esp) ;; # segmented before it is encrypted
	*) grep -q 'gso [1-9].* tunnel [1-9]' "$tmp/way.out" ;;
	esac
}

# --- the test -----------------------------------------------------------------------

start_client() {
	coproc client { exec ip netns exec "$left" python3 echo.py lines "$server"; }
	pids+=("$client_PID")
	exec {ask}>&"${client[1]}" {answers}<&"${client[0]}"
}

# run WAY: sets $error
run() {
	local answer

	error=''
	if begin "$1"; then
		echo "$protocol $address $total" >&"$ask"
		read -r -t 600 answer <&"$answers" || answer='no answer'
		[ "$answer" = ok ] || error=$answer
	fi
	end "$1"
	if [ ! "$error" ] && [ "$1" = copy ] && ! described; then
		error='no packet is described'
	fi
	[ ! -s "$tmp/way.out" ] || sed "s/^/# $1: /" "$tmp/way.out"
	rm -f "$tmp/way.out"
	[ "$error" ] || return 0
	echo "# $1: $error"
	echo "# left:"
	in_left nstat -as | sed 's/^/# /'
	echo "# right:"
	in_right nstat -as | sed 's/^/# /'
	sed 's/^/# server: /' "$tmp/server.out"
	return 1
}

# What this kernel has not, in the words of ip and sysctl
not_in_this_kernel() {
	grep -qiE 'unknown device type|not supported|no such file|cannot stat' \
		"$tmp/ip.log"
}

try() {
	local way

	if ! set_up "$kind"; then
		sed 's/^/# /' "$tmp/ip.log"
		if not_in_this_kernel; then
			echo "ok $number $kind # SKIP not in this kernel"
		else
			echo "not ok $number $kind"
			bad=1
		fi
		return
	fi
	for way in "${ways[@]}"; do
		run "$way" && continue
		echo "not ok $number $kind"
		bad=1
		return
	done
	echo "ok $number $kind"
}

tidy() {
	local ns

	for ns in "$left" "$right"; do
		ip -n "$ns" link del t0 2>/dev/null || :
		ip -n "$ns" fou del port 5555 2>/dev/null || :
		ip -n "$ns" fou del port 5556 2>/dev/null || :
	done
}

program=''
bad=0
number=0
echo "TAP version 13"
echo "1..${#kinds[@]}"
setup
modprobe -q sctp || : # before the server listens
start_server 0.0.0.0 ::
server=${pids[-1]}
start_client
for kind in "${kinds[@]}"; do
	number=$((number + 1))
	try
	tidy
done
exit $bad
