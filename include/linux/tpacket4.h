/* SPDX-License-Identifier: GPL-2.0 */
/* What a network driver sees of TPACKET_V4 in zero-copy mode.
 *
 * A packet array is a batch of frames on its way through a driver. Its source
 * fills it (tp4a_populate()), the driver walks over its packets, and its sink
 * gets those that the driver is done with (tp4a_flush()). Source and sink are a
 * V4 ring, or skbs; a driver does not see which, nor a descriptor's format.
 *
 * An array is a ring of frames itself:
 *
 *	start       curr          end
 *	  |  done     |  to do     |  room
 *
 * In an array for Tx the frames to do are packets to be sent. In one for Rx
 * they are empty, and done are those that hold received packets.
 *
 * A device that keeps the order of the frames needs numbers only: how many of
 * those to do it has (Rx), how many of those done it has sent (Tx). For one that
 * does not, packets that are being sent have a handle, tp4f_get_handle(), and
 * empty frames the number that tp4f_get_frame_id() tells.
 *
 * Nothing here takes a lock: an array belongs to one NAPI instance at a time.
 */
#ifndef _LINUX_TPACKET4_H
#define _LINUX_TPACKET4_H

#include <linux/bits.h>
#include <linux/dma-mapping.h>
#include <linux/if_packet.h>
#include <linux/if_vlan.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <net/xdp.h>

struct bpf_prog;
struct sk_buff;
struct tp4_array_ops;
struct tp4_packet_array;
struct tp4_xdp;
struct virtio_net_hdr;

/* Most frames that a packet may have when it is sent */
#define TP4_MAX_FRAMES	MAX_SKB_FRAGS

/* Which side ndo_tp4_xmit is about: frames to receive into, packets to be sent */
#define TP4_WAKEUP_RX	BIT(0)
#define TP4_WAKEUP_TX	BIT(1)

/**
 * enum tp4_netdev_command - what ndo_tp4_zerocopy is to do
 * @TP4_ENABLE:		hand the queue pair over to the arrays of the parameters
 * @TP4_DISABLE:	take it back, and free the arrays
 */
enum tp4_netdev_command {
	TP4_ENABLE,
	TP4_DISABLE,
};

/**
 * struct tp4_netdev_parms - parameters of ndo_tp4_zerocopy
 * @command:		what to do; for TP4_DISABLE only @queue_pair counts
 * @rx_opaque:		for tp4a_rx_new(); NULL where the socket has no Rx ring:
 *			what the queue receives stays with the stack
 * @tx_opaque:		for tp4a_tx_new(); NULL where it has no Tx ring
 * @error_report:	to be called with an errno, positive, when the queue pair
 *			is lost
 * @error_report_opaque: its first argument
 * @queue_pair:		which Rx and Tx queue
 *
 * @error_report may be called in any context but hard interrupt, from the
 * moment ndo_tp4_zerocopy is called until it has returned from TP4_DISABLE. Of
 * frames that come back the program is told by the arrays themselves.
 */
struct tp4_netdev_parms {
	enum tp4_netdev_command	command;
	void			*rx_opaque;
	void			*tx_opaque;
	void			(*error_report)(void *opaque, int error);
	void			*error_report_opaque;
	int			queue_pair;
};

/* In the flags of a frame, beside TP4_PKT_CONT and TP4_META. In a packet's
 * first one, what of its metadata the driver has told:
 */
#define TP4F_HASH	0x04
#define TP4F_CSUM_VALID	0x08
#define TP4F_HWTSTAMP	0x10
#define TP4F_META_MASK	(TP4F_HASH | TP4F_CSUM_VALID | TP4F_HWTSTAMP)
#define TP4F_COMPLETED	0x80

/**
 * struct tp4_frame - a frame in a packet array
 *
 * Drivers know it by a frame set. Four are a cache line. An empty one, in an
 * array for Rx, has the offset of the array, and neither error nor flags.
 */
