#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The benchmarks of the AF_PACKET V4 paper on a veth pair: rxdrop, txpush, l2fwd
# with 64 packets in flight (l2fwd-64) and with one (l2fwd-1), and tcpdump, with
# packet sockets of V2, V3, V4 and V4 in zero-copy mode, and with AF_XDP. The pair
# is in a network namespace, which ends with this script. The versions take
# turns, so that a busy machine slows down all of them.
set -euo pipefail

usage()
{
	cat <<EOF
usage: ${0##*/} [options]

  --icount        the cost of a packet on one CPU instead of packets per second;
                  with "qemu -icount shift=0", a nanosecond is an instruction
  --list          print the commands, and run nothing
  --json FILE     also write each result of tpbench to FILE, one per line
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
  --seconds S     duration of a run (default: $seconds)
  --rounds N      runs of each benchmark (default: $rounds)
  --tpbench FILE  (default: tpbench in the directory of this script)

TCPDUMP_LIB=DIR     the directory of a libpcap with V4, for tcpdump
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
	--icount)
		icount=1
		rounds=1
		seconds=0.5
		# On one CPU, tcpdump and its sender would slow each other down.
		benchmarks=${benchmarks% tcpdump}
		;;
	--list) list=1 ;;
	--help|-h) usage; exit 0 ;;
	--json|--versions|--sizes|--benchmarks|--seconds|--rounds|--tpbench)
		[ $# -gt 1 ] || die "$1 needs a value"
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
	*) die "unknown option $1; see --help" ;;
	esac
	shift
done

# The names of the columns
declare -A name=(
	[2]="V2" [3]="V3" [4]="V4"
	[zc]="V4+ZC" [zc-busy]="V4+ZC busy"
	[shared]="V4+ZC shared" [shared-busy]="shared, busy"
	[xdp]="AF_XDP" [xdp-busy]="AF_XDP busy"
)
busy_us=20	# --busy-poll: only poll() uses the value
link=tp4A,tp4B

# Set cmd to the options that all runs of a version share. This starts no program,
# which would take long in an emulated machine.
set_version()	# version
{
	cmd=("$tpbench" -q -i "$link" -v)
	case $1 in
	2|3|4) cmd+=("$1") ;;
	zc) cmd+=(4 -z 0) ;;
	zc-busy) cmd+=(4 -z 0 -B "$busy_us") ;;
	shared) cmd+=(4 -z 0 --shared) ;;
	shared-busy) cmd+=(4 -z 0 --shared -B "$busy_us") ;;
	xdp) cmd+=(xdp) ;;
	xdp-busy) cmd+=(xdp -B "$busy_us") ;;
	*) die "unknown version $1" ;;
	esac
	# One CPU cannot spin and send at the same time.
	if [ "$icount" ] || [ "$cpus" = 1 ]; then
		cmd+=(--lockstep)
	fi
}

# Set cmd to the command of one run: tpbench, or tcpdump. For tcpdump, also set
# sender to the command of the sender, which is the fastest one for all versions.
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
		sender=("$tpbench" -q -i "${link%,*}" -v 4 -z 0 --txpush -s "$2"
			--duration 600)
		return
	fi
	set_version "$3"
	cmd+=(-s "$2")
	case $1 in
	rxdrop) cmd+=(--rxdrop) ;;
	txpush) cmd+=(--txpush) ;;
	l2fwd-64) cmd+=(--veth 64) ;;
	# A V3 packet waits for a timer: the usual warm-up would take a minute.
	l2fwd-1) cmd+=(--veth 1 --warmup 16) ;;
	*) die "unknown benchmark $1" ;;
	esac
	if [ -z "$icount" ]; then
		cmd+=(--duration "$seconds")
		return
	fi
	# With V3, half a second of waiting is enough.
	case $1 in
	l2fwd-1) cmd+=(--count 16384 --duration 0.5) ;;
	*) cmd+=(--count 65536) ;;
	esac
}

cpus=$(nproc)

