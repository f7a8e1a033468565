#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs the tests of zero-copy mode's data path with sockets that busy poll
# (SO_PREFER_BUSY_POLL) while interrupts are deferred. zc_wake tests the kinds of
# busy polling separately.

set -uo pipefail
cd "$(dirname "$0")" || exit 1

export TPACKET4_BUSY_POLL=1 TPACKET4_FAST=1
status=0
for prog in zc_data zc_desc zc_frames zc_xdp zc_adjust zc_redirect; do
	echo "# $prog, busy polling"
	./$prog || status=1
done
exit $status
