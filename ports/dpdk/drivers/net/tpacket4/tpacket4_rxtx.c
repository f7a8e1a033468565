/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rx and Tx, in all processes.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include <linux/virtio_net.h>

#include <rte_atomic.h>
#include <rte_errno.h>
#include <rte_ip.h>
#include <rte_mbuf_dyn.h>
#include <rte_net.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "rte_eth_tpacket4.h"

/* <linux/virtio_net.h> has it since Linux 6.2. */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

/* Where a frame of the driver's notes that it is the last one of its packet */
#define LAST_MARK	sizeof(struct tpacket4_meta)
#define TX_SEG_FLAGS	(RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_UDP_SEG)
#define TX_META_FLAGS	(RTE_MBUF_F_TX_L4_MASK | TX_SEG_FLAGS)

const struct tpacket4_tx_error tpacket4_tx_errors[NR_TX_ERRORS] = {
	{ 0, "tx_error_other" },	/* first */
	{ EINVAL, "tx_error_invalid" },
	{ EMSGSIZE, "tx_error_size" },
	{ ENOBUFS, "tx_error_no_buffer" },
	{ EOPNOTSUPP, "tx_error_offload" },
	{ ENETDOWN, "tx_error_down" },
	{ ECANCELED, "tx_error_cancelled" },
};

static int timestamp_offset = -1;
static uint64_t timestamp_flag, launch_flag;

/* --- Rx -------------------------------------------------------------------------------- */

/* Most calls for which an empty queue is not busy polled. A busy poll takes as long as ten. */
#define MAX_PAUSE	15

/*
 * The ring is empty: lets the device look for packets and frames. An lcore may have many queues,
 * of which few have packets, and a busy poll is a system call, so one that finds nothing is
 * repeated after 1, 3, 7 and then 15 more calls.
 */
static __rte_noinline bool
poll_device(struct rx_queue *q)
{
	struct queue_pair *pair = q->pair;
	struct tp4_socket *s = socket_of(pair);

	/* A program that only receives now has packets to send, too. */
	if (unlikely(pair->tx_stalled))
		kick_tx(pair);
	if (q->paused) {
		q->paused--;
		return false;
	}
	if (q->busy_poll) {
		q->pause = RTE_MIN(2 * q->pause + 1, MAX_PAUSE);
		q->paused = q->pause;
		tp4_busy_poll(s);
	} else if (tp4_rx_need_kick(s)) {
		poll(&(struct pollfd){ .fd = s->fd, .events = POLLIN }, 1, 0);
	} else {
		return false;
	}
	return true;
}

/* All of a descriptor that the kernel has written, in one load */
#define DESC_KERNEL	((uint64_t)TP4_DESC_KERNEL << 56)
#define DESC_CONT	((uint64_t)TP4_PKT_CONT << 56)
#define DESC_META	((uint64_t)TP4_META << 56)
#define DESC_ERROR	((uint64_t)UINT8_MAX << 48)
#define DESC_ANY	(DESC_ERROR | (uint64_t)UINT8_MAX << 56)

static inline uint64_t
read_desc(const struct tpacket4_desc *d)
{
#if defined(RTE_ARCH_64) && RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN
	uint64_t state = *(volatile tp4_word *)__tp4_word(d);

	rte_io_rmb();
	return state;
#else
	uint64_t flags = *(const volatile uint8_t *)&d->flags;

	rte_io_rmb();
	return d->len | (uint64_t)d->offset << 32 | (uint64_t)d->error << 48 | flags << 56;
#endif
}

static inline void
set_received(struct rte_mbuf *m, uint64_t rearm, uint64_t offset, uint32_t len)
{
#if RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN
	rearm += offset;
	memcpy(&m->data_off, &rearm, sizeof(rearm));
#else
	memcpy(&m->data_off, &rearm, sizeof(rearm));
	m->data_off += offset;
#endif
	m->packet_type = 0;
	m->pkt_len = len;
	m->data_len = len;
}

static inline void
read_meta(struct rte_mbuf *m, const struct tpacket4_meta *meta)
{
	uint64_t flags = m->ol_flags;

	if (meta->flags & TP4_META_RX_CSUM_VALID)
		flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	else if (meta->flags & TP4_META_CSUM)	/* of this host, not computed yet */
		flags |= RTE_MBUF_F_RX_L4_CKSUM_NONE;
	if (meta->flags & TP4_META_RX_HASH) {
		flags |= RTE_MBUF_F_RX_RSS_HASH;
		m->hash.rss = meta->hash;
	}
	if (meta->flags & TP4_META_RX_VLAN) {	/* the tag is in the data, too */
		flags |= RTE_MBUF_F_RX_VLAN;
		m->vlan_tci = meta->vlan_tci;
	}
	if (meta->flags & TP4_META_GSO) {
		flags |= RTE_MBUF_F_RX_LRO;
		m->tso_segsz = meta->gso_size;
	}
	if (timestamp_offset >= 0) {
		*RTE_MBUF_DYNFIELD(m, timestamp_offset, rte_mbuf_timestamp_t *) = meta->tstamp;
		flags |= timestamp_flag;
	}
	m->ol_flags = flags;
}

