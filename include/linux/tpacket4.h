/* SPDX-License-Identifier: GPL-2.0 */
/* Driver interface of TPACKET_V4 zero-copy mode
 *
 * A packet array is a batch of frames that a driver works on. Its source fills
 * it (tp4a_populate()), the driver walks its packets, and its sink takes the
 * packets that the driver has finished with (tp4a_flush()). Source and sink are
 * either a V4 ring or skbs. The driver sees neither which one it is nor the
 * descriptor format.
 *
 * An array is itself a ring of frames:
 *
 *	start        curr           end
 *	  |  processed |  unprocessed |  free
 *
 * In a Tx array, the unprocessed frames are packets to send. In an Rx array
 * they are empty, and the processed frames hold received packets.
 *
 * A driver whose device completes frames in order only has to count them. If
 * the device completes out of order, the driver identifies a Tx packet by its
 * handle, tp4f_get_handle(), and an empty Rx frame by its number,
 * tp4f_get_frame_id().
 *
 * No function here takes a lock. An array is used by one NAPI instance at a
 * time.
 */
#ifndef _LINUX_TPACKET4_H
#define _LINUX_TPACKET4_H

#include <linux/bits.h>
#include <linux/dma-mapping.h>
#include <linux/if_packet.h>
#include <linux/if_vlan.h>
#include <linux/mm.h>
#include <linux/net_tstamp.h>
#include <linux/netdevice.h>
#include <net/xdp.h>

struct bpf_prog;
struct sk_buff;
struct tp4_array_ops;
struct tp4_packet_array;
struct tp4_spares;
struct tp4_xdp;

/* Maximum number of frames in a Tx packet */
#define TP4_MAX_FRAMES	MAX_SKB_FRAGS

/* Flags of ndo_tp4_xmit: what was posted, empty frames or packets to send */
#define TP4_WAKEUP_RX	BIT(0)
#define TP4_WAKEUP_TX	BIT(1)

/* Tx timestamps that a driver supports by calling tp4f_stamp() */
#define TP4_SW_STAMPS	(SOF_TIMESTAMPING_TX_SOFTWARE | \
			 SOF_TIMESTAMPING_TX_SCHED)

/**
 * enum tp4_netdev_command - command of ndo_tp4_zerocopy
 * @TP4_ENABLE:		bind the queue pair to the socket
 * @TP4_DISABLE:	unbind it, and free the arrays
 */
enum tp4_netdev_command {
	TP4_ENABLE,
	TP4_DISABLE,
};

/**
 * struct tp4_netdev_parms - parameters of ndo_tp4_zerocopy
 * @command:		the command; TP4_DISABLE uses only @queue_pair
 * @rx_opaque:		argument for tp4a_rx_new(), or NULL if the socket has no
 *			Rx ring; the Rx queue then stays with the stack
 * @tx_opaque:		argument for tp4a_tx_new(), or NULL if the socket has no
 *			Tx ring
 * @error_report:	called with a positive errno when the queue pair is lost
 * @error_report_opaque: first argument of @error_report
 * @queue_pair:		index of the Rx queue and of the Tx queue
 *
 * @error_report may be called in any context except hard interrupt, from the
 * call of ndo_tp4_zerocopy with TP4_ENABLE until it returns from TP4_DISABLE.
 * It is not needed for frames that are returned: the arrays report those.
 */
struct tp4_netdev_parms {
	enum tp4_netdev_command	command;
	void			*rx_opaque;
	void			*tx_opaque;
	void			(*error_report)(void *opaque, int error);
	void			*error_report_opaque;
	int			queue_pair;
};

/* Flags of a frame, in addition to TP4_PKT_CONT and TP4_META. The first frame
 * of a packet has flags for the metadata that the driver has set:
 */
#define TP4F_HASH	0x04
#define TP4F_CSUM_VALID	0x08
#define TP4F_HWTSTAMP	0x10
#define TP4F_META_MASK	(TP4F_HASH | TP4F_CSUM_VALID | TP4F_HWTSTAMP)
/* That of a packet to send has TP4F_STAMP if the socket wants timestamps. */
#define TP4F_STAMP	0x20
#define TP4F_COMPLETED	0x80

/**
 * struct tp4_frame - a frame in a packet array
 *
 * Drivers access it through a frame set. Four frames fill a cache line. An
 * empty frame of an Rx array has the array's offset, no error and no flags.
 */
