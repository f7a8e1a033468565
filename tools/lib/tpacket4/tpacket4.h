/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * AF_PACKET V4 rings and packet buffers for user space.
 *
 * A header-only library in standard C11 and C++11. A program has this
 * structure:
 *
 *	tp4_area_create()	allocate memory for packets, divided into frames
 *	tp4_open()		create a socket with an Rx and a Tx ring
 *	tp4_ring_post()		post empty frames
 *	tp4_bind()		start to receive
 *	tp4_ring_peek()		count the slots that were returned
 *	tp4_ring_at()		access one of them
 *	tp4_ring_recycle()	post its frame again, or
 *	tp4_ring_forward()	send it
 *	tp4_kick()		let the kernel send, if tp4_need_kick()
 *	tp4_wait()		sleep until there is something to do
 *
 * Zero-copy mode, which tp4_zerocopy() enables, works in the same way.
 *
 * All names start with tp4_ or TP4_. <linux/if_packet.h> defines other names
 * with this prefix: TP4_DESC_*, TP4_PKT_*, TP4_RING_* and TP4_META*.
 *
 * A slot of a ring belongs to the kernel while TP4_DESC_KERNEL is set in it,
 * and to the program otherwise. For both rings, the program posts slots and
 * gets them back in ring order. A returned slot refers to a frame that belongs
 * to the program again: for Rx, the frame contains a packet or a part of one;
 * for Tx, it has been sent, or @error is set. The kernel may return a frame in
 * another slot than that in which it was posted.
 *
 * There is no locking: a ring may be used by one thread at a time. Two threads
 * may use the Rx and the Tx ring of a socket. Functions that move packets do
 * not allocate memory, and only the kicks, tp4_wait() and tp4_busy_poll() make
 * system calls.
 */
#ifndef __TPACKET4_H
#define __TPACKET4_H

/* The minor version changes with additions, the major one if programs break. */
#define TP4_VERSION_MAJOR	1
#define TP4_VERSION_MINOR	4

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <sys/epoll.h>
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

/* libtpacket4.so has the same functions, not inline, for other languages. */
#ifndef TP4_API
#define TP4_API		static inline
#endif

/*
 * With TP4_DEBUG defined, wrong use of a ring ends the program by assert(). All
 * files that use a ring must agree in this.
 */
#ifdef TP4_DEBUG
#include <assert.h>
#include <stdlib.h>
#define __tp4_assert(cond)	assert(cond)
#else
#define __tp4_assert(cond)	((void)sizeof(cond))
#endif

/*
 * Definitions that an older C library lacks, or hides. SPARC and PA-RISC have
 * other numbers.
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

/*
 * Functions that the C library hides with -std=c11, or in a program that asks
 * for POSIX alone. C++ compilers define _GNU_SOURCE.
 */
#if !defined(__cplusplus) && !defined(_DEFAULT_SOURCE)
long syscall(long number, ...);
#if defined(__GLIBC__) && !defined(__USE_POSIX199309) && \
	!defined(__USE_XOPEN_EXTENDED)
int ftruncate(int fd, __off_t length);
#endif
#endif

#ifndef SOL_PACKET
#define SOL_PACKET		263
#endif

/*
 * In zero-copy mode, number of free bytes before the data of a received packet
 * (XDP_PACKET_HEADROOM). If both ends share an area, leave as many before a
 * packet to send, so that the receiver can get the frame without a copy.
 */
#define TP4_ZC_HEADROOM		256

/* Number of descriptors in a cache line */
#ifndef TP4_LINE
#define TP4_LINE		4u
#endif

/* MFD_CLOEXEC and others, which some C libraries lack */
#define TP4_MFD_CLOEXEC		1u
#define TP4_MFD_ALLOW_SEALING	2u
#define TP4_MFD_HUGETLB		4u

/* Maximum number of sockets of tp4_wait_any(), and of tp4_open_queues() */
#define TP4_WAIT_MAX		64

/* Maximum number of pauses between two checks of an empty ring. */
#ifndef TP4_BACKOFF_MAX
#define TP4_BACKOFF_MAX		32
#endif

/**
 * enum tp4_where - where an error occurred, for tp4_strerror()
 * @TP4_IN_OPTIONS: in the options of tp4_open()
 * @TP4_IN_SOCKET: in socket(), by tp4_open()
 * @TP4_IN_VERSION: in PACKET_VERSION, by tp4_open()
 * @TP4_IN_MEMREG: in PACKET_MEMREG, by tp4_open() or tp4_area_register()
 * @TP4_IN_RING: in PACKET_RX_RING or PACKET_TX_RING, by tp4_open()
 * @TP4_IN_MMAP: in mmap() of the rings, by tp4_open()
 * @TP4_IN_AREA: in tp4_area_create() or tp4_area_attach()
 * @TP4_IN_BIND: in bind(), by tp4_bind()
 * @TP4_IN_ZEROCOPY: in PACKET_ZEROCOPY, by tp4_zerocopy() or tp4_bind()
 * @TP4_IN_KICK: in sendto(), by tp4_kick()
 * @TP4_IN_WAIT: in poll(), by tp4_wait(), or of the socket
 * @TP4_IN_RX: the error of an Rx descriptor, see tp4_ring_error()
 * @TP4_IN_TX: the error of a Tx descriptor
 * @TP4_IN_HEADROOM: in PACKET_MEMREG: the headroom is too large
 * @TP4_IN_RING_POWER: in PACKET_RX_RING or PACKET_TX_RING: the number of
 *                     descriptors is no power of two
 * @TP4_IN_RING_MIN: same: it is too small
 * @TP4_IN_RING_MAX: same: it is too large
 */
enum tp4_where {
	TP4_IN_OPTIONS,
	TP4_IN_SOCKET,
	TP4_IN_VERSION,
	TP4_IN_MEMREG,
	TP4_IN_RING,
	TP4_IN_MMAP,
	TP4_IN_AREA,
	TP4_IN_BIND,
	TP4_IN_ZEROCOPY,
	TP4_IN_KICK,
	TP4_IN_WAIT,
	TP4_IN_RX,
	TP4_IN_TX,
	TP4_IN_HEADROOM,
	TP4_IN_RING_POWER,
	TP4_IN_RING_MIN,
	TP4_IN_RING_MAX,
};

/**
 * struct tp4_area - memory for packets
 * @addr: address of the mapping, or NULL if there is none
 * @len: length in bytes, a multiple of the page size
 * @frame_size: bytes per frame, a power of two, 2048 to the page size; with
 *              @frame_unit, any multiple of 64, 128 to the page size
 * @nr_frames: number of frames; they are numbered from 0
 * @memfd: its file, which can be passed to another process; seal it with
 *         F_SEAL_SHRINK if that process is not trusted
 * @shared: not 0: other processes may use the area when it is registered, see
 *          tp4_area_register(). Set this after tp4_area_create()
 * @frame_unit: 0: frames lie side by side; else a power of two, 64 to the page
 *              size: a frame may start at each multiple of it, and frame numbers
 *              count units, see tp4_area_idx(). A frame must not cross the end
 *              of a page of the memory. Set this after tp4_area_create() or
 *              tp4_area_attach()
 */
struct tp4_area {
	__u8 *addr;
	size_t len;
	__u32 frame_size;
	__u32 nr_frames;
	int memfd;
	int shared;
	__u32 frame_unit;
};

/**
 * struct tp4_ring - the program's view of one ring
 * @q: the ring and the program's free-running indices: avail_idx is the next
 *     slot to post, last_used_idx the next one to be returned, num_free the
 *     number of slots that can be posted
 * @seen: number of slots from last_used_idx on that are known to have been
 *        returned, so that each slot, which can cost a cache miss, is read once
 * @held: number of slots from avail_idx on whose frames are to be posted again
 *        in place, see tp4_ring_recycle(); if not 0, no other slot is free
 */
struct tp4_ring {
	struct tpacket4_queue q;
	unsigned int seen;
	unsigned int held;
};

struct tp4_socket;

/**
 * struct tp4_backend - operations of rings that a program serves instead of
 * the kernel, for example the ports of a switch
 * @wait: see tp4_wait(), which calls it
 * @kick: see tp4_kick(), which calls it
 * @close: frees what belongs to the backend, called by tp4_close()
 */
struct tp4_backend {
	int (*wait)(struct tp4_socket *s, short events, int timeout);
	int (*kick)(const struct tp4_socket *s, int flags);
	void (*close)(struct tp4_socket *s);
};

/**
 * struct tp4_socket - a V4 socket and its rings
 * @fd: the packet socket, for socket options and poll()
 * @rx: receive ring
 * @tx: transmit ring
 * @status: status page of the kernel, see tp4_need_kick()
 * @map: mapping of both rings and @status, or NULL if the socket is not open
 * @map_len: length of @map in bytes
 * @backend: NULL for a packet socket
 * @protocol: what tp4_bind() receives, see struct tp4_options
 * @failed: the step in which tp4_open() has failed, for tp4_strerror(). Read it
 *          after the call: arguments of a function may be evaluated in any order
 *
 * A zeroed structure is a socket that is not open. It is also not open after
 * tp4_close(), and after tp4_open() has failed. With such a socket, functions
 * that make a system call return -%EBADF, and rings have no slots.
 */
struct tp4_socket {
	int fd;
	struct tp4_ring rx;
	struct tp4_ring tx;
	const struct tpacket4_status *status;
	void *map;
	size_t map_len;
	const struct tp4_backend *backend;
	__u16 protocol;
	enum tp4_where failed;
};