struct tp4_frame {
	/* private: */
	u64			idx;	/* number in the area, or kernel address */
	u32			len;	/* bytes of packet data */
	u16			offset;	/* from the frame's start to the data */
	union {
		u8		error;	/* Tx: errno to return it with */
		u8		meta_len; /* Rx: bytes of XDP metadata */
	};
	u8			flags;	/* TP4_PKT_CONT, TP4_META, TP4F_* */
};

static_assert(sizeof(struct tp4_frame) == 16);

/**
 * struct tp4_packet_array - a batch of frames
 *
 * A driver has functions for all that it needs to know of it.
 */
struct tp4_packet_array {
	/* private: */
	u32			start;	/* first frame not flushed */
	u32			curr;	/* first frame not processed */
	u32			end;	/* behind the last frame */
	u32			mask;	/* size of @items, less one */
	u32			room;	/* bytes of data that an empty frame takes */
	u16			offset;	/* from an empty frame's start to them */
	u8			frame_shift; /* log2 of a frame's bytes, or 0 */
	u8			validation; /* of what the source gives */
	const struct tp4_array_ops *ops; /* the kind: net/packet/tp4_array.h */
	void			*addr;	/* kernel address of @area, or NULL */
	const dma_addr_t	*dma;	/* DMA addresses of its pages, or NULL */
	dma_addr_t		dma_base; /* where they follow each other */
	struct tp4_xdp		*xdp;	/* what packets meet at flush, or NULL */
	void			*queue_opaque; /* of source and sink */
	const void		*area;	/* where the frames come from, or NULL */
	struct device		*dev;	/* that DMA addresses are for, or NULL */
	struct page		**pages; /* of @area, or NULL */
	bool			meta;	/* packets have metadata */
	struct tp4_frame	items[] ____cacheline_aligned_in_smp;
};

/**
 * struct tp4_frame_set - some consecutive frames of an array, often a packet
 * @pkt_arr:	the array
 * @curr:	the frame that the tp4f functions speak of; a driver may add to it
 */
struct tp4_frame_set {
	struct tp4_packet_array	*pkt_arr;
	u32			curr;
	/* private: */
	u32			start;	/* the first frame */
	u32			end;	/* behind the last frame */
};

/**
 * struct tp4_xdp - an XDP program, and where its verdicts lead
 * @prog:	the program, or NULL; may change between two flushes
 * @buff:	what the program gets to see, a part of whatever the driver's own
 *		XDP metadata functions expect it to be a part of
 * @rxq:	the Rx queue, registered with xdp_rxq_info_reg()
 * @to_kernel:	array with skbs as its sink, for XDP_PASS_TO_KERNEL and
 *		TP4_RING_TO_STACK
 * @prepare:	called before @prog sees a packet, or its copy, in @buff: lets
 *		what @buff is a part of tell of the packet; or NULL. Every packet
 *		that is flushed while there is a program comes by here
 * @xmit:	sends a frame out of the device for XDP_TX; returns 0, or an errno
 *		and leaves the frame to the caller
 * @arg:	first argument of both
 * @drops:	packets dropped by verdict
 * @errors:	packets dropped for another reason
 * @tx:		packets given to @xmit
 * @redirect:	packets redirected: call xdp_do_flush() if there are any
 *
 * The driver keeps it as long as the array that tp4a_set_xdp() gives it to. The
 * counters are added to; the driver reads and resets them.
 */
struct tp4_xdp {
	struct bpf_prog		*prog;
	struct xdp_buff		*buff;
	struct xdp_rxq_info	*rxq;
	struct tp4_packet_array	*to_kernel;
	void			(*prepare)(void *arg,
					   const struct tp4_frame_set *p);
	int			(*xmit)(void *arg, struct xdp_frame *frame);
	void			*arg;
	u32			drops;
	u32			errors;
	u32			tx;
	u32			redirect;
};

