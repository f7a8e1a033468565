#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Checks that the files of "make install" are sufficient to build the example, and
# that the manual page and the shared object have all functions of the headers.
# HEADERS is the directory of the kernel's user-space API.

set -euo pipefail
cd "$(dirname "$0")/.."

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
make -s install DESTDIR="$dir" PREFIX=/opt/tp4 HEADERS="$HEADERS"
(cd "$dir" && find . -type f) | sort >"$dir.list"
mv "$dir.list" "$dir/got"
cat >"$dir/want" <<'LIST'
./opt/tp4/include/tpacket4.h
./opt/tp4/include/tpacket4/linux/if_packet.h
./opt/tp4/include/tpacket4_device.h
./opt/tp4/share/doc/tpacket4/README.md
./opt/tp4/share/doc/tpacket4/examples/capture.c
./opt/tp4/share/man/man7/tpacket4.7
./opt/tp4/share/pkgconfig/tpacket4.pc
LIST
diff "$dir/want" "$dir/got"

# The manual page must list all functions of the headers except internal ones.
diff <(cat tpacket4.h tpacket4_device.h | grep -oE '\btp4_[a-z_]+\(' | sort -u) \
	<(sed -n '/^\.SH SYNOPSIS/,/^\.SH DESC/p' tpacket4.7 |
		grep -oE '\btp4_[a-z_]+\(' | sort -u)
make -s install-shared OUTPUT="$dir" DESTDIR="$dir" PREFIX=/opt/tp4 \
	HEADERS="$HEADERS"
diff <(sed -nE 's/^TP4_API .*\b(tp4_[a-z_]+)\(.*/\1/p' tpacket4.h \
	tpacket4_device.h libtpacket4.c | sort -u) \
	<(nm -D --defined-only "$dir/opt/tp4/lib/libtpacket4.so" |
		sed -n 's/.* T \(tp4_[a-z_]*\)@@TPACKET4_.*/\1/p' | sort -u)
if command -v groff >/dev/null; then
	! groff -man -ww -z tpacket4.7 2>&1 | grep . || exit 1
else
	echo "skipped: no groff to check the manual page with"
fi

if ! command -v pkg-config >/dev/null; then
	echo "skipped: no pkg-config to build the example with"
	exit
fi
export PKG_CONFIG_PATH=$dir/opt/tp4/share/pkgconfig
version=$(printf '#include <tpacket4.h>\n%s %s\n' TP4_VERSION_MAJOR \
	TP4_VERSION_MINOR | cc -E -P "-I$HEADERS" -I. - | tail -n 1 | tr ' ' .)
[ "$(pkg-config --modversion tpacket4)" = "$version" ] || {
	echo "version $(pkg-config --modversion tpacket4) is not $version"
	exit 1
}
# The header is in DESTDIR, not in its final place.
flags=$(pkg-config --define-variable=prefix="$dir/opt/tp4" \
	--define-variable=includedir="$dir/opt/tp4/include" --cflags tpacket4)
# shellcheck disable=SC2086 # several flags
cc -Wall -Wextra -Werror $flags -o "$dir/capture" \
	"$dir/opt/tp4/share/doc/tpacket4/examples/capture.c"
# A program's own warnings are not about the headers.
# shellcheck disable=SC2086 # several flags
c++ -Wall -Wextra -Wconversion -Wold-style-cast -Wuseless-cast -Werror $flags \
	-fsyntax-only -x c++ - <<<'#include <tpacket4_device.h>'

# A program that has functions of the shared object names it, and no other one does, with
# the same flags.
libs=$(pkg-config --define-variable=libdir="$dir/opt/tp4/lib" --libs tpacket4)
needs() {
	readelf -d "$dir/$1" | grep -q 'NEEDED.*libtpacket4\.so\.1'
}
# shellcheck disable=SC2086 # several flags
cc -o "$dir/linked" -x c - -x none $libs <<-'C'
	const char *tp4_strerror(unsigned int where, int err);

	int main(void)
	{
		return !tp4_strerror(0, -22);
	}
C
needs linked
LD_LIBRARY_PATH=$dir/opt/tp4/lib "$dir/linked"
# shellcheck disable=SC2086 # several flags
cc $flags -o "$dir/inline" "$dir/opt/tp4/share/doc/tpacket4/examples/capture.c" $libs
! needs inline || exit 1
# Without the shared object, there is nothing to link to.
make -s install DESTDIR="$dir" PREFIX=/opt/tp4 HEADERS="$HEADERS"
[ -z "$(pkg-config --libs tpacket4)" ]
echo "tpacket4 $version is installed and found"