# Print the reason why tcpdump is not run with a version, if there is one
no_tcpdump()	# version
{
	if ! command -v tcpdump >/dev/null; then
		echo "no tcpdump"
	elif [ "$1" != 3 ] && [ ! -e "${TCPDUMP_LIB:-}/libpcap.so.0.8" ]; then
		echo "no libpcap with V4 in TCPDUMP_LIB"
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

# One line per run: round, benchmark, size, version
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

# Run again in a new network namespace, whose devices are in /sys.
if [ -z "${BENCH_ALL_NETNS-}" ]; then
	[ "$(id -u)" = 0 ] || die "needs root (raw sockets)"
	BENCH_ALL_NETNS=1 exec unshare --net --mount "$0" "${args[@]}"
fi
mount -t sysfs none /sys

results=$(mktemp)
log=$(mktemp)
# Ctrl-C also sends SIGINT to tpbench, which ends.
trap 'kill $(jobs -p) 2>/dev/null || :; rm -f "$results" "$log"' EXIT
trap 'exit 130' INT TERM

ip link add tp4A type veth peer name tp4B ||
	die "cannot create a veth pair (CONFIG_VETH?)"
for i in tp4A tp4B; do
	# No packets of neighbour discovery
	if [ -e "/proc/sys/net/ipv6/conf/$i/disable_ipv6" ]; then
		echo 1 >"/proc/sys/net/ipv6/conf/$i/disable_ipv6"
	fi
	ip link set "$i" up
done

if [ "$icount" ]; then
	unit="ns (instructions) per packet"
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

# Defer interrupts for a busy poller, for so many nanoseconds between two polls
# (Documentation/networking/napi.rst). Other programs would wait for that long.
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

# tcpdump prints its number of packets on SIGUSR1: set count to it, and at to the
# time in microseconds.
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

# Run tcpdump (cmd) and sender, and set x to the captured packets per second
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

# Run tpbench (cmd), and set out to its result. On a busy machine, a run can end before
# the first packet has arrived.
run_tpbench()
{
	local try

	for try in 1 2 3; do
		if out=$("${cmd[@]}" </dev/null); then
			return
		fi
		[[ $out == *'"packets": 0,'* ]] || break
		echo "no packets in $seconds s: run $try of 3" >&2
	done
	die "failed: ${cmd[*]}"
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
	run_tpbench
	[[ $out =~ \"$field\":\ ([0-9.e+]+) ]] || die "no result in: $out"
	x=${BASH_REMATCH[1]}
	if [ -z "$icount" ]; then
		x=$(kpps "$x")
	fi
	result "$r" "$b" "$s" "$v" "$x"
	# The cost of the tap: rxdrop, less the same without a socket
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

# table HEADING VERSIONS BENCHMARKS [BASE]: prints the median of all rounds, and with BASE
# the ratio of that median to BASE's in the same row, 1.05 being 5 % faster. The last
# column is the spread of the row: the largest distance of a round from its median.
# Without BASE, the last columns are the ratios of zero-copy mode to AF_XDP. A line
# below the table gives the reason for each ratio below 1, and for each large spread.
table()
{
	echo
	echo "$1"
	echo
	awk -v versions="$2" -v benchmarks="$3" -v base="${4-}" -v sizes="$sizes" \
		-v inverse="${icount:-0}" -v names="$(for v in $2; do
			echo "$v ${name[$v]}"
		done)" '
	function load(bench, size, v,	r, n, i, t, x) {
		n = 0
		for (r = 1; r <= rounds; r++)
			if (val[bench, size, v, r])
				x[++n] = val[bench, size, v, r]
		if (!n || (bench == "l2fwd-1" && v == 3))
			return 0
		for (r = 2; r <= n; r++)
			for (i = r; i > 1 && x[i - 1] > x[i]; i--) {
				t = x[i]
				x[i] = x[i - 1]
				x[i - 1] = t
			}
		low = x[1]
		high = x[n]
		return (x[int((n + 1) / 2)] + x[int(n / 2) + 1]) / 2
	}
	function spread(median) {
		t = high - median > median - low ? high - median : median - low
		return 100 * t / median
	}
	function note(bench, size, v, text) {
		notes[++n_notes] = sprintf("  %s, %d bytes, %s: %s", bench,
					   size, N[v], text)
	}
	function reason(bench, v, over) {
		if (over == 3 && bench == "rxdrop" && v ~ /zc|shared/)
			return "the peer is a network stack, which wakes the" \
			       " receiver for each packet"
		if (over == 3 && bench == "tcpdump" && v == 4)
			return "V4 wakes tcpdump for a packet, V3 for a block"
		return "no reason is known"
	}
	# The ratio of version v to that of over, with a reason if it is slower
	function ratio(bench, size, v, over,	x, y, q, low_x, high_x) {
		x = load(bench, size, v)
		low_x = low
		high_x = high
		y = load(bench, size, over)
		if (!x || !y)
			return ""
		q = sprintf("%.2f", inverse ? y / x : x / y)
		if (v == 2)
			return q
		if (q + 0 < 1 && low_x <= high && low <= high_x && rounds > 1)
			note(bench, size, v, q " of " N[over] \
			     ", but single rounds overlap")
		else if (q + 0 < 1)
			note(bench, size, v, q " of " N[over] ": " \
			     reason(bench, v, over))
		return q
	}
	function cell(bench, size, v,	x, q, s) {
		x = load(bench, size, v)
		if (!x)
			return ""
		s = spread(x)
		if (s > worst)
			worst = s
		if (s > 25)
			note(bench, size, v, sprintf("%.1f to %.1f: %s", low,
			     high, v == 3 && bench ~ /l2fwd/ ? \
			     "a block that is not full waits for its timer" : \
			     "some rounds were disturbed"))
		q = base && v != base ? ratio(bench, size, v, base) : ""
		return sprintf("%.1f %6s", x, q ? "(" q ")" : "")
	}
	{
		val[$1, $2, $3, $4] = $5
		if ($4 > rounds)
			rounds = $4
	}
	END {
		nv = split(versions, V)
		for (n = split(names, line, "\n"); n; n--) {
			v = line[n]
			sub(" .*", "", v)
			N[v] = line[n]
			sub("[^ ]* ", "", N[v])
		}
		ns = split(sizes, S)
		nb = split(benchmarks, B)
		peer = !base && versions ~ /zc.*xdp/
		busy = !base && versions ~ /zc-busy.*xdp-busy/
		printf "%-8s %5s", "", "bytes"
		for (v = 1; v <= nv; v++)
			printf "  %16s", N[V[v]] (base ? "       " : "")
		if (peer)
			printf "  %8s", "ZC / XDP"
		if (busy)
			printf "  %10s", "both busy"
		print (rounds > 1 ? "  spread" : "")
		for (b = 1; b <= nb; b++) for (s = 1; s <= ns; s++) {
			worst = 0
			printf "%-8s %5d", B[b], S[s]
			for (v = 1; v <= nv; v++)
				printf "  %16s", cell(B[b], S[s], V[v])
			if (peer)
				printf "  %8s",
				       ratio(B[b], S[s], "zc", "xdp")
			if (busy)
				printf "  %10s",
				       ratio(B[b], S[s], "zc-busy", "xdp-busy")
			if (rounds > 1)
				printf "  %4.0f %%", worst
			print ""
		}
		for (n = 1; n <= n_notes; n++)
			print (n > 1 ? notes[n] : "\n" notes[n])
	}' "$results"
}

# measured "VERSION...": prints those that are measured
measured()
{
	local v

	for v in $1; do
		[[ " $versions " != *" $v "* ]] || echo "$v"
	done | xargs
}

table "On veth, $unit, and the ratio to V3" "$(measured "2 3 4 zc shared")" \
	"${benchmarks/rxdrop/rxdrop ${icount:+socket}}" 3
table "On veth, $unit, with AF_XDP in copy mode" \
	"$(measured "zc zc-busy shared shared-busy xdp xdp-busy")" \
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
[ ! "$icount" ] || echo "socket: rxdrop, less the same without a socket."
if [[ " $benchmarks " = *" tcpdump "* ]]; then
	set_cmd tcpdump BYTES 3
	echo "tcpdump: ${cmd[*]} | cat >/dev/null"
	echo "from ${sender[*]##*/}"
fi