/**
 * tp4f_frame() - the frame that a frame set stands at
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
 * tp4f_prev_frame() - go to the previous frame
 * @p:	the frame set
 *
 * Return: false if there is none.
 */
static inline bool tp4f_prev_frame(struct tp4_frame_set *p)
{
	if (p->curr == p->start)
		return false;
	p->curr--;
	return true;
}

/**
 * tp4f_num_frames() - count frames
 * @p:	the frame set
 *
 * Return: how many it has.
 */
static inline u32 tp4f_num_frames(const struct tp4_frame_set *p)
{
	return p->end - p->start;
}

/**
 * tp4f_get_frame_id() - name of a frame
 * @p:	the frame set
 *
 * Return: the frame's number in its area.
 */
static inline u64 tp4f_get_frame_id(const struct tp4_frame_set *p)
{
	return tp4f_frame(p)->idx;
}

/**
 * tp4f_get_frame_len() - bytes of data in a frame
 * @p:	the frame set
 *
 * Return: the bytes.
 */
static inline u32 tp4f_get_frame_len(const struct tp4_frame_set *p)
{
	return tp4f_frame(p)->len;
}

/**
 * tp4f_get_data_offset() - where the data is in a frame
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
 * tp4f_get_data() - data of a frame
 * @p:	the frame set
 *
 * The program may write to it at any time.
 *
 * Return: kernel address of the data.
 */
static inline void *tp4f_get_data(const struct tp4_frame_set *p)
{
	const struct tp4_frame *frame = tp4f_frame(p);

	return tp4f_start(p->pkt_arr, frame) + frame->offset;
}

/**
 * tp4f_get_page() - the page that a frame lies in
 * @p:	the frame set, of an array of a V4 ring
 *
 * For a scatterlist. The data begins offset_in_page(tp4f_get_data()) bytes from
 * the page's start; no frame crosses a page.
 *
 * Return: the page.
 */
static inline struct page *tp4f_get_page(const struct tp4_frame_set *p)
{
	const struct tp4_packet_array *a = p->pkt_arr;

	return a->pages[tp4f_frame(p)->idx >> (PAGE_SHIFT - a->frame_shift)];
}

/**
 * struct tp4_dma - where the device sees the frames of an array
 *
 * For a loop over frames: a copy of what tp4f_get_dma() would look up each time.
 */
struct tp4_dma {
	/* private: */
	const dma_addr_t	*pages;	/* one by one, or NULL */
	dma_addr_t		base;	/* where they follow each other */
	u8			frame_shift;
};

/**
 * tp4a_get_dma() - prepare for tp4f_get_dma_of()
 * @a:	an array that was made with a device
 *
 * Return: what is the same for all of its frames.
 */
static inline struct tp4_dma tp4a_get_dma(const struct tp4_packet_array *a)
{
	return (struct tp4_dma) {
		.pages = a->dma,
		.base = a->dma_base,
		.frame_shift = a->frame_shift,
	};
}

/**
 * tp4f_get_dma_of() - data of a frame, for the device
 * @p:		the frame set
 * @dma:	what tp4a_get_dma() has returned for its array
 *
 * Return: as tp4f_get_dma().
 */
static inline dma_addr_t tp4f_get_dma_of(const struct tp4_frame_set *p,
					 const struct tp4_dma *dma)
{
	const struct tp4_frame *frame = tp4f_frame(p);
	u64 pos = (frame->idx << dma->frame_shift) + frame->offset;

	/* The other way round, the sum would be made for both. */
	if (unlikely(!dma->pages))
		return dma->base + pos;
	return dma->pages[pos >> PAGE_SHIFT] + offset_in_page(pos);
}

/**
 * tp4f_get_dma() - data of a frame, for the device
 * @p:	the frame set, of an array that was made with a device
 *
 * Return: DMA address of the data.
 */
static inline dma_addr_t tp4f_get_dma(const struct tp4_frame_set *p)
{
	const struct tp4_dma dma = tp4a_get_dma(p->pkt_arr);

	return tp4f_get_dma_of(p, &dma);
}

