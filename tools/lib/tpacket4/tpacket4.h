/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * AF_PACKET V4 rings and packet buffers for user space.
 *
 * Header only, C11 and C++11, without extensions of the language. A program has
 * this shape:
 *
 *	tp4_area_create()	memory for packets, cut into frames
 *	tp4_open()		a socket with an Rx and a Tx ring
 *	tp4_ring_post()		lend empty frames to the kernel
 *	tp4_bind()		packets flow
 *	tp4_ring_peek()		how many slots came back?
 *	tp4_ring_at()		look at one of them
 *	tp4_ring_recycle()	lend it again, or
 *	tp4_ring_forward()	send it
 *	tp4_kick()		have the kernel send, if tp4_need_kick()
 *	tp4_wait()		sleep until there is something to do
 *
 * and the same in zero-copy mode, which tp4_zerocopy() turns on.
 *
 * All names begin with tp4_ or TP4_; <linux/if_packet.h> has some of the same
 * beginning, all of them TP4_DESC_*, TP4_PKT_*, TP4_RING_* or TP4_META*.
 *
 * A slot of a ring belongs to the kernel while TP4_DESC_KERNEL is set in it
 * and to the program otherwise. Both rings work alike: the program hands
 * slots over in ring order and takes them back in ring order. A slot that
 * comes back names a frame that is the program's again; on Rx it holds (part
 * of) a packet, on Tx it was sent, or has an errno in @error. Which frame
 * comes back in which slot is the kernel's choice.
 *
 * Nothing here locks: one thread at a time may use a ring. Rx and Tx of one
 * socket may be used by two threads. Nothing that moves packets allocates or,
 * but for the kicks, tp4_wait() and tp4_busy_poll(), enters the kernel.
 */
#ifndef __TPACKET4_H
#define __TPACKET4_H

/* The minor version counts additions, the major one what breaks programs. */
#define TP4_VERSION_MAJOR	1
#define TP4_VERSION_MINOR	2

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/types.h>

#ifndef TP4_RING_META
#error "<linux/if_packet.h> is of a kernel without TPACKET_V4: make headers"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What the C library hides where the compiler is told -std=c11, or does not
 * have yet. On these two machines the numbers are others.
 */
#if !defined(__sparc__) && !defined(__hppa__)
#ifndef SO_BUSY_POLL
#define SO_BUSY_POLL		46
#endif
#ifndef SO_PREFER_BUSY_POLL
#define SO_PREFER_BUSY_POLL	69
#define SO_BUSY_POLL_BUDGET	70
#endif
#endif
#if defined(__STRICT_ANSI__) && !defined(__cplusplus)
long syscall(long number, ...);
#if defined(__GLIBC__) && !defined(__USE_POSIX199309)
int ftruncate(int fd, __off_t length);
#endif
#endif

#ifndef SOL_PACKET
#define SOL_PACKET		263
#endif

/*
 * In zero-copy mode, bytes that are free before the data of a received packet
 * (XDP_PACKET_HEADROOM). Leave as many before a packet to be sent if both
 * ends share an area: the receiver can then be given the frame itself.
 */
#define TP4_ZC_HEADROOM		256

/* Descriptors that the CPUs hand to each other at a time: a cache line */
#ifndef TP4_LINE
#define TP4_LINE		4u
#endif

/* MFD_CLOEXEC and MFD_HUGETLB, which not every C library has */
#define TP4_MFD_CLOEXEC		1u
#define TP4_MFD_HUGETLB		4u

/* The most pauses between two looks at a ring that stays empty. */
#ifndef TP4_BACKOFF_MAX
#define TP4_BACKOFF_MAX		32
#endif

/**
 * struct tp4_area - memory for packets
 * @addr: where it is mapped; NULL: there is none
 * @len: bytes, whole pages
 * @frame_size: bytes a frame, a power of two, 2048 to the page size
 * @nr_frames: frames in it; they are named by number, from 0
 * @memfd: the file behind it, to be passed to another process
 */
struct tp4_area {
	__u8 *addr;
	size_t len;
	__u32 frame_size;
	__u32 nr_frames;
	int memfd;
};

/**
 * struct tp4_ring - the program's view of one ring
 * @q: the ring and the program's indices, which run freely (not wrapped):
 *     avail_idx is the next slot to hand over, last_used_idx the next to come
 *     back, num_free the slots that may be handed over now
 * @seen: slots from last_used_idx on that are known to have come back, so
 *        that a slot is looked at once: each look can cost a cache line
 * @held: slots from avail_idx on whose frames wait to be lent again in place,
 *        see tp4_ring_recycle(); if there are any, no other slot is free
 */
struct tp4_ring {
	struct tpacket4_queue q;
	unsigned int seen;
	unsigned int held;
};

/**
 * struct tp4_socket - a V4 socket and its rings
 * @fd: the packet socket; every socket option and poll() work on it
 * @rx: receive ring
 * @tx: transmit ring
 * @status: what the kernel says of the socket, see tp4_need_kick()
 * @map: where both rings and @status are mapped; NULL: it is not open
 * @map_len: bytes at @map
 *
 * All zeroes are a socket that is not open, and so is what tp4_close() or a
 * tp4_open() that failed leaves.
 */
struct tp4_socket {
	int fd;
	struct tp4_ring rx;
	struct tp4_ring tx;
	const struct tpacket4_status *status;
	void *map;
	size_t map_len;
};

