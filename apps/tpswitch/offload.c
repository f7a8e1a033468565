// SPDX-License-Identifier: GPL-2.0
/*
 * Checksums and segmentation in software, for receivers without metadata. A
 * packet is first copied to one piece, which nobody else writes to.
 */

#include <linux/virtio_net.h>

#include "tpswitch.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4	5
#endif

/* As the kernel's TCP_MIN_GSO_SIZE: a packet has few segments. */
#define MIN_GSO		48

/* More than any stack writes */
#define MAX_HEADERS	512

#define TCP_FIN		0x01
#define TCP_PSH		0x08
#define TCP_CWR		0x80

#define GRE_CSUM	0x80	/* in the first byte */

#define CRC32C_POLY	0x82f63b78	/* bit-reversed */

static u16 get16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static u32 get32(const u8 *p)
{
	return (u32)get16(p) << 16 | get16(p + 2);
}

static void put16(u8 *p, u16 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static void put32(u8 *p, u32 v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

/*
 * The sum of 16-bit words, not folded. It does not depend on the byte order in which
 * words are added, but for the order of its own two bytes.
 */
static u64 sum(const u8 *p, u32 len, u64 s)
{
	u64 words = 0, word;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, 8);
		words += word;
		words += words < word;
	}
	word = 0;
	memcpy(&word, p, len);
	words += word;
	words += words < word;
	words = (words & 0xffffffff) + (words >> 32);
	words = (words & 0xffff) + (words >> 16 & 0xffff) + (words >> 32);
	words = (words & 0xffff) + (words >> 16);
	words = (words & 0xffff) + (words >> 16);
	return s + ntohs(words);
}

static u16 fold(u64 s)
{
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return ~s;
}

/**
 * sw_meta_ok - check metadata as the kernel does
 * @meta: metadata, in memory of the switch
 * @len: bytes of the packet
 *
 * Return: true if nothing in it leads beyond the packet.
 */
bool sw_meta_ok(const struct tpacket4_meta *meta, u32 len)
{
	u8 type = meta->gso_type & ~VIRTIO_NET_HDR_GSO_ECN;
	u32 size = meta->flags & TP4_META_CSUM_CRC32C ? 4 : 2;

	if ((meta->flags & TP4_META_CSUM) &&
	    (u32)meta->csum_start + meta->csum_offset + size > len)
		return false;
	if ((meta->flags & (TP4_META_CSUM_CRC32C | TP4_META_TUNNEL)) &&
	    !(meta->flags & TP4_META_CSUM))
		return false;
	if ((meta->flags & TP4_META_TUNNEL) &&
	    meta->inner_start >= meta->csum_start)
		return false;
	if (!(meta->flags & TP4_META_GSO))
		return true;
	return meta->gso_size >= MIN_GSO &&
	       (type == VIRTIO_NET_HDR_GSO_TCPV4 ||
		type == VIRTIO_NET_HDR_GSO_TCPV6 ||
		type == VIRTIO_NET_HDR_GSO_UDP_L4);
}

/**
 * sw_meta_copy - write the metadata of a packet that is passed on
 * @to: the receiver's
 * @from: the sender's, in memory of the switch
 * @len: bytes of the packet
 */
void sw_meta_copy(struct tpacket4_meta *to, const struct tpacket4_meta *from,
		  u32 len)
{
	struct tpacket4_meta m = *from;

	/* A request to send says nothing about time and length. */
	m.flags &= ~TP4_META_TX_LAUNCH;
	if (!m.wire_len)
		m.wire_len = len;
	memcpy(to, &m, sizeof(m));
}

/* Where the headers of a packet are */
struct headers {
	u32 l3;
	u32 l4;
	u32 len;	/* of all of them, of TCP and UDP */
	bool ipv6;
	u8 proto;
};

/* Find the network header; return its type, or 0. */
static u16 find_network(const u8 *p, u32 len, struct headers *h)
{
	u16 type;

	for (h->l3 = ETH_HLEN; h->l3 + 40 <= len; h->l3 += 4) {
		type = get16(p + h->l3 - 2);
		if (type != ETH_P_8021Q && type != ETH_P_8021AD)
			return type;
	}
	return 0;
}

