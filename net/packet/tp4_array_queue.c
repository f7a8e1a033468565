// SPDX-License-Identifier: GPL-2.0
/* Packet arrays with a TPACKET_V4 ring as source and sink */

#include <linux/export.h>
#include <linux/net_tstamp.h>
#include <linux/timekeeping.h>
#include <linux/tpacket4.h>
#include <net/busy_poll.h>
#include <net/net_debug.h>

#include "internal.h"
#include "tp4_area.h"
#include "tp4_array.h"
#include "tp4_meta.h"
#include "tp4_queue.h"
#include "tp4_status.h"

/* With fewer Rx frames at the device than this, the program is asked for a kick.
 * If it has not mapped the status page, a timer looks for frames instead.
 */
#define TP4_RX_LOW	32
#define TP4_REFILL_MIN	(50 * NSEC_PER_USEC)
#define TP4_REFILL_MAX	(10 * NSEC_PER_MSEC)

/* Tx timestamps of packet sockets */
#define TP4_TX_STAMPS	(TP4_SW_STAMPS | SOF_TIMESTAMPING_TX_HARDWARE)

static u32 tp4a_space(const struct tp4_packet_array *a)
{
	return a->mask + 1 - (a->end - a->start);
}

/* Limit @nr so that the frames from @pos on and the descriptors from @slot on
 * do not wrap around.
 */
static u32 tp4a_contig(const struct tp4_packet_array *a, u32 pos,
		       const struct tp4_queue *q, u32 slot, u32 nr)
{
	return min3(nr, tp4a_run(a, pos), q->mask + 1 - (slot & q->mask));
}

/* Same for the frames and descriptors up to and including @pos and @slot */
static u32 tp4a_contig_back(const struct tp4_packet_array *a, u32 pos,
			    const struct tp4_queue *q, u32 slot, u32 nr)
{
	return min3(nr, (pos & a->mask) + 1, (slot & q->mask) + 1);
}

/* A frame may cross the end of a run of pages, so each one has to be checked. */
static bool tp4a_has_runs(const struct tp4_queue *q)
{
	return q->area->run_mask;
}

/* Take empty frames, up to the first invalid descriptor. @runs is a constant, see
 * tp4a_has_runs().
 * Return: true if there is an invalid one; @bad is set to its frame number.
 */
static __always_inline bool tp4a_rx_take(struct tp4_packet_array *a,
					 struct tp4_queue *q, u64 *bad,
					 bool runs)
{
	const u32 nr_frames = q->area->nr_frames;
	const u32 run_mask = q->area->run_mask, run_last = q->area->run_last;
	u32 nr, max, left = tp4a_space(a);

	for (; left; left -= nr) {
		const struct tpacket4_desc *desc = tp4q_slot(q, q->in);
		struct tp4_frame *frame = &a->items[a->end & a->mask];
		bool refuse = false;
		u64 idx;

		max = tp4a_contig(a, a->end, q, q->in, left);
		for (nr = 0; nr < max && tp4q_load_idx(desc, &idx); nr++) {
			frame->idx = idx;
			refuse = idx >= nr_frames ||
				 (runs && (idx & run_mask) > run_last);
			if (unlikely(refuse)) {
				/* So that the check need not keep a copy. */
				*bad = READ_ONCE(frame->idx);
				break;
			}
			tp4a_reset_frame(a, frame);
			desc++;
			frame++;
		}
		a->end += nr;
		tp4q_zc_took(q, nr);
		if (nr < max)
			return refuse;
	}
	return false;
}

static __always_inline void tp4a_rx_populate_any(struct tp4_packet_array *a,
						 bool runs)
{
	struct tp4_queue *q = tp4a_zc_ring(a)->q;
	struct tpacket4_desc desc = { .error = EINVAL };
	u32 refusals = 0;

	while (unlikely(tp4a_rx_take(a, q, &desc.idx, runs))) {
		tp4q_zc_refuse(q, &desc, 1);
		if (++refusals == TP4_RX_REFUSALS)
			break;
	}
	if (unlikely(refusals)) {
		atomic_long_add(refusals, &q->invalid);
		tp4q_wake(q);
	}
}

static void tp4a_rx_populate(struct tp4_packet_array *a)
{
	tp4a_rx_populate_any(a, false);
}

static void tp4a_rx_populate_runs(struct tp4_packet_array *a)
{
	tp4a_rx_populate_any(a, true);
}

/**
 * tp4a_rx_populate_checked() - take empty frames from the ring
 * @a:	the Rx array of a V4 ring
 *
 * For operations that have no variant for areas with runs.
 *
 * Context: Softirq (NAPI).
 */
