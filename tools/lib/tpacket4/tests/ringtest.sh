#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs ringtest for a short time in the current directory, where "make tests" has
# built it, and checks that it measures all three rings. ringtest itself checks
# each packet.

set -euo pipefail

number=0
failed=0

run()	# title, options
{
	local out rc=0

	out=$(ringtest/ringtest -n 2 -r 1 "${@:2}" 2>&1) || rc=$?
	echo "${out//$'\n'/$'\n'# }" | sed '1s/^/# /'
	number=$((number + 1))
	if [ $rc -eq 0 ] && [ "$(grep -cE \
		'^  (tp4|index|status) +[0-9.]*[1-9][0-9.]* +[0-9.]*[1-9]' \
		<<<"$out")" -eq 3 ]; then
		echo "ok $number $1"
	else
		echo "# error: exit code $rc"
		echo "not ok $number $1"
		failed=1
	fi
}

echo "TAP version 13"
run "a stream loses and reorders nothing"
run "a stream in batches loses and reorders nothing" -k 64 -b 7
run "a ping-pong with 64 in flight loses and reorders nothing" -p 64
run "a ping-pong with one in flight loses and reorders nothing" -p 1
run "without a back-off nothing is lost or reordered" -e -k 8
echo "1..$number"
exit $failed
