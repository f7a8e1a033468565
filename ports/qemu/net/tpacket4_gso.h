/*
 * AF_PACKET V4 network backend: segmentation
 *
 * This work is licensed under the terms of the GNU GPL, version 2 or later.
 * See the COPYING file in the top-level directory.
 */

#ifndef NET_TPACKET4_GSO_H
#define NET_TPACKET4_GSO_H

#include <linux/if_packet.h>

/* Bytes in front of the data of a packet that is to be segmented */
#define TPACKET4_GSO_HEADROOM 64

/* The longest headers */
#define TPACKET4_GSO_HEADERS  512

/**
 * TPacket4Emit: takes a segment
 * @opaque: as for tpacket4_segment()
 * @data: the segment, which is valid during the call, with the headroom in
 *        front of it
 * @len: its length
 *
 * Returns: 0 if the receiver has to be waited for; the segment is taken
 */
typedef ssize_t TPacket4Emit(void *opaque, uint8_t *data, size_t len);

/**
 * tpacket4_hdr_len: get the length of the headers that each segment has
 * @data: start of a packet with a GSO type
 * @len: bytes at @data
 * @meta: its metadata
 *
 * Returns: the length, or 0 if it cannot be segmented
 */
size_t tpacket4_hdr_len(const uint8_t *data, size_t len,
                        const struct tpacket4_meta *meta);

/**
 * tpacket4_segments: count the segments of a packet
 * @data: start of a packet with a GSO type
 * @len: its length
 * @meta: its metadata
 *
 * Returns: the number, 0 if it cannot be segmented
 */
size_t tpacket4_segments(const uint8_t *data, size_t len,
                         const struct tpacket4_meta *meta);

/**
 * tpacket4_segment: segment a packet, and compute all checksums
 * @data: the packet, which is overwritten
 * @len: its length
 * @meta: its metadata
 * @emit: called for each segment, in order
 * @opaque: first argument of @emit
 *
 * A packet that cannot be segmented is dropped.
 *
 * Returns: 0 if @emit has returned 0 for a segment, else @len
 */
ssize_t tpacket4_segment(uint8_t *data, size_t len,
                         const struct tpacket4_meta *meta, TPacket4Emit *emit,
                         void *opaque);

#endif