struct tp4_frame {
	/* private: */
	u64			idx;	/* number in the area, or kernel address */
	u32			len;	/* bytes of packet data */
	u16			offset;	/* from the frame's start to the data */
	union {
		u8		error;	/* Tx: errno to return the frame with */
		u8		meta_len; /* Rx: bytes of XDP metadata */
	};
	u8			flags;	/* TP4_PKT_CONT, TP4_META, TP4F_* */
};

static_assert(sizeof(struct tp4_frame) == 16);

/**
 * struct tp4_packet_array - a batch of frames
 *
 * Drivers do not access the members; the functions below do.
 */
struct tp4_packet_array {
	/* private: */
	u32			start;	/* first frame not flushed */
	u32			curr;	/* first frame not processed */
	u32			end;	/* behind the last frame */
	u32			mask;	/* size of @items, less one */
	u32			room;	/* data bytes that fit an empty frame */
	u16			offset;	/* of the data in an empty frame */
	u8			frame_shift; /* log2 of the unit of idx, or 0 */
	const struct tp4_array_ops *ops; /* see net/packet/tp4_array.h */
	void			*addr;	/* kernel address of @area, or NULL */
	const dma_addr_t	*dma;	/* DMA addresses of its pages, or NULL */
	dma_addr_t		dma_base; /* used if they are contiguous */
	struct tp4_xdp		*xdp;	/* program to run at flush, or NULL */
	void			*queue_opaque; /* private to source and sink */
	const void		*area;	/* buffer that has all frames, or NULL */
	struct device		*dev;	/* of the DMA addresses, or NULL */
	struct page		**pages; /* of @area, or NULL */
	u32			keep;	/* frames that the ring does not get */
	u32			at_device; /* see tp4a_handed_out() */
	u32			frame_size; /* bytes of a frame, of a V4 ring */
	bool			meta;	/* packets have metadata */
	bool			to_stack; /* the stack gets copies of packets */
	struct tp4_packet_array	*to_kernel; /* the stack's packets, or NULL */
	struct tp4_spares	*spares; /* frames of the kernel's own, or NULL */
	struct tp4_frame	items[] ____cacheline_aligned_in_smp;
};

/**
 * struct tp4_frame_set - consecutive frames of an array, usually one packet
 * @pkt_arr:	the array
 * @curr:	the current frame, which most tp4f functions work on; drivers
 *		may increment it
 */
struct tp4_frame_set {
	struct tp4_packet_array	*pkt_arr;
	u32			curr;
	/* private: */
	u32			start;	/* the first frame */
	u32			end;	/* behind the last frame */
};

/**
 * struct tp4_xdp - an XDP program and how its verdicts are carried out
 * @buff:	context of the program, embedded in whatever structure the
 *		driver's XDP metadata kfuncs expect
 * @rxq:	the Rx queue, registered with xdp_rxq_info_reg() while there is a
 *		program
 * @prepare:	sets up the structure that embeds @buff before @prog runs, or
 *		NULL; called for every packet that is flushed while there is a
 *		program
 * @xmit:	transmits a frame on the device for XDP_TX; returns 0, or an
 *		errno if the frame still belongs to the caller
 * @get_offloads: returns an skb that has the hash, the checksum state and the
 *		hardware timestamp of a packet, for the stack's copy of it, or
 *		NULL if nothing is known; @get_offloads itself is NULL if that
 *		is so for all packets. Called once for every packet that the
 *		stack gets a copy of, after @prog has run, while tp4f_get_age()
 *		and tp4f_get_handle() are what they were before the flush
 * @arg:	first argument of @prepare, @xmit and @get_offloads
 * @prog:	the program, or NULL; set by tp4a_begin_rx()
 * @napi:	the NAPI instance that gives packets to the stack, or NULL; set by
 *		tp4a_begin_rx()
 * @drops:	packets dropped by the program
 * @errors:	packets dropped for another reason
 * @tx:		packets passed to @xmit
 * @redirect:	packets redirected; if not 0, call xdp_do_flush()
 *
 * The driver owns it and keeps it as long as the array that it was given to by
 * tp4a_set_xdp(). The counters start at 0 with each tp4a_begin_rx().
 */
struct tp4_xdp {
	struct xdp_buff		*buff;
	struct xdp_rxq_info	*rxq;
	void			(*prepare)(void *arg,
					   const struct tp4_frame_set *p);
	int			(*xmit)(void *arg, struct xdp_frame *frame);
	struct sk_buff		*(*get_offloads)(void *arg,
						 const struct tp4_frame_set *p);
	void			*arg;
	struct bpf_prog		*prog;
	struct napi_struct	*napi;
	u32			drops;
	u32			errors;
	u32			tx;
	u32			redirect;
};