/* Find what is behind the IP header at h->l3. */
static bool find_ip(const u8 *p, u32 len, u16 type, struct headers *h)
{
	if (h->l3 + 40 > len)
		return false;
	h->ipv6 = type == ETH_P_IPV6;
	if (h->ipv6) {
		h->proto = p[h->l3 + 6];
		h->l4 = h->l3 + 40;
		/* hop-by-hop, routing and destination options */
		while (h->proto == 0 || h->proto == 43 || h->proto == 60) {
			if (h->l4 + 8 > len)
				return false;
			h->proto = p[h->l4];
			h->l4 += 8 + p[h->l4 + 1] * 8;
		}
	} else if (type == ETH_P_IP) {
		h->proto = p[h->l3 + 9];
		h->l4 = h->l3 + (p[h->l3] & 15) * 4;
		if (h->l4 < h->l3 + 20)
			return false;
	} else {
		return false;
	}
	return true;
}

static bool find_transport(const u8 *p, u32 len, struct headers *h)
{
	if (h->proto == IPPROTO_TCP && h->l4 + 20 <= len)
		h->len = h->l4 + (p[h->l4 + 12] >> 4) * 4;
	else if (h->proto == IPPROTO_UDP)
		h->len = h->l4 + 8;
	else
		return false;
	return h->len >= h->l4 + (h->proto == IPPROTO_TCP ? 20 : 8) &&
	       h->len <= len;
}

/*
 * Find the headers around the packet in a tunnel, which starts at @inner; false if they
 * are of no tunnel that has segments. MPLS labels are the same in all segments: then
 * outer->proto is 0.
 */
static bool find_outer(const u8 *p, u32 inner, struct headers *outer)
{
	u16 type = find_network(p, inner + 40, outer);

	if (type == ETH_P_MPLS_UC || type == ETH_P_MPLS_MC) {
		outer->proto = 0;
		return true;
	}
	if (!find_ip(p, inner + 20, type, outer))
		return false;
	switch (outer->proto) {
	case IPPROTO_UDP:
		return outer->l4 + 8 <= inner;
	case IPPROTO_GRE:
		if (outer->l4 + 4 > inner)
			return false;
		return !(p[outer->l4] & GRE_CSUM) || outer->l4 + 8 <= inner;
	case IPPROTO_IPIP:
	case IPPROTO_IPV6:
		return outer->l4 == inner;
	default:
		return false;
	}
}

/* Store a checksum of @p, from the sum of all else that it covers. */
static void put_csum(u8 *p, u32 len, u32 offset, u64 s, bool udp)
{
	u16 csum;

	put16(p + offset, 0);
	csum = fold(sum(p, len, s));
	/* A UDP checksum of 0 means that there is none. */
	put16(p + offset, csum || !udp ? csum : 0xffff);
}

/* Finish the IP header of a segment; return the sum of its pseudo header. */
static u64 finish_ip(u8 *p, u32 len, const struct headers *h, u32 number)
{
	u64 s = h->proto + len - h->l4;
	u8 *ip = p + h->l3;

	if (h->ipv6) {
		put16(ip + 4, len - h->l3 - 40);
		return sum(ip + 8, 32, s);
	}
	put16(ip + 2, len - h->l3);
	put16(ip + 4, get16(ip + 4) + number);
	put_csum(ip, h->l4 - h->l3, 10, 0, false);
	return sum(ip + 12, 8, s);
}

/* Finish the headers of a segment. */
static void finish(u8 *p, u32 len, const struct headers *h, u32 number)
{
	u64 s = finish_ip(p, len, h, number);
	bool udp = h->proto == IPPROTO_UDP;

	if (udp)
		put16(p + h->l4 + 4, len - h->l4);
	put_csum(p + h->l4, len - h->l4, udp ? 6 : 16, s, udp);
}

/* Finish those around it, after the others. */
static void finish_outer(u8 *p, u32 len, const struct headers *outer,
			 u32 number)
{
	u8 *l4 = p + outer->l4;
	u64 s;

	if (!outer->proto)
		return;
	s = finish_ip(p, len, outer, number);
	if (outer->proto == IPPROTO_UDP) {
		put16(l4 + 4, len - outer->l4);
		if (get16(l4 + 6))
			put_csum(l4, len - outer->l4, 6, s, true);
	} else if (outer->proto == IPPROTO_GRE && (*l4 & GRE_CSUM)) {
		put_csum(l4, len - outer->l4, 4, 0, false);
	}
}

/**
 * sw_segments - count the packets that the network will see
 * @pkt: packet, perhaps with checked metadata
 *
 * Return: their number, or one that is not much above it.
 */
u32 sw_segments(const struct sw_packet *pkt)
{
	if (!pkt->meta || !(pkt->meta->flags & TP4_META_GSO))
		return 1;
	return (pkt->len + pkt->meta->gso_size - 1) / pkt->meta->gso_size;
}

static bool output(struct sw_port *out, const u8 *data, u32 len)
{
	struct sw_frag frag = { .data = data, .len = len };
	struct sw_packet pkt = { .frag = &frag, .nr = 1, .len = len };

	out->sw->budget -= SW_COST + len;
	return out->ops->output(out, &pkt);
}