/* Checks the checksum of an IPv4 header, of which the kernel's metadata say nothing. */
static void
check_ipv4(struct rte_mbuf *m)
{
	const uint32_t layers = RTE_PTYPE_L2_MASK | RTE_PTYPE_L3_MASK;
	struct rte_net_hdr_lens lens = { 0 };

	if (!RTE_ETH_IS_IPV4_HDR(rte_net_get_ptype(m, &lens, layers)) ||
	    lens.l2_len + lens.l3_len > rte_pktmbuf_data_len(m))
		return;
	if (lens.l3_len >= sizeof(struct rte_ipv4_hdr) &&
	    rte_raw_cksum(rte_pktmbuf_mtod_offset(m, void *, lens.l2_len), lens.l3_len) ==
	    UINT16_MAX)
		m->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD;
	else
		m->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_BAD;
}

/* Offloads that the driver does itself */
static __rte_noinline void
finish_packet(const struct rx_queue *q, struct rte_mbuf *m)
{
	if (q->check_ip)
		check_ipv4(m);
	/* rte_vlan_strip() does not look at the length. */
	if (q->strip_tag && rte_pktmbuf_data_len(m) >= RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN)
		rte_vlan_strip(m);
}

/* Adds a frame to a packet. Returns the packet if it is complete, else NULL. */
static __rte_noinline struct rte_mbuf *
add_segment(struct rx_queue *q, struct rte_mbuf *m, bool more)
{
	if (!q->head) {
		q->head = m;
	} else {
		q->tail->next = m;
		q->head->nb_segs++;
		q->head->pkt_len += m->data_len;
	}
	q->tail = m;
	if (more)
		return NULL;
	m = q->head;
	q->head = NULL;
	if (m->nb_segs > 1 && !q->scatter) {
		rte_pktmbuf_free(m);
		q->errors++;
		return NULL;
	}
	return m;
}

/* A frame came back without a packet. */
static __rte_noinline void
drop_frame(struct rx_queue *q, struct rte_mbuf *m)
{
	rte_mempool_put(q->pool, m);
	rte_pktmbuf_free(q->head);
	q->head = NULL;
}

/* Gets mbufs of the pool. Returns their number. */
static __rte_noinline unsigned int
refill_spare(struct rx_queue *q)
{
	unsigned int nr = q->nr_spare;

	if (!rte_mempool_get_bulk(q->pool, q->spare, MAX_SPARE - nr)) {
		q->nr_spare = MAX_SPARE;
	} else if (!nr) {
		if (rte_mempool_get(q->pool, &q->spare[MAX_SPARE - 1]))
			rte_eth_devices[q->pair->port].data->rx_mbuf_alloc_failed++;
		else
			q->nr_spare = 1;
	}
	return q->nr_spare;
}

static inline void *
get_spare(struct rx_queue *q)
{
	return q->spare[MAX_SPARE - q->nr_spare--];
}

/*
 * What receive() leaves: packets of several frames, and frames without a packet, for example.
 * There are as many spare mbufs as @nb.
 */
static __rte_noinline uint16_t
receive_rest(struct rx_queue *q, struct rte_mbuf **bufs, uint16_t nb)
{
	const struct tp4_ring *r = &q->ring;
	uint16_t got = 0;

	while (nb--) {
		struct tpacket4_desc *d = &r->q.ring[q->next & r->q.ring_mask];
		uint64_t state = read_desc(d);
		struct rte_mbuf *m;

		if (state & DESC_KERNEL)
			break;
		m = idx_to_mbuf(q->base, d->idx);
		tp4_desc_give(d, mbuf_to_idx(q->base, get_spare(q)), 0, 0, 0);
		q->next++;
		if (state & DESC_ERROR) {
			drop_frame(q, m);
			continue;
		}
		set_received(m, q->rearm, (uint16_t)(state >> 32), state);
		m->ol_flags = 0;
		if (state & DESC_META)
			read_meta(m, (void *)((uint8_t *)m + q->lead));
		m = add_segment(q, m, state & DESC_CONT);
		if (!m)
			continue;
		q->bytes += m->pkt_len;
		if (q->finish)
			finish_packet(q, m);
		bufs[got++] = m;
	}
	return got;
}

