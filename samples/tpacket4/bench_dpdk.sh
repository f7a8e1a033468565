#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The ping-pong of "tpbench --veth N" by a program that is not ours: two
# processes of DPDK's testpmd, one at either end of a veth pair, each sending
# back what it receives, MAC addresses swapped. The first one begins with a
# burst of N packets. Prints benchmark, bytes and packets a second through the
# first process, a line each.
set -euo pipefail

usage()
{
	cat <<EOF
usage: ${0##*/} -i IF,PEER [options]

  --port P         xdp       AF_XDP, native, copy mode (default)
                   xdp-busy  the same, busy polling
                   packet    AF_PACKET V2
  --benchmarks "B" of l2fwd-64 l2fwd-1 (default: both)
  --sizes "S"      bytes a packet (default: "64 1500")
  --seconds S      each time (default: 1)
  --cpus A,B       CPUs of the two processes (default: 0,1)
  --lockstep       both ends in one process, on one CPU, in turns
  --list           say what would be run, and stop
EOF
}

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

interfaces=
port=xdp
benchmarks="l2fwd-64 l2fwd-1"
sizes="64 1500"
seconds=1
cpus=0,1
lockstep=
list=
while [ $# -gt 0 ]; do
	case $1 in
	--lockstep) lockstep=1 ;;
	--list) list=1 ;;
	--help|-h) usage; exit 0 ;;
	-i|--port|--benchmarks|--sizes|--seconds|--cpus)
		[ $# -gt 1 ] || die "$1 wants a value"
		case $1 in
		-i) interfaces=$2 ;;
		--port) port=$2 ;;
		--benchmarks) benchmarks=$2 ;;
		--sizes) sizes=$2 ;;
		--seconds) seconds=$2 ;;
		--cpus) cpus=$2 ;;
		esac
		shift
		;;
	*) die "what is '$1'? See --help" ;;
	esac
	shift
done
[[ $interfaces == *,* ]] || die "both ends, please: -i IF,PEER"
ends=("${interfaces%,*}" "${interfaces#*,}")

# vdev END: DPDK's device for one end
vdev()
{
	local xdp="net_af_xdp$1,iface=${ends[$1]},start_queue=0,queue_count=1"

	case $port in
	xdp) echo "$xdp,force_copy=1,busy_budget=0" ;;
	xdp-busy) echo "$xdp,force_copy=1,busy_budget=64" ;;
	packet) echo "net_af_packet$1,iface=${ends[$1]},qdisc_bypass=1" ;;
	*) die "no port is called '$port'" ;;
	esac
}

# Set cmd to the command of process NUMBER, of the given devices.
set_cmd()
{
	local n=$1 cpu

	cpu=$(cut -d , -f $((n + 1)) <<<"$cpus")
	shift
	cmd=(dpdk-testpmd --no-huge --no-pci -m 128 --no-telemetry --no-shconf
		--file-prefix="bench$n" --lcores "0@$cpu,1@$cpu"
		"${@/#/--vdev=}" -- --interactive --forward-mode=macswap
		--nb-cores=1 --port-topology=loop --total-num-mbufs=8192
		--no-mlockall --no-lsc-interrupt --no-flush-rx)
}

if [ "$lockstep" ]; then
	processes=1
	set_cmd 0 "$(vdev 0)" "$(vdev 1)"
	cmds=("${cmd[*]}")
else
	processes=2
	cmds=()
	for n in 0 1; do
		set_cmd "$n" "$(vdev "$n")"
		cmds+=("${cmd[*]}")
	done
fi
if [ "$list" ]; then
	printf '%s\n' "${cmds[@]}"
	exit 0
fi
command -v dpdk-testpmd >/dev/null || die "no dpdk-testpmd (package dpdk-dev)"

pids=()
tmp=$(mktemp -d)

# shellcheck disable=SC2317 # called by trap
cleanup()
{
	[ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || :
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# tell NUMBER COMMAND...
tell()
{
	local n=$1

	shift
	printf '%s\n' "$@" >"$tmp/in$n"
}

# wait_log NUMBER COUNT TEXT: until it has said so, so often
wait_log()
{
	local i

	for ((i = 0; i < 600; i++)); do
		[ "$(grep -c -- "$3" "$tmp/log$1" || :)" -lt "$2" ] || return 0
		kill -0 "${pids[$1]}" 2>/dev/null || break
		sleep 0.1
	done
	tail -n 20 "$tmp/log$1" >&2
	die "testpmd does not say '$3'"
}

# Every "stop" is answered with a "Done."
stops=(0 0)
stop()
{
	tell "$1" stop
	stops[$1]=$((stops[$1] + 1))
	wait_log "$1" "${stops[$1]}" '^Done\.$'
}

# Put so many packets, of so many bytes, on their way.
serve()
{
	if [ "$lockstep" ]; then
		# One end alone, or both would begin with a burst.
		tell 0 "set burst $1" "set txpkts $2" "set portlist 0" \
			"start tx_first"
		sleep 0.1
		stop 0
		tell 0 "set portlist 0,1" start
	else
		tell 1 "set burst $1" start
		tell 0 "set burst $1" "set txpkts $2" "start tx_first"
	fi
}

# Take them off: what is left would go round with the next ones.
drain()
{
	local n

	for ((n = 0; n < processes; n++)); do
		stop "$n"
		tell "$n" "set fwd rxonly" start
	done
	sleep 0.1
	for ((n = 0; n < processes; n++)); do
		stop "$n"
		tell "$n" "set fwd macswap"
	done
}

# AF_XDP's packet buffers are locked memory.
ulimit -l unlimited
for ((n = 0; n < processes; n++)); do
	mkfifo "$tmp/in$n"
	: >"$tmp/log$n"
	read -ra cmd <<<"${cmds[$n]}"
	# libxdp's dispatcher would want type information of the kernel's.
	# What is said must be in the log at once. A fifo that is open both
	# ways never ends.
	LIBXDP_SKIP_DISPATCHER=1 stdbuf -oL "${cmd[@]}" \
		<>"$tmp/in$n" >"$tmp/log$n" 2>&1 &
	pids+=($!)
done
for ((n = 0; n < processes; n++)); do
	wait_log "$n" 1 'testpmd>'
done

asked=0
for b in $benchmarks; do
	for s in $sizes; do
		serve "${b#l2fwd-}" "$s"
		sleep "$seconds"
		# The rate since it was asked last
		tell 0 "show port stats 0"
		sleep "$seconds"
		tell 0 "show port stats 0"
		asked=$((asked + 2))
		wait_log 0 "$asked" 'Tx-pps:'
		pps=$(awk '/Rx-pps:/ { pps = $2 } END { print pps }' \
			"$tmp/log0")
		[ "${pps:-0}" -gt 0 ] || die "$port: $b: no packet came back"
		echo "$b $s $pps"
		drain
	done
done

for ((n = 0; n < processes; n++)); do
	tell "$n" quit
done
wait "${pids[@]}"
pids=()
