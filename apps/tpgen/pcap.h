/* SPDX-License-Identifier: GPL-2.0 */
/* tpgen: reading a capture file */
#ifndef TPGEN_PCAP_H
#define TPGEN_PCAP_H

#include <stddef.h>
#include <linux/types.h>

/* Longer packets are not a packet's data, but a damaged file. */
#define CAPTURE_MAX_PACKET	65535
#define CAPTURE_ERROR		128

/**
 * struct captured - a packet of a file
 * @ns: time stamp in nanoseconds
 * @data: bytes that were captured, in the file's memory
 * @len: number of bytes
 */
struct captured {
	__u64 ns;
	const __u8 *data;
	__u32 len;
};

/**
 * struct capture - the packets of a file
 * @packet: packets, in the order of the file
 * @nr: number of packets
 * @cut: number of packets that were captured only in part
 * @skipped: packets of other link types than Ethernet
 * @incomplete: the file ends within a record
 * @max_len: bytes of the longest packet
 * @file: content of the file
 * @file_len: its length
 */
struct capture {
	struct captured *packet;
	size_t nr;
	__u64 cut;
	__u64 skipped;
	int incomplete;
	__u32 max_len;
	const __u8 *file;
	size_t file_len;
};

int capture_parse(struct capture *c, const __u8 *file, size_t len,
		  char error[CAPTURE_ERROR]);
void capture_free(struct capture *c);

#endif /* TPGEN_PCAP_H */
