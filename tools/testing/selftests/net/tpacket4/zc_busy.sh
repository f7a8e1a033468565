#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tests of zero-copy mode's data path once more, with sockets that run their
# queue's NAPI themselves (SO_PREFER_BUSY_POLL) while its interrupts are
# deferred. zc_wake looks at the kinds of busy polling one by one.

set -uo pipefail
cd "$(dirname "$0")" || exit 1

export TPACKET4_BUSY_POLL=1 TPACKET4_FAST=1
status=0
for prog in zc_data zc_desc zc_frames zc_xdp zc_adjust zc_redirect; do
	echo "# $prog, busy polling"
	./$prog || status=1
done
exit $status
