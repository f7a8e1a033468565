// SPDX-License-Identifier: GPL-2.0
/* tpgen: writing received packets to a pcapng file */
#include "pcapng.h"

#define BUFFER		(1 << 20)

/* Blocks are in the byte order of this machine, which the first one tells. */
struct section {
	__u32 type, len, magic;
	__u16 major, minor;
	__u64 section_len;
	__u32 end;
} __attribute__((__packed__));

struct interface {
	__u32 type, len;
	__u16 link, reserved;
	__u32 snap_len;
	__u16 resolution, resolution_len;
	__u8 digits, pad[3];
	__u16 name, name_len;
} __attribute__((__packed__));

struct packet {
	__u32 type, len, interface, stamp_high, stamp_low, captured, original;
};

/**
 * pcapng_start - write what comes before the packets
 * @f: file
 * @ifname: interface that receives
 */
void pcapng_start(FILE *f, const char *ifname)
{
	static const char padding[4];
	const struct section section = {
		.type = 0x0a0d0d0a, .len = sizeof(section), .magic = 0x1a2b3c4d,
		.major = 1, .section_len = ~0ull, .end = sizeof(section),
	};
	const __u16 name_len = strlen(ifname), pad = -name_len & 3;
	const __u32 end[2] = {
		0,	/* end of the options */
		sizeof(struct interface) + name_len + pad + sizeof(end),
	};
	const struct interface interface = {
		.type = 1, .len = end[1], .link = 1,
		.resolution = 9, .resolution_len = 1, .digits = 9,
		.name = 2, .name_len = name_len,
	};

	setvbuf(f, NULL, _IOFBF, BUFFER);
	fwrite(&section, sizeof(section), 1, f);
	fwrite(&interface, sizeof(interface), 1, f);
	fwrite(ifname, 1, name_len, f);
	fwrite(padding, 1, pad, f);
	fwrite(end, sizeof(end), 1, f);
}

/**
 * pcapng_packet - write a packet
 * @f: file, which other threads may write to
 * @ns: time stamp
 * @data: packet
 * @len: bytes of it
 */
void pcapng_packet(FILE *f, __u64 ns, const __u8 *data, __u32 len)
{
	static const char padding[4];
	const __u32 pad = -len & 3;
	const struct packet p = {
		.type = 6, .len = sizeof(p) + len + pad + sizeof(p.len),
		.stamp_high = ns >> 32, .stamp_low = ns,
		.captured = len, .original = len,
	};

	flockfile(f);
	fwrite_unlocked(&p, sizeof(p), 1, f);
	fwrite_unlocked(data, 1, len, f);
	fwrite_unlocked(padding, 1, pad, f);
	fwrite_unlocked(&p.len, sizeof(p.len), 1, f);
	funlockfile(f);
}