void tp4a_rx_populate_checked(struct tp4_packet_array *a)
{
	if (unlikely(tp4a_has_runs(tp4a_zc_ring(a)->q)))
		tp4a_rx_populate_runs(a);
	else
		tp4a_rx_populate(a);
}

/* Which Tx timestamps the socket wants, by SO_TIMESTAMPING */
static u32 tp4a_stamps(const struct sock *sk)
{
	return sk ? READ_ONCE(sk->sk_tsflags) & TP4_TX_STAMPS : 0;
}

static void tp4a_set_frame(struct tp4_frame *frame,
			   const struct tpacket4_desc *desc)
{
	frame->idx = desc->idx;
	frame->len = desc->len;
	frame->offset = desc->offset;
	frame->error = 0;
	frame->flags = desc->flags & (TP4_PKT_CONT | TP4_META);
}

/* Take packets of one frame, which is the common case, up to one that has more
 * frames or is invalid. @runs and @meta are constants: @runs is false if no
 * frame crosses the end of a run, see tp4a_has_runs(), and @meta if no packet
 * has metadata.
 * Return: true if there is such a packet.
 */
static __always_inline bool tp4a_tx_take(struct tp4_packet_array *a,
					 struct tp4_queue *q, u32 left,
					 bool runs, bool meta)
{
	const struct tp4_area *area = q->area;
	const u64 nr_frames = area->nr_frames, frame_size = area->frame_size;
	const u32 run_mask = area->run_mask, run_last = area->run_last;
	const u8 optional = meta ? TP4_META : 0;
	u32 nr, max;

	if (unlikely(q->in_chain))
		return true;

	for (; left; left -= nr) {
		const struct tpacket4_desc *from = tp4q_slot(q, q->in);
		struct tp4_frame *first = &a->items[a->end & a->mask];
		struct tp4_frame *frame, *last;
		struct tpacket4_desc desc;

		max = tp4a_contig(a, a->end, q, q->in, left);
		last = first + max;
		for (frame = first; frame != last; frame++, from++) {
			desc.flags = tp4q_load_flags(from);
			if ((desc.flags & ~optional) != TP4_DESC_KERNEL)
				break;
			tp4q_load_data(from, &desc);
			if (unlikely(desc.idx >= nr_frames ||
				     tp4q_data_last(&desc) >= frame_size ||
				     (meta && !tp4q_meta_valid(q, &desc, 0))))
				break;
			tp4a_set_frame(frame, &desc);
			/* Last, so that the check need not keep a copy. */
			if (unlikely(runs && (desc.idx & run_mask) > run_last))
				break;
		}
		nr = frame - first;
		a->end += nr;
		tp4q_zc_took(q, nr);
		if (nr < max)
			return desc.flags & TP4_DESC_KERNEL;
	}
	return false;
}

/* Take the next packet or refuse it. noinline because of the size of @descs.
 * Return: its number of descriptors, or 0 if no complete packet is posted;
 * *refused is set if it was refused.
 */
static noinline u32 tp4a_tx_take_any(struct tp4_packet_array *a,
				     struct tp4_queue *q, u32 max,
				     bool *refused)
{
	struct tpacket4_desc descs[TP4_TX_DESCS];
	bool good;
	u32 i, nr;

	nr = tp4q_tx_next(q, descs, TP4_TX_DESCS, max, &good);
	if (!nr)
		return 0;
	if (unlikely(!good)) {
		tp4q_zc_refuse(q, descs, nr);
		atomic_long_add(nr, &q->invalid);
		*refused = true;
		return nr;
	}
	for (i = 0; i < nr; i++)
		tp4a_set_frame(&a->items[a->end++ & a->mask], &descs[i]);
	tp4q_zc_took(q, nr);
	return nr;
}

/* Mark the packets from @pos on for timestamps. */
static noinline void tp4a_mark_for_stamps(struct tp4_packet_array *a, u32 pos)
{
	u8 stamp = TP4F_STAMP;

	for (; pos != a->end; pos++) {
		u8 *flags = &a->items[pos & a->mask].flags;

		*flags |= stamp;
		stamp = *flags & TP4_PKT_CONT ? 0 : TP4F_STAMP;
	}
}

static __always_inline void tp4a_tx_populate_any(struct tp4_packet_array *a,
						 bool runs, bool meta)
{
	struct tp4_queue *q = tp4a_zc_ring(a)->q;
	u32 nr, left = tp4a_space(a), first = a->end;
	bool refused = false;

	do {
		u32 end = a->end;

		if (likely(!tp4a_tx_take(a, q, min(left, tp4a_space(a)), runs,
					 meta)))
			break;
		left -= a->end - end;
		nr = tp4a_tx_take_any(a, q, min(left, tp4a_space(a)),
				      &refused);
		left -= nr;
	} while (nr);
	if (unlikely(tp4a_stamps(q->sk)))
		tp4a_mark_for_stamps(a, first);
	if (unlikely(refused))
		tp4q_wake(q);
}