/* Appends the data of a frame to a packet, in as many mbufs as it takes. */
static bool
append_data(struct rte_mempool *pool, struct rte_mbuf *head, const uint8_t *data, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_lastseg(head);

	while (len) {
		uint16_t room = rte_pktmbuf_tailroom(m);

		if (!room) {
			m->next = rte_pktmbuf_alloc(pool);
			if (!m->next)
				return false;
			m = m->next;
			head->nb_segs++;
			continue;
		}
		room = RTE_MIN(room, len);
		memcpy(rte_pktmbuf_mtod_offset(m, void *, m->data_len), data, room);
		m->data_len += room;
		head->pkt_len += room;
		data += room;
		len -= room;
	}
	return true;
}

/* Copies a frame to a packet. Returns the packet if it is complete, else NULL. */
static struct rte_mbuf *
copy_frame(struct rx_queue *q, const struct tpacket4_desc *d)
{
	const struct tp4_area *area = &q->pair->own;
	struct rte_mbuf *m = q->head;

	q->head = NULL;
	if (d->error) {
		rte_pktmbuf_free(m);
		q->skip = false;
		return NULL;
	}
	if (q->skip) {
		q->skip = d->flags & TP4_PKT_CONT;
		return NULL;
	}
	if (!m) {
		m = get_spare(q);
		set_received(m, q->rearm, 0, 0);
		m->ol_flags &= RTE_MBUF_F_EXTERNAL;
		if (q->meta && d->flags & TP4_META)
			read_meta(m, tp4_meta(area, d));
	}
	if (!append_data(q->pool, m, tp4_data(area, d), d->len)) {
		rte_eth_devices[q->pair->port].data->rx_mbuf_alloc_failed++;
		rte_pktmbuf_free(m);
		q->skip = d->flags & TP4_PKT_CONT;
		return NULL;
	}
	if (d->flags & TP4_PKT_CONT) {
		q->head = m;
		return NULL;
	}
	if (m->nb_segs > 1 && !q->scatter) {
		rte_pktmbuf_free(m);
		q->errors++;
		return NULL;
	}
	q->bytes += m->pkt_len;
	return m;
}

/* The same as receive_rest(), with an area of the driver's */
static __rte_noinline uint16_t
copy_rest(struct rx_queue *q, struct rte_mbuf **bufs, uint16_t nb)
{
	const struct tp4_ring *r = &q->ring;
	uint16_t got = 0;

	while (nb--) {
		struct tpacket4_desc *d = &r->q.ring[q->next & r->q.ring_mask];
		struct rte_mbuf *m;

		if (read_desc(d) & DESC_KERNEL)
			break;
		m = copy_frame(q, d);
		tp4_desc_give(d, d->idx, 0, 0, 0);
		q->next++;
		if (!m)
			continue;
		if (q->finish)
			finish_packet(q, m);
		bufs[got++] = m;
	}
	return got;
}

/*
 * Takes a packet of one frame, @state, from a slot, which gets another frame: that of the mbuf
 * @spare, or the same one if the packet is copied to @spare. @base and @rearm are the queue's:
 * the compiler cannot know that they stay the same.
 */
static __rte_always_inline struct rte_mbuf *
take_packet(const struct rx_queue *q, uint8_t *base, uint64_t rearm, struct tpacket4_desc *d,
	    uint64_t state, struct rte_mbuf *spare, const bool meta, const bool copy)
{
	struct rte_mbuf *m;
	uint8_t *frame;

	if (copy) {
		m = spare;
		frame = base + d->idx * OWN_FRAME;
		set_received(m, rearm, 0, state);
		m->ol_flags &= RTE_MBUF_F_EXTERNAL;
		memcpy(rte_pktmbuf_mtod(m, void *), frame + (uint16_t)(state >> 32),
		       (uint32_t)state);
	} else {
		m = idx_to_mbuf(base, d->idx);
		frame = (uint8_t *)m + q->lead;
		d->idx = mbuf_to_idx(base, spare);
		set_received(m, rearm, meta ? (uint16_t)(state >> 32) : state >> 32, state);
		m->ol_flags = 0;
	}
	if (meta && state & DESC_META)
		read_meta(m, (void *)frame);
	if (meta && q->finish)
		finish_packet(q, m);
	return m;
}

