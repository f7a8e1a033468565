# SPDX-License-Identifier: GPL-2.0

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
export HEADERS SOURCE
export KERNEL BASE FORCE ACCEL CPUS MEM JOBS TESTS KERNELS NIC
export MINUTES SEED ROUNDS STEPS THREADS OPERATIONS EDGES

help:
	@sed -n 's/^## \?//p' $(MAKEFILE_LIST)

# Runs one command at a time in this clone
alone := @lab/build/alone
# Status 4: a package could not be installed without a network. The tests that need it
# report this.
deps = @lab/build/deps $(1) || [ $$? -eq 4 ]
# A wrong name in TESTS is reported before anything is installed
names = @! command -v python3 >/dev/null || lab/run/test.py --check

## Demonstration, tests and benchmarks:
##   demo          from nothing to a table: nanoseconds per packet of V2, V3, V4 and
##                 AF_XDP on a veth pair, and of tcpdump, by User Mode Linux
##   quick         run some tests with KASAN and lockdep in minutes, without QEMU
##   test          run all tests, each on the kernels that it is for: plain and debug in
##                 QEMU, um and umdebug (User Mode Linux) natively
##   check         check style, static analysis, documentation and each patch
##   fuzz          random socket calls, device changes and rings: MINUTES=n SEED=s
##   soak          device and socket changes under traffic: MINUTES=n
##   shell         open a shell in the booted plain kernel, with tpbench, tcpdump and
##                 the selftests ready to try
##   pcap          build Debian's libpcap with V4, for tcpdump and others
##   bench         count instructions per packet, the same on every machine: V3, V4 and
##                 AF_XDP on i40e, virtio_net and veth, tpgen, tpswitch and DPDK; writes
##                 out/bench.json
##   burst         count the packets that tcpdump's buffer holds with V3 and with V4
demo:
	$(alone) lab/measure/demo

test:
	$(names)
	$(call deps,$(or $(ARCH),test))
	$(alone) lab/run/test.py

quick: private export KERNELS := umdebug
quick: private export TESTS := $(or $(TESTS),@um)
quick:
	$(names)
	$(call deps,quick)
	$(alone) lab/run/test.py

check:
	$(call deps,check)
	$(alone) lab/run/check

shell: kernel $(if $(filter xl710%,$(NIC)),qemu)
	$(call deps,pcap vm)
	@lab/run/shell $(if $(NIC),--nic '$(NIC)') $(if $(filter xl710%,$(NIC)),--qemu "$$(lab/build/qemu --print)")

pcap: worktree
	$(call deps,pcap)
	$(alone) lab/build/progs pcap

fuzz: worktree
	$(call deps,debug $(if $(NIC),qemu))
	$(alone) lab/stress/run fuzz $(PARTS)

soak: worktree
	$(call deps,debug qemu)
	$(alone) lab/stress/run soak $(PARTS)

bench:
	$(alone) lab/measure/demo --icount

burst: kernel
	$(call deps,pcap vm)
	$(alone) lab/build/progs pcap
	$(alone) lab/measure/burst.py

##
## Installation:
##   install       install the library, the programs and manual pages:
##                 DESTDIR= PREFIX=
##   deb           build Debian packages of the kernel, of libpcap and of the above, in
##                 out/deb: CONFIG=debian|cloud|small|FILE
##   man-pages     patch packet(7) for V4, in build/man-pages
##   live          build V4 as a module for Debian's kernels: the packages tpacket4-dkms
##                 and tpacket4-card, in out/deb. Or the module itself, in build/live, for a kernel of
##                 Debian: RELEASE=6.12.117+deb12-amd64; or for the one that you run:
##                 HEADERS=/lib/modules/$(uname -r)/build SOURCE=its tree
install:
	$(alone) lab/release/install

deb: worktree
	$(call deps,deb)
	$(alone) lab/release/deb $(PARTS)

man-pages:
	$(call deps,man-pages)
	$(alone) lab/release/man-pages

live:
	@lab/build/deps live
ifneq ($(HEADERS)$(RELEASE),)
	$(alone) lab/build/live $(if $(HEADERS),,$(RELEASE))
else
	@lab/build/deps demo
	$(alone) lab/build/series.py tree --keep
	$(alone) lab/build/stock sources
	$(alone) lab/release/deb live card
endif