static void tp4a_tx_populate(struct tp4_packet_array *a)
{
	tp4a_tx_populate_any(a, false, false);
}

static void tp4a_tx_populate_runs(struct tp4_packet_array *a)
{
	tp4a_tx_populate_any(a, true, false);
}

/* For all areas: without runs, the check for them never fails. */
static void tp4a_tx_populate_meta(struct tp4_packet_array *a)
{
	tp4a_tx_populate_any(a, true, true);
}

static void tp4a_count_rx(struct tp4_packet_array *a, u32 packets)
{
	struct sock *sk = tp4a_zc_ring(a)->q->sk;

	if (!sk)
		return;
	spin_lock(&sk->sk_receive_queue.lock);
	pkt_sk(sk)->stats.stats1.tp_packets += packets;
	spin_unlock(&sk->sk_receive_queue.lock);
}

/* Which timestamps the socket wants, by PACKET_TIMESTAMP */
static u32 tp4a_wanted(const struct sock *sk)
{
	return sk ? READ_ONCE(pkt_sk(sk)->tp_tstamp) : 0;
}

static u8 tp4a_wants_hw(u32 wanted)
{
	return wanted & SOF_TIMESTAMPING_RAW_HARDWARE ? TP4F_HWTSTAMP : 0;
}

static u32 tp4a_wants_own(u32 wanted)
{
	return wanted & SOF_TIMESTAMPING_SOFTWARE ? TP4_META_RX_TS_SOFTWARE : 0;
}

/* Write the metadata of a packet of @len bytes to @to. What the driver has set is
 * at the start of the frame @first, which may be @to. Its timestamp counts if it
 * has the flag @hw; otherwise @now does, with the flag @own.
 */
static __always_inline void
__tp4a_write_meta(const struct tp4_packet_array *a,
		  const struct tp4_frame *first, struct tpacket4_meta *to,
		  u32 len, u8 hw, u32 own, u64 now)
{
	const struct tpacket4_meta *from = tp4f_start(a, first);
	u32 flags;

	flags = tp4_meta_from_data(to, (void *)from + first->offset, first->len,
				   tp4a_zc_ring(a)->seen);
	if (first->flags & TP4F_CSUM_VALID)
		flags |= TP4_META_RX_CSUM_VALID;
	if (!(first->flags & TP4F_HASH)) {
		to->hash = 0;
	} else {
		flags |= TP4_META_RX_HASH;
		if (from != to)
			to->hash = READ_ONCE(from->hash);
	}
	if (!(first->flags & hw)) {
		flags |= own;
		to->tstamp = now;
	} else {
		flags |= TP4_META_RX_TS_HARDWARE;
		if (from != to)
			to->tstamp = READ_ONCE(from->tstamp);
	}
	to->flags = flags;
	to->wire_len = len;
	to->xdp_meta_len = first->meta_len;
}

/**
 * tp4a_write_meta_to() - write the metadata of a packet to another ring's frame
 * @a:		the Rx array of a V4 ring that received the packet
 * @first:	its first frame
 * @to:		start of the other frame, which may be @first itself
 * @len:	bytes of the packet
 * @sk:		the socket of the other ring
 * @now:	the time, for this packet, if it has no hardware timestamp
 *
 * Context: Softirq (NAPI).
 */
void tp4a_write_meta_to(const struct tp4_packet_array *a,
			const struct tp4_frame *first, struct tpacket4_meta *to,
			u32 len, const struct sock *sk, u64 now)
{
	const u32 wanted = tp4a_wanted(sk);

	__tp4a_write_meta(a, first, to, len, tp4a_wants_hw(wanted),
			  tp4a_wants_own(wanted), now);
}

/* Write the metadata of the packets up to @end. @own is a constant: the flag of
 * timestamps if each packet gets its own, or 0.
 */
static __always_inline void tp4a_write_all_meta(struct tp4_packet_array *a,
						u32 end, u8 hw, u32 own)
{
	u64 now = ktime_get_real_ns();
	u32 next, pos;

	for (pos = a->start; pos != end; pos = next) {
		struct tp4_frame *first = &a->items[pos & a->mask];
		u32 len = first->len;

		for (next = pos + 1; a->items[(next - 1) & a->mask].flags &
				     TP4_PKT_CONT; next++)
			len += a->items[next & a->mask].len;

		__tp4a_write_meta(a, first, tp4f_start(a, first), len, hw, own,
				  now);
		first->flags |= TP4_META;
		if (own)
			now = ktime_get_real_ns();
	}
}