/**
 * struct tp4_options - options of tp4_open()
 * @rx_nr: number of descriptors of the Rx ring, a power of two that fills whole
 *         pages (at least 256 for 4K pages); 0: no Rx ring
 * @tx_nr: the same for the Tx ring
 * @area: the packet memory, which is registered with the socket unless @mr_fd
 *        is set
 * @headroom: number of bytes to reserve before the data of each received
 *            packet, rounded up to a multiple of 64
 * @mr_fd: a packet socket that has registered the area, for example the fd of
 *         another struct tp4_socket; 0: none. If another process has registered
 *         it, with shared set in the area. @area may then be NULL, but without
 *         it, TP4_DEBUG does not check the frames of this socket
 * @fd: a packet socket of protocol 0, created by the caller, for example
 *      because another process has the privilege, to set options before the
 *      rings, or for another type; 0: create one of type %SOCK_RAW
 * @meta: not 0: Rx and Tx packets have metadata, see tp4_meta(). @headroom is
 *        then at least 64; so must be the headroom of the area of @mr_fd
 * @to_stack: not 0: in zero-copy mode, the stack gets copies of received
 *            packets
 * @protocol: receive packets of one protocol only, %ETH_P_IP for example, in
 *            host byte order, in copy mode; 0: all of them, %ETH_P_ALL. Without
 *            an Rx ring, the socket receives nothing
 * @keep: not 0: in zero-copy mode, the ring does not get the last frames, so
 *        that the stack gets the packets that an XDP program passes to it even
 *        if this program is slow; implied by @to_stack
 * @packed: not 0: packets lie one behind the other in the area, which so holds
 *          more of them, in copy mode. Frame i need not exist, post frame number
 *          0 in each slot. Process the slots in order, and tp4_ring_recycle()
 *          them. The metadata is in front of the data, not where tp4_meta() looks
 * @size: for libtpacket4.so, which may be of another version: the size of this
 *        structure. 0: members behind this one are 0, whatever the memory has
 * @gso: not 0: in zero-copy mode, with @meta, packets of a stack may be longer than
 *       the MTU and lack checksums, as in copy mode. Ignored if the kernel cannot do
 *       this, or with @to_stack or @keep
 *
 * Members that are 0 have the default given here, so use designated
 * initializers in C, or assign to members of a zeroed object. File descriptor 0
 * cannot be used. At least one ring is needed, and @area or @mr_fd.
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
	__u16 protocol;
	int keep;
	int packed;
	__u32 size;
	int gso;
};

/**
 * struct tp4_pool - a stack of free frame numbers
 * @frames: the numbers, in memory of the caller
 * @nr: how many are on the stack
 */
struct tp4_pool {
	__u64 *frames;
	unsigned int nr;
};

/**
 * struct tp4_backoff - state of tp4_backoff(), initially zeroed
 * @pauses: number of pauses of the next tp4_backoff() minus one
 */
struct tp4_backoff {
	unsigned int pauses;
};

/* --- one descriptor ------------------------------------------------------ */

/*
 * len, offset, error and flags are the second eight bytes of a descriptor. One
 * store writes all of them and passes the slot to the kernel.
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

static inline tp4_word *__tp4_word(const struct tpacket4_desc *d)
{
	return (tp4_word *)(uintptr_t)&d->len;
}
#endif /* 64 bit */

/* Write all fields but the frame number, and pass the slot to the kernel. */
static inline void __tp4_desc_publish(struct tpacket4_desc *d, __u32 len,
				      __u16 offset, __u8 flags)
{
	flags |= TP4_DESC_KERNEL;
#if UINTPTR_MAX > 0xffffffffu
	__atomic_store_n(__tp4_word(d), TP4_WORD(len, offset, flags),
			 __ATOMIC_RELEASE);
#else
	d->len = len;
	d->offset = offset;
	d->error = 0;
	__atomic_store_n(&d->flags, flags, __ATOMIC_RELEASE);
#endif
}

/**
 * tp4_desc_give - fill a descriptor and pass it to the kernel
 * @d: a slot of a ring that belongs to the program
 * @idx: frame number
 * @len: bytes of the packet in the frame; 0 for an empty frame
 * @offset: offset of the packet in the frame; 0 for an empty frame
 * @flags: TP4_PKT_CONT if the packet continues in the next slot, TP4_META if
 *         the frame starts with metadata, or 0
 */
TP4_API void tp4_desc_give(struct tpacket4_desc *d, __u64 idx,
			   __u32 len, __u16 offset, __u8 flags)
{
	d->idx = idx;
	__tp4_desc_publish(d, len, offset, flags);
}

/**
 * tp4_desc_move - pass the frame of one descriptor to the kernel in another
 * @to: a slot that belongs to the program, of the same ring or another one
 * @from: the descriptor of the frame; may be @to
 *
 * Copies length, offset, TP4_PKT_CONT and TP4_META, but not the error.
 */
TP4_API void tp4_desc_move(struct tpacket4_desc *to,
			   const struct tpacket4_desc *from)
{
#if UINTPTR_MAX > 0xffffffffu
	__u64 word = *__tp4_word(from);

	to->idx = from->idx;
	word &= ~TP4_WORD_ERROR;
	__atomic_store_n(__tp4_word(to), word | TP4_WORD_KERNEL,
			 __ATOMIC_RELEASE);
#else
	tp4_desc_give(to, from->idx, from->len, from->offset, from->flags);
#endif
}

/**
 * tp4_desc_ready - check whether a slot has been returned
 * @d: the slot
 *
 * Return: true if the slot belongs to the program, which can then read the slot
 * and its frame.
 */
TP4_API int tp4_desc_ready(const struct tpacket4_desc *d)
{
#if UINTPTR_MAX > 0xffffffffu
	return !(__atomic_load_n(__tp4_word(d), __ATOMIC_ACQUIRE) &
		 TP4_WORD_KERNEL);
#else
	return !(__atomic_load_n(&d->flags, __ATOMIC_ACQUIRE) &
		 TP4_DESC_KERNEL);
#endif
}

/* --- one ring ------------------------------------------------------------ */

/**
 * tp4_ring_init - initialize a ring whose slots all belong to the program
 * @r: ring
 * @desc: the descriptors
 * @nr: their number, a power of two
 */
TP4_API void tp4_ring_init(struct tp4_ring *r,
			   struct tpacket4_desc *desc, unsigned int nr)
{
	memset(r, 0, sizeof(*r));
	r->q.ring = desc;
	r->q.num_free = nr;
	r->q.ring_mask = nr - 1;
}

/**
 * tp4_ring_free - count the slots that can be posted
 * @r: ring
 *
 * Return: the number of slots.
 */
TP4_API unsigned int tp4_ring_free(const struct tp4_ring *r)
{
	return r->q.num_free - r->held;
}

/**
 * tp4_ring_pending - count the slots that were posted and not taken
 * @r: ring
 *
 * Return: the number of slots, including those that tp4_ring_peek() has seen.
 */
TP4_API unsigned int tp4_ring_pending(const struct tp4_ring *r)
{
	return r->q.avail_idx - r->q.last_used_idx;
}

/**
 * tp4_ring_at - get a slot that was returned
 * @r: ring
 * @i: its position, below the return value of the last tp4_ring_peek()
 *
 * Return: the descriptor, which is valid until it is taken, recycled or
 * forwarded.
 */
TP4_API struct tpacket4_desc *tp4_ring_at(const struct tp4_ring *r,
					  unsigned int i)
{
	return &r->q.ring[(r->q.last_used_idx + i) & r->q.ring_mask];
}

/**
 * tp4_ring_contiguous - count the slots that lie side by side
 * @r: ring
 * @i: position of the first one, as for tp4_ring_at()
 * @n: maximum number of slots, at least 1
 *
 * For loops that go from one descriptor to the next without a call of
 * tp4_ring_at() for each.
 *
 * Return: the number of slots up to the end of the ring's memory, 1 to @n.
 */
TP4_API unsigned int tp4_ring_contiguous(const struct tp4_ring *r,
					 unsigned int i, unsigned int n)
{
	unsigned int pos = (r->q.last_used_idx + i) & r->q.ring_mask;
	unsigned int m = r->q.ring_mask + 1 - pos;

	return m < n ? m : n;
}

/* Limit n so that the n slots before pos do not wrap around. */
static inline unsigned int __tp4_ring_back(const struct tp4_ring *r,
					   unsigned int pos, unsigned int n)
{
	unsigned int m = ((pos - 1) & r->q.ring_mask) + 1;

	return m < n ? m : n;
}

/* Bytes between two positions that a frame may start at. */
static inline __u32 __tp4_unit(const struct tp4_area *a)
{
	return a->frame_unit ? a->frame_unit : a->frame_size;
}

/* Does the frame end in the area? */
static inline int __tp4_is_frame(const struct tp4_area *a, __u64 idx)
{
	return idx <= (a->len - a->frame_size) / __tp4_unit(a) &&
	       (a->frame_unit || idx < a->nr_frames);
}

#ifdef TP4_DEBUG
/*
 * What TP4_DEBUG knows of memory: the area of a ring, by the address of its
 * descriptors, and of an area, by its address, a byte per 64 bytes, not 0 at the
 * start of a frame that is posted on a ring of this process. It is not in the
 * structures, which so are the same in all files. Entries are never freed.
 */
struct __tp4_debug {
	const void *key;
	const void *value;
	struct __tp4_debug *next;
};

#pragma weak __tp4_known
struct __tp4_debug *__tp4_known;

static inline struct __tp4_debug *__tp4_debug_find(const void *key)
{
	struct __tp4_debug *e = __atomic_load_n(&__tp4_known, __ATOMIC_ACQUIRE);

	while (e && e->key != key)
		e = e->next;
	return e;
}

static inline const void *__tp4_debug_get(const void *key)
{
	struct __tp4_debug *e = __tp4_debug_find(key);

	return e ? __atomic_load_n(&e->value, __ATOMIC_RELAXED) : NULL;
}

static inline void __tp4_debug_set(const void *key, const void *value)
{
	struct __tp4_debug *e = __tp4_debug_find(key);

	if (!e && value) {
		e = (struct __tp4_debug *)calloc(1, sizeof(*e));
		assert(e);
		e->key = key;
		e->value = value;
		e->next = __atomic_load_n(&__tp4_known, __ATOMIC_RELAXED);
		while (!__atomic_compare_exchange_n(&__tp4_known, &e->next, e,
						    0, __ATOMIC_RELEASE,
						    __ATOMIC_RELAXED))
			;
	} else if (e) {
		__atomic_store_n(&e->value, value, __ATOMIC_RELAXED);
	}
}

/* The byte of a frame, or NULL if it is not known; *is_frame: it exists. */
static inline __u8 *__tp4_debug_byte(const struct tp4_ring *r, __u64 idx,
				     int *is_frame)
{
	const struct tp4_area *a;
	__u8 *posted = NULL;

	a = (const struct tp4_area *)__tp4_debug_get(r->q.ring);
	if (a)
		posted = (__u8 *)(uintptr_t)__tp4_debug_get(a->addr);
	*is_frame = posted && __tp4_is_frame(a, idx);
	return *is_frame ? posted + idx * __tp4_unit(a) / 64 : posted;
}
#endif

/* With TP4_DEBUG: the frame exists, and the kernel does not have it. */
static inline void __tp4_debug_post(const struct tp4_ring *r, __u64 idx)
{
#ifdef TP4_DEBUG
	int is_frame;
	__u8 *posted = __tp4_debug_byte(r, idx, &is_frame);

	if (!posted)
		return;
	__tp4_assert(is_frame);
	__tp4_assert(!*posted);
	*posted = 1;
#else
	(void)r;
	(void)idx;
#endif
}

static inline void __tp4_debug_return(const struct tp4_ring *r, __u64 idx)
{
#ifdef TP4_DEBUG
	int is_frame;
	__u8 *posted = __tp4_debug_byte(r, idx, &is_frame);

	if (is_frame)
		*posted = 0;
#else
	(void)r;
	(void)idx;
#endif
}

