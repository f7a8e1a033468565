// SPDX-License-Identifier: GPL-2.0
/* An end of the soak test: sends, receives, checks all packets, and tracks each
 * frame. It does not use the library, so that a fault there cannot hide one in
 * the kernel.
 */

#define _GNU_SOURCE
#include "soak.h"

#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/membarrier.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <signal.h>
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
	const char *name;
	struct tpacket4_desc *desc;
	uint32_t posted, reaped;
	char *area;
	struct queue **lent;		/* frames of the area: on which ring, or NULL */
};

/* Another socket in the fanout group of this one, which feeds it in zero-copy
 * mode. It may have the same area; then the two exchange frames.
 */
static struct {
	int fd;
	void *map;
	struct queue rx;
	bool own_area;
	uint64_t here, here_stats;	/* packets, also counted in struct end */
} member = { .fd = -1, .rx.name = "the member's Rx" };
static int fanout = -1;			/* type of the group, or -1: in none */
static uint32_t member_lost;		/* frames, since the last all_back() */
static char *member_area;
static struct queue *member_lent[SLOTS];

static struct end *me, *peer;
static int fd = -1;
static char *area;
static void *map;
static struct queue rx = { .name = "Rx" }, tx = { .name = "Tx" };
static uint32_t free_frames[FRAMES], nr_free;
static struct queue *lent[FRAMES];
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

static void __attribute__((format(printf, 1, 2))) wrong(const char *fmt, ...)
{
	char why[sizeof(me->why)];
	va_list ap;

	if (me->why[0])
		return;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	/* The main process reads it when there is a first character. */
	memcpy(me->why + 1, why + 1, sizeof(why) - 1);
	__atomic_store_n(&me->why[0], why[0], __ATOMIC_RELEASE);
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

static uint32_t nr_lent(const struct queue *q)
{
	uint32_t i, nr = 0;

	for (i = 0; i < FRAMES; i++)
		nr += lent[i] == q;
	return nr;
}

/* Where the frames of the area are, for messages. A feeder and a member of its
 * area exchange them: then a frame comes back by another ring than it was posted
 * on, but from each ring come as many as were posted there.
 */
static const char *frames_by_owner(void)
{
	bool same = member.fd >= 0 && !member.own_area;
	static char text[200];

	snprintf(text, sizeof(text),
		 "free %u; posted on, and not back from: Rx %u %u, Tx %u %u, member %u %u; closed members had %u",
		 nr_free, nr_lent(&rx), away(&rx), nr_lent(&tx), away(&tx),
		 nr_lent(&member.rx), same ? away(&member.rx) : 0, member_lost);
	return text;
}

static void post(struct queue *q, uint32_t idx, uint32_t len, uint16_t offset,
		 uint8_t flags)
{
	struct tpacket4_desc *d = slot(q, q->posted);

	if (q->lent[idx])
		wrong("frame %u is posted on %s, and is on %s (%s)", idx,
		      q->name, q->lent[idx]->name, frames_by_owner());
	q->lent[idx] = q;
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
	if (d->idx >= (q->lent == lent ? FRAMES : SLOTS) || !q->lent[d->idx]) {
		wrong("frame %llu has come back from %s, and was not posted (%s)",
		      (unsigned long long)d->idx, q->name, frames_by_owner());
		return true;
	}
	q->lent[d->idx] = NULL;
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
	/* More than CALM_PACKETS */
	while (!hold && member.fd >= 0 && !member.own_area &&
	       away(&member.rx) < SLOTS / 2 && nr_free > SLOTS / 2)
		post(&member.rx, free_frames[--nr_free], 0, 0, 0);
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
static const struct queue *packet_from;

static const char *ring_name(bool of_member)
{
	return of_member ? member.rx.name : rx.name;
}

static void note_packet(const struct header *h)
{
	bool of_member = packet_from == &member.rx;
	uint8_t *seen = &me->seen[h->seq % SEEN];

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
		if (*seen)
			wrong("packet %u has come by %s, and by %s", h->seq,
			      ring_name(*seen > 1), ring_name(of_member));
	}
	*seen = 1 + of_member;
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
		wrong("received packet %u of this end, by %s", h.seq,
		      packet_from->name);
		return;
	}
	if (h.len != packet_len) {
		wrong("packet %u has %u bytes, not %u, by %s", h.seq,
		      packet_len, h.len, packet_from->name);
		return;
	}
	for (i = sizeof(h); i < packet_len; i++) {
		if (packet[i] != pattern(h.seq, i)) {
			wrong("packet %u, byte %u of %u is %#x, not %#x, by %s",
			      h.seq, i, packet_len, packet[i],
			      pattern(h.seq, i), packet_from->name);
			return;
		}
	}
	note_packet(&h);
}