/* Reading the clock takes an eighth of the instructions of a packet, so only
 * sockets that want it get a timestamp a packet.
 */
static void tp4a_write_meta(struct tp4_packet_array *a, u32 end)
{
	u32 wanted = tp4a_wanted(tp4a_zc_ring(a)->q->sk);
	u8 hw = tp4a_wants_hw(wanted);

	if (unlikely(tp4a_wants_own(wanted)))
		tp4a_write_all_meta(a, end, hw, TP4_META_RX_TS_SOFTWARE);
	else
		tp4a_write_all_meta(a, end, hw, 0);
}

/* Count the packets of the frames up to @end. */
static noinline u32 tp4a_count_packets(const struct tp4_packet_array *a,
				       u32 end)
{
	u32 pos, nr = 0;

	for (pos = a->start; pos != end; pos++)
		nr += !(a->items[pos & a->mask].flags & TP4_PKT_CONT);
	return nr;
}

/* Write the descriptors of the frames up to @end to the ring, with those of
 * their flags that are in @flags. Tx descriptors only return the frame number
 * and the error.
 * Return: the number of packets; *errors is not 0 if a frame has an error.
 */
static __always_inline u32 tp4a_publish(const struct tp4_packet_array *a,
					u32 end, bool rx, u8 flags, u8 *errors)
{
	const struct tp4_queue *q = tp4a_zc_ring(a)->q;
	unsigned long out = atomic_long_read(&q->out);
	u32 nr, left = end - a->start;
	u8 all_flags = 0;

	*errors = 0;
	for (; left; left -= nr) {
		u32 pos = a->start + left - 1, slot = out + left - 1;
		const struct tp4_frame *frame = &a->items[pos & a->mask];
		struct tpacket4_desc *to = tp4q_slot(q, slot);
		const struct tp4_frame *last;

		nr = tp4a_contig_back(a, pos, q, slot, left);
		for (last = frame - nr; frame != last; frame--, to--) {
			struct tpacket4_desc desc = {
				.idx = frame->idx,
				.len = rx ? frame->len : 0,
				.offset = rx ? frame->offset : 0,
				.error = rx ? 0 : frame->error,
				.flags = frame->flags & flags,
			};

			*errors |= desc.error;
			all_flags |= frame->flags;
			tp4q_store_slot(to, &desc);
		}
	}
	if (unlikely(all_flags & TP4_PKT_CONT))
		return tp4a_count_packets(a, end);
	return end - a->start;
}

/* Count the frames up to @end as returned. */
static void tp4a_returned(struct tp4_packet_array *a, u32 end)
{
	tp4q_zc_returned(tp4a_zc_ring(a)->q, end - a->start);
	a->start = end;
}

/* noinline, so that rings without metadata are not slowed down */
static noinline u32 tp4a_publish_meta(struct tp4_packet_array *a, u32 end)
{
	u8 errors;

	tp4a_write_meta(a, end);
	return tp4a_publish(a, end, true, TP4_PKT_CONT | TP4_META, &errors);
}

/**
 * tp4a_rx_flush() - publish received packets on the ring
 * @a:		the Rx array of a V4 ring
 * @end:	position after the last frame to publish
 *
 * Context: Softirq (NAPI).
 * Return: the number of packets.
 */
int tp4a_rx_flush(struct tp4_packet_array *a, u32 end)
{
	int packets;
	u8 errors;

	if (unlikely(a->meta))
		packets = tp4a_publish_meta(a, end);
	else
		packets = tp4a_publish(a, end, true, TP4_PKT_CONT, &errors);
	tp4a_returned(a, end);
	tp4a_count_rx(a, packets);
	tp4q_wake(tp4a_zc_ring(a)->q);
	return packets;
}

static void tp4a_count_refused(const struct tp4_packet_array *a, u32 end)
{
	struct tp4_queue *q = tp4a_zc_ring(a)->q;
	u32 pos;

	for (pos = a->start; pos != end; pos++) {
		if (a->items[pos & a->mask].error)
			atomic_long_inc(&q->invalid);
	}
}

static int tp4a_tx_flush(struct tp4_packet_array *a, u32 end)
{
	int packets;
	u8 errors;

	packets = tp4a_publish(a, end, false, 0, &errors);
	if (unlikely(errors))
		tp4a_count_refused(a, end);
	tp4a_returned(a, end);
	tp4q_wake(tp4a_zc_ring(a)->q);
	return packets;
}

/* Wake the program even if it waits for more packets by SO_RCVLOWAT: they may
 * never come.
 */
