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

	if ((meta->flags & TP4_META_CSUM) &&
	    (u32)meta->csum_start + meta->csum_offset + 2 > len)
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
	u32 len;	/* of all of them */
	bool ipv6;
	u8 proto;
};

static bool find_headers(const u8 *p, u32 len, struct headers *h)
{
	u16 type;

	h->l3 = ETH_HLEN;
	for (;;) {
		if (h->l3 + 40 > len)
			return false;
		type = get16(p + h->l3 - 2);
		if (type != ETH_P_8021Q && type != ETH_P_8021AD)
			break;
		h->l3 += 4;
	}
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
	if (h->proto == IPPROTO_TCP && h->l4 + 20 <= len)
		h->len = h->l4 + (p[h->l4 + 12] >> 4) * 4;
	else if (h->proto == IPPROTO_UDP)
		h->len = h->l4 + 8;
	else
		return false;
	return h->len >= h->l4 + (h->proto == IPPROTO_TCP ? 20 : 8) &&
	       h->len <= len;
}

/* Finish the headers of a segment. */
static void finish(u8 *p, u32 len, const struct headers *h, u32 number)
{
	u32 l4_len = len - h->l4;
	u64 s = h->proto + l4_len;
	u8 *csum;

	if (h->ipv6) {
		put16(p + h->l3 + 4, len - h->l3 - 40);
		s = sum(p + h->l3 + 8, 32, s);
	} else {
		u8 *ip = p + h->l3;

		put16(ip + 2, len - h->l3);
		put16(ip + 4, get16(ip + 4) + number);
		put16(ip + 10, 0);
		put16(ip + 10, fold(sum(ip, h->l4 - h->l3, 0)));
		s = sum(ip + 12, 8, s);
	}
	if (h->proto == IPPROTO_UDP) {
		put16(p + h->l4 + 4, l4_len);
		csum = p + h->l4 + 6;
	} else {
		csum = p + h->l4 + 16;
	}
	put16(csum, 0);
	s = fold(sum(p + h->l4, l4_len, s));
	/* A UDP checksum of 0 means that there is none. */
	put16(csum, s || h->proto != IPPROTO_UDP ? s : 0xffff);
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

/* Deliver segments from the byte *at on, until the budget is used up. */
static bool segment(struct sw_port *out, const struct sw_packet *pkt, u32 *at)
{
	static u8 head[MAX_HEADERS], buf[SW_LEN];
	const u32 size = pkt->meta->gso_size, len = pkt->len;
	struct headers h;
	u32 part, i;

	part = len < sizeof(head) ? len : sizeof(head);
	/* It may change at any time, so it is looked at where it does not. */
	copy(head, pkt, 0, part);
	if (!find_headers(head, part, &h) || h.len >= len) {
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
		if (!output(out, buf, h.len + part)) {
			*at = 0;
			return false;
		}
	}
	*at = 0;
	return true;
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
	u16 csum;

	if (meta->flags & TP4_META_CSUM_CRC32C)
		return false;
	if (meta->flags & TP4_META_GSO)
		return segment(out, pkt, at);
	copy(buf, pkt, 0, pkt->len);
	csum = fold(sum(buf + meta->csum_start, pkt->len - meta->csum_start,
			0));
	put16(buf + meta->csum_start + meta->csum_offset, csum ? csum : 0xffff);
	return output(out, buf, pkt->len);
}