/* Count n slots as posted. */
static inline void __tp4_ring_gave(struct tp4_ring *r, unsigned int n)
{
	r->q.avail_idx += n;
	r->q.num_free -= n;
}

/* Count n slots as taken. */
static inline void __tp4_ring_took(struct tp4_ring *r, unsigned int n)
{
	__tp4_assert(n <= r->seen);
	r->q.last_used_idx += n;
	r->q.num_free += n;
	r->seen -= n;
}

/*
 * Post n slots from pos on, last to first: when the kernel sees the first one,
 * it can read all of them, and each cache line of four descriptors is
 * transferred once instead of once per descriptor. Each has its frame already.
 */
static inline void __tp4_ring_publish(struct tp4_ring *r, unsigned int pos,
				      unsigned int n, __u32 len, __u16 offset)
{
	struct tpacket4_desc *d, *first;
	unsigned int m;

	for (; n; n -= m) {
		m = __tp4_ring_back(r, pos + n, n);
		first = &r->q.ring[(pos + n - m) & r->q.ring_mask];
		for (d = first + m; d != first; ) {
			__tp4_debug_post(r, (--d)->idx);
			__tp4_desc_publish(d, len, offset, 0);
		}
	}
}

/*
 * Same, with the frames of n slots of another ring, or of the same one, from
 * from_pos on: with keep, the packets in them, else len bytes at offset.
 */
static inline void __tp4_ring_move(struct tp4_ring *to, unsigned int to_pos,
				   const struct tp4_ring *from,
				   unsigned int from_pos, unsigned int n,
				   int keep, __u32 len, __u16 offset)
{
	const struct tpacket4_desc *f;
	struct tpacket4_desc *t, *first;
	unsigned int m;

	for (; n; n -= m) {
		m = __tp4_ring_back(to, to_pos + n, n);
		m = __tp4_ring_back(from, from_pos + n, m);
		first = &to->q.ring[(to_pos + n - m) & to->q.ring_mask];
		f = &from->q.ring[(from_pos + n - m) & from->q.ring_mask] + m;
		for (t = first + m; t != first; ) {
			__tp4_debug_post(to, (--f)->idx);
			if (keep)
				tp4_desc_move(--t, f);
			else
				tp4_desc_give(--t, f->idx, len, offset, 0);
		}
	}
}

/* Same, with these frames. */
static inline void __tp4_ring_put(struct tp4_ring *r, const __u64 *frames,
				  unsigned int n)
{
	struct tpacket4_desc *d, *first;
	const __u64 *frame = frames + n;
	unsigned int m;

	for (; n; n -= m) {
		m = __tp4_ring_back(r, r->q.avail_idx + n, n);
		first = &r->q.ring[(r->q.avail_idx + n - m) & r->q.ring_mask];
		for (d = first + m; d != first; ) {
			__tp4_debug_post(r, *--frame);
			tp4_desc_give(--d, *frame, 0, 0, 0);
		}
	}
}

/* Post n of the frames that are held back, each in its own slot. */
static inline void __tp4_ring_relend(struct tp4_ring *r, unsigned int n)
{
	__tp4_ring_publish(r, r->q.avail_idx, n, 0, 0);
	__tp4_ring_gave(r, n);
	r->held -= n;
}

/**
 * tp4_ring_flush - post frames that tp4_ring_recycle() has held back
 * @r: ring
 */
TP4_API void tp4_ring_flush(struct tp4_ring *r)
{
	if (r->held)
		__tp4_ring_relend(r, r->held);
}

/**
 * tp4_ring_prepare_poll - end readability at the slots that were taken (Rx)
 * @r: ring
 *
 * Call this before poll(), select() or epoll_wait(); tp4_wait() does so. Also
 * posts the frames that tp4_ring_recycle() has held back. The socket is then
 * readable if a slot has been returned that was not taken, recycled or
 * forwarded, however many frames the program keeps or sends.
 */
TP4_API void tp4_ring_prepare_poll(struct tp4_ring *r)
{
	struct tpacket4_desc *last;

	tp4_ring_flush(r);
	/* Else the slot taken last is posted, or there is no ring. */
	if (r->q.num_free) {
		last = &r->q.ring[(r->q.last_used_idx - 1) & r->q.ring_mask];
		__atomic_store_n(&last->flags, TP4_DESC_SEEN, __ATOMIC_RELAXED);
	}
}

/**
 * tp4_ring_peek - check for slots that were returned
 * @r: ring
 * @max: maximum number of slots
 *
 * For Rx, these are received packets; for Tx, frames that were sent or refused
 * with an error. Read the slots with tp4_ring_at(), then call tp4_ring_take(),
 * tp4_ring_recycle() or tp4_ring_forward().
 *
 * Return: the number of slots returned, 0 to @max.
 */
TP4_API unsigned int tp4_ring_peek(struct tp4_ring *r, unsigned int max)
{
	unsigned int pending = tp4_ring_pending(r);
	const struct tpacket4_desc *d, *end;
	unsigned int m, n = r->seen;

	if (max > pending)
		max = pending;
	while (n < max) {
		d = tp4_ring_at(r, n);
		m = tp4_ring_contiguous(r, n, max - n);
		for (end = d + m; d != end && tp4_desc_ready(d); d++)
			__tp4_debug_return(r, d->idx);
		n += m - (unsigned int)(end - d);
		if (d != end)
			break;
	}
	r->seen = n;
	return n < max ? n : max;
}

/**
 * tp4_ring_error - check whether a slot was returned with an error
 * @r: ring
 * @n: number of slots to check, at most what tp4_ring_peek() returned
 *
 * For Rx, such a slot contains no packet. The error is %EINVAL if the posted
 * frame does not exist, and %ECANCELED or %ENETDOWN at the end of zero-copy
 * mode. For Tx, the packet was not sent; its frame is free.
 *
 * Return: 0, or -errno of the first slot with an error.
 */
TP4_API int tp4_ring_error(const struct tp4_ring *r, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (tp4_ring_at(r, i)->error)
			return -tp4_ring_at(r, i)->error;
	return 0;
}

/**
 * tp4_ring_take - take returned slots
 * @r: ring
 * @n: number of slots, at most what tp4_ring_peek() returned
 *
 * The program can keep their frames, send them, or post them again later.
 */
TP4_API void tp4_ring_take(struct tp4_ring *r, unsigned int n)
{
	tp4_ring_flush(r);
	__tp4_ring_took(r, n);
}

/* The functions below post a batch from its last slot to its first. */

/**
 * tp4_ring_post - post empty frames (Rx)
 * @r: ring
 * @frames: the frame numbers
 * @n: how many
 *
 * Return: the number of frames posted, less than @n if the ring is full.
 */
TP4_API unsigned int tp4_ring_post(struct tp4_ring *r,
				   const __u64 *frames,
				   unsigned int n)
{
	tp4_ring_flush(r);
	if (n > r->q.num_free)
		n = r->q.num_free;
	__tp4_ring_put(r, frames, n);
	__tp4_ring_gave(r, n);
	return n;
}

/**
 * tp4_ring_fill - post frames with consecutive numbers (Rx)
 * @r: ring
 * @first: the first frame number
 * @n: how many
 *
 * Return: the number of frames posted, less than @n if the ring is full.
 */
TP4_API unsigned int tp4_ring_fill(struct tp4_ring *r, __u64 first,
				   unsigned int n)
{
	unsigned int i, mask = r->q.ring_mask;

	tp4_ring_flush(r);
	if (n > r->q.num_free)
		n = r->q.num_free;
	for (i = n; i--; ) {
		__tp4_debug_post(r, first + i);
		tp4_desc_give(&r->q.ring[(r->q.avail_idx + i) & mask],
			      first + i, 0, 0, 0);
	}
	__tp4_ring_gave(r, n);
	return n;
}

/**
 * tp4_ring_exchange - post other frames in the slots that were returned (Rx)
 * @r: ring
 * @frames: the frame numbers, one per slot
 * @n: number of slots, at most what tp4_ring_peek() returned
 *
 * For programs that keep what they receive: the frames in the slots belong to
 * the program, as after tp4_ring_take(), and the ring has as many as before. The
 * descriptors must have been read.
 */
TP4_API void tp4_ring_exchange(struct tp4_ring *r, const __u64 *frames,
			       unsigned int n)
{
	tp4_ring_flush(r);
	__tp4_ring_took(r, n);
	__tp4_ring_put(r, frames, n);
	__tp4_ring_gave(r, n);
}

/**
 * tp4_ring_send - post packets to send (Tx)
 * @r: ring
 * @d: the descriptors, whose error is ignored. A packet of several frames takes
 *     several, all but the last with TP4_PKT_CONT in flags
 * @n: number of descriptors
 *
 * The kernel sends them at the next tp4_kick().
 *
 * Return: the number of descriptors posted: @n, or 0 if there is no room.
 */
TP4_API unsigned int tp4_ring_send(struct tp4_ring *r,
				   const struct tpacket4_desc *d,
				   unsigned int n)
{
	const struct tpacket4_desc *from = d + n;
	struct tpacket4_desc *to, *first;
	unsigned int m, left;

	if (n > r->q.num_free)
		return 0;
	for (left = n; left; left -= m) {
		m = __tp4_ring_back(r, r->q.avail_idx + left, left);
		first = &r->q.ring[(r->q.avail_idx + left - m) &
				   r->q.ring_mask];
		for (to = first + m; to != first; ) {
			__tp4_debug_post(r, (--from)->idx);
			tp4_desc_move(--to, from);
		}
	}
	__tp4_ring_gave(r, n);
	return n;
}

/**
 * tp4_ring_recycle - post received frames again (Rx)
 * @r: ring
 * @n: number of slots, at most what tp4_ring_peek() returned
 *
 * The packets in them are lost. Up to three slots are held back until all slots
 * of their cache line can be posted, as writing to a line that the kernel is
 * still filling takes it away from the kernel's CPU.
 */
