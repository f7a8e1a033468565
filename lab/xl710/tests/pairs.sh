#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# AF_PACKET V4: queue pairs that switch between the stack and sockets, and other users of
# queues, with pairs.py. The arguments are the tests to run (default: all, or those of the
# short form).
#
# shellcheck disable=SC2034 source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
export NS0 NS1 IF0 IF1 IP0 IP1 PCI1
# not ip netns exec, which hides debugfs; pairs.py enters the namespaces itself
python3 "$HERE/pairs.py" "$@" || FAILED=1
finish
