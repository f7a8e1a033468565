/* SPDX-License-Identifier: GPL-2.0 */
/* The table of addresses: which port each of them is at */
#ifndef __TPSWITCH_MACS_H
#define __TPSWITCH_MACS_H

#include <endian.h>

#include "tpswitch.h"

#define SW_SETS		16384		/* a power of two */
#define SW_WAYS		4
#define SW_MULTICAST	0x10000ull	/* of an address as sw_mac_of() has it */

/**
 * struct sw_mac - an address
 * @key: the address as sw_mac_of() has it, and the VLAN in the low bits; 0: none
 * @seen: when a packet came from it, in seconds
 * @port: number of its port
 * @fixed: the administrator has said so: it does not age or move
 */
struct sw_mac {
	u64 key;
	u32 seen;
	u16 port;
	bool fixed;
};

/**
 * struct sw_macs - the table of addresses
 * @secret: a random key, expanded for sw_mac_hash()
 * @swept: when aged addresses were removed last, in seconds
 * @none: the entry of an address that is not there
 * @set: a cache line of addresses for each hash
 */
struct sw_macs {
	u64 secret[4];
	u32 swept;
	struct sw_mac none;
	struct sw_mac set[SW_SETS][SW_WAYS] __attribute__((__aligned__(64)));
};

/* An address at the start of eight bytes; its first byte in bits 16 to 23 */
static inline u64 sw_mac_at_0(u64 bytes)
{
	return le64toh(bytes) << 16;
}

/* An address two bytes behind the start of eight bytes */
static inline u64 sw_mac_at_2(u64 bytes)
{
	return le64toh(bytes) & ~0xffffull;
}

/* An address; reads two bytes more */
static inline u64 sw_mac_of(const u8 *p)
{
	u64 bytes;

	memcpy(&bytes, p, sizeof(bytes));
	return sw_mac_at_0(bytes);
}

#define SIP_ROTATE(v, n)	((v) << (n) | (v) >> (64 - (n)))
#define SIP_ROUND() do { \
		v0 += v1; v1 = SIP_ROTATE(v1, 13); v1 ^= v0; v0 = SIP_ROTATE(v0, 32); \
		v2 += v3; v3 = SIP_ROTATE(v3, 16); v3 ^= v2; \
		v0 += v3; v3 = SIP_ROTATE(v3, 21); v3 ^= v0; \
		v2 += v1; v1 = SIP_ROTATE(v1, 17); v1 ^= v2; v2 = SIP_ROTATE(v2, 32); \
	} while (0)

/*
 * SipHash-1-3 of a word, without the block that has the length, as all words are as
 * long: who does not know the secret cannot choose addresses with the same hash.
 */
static inline u64 sw_mac_hash(const struct sw_macs *macs, u64 key)
{
	u64 v0 = macs->secret[0], v1 = macs->secret[1];
	u64 v2 = macs->secret[2], v3 = macs->secret[3] ^ key;

	SIP_ROUND();
	v0 ^= key;
	v2 ^= 0xff;
	SIP_ROUND();
	SIP_ROUND();
	SIP_ROUND();
	return v0 ^ v1 ^ v2 ^ v3;
}

/* Has an address not been seen for too long? */
static inline bool sw_mac_aged(const struct sw *sw, const struct sw_mac *m)
{
	return sw->seconds - m->seen > sw->age;
}

/* macs.c */
struct sw_mac *sw_mac_get(struct sw *sw, u64 key);
bool sw_mac_learn(struct sw *sw, struct sw_port *in, u64 key);
unsigned int sw_mac_find(struct sw *sw, u64 key);

#endif /* __TPSWITCH_MACS_H */