/*
 * All slots are posted at any time. The first slot of a burst is posted last, so that the
 * kernel sees all at once. The loop ends at the end of the ring; the rest of the burst does not
 * wait, as few packets that go round would come in ever smaller bursts.
 */
static __rte_always_inline uint16_t
receive(struct rx_queue *q, struct rte_mbuf **bufs, uint16_t nb, const bool meta, const bool copy)
{
	const uint64_t special = meta ? DESC_ANY & ~DESC_META : DESC_ANY, rearm = q->rearm;
	const uint32_t room = copy ? q->room : UINT32_MAX;
	unsigned int at = q->next & q->ring.q.ring_mask;
	struct tpacket4_desc *const first = &q->ring.q.ring[at], *d = first;
	uint64_t state = read_desc(first), bytes;
	uint8_t *const base = q->base;
	void *const *spare;
	size_t i = 0, run;

	if (state & DESC_KERNEL) {
		if (!poll_device(q))
			return 0;
		state = read_desc(first);
		if (state & DESC_KERNEL)
			return 0;
	}
	q->pause = 0;
	q->paused = 0;
	if (unlikely(q->nr_spare < nb))
		nb = RTE_MIN(nb, refill_spare(q));
	if (unlikely(!nb))
		return 0;
	spare = &q->spare[MAX_SPARE - q->nr_spare];
	run = RTE_MIN(nb, q->ring.q.ring_mask + 1 - at);
	if (likely(!(state & special || (uint32_t)state > room || q->head || q->skip))) {
		bufs[0] = take_packet(q, base, rearm, d, state, spare[0], meta, copy);
		bytes = state;	/* the length is the lower half */
		for (i = 1; i < run; i++) {
			state = read_desc(++d);
			if (state & special || (uint32_t)state > room)
				break;
			bufs[i] = take_packet(q, base, rearm, d, state, spare[i], meta, copy);
			tp4_desc_give(d, d->idx, 0, 0, 0);
			bytes += state;
		}
		tp4_desc_give(first, first->idx, 0, 0, 0);
		q->nr_spare -= i;
		q->next += i;
		q->bytes += (uint32_t)bytes;
	}
	if (i < nb && !(state & DESC_KERNEL))
		i += copy ? copy_rest(q, bufs + i, nb - i) : receive_rest(q, bufs + i, nb - i);
	q->packets += i;
	return i;
}

static uint16_t
eth_rx(void *queue, struct rte_mbuf **bufs, uint16_t nb)
{
	return receive(queue, bufs, nb, false, false);
}

static uint16_t
eth_rx_meta(void *queue, struct rte_mbuf **bufs, uint16_t nb)
{
	return receive(queue, bufs, nb, true, false);
}

static uint16_t
eth_rx_copy(void *queue, struct rte_mbuf **bufs, uint16_t nb)
{
	return receive(queue, bufs, nb, true, true);
}

/* Drops the packets that have arrived while the queue was stopped. Returns their number. */
unsigned int
tpacket4_drop_packets(struct rx_queue *q)
{
	const struct tp4_ring *r = &q->ring;
	unsigned int n, packets = 0;
	bool more = false;

	/* All frames of a packet are there when its first one is. */
	for (n = 0; n < q->nr || more; n++, q->next++) {
		struct tpacket4_desc *d = &r->q.ring[q->next & r->q.ring_mask];
		uint64_t state = read_desc(d);

		if (state & DESC_KERNEL)
			break;
		more = state & DESC_CONT;
		packets += !(state & (DESC_CONT | DESC_ERROR));
		tp4_desc_give(d, d->idx, 0, 0, 0);
	}
	return packets;
}

/* Of rte_eth_rx_queue_count() */
#if RTE_VER_YEAR * 100 + RTE_VER_MONTH < 2511
typedef uint32_t queue_count_t;
#else
typedef int queue_count_t;
#endif

/* Returns the number of slots that have a packet, or the error of one. */
static queue_count_t
eth_rx_queue_count(void *queue)
{
	const struct rx_queue *q = queue;
	const struct tp4_ring *r = &q->ring;
	unsigned int n = 0;

	while (n < q->nr && !(read_desc(&r->q.ring[(q->next + n) & r->q.ring_mask]) & DESC_KERNEL))
		n++;
	return n;
}

static int
eth_rx_descriptor_status(void *queue, uint16_t offset)
{
	const struct rx_queue *q = queue;
	const struct tp4_ring *r = &q->ring;

	if (offset >= q->nr)
		return -EINVAL;
	return read_desc(&r->q.ring[(q->next + offset) & r->q.ring_mask]) & DESC_KERNEL ?
	       RTE_ETH_RX_DESC_AVAIL : RTE_ETH_RX_DESC_DONE;
}