TP4_API void tp4_ring_recycle(struct tp4_ring *r, unsigned int n)
{
	unsigned int whole;

	/* Slots were taken before, so the frames move up. */
	while (n && r->q.num_free != r->held) {
		/* as many as overwrite nothing that is still to be read */
		unsigned int m = r->q.num_free < n ? r->q.num_free : n;

		__tp4_ring_move(r, r->q.avail_idx, r, r->q.last_used_idx, m,
				0, 0, 0);
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
 * tp4_ring_forward - send received packets without copying (Rx to Tx)
 * @rx: receive ring
 * @tx: transmit ring, of a socket with the same area
 * @n: number of slots, at most what tp4_ring_peek() on @rx returned
 *
 * Takes the slots of @rx. tp4_ring_refill() posts their frames again when they
 * have been sent. No descriptor may have an error, see tp4_ring_error().
 * Packets that do not fit on @tx stay on @rx and are returned by
 * tp4_ring_peek() again; a program that modifies packets should check
 * tp4_ring_free() of @tx first. Metadata is kept, for checksums and
 * segmentation; if @rx has metadata, @tx must have it, too.
 *
 * Return: the number of slots posted on @tx, less than @n if it is full.
 */
TP4_API unsigned int tp4_ring_forward(struct tp4_ring *rx,
				      struct tp4_ring *tx,
				      unsigned int n)
{
	if (n > tx->q.num_free)
		n = tx->q.num_free;
	__tp4_ring_move(tx, tx->q.avail_idx, rx, rx->q.last_used_idx, n, 1, 0,
			0);
	tp4_ring_take(rx, n);
	__tp4_ring_gave(tx, n);
	return n;
}

/**
 * tp4_ring_refill - post frames that were sent as empty frames (Tx to Rx)
 * @tx: transmit ring
 * @rx: receive ring, of a socket with the same area
 * @n: number of slots, at most what tp4_ring_peek() on @tx returned
 *
 * Return: the number of frames posted, less than @n if @rx is full.
 */
TP4_API unsigned int tp4_ring_refill(struct tp4_ring *tx,
				     struct tp4_ring *rx,
				     unsigned int n)
{
	tp4_ring_flush(rx);
	if (n > rx->q.num_free)
		n = rx->q.num_free;
	__tp4_ring_move(rx, rx->q.avail_idx, tx, tx->q.last_used_idx, n, 0, 0,
			0);
	tp4_ring_take(tx, n);
	__tp4_ring_gave(rx, n);
	return n;
}

/**
 * tp4_ring_resend - send frames again (Tx)
 * @r: ring
 * @n: number of slots, at most what tp4_ring_peek() returned
 * @len: bytes of the packet in each frame
 * @offset: offset of the packet in each frame
 *
 * Each frame is one packet, with its old content or what the program has
 * written to it. Takes the slots. If the ring is full, which is the fastest
 * case, each frame is posted in the slot in which it was returned, and only
 * half of the slot is written.
 */
TP4_API void tp4_ring_resend(struct tp4_ring *r, unsigned int n,
			     __u32 len, __u16 offset)
{
	unsigned int m;

	while (n && r->q.num_free) {
		/* as many as overwrite nothing that is still to be read */
		m = r->q.num_free < n ? r->q.num_free : n;
		__tp4_ring_move(r, r->q.avail_idx, r, r->q.last_used_idx, m,
				0, len, offset);
		__tp4_ring_took(r, m);
		__tp4_ring_gave(r, m);
		n -= m;
	}

	/* Else every frame goes back into its own slot. */
	__tp4_ring_publish(r, r->q.avail_idx, n, len, offset);
	__tp4_ring_took(r, n);
	__tp4_ring_gave(r, n);
}

/* --- waiting ------------------------------------------------------------- */

/* For system calls. In a structure that is zeroed or closed there is no fd. */
static inline int __tp4_fd(const struct tp4_socket *s)
{
	return s->fd > 0 ? s->fd : -1;
}

/**
 * tp4_cpu_relax - pause in a loop that waits for another CPU
 */
TP4_API void tp4_cpu_relax(void)
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
 * tp4_backoff - wait, and twice as long the next time
 * @b: state; zero it when there was something to do
 *
 * A CPU that polls a cache line takes it away from the CPU that writes to it.
 * It should poll less often while there is nothing to do, so as not to slow
 * down the other CPU.
 *
 * Return: true when the wait has reached its maximum length, and the program
 * should sleep in poll().
 */
TP4_API int tp4_backoff(struct tp4_backoff *b)
{
	unsigned int i;

	for (i = 0; i <= b->pauses; i++)
		tp4_cpu_relax();
	if (b->pauses >= TP4_BACKOFF_MAX - 1)
		return 1;
	b->pauses = 2 * b->pauses + 1;
	return 0;
}

/* The kernel forgets the device that a socket is bound to when it is removed. */
static inline int __tp4_is_gone(int fd)
{
	struct sockaddr_ll addr;
	socklen_t len = sizeof(addr);

	memset(&addr, 0, sizeof(addr));
	return !getsockname(fd, (struct sockaddr *)(void *)&addr, &len) &&
	       addr.sll_ifindex < 0;
}

/* The events of a socket, or its error */
static inline int __tp4_polled(const struct pollfd *pfd)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (pfd->revents & POLLNVAL)
		return -EBADF;
	if ((pfd->revents & POLLERR) &&
	    getsockopt(pfd->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	if (err == ENETDOWN && __tp4_is_gone(pfd->fd))
		return -ENODEV;
	return err ? -err : pfd->revents;
}

/**
 * tp4_wait - sleep until a ring of a socket needs attention
 * @s: socket
 * @events: POLLIN and/or POLLOUT
 * @timeout: milliseconds; -1 for no limit
 *
 * POLLIN is set while there is an Rx slot that was returned and not taken,
 * recycled or forwarded. In zero-copy mode this also kicks both rings. With
 * POLLIN, it belongs to the thread that uses the Rx ring.
 *
 * A socket error is returned once: after %ENETDOWN, the next call sleeps until
 * the device is up again and receives, or returns -%ENODEV when the device has
 * been removed. Of two threads, either may get it.
 *
 * Return: the events; 0 after the timeout or on a signal; or -errno: %ENETDOWN
 * if the device went down, %ENODEV if it was removed or moved to another network
 * namespace, %EBADF if @s is not open.
 */
TP4_API int tp4_wait(struct tp4_socket *s, short events, int timeout)
{
	struct pollfd pfd = { __tp4_fd(s), events, 0 };

	if (s->backend)
		return s->backend->wait(s, events, timeout);
	/* poll() ignores a negative fd, and sleeps. */
	if (pfd.fd < 0)
		return -EBADF;
	/* The Rx ring may be another thread's. */
	if (events & POLLIN)
		tp4_ring_prepare_poll(&s->rx);
	if (poll(&pfd, 1, timeout) < 0)
		return errno == EINTR ? 0 : -errno;
	return __tp4_polled(&pfd);
}

/**
 * tp4_wait_any - sleep until a ring of one of several sockets needs attention
 * @s: the packet sockets, not those of a backend
 * @nr: how many, at most %TP4_WAIT_MAX
 * @events: POLLIN and/or POLLOUT
 * @timeout: milliseconds; -1 for no limit
 * @ready: set to what tp4_wait() would return for each socket
 *
 * Otherwise the same as tp4_wait().
 *
 * Return: the number of sockets whose @ready is not 0; 0 after the timeout or on
 * a signal; or -errno: %EINVAL if there are too many or one has a backend, %EBADF
 * if one is not open.
 */
TP4_API int tp4_wait_any(struct tp4_socket *const *s, unsigned int nr,
			 short events, int timeout, int *ready)
{
	struct pollfd pfd[TP4_WAIT_MAX];
	unsigned int i;
	int n;

	if (nr > TP4_WAIT_MAX)
		return -EINVAL;
	for (i = 0; i < nr; i++) {
		pfd[i].fd = __tp4_fd(s[i]);
		pfd[i].events = events;
		pfd[i].revents = 0;
		ready[i] = 0;
		if (s[i]->backend)
			return -EINVAL;
		if (pfd[i].fd < 0)
			return -EBADF;
	}
	for (i = 0; i < nr && (events & POLLIN); i++)
		tp4_ring_prepare_poll(&s[i]->rx);
	n = poll(pfd, nr, timeout);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (i = 0; n && i < nr; i++)
		ready[i] = __tp4_polled(&pfd[i]);
	return n;
}

/* --- packet memory ------------------------------------------------------- */

/* Map all of a->memfd. */
static inline int __tp4_area_map(struct tp4_area *a)
{
	struct stat st;
	void *addr;

	if (fstat(a->memfd, &st))
		return -errno;
	a->len = (size_t)st.st_size;
	if (a->len < (__u64)a->nr_frames * a->frame_size)
		return -EINVAL;
	addr = mmap(NULL, a->len, PROT_READ | PROT_WRITE, MAP_SHARED, a->memfd,
		    0);
	if (addr == MAP_FAILED)
		return -errno;
#ifdef TP4_DEBUG
	{
		void *posted = calloc(a->len / 64, 1);

		assert(posted);
		__tp4_debug_set(addr, posted);
	}
#endif
	a->addr = (__u8 *)addr;
	return 0;
}

/* Same as tp4_area_create(), with flags of memfd_create(). */
static inline int __tp4_area_create(struct tp4_area *a, __u32 nr_frames,
				    __u32 frame_size, unsigned int flags)
{
	__u64 len = (__u64)nr_frames * frame_size;
	struct stat st;
	int err = 0;

	memset(a, 0, sizeof(*a));
	a->frame_size = frame_size;
	a->nr_frames = nr_frames;
	a->memfd = -1;
	if (!nr_frames || frame_size < 128)
		return -ERANGE;
	a->memfd = (int)syscall(SYS_memfd_create, "tpacket4", flags);
	if (a->memfd < 0)
		return -errno;
	/* The block size of a memfd is its page size. */
	if (fstat(a->memfd, &st))
		err = -errno;
	else
		len += -len & ((__u64)st.st_blksize - 1);
	if (!err && len > SIZE_MAX / 2)
		err = -ENOMEM;
	if (!err && ftruncate(a->memfd, (long)len))
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
 * tp4_area_create - allocate memory for packets
 * @a: area
 * @nr_frames: number of frames
 * @frame_size: bytes per frame, a power of two, 2048 to the page size; or any
 *              multiple of 64 if @a->frame_unit is set afterwards
 *
 * The memory is a memfd, so that another process can map it, see
 * tp4_area_attach().
 *
 * Return: 0, or -errno: ERANGE if there is no frame, or if they are too short.
 */
TP4_API int tp4_area_create(struct tp4_area *a, __u32 nr_frames,
			    __u32 frame_size)
{
	return __tp4_area_create(a, nr_frames, frame_size,
				 TP4_MFD_CLOEXEC | TP4_MFD_ALLOW_SEALING);
}

/**
 * tp4_area_create_huge - allocate memory for packets in huge pages, if possible
 * @a: area
 * @nr_frames: number of frames
 * @frame_size: as for tp4_area_create(); the page size is that of normal pages
 *
 * Huge pages cause fewer TLB misses. They have the default size, and the
 * administrator must have reserved enough of them (/proc/sys/vm/nr_hugepages).
 * If there are too few, normal pages are used, as by tp4_area_create(). @a->len
 * is a multiple of the page size used. With @a->frame_unit, frames can have any
 * size in huge pages, as they may cross normal ones.
 *
 * Return: 0, or -errno.
 */
TP4_API int tp4_area_create_huge(struct tp4_area *a, __u32 nr_frames,
				 __u32 frame_size)
{
	if (!__tp4_area_create(a, nr_frames, frame_size,
			       TP4_MFD_CLOEXEC | TP4_MFD_HUGETLB))
		return 0;
	return tp4_area_create(a, nr_frames, frame_size);
}

/**
 * tp4_area_attach - map the area of another process
 * @a: area; the caller sets memfd, frame_size and nr_frames, which it got from
 *     the other process (the fd by SCM_RIGHTS or fork())
 *
 * Return: 0, or -errno; EINVAL if the file is too short for the frames.
 */
TP4_API int tp4_area_attach(struct tp4_area *a)
{
	a->addr = NULL;
	a->shared = 0;
	a->frame_unit = 0;
	return __tp4_area_map(a);
}

/**
 * tp4_area_destroy - unmap an area and close its file
 * @a: area; nothing is done if it was not created or is already destroyed
 *
 * The kernel keeps the memory until the last ring that uses it is gone.
 */
TP4_API void tp4_area_destroy(struct tp4_area *a)
{
	if (!a->addr)
		return;
#ifdef TP4_DEBUG
	free((void *)(uintptr_t)__tp4_debug_get(a->addr));
	__tp4_debug_set(a->addr, NULL);
#endif
	munmap(a->addr, a->len);
	close(a->memfd);
	a->addr = NULL;
	a->memfd = -1;
}

/**
 * tp4_area_register - register an area with a packet socket (PACKET_MEMREG)
 * @a: area
 * @fd: any packet socket; rings refer to the area by it
 * @headroom: number of bytes to reserve before the data of each received packet
 *
 * A ring of this process may refer to the area by @fd. Rings of another process
 * that was passed @fd may do so only if @a->shared is set, since that process
 * can then read and write all of the area.
 *
 * Return: 0, or -errno: EBUSY if @fd has an area, ENOBUFS if RLIMIT_MEMLOCK is
 * exceeded.
 */
TP4_API int tp4_area_register(const struct tp4_area *a, int fd,
			      __u32 headroom)
{
	struct tpacket_memreg_req req;

	memset(&req, 0, sizeof(req));
	req.addr = (uintptr_t)a->addr;
	req.len = a->len;
	req.frame_size = a->frame_size;
	req.data_headroom = headroom;
	req.frame_unit = a->frame_unit;
	req.flags = a->shared ? TP4_MEMREG_SHARED : 0;
	if (setsockopt(fd, SOL_PACKET, PACKET_MEMREG, &req, sizeof(req)))
		return -errno;
	return 0;
}

/**
 * tp4_frame - get the address of a frame
 * @a: area
 * @idx: its number, which is not checked
 *
 * Return: the start of the frame.
 */
TP4_API __u8 *tp4_frame(const struct tp4_area *a, __u64 idx)
{
	return a->addr + (size_t)idx * __tp4_unit(a);
}

/**
 * tp4_area_idx - get the number of the frame at an address
 * @a: area
 * @addr: the address of the frame's start in the area; with a frame unit, a
 *        multiple of it from the area's start
 *
 * The inverse of tp4_frame().
 *
 * Return: the frame number.
 */
TP4_API __u64 tp4_area_idx(const struct tp4_area *a, const void *addr)
{
	return (size_t)((const __u8 *)addr - a->addr) / __tp4_unit(a);
}

/**
 * tp4_data - get the packet data of a descriptor
 * @a: area
 * @d: descriptor
 *
 * Return: the start of the data, which has @d->len bytes.
 */
TP4_API __u8 *tp4_data(const struct tp4_area *a,
		       const struct tpacket4_desc *d)
{
	return tp4_frame(a, d->idx) + d->offset;
}

/**
 * tp4_meta - get the metadata of a packet
 * @a: area
 * @d: its first descriptor
 *
 * See <linux/if_packet.h> for the members. For Rx, it is valid until the frame
 * is posted again.
 *
 * Not for packed rings, whose metadata is in front of the data.
 *
 * Return: the metadata, or NULL if the packet has none.
 */
TP4_API struct tpacket4_meta *tp4_meta(const struct tp4_area *a,
				       const struct tpacket4_desc *d)
{
	if (!(d->flags & TP4_META))
		return NULL;
	return (struct tpacket4_meta *)(void *)tp4_frame(a, d->idx);
}

/**
 * tp4_meta_new - add metadata to a packet to send
 * @a: area
 * @d: its first descriptor, not posted yet, with an offset of at least 64
 *
 * Return: the metadata, without any request.
 */
TP4_API struct tpacket4_meta *tp4_meta_new(const struct tp4_area *a,
					   struct tpacket4_desc *d)
{
	d->flags |= TP4_META;
	return (struct tpacket4_meta *)memset(tp4_frame(a, d->idx), 0,
					      sizeof(struct tpacket4_meta));
}

/**
 * tp4_meta_csum - request a checksum
 * @m: metadata of a packet to send
 * @start: offset in the data of the first byte that is covered
 * @offset: offset of the checksum from @start, where that of the pseudo header
 *          is
 */
TP4_API void tp4_meta_csum(struct tpacket4_meta *m, __u16 start,
			   __u16 offset)
{
	m->csum_start = start;
	m->csum_offset = offset;
	m->flags |= TP4_META_CSUM;
}

/**
 * tp4_meta_gso - request segmentation
 * @m: metadata of a packet to send
 * @type: %VIRTIO_NET_HDR_GSO_TCPV4, _TCPV6 or _UDP_L4, of <linux/virtio_net.h>
 * @size: payload bytes per segment
 *
 * Also request the checksum, see tp4_meta_csum().
 */
TP4_API void tp4_meta_gso(struct tpacket4_meta *m, __u8 type, __u16 size)
{
	m->gso_type = type;
	m->gso_size = size;
	m->flags |= TP4_META_GSO;
}

/**
 * tp4_meta_launch - set the launch time of a packet
 * @m: metadata of a packet to send
 * @ns: the launch time, by the clock of SO_TXTIME, which must be set on the
 *      socket
 */
TP4_API void tp4_meta_launch(struct tpacket4_meta *m, __u64 ns)
{
	m->tstamp = ns;
	m->flags |= TP4_META_TX_LAUNCH;
}

/**
 * tp4_meta_time - get the timestamp of a received packet
 * @m: its metadata
 *
 * Return: the timestamp, by the device's clock if @m->flags has
 * TP4_META_RX_TS_HARDWARE, else by %CLOCK_REALTIME.
 */
TP4_API struct timespec tp4_meta_time(const struct tpacket4_meta *m)
{
	struct timespec t;

	t.tv_sec = (time_t)(m->tstamp / 1000000000);
	t.tv_nsec = (long)(m->tstamp % 1000000000);
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
TP4_API int tp4_setopt(int fd, int opt, int val)
{
	if (setsockopt(fd, SOL_PACKET, opt, &val, sizeof(val)))
		return -errno;
	return 0;
}

/**
 * tp4_close - close a socket and unmap its rings
 * @s: socket; nothing is done if it is not open
 *
 * When this returns, the kernel's frames belong to the program again, but the
 * device may still read packets in flight.
 */
TP4_API void tp4_close(struct tp4_socket *s)
{
	if (!s->map)
		return;
	if (s->backend)
		s->backend->close(s);
#ifdef TP4_DEBUG
	__tp4_debug_set(s->rx.q.ring, NULL);
	__tp4_debug_set(s->tx.q.ring, NULL);
#endif
	munmap(s->map, s->map_len);
	close(s->fd);
	memset(s, 0, sizeof(*s));
	s->fd = -1;
}

/* Set ring opt (PACKET_RX_RING or PACKET_TX_RING) to nr descriptors; 0: none.
 */
static inline int __tp4_set_ring(int fd, int opt, int mr_fd, unsigned int nr,
				 __u32 flags)
{
	struct tpacket_req4 req;

	memset(&req, 0, sizeof(req));
	req.mr_fd = mr_fd;
	req.desc_nr = nr;
	req.flags = flags;
	if (setsockopt(fd, SOL_PACKET, opt, &req, sizeof(req)))
		return -errno;
	return 0;
}

/* Which limit a number of descriptors exceeds; %TP4_IN_RING: none */
static inline enum tp4_where __tp4_bad_size(unsigned int nr)
{
	size_t min = (size_t)sysconf(_SC_PAGESIZE) /
		     sizeof(struct tpacket4_desc);

	return nr & (nr - 1) ? TP4_IN_RING_POWER :
	       nr && nr < min ? TP4_IN_RING_MIN :
	       nr > 1 << 20 ? TP4_IN_RING_MAX : TP4_IN_RING;
}

/* Does a caller of the shared object set members that it does not have? */
static inline int __tp4_unknown_options(const struct tp4_options *opt)
{
#ifdef __TP4_SHARED_OBJECT
	const __u8 *bytes = (const __u8 *)opt;
	size_t i;

	for (i = sizeof(*opt); i < opt->size; i++)
		if (bytes[i])
			return 1;
#else
	(void)opt;
#endif
	return 0;
}

/* A caller of the shared object may not have this member. */
static inline int __tp4_wants_gso(const struct tp4_options *opt)
{
#ifdef __TP4_SHARED_OBJECT
	if (opt->size < offsetof(struct tp4_options, gso) + sizeof(opt->gso))
		return 0;
#endif
	return opt->gso;
}

/* Register the area and set up the rings of a V4 socket. */
static inline int __tp4_set_up(int fd, const struct tp4_options *opt,
			       enum tp4_where *step)
{
	int mr_fd = opt->mr_fd ? opt->mr_fd : fd;
	__u32 flags = opt->meta ? TP4_RING_META : 0;
	__u32 rx_flags = flags | (opt->to_stack ? TP4_RING_TO_STACK : 0) |
			 (opt->keep ? TP4_RING_KEEP : 0) |
			 (opt->packed ? TP4_RING_PACKED : 0);
	__u32 headroom = opt->headroom;
	int gso = __tp4_wants_gso(opt);
	int err = 0;

	if (opt->meta && headroom < sizeof(struct tpacket4_meta))
		headroom = sizeof(struct tpacket4_meta);
	*step = TP4_IN_MEMREG;
	if (!opt->mr_fd)
		err = tp4_area_register(opt->area, fd, headroom);
	if (err == -EINVAL && opt->area->frame_size >= 64 &&
	    headroom > opt->area->frame_size - 64)
		*step = TP4_IN_HEADROOM;
	if (err)
		return err;
	*step = __tp4_bad_size(opt->rx_nr);
	if (*step == TP4_IN_RING)
		*step = __tp4_bad_size(opt->tx_nr);
	if (opt->rx_nr)
		err = __tp4_set_ring(fd, PACKET_RX_RING, mr_fd, opt->rx_nr,
				     rx_flags | (gso ? TP4_RING_GSO : 0));
	if (err == -EINVAL && gso)
		err = __tp4_set_ring(fd, PACKET_RX_RING, mr_fd, opt->rx_nr,
				     rx_flags);
	if (!err && opt->tx_nr)
		err = __tp4_set_ring(fd, PACKET_TX_RING, mr_fd, opt->tx_nr,
				     flags);
	return err;
}

/**
 * tp4_open - create a socket with rings
 * @s: socket, which is overwritten
 * @opt: options
 *
 * The socket receives nothing before tp4_bind(). Before that, set other
 * options, filters and fanout on s->fd, and post frames.
 *
 * Return: 0, or -errno: %EINVAL if @opt is incomplete or inconsistent or the
 * kernel does not have V4; %EBUSY if @opt->fd has rings; else an error of
 * socket(), PACKET_MEMREG, PACKET_RX_RING or mmap(). tp4_strerror() of
 * @s->failed describes it. After an error, @s is not open and its fd is -1; the
 * caller still has to close @opt->fd, which has no other rings than before, but
 * may have @opt->area.
 */
TP4_API int tp4_open(struct tp4_socket *s, const struct tp4_options *opt)
{
	size_t rings = ((size_t)opt->rx_nr + opt->tx_nr) *
		       sizeof(struct tpacket4_desc);
	/* one page more than the rings: the status page */
	size_t len = rings + (size_t)sysconf(_SC_PAGESIZE);
	void *map = MAP_FAILED;
	int err, is_v4, fd = opt->fd;

	memset(s, 0, sizeof(*s));
	s->fd = -1;
	s->failed = TP4_IN_OPTIONS;
	if (!rings || (!opt->area && !opt->mr_fd) ||
	    (opt->headroom && opt->mr_fd) || __tp4_unknown_options(opt))
		return -EINVAL;
	s->failed = TP4_IN_SOCKET;
	if (!fd)
		fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return opt->fd ? -EBADF : -errno;
	s->failed = TP4_IN_VERSION;
	err = tp4_setopt(fd, PACKET_VERSION, TPACKET_V4);
	is_v4 = !err;
	if (!err)
		err = __tp4_set_up(fd, opt, &s->failed);
	if (!err) {
		s->failed = TP4_IN_MMAP;
		map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			   0);
		if (map == MAP_FAILED)
			err = -errno;
	}
	if (err) {
		if (!opt->fd) {
			close(fd);
		} else if (is_v4) {
			/* Without rings before, or it would not be V4 now. */
			(void)__tp4_set_ring(fd, PACKET_RX_RING, -1, 0, 0);
			(void)__tp4_set_ring(fd, PACKET_TX_RING, -1, 0, 0);
		}
		return err;
	}

	s->fd = fd;
	s->map = map;
	s->map_len = len;
	s->protocol = opt->protocol;
	s->failed = TP4_IN_OPTIONS;
	s->status = (struct tpacket4_status *)(void *)((__u8 *)map + rings);
	if (opt->rx_nr)
		tp4_ring_init(&s->rx, (struct tpacket4_desc *)map, opt->rx_nr);
	if (opt->tx_nr)
		tp4_ring_init(&s->tx, (struct tpacket4_desc *)map + opt->rx_nr,
			      opt->tx_nr);
#ifdef TP4_DEBUG
	/* The slots of a packed ring do not have frames of their own. */
	if (opt->rx_nr && !opt->packed)
		__tp4_debug_set(s->rx.q.ring, opt->area);
	if (opt->tx_nr)
		__tp4_debug_set(s->tx.q.ring, opt->area);
#endif
	return 0;
}

/**
 * tp4_zerocopy - enter or leave zero-copy mode
 * @s: socket, before or after tp4_bind()
 * @queue: 0 to leave it, n to enter it on queue pair n - 1
 *
 * In zero-copy mode, packets of the queue pair are received on this socket
 * only, without a copy, and packets on its Tx ring go directly to the driver;
 * both bypass the stack. Before tp4_bind(), zero-copy mode is only requested;
 * tp4_bind() enters it and returns its errors. A packet takes several frames if
 * a frame has less than %TP4_ZC_HEADROOM additional bytes.
 *
 * When the program leaves zero-copy mode, every frame of the kernel is returned
 * with error %ECANCELED, and the socket continues in copy mode. If the device
 * is removed, they are returned with %ENETDOWN.
 *
 * Return: 0, or -errno: EOPNOTSUPP if the driver does not support it, EBUSY if
 * the queue pair is in use, EPERM, ENXIO if there is no such queue pair.
 */
TP4_API int tp4_zerocopy(const struct tp4_socket *s, int queue)
{
	return tp4_setopt(__tp4_fd(s), PACKET_ZEROCOPY, queue);
}

/**
 * tp4_fanout - join a fanout group
 * @s: socket, after tp4_bind()
 * @group: number of the group, up to 65535
 * @type: PACKET_FANOUT_HASH or another type, with PACKET_FANOUT_FLAG_*
 *
 * The packets of the interface are distributed to the sockets of the group. If
 * one of them enters zero-copy mode afterwards, the packets of its queue pair go
 * to the others. With the same area they are not copied, and a socket may then
 * receive frames that another one has posted.
 *
 * Return: 0, or -errno: EINVAL if the socket is not bound, is in zero-copy mode,
 * or does not match the group; EALREADY if it is in a group.
 */
TP4_API int tp4_fanout(const struct tp4_socket *s, unsigned int group,
		       unsigned int type)
{
	return tp4_setopt(__tp4_fd(s), PACKET_FANOUT,
			  (int)((group & 0xffff) | type << 16));
}

/**
 * tp4_promisc - enable promiscuous mode
 * @s: socket
 * @ifindex: interface; it stays promiscuous until the socket is closed
 *
 * Return: 0, or -errno.
 */
TP4_API int tp4_promisc(const struct tp4_socket *s, int ifindex)
{
	struct packet_mreq mreq;

	memset(&mreq, 0, sizeof(mreq));
	mreq.mr_ifindex = ifindex;
	mreq.mr_type = PACKET_MR_PROMISC;
	if (setsockopt(__tp4_fd(s), SOL_PACKET, PACKET_ADD_MEMBERSHIP, &mreq,
		       sizeof(mreq)))
		return -errno;
	return 0;
}

/**
 * tp4_bind - bind a socket to an interface and start to receive
 * @s: socket
 * @ifindex: interface
 *
 * A socket without an Rx ring receives nothing, not into its ordinary queue
 * either.
 *
 * Return: 0, or -errno.
 */
TP4_API int tp4_bind(const struct tp4_socket *s, int ifindex)
{
	struct sockaddr_ll ll;

	memset(&ll, 0, sizeof(ll));
	ll.sll_family = AF_PACKET;
	if (s->rx.q.ring || !s->map)
		ll.sll_protocol = htons(s->protocol ? s->protocol : ETH_P_ALL);
	ll.sll_ifindex = ifindex;
	if (bind(__tp4_fd(s), (struct sockaddr *)&ll, sizeof(ll)))
		return -errno;
	return 0;
}

/**
 * tp4_kick - let the kernel send the packets on the Tx ring
 * @s: socket
 * @flags: MSG_DONTWAIT, or 0 to return when all of them have been sent
 *
 * Return: the number of bytes sent, or -errno. After ENOBUFS or EAGAIN (device
 * full), the kernel keeps the packets; kick again later.
 */
TP4_API int tp4_kick(const struct tp4_socket *s, int flags)
{
	ssize_t n;

	if (s->backend)
		return s->backend->kick(s, flags);
	n = sendto(__tp4_fd(s), NULL, 0, flags, NULL, 0);
	return n < 0 ? -errno : (int)n;
}

/*
 * The kernel sets the flag, then checks the ring once more. The program has
 * written to the ring and now reads the flag. With a full barrier on both
 * sides, at least one of them sees what the other has written.
 */
static inline int __tp4_need_wakeup(const __u32 *need)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !!__atomic_load_n(need, __ATOMIC_RELAXED);
}

/**
 * tp4_need_kick - check whether packets on the Tx ring need tp4_kick()
 * @s: socket
 *
 * In zero-copy mode, the driver may already be processing the ring on another
 * CPU, and tp4_kick() would be an unnecessary system call. In copy mode this is
 * always true. Call it after each batch, and again while packets have not been
 * returned.
 *
 * Return: true if packets may not be sent without a kick.
 */
TP4_API int tp4_need_kick(const struct tp4_socket *s)
{
	return s->status && __tp4_need_wakeup(&s->status->tx_need_wakeup);
}

/**
 * tp4_rx_need_kick - check whether posted Rx frames need tp4_rx_kick()
 * @s: socket
 *
 * In zero-copy mode, a driver that has run out of frames does not check the
 * ring until it is kicked. In copy mode this is never true. Call it after
 * posting frames, unless tp4_wait() or tp4_busy_poll() follows.
 *
 * Return: true if the driver may not use the frames without a kick.
 */
TP4_API int tp4_rx_need_kick(const struct tp4_socket *s)
{
	return s->status && __tp4_need_wakeup(&s->status->rx_need_wakeup);
}

/**
 * tp4_rx_kick - let the driver take posted Rx frames
 * @s: socket, with or without a Tx ring
 *
 * Same as tp4_wait() with a timeout of 0.
 *
 * Return: 0, or -errno as for tp4_wait().
 */
TP4_API int tp4_rx_kick(struct tp4_socket *s)
{
	int n = tp4_wait(s, POLLIN, 0);

	return n < 0 ? n : 0;
}

/**
 * tp4_stats - read the counters since the last call
 * @s: socket
 * @st: set to the counters; for a socket of V1 to V3, only the first two
 *
 * Return: 0, or -errno.
 */
TP4_API int tp4_stats(const struct tp4_socket *s,
		      struct tpacket_stats_v4 *st)
{
	socklen_t len = sizeof(*st);

	memset(st, 0, sizeof(*st));
	if (getsockopt(__tp4_fd(s), SOL_PACKET, PACKET_STATISTICS, st, &len))
		return -errno;
	return 0;
}

/* --- several queue pairs -------------------------------------------------- */

/**
 * struct tp4_queues - a socket in zero-copy mode for each of several queue pairs
 * @s: the sockets, of queue pairs with consecutive numbers
 * @nr: how many
 * @turn: the socket that tp4_peek_queues() has checked last
 * @failed: the step in which tp4_open_queues() or tp4_bind_queues() has failed,
 *          for tp4_strerror()
 * @left: calls of tp4_peek_queues() until it checks all sockets again
 * @ready: bit n: s[n] had packets when it was checked last
 * @waited: tp4_wait_queues() has just found all that have packets
 * @epoll: epoll instance of the sockets; or -1: none yet, -2: poll() is used
 *
 * The sockets are those of tp4_open(), and all functions for a socket or ring
 * can be used with them. A zeroed structure has no sockets.
 */
struct tp4_queues {
	struct tp4_socket s[TP4_WAIT_MAX];
	unsigned int nr;
	unsigned int turn;
	enum tp4_where failed;
	unsigned int left;
	__u64 ready;
	int waited;
	int epoll;
};

/* Most calls of tp4_peek_queues() until it checks all queues */
#define TP4_TURNS	16

/**
 * tp4_close_queues - close the sockets of several queue pairs
 * @q: queues; nothing is done if they are not open
 */
TP4_API void tp4_close_queues(struct tp4_queues *q)
{
	if (q->nr && q->epoll >= 0)
		close(q->epoll);
	q->epoll = -1;
	q->ready = 0;
	while (q->nr)
		tp4_close(&q->s[--q->nr]);
}

/**
 * tp4_open_queues - create a socket for each of several queue pairs
 * @q: queues, which are overwritten
 * @first: number of the first queue pair
 * @nr: how many, up to %TP4_WAIT_MAX; tp4_device() returns how many a device has
 * @opt: options of each socket, without fd; all of them use the same area
 *
 * Each socket has the rings that @opt describes. Before tp4_bind_queues(), post
 * different frames on each Rx ring, and set other options on the sockets.
 *
 * Return: 0, or -errno as for tp4_open() and tp4_zerocopy(); %EINVAL if @nr is 0
 * or too large. tp4_strerror() of @q->failed describes it, and no socket is
 * open.
 */
TP4_API int tp4_open_queues(struct tp4_queues *q, unsigned int first,
			    unsigned int nr, const struct tp4_options *opt)
{
	struct tp4_options o = *opt;
	struct tp4_socket *s;
	int err;

	memset(q, 0, sizeof(*q));
	q->epoll = -1;
	q->failed = TP4_IN_OPTIONS;
	if (!nr || nr > TP4_WAIT_MAX || o.fd)
		return -EINVAL;
	while (q->nr < nr) {
		s = &q->s[q->nr];
		err = tp4_open(s, &o);
		q->failed = s->failed;
		if (!err) {
			q->failed = TP4_IN_ZEROCOPY;
			err = tp4_zerocopy(s, (int)(first + ++q->nr));
		}
		if (err) {
			tp4_close_queues(q);
			return err;
		}
		/* The first socket has registered the area. */
		if (!o.mr_fd) {
			o.headroom = 0;
			o.mr_fd = s->fd;
		}
	}
	return 0;
}

/**
 * tp4_bind_queues - bind the sockets and start to receive
 * @q: queues
 * @ifindex: interface
 *
 * Return: 0, or -errno as for tp4_bind(): %ENXIO if the interface has less queue
 * pairs, %EBUSY if one is in use. tp4_strerror() of @q->failed describes it. The
 * sockets stay open, and some may be bound.
 */
TP4_API int tp4_bind_queues(struct tp4_queues *q, int ifindex)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < q->nr && !err; i++)
		err = tp4_bind(&q->s[i], ifindex);
	if (err)
		q->failed = TP4_IN_BIND;
	return err;
}

/* Find the Rx rings that have packets. */
static inline void __tp4_check_queues(struct tp4_queues *q)
{
	const struct tp4_ring *r;
	unsigned int i;

	for (i = 0; i < q->nr; i++) {
		r = &q->s[i].rx;
		if (r->q.ring && tp4_desc_ready(tp4_ring_at(r, 0)))
			q->ready |= 1ull << i;
	}
	q->left = TP4_TURNS;
}

/* The next one, after the last turn, of those that are ready */
static inline unsigned int __tp4_next_queue(const struct tp4_queues *q)
{
	const __u64 later = q->ready & ~((2ull << q->turn) - 1);

	return (unsigned int)__builtin_ctzll(later ? later : q->ready);
}

/**
 * tp4_peek_queues - check for packets on any of the queue pairs
 * @q: queues
 * @max: maximum number of slots; at least as many as the longest packet takes
 * @n: set to the number of slots returned, 0 to @max
 *
 * The sockets that have packets take turns. The others are not checked each
 * time, so that they do not make a packet more expensive, but when these have
 * no more, and at least each 16th time. The slots are those of the Rx ring of
 * the socket that is returned: take, recycle or forward all of them, on the Tx
 * ring of this or any other of the sockets, before the next call. The last slot
 * is the last one of its packet, so that packets of different sockets do not mix.
 *
 * Return: the socket, or NULL if none has packets.
 */
TP4_API struct tp4_socket *tp4_peek_queues(struct tp4_queues *q,
					   unsigned int max, unsigned int *n)
{
	int checked = q->waited;
	struct tp4_socket *s;
	unsigned int m;

	if (!q->left) {
		__tp4_check_queues(q);
		checked = 1;
	}
	q->left--;
	for (;;) {
		while (q->ready) {
			q->turn = __tp4_next_queue(q);
			s = &q->s[q->turn];
			m = tp4_ring_peek(&s->rx, max);
			while (m && (tp4_ring_at(&s->rx, m - 1)->flags &
				     TP4_PKT_CONT))
				m--;
			if (m) {
				*n = m;
				return s;
			}
			q->ready &= ~(1ull << q->turn);
		}
		if (checked)
			break;
		__tp4_check_queues(q);
		checked = 1;
	}
	q->waited = 0;
	*n = 0;
	return NULL;
}

/**
 * tp4_refill_queues - post frames that were sent as empty frames (Tx to Rx)
 * @q: queues
 * @tx: transmit ring of any socket with the same area
 * @n: number of slots, at most what tp4_ring_peek() on @tx returned
 *
 * For programs that forward packets to another queue pair than that which has
 * received them. The Rx rings with the fewest frames get them. Call
 * tp4_rx_need_kick() for each socket afterwards, unless tp4_wait_queues() follows.
 *
 * Return: the number of frames posted, less than @n if all Rx rings are full.
 */
TP4_API unsigned int tp4_refill_queues(struct tp4_queues *q,
				       struct tp4_ring *tx, unsigned int n)
{
	unsigned int i, m, most, left = n;
	struct tp4_ring *rx;

	do {
		rx = &q->s[0].rx;
		for (i = 1, most = 0; i < q->nr; i++) {
			m = tp4_ring_free(&q->s[i].rx);
			if (m > tp4_ring_free(rx)) {
				most = tp4_ring_free(rx);
				rx = &q->s[i].rx;
			} else if (m > most) {
				most = m;
			}
		}
		/* until it has as little room as the next one, and one more */
		m = tp4_ring_free(rx) - most + 1;
		m = tp4_ring_refill(tx, rx, m < left ? m : left);
		left -= m;
	} while (left && m);
	return n - left;
}

/* Same as tp4_wait_queues(), by poll(), whose cost grows with the queues */
static inline int __tp4_poll_queues(struct tp4_queues *q, short events,
				    int timeout)
{
	struct tp4_socket *all[TP4_WAIT_MAX];
	int n, err = 0, got = 0, ready[TP4_WAIT_MAX];
	unsigned int i;

	for (i = 0; i < q->nr; i++)
		all[i] = &q->s[i];
	n = q->nr ? tp4_wait_any(all, q->nr, events, timeout, ready) : -EBADF;
	for (i = 0; n > 0 && i < q->nr; i++) {
		if (ready[i] < 0)
			err = ready[i];
		else
			got |= ready[i];
	}
	return n < 0 ? n : err ? err : got;
}

/* epoll_wait() does not process the queue of a socket that is busy polled. */
static inline int __tp4_is_busy_polled(const struct tp4_socket *s)
{
	socklen_t len = sizeof(int);
	int usecs = 0;

	return !getsockopt(s->fd, SOL_SOCKET, SO_BUSY_POLL, &usecs, &len) &&
	       usecs;
}

/* Create the epoll instance, if it can be used. */
static inline void __tp4_open_epoll(struct tp4_queues *q)
{
	struct epoll_event e;
	unsigned int i;

	q->epoll = epoll_create1(EPOLL_CLOEXEC);
	memset(&e, 0, sizeof(e));
	e.events = EPOLLIN;
	for (i = 0; i < q->nr && q->epoll >= 0; i++) {
		e.data.u32 = i;
		if (!__tp4_is_busy_polled(&q->s[i]) &&
		    !epoll_ctl(q->epoll, EPOLL_CTL_ADD, q->s[i].fd, &e))
			continue;
		close(q->epoll);
		q->epoll = -1;
	}
	if (q->epoll < 0)
		q->epoll = -2;
}

/*
 * poll() kicks each socket. epoll_wait() looks only at those that have woken it,
 * so kick those that need it. Return their events, or -errno.
 */
static inline int __tp4_kick_queues(struct tp4_queues *q)
{
	struct tp4_socket *s, *const end = q->s + q->nr;
	const struct tpacket4_status *status;
	int e, got = 0;

	/* As in __tp4_need_wakeup(), once for all */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (s = q->s; s != end; s++) {
		status = s->status;
		if (!status && __tp4_fd(s) < 0)
			return -EBADF;
		if (s->rx.held | s->rx.q.num_free) {
			tp4_ring_prepare_poll(&s->rx);
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
		}
		if (!status)
			continue;
		if (!__atomic_load_n(&status->rx_need_wakeup,
				     __ATOMIC_RELAXED) &&
		    !(tp4_ring_pending(&s->tx) &&
		      __atomic_load_n(&status->tx_need_wakeup,
				      __ATOMIC_RELAXED)))
			continue;
		e = tp4_wait(s, POLLIN, 0);
		if (e < 0)
			return e;
		got |= e;
	}
	return got;
}

/**
 * tp4_wait_queues - sleep until a ring of any of the sockets needs attention
 * @q: queues
 * @events: POLLIN and/or POLLOUT
 * @timeout: milliseconds; -1 for no limit
 *
 * With POLLIN alone, the cost does not grow with the queues that have no packets,
 * unless tp4_busy_poll_start() was called for a socket before the first call.
 *
 * Return: as for tp4_wait(), the events of all sockets together.
 */
TP4_API int tp4_wait_queues(struct tp4_queues *q, short events, int timeout)
{
	struct epoll_event e[TP4_WAIT_MAX];
	int i, n, err = 0, got, is;
	struct pollfd p;

	if (q->nr == 1)
		return tp4_wait(&q->s[0], events, timeout);
	if (events == POLLIN && q->nr && q->epoll == -1)
		__tp4_open_epoll(q);
	if (events != POLLIN || !q->nr || q->epoll < 0)
		return __tp4_poll_queues(q, events, timeout);
	got = __tp4_kick_queues(q);
	if (got < 0)
		return got;
	n = epoll_wait(q->epoll, e, TP4_WAIT_MAX, got ? 0 : timeout);
	if (n < 0)
		return errno == EINTR ? got : -errno;
	q->waited = 1;
	for (i = 0; i < n; i++) {
		p.fd = q->s[e[i].data.u32].fd;
		p.revents = (short)e[i].events;
		is = __tp4_polled(&p);
		if (is < 0) {
			err = is;
			continue;
		}
		if (is & POLLIN)
			q->ready |= 1ull << e[i].data.u32;
		got |= is;
	}
	return err ? err : got;
}

/* --- busy polling -------------------------------------------------------- */

/**
 * tp4_busy_poll_start - enable busy polling
 * @s: socket
 * @usecs: how long poll() processes the queue before it sleeps
 * @budget: packets per poll, up to 65535
 *
 * The queue is then processed by tp4_busy_poll(), tp4_kick() and tp4_wait() on
 * the program's CPU instead of interrupts and softirqs. To keep interrupts off
 * between two calls, set napi_defer_hard_irqs and gro_flush_timeout of the
 * device. Needs CAP_NET_ADMIN.
 *
 * Return: 0, or -errno; some options may be set then.
 */
TP4_API int tp4_busy_poll_start(const struct tp4_socket *s, int usecs,
				int budget)
{
	const int on = 1, fd = __tp4_fd(s);

	if (setsockopt(fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &usecs, sizeof(usecs)) ||
	    setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL_BUDGET, &budget,
		       sizeof(budget)))
		return -errno;
	return 0;
}

