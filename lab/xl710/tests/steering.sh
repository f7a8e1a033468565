#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# RSS spreads flows over the queues; an ethtool -N rule moves one flow, and
# only that flow, to its queue; a rule can drop.
# shellcheck disable=SC2317,SC2086 source=lib.sh
. "$(dirname "$0")/lib.sh"

QUEUES=$(nproc)

# Prints the packets that each queue of port 1 has received
rx_queues() {
	n1 ethtool -S "$IF1" | awk -v q="$QUEUES" '
		match($1, /^rx-[0-9]+\.packets:$/) {
			i = substr($1, 4) + 0
			if (i < q)
				n[i] = $2
		}
		END { for (i = 0; i < q; i++) printf "%d ", n[i] }'
}

# send PORT COUNT: UDP packets from that source port to port 9, port 0 to 1
send() {
	n0 python3 - "$1" "$2" "${3:-$IP1}" <<'EOF'
import socket, sys
port, count, dst = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
fam = socket.AF_INET6 if ":" in dst else socket.AF_INET
s = socket.socket(fam, socket.SOCK_DGRAM)
s.bind(("", port))
for i in range(count):
    s.sendto(b"x" * 32, (dst, 9))
EOF
}

# Like send, for 64 source ports, in one process
send_flows() {
	n0 python3 - "$1" "${2:-$IP1}" <<'EOF'
import socket, sys
count, dst = int(sys.argv[1]), sys.argv[2]
fam = socket.AF_INET6 if ":" in dst else socket.AF_INET
for port in range(20000, 20064):
    s = socket.socket(fam, socket.SOCK_DGRAM)
    s.bind(("", port))
    for i in range(count):
        s.sendto(b"x" * 32, (dst, 9))
    s.close()
EOF
}

# diff_queues BEFORE AFTER
diff_queues() {
	local -a a b
	local i

	read -r -a a <<<"$1"
	read -r -a b <<<"$2"
	for ((i = 0; i < QUEUES; i++)); do
		echo -n "$((b[i] - a[i])) "
	done
	echo
}

# 64 flows of 8: no queue gets less than half or more than double its share
rss_spreads() {
	local before after d n

	before=$(rx_queues)
	send_flows 8 "$1"
	sleep 0.5
	after=$(rx_queues)
	d=$(diff_queues "$before" "$after")
	echo "queues got $d"
	for n in $d; do
		[ "$n" -ge $((512 / QUEUES / 3)) ] || return 1
	done
}

# goes_to QUEUE PORT COUNT [DST]: only that queue receives that flow
goes_to() {
	local before after n
	local -a d

	before=$(rx_queues)
	send "$2" "$3" "${4:-$IP1}"
	sleep 0.5
	after=$(rx_queues)
	read -r -a d <<<"$(diff_queues "$before" "$after")"
	echo "queues got ${d[*]}"
	[ "${d[$1]}" -ge "$3" ] || return 1
	for ((n = 0; n < QUEUES; n++)); do
		[ "$n" = "$1" ] || [ "${d[n]}" -lt "$3" ] || return 1
	done
}

# Prints the queue that RSS selects for the flow
natural_queue() {
	local q

	for ((q = 0; q < QUEUES; q++)); do
		goes_to "$q" "$@" >/dev/null && echo "$q" && return
	done
	return 1
}

# A rule with the port moves the flow to another queue than that of RSS
moves() {
	local dst=$1 type=$2 port=$3 other=$4 was other_was to

	was=$(natural_queue "$port" 20 "$dst") || return 1
	other_was=$(natural_queue "$other" 20 "$dst") || return 1
	to=$(((was + 1) % QUEUES))
	n1 ethtool -N "$IF1" flow-type "$type" src-port "$port" dst-port 9 \
		src-ip "$5" dst-ip "$dst" action "$to" loc 5 || return 1
	goes_to "$to" "$port" 20 "$dst" || return 1
	goes_to "$other_was" "$other" 20 "$dst" || return 1
	n1 ethtool -n "$IF1" rule 5 | grep "Direct to queue $to" || return 1
	n1 ethtool -N "$IF1" delete 5 || return 1
	goes_to "$was" "$port" 20 "$dst"
}

# With a mask on everything but the destination port
moves_by_port() {
	local q

	n1 ethtool -N "$IF1" flow-type udp4 dst-port 9 action $((QUEUES - 1)) \
		loc 6 || return 1
	for q in 30001 30002 30003 30004; do
		goes_to $((QUEUES - 1)) $q 20 || return 1
	done
	n1 ethtool -N "$IF1" delete 6
}

