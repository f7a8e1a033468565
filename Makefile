# SPDX-License-Identifier: GPL-2.0

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
export KERNEL FORCE ACCEL CPUS MEM JOBS

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## The series:
##   tree       assemble build/linux from the files here: a commit a patch
##   import     write the commits of build/linux back to the files here
##   series     write out/series/*.patch, ready for git send-email
tree:
	scripts/series.py tree

import:
	scripts/series.py import

series: tree
	scripts/series.py format

## The kernels:
##   kernel     build the plain kernel (build/kernel-plain)
##   debug      build the debug kernel (build/kernel-debug)
kernel: tree
	scripts/kernel plain

debug: tree
	scripts/kernel debug

##
## Variables: KERNEL=DIR (the base, instead of Debian's linux-source-6.12; only
## read), ACCEL=tcg|kvm, CPUS=2, MEM=2G, JOBS=N, FORCE=1 (tree, import: drop
## what the other side has changed)
.PHONY: help tree import series kernel debug