static void tp4a_wake_starved(struct tp4_queue *q)
{
	WRITE_ONCE(q->starved, true);
	if (q->sk)
		q->sk->sk_data_ready(q->sk);
}

/**
 * tp4a_count_no_desc() - count packets that the ring has no frames for
 * @a:	the Rx array of a V4 ring
 * @nr:	their number
 *
 * Context: Softirq (NAPI).
 */
void tp4a_count_no_desc(struct tp4_packet_array *a, u32 nr)
{
	struct tp4_queue *q = tp4a_zc_ring(a)->q;

	atomic_long_add(nr, &q->no_desc);
	tp4a_wake_starved(q);
}

/**
 * tp4a_rx_count_drop() - count a packet that the ring has no frame for
 * @a:	the Rx array of a V4 ring
 *
 * Context: Softirq (NAPI).
 */
void tp4a_rx_count_drop(struct tp4_packet_array *a)
{
	tp4a_count_no_desc(a, 1);
}

/**
 * tp4a_hold_area() - keep the packet buffer of an array when the array is freed
 * @a:	the array, of a V4 ring
 *
 * For drivers of devices that could not be stopped and may still use the frames.
 *
 * Context: Any.
 * Return: an argument for tp4_release_area(), when the device has stopped.
 */
void *tp4a_hold_area(const struct tp4_packet_array *a)
{
	struct tp4_zc_ring *ring = tp4a_zc_ring(a);

	refcount_inc(&ring->area->users);
	ring->held = true;
	return ring->area;
}
EXPORT_SYMBOL_GPL(tp4a_hold_area);

/**
 * tp4_release_area() - release a packet buffer
 * @area:	the return value of tp4a_hold_area(), or NULL
 *
 * Context: Process context, may sleep.
 */
void tp4_release_area(void *area)
{
	tp4_area_put(area);
}
EXPORT_SYMBOL_GPL(tp4_release_area);

/* Return all frames of the ring to it, with its error. Of those that the device
 * has not returned, only the number is known.
 */
static void tp4a_give_back(struct tp4_packet_array *a)
{
	u32 i, nr = a->end - a->start, done = a->curr - a->start;
	struct tp4_zc_ring *ring = tp4a_zc_ring(a);
	struct tpacket4_desc desc = { .error = ring->error };
	u32 slots = nr - tp4a_nr_spares(a), left = slots;
	struct tp4_queue *q = ring->q;
	unsigned long out = atomic_long_read(&q->out);

	if (unlikely(a->at_device)) {
		pr_err("tp4: a device has not returned %u frames\n",
		       a->at_device);
		if (!ring->held)
			tp4a_hold_area(a);
	}
	for (i = nr; i--;) {
		const struct tp4_frame *frame;

		frame = &a->items[(a->start + i) & a->mask];
		if (i - done < a->at_device || tp4a_is_spare(a, frame))
			continue;
		desc.idx = frame->idx;
		tp4q_store(q, out + --left, &desc);
	}
	desc.idx = U64_MAX;
	desc.error = EIO;
	while (left)
		tp4q_store(q, out + --left, &desc);
	tp4q_zc_returned(q, slots);
	tp4q_wake(q);
	tp4a_unmap(a);
}

/**
 * tp4a_rx_free() - return all frames, when an Rx array is freed
 * @a:	the Rx array of a V4 ring
 *
 * Context: Process context, may sleep.
 */
void tp4a_rx_free(struct tp4_packet_array *a)
{
	hrtimer_cancel(&tp4a_zc_ring(a)->refill);
	tp4a_give_back(a);
	kfree(a->spares);
	tp4a_free(a->to_kernel);
}

static const struct tp4_array_ops tp4a_rx_ops = {
	.validation = TP4_VALIDATION_IDX,
	.populate = tp4a_rx_populate,
	.flush = tp4a_rx_flush,
	.publish = tp4a_rx_flush,
	.count_drop = tp4a_rx_count_drop,
	.free = tp4a_rx_free,
};

/* For areas in which a frame may cross the end of a run */
static const struct tp4_array_ops tp4a_rx_runs_ops = {
	.validation = TP4_VALIDATION_IDX,
	.populate = tp4a_rx_populate_runs,
	.flush = tp4a_rx_flush,
	.publish = tp4a_rx_flush,
	.count_drop = tp4a_rx_count_drop,
	.free = tp4a_rx_free,
};

static const struct tp4_array_ops tp4a_tx_ops = {
	.validation = TP4_VALIDATION_DESC,
	.populate = tp4a_tx_populate,
	.flush = tp4a_tx_flush,
	.free = tp4a_give_back,
};

