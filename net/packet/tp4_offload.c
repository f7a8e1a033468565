// SPDX-License-Identifier: GPL-2.0
/* Checksum and segmentation requests of packets, checked for drivers
 *
 * User space can write to the packet and to its metadata at any time, so each
 * value is read once, and the driver uses the copies.
 */

#include <linux/export.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/tpacket4.h>
#include <linux/udp.h>
#include <linux/virtio_net.h>
#include <net/checksum.h>

/* Position of a TCP header's data offset, in units of 32 bits, in the upper half
 * of a byte
 */
#define TP4_TCP_DOFF	12

static u16 tp4_read_be16(const u8 *at)
{
	return READ_ONCE(at[0]) << 8 | READ_ONCE(at[1]);
}

/* Set the length of the headers of a TCP or UDP packet. */
static int tp4_offload_set_hdr_len(const struct tp4_frame_set *p,
				   struct tp4_offload *o)
{
	const u8 *data = tp4f_get_data(p);
	u32 l4_len = sizeof(struct udphdr);

	if (!o->udp) {
		if (o->start + sizeof(struct tcphdr) > tp4f_get_frame_len(p))
			return -EINVAL;
		l4_len = (READ_ONCE(data[o->start + TP4_TCP_DOFF]) >> 4) * 4;
		if (l4_len < sizeof(struct tcphdr))
			return -EINVAL;
	}
	o->hdr_len = o->start + l4_len;
	return o->hdr_len > tp4f_packet_len(p) ? -EINVAL : 0;
}

/* Check the segmentation request of a packet of @len bytes. */
static int tp4_offload_check_gso(const struct tp4_frame_set *p,
				 const struct net_device *dev, u32 len,
				 struct tp4_offload *o)
{
	u32 check = offsetof(struct tcphdr, check), max = U32_MAX;
	int err;

	switch (o->gso_type) {
	case VIRTIO_NET_HDR_GSO_TCPV4:
	case VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN:
	case VIRTIO_NET_HDR_GSO_TCPV6:
	case VIRTIO_NET_HDR_GSO_TCPV6 | VIRTIO_NET_HDR_GSO_ECN:
		break;
	case VIRTIO_NET_HDR_GSO_UDP_L4:
		o->udp = true;
		check = offsetof(struct udphdr, check);
		max = o->mss * UDP_MAX_SEGMENTS;
		break;
	default:
		return -EOPNOTSUPP;
	}
	err = tp4_offload_set_hdr_len(p, o);
	if (err)
		return err;
	if (o->csum_offset != check || !o->mss || o->hdr_len >= len ||
	    o->hdr_len > tp4f_get_frame_len(p) || len - o->hdr_len > max)
		return -EINVAL;
	return tp4f_check_len(p, dev, o->hdr_len + o->mss);
}

/**
 * tp4f_get_offload() - get the checksum or segmentation request of a packet
 * @p:		the packet, of a Tx array, for which tp4f_has_meta() is true
 * @dev:	the device
 * @o:		set to the request
 *
 * Checks that the request is valid and that the packet, or each of its segments,
 * has a length that the MTU allows. The driver must refuse a request that the
 * device does not support.
 *
 * Context: Any.
 * Return: 0, or an error to return the packet with: -EINVAL, -EMSGSIZE, or
 * -EOPNOTSUPP for a request that no driver supports.
 */
int tp4f_get_offload(const struct tp4_frame_set *p,
		     const struct net_device *dev, struct tp4_offload *o)
{
	u32 len = tp4f_packet_len(p);
	struct tpacket4_meta m;
	int err;

	memset(o, 0, sizeof(*o));
	err = tp4f_get_meta(p, &m);
	if (err)
		return err;
	if (!m.flags)
		return tp4f_check_len(p, dev, len);
	/* Segmentation requires a checksum request. */
	if (!(m.flags & TP4_META_CSUM) ||
	    m.flags & (TP4_META_CSUM_CRC32C | TP4_META_TUNNEL))
		return -EOPNOTSUPP;

	o->start = m.csum_start;
	o->csum_offset = m.csum_offset;
	/* Same as virtio_net_hdr_to_skb() */
	if (o->start < ETH_HLEN + sizeof(struct iphdr) ||
	    o->start + o->csum_offset + sizeof(__sum16) > len)
		return -EINVAL;
	if (!(m.flags & TP4_META_GSO))
		return tp4f_check_len(p, dev, len);

	o->gso_type = m.gso_type;
	o->mss = m.gso_size;
	return tp4_offload_check_gso(p, dev, len, o);
}
EXPORT_SYMBOL_GPL(tp4f_get_offload);

