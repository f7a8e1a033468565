// SPDX-License-Identifier: GPL-2.0
/* A guest of QEMU without a virtual CPU, for -netdev tpacket4 and others.
 *
 *	virtq hostile [--seconds N] [--seed N] QEMU PEER NETDEV...
 *	virtq tx|rx [--size BYTES] [--packets N] QEMU PEER NETDEV
 *	virtq send [--size BYTES] [--packets N] - DEVICE
 *
 * This program shares the memory of the machine, writes the device's registers by QEMU's
 * test protocol (qtest), and fills the queues of a virtio-net-pci itself. PEER is the
 * device at the other end of NETDEV's link.
 *
 * hostile: the queues, descriptors, headers, packets and commands are random or almost
 * valid, and PEER sends such packets. The device is reset whenever it declares itself
 * broken. After each 200 steps, a valid packet has to go through in both directions. Each
 * NETDEV gets N seconds. --seed repeats the steps, but not their timing.
 *
 * tx, rx: sends or receives packets of this size in batches of 64, and prints the time that
 * they took, and the round trips to QEMU, each of which takes some, too. More than 1514 bytes
 * are TCP for segments of 1448 bytes, in batches of 8. If PEER is -, others send. Of NETDEV
 * dgram, the other end is a socket of this program. NETDEV none is virtio-net alone. send does
 * what PEER does for rx.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <linux/virtio_pci.h>
#include <linux/virtio_ring.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))
#define MIN(a, b)	((a) < (b) ? (a) : (b))

#define PAIRS		2
#define QUEUES		(2 * PAIRS + 1)
#define QUEUE_SIZE	256
#define MAX_DESC	40
#define MIN_BUFFER	32

/* Guest memory: a ring for each queue, and buffers */
#define RAM_SIZE	(64UL << 20)
#define RINGS		(1UL << 20)
#define RING_SIZE	(1UL << 16)
#define BUFFERS		(16UL << 20)
#define BUFFER_SIZE	(128UL << 10)
#define NR_BUFFERS	((RAM_SIZE - BUFFERS) / BUFFER_SIZE)

/* The device's registers, where QEMU has them in its BAR 4 */
#define BAR		0xe0000000UL
#define CONFIG		(BAR + 0x2000)
#define NOTIFY		(BAR + 0x3000)

#define HDR_LEN		12
#define PROTO		0x88b5	/* for local experiments */
#define BATCH		64
#define GSO_BATCH	8
#define RX_BUFFER	4096UL
#define PATIENCE_MS	60000

#define BIT(n)		(1ULL << (n))
#define OFFLOADS	(BIT(VIRTIO_NET_F_CSUM) | BIT(VIRTIO_NET_F_GUEST_CSUM) | \
			 BIT(VIRTIO_NET_F_HOST_TSO4) | BIT(VIRTIO_NET_F_HOST_TSO6) | \
			 BIT(VIRTIO_NET_F_HOST_ECN) | BIT(VIRTIO_NET_F_HOST_UFO) | \
			 BIT(VIRTIO_NET_F_GUEST_TSO4) | BIT(VIRTIO_NET_F_GUEST_TSO6) | \
			 BIT(VIRTIO_NET_F_GUEST_ECN) | BIT(VIRTIO_NET_F_GUEST_UFO) | \
			 BIT(VIRTIO_NET_F_MRG_RXBUF))

struct queue {
	unsigned int nr, size, free;
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t next, seen;
};

static struct queue queues[QUEUES];
static uint8_t *ram;
static uint64_t offered, seed, state;
static int wire = -1, said = -1, peer = -1, tagged = -1;
static pid_t qemu;
static unsigned int hdr_len = HDR_LEN;
static uint64_t steps, chains, commands, resets, broken, from_peer, checked, trips;

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *why, ...)
{
	static char text[1 << 16];
	ssize_t len;
	va_list ap;
	int status;

	fflush(stdout);
	va_start(ap, why);
	fprintf(stderr, "virtq: ");
	vfprintf(stderr, why, ap);
	fprintf(stderr, "\nvirtq: --seed %" PRIu64 " after %" PRIu64 " steps\n", seed, steps);
	va_end(ap);
	if (qemu > 0) {
		usleep(500000);	/* A sanitizer may still be writing. */
		if (waitpid(qemu, &status, WNOHANG) == qemu)
			fprintf(stderr, "virtq: QEMU ended, status %#x\n", status);
		else
			kill(qemu, SIGKILL);
		len = pread(said, text, sizeof(text), 0);
		if (len > 0)
			fwrite(text, len, 1, stderr);
	}
	exit(1);
}

