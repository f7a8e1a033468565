# SPDX-License-Identifier: GPL-2.0

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
export KERNEL FORCE ACCEL CPUS MEM JOBS TESTS KERNELS NIC
export MINUTES SEED ROUNDS STEPS THREADS OPERATIONS EDGES

help:
	@sed -n 's/^## \?//p' $(MAKEFILE_LIST)

# One at a time in this clone
alone := @scripts/alone
# 4: something could not be installed for want of a network. What needs it says so.
deps = @scripts/deps $(1) || [ $$? -eq 4 ]

## To see and to trust it:
##   demo          from nothing to a table: V2, V3 and V4 on a veth pair, tcpdump too
##   test          all tests, on the plain and on the debug kernel
##   check         style, static analysis, documentation, each patch by itself
##   fuzz          random socket calls, device changes and rings: MINUTES=n SEED=s
##   soak          every change of devices and sockets under traffic: MINUTES=n
##   shell         a shell in the booted plain kernel
##   pcap          Debian's libpcap with V4, for tcpdump and others, in build/pcap
##   bench         instructions a packet, the same on every machine: V3, V4 and
##                 AF_XDP on i40e and veth, with out/bench.json and out/bench.svg
demo:
	$(alone) scripts/demo

test:
	$(call deps,$(or $(ARCH),test))
	$(alone) scripts/test.py

check:
	$(call deps,check)
	$(alone) scripts/check

shell: kernel $(if $(filter xl710%,$(NIC)),qemu)
	@scripts/vm $(if $(NIC),--nic '$(NIC)') $(if $(filter xl710%,$(NIC)),--qemu "$$(scripts/qemu.sh --print)") --shell

pcap: worktree
	$(call deps,pcap)
	$(alone) scripts/progs pcap

fuzz: worktree
	$(alone) scripts/fuzz $(PARTS)

soak: worktree
	$(alone) scripts/soak $(PARTS)

bench bench-icount:
	$(alone) scripts/demo --icount

##
## What takes longer than make test:
##   long          the tests of i40e, of virtio_net and of the XL710 model, none in
##                 a short form
##   kcsan         the tests on a kernel that looks for data races
##   coverage      which lines of V4 the tests reach, and which not
long: private export TESTS := $(or $(TESTS),xl710-* virtio-*)
long:
	$(call deps,test)
	$(alone) scripts/test.py --long

kcsan: private export TESTS := $(or $(TESTS),tpacket4* tp4* xl710-tp4)
kcsan:
	$(call deps,test types)
	$(alone) scripts/test.py --kernels kcsan

coverage:
	$(call deps,test types)
	$(alone) scripts/coverage.py

##
## To change it (series/series lists the patches):
##   tree          assemble build/linux, a git tree with a commit a patch
##   import        write the commits of build/linux back to the files here
##   series        write the mails of each set to out/series/, and a script that
##                 sends them to those whom they concern
tree:
	@scripts/deps demo
	$(alone) scripts/series.py tree

# What the commands above use: also a build/linux with work of yours in it.
worktree:
	@scripts/deps demo
	$(alone) scripts/series.py tree --keep

import:
	$(alone) scripts/series.py import

series: worktree
	$(alone) scripts/series.py format

##
## Parts of the above:
##   kernel        the plain kernel, build/kernel-plain
##   debug         the debug kernel, build/kernel-debug
##   qemu          Debian's QEMU with our XL710 model
##   clean         remove build and out (the cache stays)
kernel: worktree
	$(alone) scripts/kernel plain

debug: worktree
	$(alone) scripts/kernel debug

qemu:
	@scripts/deps qemu
	@scripts/qemu.sh

clean:
	$(alone) rm -rf build out

##
## Variables:
##   KERNEL=DIR          the base, instead of Debian's linux-source-6.12 (DIR is
##                       only read)
##   TESTS='tpacket4*'   only these tests; scripts/test.py --list names them
##   KERNELS=plain       only on this kernel: plain, debug, kcsan or gcov
##   ARCH=arm64          test: on this machine, emulated: arm64, s390 (big-endian),
##                       i386 or arm (the last: KUnit only)
##   MINUTES=n SEED=s    fuzz, soak; scripts/fuzz --help and scripts/soak --help
##                       tell of more, and of PARTS=
##   NIC=xl710           shell: with two XL710 ports, or xl710-gen, a generator,
##                       or virtio: two virtio_net devices; virtio-tap: the same
##                       with offloads
##   ACCEL=tcg|kvm CPUS=2 MEM=2G JOBS=N
##   FORCE=1             tree, import: drop what the other side has changed
.PHONY: help demo test check fuzz soak shell pcap bench bench-icount long kcsan coverage tree
.PHONY: import series kernel debug worktree qemu clean
