/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Headers and checksums of packets
 */
#ifndef TPACKET4_WIRE_H
#define TPACKET4_WIRE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void put16(char *p, unsigned int v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static inline unsigned int get16(const char *p)
{
	return (unsigned char)p[0] << 8 | (unsigned char)p[1];
}

static inline unsigned int sum_up(const char *p, size_t len, unsigned int sum)
{
	const unsigned char *u = (const unsigned char *)p;
	size_t i;

	for (i = 0; i < len; i++)
		sum += i & 1 ? u[i] : u[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static inline int check_at(int proto)
{
	return proto == IPPROTO_TCP ? 16 : 6;
}

static inline int header_len(int proto)
{
	return proto == IPPROTO_TCP ? 20 : 8;
}

/* Checksum of addresses, protocol and length */
static inline unsigned int pseudo_sum(const char *ip, int proto, size_t len)
{
	return sum_up(ip + 12, 8, proto + len);
}

/* The header of a packet of @len bytes behind IP, with @check for a checksum */
static inline void fill_l4(char *l4, int proto, size_t len, unsigned int check)
{
	memset(l4, 0, header_len(proto));
	put16(l4, 1000);
	put16(l4 + 2, 2000);
	if (proto == IPPROTO_TCP) {
		l4[12] = 0x50;
		l4[13] = 0x10;
	} else {
		put16(l4 + 4, len);
	}
	put16(l4 + check_at(proto), check);
}

#endif