static uint64_t random64(void)
{
	uint64_t x = state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static size_t below(size_t n)
{
	return random64() % n;
}

static bool one_in(size_t n)
{
	return below(n) == 0;
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* QEMU -------------------------------------------------------------------------- */

/* Does a command of qtest, and returns its value, if it has one. */
static uint64_t __attribute__((format(printf, 1, 2))) ask(const char *format, ...)
{
	char line[256];
	size_t len = 0;
	va_list ap;
	ssize_t n;

	va_start(ap, format);
	n = vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	if (send(wire, line, n, MSG_NOSIGNAL) != n)
		fail("QEMU does not read: %m");
	do {
		n = recv(wire, line + len, sizeof(line) - 1 - len, 0);
		if (n <= 0)
			fail("QEMU does not answer: %s", n ? strerror(errno) : "end");
		len += n;
	} while (line[len - 1] != '\n');
	line[len] = 0;
	if (strncmp(line, "OK", 2))
		fail("QEMU answers %s", line);
	return strtoull(line + 2, NULL, 0);
}

static void start(const char *program, const char *netdev, int end, bool many)
{
	char dev[256], ram_arg[256], qtest[64], net[256];
	bool none = !strcmp(netdev, "none");
	struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	int fds[2], memory = memfd_create("ram", 0);

	said = memfd_create("stderr", MFD_CLOEXEC);
	if (memory < 0 || said < 0 || ftruncate(memory, RAM_SIZE) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		fail("no memory or socket: %m");
	ram = mmap(NULL, RAM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory, 0);
	if (ram == MAP_FAILED)
		fail("mmap: %m");
	wire = fds[0];
	/* By icount, time leaps while a program is read from the disk. */
	if (many)
		setsockopt(wire, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	snprintf(ram_arg, sizeof(ram_arg),
		 "memory-backend-file,id=ram,size=64M,share=on,mem-path=/proc/self/fd/%d", memory);
	snprintf(qtest, sizeof(qtest), "socket,id=qtest,fd=%d", fds[1]);
	snprintf(net, sizeof(net), end < 0 ? "%s,id=n0" : "%s,id=n0,local.type=fd,local.str=%d",
		 netdev, end);
	snprintf(dev, sizeof(dev),
		 "virtio-net-pci,addr=2,romfile=,disable-legacy=on%s%s", none ? "" : ",netdev=n0",
		 many ? ",mq=on,rss=on,hash=on,vectors=6" : "");
	fflush(NULL);
	qemu = fork();
	if (!qemu) {
		fcntl(wire, F_SETFD, FD_CLOEXEC);
		dup2(said, STDERR_FILENO);
		execl(program, program, "-nodefaults", "-no-user-config", "-display", "none", "-accel",
		      "qtest", "-m", "64M", "-object", ram_arg, "-M",
		      "q35,memory-backend=ram", "-chardev", qtest, "-qtest", "chardev:qtest",
		      "-qtest-log", "none", "-device", dev, none ? NULL : "-netdev", net, NULL);
		perror(program);
		_exit(127);
	}
	close(fds[1]);
	close(memory);
}

static void set_up_pci(void)
{
	static const uint32_t config[][2] = { { 0x20, BAR }, { 0x24, 0 }, { 0x04, 6 } };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(config); i++) {
		ask("outl 0xcf8 %#x\n", 0x80001000 | config[i][0]);
		ask("outl 0xcfc %#x\n", config[i][1]);
	}
	ask("writel %#lx 0\n", BAR + VIRTIO_PCI_COMMON_DFSELECT);
	offered = ask("readl %#lx\n", BAR + VIRTIO_PCI_COMMON_DF);
	ask("writel %#lx 1\n", BAR + VIRTIO_PCI_COMMON_DFSELECT);
	offered |= ask("readl %#lx\n", BAR + VIRTIO_PCI_COMMON_DF) << 32;
	if (!(offered & BIT(VIRTIO_F_VERSION_1)))
		fail("there is no virtio device");
}

static void stop(void)
{
	kill(qemu, SIGTERM);
	waitpid(qemu, NULL, 0);
	qemu = 0;
	munmap(ram, RAM_SIZE);
	close(wire);
	close(said);
}

/* The device ---------------------------------------------------------------------- */

static uint8_t get_status(void)
{
	return ask("readb %#lx\n", BAR + VIRTIO_PCI_COMMON_STATUS);
}

static void set_status(uint8_t status)
{
	ask("writeb %#lx %#x\n", BAR + VIRTIO_PCI_COMMON_STATUS, status);
}

static void kick(unsigned int queue)
{
	ask("writew %#lx %#x\n", NOTIFY + 4UL * queue, queue);
}

static void write_address(unsigned int reg, uint64_t address)
{
	ask("writel %#lx %#x\n", BAR + reg, (uint32_t)address);
	ask("writel %#lx %#x\n", BAR + reg + 4, (uint32_t)(address >> 32));
}

static uint64_t where(const void *p)
{
	return (const uint8_t *)p - ram;
}

static void set_up_queue(struct queue *q, bool wrong)
{
	uint64_t base = where(q->desc);

	memset(q->desc, 0, RING_SIZE);
	q->next = q->seen = q->free = 0;
	q->avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	ask("writew %#lx %#x\n", BAR + VIRTIO_PCI_COMMON_Q_SELECT, q->nr);
	ask("writew %#lx %#x\n", BAR + VIRTIO_PCI_COMMON_Q_SIZE, q->size);
	write_address(VIRTIO_PCI_COMMON_Q_DESCLO, base);
	write_address(VIRTIO_PCI_COMMON_Q_AVAILLO, where(q->avail));
	if (wrong)
		base = one_in(2) ? random64() : RAM_SIZE - below(0x2000);
	write_address(VIRTIO_PCI_COMMON_Q_USEDLO, wrong ? base : where(q->used));
	ask("writew %#lx 1\n", BAR + VIRTIO_PCI_COMMON_Q_ENABLE);
}

/* Resets the device and starts it again, with these features and so many queues. */
static void restart(uint64_t features, unsigned int nr, bool wrong)
{
	unsigned int i;

	set_status(0);
	set_status(VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER);
	for (i = 0; i < 2; i++) {
		ask("writel %#lx %d\n", BAR + VIRTIO_PCI_COMMON_GFSELECT, i);
		ask("writel %#lx %#x\n", BAR + VIRTIO_PCI_COMMON_GF,
		    (uint32_t)(features >> 32 * i));
	}
	hdr_len = features & BIT(VIRTIO_NET_F_HASH_REPORT) ? 20 : HDR_LEN;
	set_status(VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER |
		   VIRTIO_CONFIG_S_FEATURES_OK);
	for (i = 0; i < nr; i++)
		set_up_queue(&queues[i], wrong && one_in(8));
	set_status(VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER |
		   VIRTIO_CONFIG_S_FEATURES_OK | VIRTIO_CONFIG_S_DRIVER_OK);
	resets++;
}

static void set_up_queues(void)
{
	unsigned int i;

	for (i = 0; i < QUEUES; i++) {
		queues[i].nr = i;
		queues[i].size = i == 2 * PAIRS ? 64 : QUEUE_SIZE;
		queues[i].desc = (void *)(ram + RINGS + i * RING_SIZE);
		queues[i].avail = (void *)(ram + RINGS + i * RING_SIZE + 0x2000);
		queues[i].used = (void *)(ram + RINGS + i * RING_SIZE + 0x4000);
	}
}

/* Makes a chain available whose first descriptor is this one. */
static void make_available(struct queue *q, uint16_t head)
{
	q->avail->ring[q->next++ % q->size] = head;
	__atomic_store_n(&q->avail->idx, q->next, __ATOMIC_RELEASE);
}

static uint16_t used(const struct queue *q)
{
	return __atomic_load_n(&q->used->idx, __ATOMIC_ACQUIRE);
}

/* The other end ------------------------------------------------------------------- */

static int open_peer(const char *name, int proto)
{
	struct sockaddr_ll addr = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(proto),
		.sll_ifindex = if_nametoindex(name),
	};
	int one = 1, fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) ||
	    (proto && setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one))) ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)))
		fail("%s: %m", name);
	return fd;
}

