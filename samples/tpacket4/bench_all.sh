#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The benchmarks of the AF_PACKET V4 paper on a veth pair: rxdrop, txpush, l2fwd
# with 64 packets in flight (l2fwd-64) and with one (l2fwd-1), and tcpdump, by
# packet sockets of V2, V3, V4 and V4 in zero-copy mode, and by AF_XDP. The pair
# lives in a network namespace of our own, which goes away with us. All take
# turns, so that what disturbs the machine disturbs all of them.
set -euo pipefail

usage()
{
	cat <<EOF
usage: ${0##*/} [options]

  --demo          short: 3 rounds of half a second
  --icount        the cost of a packet on one CPU instead of packets a second;
                  in "qemu -icount shift=0" a nanosecond is an instruction
  --list          say what would be run, and stop
  --json FILE     write all results of tpbench there as well, a line each
  --versions "V"  of 2 3 4, and
                  zc           V4 in zero-copy mode
                  zc-busy      the same, busy polling
                  shared       the same, both ends of l2fwd share an area
                  shared-busy  both
                  xdp          AF_XDP, native, copy mode
                  xdp-busy     the same, busy polling
                  (default: "$versions")
  --sizes "S"     bytes a packet (default: "$sizes")
  --benchmarks "B" of rxdrop txpush l2fwd-64 l2fwd-1, and tcpdump, without
                  --icount (default: all)
  --seconds S     each time (default: $seconds)
  --rounds N      of everything (default: $rounds)
  --tpbench FILE  (default: tpbench beside this script)

The libpcap of tcpdump for V4 is in the directory that TCPDUMP_LIB names.
EOF
}

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

here=$(dirname "$(readlink -f "$0")")
versions="2 3 4 zc zc-busy shared shared-busy xdp xdp-busy"
sizes="64 1500"
benchmarks="rxdrop txpush l2fwd-64 l2fwd-1 tcpdump"
seconds=2
rounds=5
json=
icount=
list=
tpbench=$here/tpbench
args=("$@")

while [ $# -gt 0 ]; do
	case $1 in
	--demo)
		seconds=0.5
		rounds=3
		;;
	--icount)
		icount=1
		rounds=1
		seconds=0.5
		# On one CPU, it and a sender are in each other's way.
		benchmarks=${benchmarks% tcpdump}
		;;
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

# How a column is called
declare -A name=(
	[2]="V2" [3]="V3" [4]="V4"
	[zc]="V4+ZC" [zc-busy]="V4+ZC busy"
	[shared]="V4+ZC shared" [shared-busy]="shared, busy"
	[xdp]="AF_XDP" [xdp-busy]="AF_XDP busy"
)
busy_us=20	# --busy-poll: the time matters to poll() only
link=tp4A,tp4B

# Set cmd to what all runs of a version have in common. No program is started
# to do so: each one takes long in an emulated machine.
set_version()	# version
{
	cmd=("$tpbench" -q -i "$link" -v)
	case $1 in
	2|3|4) cmd+=("$1") ;;
	zc) cmd+=(4 -z 1) ;;
	zc-busy) cmd+=(4 -z 1 -B "$busy_us") ;;
	shared) cmd+=(4 -z 1 --shared) ;;
	shared-busy) cmd+=(4 -z 1 --shared -B "$busy_us") ;;
	xdp) cmd+=(xdp) ;;
	xdp-busy) cmd+=(xdp -B "$busy_us") ;;
	*) die "no version is called '$1'" ;;
	esac
	# One CPU cannot spin and send at the same time.
	if [ "$icount" ] || [ "$cpus" = 1 ]; then
		cmd+=(--lockstep)
	fi
}

# Set cmd to the command of one run of tpbench, or to that of tcpdump and sender
# to that of the sender, which is the same for all of them: the quickest one.
set_cmd()	# benchmark, size, version
{
	if [ "$1" = tcpdump ]; then
		cmd=(tcpdump -Z root -w - -i "${link#*,}")
		case $3 in
		4) cmd=(env "LD_LIBRARY_PATH=$TCPDUMP_LIB" "${cmd[@]}") ;;
		zc)
			cmd=(env "LD_LIBRARY_PATH=$TCPDUMP_LIB" "${cmd[@]}")
			cmd[-1]=zc:${cmd[-1]}
			;;
		esac
		sender=("$tpbench" -q -i "${link%,*}" -v 4 -z 1 --txpush -s "$2"
			--duration 600)
		return
	fi
	set_version "$3"
	cmd+=(-s "$2")
	case $1 in
	rxdrop) cmd+=(--rxdrop) ;;
	txpush) cmd+=(--txpush) ;;
	l2fwd-64) cmd+=(--veth 64) ;;
	# A V3 packet takes a timer tick: with the usual warm-up, a minute.
	l2fwd-1) cmd+=(--veth 1 --warmup 16) ;;
	*) die "no benchmark is called '$1'" ;;
	esac
	if [ -z "$icount" ]; then
		cmd+=(--duration "$seconds")
		return
	fi
	# V3 again; half a second of waiting is enough.
	case $1 in
	l2fwd-1) cmd+=(--count 16384 --duration 0.5) ;;
	*) cmd+=(--count 65536) ;;
	esac
}

