#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build Debian's QEMU with the XL710 model of tools/testing/xl710/model.
#
# The result is kept under ${XDG_CACHE_HOME:-~/.cache}/tpacket4/qemu: the
# source, a configured build tree that later runs go on from, and one binary
# for each state of the model.

set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

usage()
{
	cat <<EOF
Usage: scripts/qemu.sh [--asan] [--print] [--clean]

Builds qemu-system-x86_64 with the XL710 model and prints where it is.

  --print   print nothing but the path on stdout (progress goes to stderr)
  --asan    build with AddressSanitizer and UndefinedBehaviorSanitizer
  --clean   forget source, build trees and binaries first
  --help    this text

Environment:
  JOBS             parallel jobs (default: all processors)
  XDG_CACHE_HOME   where the cache lives (default: ~/.cache)
EOF
}

say()
{
	echo "qemu.sh: $*" >&2
}

variant=plain
print=
clean=
while [ $# -gt 0 ]; do
	case $1 in
	--asan)		variant=asan ;;
	--print)	print=1 ;;
	--clean)	clean=1 ;;
	-h|--help)	usage; exit 0 ;;
	*)		usage >&2; die "unknown option $1" ;;
	esac
	shift
done

model=$TOP/tools/testing/xl710/model
cache=$CACHE/qemu
# the BIOS and the rest come with Debian's own packages
firmware=/usr/share/qemu:/usr/share/seabios

need_tools()
{
	local tool lib

	command -v apt-get >/dev/null ||
		skip "no apt: the source of QEMU is Debian's"
	for tool in dpkg-source gcc meson ninja pkg-config; do
		command -v "$tool" >/dev/null ||
			skip "$tool is missing: scripts/deps qemu installs it"
	done
	for lib in glib-2.0 pixman-1 libcap-ng libattr; do
		pkg-config --exists "$lib" || skip "the headers of $lib are" \
			"missing: scripts/deps qemu installs them"
	done
	[ -f /usr/share/seabios/bios-256k.bin ] ||
		die "the packages seabios and qemu-system-data are missing"
}

# Make a directory for the model known to the build of the given source. Not by
# a patch: QEMU 7.2 and 10.0 differ around these places.
hook_in()
{
	sed -i "s,^\( *\)'hw/net/can'\,\$,&\n\1'hw/net/xl710'\,," "$1/meson.build"
	echo "subdir('xl710')" >>"$1/hw/net/meson.build"
	echo 'source xl710/Kconfig' >>"$1/hw/net/Kconfig"
	grep -q hw/net/xl710 "$1/meson.build" ||
		die "QEMU $(cat "$1/VERSION") keeps its trace events elsewhere"
}

fetch()
{
	local sum

	sum=$(declare -f hook_in | sha256sum)
	[ "$(cat "$cache/src/.complete" 2>/dev/null)" != "$sum" ] || return 0
	fetch_source qemu "$cache/src"
	rm -rf "$cache"/build-*
	hook_in "$cache/src"
	echo "$sum" >"$cache/src/.complete"
}

# Copy what changed, so that ninja rebuilds no more than that
update_model()
{
	local dst=$cache/src/hw/net/xl710 f name

	mkdir -p "$dst"
	for f in "$model"/*; do
		name=${f##*/}
		cmp -s "$f" "$dst/$name" || cp "$f" "$dst/$name"
	done
	for f in "$dst"/*; do
		[ -e "$model/${f##*/}" ] || rm -f "$f"
	done
}

# The devices that scripts/vm and the tests of the model have, and no other: of
# QEMU's 1500 files, half
devices()
{
	cat <<EOF
CONFIG_Q35=y
CONFIG_XL710=y
CONFIG_VIRTIO_PCI=y
CONFIG_VIRTIO_9P=y
CONFIG_VIRTIO_NET=y
CONFIG_VIRTIO_RNG=y
CONFIG_SERIAL_ISA=y
CONFIG_PCIE_PORT=y
CONFIG_VTD=y
EOF
}

build()
{
	local dir=$cache/build-$variant opts=() cc=gcc
	local mak=$cache/src/configs/devices/x86_64-softmmu/tpacket4.mak

	if command -v ccache >/dev/null; then
		# one cache for all build trees
		export CCACHE_DIR=$CACHE/ccache CCACHE_NOHASHDIR=1
		# What is new is compiled at once, not preprocessed first.
		export CCACHE_DEPEND=1
		cc="ccache gcc"
	fi
	cmp -s <(declare -f build devices) "$dir/configured-by" ||
		rm -f "$dir/build.ninja"
	if [ ! -f "$dir/build.ninja" ]; then
		say "configuring"
		devices >"$mak"
		rm -rf "$dir"
		mkdir -p "$dir"
		# Newer ones find meson, and want none named
		! grep -q -- --meson= "$cache/src/configure" ||
			opts+=(--meson="$(command -v meson)")
		[ "$variant" != asan ] || opts+=(--enable-sanitizers)
		(cd "$dir" && "$cache/src/configure" --without-default-features \
			--target-list=x86_64-softmmu --enable-tcg \
			--without-default-devices --with-devices-x86_64=tpacket4 \
			--enable-virtfs --enable-attr --enable-cap-ng \
			--disable-debug-info \
			--firmwarepath="$firmware" --disable-install-blobs \
			--disable-werror --cc="$cc" \
			"${opts[@]}" >configure.log) || {
			tail -20 "$dir/configure.log" >&2
			rm -f "$dir/build.ninja"
			die "configure failed"
		}
		declare -f build devices >"$dir/configured-by"
	fi
	say "building with $JOBS jobs"
	if [ -t 2 ]; then
		ninja -C "$dir" -j"$JOBS" qemu-system-x86_64 >&2
	else
		ninja -C "$dir" -j"$JOBS" qemu-system-x86_64 >"$dir/ninja.log" ||
			{ tail -40 "$dir/ninja.log" >&2; die "build failed"; }
	fi
}

model_hash()
{
	(cd "$model" && cat -- * "$TOP/scripts/qemu.sh") | sha256sum |
		cut -c1-16
}

finish()
{
	touch "${bin%/*}"	# in use
	[ -n "$print" ] || say "QEMU $version with the XL710 model:"
	echo "$bin"
	exit 0
}

[ -z "$clean" ] || rm -rf "$cache"
mkdir -p "$cache"
# taken once: the model may be edited while this builds
hash=$(model_hash)
version=$(cat "$cache/src/VERSION" 2>/dev/null || echo none)
bin=$cache/bin/$version-$variant-$hash/qemu-system-x86_64
[ ! -x "$bin" ] || finish

need_tools
# one build at a time
exec 9>"$cache/lock"
flock 9
fetch
update_model
build
version=$(cat "$cache/src/VERSION")
bin=$cache/bin/$version-$variant-$hash/qemu-system-x86_64
mkdir -p "${bin%/*}.new"
cp "$cache/build-$variant/qemu-system-x86_64" "${bin%/*}.new/"
rm -rf "${bin%/*}"
mv "${bin%/*}.new" "${bin%/*}"
# Keep the last few states, and those that another clone may run just now.
find "$cache/bin" -mindepth 1 -maxdepth 1 -type d -name "*-$variant-*" \
	-printf '%T@ %p\n' | sort -rn | tail -n +4 | cut -d' ' -f2- |
	while read -r dir; do
		find "$dir" -maxdepth 0 -mtime +1 -exec rm -rf {} +
	done
finish