/* Packets ------------------------------------------------------------------------- */

static void put16(uint8_t *p, uint16_t value)
{
	p[0] = value >> 8;
	p[1] = value;
}

/*
 * A packet of TCP or UDP over IP, with the header that asks for its checksum and for
 * segments. The rest of its memory stays what it is.
 */
static void make_ip(uint8_t *p, size_t len, struct virtio_net_hdr *hdr, bool v6, bool tcp)
{
	size_t ip = ETH_HLEN, transport = ip + (v6 ? 40 : 20), headers = transport + (tcp ? 20 : 8);

	memset(p, 0, headers);
	p[0] = p[6] = 2;
	p[5] = 1;
	p[11] = 2;
	put16(p + 12, v6 ? ETH_P_IPV6 : ETH_P_IP);
	if (v6) {
		p[ip] = 0x60;
		put16(p + ip + 4, len - transport);
		p[ip + 6] = tcp ? 6 : 17;
		p[ip + 7] = 64;
		p[ip + 8] = p[ip + 24] = 0xfd;
		p[ip + 23] = 1;
		p[ip + 39] = 2;
	} else {
		p[ip] = 0x45;
		put16(p + ip + 2, len - ip);
		p[ip + 8] = 64;
		p[ip + 9] = tcp ? 6 : 17;
		p[ip + 12] = p[ip + 16] = 10;
		p[ip + 15] = 1;
		p[ip + 19] = 2;
	}
	put16(p + transport, 1000);
	put16(p + transport + 2, 2000);
	if (tcp) {
		p[transport + 12] = 0x50;
		p[transport + 13] = 0x10;
	} else {
		put16(p + transport + 4, len - transport);
	}
	hdr->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	hdr->csum_start = transport;
	hdr->csum_offset = tcp ? 16 : 6;
	hdr->hdr_len = headers;
	if (tcp && len > 1514) {
		hdr->gso_type = v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
		hdr->gso_size = 1448;
	}
}