##
## Longer tests:
##   long          the tests of i40e, virtio_net, the XL710 model, libpcap and psock_*,
##                 in full, and live-test
##   kcsan         the V4 tests on a kernel that detects data races
##   coverage      list the lines of V4 that the tests do not reach
##   fresh         run the targets on a fresh Debian, with only the packages that they
##                 install themselves
##   live-test     test live/, the module, on Debian's own kernels, of their packages:
##                 RELEASE='6.12.117+deb12-amd64 ...' instead of the newest ones
##   live-check    build the module for each kernel of Debian that apt knows
##   test-deb      install the packages of make deb in fresh Debian 12 and 13 systems,
##                 boot these, and remove the packages again
long: private LONG_LIVE := $(if $(TESTS),,1)
long: private export TESTS := $(or $(TESTS),xl710-* virtio-* pcap-* psock_*)
long:
	$(names)
	$(call deps,test)
	$(alone) lab/run/test.py --long
	$(if $(LONG_LIVE),$(MAKE) live-test)

live-test: private export TESTS :=
live-test:
	@lab/build/deps live test live-test
	$(alone) lab/run/live.py $(RELEASE)

live-check:
	@lab/build/deps live
	$(alone) lab/run/live.py --build

kcsan: private export TESTS := $(or $(TESTS),tpacket4* tp4* xl710-tp4)
kcsan:
	$(names)
	$(call deps,test)
	$(alone) lab/run/test.py --kernels kcsan

test-deb:
	$(call deps,test-deb)
	$(alone) lab/release/test-deb $(or $(SUITE),bookworm trixie)

fresh:
	$(call deps,test-deb)
	$(alone) lab/run/fresh

coverage:
	$(names)
	$(call deps,test)
	$(alone) lab/measure/coverage.py

##
## Working on the series (series/series lists the patches):
##   tree          assemble build/linux, a git tree with a commit per patch
##   import        write the commits of build/linux back to the files here
##   series        write the mails of each set to out/series/, and a script that
##                 sends them to the maintainers
tree:
	@lab/build/deps demo
	$(alone) lab/build/series.py tree

# For the other targets: keeps a build/linux that has been changed.
worktree:
	@lab/build/deps demo
	$(alone) lab/build/series.py tree --keep

import:
	$(alone) lab/build/series.py import

series: worktree
	$(alone) lab/build/series.py format

##
## Single steps:
##   kernel        build the plain kernel, build/kernel-plain
##   debug         build the debug kernel, build/kernel-debug
##   qemu          build Debian's QEMU with the XL710 model
##   clean         remove build and out, but not the cache
kernel: worktree
	$(alone) lab/build/kernel plain

debug: worktree
	$(call deps,debug)
	$(alone) lab/build/kernel debug

qemu:
	@lab/build/deps qemu
	@lab/build/qemu

clean:
	$(alone) rm -rf build out

##
## Variables:
##   BASE=7.3            use Debian's linux-source-7.3 as the base instead of its
##                       linux-source-6.12; build in build/7.3
##   KERNEL=DIR          use the kernel tree in DIR as the base, with the edits for
##                       6.12 or 7.3, whichever is nearer; DIR is only read
##   TESTS='tpacket4*'   run only these tests; lab/run/test.py --list lists them
##   KERNELS=plain       run only on this kernel: plain, debug, um, umdebug, kcsan or gcov
##   ARCH=arm64          test: on an emulated machine: arm64, s390 (big-endian),
##                       i386 or arm (KUnit only)
##   MINUTES=n SEED=s    fuzz, soak: lab/stress/run --help lists more, and PARTS=
##   DESTDIR= PREFIX=/usr/local   install
##   CONFIG=small        deb: the kernel's configuration; see lab/release/deb --help, also
##                       for PARTS= and SUITE=
##   NIC=xl710           shell: with two XL710 ports; xl710-gen: with a generator;
##                       virtio: with two virtio_net devices; virtio-tap: the same
##                       with offloads
##   ACCEL=tcg|kvm CPUS=2 MEM=2G JOBS=N
##   FORCE=1             tree, import: overwrite changes of the other side
.PHONY: help demo quick test check fuzz soak shell pcap bench burst long kcsan coverage fresh tree
.PHONY: install deb man-pages live live-check live-test test-deb import series kernel debug worktree qemu clean