/**
 * tp4a_run() - count the frames that lie side by side in memory
 * @a:		the array
 * @pos:	position of the first of them
 *
 * For loops that walk the frames themselves.
 *
 * Return: the number of positions that are in the array's memory from @pos on to
 * its end.
 */
static inline u32 tp4a_run(const struct tp4_packet_array *a, u32 pos)
{
	return a->mask + 1 - (pos & a->mask);
}

/**
 * tp4f_frame() - get the current frame of a frame set
 * @p:	the frame set
 *
 * Return: the frame.
 */
static inline struct tp4_frame *tp4f_frame(const struct tp4_frame_set *p)
{
	return &p->pkt_arr->items[p->curr & p->pkt_arr->mask];
}

/**
 * tp4f_reset() - go to the first frame
 * @p:	the frame set
 */
static inline void tp4f_reset(struct tp4_frame_set *p)
{
	p->curr = p->start;
}

/**
 * tp4f_next_frame() - go to the next frame
 * @p:	the frame set
 *
 * Return: false if there is none.
 */
static inline bool tp4f_next_frame(struct tp4_frame_set *p)
{
	if (p->curr + 1 == p->end)
		return false;
	p->curr++;
	return true;
}

/**
 * tp4f_num_frames() - count the frames of a frame set
 * @p:	the frame set
 *
 * Return: the number of frames.
 */
static inline u32 tp4f_num_frames(const struct tp4_frame_set *p)
{
	return p->end - p->start;
}

/**
 * tp4f_get_frame_id() - get the number of a frame
 * @p:	the frame set
 *
 * Return: the frame's number in its area. With a frame unit it counts units.
 */
static inline u64 tp4f_get_frame_id(const struct tp4_frame_set *p)
{
	return tp4f_frame(p)->idx;
}

/**
 * tp4f_get_frame_len() - get the length of the data in a frame
 * @p:	the frame set
 *
 * Return: the length in bytes.
 */
static inline u32 tp4f_get_frame_len(const struct tp4_frame_set *p)
{
	return tp4f_frame(p)->len;
}

/**
 * tp4f_get_data_offset() - get the position of the data in a frame
 * @p:	the frame set
 *
 * Return: bytes from the frame's start to the data.
 */
static inline u32 tp4f_get_data_offset(const struct tp4_frame_set *p)
{
	return tp4f_frame(p)->offset;
}

/* Kernel address of a frame's first byte */
static inline void *tp4f_start(const struct tp4_packet_array *a,
			       const struct tp4_frame *frame)
{
	return a->addr + ((unsigned long)frame->idx << a->frame_shift);
}

/**
 * tp4f_get_data() - get the data of a frame
 * @p:	the frame set
 *
 * User space may write to the data at any time.
 *
 * Return: the kernel address of the data.
 */
static inline void *tp4f_get_data(const struct tp4_frame_set *p)
{
	const struct tp4_frame *frame = tp4f_frame(p);

	return tp4f_start(p->pkt_arr, frame) + frame->offset;
}

/**
 * tp4a_get_page() - get the page of an address in a frame
 * @a:		the array, of a V4 ring
 * @addr:	the address: the return value of tp4f_get_data(), or less by some
 *		of the frame's headroom, for example for a header in front of the
 *		data
 *
 * For scatterlists: the rest of the frame follows in the page and, if it crosses
 * pages, in the next page of the same folio.
 *
 * Return: the page; @addr is offset_in_page(@addr) bytes from its start.
 */
static inline struct page *tp4a_get_page(const struct tp4_packet_array *a,
					 const void *addr)
{
	return a->pages[(addr - a->addr) >> PAGE_SHIFT];
}

/**
 * tp4f_get_page() - get the page of a frame's data
 * @p:	the frame set, of an array of a V4 ring
 *
 * Return: as tp4a_get_page() for tp4f_get_data().
 */
static inline struct page *tp4f_get_page(const struct tp4_frame_set *p)
{
	return tp4a_get_page(p->pkt_arr, tp4f_get_data(p));
}

/**
 * struct tp4_dma - DMA addresses of the frames of an array
 *
 * For loops over frames, so that tp4f_get_dma_of() need not load them from the
 * array each time.
 */
struct tp4_dma {
	/* private: */
	const dma_addr_t	*pages;	/* an address per page, or NULL */
	dma_addr_t		base;	/* used if they are contiguous */
	struct device		*dev;
	u8			frame_shift;
};

/**
 * tp4a_get_dma() - get the DMA addresses for tp4f_get_dma_of()
 * @a:	an array that was created with a device
 *
 * Return: the DMA addresses of all frames of the array.
 */