static void make_random(uint8_t *p, size_t len)
{
	size_t i;

	/* The memory behind the first bytes has what was there before. */
	for (i = 0; i < MIN(len, 256); i++)
		p[i] = random64();
}

static size_t random_len(void)
{
	switch (below(8)) {
	case 0: return below(70);
	case 1: return below(1 << 16);
	case 2: return (1 << 16) + below(1 << 13) - below(1 << 11);
	case 3: return 4096 * (1 + below(16)) + below(300) - 150;
	default: return 54 + below(1500);
	}
}

/* A header, and a packet that it may be right for */
static size_t make_any(uint8_t *p, struct virtio_net_hdr *hdr)
{
	size_t len = random_len(), i;

	memset(hdr, 0, sizeof(*hdr));
	if (one_in(8)) {
		for (i = 0; i < sizeof(*hdr); i++)
			((uint8_t *)hdr)[i] = random64();
	}
	if (len < 80 || one_in(4))
		make_random(p, len);
	else
		make_ip(p, len, hdr, one_in(2), !one_in(3));
	if (len > 1514 && one_in(8))
		hdr->gso_type = one_in(2) ? VIRTIO_NET_HDR_GSO_UDP : VIRTIO_NET_HDR_GSO_UDP_L4;
	if (one_in(6))
		hdr->gso_size = one_in(2) ? below(64) : random64();
	if (one_in(8))
		hdr->csum_start = one_in(2) ? below(128) : random64();
	if (one_in(8))
		hdr->csum_offset = one_in(2) ? below(32) : random64();
	if (one_in(8))
		hdr->hdr_len = random64();
	if (one_in(12))
		hdr->gso_type ^= 1 << below(8);
	if (one_in(12))
		hdr->flags ^= 1 << below(8);
	for (i = 0; len && one_in(3) && i < 4; i++)
		p[below(MIN(len, 100))] = random64();
	return len;
}

/* A hostile guest ------------------------------------------------------------------ */

static uint8_t *any_buffer(void)
{
	return ram + BUFFERS + BUFFER_SIZE * below(NR_BUFFERS);
}

static uint64_t bad_address(bool write)
{
	switch (below(write ? 5 : 6)) {
	case 0: return random64();
	case 1: return RAM_SIZE - below(5000);
	case 2: return BAR + below(0x4000);
	case 3: return -below(5000);
	case 4: return 0xa0000 + below(0x60000);
	default: return RINGS + below(QUEUES * RING_SIZE);
	}
}

/*
 * QEMU asserts that a buffer to receive has room for virtio's header. Nothing may write to the
 * rings, or a descriptor could become such a buffer.
 */
static void mutate(struct vring_desc *d, unsigned int nr)
{
	bool write;

	d += below(nr);
	write = d->flags & VRING_DESC_F_WRITE;
	switch (below(7)) {
	case 0:
	case 1: d->addr = bad_address(write); break;
	case 2: d->len = 0; break;
	case 3: d->len = random64() >> below(64); break;
	case 4: d->flags ^= 1 << below(4); break;
	case 5: d->next = one_in(2) ? below(QUEUE_SIZE + 8) : random64(); break;
	case 6: d->len += below(32) - 16; break;
	}
	if (write && d->len < MIN_BUFFER)
		d->len = one_in(2) ? 0 : MIN_BUFFER;
}

/* Makes descriptors available, in the ring or in a table, and most of them as they are. */
static void add(struct queue *q, struct vring_desc *d, unsigned int nr)
{
	unsigned int i, head = q->free, bad = one_in(32) ? 1 + below(3) : 0;
	bool table = one_in(4);

	for (i = 0; i < nr; i++) {
		d[i].next = table ? i + 1 : (head + i + 1) % q->size;
		d[i].flags |= i + 1 < nr ? VRING_DESC_F_NEXT : 0;
	}
	while (bad--)
		mutate(d, nr);
	if (table) {
		struct vring_desc one = { .flags = VRING_DESC_F_INDIRECT };
		uint8_t *at = any_buffer() + BUFFER_SIZE - 16 * MAX_DESC;

		memcpy(at, d, nr * sizeof(*d));
		one.addr = where(at);
		one.len = nr * sizeof(*d);
		if (one_in(16))
			mutate(&one, 1);
		q->desc[head] = one;
		nr = 1;
	} else {
		for (i = 0; i < nr; i++)
			q->desc[(head + i) % q->size] = d[i];
	}
	q->free = (head + nr) % q->size;
	make_available(q, one_in(512) ? random64() : head);
	chains++;
}