cpus=$(nproc)

# Why tcpdump is not run with a version, if so
no_tcpdump()	# version
{
	if ! command -v tcpdump >/dev/null; then
		echo "no tcpdump"
	elif [ "$1" != 3 ] && [ ! -e "${TCPDUMP_LIB:-}/libpcap.so.0.8" ]; then
		echo "TCPDUMP_LIB does not say where a libpcap with V4 is"
	fi
}

for v in $versions; do
	case " $benchmarks ,$v" in
	*" tcpdump ",[34] | *" tcpdump ",zc)
		why=$(no_tcpdump "$v")
		[ ! "$why" ] || echo "skipped: tcpdump, ${name[$v]}: $why" >&2
		;;
	esac
done

# A line a run: round, benchmark, size, version
runs=$(for ((r = 1; r <= rounds; r++)); do
	for b in $benchmarks; do
		for s in $sizes; do
			for v in $versions; do
				case $b,$v in
				l2fwd-*) ;;
				tcpdump,3|tcpdump,4|tcpdump,zc)
					[ ! "$(no_tcpdump "$v")" ] || continue
					;;
				tcpdump,*|*,shared*|*,*-busy) continue ;;
				esac
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
if [[ $versions == *xdp* && $(ldd "$tpbench") != *libxdp* ]]; then
	echo "this tpbench has no AF_XDP (package libxdp-dev)" >&2
	runs=$(grep -v ' xdp' <<<"$runs")
fi

# Once more, in a network namespace of our own, whose devices /sys shows.
if [ -z "${BENCH_ALL_NETNS-}" ]; then
	[ "$(id -u)" = 0 ] || die "needs root (raw sockets)"
	BENCH_ALL_NETNS=1 exec unshare --net --mount "$0" "${args[@]}"
fi
mount -t sysfs none /sys

results=$(mktemp)
log=$(mktemp)
# tpbench gets the SIGINT of a Ctrl-C as well, and ends.
trap 'kill $(jobs -p) 2>/dev/null || :; rm -f "$results" "$log"' EXIT
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

result()	# round, benchmark, size, version, number
{
	printf '[%*d/%d] %-14s %-8s %4d bytes: %10s %s\n' \
		${#total} "$n" "$total" "${name[$4]}" "$2" "$3" "$5" "$unit" >&2
	echo "$2 $3 $4 $1 $5" >>"$results"
}

# What who polls wants of the devices (Documentation/networking/napi.rst): to
# be left alone for so many nanoseconds between two polls. Who does not poll
# would wait for that long.
deferred=0
defer()		# version
{
	local ns=0 i

	case $1 in
	*-busy) ns=200000 ;;
	esac
	if [ "$ns" != "$deferred" ]; then
		for i in tp4A tp4B; do
			echo $((ns ? 2 : 0)) \
				>"/sys/class/net/$i/napi_defer_hard_irqs"
			echo "$ns" >"/sys/class/net/$i/gro_flush_timeout"
		done
		deferred=$ns
	fi
}

# kpps PPS
kpps()
{
	printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000))
}

# tcpdump tells how many it has seen when it gets SIGUSR1: set count to that,
# and at to when it was, in microseconds.
captured()	# pid
{
	local said=

	: >"$log"
	kill -USR1 "$1" || die "tcpdump has ended: $(cat "$log")"
	until [[ $said =~ ([0-9]+)\ packets?\ captured ]]; do
		sleep 0.01
		said=$(<"$log")
	done
	at=${EPOCHREALTIME/./}
	count=${BASH_REMATCH[1]}
}

# Set x to the packets a second that tcpdump gets: cmd, from sender
run_tcpdump()
{
	local first since pid

	: >"$log"
	if [ "$cpus" -gt 1 ]; then
		cmd=(taskset -c 0 "${cmd[@]}")
		sender+=(-c 1)
	fi
	"${cmd[@]}" 2>>"$log" > >(exec cat >/dev/null) &
	pid=$!
	until grep -q '^tcpdump: listening' "$log"; do
		kill -0 $pid 2>/dev/null || die "${cmd[*]}: $(cat "$log")"
		sleep 0.1
	done
	"${sender[@]}" >/dev/null </dev/null &
	count=0
	until [ "$count" -gt 0 ]; do
		kill -0 $! 2>/dev/null || die "failed: ${sender[*]}"
		captured $pid
	done
	captured $pid
	first=$count since=$at
	sleep "$seconds"
	captured $pid
	x=$(((count - first) * 1000000 / (at - since)))
	kill -INT $! $pid
	wait $! $pid || die "failed: ${cmd[*]}: $(cat "$log")"
}