static inline struct tp4_dma tp4a_get_dma(const struct tp4_packet_array *a)
{
	return (struct tp4_dma) {
		.pages = a->dma,
		.base = a->dma_base,
		.dev = a->dev,
		.frame_shift = a->frame_shift,
	};
}

/**
 * tp4f_get_dma_of() - get the DMA address of a frame's data, in a loop
 * @p:		the frame set
 * @dma:	the return value of tp4a_get_dma() for its array
 *
 * Return: as tp4f_get_dma().
 */
static inline dma_addr_t tp4f_get_dma_of(const struct tp4_frame_set *p,
					 const struct tp4_dma *dma)
{
	const struct tp4_frame *frame = tp4f_frame(p);
	u64 pos = (frame->idx << dma->frame_shift) + frame->offset;

	/* In the opposite order, the compiler would compute both sums. */
	if (unlikely(!dma->pages))
		return dma->base + pos;
	return dma->pages[pos >> PAGE_SHIFT] + offset_in_page(pos);
}

/**
 * tp4_dma_sync_for_device() - make a frame visible to the device, in a loop
 * @dma:	the return value of tp4a_get_dma()
 * @addr:	the return value of tp4f_get_dma_of() for the frame
 * @len:	bytes; for an empty frame, as many as the device may write
 */
static inline void tp4_dma_sync_for_device(const struct tp4_dma *dma,
					   dma_addr_t addr, u32 len)
{
	dma_sync_single_for_device(dma->dev, addr, len, DMA_BIDIRECTIONAL);
}

/**
 * tp4f_get_dma() - get the DMA address of a frame's data
 * @p:	the frame set, of an array that was created with a device
 *
 * Return: the DMA address of the data.
 */
static inline dma_addr_t tp4f_get_dma(const struct tp4_frame_set *p)
{
	const struct tp4_dma dma = tp4a_get_dma(p->pkt_arr);

	return tp4f_get_dma_of(p, &dma);
}

/**
 * tp4f_dma_sync_for_cpu() - make data that the device wrote visible to the CPU
 * @p:		the frame set
 * @len:	bytes
 */
static inline void tp4f_dma_sync_for_cpu(const struct tp4_frame_set *p, u32 len)
{
	struct device *dev = p->pkt_arr->dev;

	/* Most devices do not need it; do not compute the address for them. */
	if (dma_dev_need_sync(dev))
		dma_sync_single_for_cpu(dev, tp4f_get_dma(p), len,
					DMA_BIDIRECTIONAL);
}

/**
 * tp4f_dma_sync_for_device() - make a frame visible to the device
 * @p:		the frame set
 * @len:	bytes
 */
static inline void tp4f_dma_sync_for_device(const struct tp4_frame_set *p,
					    u32 len)
{
	struct device *dev = p->pkt_arr->dev;

	if (dma_dev_need_sync(dev))
		dma_sync_single_for_device(dev, tp4f_get_dma(p), len,
					   DMA_BIDIRECTIONAL);
}

/**
 * tp4f_is_last_frame() - check whether the packet ends in this frame
 * @p:	the frame set
 *
 * Return: true if it does.
 */
static inline bool tp4f_is_last_frame(const struct tp4_frame_set *p)
{
	return !(tp4f_frame(p)->flags & TP4_PKT_CONT);
}

/**
 * tp4a_has_meta() - check whether the ring has metadata
 * @a:	an array of a V4 ring
 *
 * The program decides this with TP4_RING_META.
 *
 * Return: for an Rx array, true if the driver should report what it knows about
 * a packet with tp4f_set_hash() and similar functions; for a Tx array, true if
 * packets may have metadata, see tp4f_has_meta().
 */
static inline bool tp4a_has_meta(const struct tp4_packet_array *a)
{
	return a->meta;
}

/* The first frame of a packet */
static inline struct tp4_frame *tp4f_first(const struct tp4_frame_set *p)
{
	return &p->pkt_arr->items[p->start & p->pkt_arr->mask];
}

/* The metadata of a packet, in memory that user space can write to */
static inline struct tpacket4_meta *tp4f_meta(const struct tp4_frame_set *p)
{
	return tp4f_start(p->pkt_arr, tp4f_first(p));
}

/**
 * tp4f_has_meta() - check whether a packet to send has metadata
 * @p:	the packet, of a Tx array
 *
 * Return: true if the driver must call tp4f_get_meta().
 */