/* Splits memory into descriptors. */
static unsigned int split(struct vring_desc *d, const uint8_t *p, size_t len, uint16_t flags)
{
	unsigned int nr = one_in(2) ? 1 : 1 + below(MAX_DESC - 4), i;
	size_t done = 0, n;

	for (i = 0; i < nr; i++, done += n) {
		n = i + 1 < nr ? below(MIN(len - done, 1 + 2 * len / nr) + 1) : len - done;
		if (!n && len)
			n = 1;
		if (flags & VRING_DESC_F_WRITE && n < MIN_BUFFER)
			n = MIN_BUFFER;
		done = MIN(done, BUFFER_SIZE / 2);
		d[i] = (struct vring_desc){ .addr = where(p) + done, .len = n, .flags = flags };
	}
	return nr;
}

static void send_some(void)
{
	struct queue *q = &queues[2 * below(PAIRS) + 1];
	unsigned int n = 1 + below(one_in(4) ? BATCH : 4);
	struct vring_desc d[MAX_DESC];

	while (n--) {
		struct virtio_net_hdr_v1_hash hdr = { };
		uint8_t *p = any_buffer();
		size_t len;

		len = hdr_len + make_any(p + hdr_len, (struct virtio_net_hdr *)&hdr);
		memcpy(p, &hdr, hdr_len);
		if (one_in(32))
			len = below(hdr_len + ETH_HLEN + 1);
		add(q, d, split(d, p, len, 0));
	}
	kick(q->nr);
}

static void offer_buffers(void)
{
	struct queue *q = &queues[2 * below(PAIRS)];
	unsigned int n = 1 + below(BATCH);
	struct vring_desc d[MAX_DESC];

	while (n--) {
		size_t len = one_in(3) ? below(2048) : one_in(2) ? 1536 : 68 << 10;

		add(q, d, split(d, any_buffer(), len, VRING_DESC_F_WRITE));
	}
	kick(q->nr);
}

static void command(void)
{
	static const uint8_t classes[][3] = {	/* class, commands, length of the data */
		{ VIRTIO_NET_CTRL_RX, 6, 1 },
		{ VIRTIO_NET_CTRL_MAC, 2, 30 },
		{ VIRTIO_NET_CTRL_VLAN, 2, 2 },
		{ VIRTIO_NET_CTRL_ANNOUNCE, 1, 0 },
		{ VIRTIO_NET_CTRL_MQ, 3, 60 },
		{ VIRTIO_NET_CTRL_GUEST_OFFLOADS, 1, 8 },
	};
	const uint8_t *kind = classes[below(ARRAY_SIZE(classes))];
	struct queue *q = &queues[one_in(8) ? 2 : 2 * PAIRS];
	struct vring_desc d[MAX_DESC + 1];
	uint8_t *p = any_buffer();
	size_t i, len = kind[2];
	unsigned int nr;

	p[0] = one_in(16) ? random64() : kind[0];
	p[1] = one_in(16) ? random64() : below(kind[1]);
	if (one_in(4))
		len = below(300);
	for (i = 0; i < len; i++)
		p[2 + i] = one_in(2) ? random64() : 0;
	if (kind[0] == VIRTIO_NET_CTRL_MQ && one_in(2))
		p[2] = 1 + below(PAIRS), p[3] = 0, len = 2;
	if (kind[0] == VIRTIO_NET_CTRL_MAC)
		p[2] = below(3), p[3] = p[4] = p[5] = 0;
	if (kind[0] == VIRTIO_NET_CTRL_GUEST_OFFLOADS && one_in(2))
		memcpy(p + 2, &(uint64_t){ offered & OFFLOADS & random64() }, 8);
	nr = split(d, p, len + 2, 0);
	d[nr++] = (struct vring_desc){
		.addr = where(p) + 1024, .len = 1, .flags = VRING_DESC_F_WRITE,
	};
	add(q, d, nr);
	kick(q->nr);
	commands++;
}

/* Packets of the wire. The kernel refuses some of them. */
static void peer_sends(void)
{
	static uint8_t p[1 << 17];
	unsigned int n = 1 + below(32);

	while (n--) {
		struct virtio_net_hdr hdr;
		struct iovec iov[] = {
			{ .iov_base = &hdr, .iov_len = sizeof(hdr) },
			{ .iov_base = p },
		};

		iov[1].iov_len = MIN(make_any(p, &hdr), 65535);
		from_peer += writev(peer, iov, 2) > 0;
	}
}