/**
 * struct tp4_options - what tp4_open() is to make
 * @rx_nr: descriptors of the Rx ring, a power of two that fills whole pages
 *         (256 at least on 4K pages); 0: no Rx ring
 * @tx_nr: the same for the Tx ring
 * @area: where the packets are; it is registered with the socket
 * @headroom: bytes to leave free before the data of each received packet,
 *            rounded up to a multiple of 64
 * @mr_fd: instead of @area: a packet socket that an area is registered with,
 *         the fd of another struct tp4_socket for example; 0: none
 * @fd: a packet socket of protocol 0 that the caller has made, because someone
 *      else has the privilege, for options that must precede the rings, or for
 *      its type; 0: make one of %SOCK_RAW
 * @meta: not 0: packets have metadata, both ways, see tp4_meta(). There is room
 *        for it in front of received data, so @headroom is 64 at least; an area
 *        that @mr_fd has must have as much
 * @to_stack: not 0: in zero-copy mode, the stack gets what the Rx ring gets
 *
 * What is left zero has the default that is said here, so name what you set:
 * designated initializers in C, or an object that is all zeroes, to which you
 * assign. File descriptor 0 cannot be given. There must be a ring, and either
 * @area or @mr_fd.
 */
struct tp4_options {
	unsigned int rx_nr;
	unsigned int tx_nr;
	const struct tp4_area *area;
	__u32 headroom;
	int mr_fd;
	int fd;
	int meta;
	int to_stack;
};

/**
 * struct tp4_pool - a stack of free frame numbers
 * @frames: the numbers, in memory of the caller's
 * @nr: how many are on the stack
 */
struct tp4_pool {
	__u64 *frames;
	unsigned int nr;
};

/**
 * struct tp4_backoff - state of a wait; all zeroes to begin with
 * @pauses: pauses the next tp4_backoff() makes, less one
 */
struct tp4_backoff {
	unsigned int pauses;
};

/* --- one descriptor ------------------------------------------------------ */

/*
 * len, offset, error and flags are the second eight bytes of a descriptor.
 * One store moves them all, and makes the slot change hands.
 */
#if UINTPTR_MAX > 0xffffffffu
typedef __u64 __attribute__((__may_alias__)) tp4_word;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define TP4_WORD_KERNEL		((__u64)TP4_DESC_KERNEL << 56)
#define TP4_WORD_ERROR		((__u64)0xff << 48)
#define TP4_WORD(len, offset, flags) \
	((__u64)(len) | (__u64)(offset) << 32 | (__u64)(flags) << 56)
#else
#define TP4_WORD_KERNEL		((__u64)TP4_DESC_KERNEL)
#define TP4_WORD_ERROR		((__u64)0xff << 8)
#define TP4_WORD(len, offset, flags) \
	((__u64)(len) << 32 | (__u64)(offset) << 16 | (__u64)(flags))
#endif
#endif /* 64 bit */

/* All but the frame number: the slot changes hands. */
static inline void __tp4_desc_publish(struct tpacket4_desc *d, __u32 len,
				      __u16 offset, __u8 flags)
{
	flags |= TP4_DESC_KERNEL;
#if UINTPTR_MAX > 0xffffffffu
	__atomic_store_n((tp4_word *)&d->len, TP4_WORD(len, offset, flags),
			 __ATOMIC_RELEASE);
#else
	d->len = len;
	d->offset = offset;
	d->error = 0;
	__atomic_store_n(&d->flags, flags, __ATOMIC_RELEASE);
#endif
}

/**
 * tp4_desc_give - fill a descriptor and hand it to the kernel
 * @d: a slot of a ring that is the program's
 * @idx: frame number
 * @len: bytes of packet in the frame; 0 for an empty one
 * @offset: from the start of the frame to the packet; 0 for an empty one
 * @flags: TP4_PKT_CONT if the packet goes on in the next slot, TP4_META if the
 *         frame starts with metadata, or 0
 */
static inline void tp4_desc_give(struct tpacket4_desc *d, __u64 idx,
				 __u32 len, __u16 offset, __u8 flags)
{
	d->idx = idx;
	__tp4_desc_publish(d, len, offset, flags);
}

/**
 * tp4_desc_move - hand the frame of one descriptor to the kernel in another
 * @to: a slot that is the program's, of the same ring or of another
 * @from: the descriptor that names the frame; may be @to
 *
 * Length, offset, continuation and metadata go along; the error does not.
 */
static inline void tp4_desc_move(struct tpacket4_desc *to,
				 const struct tpacket4_desc *from)
{
#if UINTPTR_MAX > 0xffffffffu
	__u64 word = *(const tp4_word *)&from->len;

	to->idx = from->idx;
	word &= ~TP4_WORD_ERROR;
	__atomic_store_n((tp4_word *)&to->len, word | TP4_WORD_KERNEL,
			 __ATOMIC_RELEASE);
#else
	tp4_desc_give(to, from->idx, from->len, from->offset, from->flags);
#endif
}

/**
 * tp4_desc_ready - has a slot come back?
 * @d: the slot
 *
 * Return: true if the slot is the program's; what the kernel wrote to it and
 * to its frame can then be read.
 */
static inline int tp4_desc_ready(const struct tpacket4_desc *d)
{
#if UINTPTR_MAX > 0xffffffffu
	return !(__atomic_load_n((const tp4_word *)&d->len,
				 __ATOMIC_ACQUIRE) & TP4_WORD_KERNEL);
#else
	return !(__atomic_load_n(&d->flags, __ATOMIC_ACQUIRE) &
		 TP4_DESC_KERNEL);
#endif
}

/* --- one ring ------------------------------------------------------------ */

/**
 * tp4_ring_init - start with a ring all of whose slots are the program's
 * @r: ring
 * @desc: the descriptors
 * @nr: how many; a power of two
 */
static inline void tp4_ring_init(struct tp4_ring *r,
				 struct tpacket4_desc *desc, unsigned int nr)
{
	memset(r, 0, sizeof(*r));
	r->q.ring = desc;
	r->q.num_free = nr;
	r->q.ring_mask = nr - 1;
}

/**
 * tp4_ring_free - slots that can be handed over now
 * @r: ring
 *
 * Return: number of slots.
 */
static inline unsigned int tp4_ring_free(const struct tp4_ring *r)
{
	return r->q.num_free - r->held;
}

/**
 * tp4_ring_pending - slots handed over and not taken back
 * @r: ring
 *
 * Return: number of slots, those peeked at but not taken included.
 */
