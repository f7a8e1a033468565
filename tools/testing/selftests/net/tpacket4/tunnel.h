/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packets in tunnels, and their metadata: one that is to be segmented, and a
 * check of its segments
 */
#ifndef TPACKET4_TUNNEL_H
#define TPACKET4_TUNNEL_H

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>

#include "wire.h"

#define TUNNEL_SIZE	(2 * 65536)	/* more than the longest packet */
#define GSO_SIZE	1000

/* What is between the outer and the inner IP header */
enum encap { VXLAN, VXLAN_CSUM, GRE, GRE_CSUM, GRETAP, IPIP, LABELS };

static const struct {
	const char *name;
	enum encap encap;
	int outer;			/* IP version */
	int ext;			/* bytes of extension headers */
} kinds[] = {
	{ "vxlan", VXLAN, 4, 0 },
	{ "vxlan, checksum", VXLAN_CSUM, 4, 0 },
	{ "vxlan, IPv6", VXLAN, 6, 0 },
	{ "vxlan, IPv6, checksum, options", VXLAN_CSUM, 6, 8 },
	{ "gre", GRE, 4, 0 },
	{ "gre, checksum", GRE_CSUM, 4, 0 },
	{ "gretap", GRETAP, 4, 0 },
	{ "gre, IPv6", GRE, 6, 0 },
	{ "gretap, IPv6, options", GRETAP, 6, 16 },
	{ "ipip or sit", IPIP, 4, 0 },
	{ "ip6tnl", IPIP, 6, 0 },
	{ "ip6tnl, options", IPIP, 6, 8 },
	{ "mpls", LABELS, 0, 0 },
};

static const struct {
	const char *name;
	int inner, proto, gso_type;
} inners[] = {
	{ "TCP", 4, IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV4 },
	{ "TCP, ECN", 4, IPPROTO_TCP,
	  VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN },
	{ "TCP, IPv6", 6, IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV6 },
	{ "UDP", 4, IPPROTO_UDP, VIRTIO_NET_HDR_GSO_UDP_L4 },
	{ "UDP, IPv6", 6, IPPROTO_UDP, VIRTIO_NET_HDR_GSO_UDP_L4 },
	{ "no GSO", 4, IPPROTO_TCP, 0 },
	{ "no GSO, IPv6", 6, IPPROTO_UDP, 0 },
};

/* A packet and where its headers are; 0 if it does not have them */
struct packet {
	char data[TUNNEL_SIZE];
	size_t len;
	size_t outer, encap, inner_eth, inner, l4, payload;
	int kind, what;			/* indices of kinds[] and inners[] */
	struct tpacket4_meta m;
};

static struct packet pkt;

static inline unsigned int any_pseudo_sum(const char *ip, int proto, size_t len)
{
	return (ip[0] & 0xf0) == 0x40 ? pseudo_sum(ip, proto, len) :
					sum_up(ip + 8, 32, proto + len);
}