/* --- Tx -------------------------------------------------------------------------------- */

/* The free slots come first, then those that have been posted for the longest time. */
static int
eth_tx_descriptor_status(void *queue, uint16_t offset)
{
	const struct tx_queue *q = queue;
	const struct tpacket4_queue *r = &q->ring.q;

	if (offset >= q->nr)
		return -EINVAL;
	if (offset < r->num_free)
		return RTE_ETH_TX_DESC_DONE;
	return read_desc(&r->ring[(r->avail_idx + offset) & r->ring_mask]) & DESC_KERNEL ?
	       RTE_ETH_TX_DESC_FULL : RTE_ETH_TX_DESC_DONE;
}

static void
count_tx_error(struct tx_queue *q, uint8_t err)
{
	unsigned int i = NR_TX_ERRORS - 1;

	while (i && tpacket4_tx_errors[i].err != err)
		i--;
	q->errors[i]++;
}

/* Is this the last frame of a packet? The kernel does not return the flag. */
static inline bool
is_last(const struct tx_queue *q, uint64_t idx)
{
	if (q->pool)
		return idx_to_mbuf(q->base, idx)->pkt_len;
	return *(const uint32_t *)(tp4_frame(&q->pair->own, idx) + LAST_MARK);
}

/* In copy mode, frames come back in any order, in the slots of others. */
static inline void
note_sent(struct tx_queue *q, unsigned int at, uint64_t idx)
{
	const unsigned int mask = q->ring.q.ring_mask;
	unsigned int i = at;

	while (q->posted[i & mask] != idx)
		i++;
	q->posted[i & mask] = q->posted[at & mask];
}

/* Frees the mbufs of at most @max frames that were sent. */
static unsigned int
free_sent(struct tx_queue *q, unsigned int max)
{
	struct tp4_ring *r = &q->ring;
	unsigned int i, n, freed = 0;
	void *sent[MAX_BURST];

	while (freed < max) {
		n = tp4_ring_peek(r, RTE_MIN(max - freed, MAX_BURST));
		if (!n)
			break;
		for (i = 0; i < n; i++) {
			const struct tpacket4_desc *d = tp4_ring_at(r, i);

			if (unlikely(d->error) && is_last(q, d->idx))
				count_tx_error(q, d->error);
			if (q->posted)
				note_sent(q, r->q.last_used_idx + i, d->idx);
			if (q->pool)
				sent[i] = idx_to_mbuf(q->base, d->idx);
		}
		tp4_ring_take(r, n);
		if (q->pool)
			rte_mempool_put_bulk(q->pool, sent, n);
		freed += n;
	}
	return freed;
}

/* The same for other files */
unsigned int
tpacket4_free_packets(struct tx_queue *q, unsigned int max)
{
	return free_sent(q, max);
}

/* Can the kernel send this segment from where it lies? */
static inline bool
is_frame(const struct tx_queue *q, const struct rte_mbuf *m, uint16_t min_offset)
{
	uint32_t offset = (uint32_t)m->data_off - q->data_offset;

	/* The receiver at the other end of a veth gets the frame itself. */
	return m->pool == q->pool && rte_mbuf_refcnt_read(m) == 1 &&
	       !(m->ol_flags & (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)) &&
	       offset - min_offset <= q->frame_size &&
	       offset + m->data_len <= q->frame_size;
}

/*
 * A burst that is being written to the ring. The kernel sees it when the first slot is
 * posted, which is done last.
 */
struct burst {
	struct tpacket4_desc first;
	unsigned int posted;
};

static inline struct tpacket4_desc *
next_slot(const struct tx_queue *q, const struct burst *b)
{
	const struct tpacket4_queue *r = &q->ring.q;

	return &r->ring[(r->avail_idx + b->posted) & r->ring_mask];
}

static __rte_always_inline void
post_frame(struct tx_queue *q, struct burst *b, uint64_t idx, uint32_t len, uint16_t offset,
	   uint8_t flags, const bool track)
{
	if (track && q->posted)
		q->posted[(q->ring.q.avail_idx + b->posted) & q->ring.q.ring_mask] = idx;
	if (likely(b->posted))
		tp4_desc_give(next_slot(q, b), idx, len, offset, flags);
	else
		b->first = (struct tpacket4_desc){
			.idx = idx, .len = len, .offset = offset, .flags = flags,
		};
	b->posted++;
}

