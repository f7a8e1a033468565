# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# Shared by the guest tests. A test sources this, calls setup, reports each check with ok,
# not_ok or skip, and ends with finish.
#
# The guest has two XL710 ports that are wired to each other. setup puts one in
# each of two network namespaces, $NS0 and $NS1, with the names $IF0 and $IF1 and the
# addresses 10.71.0.1, 10.71.0.2 and fd71::1, fd71::2.
#
# XL710_SHORT=1 selects the short form. BUILD is the directory of the programs.

set -euo pipefail

NS0=xl0 NS1=xl1
IP0=10.71.0.1 IP1=10.71.0.2
IP60=fd71::1 IP61=fd71::2
SHORT=${XL710_SHORT:-}
FAILED=0
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BUILD=${BUILD:-$HERE/../../../build}
PIDS=()

ok() {
	echo "ok - $1"
}

not_ok() {
	echo "not ok - $1${2:+ # $2}"
	FAILED=1
}

skip() {
	echo "ok - $1 # SKIP $2"
}

# check NAME COMMAND...: ok if the command succeeds; prints its output if not. The test
# continues in either case.
check() {
	local name=$1 out

	shift
	if out=$("$@" 2>&1); then
		ok "$name"
		return
	fi
	not_ok "$name" "$*"
	tail -n 20 <<<"$out" | sed 's/^/# /'
}

n0() { ip netns exec $NS0 "$@"; }
n1() { ip netns exec $NS1 "$@"; }

# wait_for SECONDS COMMAND...: waits until it succeeds
wait_for() {
	local end=$((SECONDS + $1))

	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}


# PCI addresses of the XL710s, in the order of their slots
pci_ports() {
	local d

	for d in /sys/bus/pci/devices/*; do
		[ "$(cat "$d/vendor" "$d/device" | tr -d '\n')" = \
			0x80860x1583 ] && echo "${d##*/}"
	done
	return 0
}

port_netdev() {
	local d

	for d in /sys/bus/pci/devices/"$1"/net/*; do
		[ -e "$d" ] && echo "${d##*/}" && return
	done
	return 1
}

carrier() {
	[ "$(ip netns exec "$1" cat /sys/class/net/"$2"/carrier)" = "$3" ]
}

links_up() {
	ip netns exec $NS0 ip link show "$IF0" | grep LOWER_UP >/dev/null &&
		ip netns exec $NS1 ip link show "$IF1" | grep LOWER_UP >/dev/null
}

addresses() {
	n0 ip addr replace $IP0/24 dev "$IF0"
	n1 ip addr replace $IP1/24 dev "$IF1"
	n0 ip addr replace $IP60/64 dev "$IF0" nodad
	n1 ip addr replace $IP61/64 dev "$IF1" nodad
}

set_mtu() {
	n0 ip link set "$IF0" mtu "$1" && n1 ip link set "$IF1" mtu "$1" &&
		wait_for 10 links_up && addresses &&
		wait_for 10 n0 ping -q -c 1 -W 1 $IP1
}

setup() {
	local pci

	# not mapfile from a process substitution: /dev/fd may be missing
	IFS=' ' read -r -a pci <<<"$(pci_ports | tr '\n' ' ')"
	PCI0=${pci[0]:-} PCI1=${pci[1]:-}
	if [ -z "$PCI1" ]; then
		skip "${0##*/}" "needs two XL710 ports (NIC=xl710)"
		exit 0
	fi
	IF0=$(port_netdev "$PCI0") || IF0=
	IF1=$(port_netdev "$PCI1") || IF1=
	if [ -z "$IF0" ] || [ -z "$IF1" ]; then
		not_ok "${0##*/}" "no netdev on $PCI0 or $PCI1"
		exit 1
	fi
	trap teardown EXIT
	trap 'exit 1' INT TERM
	ip netns add $NS0
	ip netns add $NS1
	ip link set "$IF0" netns $NS0
	ip link set "$IF1" netns $NS1
	n0 ip link set lo up
	n1 ip link set lo up
	n0 ip link set "$IF0" up
	n1 ip link set "$IF1" up
	addresses
	DMESG_START=$(dmesg | wc -l)
	wait_for 10 links_up || {
		not_ok "${0##*/}" "the link does not come up"
		exit 1
	}
}

teardown() {
	local p

	set +e
	for p in "${PIDS[@]}"; do
		kill "$p"
	done
	n0 ip link set "$IF0" xdp off
	n1 ip link set "$IF1" xdp off
	n0 ip link set "$IF0" netns 1
	n1 ip link set "$IF1" netns 1
	ip netns del $NS0
	ip netns del $NS1
} 2>/dev/null

# Prints the warnings and errors in the log since setup, without data races: make test
# finds those of V4.
log_clean() {
	! dmesg | tail -n +$((DMESG_START + 1)) | grep -v 'BUG: KCSAN: data-race' |
		grep -E 'WARNING|BUG|Oops|Call Trace|Malicious|hung|NETDEV WATCHDOG|HMC error|unhandled interrupt|Tx timeout'
}

finish() {
	check "${0##*/}: nothing bad in the log" log_clean
	exit $FAILED
}

# stat NETNS DEV NAME: prints a counter of ethtool -S
stat() {
	ip netns exec "$1" ethtool -S "$2" |
		awk -v n="$3:" '$1 == n { print $2; f = 1 } END { exit !f }'
}