/**
 * tp4f_dma_sync_for_cpu() - make what the device wrote visible
 * @p:		the frame set
 * @len:	bytes
 */
static inline void tp4f_dma_sync_for_cpu(const struct tp4_frame_set *p, u32 len)
{
	struct device *dev = p->pkt_arr->dev;

	/* Most have no need to, and then none of the address either. */
	if (dma_dev_need_sync(dev))
		dma_sync_single_for_cpu(dev, tp4f_get_dma(p), len,
					DMA_BIDIRECTIONAL);
}

/**
 * tp4f_dma_sync_for_device() - make what the program wrote visible to DMA
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
 * tp4f_is_last_frame() - does a packet end in this frame?
 * @p:	the frame set
 *
 * Return: whether it does.
 */
static inline bool tp4f_is_last_frame(const struct tp4_frame_set *p)
{
	return !(tp4f_frame(p)->flags & TP4_PKT_CONT);
}

/**
 * tp4a_has_meta() - do packets have metadata?
 * @a:	an array of a V4 ring
 *
 * The program has asked for that when it made the ring.
 *
 * Return: in an array for Rx, whether the program wants to know what the driver
 * can tell of a packet, by tp4f_set_hash() and its like; in one for Tx, whether
 * packets may want something done, see tp4f_has_meta().
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

/* The metadata of a packet, in memory that the program can write to */
static inline struct tpacket4_meta *tp4f_meta(const struct tp4_frame_set *p)
{
	return tp4f_start(p->pkt_arr, tp4f_first(p));
}

/**
 * tp4f_has_meta() - may a packet want something done when it is sent?
 * @p:	the packet, of an array for Tx
 *
 * Return: whether tp4f_get_vnet_hdr() has to be asked.
 */
static inline bool tp4f_has_meta(const struct tp4_frame_set *p)
{
	return tp4f_first(p)->flags & TP4_META;
}

/**
 * tp4f_is_plain() - is a packet to be sent one frame and no more?
 * @p:	the packet, at its first frame
 *
 * Return: false if it goes on in the next frame, or has metadata.
 */
static inline bool tp4f_is_plain(const struct tp4_frame_set *p)
{
	return !(tp4f_frame(p)->flags & (TP4_PKT_CONT | TP4_META));
}

/**
 * tp4f_set_hash() - tell the hash that the device has made of a packet's flow
 * @p:		the packet, of an array for Rx that tp4a_has_meta(); its frames
 *		have been set
 * @hash:	the hash
 */
static inline void tp4f_set_hash(struct tp4_frame_set *p, u32 hash)
{
	tp4f_meta(p)->hash = hash;
	tp4f_first(p)->flags |= TP4F_HASH;
}

/**
 * tp4f_set_csum_valid() - tell that a packet's checksums are known to be right
 * @p:	as for tp4f_set_hash()
 */
static inline void tp4f_set_csum_valid(struct tp4_frame_set *p)
{
	tp4f_first(p)->flags |= TP4F_CSUM_VALID;
}

/**
 * tp4f_set_hwtstamp() - tell when the device has received a packet
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
 * tp4f_set_len() - tell how much was received into an empty frame
 * @p:		the frame set
 * @len:	bytes of data
 *
 * For a packet of one frame, whose data is where the array wants it: nothing
 * else has to be written then. tp4f_set_frame() is for all others.
 */
static inline void tp4f_set_len(struct tp4_frame_set *p, u32 len)
{
	tp4f_frame(p)->len = len;
}

/**
 * tp4f_set_error() - let all frames of a set come back with an error
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
 * tp4f_get_handle() - name of a packet in an array
 * @p:	the packet
 *
 * To know it by until it is flushed: for tp4a_packet_completed(), or to keep
 * something beside the array. As long as tp4_xdp::prepare sees a packet, it has
 * the handle that it was given.
 *
 * Return: a number below the array's size, which is what it was made for, or
 * TP4_MAX_FRAMES if that is more, rounded up to a power of two.
 */