static void
end_burst(struct tx_queue *q, const struct burst *b)
{
	struct tpacket4_queue *r = &q->ring.q;

	if (!b->posted)
		return;
	tp4_desc_give(&r->ring[r->avail_idx & r->ring_mask], b->first.idx, b->first.len,
		      b->first.offset, b->first.flags);
	r->avail_idx += b->posted;
	r->num_free -= b->posted;
}

static inline unsigned int
slots_left(const struct tx_queue *q, const struct burst *b)
{
	return q->ring.q.num_free - b->posted;
}

static inline bool
needs_meta(const struct rte_mbuf *m)
{
	return m->ol_flags & (TX_META_FLAGS | launch_flag);
}

static inline bool
wants_tag(const struct rte_mbuf *m)
{
	return m->ol_flags & RTE_MBUF_F_TX_VLAN;
}

/* Writes the metadata of a packet that asks for it. Returns the descriptor's flag. */
static uint8_t
write_meta(struct tpacket4_meta *meta, const struct rte_mbuf *m)
{
	uint16_t l4 = m->l2_len + m->l3_len;

	if (!needs_meta(m))
		return 0;
	memset(meta, 0, sizeof(*meta));
	if ((m->ol_flags & RTE_MBUF_F_TX_L4_MASK) == RTE_MBUF_F_TX_UDP_CKSUM ||
	    m->ol_flags & RTE_MBUF_F_TX_UDP_SEG)
		tp4_meta_csum(meta, l4, offsetof(struct rte_udp_hdr, dgram_cksum));
	else if (m->ol_flags & TX_META_FLAGS)
		tp4_meta_csum(meta, l4, offsetof(struct rte_tcp_hdr, cksum));
	if (m->ol_flags & launch_flag)
		tp4_meta_launch(meta, *RTE_MBUF_DYNFIELD(m, timestamp_offset,
							 rte_mbuf_timestamp_t *));
	if (m->ol_flags & RTE_MBUF_F_TX_TCP_SEG)
		tp4_meta_gso(meta, m->ol_flags & RTE_MBUF_F_TX_IPV6 ?
			     VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4,
			     m->tso_segsz);
	else if (m->ol_flags & RTE_MBUF_F_TX_UDP_SEG)
		tp4_meta_gso(meta, VIRTIO_NET_HDR_GSO_UDP_L4, m->tso_segsz);
	return TP4_META;
}

/* Copies a packet to mbufs of the queue's pool. Returns NULL if there are too few. */
static struct rte_mbuf *
copy_to_pool(struct tx_queue *q, const struct rte_mbuf *from)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(q->pool);

	if (!m)
		return NULL;
	m->ol_flags = from->ol_flags & ~(RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL);
	m->tx_offload = from->tx_offload;
	if (m->ol_flags & launch_flag)
		*RTE_MBUF_DYNFIELD(m, timestamp_offset, rte_mbuf_timestamp_t *) =
			*RTE_MBUF_DYNFIELD(from, timestamp_offset, rte_mbuf_timestamp_t *);
	for (; from; from = from->next)
		if (!append_data(q->pool, m, rte_pktmbuf_mtod(from, uint8_t *),
				 from->data_len)) {
			rte_pktmbuf_free(m);
			return NULL;
		}
	q->copied++;
	return m;
}

/* Drops a packet that can never be sent. */
static bool
drop_packet(struct tx_queue *q, struct rte_mbuf *m, struct rte_mbuf *copy, uint8_t err)
{
	rte_pktmbuf_free(copy);
	rte_pktmbuf_free(m);
	count_tx_error(q, err);
	return true;
}

/* A packet of several frames, or one to copy. Returns whether it was taken. */
static __rte_noinline bool
send_slow(struct tx_queue *q, struct burst *b, struct rte_mbuf *m)
{
	uint16_t min_offset = q->meta && needs_meta(m) ? sizeof(struct tpacket4_meta) : 0;
	struct rte_mbuf *next, *copy = NULL, *seg;
	bool in_place = true;
	uint8_t flags = 0;

	for (seg = m; seg; seg = seg->next)
		in_place &= is_frame(q, seg, seg == m ? min_offset : 0) && seg->data_len;
	if (!in_place) {
		copy = copy_to_pool(q, m);
		if (!copy)
			return false;
		for (seg = copy; seg && is_frame(q, seg, 0); seg = seg->next)
			;
		if (seg)
			return drop_packet(q, m, copy, EMSGSIZE);
	}
	if ((copy ? copy : m)->nb_segs > slots_left(q, b)) {
		if ((copy ? copy : m)->nb_segs > q->nr)
			return drop_packet(q, m, copy, EMSGSIZE);
		rte_pktmbuf_free(copy);
		return false;
	}
	if (copy) {
		rte_pktmbuf_free(m);
		m = copy;
	}
	q->bytes += m->pkt_len;
	if (min_offset)
		flags = write_meta((void *)((uint8_t *)m + q->lead), m);
	for (seg = m; seg; seg = next) {
		next = seg->next;
		seg->next = NULL;
		seg->nb_segs = 1;
		seg->pkt_len = !next;	/* see is_last() */
		post_frame(q, b, mbuf_to_idx(q->base, seg), seg->data_len,
			   seg->data_off - q->data_offset, flags | (next ? TP4_PKT_CONT : 0),
			   true);
		flags = 0;
	}
	return true;
}