while read -r r b s v; do
	n=$((n + 1))
	defer "$v"
	set_cmd "$b" "$s" "$v"
	if [ "$b" = tcpdump ]; then
		run_tcpdump
		result "$r" "$b" "$s" "$v" "$(kpps "$x")"
		continue
	fi
	out=$("${cmd[@]}" </dev/null) || die "failed: ${cmd[*]}"
	[[ $out =~ \"$field\":\ ([0-9.e+]+) ]] || die "not a result: $out"
	x=${BASH_REMATCH[1]}
	if [ -z "$icount" ]; then
		x=$(kpps "$x")
	fi
	result "$r" "$b" "$s" "$v" "$x"
	# What a tap costs is what rxdrop costs less the same without a socket.
	if [ "$icount" ] && [[ $b,$v =~ ^rxdrop,[234]$ ]] &&
		[[ $out =~ \"generator_ns_per_packet\":\ ([0-9.e+]+) ]]; then
		awk -v a="$x" -v b="${BASH_REMATCH[1]}" -v s="$s" -v v="$v" \
			-v r="$r" 'BEGIN { print "socket", s, v, r, a - b }' \
			>>"$results"
	fi
	if [ "$json" ]; then
		echo "${out%\}}, \"round\": $r}" >&3
	fi
done <<<"$runs"

# Of all rounds, the median. Speeds are compared in the same round, that is,
# with what ran seconds before or after: 1.05 is 5 % faster.
table()		# version to compare with, versions, benchmarks
{
	awk -v base="$1" -v versions="$2" -v benchmarks="$3" -v sizes="$sizes" \
		-v inverse="${icount:-0}" -v names="$(for v in $2; do
			echo "${name[$v]}"
		done)" '
	function median(list, n,	i, j, t) {
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
				t = list[j]
				list[j] = list[j - 1]
				list[j - 1] = t
			}
		return (list[int((n + 1) / 2)] + list[int(n / 2) + 1]) / 2
	}
	# How much faster a is than b
	function ratio(bench, size, a, b,	r, n, x, y, q) {
		for (r = 1; r <= rounds; r++) {
			x = val[bench, size, a, r]
			y = val[bench, size, b, r]
			if (x && y)
				q[++n] = inverse ? y / x : x / y
		}
		return n ? sprintf("%.2f", median(q, n)) : "-"
	}
	function cell(bench, size, v,	r, n, x, q) {
		for (r = 1; r <= rounds; r++)
			if (val[bench, size, v, r])
				x[++n] = val[bench, size, v, r]
		if (!n)
			return "-       "
		# V3 may read a packet when its timer has closed the block.
		q = ratio(bench, size, v, base)
		if (inverse && bench == "l2fwd-1") {
			if (v == 3)
				return "by its timer "
			if (base == 3)
				q = "-"
		}
		return sprintf("%.1f (%4s)", median(x, n), q)
	}
	{
		val[$1, $2, $3, $4] = $5
		if ($4 > rounds)
			rounds = $4
	}
	END {
		nv = split(versions, V)
		split(names, N, "\n")
		peer = versions ~ /zc.*xdp/
		ns = split(sizes, S)
		nb = split(benchmarks, B)
		printf "%-8s %5s", "", "bytes"
		for (v = 1; v <= nv; v++)
			printf "  %15s", N[v]
		if (peer)
			printf "  %15s", "ZC / XDP, busy"
		printf "\n"
		for (b = 1; b <= nb; b++) for (s = 1; s <= ns; s++) {
			printf "%-8s %5d", B[b], S[s]
			for (v = 1; v <= nv; v++)
				printf "  %15s", cell(B[b], S[s], V[v])
			if (peer)
				printf "  %8s, %5s",
				       ratio(B[b], S[s], "zc", "xdp"),
				       ratio(B[b], S[s], "zc-busy", "xdp-busy")
			printf "\n"
		}
	}' "$results"
}

# those of a list that are measured
measured()
{
	local v

	for v in $1; do
		[[ " $versions " != *" $v "* ]] || echo "$v"
	done | xargs
}

echo
echo "On veth, $unit; (times the speed of V3)"
echo
table 3 "$(measured "2 3 4 zc shared")" \
	"${benchmarks/rxdrop/rxdrop ${icount:+socket}}"
echo
echo "The same beside AF_XDP in copy mode, $unit; (times the speed of V2)"
echo
table 2 "$(measured "zc zc-busy shared shared-busy xdp xdp-busy")" \
	"${benchmarks/tcpdump/}"
echo
for v in $versions; do
	grep -q " $v " "$results" || continue
	set_version "$v"
	printf '%-14s %s\n' "${name[$v]}" "${cmd[*]##*/}"
done
cat <<EOF
tpbench: -s BYTES, and --rxdrop, --txpush, --veth 64 (l2fwd-64) or --veth 1
(l2fwd-1).
EOF
[ ! "$icount" ] || echo "socket: rxdrop, less the same if nobody receives."
if [[ " $benchmarks " = *" tcpdump "* ]]; then
	set_cmd tcpdump BYTES 3
	echo "tcpdump: ${cmd[*]} | cat >/dev/null"
	echo "from ${sender[*]##*/}"
fi
