// SPDX-License-Identifier: GPL-2.0
/* The fuzzer's memory: windows for rings, areas for packets, and the steps that
 * write valid and invalid data there.
 *
 * Windows and areas are always accessible: a handler maps a new page after a
 * fault. So workers need not know which mappings the others remove.
 */

#define _GNU_SOURCE
#include "fuzz.h"

#include <linux/if_packet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE	4096UL

int mem_map_anonymous(void *addr, size_t len)
{
	void *p = mmap(addr, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	return p == MAP_FAILED ? -errno : 0;
}

static bool is_within(const char *p, const char *start, size_t len)
{
	return p >= start && p < start + len;
}

static void fault(int sig, siginfo_t *info, void *context)
{
	char *p = info->si_addr;

	if (is_within(p, rd.windows, NR_SLOTS * WINDOW) ||
	    is_within(p, rd.areas, NR_AREAS * AREA)) {
		p -= (uintptr_t)p % PAGE;
		/* The first try may be the allocation that is made to fail. */
		if (!mem_map_anonymous(p, PAGE) || !mem_map_anonymous(p, PAGE))
			return;
	}
	signal(sig, SIG_DFL);
}

int mem_init(void)
{
	struct sigaction action = {
		.sa_sigaction = fault,
		.sa_flags = SA_SIGINFO | SA_NODEFER,
	};
	unsigned int i;

	rd.windows = mmap(NULL, NR_SLOTS * WINDOW, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* The first area is private memory, the others are shared */
	rd.areas = mmap(NULL, NR_AREAS * AREA, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	rd.hole = mmap(NULL, AREA, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (rd.windows == MAP_FAILED || rd.areas == MAP_FAILED ||
	    rd.hole == MAP_FAILED)
		return -errno;
	if (mem_map_anonymous(rd.areas, AREA))
		return -errno;
	for (i = 0; i < NR_AREAS * AREA; i++)
		rd.areas[i] = i * 7;
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	return 0;
}

/* ---- a correct program ---- */

static struct tpacket4_desc *slot_ring(unsigned int slot, bool tx)
{
	struct tpacket4_desc *ring = (void *)slot_window(slot);

	return tx ? ring + rd.slots[slot].rx_nr : ring;
}

static unsigned int packet_len(struct rnd *r, unsigned int room)
{
	static const unsigned int lens[] = { 14, 42, 60, 64, 128, 1000, 1514 };
	unsigned int len = one_in(r, 4) ? 1 + rnd(r, room) : PICK(r, lens);

	return len < room ? len : room;
}

static void post_one(struct tpacket4_desc *d, uint64_t idx, uint32_t len,
		     uint16_t offset, uint8_t flags)
{
	d->idx = idx;
	d->len = len;
	d->offset = offset;
	d->error = 0;
	__atomic_store_n(&d->flags, flags | TP4_DESC_KERNEL, __ATOMIC_RELEASE);
}

static void post_ring(struct rnd *r, unsigned int slot, bool tx, unsigned int n)
{
	struct slot *s = &rd.slots[slot];
	unsigned int nr = tx ? s->tx_nr : s->rx_nr;
	unsigned int *pos = tx ? &s->tx_pos : &s->rx_pos;
	struct tpacket4_desc *ring = slot_ring(slot, tx);
	unsigned int frames = s->nr_frames, size = s->frame_size;

	if (!nr || !frames || size < 128)
		return;
	while (n--) {
		struct tpacket4_desc *d = &ring[*pos & (nr - 1)];
		unsigned int offset = one_in(r, 3) ? rnd(r, 512) : 256;
		unsigned int at = offset < size ? offset : offset % size;
		uint64_t idx = d->idx;

		if (__atomic_load_n(&d->flags, __ATOMIC_ACQUIRE) &
		    TP4_DESC_KERNEL)
			break;
		if (idx >= frames || one_in(r, 16))
			idx = (*pos * 13 + tx * frames / 2) % frames;
		(*pos)++;
		if (tx)
			post_one(d, idx, packet_len(r, size - at), at,
				 one_in(r, 12) ? TP4_PKT_CONT : 0);
		else
			post_one(d, idx, 0, 0, 0);
	}
}

void mem_post(struct rnd *r, unsigned int slot)
{
	post_ring(r, slot, false, 1 + rnd(r, 256));
	post_ring(r, slot, true, 1 + rnd(r, 64));
}

static void step_post(struct rnd *r)
{
	mem_post(r, rnd(r, NR_SLOTS));
}

static void step_post_rx(struct rnd *r)
{
	post_ring(r, rnd(r, NR_SLOTS), false, 1 + rnd(r, 1024));
}

static void step_post_tx(struct rnd *r)
{
	post_ring(r, rnd(r, NR_SLOTS), true, 1 + rnd(r, 300));
}

/* ---- a hostile program ---- */

/* Any value, mostly those with an effect */
static uint64_t odd_number(struct rnd *r)
{
	static const uint64_t values[] = {
		0, 1, 2, 0x7f, 0x80, 0x81, 0xff, 255, 256, 2047, 2048, 4095,
		4096, 0x7fff, 0xffff, 0x10000, 0x7fffffff, 0x80000000,
		0xffffffff, 0x100000000ULL, 0x7fffffffffffffffULL,
		0xffffffffffffffffULL,
	};

	return one_in(r, 3) ? rnd64(r) : PICK(r, values) + rnd(r, 3) - 1;
}

static void spoil(struct rnd *r, struct tpacket4_desc *d)
{
	static const uint8_t bits[] = {
		TP4_DESC_KERNEL, TP4_DESC_SEEN, TP4_PKT_CONT,
	};

	switch (rnd(r, 7)) {
	case 0:
		d->idx = odd_number(r);
		break;
	case 1:
		d->len = odd_number(r);
		break;
	case 2:
		d->offset = odd_number(r);
		break;
	case 3:
		d->flags = odd_number(r);
		break;
	case 4:
		d->flags ^= PICK(r, bits);
		break;
	case 5:
		post_one(d, odd_number(r), odd_number(r), odd_number(r),
			 odd_number(r));
		break;
	case 6:
		post_one(d, rnd(r, 600), 1 + rnd(r, 2048), rnd(r, 2048),
			 TP4_PKT_CONT * rnd(r, 2));
		break;
	}
}

/* Mostly the first page of a window, the start of the ring; else anywhere. */
static void step_scribble(struct rnd *r)
{
	unsigned int slot = rnd(r, NR_SLOTS), n = 1 + rnd(r, 64);
	struct tpacket4_desc *ring = (void *)slot_window(slot);
	const struct slot *s = &rd.slots[slot];
	unsigned int nr = s->rx_nr + s->tx_nr;
	unsigned int first;

	/* One page more, for that of the status */
	if (nr > (WINDOW - PAGE) / sizeof(*ring))
		nr = 0;
	first = rnd(r, nr + PAGE / sizeof(*ring));
	if (one_in(r, 2))
		first = s->rx_nr + s->tx_pos % (s->tx_nr + 1);
	while (n--)
		spoil(r, &ring[first++ % (WINDOW / sizeof(*ring))]);
}

/* The same value in all of a ring: one long chain, for example */
static void step_flood(struct rnd *r)
{
	unsigned int i, slot = rnd(r, NR_SLOTS);
	const struct slot *s = &rd.slots[slot];
	struct tpacket4_desc *ring = (void *)slot_window(slot);
	unsigned int nr = s->rx_nr + s->tx_nr;
	uint64_t idx = one_in(r, 2) ? rnd(r, 100) : odd_number(r);
	uint32_t len = one_in(r, 2) ? 1 + rnd(r, 1500) : odd_number(r);
	uint8_t flags = one_in(r, 2) ? TP4_PKT_CONT : 0;

	for (i = nr; i--;)
		post_one(&ring[i], idx, len, rnd(r, 64), flags);
}

static void step_scribble_area(struct rnd *r)
{
	char *p = rd.areas + rnd(r, NR_AREAS) * AREA;
	unsigned int n = 1 + rnd(r, 32);

	while (n--) {
		uint64_t value = odd_number(r);

		/* Mostly headers, since the kernel reads these */
		memcpy(p + rnd(r, AREA / 2048) * 2048 + rnd(r, 128) * 8, &value,
		       sizeof(value));
	}
}

/* Headers that a stack or a driver reads */
static void step_write_header(struct rnd *r)
{
	static const unsigned char headers[][20] = {
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 0,
		  0x45, 0, 0, 100, 0, 0 },
		{ 0x02, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 42, 8, 0,
		  0x45, 0 },
		{ 0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60, 0,
		  0, 0, 0, 64 },
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88,
		  0xa8, 0, 1, 0x81, 0, 0, 2 },
	};
	unsigned int i, offset = one_in(r, 2) ? 256 : rnd(r, 512);
	char *p = rd.areas + rnd(r, NR_AREAS) * AREA;
	const unsigned char *header = headers[rnd(r, ARRAY_SIZE(headers))];

	for (i = 0; i < AREA / 2048; i++)
		memcpy(p + i * 2048 + offset, header, sizeof(headers[0]));
}

static const struct step ring_steps[] = {
	{ "post", 30, step_post },
	{ "post rx", 30, step_post_rx },
	{ "post tx", 30, step_post_tx },
	{ "scribble", 30, step_scribble },
	{ "flood", 2, step_flood },
	{ "scribble area", 10, step_scribble_area },
	{ "write header", 2, step_write_header },
};

const struct step_kind ring_kind = {
	"rings", ring_steps, ARRAY_SIZE(ring_steps), 150,
};