static inline u32 tp4f_get_handle(const struct tp4_frame_set *p)
{
	return p->start & p->pkt_arr->mask;
}

/**
 * tp4f_packet_completed() - tell that the device is done with a packet
 * @p:	the frame set
 *
 * For tp4a_flush_completed(). The packet need not be the oldest.
 */
static inline void tp4f_packet_completed(struct tp4_frame_set *p)
{
	u32 i;

	for (i = p->start; i != p->end; i++)
		p->pkt_arr->items[i & p->pkt_arr->mask].flags |= TP4F_COMPLETED;
}

/**
 * tp4a_packet_completed() - tell that the device is done with a packet
 * @a:		the array, for Tx
 * @handle:	what tp4f_get_handle() has returned for the packet
 *
 * As tp4f_packet_completed(), by what a device gives back.
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
 * tp4f_packet_len() - bytes of data in all frames
 * @p:	the frame set
 *
 * Return: the bytes.
 */
static inline u32 tp4f_packet_len(const struct tp4_frame_set *p)
{
	u32 i, len = 0;

	for (i = p->start; i != p->end; i++)
		len += p->pkt_arr->items[i & p->pkt_arr->mask].len;
	return len;
}

/**
 * tp4f_check_len() - may a device send a packet of this length?
 * @p:		the packet, at its first frame
 * @dev:	the device
 * @len:	the packet's length, as tp4f_packet_len() has it
 *
 * Return: 0, -EINVAL if there is not even a link layer header, -EMSGSIZE if the
 * packet is longer than the MTU allows.
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
 * tp4a_set_xdp() - let packets meet an XDP program when they are flushed
 * @a:		an Rx array of a V4 ring
 * @xdp:	the program, and where its verdicts lead; lives as long as @a
 *
 * Every driver calls it: the stack gets its copies of packets by @xdp, too,
 * where the program has asked for that with TP4_RING_TO_STACK.
 *
 * Context: Before the array is used.
 */
static inline void tp4a_set_xdp(struct tp4_packet_array *a, struct tp4_xdp *xdp)
{
	a->xdp = xdp;
}

/**
 * tp4a_next_frame() - get one frame, and count it as processed
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
 * tp4a_next_by_id() - get one frame, and count it as processed
 * @a:	the array, for Rx
 * @id:	the frame's number: tp4f_get_frame_id() told it when the frame was
 *	handed to the device, and the device has given it back since
 * @p:	set to the frame
 *
 * For a device that fills frames in another order than it got them. What it has
 * are the array's next frames, as for any device, but which of them is which
 * the device alone knows: the array knows how many they are. So frames that the
 * device has leave the array by this function only. It has given back all of
 * them before the array is freed, or before tp4a_to_do() finds the first of
 * them again; those that it has not used can go back to be filled by
 * tp4a_recycle().
 */
static inline void tp4a_next_by_id(struct tp4_packet_array *a, u64 id,
				   struct tp4_frame_set *p)
{
	p->pkt_arr = a;
	p->start = a->curr;
	p->curr = a->curr;
	p->end = ++a->curr;
	tp4f_frame(p)->idx = id;
}

/**
 * tp4a_get_packet() - get a packet by its handle
 * @a:		the array
 * @handle:	what tp4f_get_handle() has returned for the packet, or will
 * @p:		set to the packet, which has been processed and not flushed
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
 * tp4a_next_handle() - handle of the packet that is processed next
 * @a:	the array
 *
 * Return: what tp4f_get_handle() will say of it.
 */
static inline u32 tp4a_next_handle(const struct tp4_packet_array *a)
{
	return a->curr & a->mask;
}

/**
 * tp4a_next_packet() - get the frames of one packet, and count it as processed
 * @a:	the array, for Tx
 * @p:	set to the packet
 *
 * Return: false if there is none.
 */
