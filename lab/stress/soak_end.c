// SPDX-License-Identifier: GPL-2.0
/* An end of the soak test: sends, receives, checks all packets, and tracks each
 * frame. It does not use the library, so that a fault there cannot hide one in
 * the kernel.
 */

#define _GNU_SOURCE
#include "soak.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define HEADROOM	256		/* before sent data */
#define PIECE		(FRAME_SIZE - HEADROOM)
#define ETHERTYPE	0x88b5		/* for experiments */
#define MAX_LEN		16384

struct header {
	struct ethhdr eth;
	uint16_t pad;
	uint32_t from, life, seq, phase, len;
} __attribute__((__packed__));

struct queue {
	struct tpacket4_desc *desc;
	uint32_t posted, reaped;
};

static struct end *me, *peer;
static int fd = -1;
static char *area;
static void *map;
static struct queue rx, tx;
static uint32_t free_frames[FRAMES], nr_free;
static bool lent[FRAMES];
static struct rnd rnd_len;
static bool hold;			/* CMD_HOLD */

static uint64_t sum(const uint64_t *counts)
{
	uint64_t n = 0;
	int i;

	for (i = 0; i < NR_ERRNOS; i++)
		n += counts[i];
	return n;
}

void end_lost_socket(struct end *e)
{
	struct books *b = &e->books;

	e->is_open = false;
	b->tx_lost = b->tx_lent - sum(b->tx_back);
	b->rx_lost = b->rx_lent - sum(b->rx_back);
	b->posted_lost = b->posted - sum(b->sent);
}

bool end_is_settled(const struct end *e)
{
	const struct books *b = &e->books;

	return b->tx_lent == sum(b->tx_back) + b->tx_lost &&
	       b->rx_lent == sum(b->rx_back) + b->rx_lost &&
	       b->posted == sum(b->sent) + b->posted_lost;
}

static void wrong(const char *fmt, ...)
{
	va_list ap;

	if (me->why[0])
		return;
	va_start(ap, fmt);
	vsnprintf(me->why, sizeof(me->why), fmt, ap);
	va_end(ap);
}

/* ---- rings ---- */

static struct tpacket4_desc *slot(struct queue *q, uint32_t pos)
{
	return &q->desc[pos % SLOTS];
}

static uint32_t away(const struct queue *q)
{
	return q->posted - q->reaped;
}

static void post(struct queue *q, uint32_t idx, uint32_t len, uint16_t offset,
		 uint8_t flags)
{
	struct tpacket4_desc *d = slot(q, q->posted);

	if (lent[idx])
		wrong("frame %u is lent twice", idx);
	lent[idx] = true;
	d->idx = idx;
	d->len = len;
	d->offset = offset;
	d->error = 0;
	__atomic_store_n(&d->flags, flags | TP4_DESC_KERNEL, __ATOMIC_RELEASE);
	q->posted++;
	if (q == &tx)
		me->books.tx_lent++;
	else
		me->books.rx_lent++;
}

static bool reap(struct queue *q, struct tpacket4_desc *d)
{
	struct tpacket4_desc *from = slot(q, q->reaped);

	if (q->posted == q->reaped ||
	    __atomic_load_n(&from->flags, __ATOMIC_ACQUIRE) & TP4_DESC_KERNEL)
		return false;
	*d = *from;
	q->reaped++;
	if (d->idx >= FRAMES || !lent[d->idx]) {
		wrong("frame %llu has come back, and was not lent",
		      (unsigned long long)d->idx);
		return true;
	}
	lent[d->idx] = false;
	if (q == &tx)
		me->books.tx_back[d->error % NR_ERRNOS]++;
	else
		me->books.rx_back[d->error % NR_ERRNOS]++;
	return true;
}

static void fill_rx(void)
{
	/* The other half of the frames is for sending. */
	while (!hold && away(&rx) < SLOTS && nr_free > SLOTS / 2)
		post(&rx, free_frames[--nr_free], 0, 0, 0);
}