static void receive_from(struct queue *q, bool give_back)
{
	struct tpacket4_desc d;

	packet_from = q;
	while (reap(q, &d)) {
		if (me->why[0])
			return;
		if (d.error) {
			if (d.len || packet_len)
				wrong("error %u in or of a packet, by %s",
				      d.error, q->name);
		} else if (!d.len || d.offset + d.len > FRAME_SIZE ||
			   packet_len + d.len > sizeof(packet) ||
			   (d.flags & ~TP4_PKT_CONT)) {
			wrong("received offset %u length %u flags %#x by %s",
			      d.offset, d.len, d.flags, q->name);
		} else {
			memcpy(packet + packet_len,
			       q->area + d.idx * FRAME_SIZE + d.offset, d.len);
			packet_len += d.len;
			if (!(d.flags & TP4_PKT_CONT)) {
				check_packet();
				packet_len = 0;
			}
		}
		if (q->lent != lent || (give_back && !d.error && !hold))
			post(q, d.idx, 0, 0, 0);
		else
			free_frames[nr_free++] = d.idx;
	}
}

static void receive(bool give_back)
{
	uint64_t here;

	receive_from(&rx, give_back);
	if (member.fd < 0)
		return;
	here = me->here;
	/* When the socket leaves zero-copy mode, the member keeps its frames. */
	receive_from(&member.rx, true);
	member.here += me->here - here;
}

/* ---- commands ---- */

static int set_of(int sock, int opt, const void *val, socklen_t len)
{
	return setsockopt(sock, SOL_PACKET, opt, val, len) ? -errno : 0;
}

static int set(int opt, const void *val, socklen_t len)
{
	return set_of(fd, opt, val, len);
}

static int set_int_of(int sock, int opt, int val)
{
	return set_of(sock, opt, &val, sizeof(val));
}

static int set_int(int opt, int val)
{
	return set_int_of(fd, opt, val);
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
	rx.area = tx.area = area;
	rx.lent = tx.lent = lent;
	member_lost = 0;
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

static int bind_to(int sock)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = if_nametoindex(me->ifname),
	};

	return bind(sock, (void *)&ll, sizeof(ll)) ? -errno : 0;
}

static int join_group(int sock)
{
	return set_int_of(sock, PACKET_FANOUT, (me->nr + 1) | fanout << 16);
}

static int open_member_ring(void)
{
	struct tpacket_memreg_req mr = {
		.addr = (uintptr_t)member_area,
		.len = SLOTS * FRAME_SIZE,
		.frame_size = FRAME_SIZE,
	};
	struct tpacket_req4 req = {
		.desc_nr = SLOTS, .mr_fd = member.own_area ? member.fd : fd,
	};
	int err;

	err = set_int_of(member.fd, PACKET_VERSION, TPACKET_V4);
	err = err ? : set_int_of(member.fd, PACKET_IGNORE_OUTGOING, 1);
	if (member.own_area)
		err = err ? : set_of(member.fd, PACKET_MEMREG, &mr, sizeof(mr));
	err = err ? : set_of(member.fd, PACKET_RX_RING, &req, sizeof(req));
	if (err)
		return err;
	member.map = mmap(NULL, SLOTS * sizeof(struct tpacket4_desc),
			  PROT_READ | PROT_WRITE, MAP_SHARED, member.fd, 0);
	return member.map == MAP_FAILED ? -errno : 0;
}

