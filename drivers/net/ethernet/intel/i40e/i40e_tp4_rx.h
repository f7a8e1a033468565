/* SPDX-License-Identifier: GPL-2.0 */
/* The Rx loop, which reads descriptors into a packet array
 *
 * struct i40e_tp4_rx_ops has the operations that depend on the source and sink
 * of the array. The loop and the operations are inlined in its two callers.
 */
#ifndef _I40E_TP4_RX_H_
#define _I40E_TP4_RX_H_

#include <linux/bitfield.h>
#include <linux/tpacket4.h>
#include "i40e_txrx_common.h"

/* Number of received packets flushed at a time */
#define I40E_TP4_RX_BATCH	32

/* Status bits of a packet with one descriptor, no errors, no stripped VLAN tag
 * and no timestamp
 */
#define I40E_TP4_RX_PLAIN	BIT_ULL(I40E_RX_DESC_STATUS_EOF_SHIFT)
#define I40E_TP4_RX_PLAIN_MASK	(I40E_TP4_RX_PLAIN | \
				 BIT_ULL(I40E_RX_DESC_STATUS_L2TAG1P_SHIFT) | \
				 BIT_ULL(I40E_RX_DESC_STATUS_TSYNVALID_SHIFT) | \
				 BIT_ULL(I40E_RXD_QW1_ERROR_SHIFT) | \
				 I40E_RXD_QW1_LENGTH_SPH_MASK)

/**
 * struct i40e_tp4_rx_ops - operations of the Rx loop
 * @sync:	make received data visible to the CPU
 * @packet:	receive a packet of @nr descriptors that is not plain; returns
 *		its length, or 0 if the descriptors hold no valid packet
 * @flush:	pass the packets to the sink
 * @meta:	set what the descriptor @ntc says of the plain packet that @p starts
 *		with; NULL if the packets have no metadata
 *
 * @packet and @flush get the last argument of i40e_tp4_receive().
 */
struct i40e_tp4_rx_ops {
	void	(*sync)(const struct tp4_frame_set *p, u32 len);
	u32	(*packet)(struct i40e_ring *rx_ring, u32 nr, void *arg);
	void	(*flush)(struct i40e_ring *rx_ring, void *arg);
	void	(*meta)(struct i40e_ring *rx_ring, u32 ntc,
			struct tp4_frame_set *p);
};

/**
 * struct i40e_tp4_rx_change - what the sink does to packets that are counted
 * @grown:	by how many bytes they have become longer
 * @lost:	how many of them were lost
 */
struct i40e_tp4_rx_change {
	int	grown;
	u32	lost;
};

static inline u64 i40e_tp4_rx_status(const struct i40e_ring *rx_ring, u32 ntc)
{
	return le64_to_cpu(I40E_RX_DESC(rx_ring, ntc)->wb.qword1.status_error_len);
}

/* Advance *@ntc to the next descriptor.
 * Return: the previous descriptor; @p is set to its frame.
 */
static inline union i40e_rx_desc *
i40e_tp4_rx_next(const struct i40e_ring *rx_ring, u32 *ntc,
		 struct tp4_packet_array *rx, struct tp4_frame_set *p)
{
	union i40e_rx_desc *rx_desc = I40E_RX_DESC(rx_ring, *ntc);

	if (unlikely(++*ntc == rx_ring->count))
		*ntc = 0;
	tp4a_next_frame(rx, p);
	return rx_desc;
}

/* Handle a programming status descriptor.
 * Return: true if it is one.
 */
static inline bool i40e_tp4_rx_report(struct i40e_ring *rx_ring,
				      const union i40e_rx_desc *rx_desc,
				      u64 qword)
{
	if (likely(!i40e_rx_is_programming_status(qword)))
		return false;
	i40e_clean_programming_status(rx_ring, rx_desc->raw.qword[0], qword);
	return true;
}

/* The descriptors before @ntc have been cleaned. */
static inline void i40e_tp4_rx_taken(struct i40e_ring *rx_ring, u32 ntc)
{
	rx_ring->next_to_clean = ntc;
	rx_ring->next_to_process = ntc;
}

/* Receive plain packets, the common case, up to the first other one.
 * Return: the number of packets.
 */