static void damage_ring(void)
{
	struct queue *q = &queues[below(QUEUES)];

	switch (below(4)) {
	case 0:
		q->next += one_in(2) ? below(2 * QUEUE_SIZE) : random64();
		q->avail->idx = q->next;
		break;
	case 1: q->avail->ring[below(q->size)] = random64(); break;
	case 2: q->used->idx = random64(); break;
	case 3: q->avail->flags = random64(); break;
	}
	kick(q->nr);
}

static void write_register(void)
{
	unsigned int queue = below(QUEUES + 1), reg;

	ask("writew %#lx %#x\n", BAR + VIRTIO_PCI_COMMON_Q_SELECT, queue);
	switch (below(5)) {
	case 0:
		ask("writew %#lx 1\n", BAR + 0x3a);	/* resets the queue */
		if (queue < QUEUES)
			set_up_queue(&queues[queue], one_in(8));
		break;
	case 1:
		ask("writeb %#lx %#x\n", CONFIG + below(24), (uint8_t)random64());
		break;
	case 2:
		ask("writew %#lx %#x\n", NOTIFY + 4 * below(64), (uint16_t)random64());
		break;
	case 3:
		/* QEMU asserts that the size of a queue in use does not change. */
		reg = 4 * below(16);
		if (reg != VIRTIO_PCI_COMMON_Q_SIZE)
			ask("writel %#lx %#x\n", BAR + reg, (uint32_t)random64());
		break;
	case 4:
		set_status(one_in(2) ? random64() : 11);
		break;
	}
}

static void step(void)
{
	switch (below(32)) {
	case 0 ... 13: send_some(); break;
	case 14 ... 19: offer_buffers(); break;
	case 20 ... 23: command(); break;
	case 24 ... 28: peer_sends(); break;
	case 29: damage_ring(); break;
	case 30: write_register(); break;
	case 31: kick(below(QUEUES)); break;
	}
	steps++;
	if (get_status() & VIRTIO_CONFIG_S_NEEDS_RESET)
		broken++;
	else if (!one_in(256))
		return;
	restart((offered & (one_in(2) ? -1ULL : random64() | random64())) |
		BIT(VIRTIO_F_VERSION_1), QUEUES, one_in(4));
}

/* The mark of a valid packet */
static size_t make_valid(uint8_t *p)
{
	size_t len = 60 + below(1400);

	memset(p, 0xff, 6);
	memset(p + 6, 2, len - 6);
	put16(p + 12, PROTO);
	memcpy(p + 14, &checked, sizeof(checked));
	return len;
}

static void give_buffer(struct queue *q, unsigned int i)
{
	q->desc[i] = (struct vring_desc){
		.addr = BUFFERS + i * BUFFER_SIZE, .len = BUFFER_SIZE, .flags = VRING_DESC_F_WRITE,
	};
	make_available(q, i);
}

/* QEMU is whole if a valid packet goes through in both directions. */
static void check_whole(void)
{
	struct { struct virtio_net_hdr hdr; uint8_t data[70000]; } got;
	static uint8_t want[2048], sent[2048];
	struct queue *rx = &queues[0], *tx = &queues[1];
	struct virtio_net_hdr hdr = { };
	uint64_t end = now() + PATIENCE_MS * 1000000ULL;
	struct pollfd poll_peer = { .fd = tagged, .events = POLLIN };
	struct iovec iov[] = { { &hdr, sizeof(hdr) }, { sent, 0 } };
	uint8_t *p = ram + RAM_SIZE - BUFFER_SIZE;
	bool good = false;
	size_t len;
	ssize_t n;
	int i;

	/* Without this, nobody would read the file. */
	if (ftruncate(said, 0))
		fail("ftruncate: %m");
	checked++;
	restart((offered & OFFLOADS & random64()) | BIT(VIRTIO_F_VERSION_1), 2, false);
	for (i = 0; i < 32; i++)
		give_buffer(rx, i);
	kick(rx->nr);

	len = make_valid(want);
	memset(p, 0, HDR_LEN);
	memcpy(p + HDR_LEN, want, len);
	tx->desc[0] = (struct vring_desc){ .addr = where(p), .len = HDR_LEN + len };
	make_available(tx, 0);
	kick(tx->nr);
	while (!good) {
		if (poll(&poll_peer, 1, PATIENCE_MS) != 1 || now() > end)
			fail("no packet of the guest arrives");
		n = read(tagged, &got, sizeof(got));
		good = n == (ssize_t)(sizeof(hdr) + len) && !memcmp(got.data, want, len);
	}

	iov[1].iov_len = make_valid(sent);
	good = false;
	if (writev(peer, iov, 2) < 0)
		fail("the peer cannot send: %m");
	while (!good) {
		if (now() > end)
			fail("no packet arrives at the guest");
		for (; rx->seen != used(rx); rx->seen++) {
			struct vring_used_elem *e = &rx->used->ring[rx->seen % rx->size];

			if (e->id >= 32)
				fail("the used ring has %u", e->id);
			p = ram + BUFFERS + e->id * BUFFER_SIZE + HDR_LEN;
			good |= e->len == HDR_LEN + iov[1].iov_len &&
				!memcmp(p, sent, iov[1].iov_len);
			give_buffer(rx, e->id);
		}
		kick(rx->nr);
	}
}