static inline bool tp4f_has_meta(const struct tp4_frame_set *p)
{
	return tp4f_first(p)->flags & TP4_META;
}

/**
 * tp4f_wants_stamp() - check whether the socket wants timestamps of a packet
 * @p:	the packet, of a Tx array
 *
 * Return: true if the driver must call tp4f_stamp(), or tp4f_stamp_skb() and
 * tp4_stamp_skb(), if it sends the packet.
 */
static inline bool tp4f_wants_stamp(const struct tp4_frame_set *p)
{
	return tp4f_first(p)->flags & TP4F_STAMP;
}

/**
 * tp4f_wants_more() - check for a packet that needs more than to be sent
 * @p:	the packet, of a Tx array
 *
 * Return: true if tp4f_has_meta() or tp4f_wants_stamp() is.
 */
static inline bool tp4f_wants_more(const struct tp4_frame_set *p)
{
	return tp4f_first(p)->flags & (TP4_META | TP4F_STAMP);
}

/**
 * tp4f_is_plain() - check for a packet of one frame that needs nothing else
 * @p:	the packet, at its first frame
 *
 * Return: false if the packet continues in the next frame, or tp4f_wants_more() is
 * true.
 */
static inline bool tp4f_is_plain(const struct tp4_frame_set *p)
{
	return !(tp4f_frame(p)->flags & (TP4_PKT_CONT | TP4_META | TP4F_STAMP));
}

/**
 * tp4f_set_hash() - set the flow hash of a received packet
 * @p:		the packet, of an Rx array for which tp4a_has_meta() is true;
 *		call this after tp4f_set_frame() or tp4f_set_len()
 * @hash:	the hash that the device computed
 */
static inline void tp4f_set_hash(struct tp4_frame_set *p, u32 hash)
{
	tp4f_meta(p)->hash = hash;
	tp4f_first(p)->flags |= TP4F_HASH;
}

/**
 * tp4f_set_csum_valid() - report that the device verified a packet's checksums
 * @p:	as for tp4f_set_hash(), but tp4a_may_copy() is enough; the stack's copy
 *	of the packet needs no checksum either
 */
static inline void tp4f_set_csum_valid(struct tp4_frame_set *p)
{
	tp4f_first(p)->flags |= TP4F_CSUM_VALID;
}

/**
 * tp4f_set_hwtstamp() - set the hardware timestamp of a received packet
 * @p:	as for tp4f_set_hash()
 * @ns:	nanoseconds of the device's clock
 */
static inline void tp4f_set_hwtstamp(struct tp4_frame_set *p, u64 ns)
{
	tp4f_meta(p)->tstamp = ns;
	tp4f_first(p)->flags |= TP4F_HWTSTAMP;
}

/**
 * tp4f_set_frame() - describe the data in a frame
 * @p:		the frame set
 * @len:	bytes of data
 * @offset:	bytes from the frame's start to the data
 * @is_eop:	whether the packet ends here
 */
static inline void tp4f_set_frame(struct tp4_frame_set *p, u32 len, u16 offset,
				  bool is_eop)
{
	struct tp4_frame *frame = tp4f_frame(p);

	frame->len = len;
	frame->offset = offset;
	frame->flags = is_eop ? 0 : TP4_PKT_CONT;
}

/**
 * tp4f_set_len() - set the length of the data received into an empty frame
 * @p:		the frame set
 * @len:	bytes of data
 *
 * A shortcut for tp4f_set_frame(): for packets of one frame whose data is at
 * the offset that the empty frame had.
 */
static inline void tp4f_set_len(struct tp4_frame_set *p, u32 len)
{
	tp4f_frame(p)->len = len;
}

/**
 * tp4f_set_error() - set the error that all frames of a set are returned with
 * @p:		the frame set
 * @error:	the errno, positive
 */
static inline void tp4f_set_error(struct tp4_frame_set *p, int error)
{
	u32 i;

	for (i = p->start; i != p->end; i++)
		p->pkt_arr->items[i & p->pkt_arr->mask].error = error;
}

/**
 * tp4f_get_handle() - get the handle of a packet
 * @p:	the packet
 *
 * The handle identifies the packet until it is flushed: for
 * tp4a_packet_completed(), or as an index of the driver's data for the packet.
 * It is still valid when tp4_xdp::prepare is called.
 *
 * Return: a number below the size of the array, which is the maximum of @elems
 * of tp4a_tx_new() or tp4a_rx_new() and TP4_MAX_FRAMES, rounded up to a power
 * of two.
 */
static inline u32 tp4f_get_handle(const struct tp4_frame_set *p)
{
	return p->start & p->pkt_arr->mask;
}

