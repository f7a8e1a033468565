#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test the XL710 model from the host, without a guest kernel.

set -euo pipefail

usage() {
	cat <<EOF
Usage: lab/xl710/run-qtest.sh [--asan] [TEST...]

  --asan   use the AddressSanitizer build
  TEST     only these, as test_traffic or test_traffic.Traffic.test_tso

QEMU=path takes that binary instead of building one.
EOF
}

asan=()
case ${1:-} in
-h|--help)	usage; exit 0 ;;
--asan)		asan=(--asan); shift ;;
esac

here=$(cd "$(dirname "$0")" && pwd)
QEMU=${QEMU:-$("$here/../build/qemu" --print "${asan[@]}")}
export QEMU
# leaks at exit are QEMU's own: what the device model holds ends with it
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
cd "$here/tests/qtest"
if [ $# -gt 0 ]; then
	exec python3 -B -m unittest -v "$@"
fi
exec python3 -B -m unittest discover -v