/* ---- sending ---- */

static uint8_t pattern(uint32_t seq, uint32_t pos)
{
	return seq * 31 + pos;
}

static uint32_t pick_len(void)
{
	static const uint32_t lens[] = { 60, 61, 64, 300, 1000, 1514 };
	uint32_t len = PICK(&rnd_len, lens);

	if (one_in(&rnd_len, 16))
		len = 60 + rnd(&rnd_len, me->max_len - 60);
	return len < me->max_len ? len : me->max_len;
}

/* A returned descriptor does not show whether it is the last one of its packet:
 * the program must know how many it has posted. In copy mode, packets may
 * overtake each other, so with mixed lengths only the sum is known.
 */
static uint8_t tx_pieces[SLOTS];
static uint32_t pieces_in, pieces_out, pieces_left;
static uint8_t packet_error;

/* There are frames and slots for any packet. */
static void send_one(void)
{
	uint32_t len = pick_len(), pieces = (len + PIECE - 1) / PIECE, i;
	struct header h = {
		.eth.h_dest = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
		.eth.h_source = { 2, 0, 0, 0, 0, me->nr },
		.eth.h_proto = htons(ETHERTYPE),
		.from = me->nr,
		.life = me->life,
		.seq = me->next,
		.phase = me->phase,
		.len = len,
	};
	uint8_t packet[MAX_LEN];

	memcpy(packet, &h, sizeof(h));
	for (i = sizeof(h); i < len; i++)
		packet[i] = pattern(h.seq, i);
	for (i = 0; i < pieces; i++) {
		uint32_t idx = free_frames[--nr_free];
		uint32_t nr = len - i * PIECE < PIECE ? len - i * PIECE : PIECE;

		memcpy(area + idx * FRAME_SIZE + HEADROOM, packet + i * PIECE,
		       nr);
		post(&tx, idx, nr, HEADROOM, i + 1 < pieces ? TP4_PKT_CONT : 0);
	}
	tx_pieces[pieces_in++ % SLOTS] = pieces;
	me->next++;
	me->books.posted++;
}

static void reap_tx(void)
{
	struct tpacket4_desc d;

	while (reap(&tx, &d)) {
		if (d.len)
			wrong("a sent descriptor has length %u", d.len);
		if (d.idx < FRAMES)
			free_frames[nr_free++] = d.idx;
		if (!pieces_left) {
			pieces_left = tx_pieces[pieces_out++ % SLOTS];
			packet_error = 0;
		}
		if (d.error)
			packet_error = d.error;
		if (!--pieces_left)
			me->books.sent[packet_error % NR_ERRNOS]++;
	}
}

static void kick(int flags)
{
	if (sendto(fd, NULL, 0, flags | MSG_DONTWAIT, NULL, 0) < 0) {
		/* down or removed, full, or changing its mode */
		switch (errno) {
		case ENETDOWN:
		case ENXIO:
		case ENOBUFS:
		case EAGAIN:
		case EBUSY:
		case EINTR:
		case EINVAL:	/* there is no ring before CMD_OPEN */
		case ENODEV:
			usleep(500);
			break;
		default:
			wrong("sendto: %s", strerror(errno));
		}
	}
}

/* ---- receiving ---- */

static uint8_t packet[MAX_LEN + FRAME_SIZE];
static uint32_t packet_len;

static void note_packet(const struct header *h)
{
	if (h->life != me->seen_life) {
		if (h->life < me->seen_life) {
			me->books.reordered++;
			return;
		}
		me->seen_life = h->life;
		me->seen_top = 0;
		memset(me->seen, 0, sizeof(me->seen));
	}
	/* @seen_top is one more than the highest number received. */
	if (h->seq >= me->seen_top) {
		while (me->seen_top <= h->seq)
			me->seen[me->seen_top++ % SEEN] = 0;
	} else {
		me->books.reordered++;
		if (me->seen_top - h->seq > SEEN) {
			wrong("packet %u is very late, after %u", h->seq,
			      me->seen_top);
			return;
		}
		if (me->seen[h->seq % SEEN])
			wrong("packet %u has come twice", h->seq);
	}
	me->seen[h->seq % SEEN] = 1;
	me->books.received++;
	if (h->phase == me->in_phase)
		__atomic_fetch_add(&me->phase_nr, 1, __ATOMIC_RELEASE);
}