static inline size_t put_ip(char *ip, int version, int ext, int proto,
			    size_t len)
{
	size_t head = version == 4 ? 20 : 40 + ext;

	memset(ip, 0, head);
	if (version == 4) {
		ip[0] = 0x45;
		put16(ip + 2, head + len);
		put16(ip + 6, 0x4000);
		ip[8] = 64;
		ip[9] = proto;
		memcpy(ip + 12, "\12\0\0\1\12\0\0\2", 8);
		put16(ip + 10, ~sum_up(ip, 20, 0));
		return head;
	}
	ip[0] = 0x60;
	put16(ip + 4, ext + len);
	ip[6] = ext ? IPPROTO_DSTOPTS : proto;
	ip[7] = 64;
	memcpy(ip + 8, "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	memcpy(ip + 24, "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2", 16);
	if (ext) {
		ip[40] = proto;
		ip[41] = ext / 8 - 1;
		ip[42] = 1;		/* PadN */
		ip[43] = ext - 4;
	}
	return head;
}

static inline void put_macs(char *eth)
{
	memcpy(eth, "\2\0\0\0\0\1\2\0\0\0\0\2", 12);
}

static inline int encap_proto(enum encap encap, int inner)
{
	switch (encap) {
	case VXLAN:
	case VXLAN_CSUM:
		return IPPROTO_UDP;
	case IPIP:
		return inner == 4 ? IPPROTO_IPIP : IPPROTO_IPV6;
	default:
		return IPPROTO_GRE;
	}
}

static inline size_t encap_len(enum encap encap)
{
	static const size_t len[] = { 16, 16, 8, 8, 8, 0, 8 };

	return len[encap];
}

static inline bool has_inner_eth(enum encap encap)
{
	return encap == VXLAN || encap == VXLAN_CSUM || encap == GRETAP;
}

/* The header of a tunnel of @len bytes; a checksum that covers the packet only
 * has the pseudo header.
 */
static inline void put_encap(char *p, const char *ip, enum encap encap,
			     int inner, size_t len)
{
	int type = inner == 4 ? ETH_P_IP : ETH_P_IPV6;

	memset(p, 0, encap_len(encap));
	switch (encap) {
	case VXLAN:
	case VXLAN_CSUM:
		put16(p, 5000);
		put16(p + 2, 4789);
		put16(p + 4, len);
		if (encap == VXLAN_CSUM)
			put16(p + 6, any_pseudo_sum(ip, IPPROTO_UDP, len));
		p[8] = 8;
		p[14] = 42;
		break;
	case GRE:
		p[0] = 0x20;		/* key */
		put16(p + 2, type);
		p[7] = 42;
		break;
	case GRE_CSUM:
		p[0] = 0x80;
		put16(p + 2, type);
		break;
	case GRETAP:
		p[0] = 0x10;		/* number */
		put16(p + 2, ETH_P_TEB);
		break;
	case LABELS:
		put16(p, 6);
		p[3] = 64;
		put16(p + 4, 7);
		p[6] = 1;		/* the last one */
		p[7] = 64;
		break;
	case IPIP:
		break;
	}
}

/* The checksum of a tunnel's header in a packet that is not segmented: it is
 * that of the whole packet, once the inner checksum is there. Then the sum of
 * the bytes under the inner checksum is the complement of its pseudo header.
 */
static inline void put_encap_csum(char *p, enum encap encap, size_t len)
{
	size_t at = encap == VXLAN_CSUM ? 6 : 4;
	unsigned int sum = 0;

	if (encap != VXLAN_CSUM && encap != GRE_CSUM)
		return;
	if (encap == VXLAN_CSUM)
		sum = any_pseudo_sum(p + pkt.outer, IPPROTO_UDP, len);
	sum += 0xffff - get16(p + pkt.m.csum_start + pkt.m.csum_offset);
	put16(p + pkt.encap + at, 0);
	put16(p + pkt.encap + at,
	      ~sum_up(p + pkt.encap, pkt.l4 - pkt.encap, sum));
}

/* A packet of kinds[@kind] with inners[@what] and @payload bytes */
static inline void fill_tunnel(int kind, int what, size_t payload)
{
	enum encap encap = kinds[kind].encap;
	int proto = inners[what].proto, inner = inners[what].inner;
	size_t l4_len = header_len(proto) + payload;
	size_t inner_len = (inner == 4 ? 20 : 40) + l4_len;
	size_t eth_len = has_inner_eth(encap) ? ETH_HLEN : 0;
	size_t len = encap_len(encap) + eth_len + inner_len;
	char *p = pkt.data;
	size_t i;

	pkt.kind = kind;
	pkt.what = what;
	put_macs(p);
	pkt.outer = ETH_HLEN;
	pkt.encap = ETH_HLEN;
	if (encap == LABELS) {
		put16(p + 12, 0x8847);
	} else {
		put16(p + 12, kinds[kind].outer == 4 ? ETH_P_IP : ETH_P_IPV6);
		pkt.encap += put_ip(p + ETH_HLEN, kinds[kind].outer,
				    kinds[kind].ext, encap_proto(encap, inner),
				    len);
	}
	put_encap(p + pkt.encap, p + pkt.outer, encap, inner, len);
	pkt.inner_eth = pkt.encap + encap_len(encap);
	pkt.inner = pkt.inner_eth + eth_len;
	if (eth_len) {
		put_macs(p + pkt.inner_eth);
		put16(p + pkt.inner_eth + 12,
		      inner == 4 ? ETH_P_IP : ETH_P_IPV6);
	}
	pkt.l4 = pkt.inner + put_ip(p + pkt.inner, inner, 0, proto, l4_len);
	fill_l4(p + pkt.l4, proto, l4_len,
		any_pseudo_sum(p + pkt.inner, proto, l4_len));
	pkt.payload = pkt.l4 + header_len(proto);
	for (i = 0; i < payload; i++)
		p[pkt.payload + i] = i * 7 + (i >> 8);
	pkt.len = pkt.payload + payload;

	pkt.m = (struct tpacket4_meta) {
		.flags = TP4_META_CSUM | TP4_META_TUNNEL,
		.csum_start = pkt.l4,
		.csum_offset = check_at(proto),
		.inner_start = pkt.inner,
	};
	if (inners[what].gso_type) {
		pkt.m.flags |= TP4_META_GSO;
		pkt.m.gso_type = inners[what].gso_type;
		pkt.m.gso_size = GSO_SIZE;
	} else {
		put_encap_csum(p, encap, len);
	}
}

/* Are lengths and checksums of an IP header right for @len bytes? */
static inline bool ip_ok(const char *ip, int version, int ext, size_t len)
{
	if (version == 4)
		return get16(ip + 2) == len && sum_up(ip, 20, 0) == 0xffff;
	return get16(ip + 4) == len - 40 && (!ext || ip[41] == ext / 8 - 1);
}

static inline bool encap_ok(const char *p, const char *ip, enum encap encap,
			    size_t len)
{
	switch (encap) {
	case VXLAN:
	case VXLAN_CSUM:
		if (get16(p + 4) != len)
			return false;
		if (encap == VXLAN)
			return !get16(p + 6);
		return sum_up(p, len, any_pseudo_sum(ip, IPPROTO_UDP, len)) ==
		       0xffff;
	case GRE_CSUM:
		return sum_up(p, len, 0) == 0xffff;
	default:
		return !memcmp(p, pkt.data + pkt.encap, encap_len(encap));
	}
}

/* Is this a whole packet of @pkt, with all checksums, and its payload that from
 * byte @from on?
 */
static inline bool segment_ok(const char *p, size_t len, size_t from)
{
	enum encap encap = kinds[pkt.kind].encap;
	int proto = inners[pkt.what].proto;
	size_t l4_len = len - pkt.l4;

	if (len < pkt.payload)
		return false;
	if (encap != LABELS && !ip_ok(p + pkt.outer, kinds[pkt.kind].outer,
				      kinds[pkt.kind].ext, len - pkt.outer))
		return false;
	return encap_ok(p + pkt.encap, p + pkt.outer, encap, len - pkt.encap) &&
	       !memcmp(p + pkt.inner_eth, pkt.data + pkt.inner_eth,
		       pkt.inner - pkt.inner_eth) &&
	       ip_ok(p + pkt.inner, inners[pkt.what].inner, 0,
		     len - pkt.inner) &&
	       sum_up(p + pkt.l4, l4_len, any_pseudo_sum(p + pkt.inner, proto,
							 l4_len)) == 0xffff &&
	       !memcmp(p + pkt.payload, pkt.data + pkt.payload + from,
		       len - pkt.payload);
}

static inline uint32_t crc32c(const char *p, size_t len)
{
	uint32_t crc = ~0U;
	unsigned int i;

	while (len--) {
		crc ^= (unsigned char)*p++;
		for (i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

/* An SCTP packet, alone or in a VXLAN */
static inline void fill_sctp(bool tunnel)
{
	char *sctp;

	fill_tunnel(0, 5, 1000);
	if (!tunnel) {
		memmove(pkt.data + ETH_HLEN, pkt.data + pkt.inner,
			pkt.len - pkt.inner);
		put16(pkt.data + 12, ETH_P_IP);
		pkt.len -= pkt.inner - ETH_HLEN;
		pkt.l4 -= pkt.inner - ETH_HLEN;
		pkt.inner = ETH_HLEN;
		pkt.m.flags &= ~TP4_META_TUNNEL;
		pkt.m.inner_start = 0;
		pkt.m.csum_start = pkt.l4;
	}
	pkt.data[pkt.inner + 9] = IPPROTO_SCTP;
	put16(pkt.data + pkt.inner + 10, 0);
	put16(pkt.data + pkt.inner + 10, ~sum_up(pkt.data + pkt.inner, 20, 0));
	sctp = pkt.data + pkt.l4;
	memset(sctp + 8, 0, 4);
	pkt.m.flags |= TP4_META_CSUM_CRC32C;
	pkt.m.csum_offset = 8;
}

#endif