# The same with tp4(8), whose rule goes with it, or by its number
moves_by_tp4() {
	local tp4=$BUILD/tp4/tp4 out was to rule pid rc=0

	out=$(mktemp)
	was=$(natural_queue 30010 20 "$IP1") || return 1
	to=$(((was + 1) % QUEUES))
	# n1 would be a process of its own, which passes no signal on.
	ip netns exec $NS1 "$tp4" steer "$IF1" udp src $IP0 dst $IP1 \
		sport 30010 dport 9 $to >"$out" &
	pid=$!
	for _ in {1..50}; do
		[ ! -s "$out" ] || break
		sleep 0.1
	done
	cat "$out"
	rm "$out"
	goes_to $to 30010 20 || rc=1
	kill $pid
	wait $pid || return 1
	[ $rc = 0 ] || return 1
	goes_to "$was" 30010 20 || return 1
	rule=$(n1 "$tp4" steer -k "$IF1" udp src $IP0 dst $IP1 sport 30010 dport 9 $to) ||
		return 1
	rule=${rule#rule }
	goes_to $to 30010 20 || return 1
	n1 "$tp4" steer -d "$IF1" "${rule%%:*}" || return 1
	goes_to "$was" 30010 20
}

# tp4 steer -l prints rules of the card as they were given.
lists_by_tp4() {
	local tp4=$BUILD/tp4/tp4 rule want='' out nr
	local rules=(
		"udp src $IP0 dst $IP1 sport 30011 dport 9 1"
		"udp src $IP60 dst $IP61 sport 30011 dport 9 0"
		"tcp src $IP0 dst $IP1 sport 80 dport 8080 drop"
		"sctp dport 7 1"
		"ip src $IP0 dst $IP1 1"
	)

	for rule in "${rules[@]}"; do
		n1 "$tp4" steer -k "$IF1" $rule || return 1
		case $rule in
		*drop) want+="${rule% drop}: dropped"$'\n' ;;
		*) want+="${rule% *}: to queue ${rule##* }"$'\n' ;;
		esac
	done
	out=$(n1 "$tp4" steer -l "$IF1") || return 1
	echo "$out"
	while read -r nr; do
		n1 "$tp4" steer -d "$IF1" "$nr" || return 1
	done < <(cut -d: -f1 <<<"$out" | cut -d' ' -f2)
	[ -z "$(n1 "$tp4" steer -l "$IF1")" ] &&
		[ "$(cut -d' ' -f3- <<<"$out" | sort)" = "$(sort <<<"${want%$'\n'}")" ]
}

drops() {
	local before after

	n1 ethtool -N "$IF1" flow-type udp4 src-port 30005 dst-port 9 \
		src-ip $IP0 dst-ip $IP1 action -1 loc 7 || return 1
	before=$(rx_queues)
	send 30005 50
	sleep 0.5
	after=$(rx_queues)
	read -r -a d <<<"$(diff_queues "$before" "$after")"
	echo "queues got ${d[*]}"
	n1 ethtool -N "$IF1" delete 7 || return 1
	for q in "${d[@]}"; do
		[ "$q" -lt 25 ] || return 1
	done
}

counts_matches() {
	local before after

	sleep 2
	before=$(stat $NS1 "$IF1" port.fdir_sb_match)
	n1 ethtool -N "$IF1" flow-type udp4 src-port 30006 dst-port 9 \
		src-ip $IP0 dst-ip $IP1 action 0 loc 8 || return 1
	send 30006 30
	sleep 2.5
	after=$(stat $NS1 "$IF1" port.fdir_sb_match)
	n1 ethtool -N "$IF1" delete 8
	echo "$before -> $after"
	[ $((after - before)) = 30 ]
}

setup
check "steering: ping" n0 ping -q -c 2 -i 0.1 -W 2 $IP1
if [ "$QUEUES" -lt 2 ]; then
	skip "steering: RSS" "one queue"
else
	check "steering: RSS spreads 64 IPv4 flows over $QUEUES queues" \
		rss_spreads $IP1
	check "steering: RSS spreads 64 IPv6 flows over $QUEUES queues" \
		rss_spreads $IP61
	check "steering: a rule moves an IPv4 flow, and only that" \
		moves $IP1 udp4 30000 30007 $IP0
	check "steering: a rule moves an IPv6 flow, and only that" \
		moves $IP61 udp6 30000 30007 $IP60
	check "steering: a rule for a destination port" moves_by_port
	check "steering: tp4 steer" moves_by_tp4
	check "steering: tp4 steer -l" lists_by_tp4
fi
check "steering: a rule drops" drops
check "steering: matches are counted" counts_matches
finish
