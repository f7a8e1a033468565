# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Shared functions, sourced by the shell scripts.

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # used by those who source this
BUILD=$TOP/build
# A base other than the first has a directory of its own, as in lab/build/place.py.
[ "${BASE:-6.12}" = 6.12 ] || BUILD+=/$BASE
# Everything in the cache may be deleted at any time; it is created again.
# shellcheck disable=SC2034
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/tpacket4
# shellcheck disable=SC2034 # used by those who source this
JOBS=${JOBS:-$(nproc)}

note() {
	echo "$*" >&2
}

die() {
	note "${0##*/}: $*"
	exit 1
}

# elapsed SECONDS: prints 75 as 1:15
elapsed() {
	printf '%d:%02d' $(($1 / 60)) $(($1 % 60))
}

# on_exit COMMAND...: runs it when the script ends, also by a signal, after background
# jobs have been ended. Only the last command registered is run.
on_exit() {
	# Once it ends, a second signal does not keep it from tidying up. One that comes
	# as the trap of EXIT begins would, if its own trap only called exit.
	local tidy="trap '' HUP INT TERM; trap - EXIT; end_jobs;"

	tidy+=$(printf ' %q' "$@")
	# shellcheck disable=SC2064 # expanded now on purpose
	{
		trap "$tidy" EXIT
		trap "$tidy; exit 129" HUP
		trap "$tidy; exit 130" INT
		trap "$tidy; exit 143" TERM
	}
}

# child COMMAND...: runs it and returns its exit status, like a plain call. But bash runs
# traps only after a called command has returned; with this and on_exit, a signal ends
# this script and COMMAND at once.
child() {
	"$@" <&0 &
	wait $!
}

# Ends background jobs, the last one first, with their process groups, and waits for
# them. Scripts that they run end what they have started themselves.
end_jobs() {
	local pid _

	for pid in $(jobs -p | tac); do
		if kill -- "-$pid" 2>/dev/null; then
			for _ in {1..50}; do
				kill -0 -- "-$pid" 2>/dev/null || break
				sleep 0.1
			done
			kill -KILL -- "-$pid" 2>/dev/null || :
		else
			kill "$pid" 2>/dev/null || continue
		fi
		wait "$pid" 2>/dev/null || :
	done
}

# skip REASON: ends the script with the exit status of kselftest for a skipped test.
readonly SKIP=4
skip() {
	note "${0##*/}: skipped: $*"
	exit $SKIP
}

# Checks whether this output of apt or pip reports that there is no network.
says_no_network() {
	grep -qE "Could not (resolve|connect)|Temporary failure|Unable to connect|\
Cannot initiate the connection|Failed to establish|Network is unreachable|\
Connection (refused|timed out|failed)|from versions: none" "$1"
}

# Prints the code name of the machine's Debian suite.
codename() {
	(. /etc/os-release && echo "$VERSION_CODENAME")
}

# apt_lists DIR deb|deb-src [SED]: fetches package lists to DIR, with the machine's
# sources edited by the sed script. The machine's own lists are not changed.
apt_lists() {
	local apt=$1 type=$2 edit=${3:-} f n=0

	mkdir -p "$apt"/{sources.d,lists/partial,cache/archives/partial,get}
	for f in /etc/apt/sources.list.d/*.sources; do
		[ -f "$f" ] || continue
		n=$((n + 1))
		sed -e "s/^Types:.*/Types: $type/" -e "$edit" "$f" \
			>"$apt/sources.d/$n.sources"
	done
	for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ -f "$f" ] || continue
		n=$((n + 1))
		sed -n -e "$edit" -e "s/^deb\([[:space:]]\)/$type\1/p" "$f" \
			>"$apt/sources.d/$n.list"
	done
	LC_ALL=C own_apt "$apt" apt-get -qq -o APT::Update::Error-Mode=any \
		update 2>"$apt/log" || {
		cat "$apt/log" >&2
		note "some package lists could not be had; trying without them"
	}
}

# own_apt DIR COMMAND...: apt-get or apt-cache with the lists in DIR
own_apt() {
	local apt=$1

	shift
	"$1" -o Dir::Etc::sourcelist=/dev/null \
		-o Dir::Etc::sourceparts="$apt/sources.d" \
		-o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" \
		-o APT::Sandbox::User="$(id -un)" "${@:2}"
}