static const struct tp4_array_ops tp4a_tx_runs_ops = {
	.validation = TP4_VALIDATION_DESC,
	.populate = tp4a_tx_populate_runs,
	.flush = tp4a_tx_flush,
	.free = tp4a_give_back,
};

static const struct tp4_array_ops tp4a_tx_meta_ops = {
	.validation = TP4_VALIDATION_DESC,
	.populate = tp4a_tx_populate_meta,
	.flush = tp4a_tx_flush,
	.free = tp4a_give_back,
};

static enum hrtimer_restart tp4a_refill_timer(struct hrtimer *timer)
{
	struct tp4_zc_ring *ring = container_of(timer, struct tp4_zc_ring,
						refill);

	ring->kick(ring);
	return HRTIMER_NORESTART;
}

static void tp4a_refill_init(struct tp4_zc_ring *ring)
{
	ring->refill_ns = TP4_REFILL_MIN;
	hrtimer_init(&ring->refill, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	ring->refill.function = tp4a_refill_timer;
}

static struct tp4_packet_array *
tp4a_ring_new(const struct tp4_array_ops *ops, struct tp4_zc_ring *ring,
	      size_t elems, struct device *dev)
{
	struct tp4_queue *q = ring->q;
	struct tp4_packet_array *a;

	/* The array holds all frames of the ring that the kernel owns, so it
	 * need not be larger than the ring.
	 */
	a = tp4a_new(ops, min_t(size_t, elems, q->mask + 1));
	if (!a)
		return NULL;

	a->queue_opaque = ring;
	a->area = q->area;
	a->addr = ring->area->addr;
	a->pages = ring->area->pages;
	a->frame_shift = q->area->frame_shift;
	a->frame_size = q->area->frame_size;
	a->dev = dev;
	a->meta = q->meta;
	if (dev && !tp4a_map(a)) {
		kvfree(a);
		return NULL;
	}
	return a;
}

/**
 * tp4_rx_buf_len() - get the size of the buffers to receive into
 * @rx_opaque:	rx_opaque of struct tp4_netdev_parms
 * @limits:	limits of the device
 * @packet_len:	bytes of the longest packet that the device receives
 *
 * Context: In ndo_tp4_zerocopy.
 * Return: the number of bytes that the device may write to a frame, -EINVAL if
 * that is too little, or -EMSGSIZE if a packet needs more frames than the device
 * can chain.
 */
int tp4_rx_buf_len(const void *rx_opaque, const struct tp4_limits *limits,
		   u32 packet_len)
{
	u32 len = min(tp4_frame_room(rx_opaque), limits->buf_max);

	len = ALIGN_DOWN(len, limits->buf_unit);
	if (len < limits->buf_min)
		return -EINVAL;
	return packet_len > len * limits->buf_chain ? -EMSGSIZE : len;
}
EXPORT_SYMBOL_GPL(tp4_rx_buf_len);

/**
 * tp4_frame_room() - get the number of data bytes that fit a frame
 * @rx_opaque:	rx_opaque of struct tp4_netdev_parms
 *
 * For drivers to check the limits of the hardware before calling tp4a_rx_new().
 *
 * Context: In ndo_tp4_zerocopy.
 * Return: the number of data bytes that fit an empty frame of the Rx array.
 */
u32 tp4_frame_room(const void *rx_opaque)
{
	const struct tp4_zc_ring *ring = rx_opaque;

	return ring->q->room - XDP_PACKET_HEADROOM;
}
EXPORT_SYMBOL_GPL(tp4_frame_room);

/**
 * tp4_can_stamp() - check whether a driver supports the Tx timestamps of a socket
 * @ring:	the Tx ring
 * @tsflags:	flags of SO_TIMESTAMPING
 *
 * As for other sockets, one of those that are wanted is enough: software
 * timestamps are for devices that have no others.
 *
 * Context: Any.
 * Return: true if it does, or if the socket wants none.
 */
bool tp4_can_stamp(const struct tp4_zc_ring *ring, u32 tsflags)
{
	tsflags &= TP4_TX_STAMPS;
	return !ring->q || !tsflags || tsflags & ring->stamps;
}

/**
 * tp4_set_stamps() - set the Tx timestamps that a driver supports
 * @tx_opaque:	tx_opaque of struct tp4_netdev_parms, or NULL
 * @stamps:	%TP4_SW_STAMPS, with %SOF_TIMESTAMPING_TX_HARDWARE if the device
 *		can stamp packets
 *
 * The core refuses sockets that want others. A driver that does not call it has
 * none.
 *
 * Context: In ndo_tp4_zerocopy, before the queue pair is changed.
 * Return: 0, or -EOPNOTSUPP if the socket wants others.
 */
int tp4_set_stamps(void *tx_opaque, u32 stamps)
{
	struct tp4_zc_ring *ring = tx_opaque;

	if (!ring)
		return 0;
	ring->stamps = stamps;
	return tp4_can_stamp(ring, tp4a_stamps(ring->q->sk)) ? 0 : -EOPNOTSUPP;
}
EXPORT_SYMBOL_GPL(tp4_set_stamps);

/**
 * tp4a_rx_new() - allocate an array of empty frames to receive into
 * @rx_opaque:	rx_opaque of struct tp4_netdev_parms
 * @elems:	minimum number of frames that it can hold
 * @dev:	device to map the packet buffer for, or NULL
 *
 * The data starts XDP_PACKET_HEADROOM bytes after the headroom that the program
 * requested.
 *
 * Context: Process context, may sleep, in ndo_tp4_zerocopy.
 * Return: the array, or NULL if there is no memory.
 */
struct tp4_packet_array *tp4a_rx_new(void *rx_opaque, size_t elems,
				     struct device *dev)
{
	const struct tp4_array_ops *ops = &tp4a_rx_ops;
	struct tp4_zc_ring *ring = rx_opaque;
	struct tp4_queue *q = ring->q;
	struct tp4_packet_array *a;

	/* Separate operations, so that other rings need no check */
	if (tp4_area_has_spares(ring->area))
		ops = tp4a_keep_ops(ring);
	else if (tp4a_has_runs(q))
		ops = &tp4a_rx_runs_ops;
	a = tp4a_ring_new(ops, ring, elems, dev);
	if (!a)
		return NULL;

	tp4a_refill_init(ring);
	if (tp4_area_has_spares(ring->area) && !tp4a_init_spares(a)) {
		tp4a_free(a);
		return NULL;
	}
	a->to_stack = q->flags & TP4_RING_TO_STACK;
	a->offset = q->offset + XDP_PACKET_HEADROOM;
	a->room = tp4_frame_room(ring);
	/* Let the array take frames that copy mode has taken but not used. */
	tp4q_rx_put_back(q);
	return a;
}
EXPORT_SYMBOL_GPL(tp4a_rx_new);

/**
 * tp4a_tx_new() - allocate an array of packets to send
 * @tx_opaque:	tx_opaque of struct tp4_netdev_parms
 * @elems:	minimum number of frames that it can hold
 * @dev:	device to map the packet buffer for, or NULL
 *
 * Context: Process context, may sleep, in ndo_tp4_zerocopy.
 * Return: the array, or NULL if there is no memory.
 */
struct tp4_packet_array *tp4a_tx_new(void *tx_opaque, size_t elems,
				     struct device *dev)
{
	const struct tp4_array_ops *ops = &tp4a_tx_ops;
	struct tp4_zc_ring *ring = tx_opaque;

	if (ring->q->meta)
		ops = &tp4a_tx_meta_ops;
	else if (tp4a_has_runs(ring->q))
		ops = &tp4a_tx_runs_ops;
	return tp4a_ring_new(ops, ring, elems, dev);
}
EXPORT_SYMBOL_GPL(tp4a_tx_new);

/**
 * tp4a_has_work() - check whether there are packets to send
 * @a:	a Tx array of a V4 ring
 *
 * Counts packets that were taken from the ring but not processed, and complete
 * posted packets that the array has room for.
 *
 * Context: Softirq (NAPI). Only a hint for a context that no longer owns the
 * array.
 * Return: true if there are.
 */
bool tp4a_has_work(const struct tp4_packet_array *a)
{
	u32 end = READ_ONCE(a->end);

	DEBUG_NET_WARN_ON_ONCE(a->ops->validation != TP4_VALIDATION_DESC);
	if (READ_ONCE(a->curr) != end)
		return true;
	return tp4q_tx_ready(tp4a_zc_ring(a)->q,
			     a->mask + 1 - (end - READ_ONCE(a->start)));
}
EXPORT_SYMBOL_GPL(tp4a_has_work);

/**
 * tp4a_need_wakeup() - set whether the program must kick the driver
 * @a:		an array of a V4 ring
 * @need:	true if the driver will not check the ring without a kick; it
 *		must then check it once more, for Tx with tp4a_has_work(), for
 *		Rx with tp4a_populate(), to not miss descriptors
 *
 * A kick is a sendto() or a poll(), and calls ndo_tp4_xmit.
 *
 * Context: Softirq (NAPI).
 * Return: true if @need is, and a program has the status page mapped. Without
 * the page, it always kicks for Tx and never for Rx.
 */
bool tp4a_need_wakeup(struct tp4_packet_array *a, bool need)
{
	struct tp4_zc_ring *ring = tp4a_zc_ring(a);
	bool can_know;

	can_know = tp4_status_need_wakeup(ring->q->sk, ring->q->tx, need);
	if (READ_ONCE(ring->need_wakeup) != need)
		WRITE_ONCE(ring->need_wakeup, need);
	if (need) {
		/* Pairs with the program's barrier between posting and reading
		 * the status, and with the barrier in tp4_zc_rx_wakeup().
		 */
		smp_mb();
	}
	return can_know;
}
EXPORT_SYMBOL_GPL(tp4a_need_wakeup);

/**
 * tp4a_count_no_frame() - count that there is no frame to receive into
 * @a:	an Rx array of a V4 ring
 *
 * For devices that drop packets themselves, and count those. Called each time
 * that there is no frame to hand to the device, which has none left.
 * tp4a_refill() does this, too.
 *
 * Context: Softirq (NAPI).
 */
void tp4a_count_no_frame(struct tp4_packet_array *a)
{
	struct tp4_queue *q = tp4a_zc_ring(a)->q;

	atomic_long_inc(&q->dry);
	tp4a_wake_starved(q);
}

/* Set the NAPI instance that the socket busy polls. */
static void tp4a_set_napi_id(struct tp4_packet_array *a, unsigned int napi_id)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	struct sock *sk = tp4a_zc_ring(a)->q->sk;

	if (sk && READ_ONCE(sk->sk_napi_id) != napi_id)
		WRITE_ONCE(sk->sk_napi_id, napi_id);
#endif
}