/**
 * tp4f_get_age() - count the frames processed since a packet
 * @p:	the packet, processed and not flushed
 *
 * For devices that complete frames in order: the descriptor of the packet's first
 * frame is so many before the next one to be completed.
 *
 * Return: the number of frames, with those of the packet.
 */
static inline u32 tp4f_get_age(const struct tp4_frame_set *p)
{
	return p->pkt_arr->curr - p->start;
}

/**
 * tp4f_packet_completed() - mark a packet as completed by the device
 * @p:	the frame set
 *
 * For tp4a_flush_completed(). Packets may be completed in any order.
 */
static inline void tp4f_packet_completed(struct tp4_frame_set *p)
{
	u32 i;

	for (i = p->start; i != p->end; i++)
		p->pkt_arr->items[i & p->pkt_arr->mask].flags |= TP4F_COMPLETED;
}

/**
 * tp4a_packet_completed() - mark a packet as completed, by its handle
 * @a:		the Tx array
 * @handle:	what tp4f_get_handle() returned for the packet
 *
 * Same as tp4f_packet_completed().
 */
static inline void tp4a_packet_completed(struct tp4_packet_array *a,
					 u32 handle)
{
	struct tp4_frame *frame;

	do {
		frame = &a->items[handle++ & a->mask];
		frame->flags |= TP4F_COMPLETED;
	} while (frame->flags & TP4_PKT_CONT);
}

/**
 * tp4f_packet_len() - get the length of the data in all frames
 * @p:	the packet
 *
 * Return: the length in bytes.
 */
static inline u32 tp4f_packet_len(const struct tp4_frame_set *p)
{
	const struct tp4_packet_array *a = p->pkt_arr;
	u32 i = p->start, len = a->items[i & a->mask].len;

	while (unlikely(++i != p->end))
		len += a->items[i & a->mask].len;
	return len;
}

/**
 * struct tp4_limits - what a device can receive into and send
 * @buf_unit:	the size of a buffer is a multiple of this, a power of two
 * @buf_min:	bytes that the device must be able to write to a frame
 * @buf_max:	bytes that it writes to a frame at most
 * @buf_chain:	frames of a received packet at most
 * @tx_min:	bytes of a packet to send at least
 * @tx_chain:	frames of a packet to send at most
 *
 * For tp4_rx_buf_len() and tp4f_check_packet().
 */
struct tp4_limits {
	u32	buf_unit;
	u32	buf_min;
	u32	buf_max;
	u32	buf_chain;
	u32	tx_min;
	u32	tx_chain;
};

/**
 * tp4f_check_len() - check whether a device may send a packet of this length
 * @p:		the packet, at its first frame
 * @dev:	the device
 * @len:	the packet's length, see tp4f_packet_len()
 *
 * Return: 0, -EINVAL if the packet is shorter than a link layer header, or
 * -EMSGSIZE if it is longer than the MTU allows.
 */
static inline int tp4f_check_len(const struct tp4_frame_set *p,
				 const struct net_device *dev, u32 len)
{
	u32 max = READ_ONCE(dev->mtu) + dev->hard_header_len;
	const struct ethhdr *eth = tp4f_get_data(p);

	if (unlikely(len < ETH_HLEN))
		return -EINVAL;
	if (likely(len <= max) ||
	    (len <= max + VLAN_HLEN && tp4f_get_frame_len(p) >= ETH_HLEN &&
	     eth_type_vlan(READ_ONCE(eth->h_proto))))
		return 0;
	return -EMSGSIZE;
}

/**
 * tp4f_check_packet() - check whether a device can send a packet
 * @p:		the packet, at its first frame
 * @dev:	the device
 * @limits:	its limits
 *
 * Return: 0, -EINVAL if the packet is too short, or -EMSGSIZE if it is too long or
 * has too many frames.
 */
static inline int tp4f_check_packet(const struct tp4_frame_set *p,
				    const struct net_device *dev,
				    const struct tp4_limits *limits)
{
	u32 len = tp4f_packet_len(p);

	if (unlikely(len < limits->tx_min))
		return -EINVAL;
	if (unlikely(tp4f_num_frames(p) > limits->tx_chain))
		return -EMSGSIZE;
	return tp4f_check_len(p, dev, len);
}

/**
 * tp4a_set_xdp() - set the XDP program that runs at flush
 * @a:		an Rx array of a V4 ring
 * @xdp:	the program and how its verdicts are carried out; must live as
 *		long as @a
 *
 * Every driver must call it, as @xdp also delivers the stack's copies of
 * packets for TP4_RING_TO_STACK.
 *
 * Context: Any, before the array is used.
 */