/**
 * tp4_busy_poll - process the device's queue once (zero-copy mode)
 * @s: socket that tp4_busy_poll_start() was called for
 *
 * Call this when the Rx ring is empty.
 *
 * Return: 0, or -errno of the socket, such as -ENETDOWN.
 */
TP4_API int tp4_busy_poll(const struct tp4_socket *s)
{
	if (recv(__tp4_fd(s), NULL, 0, MSG_DONTWAIT) < 0 && errno != EAGAIN &&
	    errno != EINTR)
		return -errno;
	return 0;
}

/* --- errors -------------------------------------------------------------- */

static inline const char *__tp4_set_up_error(enum tp4_where where, int err)
{
	switch (where) {
	case TP4_IN_OPTIONS:
		return "at least one ring, area or mr_fd, 1 to 64 queues; no headroom with mr_fd";
	case TP4_IN_SOCKET:
		return err == EPERM ? "a packet socket needs CAP_NET_RAW" :
		       err == EBADF ? "the fd in the options is not open" :
		       err == EAFNOSUPPORT ? "the kernel has no packet sockets" :
		       NULL;
	case TP4_IN_VERSION:
		return err == EINVAL ?
		       "no CONFIG_PACKET_V4, or PACKET_VNET_HDR, TX_HAS_OFF or COPY_THRESH" :
		       err == EBUSY ? "the socket already has rings" :
		       err == ENOPROTOOPT || err == ENOTSOCK ?
		       "the fd is not a packet socket" : NULL;
	case TP4_IN_AREA:
		return err == EINVAL ? "the file is too short for the frames" :
		       err == ERANGE ? "an area has at least one frame, of 128 bytes or more" :
		       err == ENOMEM ? "not enough memory for the frames" :
		       NULL;
	case TP4_IN_MMAP:
		return err == EACCES ?
		       "another process registered the area without shared" :
		       err == EINVAL ? "the rings have changed meanwhile" : NULL;
	case TP4_IN_MEMREG:
		switch (err) {
		case EINVAL:
			return "frame size, unit or headroom invalid, or area unaligned";
		case E2BIG:
			return "this kernel does not know a member of the request";
		case EBUSY:
			return "the socket already has an area";
		case ENOBUFS:
			return "the area exceeds RLIMIT_MEMLOCK (ulimit -l)";
		case EFAULT:
			return "a part of the area is not mapped, or not writable";
		case ENOMEM:
			return "not enough memory to map the area";
		case EOPNOTSUPP:
			return "the area cannot be pinned, or the data cache has aliases";
		}
		return NULL;
	case TP4_IN_HEADROOM:
		if (err == EINVAL)
			return "the headroom leaves less than 64 bytes of a frame";
		return __tp4_set_up_error(TP4_IN_MEMREG, err);
	case TP4_IN_RING_POWER:
	case TP4_IN_RING_MIN:
	case TP4_IN_RING_MAX:
		if (err == EINVAL)
			return where == TP4_IN_RING_POWER ?
			       "the number of descriptors of a ring must be a power of two" :
			       where == TP4_IN_RING_MIN ?
			       "a ring has at least a page of descriptors (256 in 4 KiB)" :
			       "a ring has at most 1048576 (2^20) descriptors";
		return __tp4_set_up_error(TP4_IN_RING, err);
	case TP4_IN_RING:
		switch (err) {
		case EINVAL:
			return "not a power of two in pages, no headroom, or mr_fd has no area";
		case E2BIG:
			return "this kernel does not know a member of the request";
		case EBADF:
			return "mr_fd is not open";
		case ENOTSOCK:
			return "mr_fd is not a socket";
		case EACCES:
			return "another process registered the area without shared";
		case EBUSY:
			return "the ring is mapped, in use or in zero-copy mode";
		case ENOMEM:
			return "not enough memory for the ring";
		}
		return NULL;
	default:
		return NULL;
	}
}

