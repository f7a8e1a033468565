/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packets with metadata: IPv4 with a checksum to compute or segments
 */
#ifndef TPACKET4_META_H
#define TPACKET4_META_H

#include "common.h"
#include "wire.h"

#include <linux/if_arp.h>
#include <linux/virtio_net.h>

#define L3		ETH_HLEN
#define L4		(L3 + 20)
#define L4_IP6		(L3 + 40)
#define SIZE		(2 * 65536)	/* more than the longest packet */

static inline __u64 real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* An IPv4 packet of TCP or UDP. Its transport checksum only covers the pseudo
 * header.
 */
static inline void fill_ip4(char *p, int proto, size_t payload, uint32_t seq)
{
	size_t len = header_len(proto) + payload;
	char *ip = p + L3, *l4 = p + L4;

	fill_packet(p, L4 + len, seq);
	put16(p + 12, ETH_P_IP);
	memset(ip, 0, 20);
	ip[0] = 0x45;
	put16(ip + 2, 20 + len);
	ip[8] = 64;
	ip[9] = proto;
	memcpy(ip + 12, "\12\0\0\1\12\0\0\2", 8);
	put16(ip + 10, ~sum_up(ip, 20, 0));
	fill_l4(l4, proto, len, pseudo_sum(ip, proto, len));
}

/* Same for TCP over IPv6 */
static inline void fill_ip6(char *p, size_t payload, uint32_t seq)
{
	size_t len = header_len(IPPROTO_TCP) + payload;
	char *ip = p + L3;

	fill_packet(p, L4_IP6 + len, seq);
	put16(p + 12, ETH_P_IPV6);
	memset(ip, 0, 40);
	ip[0] = 0x60;
	put16(ip + 4, len);
	ip[6] = IPPROTO_TCP;
	ip[7] = 64;
	memcpy(ip + 8, "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	memcpy(ip + 24, "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2", 16);
	fill_l4(p + L4_IP6, IPPROTO_TCP, len,
		sum_up(ip + 8, 32, IPPROTO_TCP + len));
}

/* Checks the checksums, and that the rest is as made by fill_ip4(). @from:
 * position of this packet's payload in the whole one.
 */
static inline bool ip4_ok(const char *p, int len, int proto, size_t whole,
			  size_t from, uint32_t seq)
{
	static char want[SIZE];
	const char *ip = p + L3, *l4 = p + L4;
	int head = L4 + header_len(proto);
	size_t l4_len = len - L4;

	if (len < head)
		return false;
	fill_ip4(want, proto, whole, seq);
	return sum_up(ip, 20, 0) == 0xffff &&
	       sum_up(l4, l4_len, pseudo_sum(ip, proto, l4_len)) == 0xffff &&
	       !memcmp(p + head, want + head + from, len - head);
}

static inline struct tpacket4_meta csum_meta(int proto)
{
	return (struct tpacket4_meta) {
		.flags = TP4_META_CSUM,
		.csum_start = L4,
		.csum_offset = check_at(proto),
	};
}

static inline struct tpacket4_meta gso_meta(int proto, int type, int size)
{
	struct tpacket4_meta m = csum_meta(proto);

	m.flags |= TP4_META_GSO;
	m.gso_type = type;
	m.gso_size = size;
	return m;
}

/* Checks all metadata of a packet of fill_packet() that was received on if_b,
 * except for the timestamp.
 */
static inline void expect_fields(struct __test_metadata *_metadata,
				 const struct tpacket4_meta *m,
				 unsigned int len, int pkt_type)
{
	static const unsigned char zeroes[sizeof(m->reserved)];

	EXPECT_EQ(0U, m->flags & ~(TP4_META_RX_TS_SOFTWARE | TP4_META_RX_HASH));
	EXPECT_EQ(len, m->wire_len);
	EXPECT_EQ(if_nametoindex(if_b), m->ifindex);
	EXPECT_EQ(htons(ETH_P_TEST), m->protocol);
	EXPECT_EQ(ARPHRD_ETHER, m->hatype);
	EXPECT_EQ(pkt_type, m->pkt_type);
	EXPECT_EQ(6, m->halen);
	EXPECT_EQ(0, memcmp(m->addr, "\2\0\0\0\0\2\0\0", 8));
	EXPECT_EQ(0, m->vlan_tci);
	EXPECT_EQ(0, m->vlan_tpid);
	EXPECT_EQ(0, m->xdp_meta_len);
	EXPECT_EQ(0, m->gso_size);
	EXPECT_EQ(0, m->csum_start);
	EXPECT_EQ(0, m->csum_offset);
	EXPECT_EQ(0, m->gso_type);
	EXPECT_EQ(0, m->inner_start);
	EXPECT_EQ(0, m->reserved0);
	EXPECT_EQ(0, m->reserved1);
	EXPECT_EQ(0, memcmp(m->reserved, zeroes, sizeof(zeroes)));
	if (!(m->flags & TP4_META_RX_HASH))
		EXPECT_EQ(0U, m->hash);
}

static inline int get_mac(const char *name, unsigned char mac[6])
{
	struct ifreq ifr = { 0 };
	int err = dev_ioctl(name, SIOCGIFHWADDR, &ifr);

	memcpy(mac, ifr.ifr_hwaddr.sa_data, 6);
	return err;
}

#define DESTS		4

/* Writes the @i-th of DESTS kinds of destination addresses to @pkt. Returns the
 * packet type for a receiver on if_b, or -errno.
 */
static inline int set_dest(char *pkt, unsigned int i)
{
	static const struct {
		unsigned char mac[6];
		int type;
	} to[DESTS] = {
		{ { 2, 0, 0, 0, 0, 1 }, PACKET_OTHERHOST },
		{ { 0 }, PACKET_HOST },
		{ { 1, 0, 0x5e, 0, 0, 1 }, PACKET_MULTICAST },
		{ { 255, 255, 255, 255, 255, 255 }, PACKET_BROADCAST },
	};
	int err = 0;

	memcpy(pkt, to[i].mac, 6);
	if (to[i].type == PACKET_HOST)
		err = get_mac(if_b, (void *)pkt);
	return err ? err : to[i].type;
}

#endif
