# SPDX-License-Identifier: GPL-2.0

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
export KERNEL FORCE ACCEL CPUS MEM JOBS TESTS KERNELS

help:
	@sed -n 's/^## \?//p' $(MAKEFILE_LIST)

## To see and to trust it:
##   demo          from nothing to a table: V2, V3 and V4 on a veth pair
##   test          all tests, on the plain and on the debug kernel
##   check         style, static analysis, documentation, each patch by itself
##   shell         a shell in the booted plain kernel
##   bench-icount  instructions a packet, the same on every machine
demo:
	@scripts/demo

test: worktree
	@scripts/deps test
	@scripts/test.py

check: worktree
	@scripts/deps check
	@scripts/check

shell: kernel $(if $(NIC),qemu)
	@scripts/vm $(if $(NIC),--nic '$(NIC)' --qemu "$$(scripts/qemu.sh --print)") --shell

bench-icount:
	@scripts/demo --icount

##
## To change it (series/series lists the patches):
##   tree          assemble build/linux, a git tree with a commit a patch
##   import        write the commits of build/linux back to the files here
##   series        write out/series/*.patch, ready for git send-email
tree:
	@scripts/deps demo
	@scripts/series.py tree

# What the commands above use: also a build/linux with work of yours in it.
worktree:
	@scripts/deps demo
	@scripts/series.py tree --keep

import:
	@scripts/series.py import

series: worktree
	@scripts/series.py format

##
## Parts of the above:
##   kernel        the plain kernel, build/kernel-plain
##   debug         the debug kernel, build/kernel-debug
##   qemu          Debian's QEMU with our XL710 model
##   clean         remove build and out (the cache stays)
kernel: worktree
	@scripts/kernel plain

debug: worktree
	@scripts/kernel debug

qemu:
	@scripts/deps qemu
	@scripts/qemu.sh

clean:
	rm -rf build out

##
## Variables:
##   KERNEL=DIR          the base, instead of Debian's linux-source-6.12 (DIR is
##                       only read)
##   TESTS='tpacket4*'   only these tests; scripts/test.py --list names them
##   KERNELS=plain       only on this kernel
##   NIC=xl710           shell: with two XL710 ports, or xl710-gen, a generator
##   ACCEL=tcg|kvm CPUS=2 MEM=2G JOBS=N
##   FORCE=1             tree, import: drop what the other side has changed
.PHONY: help demo test check shell bench-icount tree import series kernel
.PHONY: debug worktree qemu clean