static __always_inline u32
i40e_tp4_rx_plain(struct i40e_ring *rx_ring, struct tp4_packet_array *rx,
		  const struct i40e_tp4_rx_ops *ops, u64 plain_mask, u32 max,
		  u32 *bytes)
{
	u32 ntu = rx_ring->next_to_use, count = rx_ring->count;
	u32 nr, left, sum = 0, ntc = rx_ring->next_to_clean;
	const union i40e_rx_desc *rx_desc;
	struct tp4_frame_set p;

	tp4a_get_unprocessed(rx, 0, &p);
	rx_desc = I40E_RX_DESC(rx_ring, ntc);
	for (left = max; left && ntc != ntu; left--) {
		u64 qword = le64_to_cpu(rx_desc->wb.qword1.status_error_len);
		u32 size = FIELD_GET(I40E_RXD_QW1_LENGTH_PBUF_MASK, qword);

		if ((qword & plain_mask) != I40E_TP4_RX_PLAIN || !size)
			break;
		/* Read the data after the status. */
		dma_rmb();
		ops->sync(&p, size);
		tp4f_set_len(&p, size);
		if (ops->meta) {
			p.start = p.curr;
			ops->meta(rx_ring, ntc, &p);
		}
		sum += size;
		p.curr++;
		rx_desc++;
		if (unlikely(++ntc == count)) {
			ntc = 0;
			rx_desc = I40E_RX_DESC(rx_ring, 0);
		}
	}
	nr = max - left;
	tp4a_advance(rx, nr);
	i40e_tp4_rx_taken(rx_ring, ntc);
	*bytes += sum;
	return nr;
}

/* Return the number of descriptors of the next packet, or 0 if it is
 * incomplete. A programming status descriptor counts as a packet, or as a part
 * of the packet around it.
 */
static inline u32 i40e_tp4_rx_ready(const struct i40e_ring *rx_ring)
{
	u32 nr, ntc = rx_ring->next_to_clean;

	for (nr = 1; ntc != rx_ring->next_to_use; nr++) {
		u64 qword = i40e_tp4_rx_status(rx_ring, ntc);

		if (unlikely(i40e_rx_is_programming_status(qword))) {
			if (nr == 1)
				return 1;
		} else if (!(qword & I40E_RXD_QW1_LENGTH_PBUF_MASK)) {
			return 0;
		} else if (qword & BIT_ULL(I40E_RX_DESC_STATUS_EOF_SHIFT)) {
			return nr;
		}
		if (unlikely(++ntc == rx_ring->count))
			ntc = 0;
	}
	return 0;
}

/**
 * i40e_tp4_receive() - receive into a packet array, and flush it
 * @rx_ring:	the ring
 * @rx:		the array with the frames of its descriptors
 * @ops:	the operations, a constant
 * @plain_mask:	I40E_TP4_RX_PLAIN_MASK, without what @ops->flush handles, or 0
 *		if all packets have to go through @ops->packet
 * @budget:	maximum number of packets
 * @change:	what the sink has done to the packets, or NULL
 * @arg:	last argument of the operations
 *
 * Context: NAPI of the ring.
 * Return: the number of packets and programming status descriptors.
 */
static __always_inline int
i40e_tp4_receive(struct i40e_ring *rx_ring, struct tp4_packet_array *rx,
		 const struct i40e_tp4_rx_ops *ops, u64 plain_mask, int budget,
		 const struct i40e_tp4_rx_change *change, void *arg)
{
	u32 bytes = 0, packets = 0;
	int done = 0;

	while (done < budget) {
		u32 len, nr, left = I40E_TP4_RX_BATCH - done % I40E_TP4_RX_BATCH;

		left = min_t(u32, left, budget - done);
		nr = i40e_tp4_rx_plain(rx_ring, rx, ops, plain_mask, left,
				       &bytes);
		packets += nr;
		done += nr;
		if (nr < left) {
			nr = i40e_tp4_rx_ready(rx_ring);
			if (!nr)
				break;
			/* Read the rest of a descriptor after its status. */
			dma_rmb();
			len = ops->packet(rx_ring, nr, arg);
			bytes += len;
			packets += !!len;
			done++;
		}
		if (done % I40E_TP4_RX_BATCH == 0)
			ops->flush(rx_ring, arg);
	}
	ops->flush(rx_ring, arg);
	if (change) {
		bytes += change->grown;
		packets -= change->lost;
	}
	i40e_update_rx_stats(rx_ring, bytes, packets);
	return done;
}

#endif /* _I40E_TP4_RX_H_ */