static inline unsigned int tp4_ring_pending(const struct tp4_ring *r)
{
	return r->q.avail_idx - r->q.last_used_idx;
}

/**
 * tp4_ring_at - a slot that has come back
 * @r: ring
 * @i: which, from 0; less than the last tp4_ring_peek() returned
 *
 * Return: the descriptor. It stays valid until it is taken, recycled or
 * forwarded.
 */
static inline struct tpacket4_desc *tp4_ring_at(const struct tp4_ring *r,
						unsigned int i)
{
	return &r->q.ring[(r->q.last_used_idx + i) & r->q.ring_mask];
}

/* The i-th slot to be handed over next. */
static inline struct tpacket4_desc *__tp4_ring_next(const struct tp4_ring *r,
						    unsigned int i)
{
	return &r->q.ring[(r->q.avail_idx + i) & r->q.ring_mask];
}

/* Of n slots from the pos-th on, so many lie before the ring begins again. */
static inline unsigned int __tp4_ring_straight(const struct tp4_ring *r,
					       unsigned int pos,
					       unsigned int n)
{
	unsigned int m = r->q.ring_mask + 1 - (pos & r->q.ring_mask);

	return m < n ? m : n;
}

/* n slots were filled: count them. */
static inline void __tp4_ring_gave(struct tp4_ring *r, unsigned int n)
{
	r->q.avail_idx += n;
	r->q.num_free -= n;
}

/* n slots were emptied: count them. */
static inline void __tp4_ring_took(struct tp4_ring *r, unsigned int n)
{
	r->q.last_used_idx += n;
	r->q.num_free += n;
	r->seen -= n;
}

/* Lend n of the frames that are held back, each in its own slot. */
static inline void __tp4_ring_relend(struct tp4_ring *r, unsigned int n)
{
	struct tpacket4_desc *ring = r->q.ring;
	unsigned int i, mask = r->q.ring_mask, first = r->q.avail_idx;

	for (i = first + n; i-- != first; )
		__tp4_desc_publish(&ring[i & mask], 0, 0, 0);
	__tp4_ring_gave(r, n);
	r->held -= n;
}

/**
 * tp4_ring_flush - lend at once what tp4_ring_recycle() has held back
 * @r: ring
 *
 * To be called before poll(); tp4_wait() does.
 */
static inline void tp4_ring_flush(struct tp4_ring *r)
{
	if (r->held)
		__tp4_ring_relend(r, r->held);
}

/**
 * tp4_ring_peek - look for slots that have come back
 * @r: ring
 * @max: look for that many, at most
 *
 * Rx: packets received. Tx: frames sent, or refused with an error. The slots
 * stay where they are; read them with tp4_ring_at(), then pass them on with
 * tp4_ring_take(), tp4_ring_recycle() or tp4_ring_forward().
 *
 * Return: number of slots that have come back, 0 to @max.
 */
static inline unsigned int tp4_ring_peek(struct tp4_ring *r, unsigned int max)
{
	unsigned int pending = tp4_ring_pending(r);
	unsigned int i, m, n = r->seen;

	if (max > pending)
		max = pending;
	while (n < max) {
		const struct tpacket4_desc *d = tp4_ring_at(r, n);

		m = __tp4_ring_straight(r, r->q.last_used_idx + n, max - n);
		for (i = 0; i < m && tp4_desc_ready(d); i++)
			d++;
		n += i;
		if (i < m)
			break;
	}
	r->seen = n;
	return n < max ? n : max;
}

/**
 * tp4_ring_error - did a slot come back with an error?
 * @r: ring
 * @n: look at so many; at most what tp4_ring_peek() returned
 *
 * On Rx no packet is in such a slot. It is %EINVAL if the frame that was lent
 * there does not exist, and %ECANCELED or %ENETDOWN at the end of zero-copy
 * mode. On Tx the packet was not sent; the frame is free as any other.
 *
 * Return: 0, or -errno of the first slot with an error.
 */
static inline int tp4_ring_error(const struct tp4_ring *r, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (tp4_ring_at(r, i)->error)
			return -tp4_ring_at(r, i)->error;
	return 0;
}

/**
 * tp4_ring_take - take slots back for good
 * @r: ring
 * @n: how many; at most what tp4_ring_peek() returned
 *
 * Their frames are the program's to keep, to send, or to lend again later.
 */
static inline void tp4_ring_take(struct tp4_ring *r, unsigned int n)
{
	tp4_ring_flush(r);
	__tp4_ring_took(r, n);
}

/*
 * Every function below that hands over a batch does so from its last slot to
 * its first. The kernel looks for the first; when it finds that, it finds the
 * whole batch, and each cache line of four descriptors goes across once, when
 * it is complete, and not once a descriptor.
 */

/**
 * tp4_ring_post - lend empty frames to the kernel (Rx)
 * @r: ring
 * @frames: their numbers
 * @n: how many
 *
 * Return: how many were lent: fewer than @n if the ring is full.
 */
static inline unsigned int tp4_ring_post(struct tp4_ring *r,
					 const __u64 *frames,
					 unsigned int n)
{
	unsigned int i;

	tp4_ring_flush(r);
	if (n > r->q.num_free)
		n = r->q.num_free;
	for (i = n; i--; )
		tp4_desc_give(__tp4_ring_next(r, i), frames[i], 0, 0, 0);
	__tp4_ring_gave(r, n);
	return n;
}

/**
 * tp4_ring_send - hand packets to the kernel (Tx)
 * @r: ring
 * @d: the descriptors; error is not used. A packet of several frames takes
 *     several, all but the last of them with TP4_PKT_CONT in flags
 * @n: how many
 *
 * The kernel sends them at the next tp4_kick().
 *
 * Return: how many were handed over: all @n, or none if there is no room.
 */