/* Sends a packet with the VLAN tag that it asks for. Returns whether it was taken. */
static __rte_noinline bool
send_tagged(struct tx_queue *q, struct burst *b, struct rte_mbuf *m,
	    bool (*send)(struct tx_queue *q, struct burst *b, struct rte_mbuf *m))
{
	struct rte_mbuf *copy;

	/* If there is no room, it should stay as it is. */
	if (m->nb_segs > slots_left(q, b) && m->nb_segs <= q->nr)
		return false;
	if (!rte_vlan_insert(&m))
		return send(q, b, m);
	/* Its memory is that of other packets, too, or has no room before the data. */
	copy = q->copies ? rte_pktmbuf_copy(m, q->copies, 0, UINT32_MAX) : NULL;
	if (!copy)
		return false;
	if (rte_vlan_insert(&copy))
		return drop_packet(q, m, copy, EINVAL);
	if (!send(q, b, copy)) {
		rte_pktmbuf_free(copy);
		return false;
	}
	rte_pktmbuf_free(m);
	return true;
}

static inline void
kick_if_needed(struct tx_queue *q)
{
	if (tp4_ring_pending(&q->ring) && tp4_need_kick(socket_of(q->pair)))
		kick_tx(q->pair);
}

static __rte_always_inline uint16_t
transmit(struct tx_queue *q, struct rte_mbuf **bufs, uint16_t nb, const bool meta,
	 const bool track)
{
	struct burst b = { .posted = 0 };
	uint64_t bytes = 0;
	uint16_t i;

	if (q->ring.q.num_free < q->low + nb)
		free_sent(q, UINT_MAX);
	for (i = 0; i < nb; i++) {
		struct rte_mbuf *m = bufs[i];

		if (unlikely(m->nb_segs != 1 || !is_frame(q, m, 0) ||
			     (meta && (needs_meta(m) || wants_tag(m))))) {
			if (meta && wants_tag(m) ? !send_tagged(q, &b, m, send_slow) :
						   !send_slow(q, &b, m))
				break;
			continue;
		}
		if (unlikely(!slots_left(q, &b)))
			break;
		bytes += m->data_len;
		post_frame(q, &b, mbuf_to_idx(q->base, m), m->data_len,
			   m->data_off - q->data_offset, 0, track);
	}
	end_burst(q, &b);
	kick_if_needed(q);
	q->packets += i;
	q->bytes += bytes;
	return i;
}

static uint16_t
eth_tx(void *queue, struct rte_mbuf **bufs, uint16_t nb)
{
	return transmit(queue, bufs, nb, false, false);
}

static uint16_t
eth_tx_meta(void *queue, struct rte_mbuf **bufs, uint16_t nb)
{
	return transmit(queue, bufs, nb, true, false);
}

/* With or without metadata, in copy mode */
static uint16_t
eth_tx_tap(void *queue, struct rte_mbuf **bufs, uint16_t nb)
{
	return transmit(queue, bufs, nb, true, true);
}

/* Copies a packet to frames of the driver's area. A free slot has the number of one. */
static bool
send_copy(struct tx_queue *q, struct burst *b, struct rte_mbuf *m)
{
	const uint32_t room = OWN_FRAME - TP4_ZC_HEADROOM;
	uint32_t n, pos = 0, left = m->pkt_len;
	const struct tp4_area *area = &q->pair->own;
	uint8_t flags = 0;

	n = (left + room - 1) / room;
	if (n > q->nr)
		return drop_packet(q, m, NULL, EMSGSIZE);
	if (n > slots_left(q, b))
		return false;
	for (; left; pos += n, left -= n) {
		uint64_t idx = next_slot(q, b)->idx;
		uint8_t *frame = tp4_frame(area, idx), *to = frame + TP4_ZC_HEADROOM;
		const void *from;

		n = RTE_MIN(left, room);
		from = rte_pktmbuf_read(m, pos, n, to);
		if (from != to)
			memcpy(to, from, n);
		if (q->meta && !pos)
			flags = write_meta((void *)frame, m);
		*(uint32_t *)(frame + LAST_MARK) = left == n;
		post_frame(q, b, idx, n, TP4_ZC_HEADROOM, flags | (left > n ? TP4_PKT_CONT : 0),
			   false);
		flags = 0;
	}
	q->bytes += m->pkt_len;
	q->copied++;
	rte_pktmbuf_free(m);
	return true;
}