/**
 * tp4f_find_headers() - find the headers of a packet with a request
 * @p:	the packet
 * @o:	its request, from tp4f_get_offload(); @o->hdr_len, @o->l2_len, @o->ipv6
 *	and @o->udp are set
 *
 * For devices that need the position and the type of each header. VLAN tags are
 * part of the link layer header.
 *
 * Context: Any.
 * Return: 0, or an error to return the packet with: -EOPNOTSUPP if it is not a
 * TCP or UDP packet of IPv4 or IPv6 whose transport header is at @o->start, or
 * -EINVAL.
 */
int tp4f_find_headers(const struct tp4_frame_set *p, struct tp4_offload *o)
{
	const u8 *ip, *data = tp4f_get_data(p);
	u16 protocol;
	u8 first, l4;

	/* All that is read is before the transport header. */
	if (o->start > tp4f_get_frame_len(p))
		return -EOPNOTSUPP;
	protocol = tp4_read_be16(data + offsetof(struct ethhdr, h_proto));
	o->l2_len = ETH_HLEN;
	while (eth_type_vlan(htons(protocol)) &&
	       o->l2_len < ETH_HLEN + 2 * VLAN_HLEN) {
		protocol = tp4_read_be16(data + o->l2_len + 2);
		o->l2_len += VLAN_HLEN;
	}
	ip = data + o->l2_len;
	first = READ_ONCE(ip[0]);
	if (protocol == ETH_P_IP && first >> 4 == 4 && (first & 0xf) >= 5 &&
	    o->start == o->l2_len + (first & 0xf) * 4) {
		l4 = READ_ONCE(ip[offsetof(struct iphdr, protocol)]);
	} else if (protocol == ETH_P_IPV6 && first >> 4 == 6 &&
		   o->start == o->l2_len + sizeof(struct ipv6hdr)) {
		o->ipv6 = true;
		l4 = READ_ONCE(ip[offsetof(struct ipv6hdr, nexthdr)]);
	} else {
		return -EOPNOTSUPP;
	}

	if (o->gso_type) {
		u8 tcp = o->ipv6 ? VIRTIO_NET_HDR_GSO_TCPV6 :
				   VIRTIO_NET_HDR_GSO_TCPV4;

		if (l4 != (o->udp ? IPPROTO_UDP : IPPROTO_TCP) ||
		    (!o->udp && (o->gso_type & ~VIRTIO_NET_HDR_GSO_ECN) != tcp))
			return -EINVAL;
		return 0;
	}
	if (l4 == IPPROTO_UDP && o->csum_offset == offsetof(struct udphdr, check))
		o->udp = true;
	else if (l4 != IPPROTO_TCP ||
		 o->csum_offset != offsetof(struct tcphdr, check))
		return -EOPNOTSUPP;
	return tp4_offload_set_hdr_len(p, o);
}
EXPORT_SYMBOL_GPL(tp4f_find_headers);

/**
 * tp4f_checksum() - compute the checksum of a packet that has a request
 * @p:	the packet, which is going to be sent; tp4f_has_meta() is false after this
 *	call. The current frame does not change.
 * @o:	its request, from tp4f_get_offload(), without segmentation
 *
 * For devices that do not compute checksums. Writes the checksum to the packet.
 *
 * Context: Any.
 */
void tp4f_checksum(const struct tp4_frame_set *p, const struct tp4_offload *o)
{
	u32 check = o->start + o->csum_offset, pos = 0, skip, len;
	struct tp4_frame_set frames = *p;
	u8 *data, *to[2] = {};
	__wsum part, sum = 0;
	__sum16 folded;

	tp4f_reset(&frames);
	do {
		data = tp4f_get_data(&frames);
		len = tp4f_get_frame_len(&frames);
		skip = o->start > pos ? min(o->start - pos, len) : 0;
		part = csum_partial(data + skip, len - skip, 0);
		sum = csum_block_add(sum, part, pos + skip - o->start);
		/* Both bytes may be in different frames. */
		if (check - pos < len)
			to[0] = data + check - pos;
		if (check + 1 - pos < len)
			to[1] = data + check + 1 - pos;
		pos += len;
	} while (tp4f_next_frame(&frames));

	/* UDP has no checksum if it is 0. */
	folded = csum_fold(sum) ?: CSUM_MANGLED_0;
	*to[0] = ((u8 *)&folded)[0];
	*to[1] = ((u8 *)&folded)[1];
	/* To compute it again would be wrong. */
	tp4f_first(p)->flags &= ~TP4_META;
}
EXPORT_SYMBOL_GPL(tp4f_checksum);
