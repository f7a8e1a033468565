#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
#	apps/tpgen/tests/unit.sh
#
# Builds and runs the tests of the parts of tpgen that need no kernel.

set -euo pipefail
# shellcheck source=lab/lib.sh
. "$(dirname "$0")/../../../lab/lib.sh"

# Nothing that is built gets what make was called with.
unset MAKEFLAGS MAKEOVERRIDES
"$TOP/lab/build/progs" headers
mkdir -p "$BUILD/tpgen"
make -s -C "$BUILD/tpgen" -f "$TOP/apps/tpgen/Makefile" unit \
	HEADERS="$(realpath "$BUILD/headers")/usr/include" \
	LIB="$BUILD/linux/tools/lib/tpacket4"
exec "$BUILD/tpgen/unit"