static inline void tp4a_set_xdp(struct tp4_packet_array *a, struct tp4_xdp *xdp)
{
	a->xdp = xdp;
}

/**
 * tp4a_may_copy() - check whether the stack may get copies of packets
 * @a:	an Rx array of a V4 ring, with an XDP structure
 *
 * Return: true if it may, by TP4_RING_TO_STACK or by a program, so that the driver
 * should keep what @get_offloads of struct tp4_xdp needs.
 */
static inline bool tp4a_may_copy(const struct tp4_packet_array *a)
{
	return a->to_stack || a->xdp->prog;
}

/**
 * tp4a_next_frame() - get the next frame and count it as processed
 * @a:	the array
 * @p:	set to the frame
 *
 * Return: false if there is none.
 */
static inline bool tp4a_next_frame(struct tp4_packet_array *a,
				   struct tp4_frame_set *p)
{
	if (a->curr == a->end)
		return false;

	p->pkt_arr = a;
	p->start = a->curr;
	p->curr = a->curr;
	p->end = ++a->curr;
	return true;
}

/**
 * tp4a_handed_out() - count frames that the device has
 * @a:	the Rx array
 * @nr:	how many of the frames to do were handed to the device, after those
 *	that it already had
 *
 * For devices that complete frames out of order. The array only knows how many
 * of its next frames the device has, not which of them. They leave the array
 * through tp4a_next_by_id() only, and no other function gives them out again.
 */
static inline void tp4a_handed_out(struct tp4_packet_array *a, u32 nr)
{
	a->at_device += nr;
}

/**
 * tp4a_nr_handed_out() - count the frames that the device has
 * @a:	the Rx array
 *
 * Return: the number of frames counted by tp4a_handed_out() that have not been
 * returned.
 */
static inline u32 tp4a_nr_handed_out(const struct tp4_packet_array *a)
{
	return a->at_device;
}

/**
 * tp4a_next_by_id() - get a frame by its number and count it as processed
 * @a:	the Rx array
 * @id:	the frame's number, what tp4f_get_frame_id() returned when the frame was
 *	handed to the device
 * @p:	set to the frame
 *
 * For devices that complete frames out of order, see tp4a_handed_out(). Frames
 * that the device returns unused can be made available again with
 * tp4a_recycle(). The driver must get all of them back before the array is
 * freed.
 *
 * Return: false if the device has already returned all frames.
 */
static inline bool tp4a_next_by_id(struct tp4_packet_array *a, u64 id,
				   struct tp4_frame_set *p)
{
	if (unlikely(!a->at_device))
		return false;
	a->at_device--;
	p->pkt_arr = a;
	p->start = a->curr;
	p->curr = a->curr;
	p->end = ++a->curr;
	tp4f_frame(p)->idx = id;
	return true;
}

/**
 * tp4a_get_packet() - get a packet by its handle
 * @a:		the array
 * @handle:	what tp4f_get_handle() returns for the packet
 * @p:		set to the packet, which has been processed but not flushed
 */
static inline void tp4a_get_packet(struct tp4_packet_array *a, u32 handle,
				   struct tp4_frame_set *p)
{
	p->pkt_arr = a;
	p->start = handle;
	p->curr = handle;
	p->end = handle + 1;
	while (a->items[(p->end - 1) & a->mask].flags & TP4_PKT_CONT)
		p->end++;
}

/**
 * tp4a_next_handle() - get the handle of the next packet to process
 * @a:	the array
 *
 * Return: what tp4f_get_handle() will return for it.
 */
static inline u32 tp4a_next_handle(const struct tp4_packet_array *a)
{
	return a->curr & a->mask;
}

/**
 * tp4a_next_packet() - get the next packet and count it as processed
 * @a:	the Tx array
 * @p:	set to the packet
 *
 * Return: false if there is none.
 */
static inline bool tp4a_next_packet(struct tp4_packet_array *a,
				    struct tp4_frame_set *p)
{
	u32 curr = a->curr;

	if (curr == a->end)
		return false;

	p->pkt_arr = a;
	p->start = curr;
	/* A source only adds whole packets. */
	while (a->items[curr++ & a->mask].flags & TP4_PKT_CONT)
		;
	p->end = curr;
	a->curr = curr;
	tp4f_reset(p);
	return true;
}

/**
 * tp4a_nr_processed() - count the frames that are processed but not flushed
 * @a:	the array
 *
 * Return: the number of frames.
 */