static uint64_t received(const char *name)
{
	char path[128];
	uint64_t value = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/rx_packets", name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%" SCNu64, &value) != 1)
		fail("%s: %m", path);
	fclose(f);
	return value;
}

static void hostile(const char *program, const char *name, const char *netdev, long seconds)
{
	uint64_t end, before = received(name), checks = checked, to_peer;

	state = seed;
	steps = chains = commands = resets = broken = from_peer = 0;
	start(program, netdev, -1, true);
	set_up_queues();
	set_up_pci();
	check_whole();
	end = now() + seconds * 1000000000ULL;
	restart(offered, QUEUES, false);
	while (now() < end) {
		step();
		if (steps % 200)
			continue;
		check_whole();
		restart(offered, QUEUES, false);
	}
	check_whole();
	stop();
	to_peer = received(name) - before;
	printf("# %s: %" PRIu64 " steps, %" PRIu64 " chains, %" PRIu64 " commands, %" PRIu64
	       " resets, broken %" PRIu64 " times, %" PRIu64 " packets to and %" PRIu64
	       " from the wire, %" PRIu64 " checks\n", netdev, steps, chains, commands, resets,
	       broken, to_peer, from_peer, checked - checks);
	if (!broken || !commands || !from_peer || to_peer <= checked - checks)
		fail("too little has happened");
}

/* Figures -------------------------------------------------------------------------- */

static struct iovec prepared[BATCH][2];
static struct mmsghdr messages[BATCH];

static size_t batch_of(size_t size)
{
	return size > 1514 ? GSO_BATCH : BATCH;
}

/* Packets without requests, or TCP for segments, as the peer sends them */
static void prepare(size_t size, bool header)
{
	static struct virtio_net_hdr hdr[BATCH];
	size_t i;

	for (i = 0; i < batch_of(size); i++) {
		uint8_t *p = calloc(1, size);

		make_ip(p, size, &hdr[i], false, size > 1514);
		if (size <= 1514)
			memset(&hdr[i], 0, sizeof(hdr[i]));
		prepared[i][0] = (struct iovec){ &hdr[i], sizeof(hdr[i]) };
		prepared[i][1] = (struct iovec){ p, size };
		messages[i].msg_hdr.msg_iov = &prepared[i][!header];
		messages[i].msg_hdr.msg_iovlen = 1 + header;
	}
}

static void send_batch(size_t size)
{
	int n = batch_of(size);

	if (sendmmsg(peer, messages, n, 0) != n)
		fail("sendmmsg: %m");
}

/* A chain of one descriptor, or of the headers and two pieces as TCP has them */
static void prepare_tx(struct queue *q, size_t size)
{
	size_t headers = HDR_LEN + 54, half = (size - 54) / 2, i;

	for (i = 0; i < batch_of(size); i++) {
		uint8_t *p = ram + BUFFERS + i * BUFFER_SIZE;
		struct vring_desc *d = &q->desc[4 * i];

		memset(p, 0, HDR_LEN);
		memcpy(p, prepared[i][0].iov_base, prepared[i][0].iov_len);
		memcpy(p + HDR_LEN, prepared[i][1].iov_base, size);
		d->addr = where(p);
		d->len = HDR_LEN + size;
		if (size <= 1514)
			continue;
		d[0].len = headers;
		d[1].addr = d[0].addr + headers;
		d[1].len = half;
		d[2].addr = d[1].addr + half;
		d[2].len = size - 54 - half;
		d[0].flags = d[1].flags = VRING_DESC_F_NEXT;
		d[0].next = 4 * i + 1;
		d[1].next = 4 * i + 2;
	}
}

/* Gives QEMU time to do something. */
static void trip(void)
{
	ask("readb 0\n");
	trips++;
}

static void transmit(struct queue *q, size_t size)
{
	size_t i;

	for (i = 0; i < batch_of(size); i++)
		make_available(q, 4 * i);
	kick(q->nr);
	trips++;
	while (used(q) != q->next)
		trip();
}