/* The first time, the socket is in copy mode, and joins the group before. */
static int open_member(int type, bool own_area)
{
	uint32_t i;
	int err;

	if (fanout < 0) {
		fanout = type | PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
		err = join_group(fd);
		if (err)
			return err;
	}
	member.fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (member.fd < 0)
		return -errno;
	member.own_area = own_area;
	member.here = member.here_stats = 0;
	err = open_member_ring();
	if (err)
		return err;
	member.rx = (struct queue){
		.name = own_area ? "the member's Rx, of its own area" :
				   "the member's Rx",
		.desc = member.map,
		.area = own_area ? member_area : area,
		.lent = own_area ? member_lent : lent,
	};
	memset(member_lent, 0, sizeof(member_lent));
	/* Until it is a member, it gets all packets, too. The kernel does not wait
	 * for those that are on their way to it, and would be received twice if
	 * they found a frame.
	 */
	err = bind_to(member.fd);
	err = err ? : join_group(member.fd);
	if (err)
		return err;
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return -errno;
	for (i = 0; own_area && i < SLOTS; i++)
		post(&member.rx, i, 0, 0, 0);
	fill_rx();
	return 0;
}

/* Frames that it has posted are lost, under traffic. In the area of this socket,
 * which ones is known when the latter has its own back.
 */
static void close_member(void)
{
	if (member.fd < 0)
		return;
	munmap(member.map, SLOTS * sizeof(struct tpacket4_desc));
	close(member.fd);
	member.fd = -1;
	me->here -= member.here;
	me->here_stats -= member.here_stats;
	if (member.own_area)
		me->books.rx_lost += away(&member.rx);
	else
		member_lost += away(&member.rx);
}

static void close_socket(void)
{
	close_member();
	fanout = -1;
	munmap(map, 2 * SLOTS * sizeof(struct tpacket4_desc));
	close(fd);
	fd = -1;
	end_lost_socket(me);
}

/* Let the frames that closed members have left behind be used again. */
static void find_lost_frames(void)
{
	uint32_t i, nr = 0;

	if (member.fd >= 0)
		return;
	for (i = 0; i < FRAMES; i++) {
		if (!lent[i])
			continue;
		lent[i] = NULL;
		free_frames[nr_free++] = i;
		nr++;
	}
	if (nr != member_lost)
		wrong("%u frames have not come back (%s)", nr,
		      frames_by_owner());
	me->books.rx_lost += nr;
	member_lost = 0;
}

/* All frames must be returned by now, but for those of members. */
static int all_back(void)
{
	uint32_t left;

	reap_tx();
	receive(false);
	if (away(&tx) || away(&rx)) {
		wrong("descriptors have not come back (%s)", frames_by_owner());
		return -EBUSY;
	}
	find_lost_frames();
	left = member.fd < 0 || member.own_area ? 0 : away(&member.rx);
	if (nr_free + left + member_lost != FRAMES)
		wrong("frames are missing, or there twice (%s)",
		      frames_by_owner());
	if (member.fd < 0 && !end_is_settled(me))
		wrong("the books do not balance: what was lent is not what came back");
	fill_rx();
	return 0;
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

static int add_statistics_of(int sock)
{
	struct tpacket_stats_v4 st = {};
	struct books *b = &me->books;
	socklen_t len = sizeof(st);

	if (getsockopt(sock, SOL_PACKET, PACKET_STATISTICS, &st, &len))
		return -errno;
	/* Packets between the two are in the next one. */
	b->tp_packets += st.tp_packets;
	b->tp_drops += st.tp_drops;
	b->ring_full += st.rx_ring_full;
	b->no_desc += st.rx_no_desc;
	me->here_stats += st.tp_packets - st.tp_drops;
	return 0;
}

static int add_statistics(void)
{
	uint64_t stats;
	int err;

	receive(true);
	err = add_statistics_of(fd);
	if (err || member.fd < 0)
		return err;
	stats = me->here_stats;
	err = add_statistics_of(member.fd);
	member.here_stats += me->here_stats - stats;
	return err;
}

static int obey(enum command command)
{
	int err = 0;

	switch (command) {
	case CMD_OPEN:
		return open_socket();
	case CMD_BIND:
		hold = false;
		return bind_to(fd);
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
	case CMD_MEMBER_OPEN:
		return open_member(me->fanout_type, me->own_area);
	case CMD_MEMBER_CLOSE:
		add_statistics();
		close_member();
		return 0;
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
	member_area = mmap(NULL, SLOTS * FRAME_SIZE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED || member_area == MAP_FAILED)
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