static inline u32 tp4a_nr_processed(const struct tp4_packet_array *a)
{
	return a->curr - a->start;
}

/**
 * tp4a_nr_unprocessed() - count the frames that have not been processed
 * @a:	the array
 *
 * Return: the number of frames.
 */
static inline u32 tp4a_nr_unprocessed(const struct tp4_packet_array *a)
{
	return a->end - a->curr;
}

/**
 * tp4a_get_unprocessed() - get frames that have not been processed
 * @a:		the array
 * @skip:	how many frames to skip at the start: for Rx, those that the
 *		hardware already has
 * @p:		set to the frames; the driver may walk them by @p->curr
 *
 * With tp4a_advance(), for drivers that exchange frames with the hardware in
 * batches.
 *
 * Return: the number of frames after the skipped ones.
 */
static inline u32 tp4a_get_unprocessed(struct tp4_packet_array *a, u32 skip,
				       struct tp4_frame_set *p)
{
	p->pkt_arr = a;
	p->start = a->curr + skip;
	p->curr = p->start;
	p->end = a->end;
	return p->end - p->start;
}

/**
 * tp4a_advance() - count frames as processed
 * @a:	the array
 * @nr:	how many frames, starting with the first unprocessed one
 */
static inline void tp4a_advance(struct tp4_packet_array *a, u32 nr)
{
	a->curr += nr;
}

/* The following are defined in net/packet/tp4_array*.c. */
u32 tp4_frame_room(const void *rx_opaque);
int tp4_set_stamps(void *tx_opaque, u32 stamps);
struct tp4_packet_array *tp4a_rx_new(void *rx_opaque, size_t elems,
				     struct device *dev);
struct tp4_packet_array *tp4a_tx_new(void *tx_opaque, size_t elems,
				     struct device *dev);
int tp4_rx_buf_len(const void *rx_opaque, const struct tp4_limits *limits,
		   u32 packet_len);
struct tp4_packet_array *tp4a_skb_source_new(size_t elems);
struct tp4_packet_array *
tp4a_skb_sink_new(size_t elems, void *opaque,
		  void (*deliver)(void *opaque, struct sk_buff *skb));
void tp4a_free(struct tp4_packet_array *a);
void *tp4a_hold_area(const struct tp4_packet_array *a);
void tp4_release_area(void *area);
void tp4a_populate(struct tp4_packet_array *a);
int tp4a_flush(struct tp4_packet_array *a);
void tp4a_flush_sent(struct tp4_packet_array *a, u32 nr);
int tp4a_flush_completed(struct tp4_packet_array *a);
void tp4a_recycle(struct tp4_packet_array *a);
void tp4a_reuse(struct tp4_packet_array *a, u32 nr);
bool tp4a_copy_packet(struct tp4_packet_array *a, struct tp4_frame_set *p);
bool tp4a_add_packet(struct tp4_packet_array *a, struct tp4_frame_set *p);
u32 tp4a_add_packets(struct tp4_packet_array *a, struct tp4_packet_array *from,
		     u32 max, u32 min_len, u32 max_len, u64 *bytes);
int tp4a_add_skb(struct tp4_packet_array *a, struct sk_buff *skb);
struct sk_buff *tp4a_next_skb(struct tp4_packet_array *a,
			      struct tp4_frame_set *p);
void tp4f_set_from_skb(struct tp4_frame_set *p, struct sk_buff *skb);
void tp4f_push_vlan(struct tp4_frame_set *p, __be16 proto, u16 tci);
int tp4f_get_meta(const struct tp4_frame_set *p, struct tpacket4_meta *m);
struct sk_buff *tp4f_build_skb(struct tp4_frame_set *p, struct net_device *dev,
			       const struct tpacket4_meta *m);
struct sk_buff *tp4f_stamp_skb(struct tp4_frame_set *p);
void tp4_stamp_skb(struct sk_buff *skb);
void tp4f_stamp(struct tp4_frame_set *p);
bool tp4a_has_work(const struct tp4_packet_array *a);
bool tp4a_need_wakeup(struct tp4_packet_array *a, bool need);
void tp4a_begin_rx(struct tp4_packet_array *a, struct napi_struct *napi,
		   struct bpf_prog *prog);
u32 tp4a_refill(struct tp4_packet_array *a, u32 posted, u32 max,
		struct tp4_frame_set *p);
void tp4a_refill_later(struct tp4_packet_array *a, bool some);
void tp4a_count_no_frame(struct tp4_packet_array *a);

#endif /* _LINUX_TPACKET4_H */