static void offer(struct queue *q, uint16_t id)
{
	q->desc[id].addr = BUFFERS + id * RX_BUFFER;
	q->desc[id].len = RX_BUFFER;
	q->desc[id].flags = VRING_DESC_F_WRITE;
	make_available(q, id);
}

/* The peer sends a batch, and the guest gives the buffers back. */
static void receive(struct queue *q, size_t size)
{
	uint16_t want = batch_of(size) * ((HDR_LEN + size + RX_BUFFER - 1) / RX_BUFFER);

	if (peer >= 0)
		send_batch(size);
	while ((uint16_t)(used(q) - q->seen) < want)
		trip();
	for (; q->seen != used(q); q->seen++)
		offer(q, q->used->ring[q->seen % q->size].id);
	if (!(q->used->flags & VRING_USED_F_NO_NOTIFY)) {
		kick(q->nr);
		trips++;
	}
}

static void empty(int fd)
{
	static uint8_t data[1 << 17];

	while (recv(fd, data, sizeof(data), MSG_DONTWAIT) >= 0)
		;
}

static void count(const char *mode, size_t size, uint64_t packets)
{
	bool tx = !strcmp(mode, "tx"), rx = !strcmp(mode, "rx"), drain = tx && peer >= 0;
	uint64_t batches = packets / batch_of(size), warm_up = batches / 4, i;
	uint64_t begin = 0, spent = 0, own = 0, one = 0, start_of;

	if (tx || rx) {
		set_up_queues();
		set_up_pci();
		restart((offered & OFFLOADS) | BIT(VIRTIO_F_VERSION_1), 2, false);
		start_of = now();
		for (i = 0; i < 1000; i++)
			trip();
		one = (now() - start_of) / 1000;
	}
	if (tx)
		prepare_tx(&queues[1], size);
	for (i = 0; rx && i < QUEUE_SIZE; i++)
		offer(&queues[0], i);
	for (i = 0; i < batches + warm_up; i++) {
		if (i == warm_up) {
			begin = now();
			own = trips = 0;
		}
		if (tx)
			transmit(&queues[1], size);
		else if (rx)
			receive(&queues[0], size);
		else
			send_batch(size);
		if (drain) {
			start_of = now();
			empty(peer);
			own += now() - start_of;
		}
	}
	spent = now() - begin;
	printf("{\"packets\": %" PRIu64 ", \"ns\": %" PRIu64 ", \"own\": %" PRIu64
	       ", \"trips\": %" PRIu64 ", \"trip\": %" PRIu64 "}\n",
	       batches * batch_of(size), spent, own, trips, one);
}

static void figures(const char *mode, char **args, size_t size, uint64_t packets)
{
	bool inside = args[2] && !strncmp(args[2], "dgram", 5);
	int fds[2] = { -1, -1 };

	if (inside) {
		if (socketpair(AF_UNIX, SOCK_DGRAM, 0, fds))
			fail("socketpair: %m");
		peer = fds[0];
		fcntl(peer, F_SETFD, FD_CLOEXEC);
	} else if (strcmp(mode, "tx") && strcmp(args[1], "-")) {
		/* In the other direction, it would get a copy. */
		peer = open_peer(args[1], 0);
	}
	prepare(size, !inside);
	if (args[2])
		start(args[0], args[2], fds[1], false);
	count(mode, size, packets);
	if (args[2])
		stop();
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, 'r' },
		{ "size", required_argument, NULL, 'z' },
		{ "packets", required_argument, NULL, 'n' },
		{ }
	};
	uint64_t packets = 64000, i;
	long seconds = 5;
	size_t size = 64;
	const char *mode;
	int opt;

	seed = (uint64_t)time(NULL) << 20;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 's': seconds = strtol(optarg, NULL, 0); break;
		case 'r': seed = strtoull(optarg, NULL, 0); break;
		case 'z': size = strtoul(optarg, NULL, 0); break;
		case 'n': packets = strtoull(optarg, NULL, 0); break;
		default: return 2;
		}
	}
	if (argc - optind < 3) {
		fprintf(stderr, "usage: virtq hostile|tx|rx|send [OPTION...] QEMU PEER [NETDEV...]\n");
		return 2;
	}
	mode = argv[optind++];
	argv += optind;
	if (strcmp(mode, "hostile")) {
		figures(mode, argv, size, packets);
		return 0;
	}
	peer = open_peer(argv[1], 0);
	tagged = open_peer(argv[1], PROTO);
	printf("# seed %" PRIu64 "\n", seed);
	for (i = 0; argv[2 + i]; i++) {
		hostile(argv[0], argv[1], argv[2 + i], seconds);
		printf("ok %" PRIu64 " %s\n", i + 1, argv[2 + i]);
	}
	printf("1..%" PRIu64 "\n", i);
	return 0;
}