static inline const char *__tp4_bound_error(enum tp4_where where, int err)
{
	switch (where) {
	case TP4_IN_BIND:
		if (err == ENODEV)
			return "there is no such interface";
		if (err == ENETDOWN)
			return "the interface is down";
		if (err == EBUSY)
			return "the socket is in zero-copy mode, or the queue pair is in use";
		if (err == EINVAL)
			return "the socket is in a fanout group, or cannot enter zero-copy mode";
		return __tp4_bound_error(TP4_IN_ZEROCOPY, err);
	case TP4_IN_ZEROCOPY:
		switch (err) {
		case EINVAL:
			return "needs SOCK_RAW, ETH_P_ALL, one interface, 2 KiB frames; fanout: Rx";
		case EPERM:
			return "zero-copy mode needs CAP_NET_ADMIN";
		case EOPNOTSUPP:
			return "the device has no zero-copy mode";
		case ENODEV:
			return "the device was removed";
		case ENXIO:
			return "the device, or its veth peer, has no such queue pair";
		case EBUSY:
			return "the queue pair or the socket is in use";
		case EEXIST:
			return "a device above it, such as a bond, has an XDP program";
		case EMSGSIZE:
			return "the MTU needs more frames than the driver supports";
		case ENOMEM:
			return "not enough memory for zero-copy mode";
		}
		return NULL;
	case TP4_IN_KICK:
		switch (err) {
		case EINVAL:
			return "the address is too short";
		case ENXIO:
			return "the socket is not bound, or the device was removed";
		case ENETDOWN:
			return "the device is down";
		case ENOBUFS:
			return "the device is full: kick again later";
		case EAGAIN:
			return "the send buffer is full: kick again later";
		case ETIMEDOUT:
		case EINTR:
			return "a timeout or a signal ended the call";
		case EBUSY:
			return "the ring or the mode changed during the call";
		}
		return NULL;
	case TP4_IN_WAIT:
		return err == ENETDOWN ? "the device is down" :
		       err == ENODEV ?
		       "the device was removed or moved to another namespace" : NULL;
	case TP4_IN_RX:
	case TP4_IN_TX:
		if (err == ECANCELED)
			return where == TP4_IN_RX ?
			       "zero-copy mode was turned off" :
			       "zero-copy mode is off, or the packet is invalid";
		if (err == ENETDOWN)
			return "the device was removed or moved to another namespace";
		if (where == TP4_IN_RX)
			return err == EINVAL ?
			       "the area has no such frame, or it crosses pages" :
			       NULL;
		switch (err) {
		case EINVAL:
			return "the descriptor or its metadata is invalid";
		case EMSGSIZE:
			return "the packet is too long, or has too many frames";
		case EOPNOTSUPP:
			return "the device lacks an offload that the metadata requests";
		case ENOBUFS:
			return "a qdisc, a rule or the driver dropped the packet";
		case ENOMEM:
			return "not enough memory to send the packet";
		}
		return NULL;
	default:
		return NULL;
	}
}