static inline bool tp4a_next_packet(struct tp4_packet_array *a,
				    struct tp4_frame_set *p)
{
	if (!tp4a_next_frame(a, p))
		return false;

	/* A source gives whole packets only. */
	while (a->items[(a->curr - 1) & a->mask].flags & TP4_PKT_CONT)
		a->curr++;
	p->end = a->curr;
	return true;
}

/**
 * tp4a_nr_done() - count the frames that wait to be flushed
 * @a:	the array
 *
 * Return: how many have been processed since.
 */
static inline u32 tp4a_nr_done(const struct tp4_packet_array *a)
{
	return a->curr - a->start;
}

/**
 * tp4a_nr_to_do() - count the frames that have not been processed
 * @a:	the array
 *
 * Return: how many there are.
 */
static inline u32 tp4a_nr_to_do(const struct tp4_packet_array *a)
{
	return a->end - a->curr;
}

/**
 * tp4a_to_do() - get frames that have not been processed
 * @a:		the array
 * @skip:	how many of the first to leave out: those which the hardware has
 *		already, in an array for Rx
 * @p:		set to the frames; the driver may walk over them by @p->curr
 *
 * With tp4a_processed(), for a driver that hands frames to its hardware, or
 * takes them from it, by the batch.
 *
 * Return: how many there are behind those left out.
 */
static inline u32 tp4a_to_do(struct tp4_packet_array *a, u32 skip,
			     struct tp4_frame_set *p)
{
	p->pkt_arr = a;
	p->start = a->curr + skip;
	p->curr = p->start;
	p->end = a->end;
	return p->end - p->start;
}

/**
 * tp4a_processed() - count frames as processed
 * @a:	the array
 * @nr:	how many, of the first that there are to do
 */
static inline void tp4a_processed(struct tp4_packet_array *a, u32 nr)
{
	a->curr += nr;
}

/* All of the following are in net/packet/tp4_array*.c. */
u32 tp4_frame_room(const void *rx_opaque);
struct tp4_packet_array *tp4a_rx_new(void *rx_opaque, size_t elems,
				     struct device *dev);
struct tp4_packet_array *tp4a_tx_new(void *tx_opaque, size_t elems,
				     struct device *dev);
struct tp4_packet_array *tp4a_skb_source_new(size_t elems);
struct tp4_packet_array *
tp4a_skb_sink_new(size_t elems, void *opaque,
		  void (*deliver)(void *opaque, struct sk_buff *skb));
void tp4a_free(struct tp4_packet_array *a);
void tp4a_populate(struct tp4_packet_array *a);
int tp4a_flush(struct tp4_packet_array *a);
void tp4a_flush_sent(struct tp4_packet_array *a, u32 nr);
int tp4a_flush_completed(struct tp4_packet_array *a);
void tp4a_recycle(struct tp4_packet_array *a);
void tp4a_reuse(struct tp4_packet_array *a, u32 nr);
bool tp4a_copy_packet(struct tp4_packet_array *a, struct tp4_frame_set *p);
bool tp4a_add_packet(struct tp4_packet_array *a, struct tp4_frame_set *p);
int tp4a_add_skb(struct tp4_packet_array *a, struct sk_buff *skb);
struct sk_buff *tp4a_next_skb(struct tp4_packet_array *a,
			      struct tp4_frame_set *p);
void tp4f_set_from_skb(struct tp4_frame_set *p, struct sk_buff *skb);
int tp4f_get_vnet_hdr(const struct tp4_frame_set *p,
		      struct virtio_net_hdr *hdr);
struct sk_buff *tp4f_build_skb(struct tp4_frame_set *p, struct net_device *dev,
			       const struct virtio_net_hdr *hdr);
bool tp4a_has_work(const struct tp4_packet_array *a);
bool tp4a_need_wakeup(struct tp4_packet_array *a, bool need);
void tp4a_set_napi(struct tp4_packet_array *a, const struct napi_struct *napi);

#endif /* _LINUX_TPACKET4_H */
