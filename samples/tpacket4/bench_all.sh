#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The benchmarks of the AF_PACKET V4 paper on a veth pair, for V2, V3 and V4:
# rxdrop, txpush, l2fwd with 64 packets in flight (l2fwd-64) and with one
# (l2fwd-1). The pair lives in a network namespace of our own, which goes
# away with us. All versions take turns, so that what disturbs the machine
# disturbs all of them.
set -euo pipefail

usage()
{
	cat <<EOF
usage: ${0##*/} [options]

  --demo          short: rxdrop, txpush and l2fwd, 3 rounds of half a second
  --icount        the cost of a packet on one CPU instead of packets a second;
                  in "qemu -icount shift=0" a nanosecond is an instruction
  --list          say what would be run, and stop
  --json FILE     write all results of tpbench there as well, a line each
  --versions "V"  (default: "2 3 4")
  --sizes "S"     bytes a packet (default: "64 1500")
  --benchmarks "B" of rxdrop txpush l2fwd-64 l2fwd-1 (default: all)
  --seconds S     each time (default: 2)
  --rounds N      of everything (default: 5)
  --tpbench FILE  (default: tpbench beside this script)
EOF
}

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

versions="2 3 4"
sizes="64 1500"
benchmarks="rxdrop txpush l2fwd-64 l2fwd-1"
seconds=2
rounds=5
json=
icount=
list=
tpbench=$(dirname "$(readlink -f "$0")")/tpbench
args=("$@")

while [ $# -gt 0 ]; do
	case $1 in
	--demo)
		benchmarks="rxdrop txpush l2fwd-64"
		seconds=0.5
		rounds=3
		;;
	--icount) icount=1; rounds=1 ;;
	--list) list=1 ;;
	--help|-h) usage; exit 0 ;;
	--json|--versions|--sizes|--benchmarks|--seconds|--rounds|--tpbench)
		[ $# -gt 1 ] || die "$1 wants a value"
		case $1 in
		--json) json=$2 ;;
		--versions) versions=$2 ;;
		--sizes) sizes=$2 ;;
		--benchmarks) benchmarks=$2 ;;
		--seconds) seconds=$2 ;;
		--rounds) rounds=$2 ;;
		--tpbench) tpbench=$2 ;;
		esac
		shift
		;;
	*) die "what is '$1'? See --help" ;;
	esac
	shift
done

# Set cmd to the command of one run. No program is started to do so: each
# one takes long in an emulated machine.
set_cmd()	# benchmark, size, version
{
	cmd=("$tpbench" -q -i "tp4A,tp4B" -v "$3" -s "$2")
	case $1 in
	rxdrop) cmd+=(--rxdrop) ;;
	txpush) cmd+=(--txpush) ;;
	l2fwd-64) cmd+=(--veth 64) ;;
	# A V3 packet takes a timer tick: with the usual warm-up, a minute.
	l2fwd-1) cmd+=(--veth 1 --warmup 16) ;;
	*) die "no benchmark is called '$1'" ;;
	esac
	if [ "$icount" ]; then
		cmd+=(--lockstep)
		# V3 again; half a second of waiting is enough.
		case $1 in
		l2fwd-1) cmd+=(--count 16384 --duration 0.5) ;;
		*) cmd+=(--count 65536) ;;
		esac
	else
		cmd+=(--duration "$seconds")
		# One CPU cannot spin and send at the same time.
		if [ "$cpus" = 1 ]; then
			cmd+=(--lockstep)
		fi
	fi
}

cpus=$(nproc)
runs=$(for ((r = 1; r <= rounds; r++)); do
	for b in $benchmarks; do
		for s in $sizes; do
			for v in $versions; do
				echo "$r $b $s $v"
			done
		done
	done
done)

if [ "$list" ]; then
	while read -r _ b s v; do
		set_cmd "$b" "$s" "$v"
		echo "${cmd[*]}"
	done <<<"$runs"
	exit 0
fi

[ -x "$tpbench" ] || die "no $tpbench: run make in samples/tpacket4"

# Once more, in a network namespace of our own.
if [ -z "${BENCH_ALL_NETNS-}" ]; then
	[ "$(id -u)" = 0 ] || die "needs root (raw sockets)"
	BENCH_ALL_NETNS=1 exec unshare --net "$0" "${args[@]}"
fi

results=$(mktemp)
# tpbench gets the SIGINT of a Ctrl-C as well, and ends.
trap 'rm -f "$results"' EXIT
trap 'exit 130' INT TERM

ip link add tp4A type veth peer name tp4B ||
	die "cannot make a veth pair (CONFIG_VETH?)"
for i in tp4A tp4B; do
	# Nothing but our packets: no neighbour discovery.
	if [ -e "/proc/sys/net/ipv6/conf/$i/disable_ipv6" ]; then
		echo 1 >"/proc/sys/net/ipv6/conf/$i/disable_ipv6"
	fi
	ip link set "$i" up
done

if [ "$icount" ]; then
	unit="ns (instructions) a packet"
	field=ns_per_packet
else
	unit="kpps"
	field=pps
fi

if [ "$json" ]; then
	exec 3>"$json"
fi
total=$(wc -l <<<"$runs")
n=0
while read -r r b s v; do
	n=$((n + 1))
	set_cmd "$b" "$s" "$v"
	if ! out=$("${cmd[@]}" </dev/null); then
		die "V$v $b at $s bytes failed: ${cmd[*]}"
	fi
	[[ $out =~ \"$field\":\ ([0-9.e+]+) ]] || die "not a result: $out"
	x=${BASH_REMATCH[1]}
	if [ -z "$icount" ]; then
		x=$(printf '%d.%03d' $((x / 1000)) $((x % 1000)))
	fi
	printf '[%*d/%d] V%d %-8s %4d bytes: %10s %s\n' \
		${#total} "$n" "$total" "$v" "$b" "$s" "$x" "$unit" >&2
	echo "$b $s $v $r $x" >>"$results"
	if [ "$json" ]; then
		echo "${out%\}}, \"round\": $r}" >&3
	fi
done <<<"$runs"

# Of all rounds, the median. The speed is compared to that of V3 in the same
# round, which ran seconds before or after: 1.05 is 5 % faster than V3.
echo
echo "AF_PACKET on veth, $unit; (times the speed of V3)"
echo
awk -v versions="$versions" -v sizes="$sizes" -v benchmarks="$benchmarks" \
	-v inverse="${icount:-0}" '
function median(list, n,	i, j, t) {
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
			t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
		}
	return (list[int((n + 1) / 2)] + list[int(n / 2) + 1]) / 2
}
{
	val[$1, $2, $3, $4] = $5
	if ($4 > rounds)
		rounds = $4
}
END {
	nv = split(versions, V); ns = split(sizes, S); nb = split(benchmarks, B)
	printf "%-10s %6s", "", "bytes"
	for (v = 1; v <= nv; v++)
		printf "  %17s", "V" V[v]
	printf "\n"
	for (b = 1; b <= nb; b++) for (s = 1; s <= ns; s++) {
		printf "%-10s %6d", B[b], S[s]
		for (v = 1; v <= nv; v++) {
			for (r = 1; r <= rounds; r++) {
				x[r] = val[B[b], S[s], V[v], r]
				base = val[B[b], S[s], 3, r]
				if (base && x[r])
					q[r] = inverse ? base / x[r] : x[r] / base
			}
			ratio = base ? sprintf("%6.2f", median(q, rounds)) : "     -"
			printf "  %9.1f (%s)", median(x, rounds), ratio
		}
		printf "\n"
	}
}' "$results"