static inline unsigned int tp4_ring_send(struct tp4_ring *r,
					 const struct tpacket4_desc *d,
					 unsigned int n)
{
	unsigned int i;

	if (n > r->q.num_free)
		return 0;
	for (i = n; i--; )
		tp4_desc_give(__tp4_ring_next(r, i), d[i].idx, d[i].len,
			      d[i].offset, d[i].flags);
	__tp4_ring_gave(r, n);
	return n;
}

/**
 * tp4_ring_recycle - lend received frames to the kernel again (Rx)
 * @r: ring
 * @n: how many; at most what tp4_ring_peek() returned
 *
 * The packets in them are lost. To write to a cache line of the ring while
 * the kernel still fills its other slots would take it from the kernel's
 * CPU, so up to three slots are held back until their line is complete.
 */
static inline void tp4_ring_recycle(struct tp4_ring *r, unsigned int n)
{
	unsigned int whole;

	/* Some slots were emptied for good: frames must move up. */
	while (n && r->q.num_free != r->held) {
		/* as many as overwrite nothing that is still to be read */
		unsigned int i, m = r->q.num_free < n ? r->q.num_free : n;

		for (i = m; i--; )
			tp4_desc_give(__tp4_ring_next(r, i),
				      tp4_ring_at(r, i)->idx, 0, 0, 0);
		__tp4_ring_took(r, m);
		__tp4_ring_gave(r, m);
		n -= m;
	}

	/* Else every frame goes back into its own slot. */
	__tp4_ring_took(r, n);
	r->held += n;
	whole = (r->q.avail_idx + r->held) & ~(TP4_LINE - 1);
	if ((int)(whole - r->q.avail_idx) > 0)
		__tp4_ring_relend(r, whole - r->q.avail_idx);
}

/**
 * tp4_ring_forward - send received packets, uncopied (Rx to Tx)
 * @rx: receive ring
 * @tx: transmit ring, of a socket with the same area
 * @n: how many; at most what tp4_ring_peek() on @rx returned
 *
 * The slots of @rx are taken. tp4_ring_refill() lends their frames again
 * once they are sent. No descriptor may have an error, see tp4_ring_error().
 * What does not fit on @tx stays on @rx and is seen there again: who changes
 * packets on the way looks at tp4_ring_free() of @tx first. Metadata goes along,
 * so that checksums and segmentation come right; if @rx has it, so must @tx.
 *
 * Return: how many were handed over: fewer than @n if @tx is full.
 */
static inline unsigned int tp4_ring_forward(struct tp4_ring *rx,
					    struct tp4_ring *tx,
					    unsigned int n)
{
	struct tpacket4_desc *to = tx->q.ring, *from = rx->q.ring;
	unsigned int to_mask = tx->q.ring_mask, from_mask = rx->q.ring_mask;
	unsigned int t = tx->q.avail_idx, f = rx->q.last_used_idx;
	unsigned int i;

	if (n > tx->q.num_free)
		n = tx->q.num_free;
	for (i = n; i--; )
		tp4_desc_move(&to[(t + i) & to_mask],
			      &from[(f + i) & from_mask]);
	tp4_ring_take(rx, n);
	__tp4_ring_gave(tx, n);
	return n;
}

/**
 * tp4_ring_refill - lend frames that were sent to the kernel (Tx to Rx)
 * @tx: transmit ring
 * @rx: receive ring, of a socket with the same area
 * @n: how many; at most what tp4_ring_peek() on @tx returned
 *
 * Return: how many were lent: fewer than @n if @rx is full.
 */
static inline unsigned int tp4_ring_refill(struct tp4_ring *tx,
					   struct tp4_ring *rx,
					   unsigned int n)
{
	struct tpacket4_desc *to = rx->q.ring, *from = tx->q.ring;
	unsigned int to_mask = rx->q.ring_mask, from_mask = tx->q.ring_mask;
	unsigned int t, f = tx->q.last_used_idx;
	unsigned int i;

	tp4_ring_flush(rx);
	t = rx->q.avail_idx;
	if (n > rx->q.num_free)
		n = rx->q.num_free;
	for (i = n; i--; )
		tp4_desc_give(&to[(t + i) & to_mask],
			      from[(f + i) & from_mask].idx, 0, 0, 0);
	tp4_ring_take(tx, n);
	__tp4_ring_gave(rx, n);
	return n;
}

/**
 * tp4_ring_resend - send frames once more that were sent (Tx)
 * @r: ring
 * @n: how many; at most what tp4_ring_peek() returned
 * @len: bytes of packet in each frame
 * @offset: from the start of each frame to the packet
 *
 * Each frame is a packet of its own: what it held, or what the program has
 * written to it since, by tp4_ring_at(). The slots are taken. Where the ring is
 * full, which is when this is worth most, each frame goes out in the slot that
 * it came back in, and only half of the slot is touched.
 */
static inline void tp4_ring_resend(struct tp4_ring *r, unsigned int n,
				   __u32 len, __u16 offset)
{
	struct tpacket4_desc *d, *ring = r->q.ring;
	unsigned int i, m;

	while (n && r->q.num_free) {
		/* as many as overwrite nothing that is still to be read */
		m = r->q.num_free < n ? r->q.num_free : n;
		for (i = m; i--; )
			tp4_desc_give(__tp4_ring_next(r, i),
				      tp4_ring_at(r, i)->idx, len, offset, 0);
		__tp4_ring_took(r, m);
		__tp4_ring_gave(r, m);
		n -= m;
	}

	/* Else every frame goes back into its own slot. */
	m = __tp4_ring_straight(r, r->q.avail_idx, n);
	for (d = ring + (n - m); d != ring; )
		__tp4_desc_publish(--d, len, offset, 0);
	ring = __tp4_ring_next(r, 0);
	for (d = ring + m; d != ring; )
		__tp4_desc_publish(--d, len, offset, 0);
	__tp4_ring_took(r, n);
	__tp4_ring_gave(r, n);
}

/* --- waiting ------------------------------------------------------------- */