/* Copy a part of a packet to one piece. */
static void copy(u8 *to, const struct sw_packet *pkt, u32 at, u32 len)
{
	const struct sw_frag *f = pkt->frag;
	u32 n;

	for (; at >= f->len; f++)
		at -= f->len;
	for (; len; len -= n, to += n, f++, at = 0) {
		n = f->len - at < len ? f->len - at : len;
		memcpy(to, f->data + at, n);
	}
}

/* Find the headers of a packet and, if it is in a tunnel, those around it. */
static bool find_headers(const u8 *p, u32 len, const struct tpacket4_meta *meta,
			 struct headers *h, struct headers *outer)
{
	u16 type;

	outer->proto = 0;
	if (meta->flags & TP4_META_TUNNEL) {
		if (meta->inner_start + 40U > len ||
		    !find_outer(p, meta->inner_start, outer))
			return false;
		h->l3 = meta->inner_start;
		type = p[h->l3] >> 4 == 4 ? ETH_P_IP : ETH_P_IPV6;
	} else {
		type = find_network(p, len, h);
	}
	return find_ip(p, len, type, h) && find_transport(p, len, h) &&
	       (!(meta->flags & TP4_META_CSUM) || h->l4 == meta->csum_start);
}

/* Deliver segments from the byte *at on, until the budget is used up. */
static bool segment(struct sw_port *out, const struct sw_packet *pkt, u32 *at)
{
	static u8 head[MAX_HEADERS], buf[SW_LEN];
	const u32 size = pkt->meta->gso_size, len = pkt->len;
	struct headers h, outer;
	u32 part, i;

	part = len < sizeof(head) ? len : sizeof(head);
	/* It may change at any time, so it is looked at where it does not. */
	copy(head, pkt, 0, part);
	if (!find_headers(head, part, pkt->meta, &h, &outer) || h.len >= len) {
		*at = 0;
		return false;
	}
	/* It may have changed since the last segment, too. */
	i = *at > h.len ? (*at - h.len) / size : 0;
	for (*at = h.len + i * size; *at < len; *at += part, i++) {
		bool last = len - *at <= size;

		if (i && out->sw->budget <= 0)
			return true;
		part = last ? len - *at : size;
		memcpy(buf, head, h.len);
		copy(buf + h.len, pkt, *at, part);
		if (h.proto == IPPROTO_TCP) {
			u8 *tcp = buf + h.l4;

			put32(tcp + 4, get32(tcp + 4) + (*at - h.len));
			if (!last)
				tcp[13] &= ~(TCP_FIN | TCP_PSH);
			if (i)
				tcp[13] &= ~TCP_CWR;
		}
		finish(buf, h.len + part, &h, i);
		finish_outer(buf, h.len + part, &outer, i);
		if (!output(out, buf, h.len + part)) {
			*at = 0;
			return false;
		}
	}
	*at = 0;
	return true;
}

static u32 crc32c(const u8 *p, u32 len)
{
	u32 crc = ~0U;
	int bit;

	while (len--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? CRC32C_POLY : 0);
	}
	return ~crc;
}

/*
 * Write the checksum of a packet, or of the packet in a tunnel: those around it are
 * right once that is there.
 */
static void write_csum(u8 *p, u32 len, const struct tpacket4_meta *meta)
{
	u8 *at = p + meta->csum_start + meta->csum_offset;
	u32 crc;
	u16 csum;

	p += meta->csum_start;
	len -= meta->csum_start;
	if (meta->flags & TP4_META_CSUM_CRC32C) {
		memset(at, 0, 4);
		crc = htole32(crc32c(p, len));
		memcpy(at, &crc, sizeof(crc));
		return;
	}
	csum = fold(sum(p, len, 0));
	put16(at, csum ? csum : 0xffff);
}

/**
 * sw_offload - deliver a packet to a port without metadata
 * @out: port
 * @pkt: packet with checked metadata
 * @at: where to go on, 0 at first; set to where to go on when there is budget again, or
 *      to 0 if all is done
 *
 * Return: false if it was dropped, or a part of it.
 */
bool sw_offload(struct sw_port *out, const struct sw_packet *pkt, u32 *at)
{
	const struct tpacket4_meta *meta = pkt->meta;
	static u8 buf[SW_LEN];

	if (meta->flags & TP4_META_GSO)
		return segment(out, pkt, at);
	copy(buf, pkt, 0, pkt->len);
	write_csum(buf, pkt->len, meta);
	return output(out, buf, pkt->len);
}