/**
 * tp4_strerror - describe an error
 * @where: where it occurred; after tp4_open(), @failed of the socket
 * @err: the errno, positive or negative
 *
 * Return: a sentence about what V4 means by it, or strerror() of other errors.
 */
TP4_API const char *tp4_strerror(enum tp4_where where, int err)
{
	const char *text;

	err = err < 0 ? -err : err;
	if (err == EBADF && where > TP4_IN_AREA)
		return "the socket is not open";
	text = __tp4_set_up_error(where, err);
	if (!text)
		text = __tp4_bound_error(where, err);
	return text ? text : strerror(err);
}

/* --- free frames --------------------------------------------------------- */

/**
 * tp4_pool_init - put frames on a stack
 * @p: pool
 * @mem: memory for the maximum number of frame numbers
 * @first: number of the first frame
 * @nr: number of frames; the lowest one is taken first
 */
TP4_API void tp4_pool_init(struct tp4_pool *p, __u64 *mem,
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
 * @frames: set to their numbers
 * @n: how many
 *
 * Return: the number of frames, less than @n if the pool is empty.
 */
TP4_API unsigned int tp4_pool_get(struct tp4_pool *p, __u64 *frames,
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
 * tp4_pool_put - put the frames of returned slots on the stack
 * @p: pool
 * @r: ring, whose slots are taken
 * @n: number of slots, at most what tp4_ring_peek() on @r returned
 */
TP4_API void tp4_pool_put(struct tp4_pool *p, struct tp4_ring *r,
			  unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		p->frames[p->nr++] = tp4_ring_at(r, i)->idx;
	tp4_ring_take(r, n);
}

/**
 * tp4_pool_fill - post frames of the stack (Rx)
 * @p: pool
 * @r: ring
 *
 * Return: the number of frames posted: until the ring is full or the pool is
 * empty.
 */
TP4_API unsigned int tp4_pool_fill(struct tp4_pool *p, struct tp4_ring *r)
{
	unsigned int n;

	tp4_ring_flush(r);
	n = tp4_ring_free(r);
	if (n > p->nr)
		n = p->nr;
	p->nr -= n;
	return tp4_ring_post(r, p->frames + p->nr, n);
}

#ifdef __cplusplus
}
#endif

#endif /* __TPACKET4_H */