/**
 * tp4_cpu_relax - one pause of a loop that waits for another CPU
 */
static inline void tp4_cpu_relax(void)
{
#ifdef __SSE2__
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield" ::: "memory");
#else
	__asm__ __volatile__("" ::: "memory");
#endif
}

/**
 * tp4_backoff - wait a little, and twice as long the next time
 * @b: state; assign zeroes when something was found
 *
 * Two CPUs that look at one cache line all the time keep taking it from each
 * other. The one with nothing to do must look less often, or it slows down
 * the one it waits for.
 *
 * Return: true when the wait has its greatest length: time to sleep in
 * poll(), if one can.
 */
static inline int tp4_backoff(struct tp4_backoff *b)
{
	unsigned int i;

	for (i = 0; i <= b->pauses; i++)
		tp4_cpu_relax();
	if (b->pauses >= TP4_BACKOFF_MAX - 1)
		return 1;
	b->pauses = 2 * b->pauses + 1;
	return 0;
}

/**
 * tp4_wait - sleep until a ring of a socket needs attention
 * @s: socket
 * @events: POLLIN and/or POLLOUT
 * @timeout: milliseconds; -1 for no limit
 *
 * POLLIN is there while the slot that the kernel returned last on Rx has not
 * been posted again, so recycle what was received first. In zero-copy mode this
 * is a kick for both rings, too.
 *
 * An error of the socket's is returned once: after %ENETDOWN the next call
 * sleeps, until the device is up again and receives.
 *
 * Return: the events that are there; 0 on time-out or a signal; or -errno,
 * %ENETDOWN if the device went down or is gone.
 */