/**
 * tp4a_begin_rx() - begin to receive in a run of NAPI
 * @a:		an Rx array of a V4 ring that tp4a_set_xdp() was called for
 * @napi:	the NAPI instance, which the socket may busy poll, and which gives
 *		packets to the stack
 * @prog:	the XDP program that runs at flush, or NULL
 *
 * Sets the counters of the array's struct tp4_xdp to 0.
 *
 * Context: Softirq (NAPI).
 */
void tp4a_begin_rx(struct tp4_packet_array *a, struct napi_struct *napi,
		   struct bpf_prog *prog)
{
	struct tp4_xdp *xdp = a->xdp;

	xdp->prog = prog;
	xdp->napi = napi;
	xdp->drops = 0;
	xdp->errors = 0;
	xdp->tx = 0;
	xdp->redirect = 0;
	tp4a_set_napi_id(a, napi->napi_id);
}
EXPORT_SYMBOL_GPL(tp4a_begin_rx);

/**
 * tp4a_refill_later() - look for empty frames after an interval
 * @a:		an Rx array of a V4 ring
 * @some:	whether there were any frames; if not, the interval grows
 *
 * For drivers that could not hand all frames to the device. Calls ndo_tp4_xmit
 * with TP4_WAKEUP_RX.
 *
 * Context: Softirq (NAPI).
 */
