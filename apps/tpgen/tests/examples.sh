#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs the examples of tpgen.1 one after the other, as root, in a network namespace of
# their own and in the directory that tpgen was built in. Each of them must succeed, and
# what is sent must be received. Prints TAP.

set -euo pipefail

[ "$(id -u)" = 0 ] || { echo "SKIP: needs root"; exit 4; }
page=$(realpath "$(dirname "$0")/../tpgen.1")
PATH=$PWD:$PATH
if [ -z "${IN_NETNS-}" ]; then
	IN_NETNS=1 exec unshare --net --mount "$0" "$@"
fi
mount -t sysfs none /sys
dir=$(mktemp -d)
cd "$dir"

# Splits the examples into files of their own.
awk '/^\.EX/ { n++; on = 1; next } /^\.EE/ { on = 0 }
	on { gsub(/\\-/, "-"); print > (n ".sh") }' "$page"
examples=([0-9]*.sh)
echo "TAP version 13"
echo "1..${#examples[@]}"
failed=0
for ((n = 1; n <= ${#examples[@]}; n++)); do
	rc=0
	out=$(timeout 120 bash -euc ". ./$n.sh" 2>&1) || rc=$?
	first=$(head -n 1 "$n.sh")
	# A receiver says what it has received, or lost.
	[[ $out != *"received 0 packets"* ]] || rc=1
	[[ $out != *lost* || $out == *" 0 lost"* ]] || rc=1
	if [ "$rc" -eq 0 ]; then
		echo "ok $n $first"
	else
		echo "# $rc: ${out//$'\n'/ | }"
		echo "not ok $n $first"
		failed=1
	fi
done
if [ -s ping.svg ]; then
	echo "# ping.svg was written"
else
	echo "not ok: no ping.svg"
	failed=1
fi
rm -rf "$dir"
exit "$failed"