static inline int tp4_wait(struct tp4_socket *s, short events, int timeout)
{
	struct pollfd pfd = { s->fd, events, 0 };
	socklen_t len = sizeof(int);
	int err = 0;

	tp4_ring_flush(&s->rx);
	if (poll(&pfd, 1, timeout) < 0)
		return errno == EINTR ? 0 : -errno;
	if (pfd.revents & POLLNVAL)
		return -EBADF;
	if ((pfd.revents & POLLERR) &&
	    getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	return err ? -err : pfd.revents;
}

/* --- packet memory ------------------------------------------------------- */

/* Map a->memfd, all of it. */
static inline int __tp4_area_map(struct tp4_area *a)
{
	struct stat st;
	void *addr;

	if (fstat(a->memfd, &st))
		return -errno;
	a->len = st.st_size;
	if (a->len < (__u64)a->nr_frames * a->frame_size)
		return -EINVAL;
	addr = mmap(NULL, a->len, PROT_READ | PROT_WRITE, MAP_SHARED, a->memfd,
		    0);
	if (addr == MAP_FAILED)
		return -errno;
	a->addr = (__u8 *)addr;
	return 0;
}

/* As tp4_area_create(); flags are memfd_create()'s. */
static inline int __tp4_area_create(struct tp4_area *a, __u32 nr_frames,
				    __u32 frame_size, unsigned int flags)
{
	__u64 len = (__u64)nr_frames * frame_size;
	struct stat st;
	int err = 0;

	memset(a, 0, sizeof(*a));
	a->frame_size = frame_size;
	a->nr_frames = nr_frames;
	a->memfd = syscall(SYS_memfd_create, "tpacket4", flags);
	if (a->memfd < 0)
		return -errno;
	/* The block of such a file is a page, of the size that it has. */
	if (fstat(a->memfd, &st))
		err = -errno;
	else
		len += -len & (st.st_blksize - 1);
	if (!err && len > SIZE_MAX / 2)
		err = -ENOMEM;
	if (!err && ftruncate(a->memfd, len))
		err = -errno;
	if (!err)
		err = __tp4_area_map(a);
	if (err) {
		close(a->memfd);
		a->memfd = -1;
	}
	return err;
}

/**
 * tp4_area_create - get memory for packets
 * @a: area
 * @nr_frames: frames
 * @frame_size: bytes a frame, a power of two, 2048 to the page size
 *
 * The memory is a memfd, so that another process can map it (see
 * tp4_area_attach()).
 *
 * Return: 0, or -errno.
 */
static inline int tp4_area_create(struct tp4_area *a, __u32 nr_frames,
				  __u32 frame_size)
{
	return __tp4_area_create(a, nr_frames, frame_size, TP4_MFD_CLOEXEC);
}

/**
 * tp4_area_create_huge - get memory for packets, of huge pages if possible
 * @a: area
 * @nr_frames: frames
 * @frame_size: bytes a frame, a power of two, 2048 to the size of an ordinary
 *              page
 *
 * The CPU reaches more packets without a TLB miss in huge pages. They have the
 * default size, and the administrator must have set enough of them aside
 * (/proc/sys/vm/nr_hugepages). If there are too few, the pages are ordinary
 * ones, as from tp4_area_create(); the area is made of whole pages, so @a->len
 * tells.
 *
 * Return: 0, or -errno.
 */
static inline int tp4_area_create_huge(struct tp4_area *a, __u32 nr_frames,
				       __u32 frame_size)
{
	if (!__tp4_area_create(a, nr_frames, frame_size,
			       TP4_MFD_CLOEXEC | TP4_MFD_HUGETLB))
		return 0;
	return tp4_area_create(a, nr_frames, frame_size);
}

/**
 * tp4_area_attach - map the memory of another process's area
 * @a: area; memfd, frame_size and nr_frames are filled in by the caller, who
 *     got them from the other process (the fd by SCM_RIGHTS or fork())
 *
 * Return: 0, or -errno; EINVAL if the file is too short for the frames.
 */
static inline int tp4_area_attach(struct tp4_area *a)
{
	a->addr = NULL;
	return __tp4_area_map(a);
}

/**
 * tp4_area_destroy - unmap an area and close its file
 * @a: area; nothing happens if it was not made, or is destroyed already
 *
 * The kernel holds on to the memory until the last ring that uses it is gone.
 */
static inline void tp4_area_destroy(struct tp4_area *a)
{
	if (!a->addr)
		return;
	munmap(a->addr, a->len);
	close(a->memfd);
	a->addr = NULL;
	a->memfd = -1;
}

/**
 * tp4_area_register - give an area to a packet socket (PACKET_MEMREG)
 * @a: area
 * @fd: any packet socket; rings name the area by it
 * @headroom: bytes to leave free before the data of each received packet
 *
 * Return: 0, or -errno: EBUSY if @fd has an area, ENOBUFS if RLIMIT_MEMLOCK
 * does not allow as much.
 */
static inline int tp4_area_register(const struct tp4_area *a, int fd,
				    __u32 headroom)
{
	struct tpacket_memreg_req req;

	memset(&req, 0, sizeof(req));
	req.addr = (uintptr_t)a->addr;
	req.len = a->len;
	req.frame_size = a->frame_size;
	req.data_headroom = headroom;
	if (setsockopt(fd, SOL_PACKET, PACKET_MEMREG, &req, sizeof(req)))
		return -errno;
	return 0;
}

/**
 * tp4_frame - a frame
 * @a: area
 * @idx: its number; not checked
 *
 * Return: where it starts.
 */
static inline __u8 *tp4_frame(const struct tp4_area *a, __u64 idx)
{
	return a->addr + (size_t)idx * a->frame_size;
}

/**
 * tp4_data - the packet data that a descriptor names
 * @a: area
 * @d: descriptor
 *
 * Return: where the data starts; there are @d->len bytes.
 */
static inline __u8 *tp4_data(const struct tp4_area *a,
			     const struct tpacket4_desc *d)
{
	return tp4_frame(a, d->idx) + d->offset;
}

/**
 * tp4_meta - the metadata of a packet
 * @a: area
 * @d: its first descriptor
 *
 * What is in it, <linux/if_packet.h> says. On Rx it can be read until the frame
 * is lent again.
 *
 * Return: where it is, or NULL if the packet has none.
 */
static inline struct tpacket4_meta *tp4_meta(const struct tp4_area *a,
					     const struct tpacket4_desc *d)
{
	if (!(d->flags & TP4_META))
		return NULL;
	return (struct tpacket4_meta *)tp4_frame(a, d->idx);
}

/**
 * tp4_meta_new - give metadata to a packet that is to be sent
 * @a: area
 * @d: its first descriptor, with an offset of 64 or more, not yet handed over
 *
 * Return: where it is; nothing is asked for in it yet.
 */
static inline struct tpacket4_meta *tp4_meta_new(const struct tp4_area *a,
						 struct tpacket4_desc *d)
{
	d->flags |= TP4_META;
	return (struct tpacket4_meta *)memset(tp4_frame(a, d->idx), 0,
					      sizeof(struct tpacket4_meta));
}

/**
 * tp4_meta_csum - leave a checksum to the kernel or the device
 * @m: metadata of a packet that is to be sent
 * @start: from the start of the data to the first byte that is summed up
 * @offset: from there to the checksum, which holds that of the pseudo header
 */
static inline void tp4_meta_csum(struct tpacket4_meta *m, __u16 start,
				 __u16 offset)
{
	m->csum_start = start;
	m->csum_offset = offset;
	m->flags |= TP4_META_CSUM;
}

/**
 * tp4_meta_gso - leave it to the kernel or the device to cut a packet up
 * @m: metadata of a packet that is to be sent
 * @type: %VIRTIO_NET_HDR_GSO_TCPV4, _TCPV6 or _UDP_L4, of <linux/virtio_net.h>
 * @size: bytes of payload in each segment
 *
 * Leave the checksum as well, see tp4_meta_csum().
 */
static inline void tp4_meta_gso(struct tpacket4_meta *m, __u8 type, __u16 size)
{
	m->gso_type = type;
	m->gso_size = size;
	m->flags |= TP4_META_GSO;
}

/**
 * tp4_meta_launch - say when a packet is to be sent
 * @m: metadata of a packet that is to be sent
 * @ns: when, on the clock of SO_TXTIME, which must be set on the socket
 */
static inline void tp4_meta_launch(struct tpacket4_meta *m, __u64 ns)
{
	m->tstamp = ns;
	m->flags |= TP4_META_TX_LAUNCH;
}

/**
 * tp4_meta_time - when was a packet received?
 * @m: its metadata
 *
 * By the device's clock if TP4_META_RX_TS_HARDWARE is in @m->flags, else by
 * %CLOCK_REALTIME.
 *
 * Return: the time.
 */
static inline struct timespec tp4_meta_time(const struct tpacket4_meta *m)
{
	struct timespec t;

	t.tv_sec = m->tstamp / 1000000000;
	t.tv_nsec = m->tstamp % 1000000000;
	return t;
}

/* --- sockets ------------------------------------------------------------- */

/**
 * tp4_setopt - set an int option of level SOL_PACKET
 * @fd: packet socket
 * @opt: PACKET_...
 * @val: value
 *
 * Return: 0, or -errno.
 */
static inline int tp4_setopt(int fd, int opt, int val)
{
	if (setsockopt(fd, SOL_PACKET, opt, &val, sizeof(val)))
		return -errno;
	return 0;
}

/**
 * tp4_close - close a socket and unmap its rings
 * @s: socket; nothing happens if it is not open
 *
 * Frames the kernel held are the program's again when this returns; packets
 * that are still on their way out may be read by the device until they left.
 */
static inline void tp4_close(struct tp4_socket *s)
{
	if (!s->map)
		return;
	munmap(s->map, s->map_len);
	close(s->fd);
	memset(s, 0, sizeof(*s));
	s->fd = -1;
}

/* Ring opt (PACKET_RX_RING or PACKET_TX_RING) of nr descriptors; 0: none. */
static inline int __tp4_set_ring(int fd, int opt, int mr_fd, unsigned int nr,
				 __u32 flags)
{
	struct tpacket_req4 req;

	if (!nr)
		return 0;
	memset(&req, 0, sizeof(req));
	req.mr_fd = mr_fd;
	req.desc_nr = nr;
	req.flags = flags;
	if (setsockopt(fd, SOL_PACKET, opt, &req, sizeof(req)))
		return -errno;
	return 0;
}

/* All that makes a packet socket one of V4 with rings. */
static inline int __tp4_set_up(int fd, const struct tp4_options *opt)
{
	int err = tp4_setopt(fd, PACKET_VERSION, TPACKET_V4);
	int mr_fd = opt->area ? fd : opt->mr_fd;
	__u32 flags = opt->meta ? TP4_RING_META : 0;
	__u32 headroom = opt->headroom;

	if (opt->meta && headroom < sizeof(struct tpacket4_meta))
		headroom = sizeof(struct tpacket4_meta);
	if (!err && opt->area)
		err = tp4_area_register(opt->area, fd, headroom);
	if (!err)
		err = __tp4_set_ring(fd, PACKET_RX_RING, mr_fd, opt->rx_nr,
				     flags | (opt->to_stack ?
					      TP4_RING_TO_STACK : 0));
	if (!err)
		err = __tp4_set_ring(fd, PACKET_TX_RING, mr_fd, opt->tx_nr,
				     flags);
	return err;
}

/**
 * tp4_open - make a socket with rings
 * @s: socket; what is in it is overwritten
 * @opt: what to make
 *
 * The socket receives nothing before tp4_bind(). Set other options, filters
 * and fanout on s->fd, and post frames, in between.
 *
 * Return: 0, or -errno: %EINVAL if @opt is incomplete or contradicts itself, or
 * if the kernel has no V4; else what socket(), PACKET_MEMREG, PACKET_RX_RING
 * and mmap() return. After an error @s is not open and its fd is -1; @opt->fd
 * is still the caller's to close.
 */
static inline int tp4_open(struct tp4_socket *s, const struct tp4_options *opt)
{
	size_t rings = ((size_t)opt->rx_nr + opt->tx_nr) *
		       sizeof(struct tpacket4_desc);
	/* one page more than the rings: the status */
	size_t len = rings + sysconf(_SC_PAGESIZE);
	void *map = MAP_FAILED;
	int err, fd = opt->fd;

	memset(s, 0, sizeof(*s));
	s->fd = -1;
	if (!rings || !opt->area == !opt->mr_fd ||
	    (opt->headroom && !opt->area))
		return -EINVAL;
	if (!fd)
		fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return opt->fd ? -EBADF : -errno;
	err = __tp4_set_up(fd, opt);
	if (!err) {
		map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			   0);
		if (map == MAP_FAILED)
			err = -errno;
	}
	if (err) {
		if (!opt->fd)
			close(fd);
		return err;
	}

	s->fd = fd;
	s->map = map;
	s->map_len = len;
	s->status = (const struct tpacket4_status *)((__u8 *)map + rings);
	if (opt->rx_nr)
		tp4_ring_init(&s->rx, (struct tpacket4_desc *)map, opt->rx_nr);
	if (opt->tx_nr)
		tp4_ring_init(&s->tx, (struct tpacket4_desc *)map + opt->rx_nr,
			      opt->tx_nr);
	return 0;
}