void tp4a_refill_later(struct tp4_packet_array *a, bool some)
{
	struct tp4_zc_ring *ring = tp4a_zc_ring(a);

	ring->refill_ns = some ? TP4_REFILL_MIN :
			  min_t(u32, 2 * ring->refill_ns, TP4_REFILL_MAX);
	hrtimer_start(&ring->refill, ns_to_ktime(ring->refill_ns),
		      HRTIMER_MODE_REL_SOFT);
}
EXPORT_SYMBOL_GPL(tp4a_refill_later);

/**
 * tp4a_refill() - get empty frames for the device
 * @a:		an Rx array of a V4 ring
 * @posted:	number of frames that the device has
 * @max:	maximum number of frames to get
 * @p:		set to the frames; the driver may walk them by @p->curr
 *
 * Populates the array. If the device is short of frames, makes sure that the
 * driver's NAPI is scheduled when more are posted: without frames, the device
 * raises no interrupt. A program that has mapped the status page is asked for a
 * kick; for others, a timer calls ndo_tp4_xmit.
 *
 * Context: Softirq (NAPI).
 * Return: the number of frames.
 */
u32 tp4a_refill(struct tp4_packet_array *a, u32 posted, u32 max,
		struct tp4_frame_set *p)
{
	u32 nr;

	tp4a_populate(a);
	nr = min(tp4a_get_unprocessed(a, posted, p), max);
	if (likely(posted + nr >= TP4_RX_LOW)) {
		tp4a_need_wakeup(a, false);
		return nr;
	}
	if (tp4a_need_wakeup(a, true)) {
		tp4a_populate(a);
		nr = min(tp4a_get_unprocessed(a, posted, p), max);
	} else {
		tp4a_refill_later(a, nr);
	}
	if (!(posted + nr))
		tp4a_count_no_frame(a);
	return nr;
}
EXPORT_SYMBOL_GPL(tp4a_refill);
