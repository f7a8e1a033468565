/* SPDX-License-Identifier: GPL-2.0 */
/* tpgen: finding the packets of a capture file */
#ifndef TPGEN_PCAP_H
#define TPGEN_PCAP_H

#include <stddef.h>
#include <linux/types.h>

/* Longer records are not a packet's data, but a damaged file (libpcap's limit). */
#define CAPTURE_MAX_RECORD	262144
#define CAPTURE_ERROR		128

/**
 * struct captured - a packet of a file
 * @ns: time stamp in nanoseconds
 * @due: when to send it, in nanoseconds from the start of the file, see
 *       capture_schedule()
 * @data: bytes that were captured, in the file's memory
 * @len: number of bytes
 */
struct captured {
	__u64 ns;
	__u64 due;
	const __u8 *data;
	__u32 len;
};

/**
 * struct capture - the packets of a file
 * @packet: packets, in the order of the file
 * @nr: number of packets
 * @cut: number of packets that were captured only in part
 * @skipped: packets of other link types than Ethernet
 * @too_long: packets that are longer than a sender takes
 * @empty: packets without a byte
 * @incomplete: the file ends within a record
 * @damage: what is wrong behind the last packet, or an empty string
 * @max_len: bytes of the longest packet
 * @length: nanoseconds from the start of the file to that of its next loop
 */
struct capture {
	struct captured *packet;
	size_t nr;
	__u64 cut;
	__u64 skipped;
	__u64 too_long;
	__u64 empty;
	int incomplete;
	char damage[CAPTURE_ERROR];
	__u32 max_len;
	__u64 length;
};

int capture_parse(struct capture *c, const __u8 *file, size_t len,
		  __u32 max_packet, char error[CAPTURE_ERROR]);
void capture_schedule(struct capture *c);
void capture_free(struct capture *c);

#endif /* TPGEN_PCAP_H */