/**
 * tp4_zerocopy - turn zero-copy mode on or off
 * @s: socket; before or after tp4_bind()
 * @queue: 0 for off, n for queue pair n - 1
 *
 * On: packets of the queue pair go to this socket's Rx ring alone, uncopied,
 * and those of its Tx ring straight to the driver; neither passes the stack.
 * Before tp4_bind() it is remembered, and its errors are tp4_bind()'s. Frames
 * must have %TP4_ZC_HEADROOM bytes more than a packet, or it takes several.
 *
 * Off: every frame that the kernel had comes back with error %ECANCELED, and
 * the socket goes on in copy mode. If the device goes away, they come back
 * with %ENETDOWN.
 *
 * Return: 0, or -errno: EOPNOTSUPP if the driver cannot, EBUSY if the queue
 * pair is taken, EPERM, ENXIO if there is no such queue pair.
 */
static inline int tp4_zerocopy(const struct tp4_socket *s, int queue)
{
	return tp4_setopt(s->fd, PACKET_ZEROCOPY, queue);
}

/**
 * tp4_promisc - receive also what is for others
 * @s: socket
 * @ifindex: interface; it stays promiscuous until the socket is closed
 *
 * Return: 0, or -errno.
 */
static inline int tp4_promisc(const struct tp4_socket *s, int ifindex)
{
	struct packet_mreq mreq;

	memset(&mreq, 0, sizeof(mreq));
	mreq.mr_ifindex = ifindex;
	mreq.mr_type = PACKET_MR_PROMISC;
	if (setsockopt(s->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &mreq,
		       sizeof(mreq)))
		return -errno;
	return 0;
}

/**
 * tp4_bind - start to receive from, and to send to, an interface
 * @s: socket
 * @ifindex: interface
 *
 * Return: 0, or -errno.
 */
static inline int tp4_bind(const struct tp4_socket *s, int ifindex)
{
	struct sockaddr_ll ll;

	memset(&ll, 0, sizeof(ll));
	ll.sll_family = AF_PACKET;
	ll.sll_protocol = htons(ETH_P_ALL);
	ll.sll_ifindex = ifindex;
	if (bind(s->fd, (struct sockaddr *)&ll, sizeof(ll)))
		return -errno;
	return 0;
}

/**
 * tp4_kick - have the kernel send what the Tx ring holds
 * @s: socket
 * @flags: MSG_DONTWAIT, or 0 to return when all of it was sent
 *
 * Return: bytes sent, or -errno. After ENOBUFS or EAGAIN (device full) the
 * packets are still the kernel's; kick again later.
 */
