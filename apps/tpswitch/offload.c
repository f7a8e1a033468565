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

/* The sum of 16-bit words, not folded */
static u64 sum(const u8 *p, u32 len, u64 s)
{
	u16 word;

	for (; len >= 2; len -= 2, p += 2) {
		memcpy(&word, p, 2);
		s += ntohs(word);
	}
	return len ? s + (*p << 8) : s;
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
	       h->len < len;
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

static bool output(struct sw_port *out, const u8 *data, u32 len)
{
	struct sw_frag frag = { .data = data, .len = len };
	struct sw_packet pkt = { .frag = &frag, .nr = 1, .len = len };

	return out->ops->output(out, &pkt);
}

static bool segment(struct sw_port *out, const u8 *p, u32 len, u32 size)
{
	static u8 buf[SW_LEN];
	struct headers h;
	u32 at, part, i;

	if (!find_headers(p, len, &h))
		return false;
	for (at = h.len, i = 0; at < len; at += part, i++) {
		bool last = len - at <= size;

		part = last ? len - at : size;
		memcpy(buf, p, h.len);
		memcpy(buf + h.len, p + at, part);
		if (h.proto == IPPROTO_TCP) {
			u8 *tcp = buf + h.l4;

			put32(tcp + 4, get32(tcp + 4) + (at - h.len));
			if (!last)
				tcp[13] &= ~(TCP_FIN | TCP_PSH);
			if (i)
				tcp[13] &= ~TCP_CWR;
		}
		finish(buf, h.len + part, &h, i);
		if (!output(out, buf, h.len + part))
			return false;
	}
	return true;
}

/**
 * sw_offload - deliver a packet to a port without metadata
 * @out: port
 * @pkt: packet with checked metadata
 *
 * Return: false if it was dropped, or a part of it.
 */
bool sw_offload(struct sw_port *out, const struct sw_packet *pkt)
{
	const struct tpacket4_meta *meta = pkt->meta;
	static u8 buf[SW_LEN];
	unsigned int i;
	u32 at = 0;
	u16 csum;

	if (meta->flags & TP4_META_CSUM_CRC32C)
		return false;
	for (i = 0; i < pkt->nr; i++) {
		memcpy(buf + at, pkt->frag[i].data, pkt->frag[i].len);
		at += pkt->frag[i].len;
	}
	if (meta->flags & TP4_META_GSO)
		return segment(out, buf, pkt->len, meta->gso_size);
	csum = fold(sum(buf + meta->csum_start, pkt->len - meta->csum_start,
			0));
	put16(buf + meta->csum_start + meta->csum_offset, csum ? csum : 0xffff);
	return output(out, buf, pkt->len);
}