# fetch_package PACKAGE DIR [SUITE]: unpacks a binary package to DIR/root; the rest of DIR
# is for apt
fetch_package() {
	local package=$1 apt=$2 rename=''

	note "fetching the package $package"
	rm -rf "$apt"
	[ ! "${3:-}" ] || rename="s/\\b$(codename)\\b/$3/g"
	apt_lists "$apt" deb "$rename"
	(cd "$apt/get" && own_apt "$apt" apt-get -qq download "$package") >&2 || {
		[ ! -s "$apt/log" ] || skip "no network: cannot fetch $package"
		die "the package $package is not to be had"
	}
	dpkg-deb -x "$apt/get"/*.deb "$apt/root"
}

# fetch_source PACKAGE DIR [SUITE]: unpacks Debian's source package to DIR, that of the
# machine's own suite or of another one (trixie)
fetch_source() {
	local package=$1 dir=$2 apt=$2.apt rename='' version

	note "fetching the source package of $package"
	rm -rf "$apt"
	on_exit rm -rf "$apt"
	[ ! "${3:-}" ] || rename="s/\\b$(codename)\\b/$3/g"
	apt_lists "$apt" deb-src "$rename"
	# Versions that an archive lists but no longer has are passed over.
	for version in $(own_apt "$apt" apt-cache madison "$package" |
			 awk -F'|' '/Sources/ { print $2 }'); do
		note "trying version $version"
		if (cd "$apt/get" && own_apt "$apt" apt-get -qq source \
			--download-only "$package=$version") >&2; then
			break
		fi
		rm -f "$apt/get"/*
	done
	set -- "$apt/get"/*.dsc
	if [ ! -f "$1" ]; then
		[ ! -s "$apt/log" ] ||
			skip "no network: cannot fetch the source of $package"
		die "no version of the source package $package to be had"
	fi
	note "unpacking"
	dpkg-source --no-check -x "$1" "$apt/source" >/dev/null
	rm -rf "$dir"
	mv "$apt/source" "$dir"
	rm -rf "$apt"
}

# find_accel CPU: sets accel to QEMU's options for a machine, with this CPU where it is
# emulated, as ACCEL says (see lab/run/vm). Without ACCEL, KVM is only taken where the CPU
# has it: /dev/kvm may be there, and even make a VM, and still hang every kernel. It
# does so in guests whose host gives them no hardware virtualization.
#
# TCG hands out this machine's TSC. A guest that is kept waiting while it compares it
# with the PIT gets it wrong, once by a factor of 90. Where this machine is a guest
# itself, its TSC's rate is known: accel_append is a kernel argument that says it.
# shellcheck disable=SC2034 # both are for who calls this
find_accel() {
	accel_append=''
	if [ ! "${ACCEL:-}" ]; then
		ACCEL=tcg
		if grep -qwE 'vmx|svm' /proc/cpuinfo && [ -w /dev/kvm ]; then
			ACCEL=kvm
		fi
	fi
	case $ACCEL in
	tcg | tcg,thread=*)
		accel=(-accel "${ACCEL/%tcg/tcg,thread=multi}" -cpu "$1")
		grep -qsw hypervisor /proc/cpuinfo || return 0
		accel_append=tsc_early_khz=$(awk '/^cpu MHz/ {
			printf "%.0f", $4 * 1000; exit }' /proc/cpuinfo)
		;;
	kvm) accel=(-accel kvm -cpu host) ;;
	*) die "ACCEL=$ACCEL: must be kvm, tcg or tcg,thread=single" ;;
	esac
}

# virtio_wire [PROPERTIES]: sets wire to QEMU's options for two virtio_net devices with a
# wire between them. Not a hub, which changes the order of packets that had to wait; not
# what lets the sender wait: QEMU may not survive the reset of a queue then.
# shellcheck disable=SC2034
virtio_wire() {
	local net=127.$(($$ >> 16)).$(($$ >> 8 & 255)).$(($$ & 255)) at i

	wire=()
	for i in 0 1; do
		at="local.type=inet,local.host=$net,local.port=$((5000 + i))"
		at+=",remote.type=inet,remote.host=$net,remote.port=$((5001 - i))"
		wire+=(-netdev "dgram,id=wire$i,$at"
			-device "virtio-net-pci,id=vn$i,netdev=wire$i${1:-}")
	done
}

# foreign ARCH: gets what make test ARCH= needs, see lab/build/foreign; sets cross to
# the prefix of that compiler's programs, which are in PATH then, with the libraries
# of its assembler and linker.
# shellcheck disable=SC2034 # used by those who source this
foreign() {
	local usr=$CACHE/foreign-$1/cross/usr

	"$TOP/lab/build/foreign" "$1" || exit
	PATH=$usr/bin:$PATH
	LD_LIBRARY_PATH=$usr/lib/$(gcc -print-multiarch)
	export LD_LIBRARY_PATH
	cross=''
	case $1 in
	arm64) cross=aarch64-linux-gnu- ;;
	s390) cross=s390x-linux-gnu- ;;
	arm) cross=arm-linux-gnueabi- ;;
	esac
}