static inline int tp4_kick(const struct tp4_socket *s, int flags)
{
	ssize_t n = sendto(s->fd, NULL, 0, flags, NULL, 0);

	return n < 0 ? -errno : (int)n;
}

/*
 * The kernel says that it needs a kick, and then looks at the ring once more.
 * We have written to the ring, and now look at what it says. With a full
 * barrier between the two, here and there, at least one of us sees what the
 * other wrote.
 */
static inline int __tp4_need_wakeup(const __u32 *need)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !!__atomic_load_n(need, __ATOMIC_RELAXED);
}

/**
 * tp4_need_kick - does the kernel have to be told of packets to send?
 * @s: socket
 *
 * In zero-copy mode the driver may be at work on the ring already, on another
 * CPU, and tp4_kick() would be a system call for nothing. In copy mode this
 * is always true. Ask each time that packets were handed over, and again as
 * long as they do not come back.
 *
 * Return: true if packets of the Tx ring may be left there without a kick.
 */
static inline int tp4_need_kick(const struct tp4_socket *s)
{
	return __tp4_need_wakeup(&s->status->tx_need_wakeup);
}

/**
 * tp4_rx_need_kick - does the kernel have to be told of frames lent to it?
 * @s: socket
 *
 * In zero-copy mode, a device that has run out of frames is not looked after
 * until the program says that it has lent some. In copy mode this is never
 * true. Ask each time that frames were lent, unless tp4_wait() or
 * tp4_busy_poll() comes next anyway.
 *
 * Return: true if the device may go on without frames for want of a
 * tp4_rx_kick().
 */
static inline int tp4_rx_need_kick(const struct tp4_socket *s)
{
	return __tp4_need_wakeup(&s->status->rx_need_wakeup);
}

/**
 * tp4_rx_kick - have the device fetch the frames that were lent to it
 * @s: socket
 *
 * It is tp4_wait() without a wait, so a socket that has no Tx ring can do it.
 *
 * Return: 0, or -errno as tp4_wait().
 */
static inline int tp4_rx_kick(struct tp4_socket *s)
{
	int n = tp4_wait(s, POLLIN, 0);

	return n < 0 ? n : 0;
}

/**
 * tp4_stats - what happened since the last call
 * @s: socket
 * @st: is filled in; each member is documented where it is defined. Of a
 *      socket of V1 to V3 only the first two count
 *
 * Return: 0, or -errno.
 */
static inline int tp4_stats(const struct tp4_socket *s,
			    struct tpacket_stats_v4 *st)
{
	socklen_t len = sizeof(*st);

	memset(st, 0, sizeof(*st));
	if (getsockopt(s->fd, SOL_PACKET, PACKET_STATISTICS, st, &len))
		return -errno;
	return 0;
}

/* --- busy polling -------------------------------------------------------- */

/**
 * tp4_busy_poll_start - let the program's own CPU run the device's queue
 * @s: socket
 * @usecs: how long poll() runs the queue before it sleeps
 * @budget: packets a turn; more than 64 needs CAP_NET_ADMIN
 *
 * From now on interrupts and softirqs keep off the queue as long as the
 * program runs it, by tp4_busy_poll(), tp4_kick() or tp4_wait(). A device may
 * want its napi_defer_hard_irqs and gro_flush_timeout set for that to hold
 * between two calls.
 *
 * Return: 0, or -errno.
 */
static inline int tp4_busy_poll_start(const struct tp4_socket *s, int usecs,
				      int budget)
{
	const int on = 1;

	if (setsockopt(s->fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &on,
		       sizeof(on)) ||
	    setsockopt(s->fd, SOL_SOCKET, SO_BUSY_POLL, &usecs,
		       sizeof(usecs)) ||
	    setsockopt(s->fd, SOL_SOCKET, SO_BUSY_POLL_BUDGET, &budget,
		       sizeof(budget)))
		return -errno;
	return 0;
}

/**
 * tp4_busy_poll - run the device's queue once (zero-copy mode)
 * @s: socket that tp4_busy_poll_start() was called for
 *
 * To be called when the Rx ring has nothing more.
 *
 * Return: 0, or -errno of the socket, such as -ENETDOWN.
 */
static inline int tp4_busy_poll(const struct tp4_socket *s)
{
	if (recv(s->fd, NULL, 0, MSG_DONTWAIT) < 0 && errno != EAGAIN &&
	    errno != EINTR)
		return -errno;
	return 0;
}

/* --- free frames --------------------------------------------------------- */

/**
 * tp4_pool_init - put frames on a stack
 * @p: pool
 * @mem: room for as many numbers as will ever be on it
 * @first: number of the first frame
 * @nr: frames; the one with the lowest number comes off first
 */
static inline void tp4_pool_init(struct tp4_pool *p, __u64 *mem,
				 __u64 first, unsigned int nr)
{
	unsigned int i;

	p->frames = mem;
	p->nr = nr;
	for (i = 0; i < nr; i++)
		mem[i] = first + nr - 1 - i;
}

/**
 * tp4_pool_get - take frames off the stack
 * @p: pool
 * @frames: where their numbers go
 * @n: how many
 *
 * Return: how many were taken: fewer than @n if the pool ran empty.
 */
static inline unsigned int tp4_pool_get(struct tp4_pool *p, __u64 *frames,
					unsigned int n)
{
	unsigned int i;

	if (n > p->nr)
		n = p->nr;
	for (i = 0; i < n; i++)
		frames[i] = p->frames[--p->nr];
	return n;
}

/**
 * tp4_pool_put - put the frames of slots that have come back on the stack
 * @p: pool
 * @r: ring; its slots are taken
 * @n: how many; at most what tp4_ring_peek() on @r returned
 */
static inline void tp4_pool_put(struct tp4_pool *p, struct tp4_ring *r,
				unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		p->frames[p->nr++] = tp4_ring_at(r, i)->idx;
	tp4_ring_take(r, n);
}

#ifdef __cplusplus
}
#endif

#endif /* __TPACKET4_H */