static void check_packet(void)
{
	struct header h;
	uint32_t i;

	me->here++;
	memcpy(&h, packet, sizeof(h));
	if (packet_len < sizeof(h) || h.eth.h_proto != htons(ETHERTYPE)) {
		me->books.foreign++;
		return;
	}
	if (h.from != (uint32_t)peer->nr) {
		wrong("received a packet of this end");
		return;
	}
	if (h.len != packet_len) {
		wrong("packet %u has %u bytes, not %u", h.seq, packet_len,
		      h.len);
		return;
	}
	for (i = sizeof(h); i < packet_len; i++) {
		if (packet[i] != pattern(h.seq, i)) {
			wrong("packet %u, byte %u of %u is %#x, not %#x",
			      h.seq, i, packet_len, packet[i],
			      pattern(h.seq, i));
			return;
		}
	}
	note_packet(&h);
}

static void receive(bool give_back)
{
	struct tpacket4_desc d;

	while (reap(&rx, &d)) {
		if (d.idx >= FRAMES)
			return;
		if (d.error) {
			if (d.len || packet_len)
				wrong("error %u in or of a packet", d.error);
		} else if (!d.len || d.offset + d.len > FRAME_SIZE ||
			   packet_len + d.len > sizeof(packet) ||
			   (d.flags & ~TP4_PKT_CONT)) {
			wrong("received offset %u length %u flags %#x",
			      d.offset, d.len, d.flags);
		} else {
			memcpy(packet + packet_len,
			       area + d.idx * FRAME_SIZE + d.offset, d.len);
			packet_len += d.len;
			if (!(d.flags & TP4_PKT_CONT)) {
				check_packet();
				packet_len = 0;
			}
		}
		if (give_back && !d.error && !hold)
			post(&rx, d.idx, 0, 0, 0);
		else
			free_frames[nr_free++] = d.idx;
	}
}

/* ---- commands ---- */

static int set(int opt, const void *val, socklen_t len)
{
	return setsockopt(fd, SOL_PACKET, opt, val, len) ? -errno : 0;
}

static int set_int(int opt, int val)
{
	return set(opt, &val, sizeof(val));
}

/* No frame is in use. */
static void forget_rings(void)
{
	uint32_t i;

	memset(lent, 0, sizeof(lent));
	nr_free = 0;
	for (i = 0; i < FRAMES; i++)
		free_frames[nr_free++] = i;
	rx.posted = rx.reaped = tx.posted = tx.reaped = 0;
	pieces_in = pieces_out = pieces_left = packet_len = 0;
}

static int open_socket(void)
{
	struct tpacket_memreg_req mr = {
		.addr = (uintptr_t)area,
		.len = FRAMES * FRAME_SIZE,
		.frame_size = FRAME_SIZE,
	};
	struct tpacket_req4 req = { .desc_nr = SLOTS };
	size_t len = 2 * SLOTS * sizeof(struct tpacket4_desc);
	int sndbuf = 4 << 20, err;

	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf, sizeof(sndbuf));
	req.mr_fd = fd;
	err = set_int(PACKET_VERSION, TPACKET_V4);
	err = err ? : set_int(PACKET_IGNORE_OUTGOING, 1);
	err = err ? : set(PACKET_MEMREG, &mr, sizeof(mr));
	err = err ? : set(PACKET_RX_RING, &req, sizeof(req));
	err = err ? : set(PACKET_TX_RING, &req, sizeof(req));
	if (err)
		return err;
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	rx.desc = map;
	tx.desc = rx.desc + SLOTS;
	forget_rings();
	me->life++;
	me->next = 0;
	me->here = 0;
	me->here_stats = 0;
	me->is_open = true;
	fill_rx();
	return 0;
}