/* The same as transmit(), with an area of the driver's */
static uint16_t
eth_tx_copy(void *queue, struct rte_mbuf **bufs, uint16_t nb)
{
	struct burst b = { .posted = 0 };
	struct tx_queue *q = queue;
	uint16_t i;

	if (q->ring.q.num_free < q->low + nb)
		free_sent(q, UINT_MAX);
	for (i = 0; i < nb; i++)
		if (wants_tag(bufs[i]) ? !send_tagged(q, &b, bufs[i], send_copy) :
					 !send_copy(q, &b, bufs[i]))
			break;
	end_burst(q, &b);
	kick_if_needed(q);
	q->packets += i;
	return i;
}

/* Writes the checksum of the pseudo header, which V4 expects with the length. */
static uint16_t
eth_tx_prepare(void *queue __rte_unused, struct rte_mbuf **bufs, uint16_t nb)
{
	uint16_t i;

	for (i = 0; i < nb; i++) {
		struct rte_mbuf *m = bufs[i];
		uint16_t cksum;
		void *ip, *l4;
		int err;

		err = rte_net_intel_cksum_prepare(m);
		if (err) {
			rte_errno = -err;
			break;
		}
		if (!(m->ol_flags & TX_SEG_FLAGS))
			continue;
		if (rte_pktmbuf_data_len(m) < m->l2_len + m->l3_len + m->l4_len) {
			rte_errno = ENOTSUP;
			break;
		}
		ip = rte_pktmbuf_mtod_offset(m, void *, m->l2_len);
		/* It was set to 0. Nobody computes it for a packet that stays whole. */
		if (m->ol_flags & RTE_MBUF_F_TX_IPV4 && m->ol_flags & RTE_MBUF_F_TX_IP_CKSUM)
			((struct rte_ipv4_hdr *)ip)->hdr_checksum = rte_ipv4_cksum(ip);
		l4 = rte_pktmbuf_mtod_offset(m, void *, m->l2_len + m->l3_len);
		cksum = m->ol_flags & RTE_MBUF_F_TX_IPV6 ?
			rte_ipv6_phdr_cksum(ip, 0) : rte_ipv4_phdr_cksum(ip, 0);
		if (m->ol_flags & RTE_MBUF_F_TX_UDP_SEG)
			((struct rte_udp_hdr *)l4)->dgram_cksum = cksum;
		else
			((struct rte_tcp_hdr *)l4)->cksum = cksum;
	}
	return i;
}

/* Gets the fields and flags of mbufs for times. Returns 0 or a negative errno. */
int
tpacket4_register_times(const struct rte_eth_dev *dev)
{
	const struct rte_eth_conf *conf = &dev->data->dev_conf;
	int err = 0;

	if (conf->rxmode.offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP)
		err = rte_mbuf_dyn_rx_timestamp_register(&timestamp_offset, &timestamp_flag);
	if (!err && conf->txmode.offloads & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP)
		err = rte_mbuf_dyn_tx_timestamp_register(&timestamp_offset, &launch_flag);
	return err ? -rte_errno : 0;
}

void
tpacket4_set_functions(struct rte_eth_dev *dev)
{
	const struct port *port = dev->data->dev_private;
	bool rx_meta = wants_meta(dev), tx_meta = rx_meta;

	/* The functions for metadata see to tags, too. */
	if (dev->data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_STRIP)
		rx_meta = true;
	if (dev->data->dev_conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_VLAN_INSERT)
		tx_meta = true;
	dev->rx_pkt_burst = port->copied ? eth_rx_copy : rx_meta ? eth_rx_meta : eth_rx;
	dev->tx_pkt_burst = port->copied ? eth_tx_copy : !port->zerocopy ? eth_tx_tap :
			    tx_meta ? eth_tx_meta : eth_tx;
	dev->tx_pkt_prepare = eth_tx_prepare;
	dev->rx_queue_count = eth_rx_queue_count;
	dev->rx_descriptor_status = eth_rx_descriptor_status;
	dev->tx_descriptor_status = eth_tx_descriptor_status;
}
