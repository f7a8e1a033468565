#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs ./capture and reads the magic and the lengths in its file in the byte
# order of this machine. To be called by on_veth.sh. Unlike examples.sh, it
# needs neither tcpdump nor Python, which a minimal root directory of another
# architecture does not have.

set -euo pipefail

file=$(mktemp)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || :; rm -f "$file"*' EXIT

echo "TAP version 13"
echo "1..2"
./capture tp4A >"$file" 2>"$file.err" &
pid=$!
for ((i = 0; i < 600; i++)); do
	! grep -q listening "$file.err" || break
	sleep 0.1
done
# One packet: the ARP request has no reply.
ip address add 192.0.2.1/24 dev tp4B
echo >/dev/udp/192.0.2.2/9
for ((i = 0; i < 600; i++)); do
	[ "$(stat -c %s "$file")" -lt 82 ] || break
	sleep 0.1
done
kill -INT "$pid" || :
wait "$pid" || :
pid=
sed 's/^/# /' "$file.err"

# words OFFSET NUMBER: prints 32-bit words in decimal
words()
{
	od -An -v -tu4 -j "$1" -N $(($2 * 4)) "$file" | xargs
}

rc=0
# 0xa1b23c4d: times are in nanoseconds
[ "$(words 0 1)" = 2712812621 ] || rc=1
[ "$(words 20 1)" = 1 ] || rc=1
[ $rc = 0 ] || { echo "# header: $(words 0 6)"; echo -n "not "; }
echo "ok 1 the file's header has this machine's byte order"
[ "$(words 32 2)" = "42 42" ] || {
	rc=1
	echo "# the first packet's lengths: $(words 32 2)"
	echo -n "not "
}
echo "ok 2 so have a packet's lengths"
exit $rc