static void close_socket(void)
{
	munmap(map, 2 * SLOTS * sizeof(struct tpacket4_desc));
	close(fd);
	fd = -1;
	end_lost_socket(me);
}

static int bind_socket(void)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = if_nametoindex(me->ifname),
	};

	return bind(fd, (void *)&ll, sizeof(ll)) ? -errno : 0;
}

/* All frames must be returned by now. */
static int all_back(void)
{
	reap_tx();
	receive(false);
	if (away(&tx) || away(&rx)) {
		wrong("%u Tx and %u Rx descriptors have not come back",
		      away(&tx), away(&rx));
		return -EBUSY;
	}
	if (nr_free != FRAMES)
		wrong("%u of %u frames are there", nr_free, FRAMES);
	if (!end_is_settled(me))
		wrong("the books do not balance: what was lent is not what came back");
	fill_rx();
	return 0;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

static int drain(void)
{
	uint64_t end = now_ms() + WAIT_MS / 2;

	while (away(&tx)) {
		kick(0);
		reap_tx();
		receive(true);
		if (now_ms() > end)
			return -ETIMEDOUT;
	}
	return 0;
}

static int add_statistics(void)
{
	struct tpacket_stats_v4 st = {};
	struct books *b = &me->books;
	socklen_t len = sizeof(st);

	receive(true);
	if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &st, &len))
		return -errno;
	/* Packets between the two are in the next one. */
	b->tp_packets += st.tp_packets;
	b->tp_drops += st.tp_drops;
	b->ring_full += st.rx_ring_full;
	b->no_desc += st.rx_no_desc;
	me->here_stats += st.tp_packets - st.tp_drops;
	return 0;
}

static int obey(enum command command)
{
	int err = 0;

	switch (command) {
	case CMD_OPEN:
		return open_socket();
	case CMD_BIND:
		hold = false;
		return bind_socket();
	case CMD_HOLD:
		hold = true;
		return 0;
	case CMD_ZC_ON:
		err = drain();
		return err ? : set_int(PACKET_ZEROCOPY, 1);
	case CMD_ZC_OFF:
		err = set_int(PACKET_ZEROCOPY, 0);
		return err ? : all_back();
	case CMD_GONE:
		return all_back();
	case CMD_CLOSE:
		add_statistics();
		close_socket();
		return 0;
	case CMD_DRAIN:
		return drain();
	case CMD_SYNC:
		return add_statistics();
	case CMD_QUIT:
		_exit(0);
	default:
		return -EINVAL;
	}
}

static void look_for_command(void)
{
	uint32_t asked = __atomic_load_n(&me->asked, __ATOMIC_ACQUIRE);

	if (asked == me->done)
		return;
	me->result = obey(me->command);
	__atomic_store_n(&me->done, asked, __ATOMIC_RELEASE);
}

static bool may_send(void)
{
	uint32_t quota = __atomic_load_n(&me->quota, __ATOMIC_ACQUIRE);

	if (hold || !__atomic_load_n(&me->tx_on, __ATOMIC_ACQUIRE) || !quota)
		return false;
	if (quota != UINT32_MAX)
		me->quota = quota - 1;
	return true;
}

void end_main(struct end *e, uint64_t seed)
{
	unsigned int n;

	me = e;
	peer = &ends[!e->nr];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rnd_len = rnd_stream(seed, 10 + e->nr, e->life);
	area = mmap(NULL, FRAMES * FRAME_SIZE, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		_exit(1);
	for (;;) {
		look_for_command();
		if (!me->is_open) {
			usleep(1000);
			continue;
		}
		for (n = 0; n < 16 && nr_free > 8 &&
		     SLOTS - away(&tx) > 8 && may_send(); n++)
			send_one();
		if (away(&tx))
			kick(0);
		reap_tx();
		receive(true);
		fill_rx();
		if (!n)
			usleep(200);
		else
			sched_yield();
	}
}
