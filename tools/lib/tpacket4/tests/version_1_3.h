/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The structures of tpacket4.h in version 1.3, and functions of libtpacket4.so as
 * programs are bound to them that were linked with that version
 */
#ifndef __TP4_VERSION_1_3_H
#define __TP4_VERSION_1_3_H

#include <linux/if_packet.h>

struct tp4_area {
	__u8 *addr;
	size_t len;
	__u32 frame_size;
	__u32 nr_frames;
	int memfd;
	int shared;
};

struct tp4_ring {
	struct tpacket4_queue q;
	unsigned int seen;
	unsigned int held;
};

struct tp4_socket {
	int fd;
	struct tp4_ring rx;
	struct tp4_ring tx;
	const struct tpacket4_status *status;
	void *map;
	size_t map_len;
	const void *backend;
	__u16 protocol;
	int failed;
};

struct tp4_options {
	unsigned int rx_nr;
	unsigned int tx_nr;
	const struct tp4_area *area;
	__u32 headroom;
	int mr_fd;
	int fd;
	int meta;
	int to_stack;
	__u16 protocol;
	int keep;
};

#define V1_3(name) __asm__(".symver " #name "," #name "@TPACKET4_1.3")

V1_3(tp4_area_attach);
V1_3(tp4_area_create);
V1_3(tp4_area_create_huge);
V1_3(tp4_area_destroy);
V1_3(tp4_area_register);
V1_3(tp4_bind);
V1_3(tp4_close);
V1_3(tp4_data);
V1_3(tp4_frame);
V1_3(tp4_kick);
V1_3(tp4_meta);
V1_3(tp4_meta_new);
V1_3(tp4_open);
V1_3(tp4_ring_at);
V1_3(tp4_ring_fill);
V1_3(tp4_ring_peek);
V1_3(tp4_ring_recycle);
V1_3(tp4_ring_send);
V1_3(tp4_wait);

int tp4_area_attach(struct tp4_area *a);
int tp4_area_create(struct tp4_area *a, __u32 nr, __u32 size);
int tp4_area_create_huge(struct tp4_area *a, __u32 nr, __u32 size);
void tp4_area_destroy(struct tp4_area *a);
int tp4_area_register(const struct tp4_area *a, int fd, __u32 headroom);
int tp4_bind(const struct tp4_socket *s, int ifindex);
void tp4_close(struct tp4_socket *s);
__u8 *tp4_data(const struct tp4_area *a, const struct tpacket4_desc *d);
__u8 *tp4_frame(const struct tp4_area *a, __u64 idx);
int tp4_kick(const struct tp4_socket *s, int flags);
struct tpacket4_meta *tp4_meta(const struct tp4_area *a,
			       const struct tpacket4_desc *d);
struct tpacket4_meta *tp4_meta_new(const struct tp4_area *a,
				   struct tpacket4_desc *d);
int tp4_open(struct tp4_socket *s, const struct tp4_options *opt);
struct tpacket4_desc *tp4_ring_at(const struct tp4_ring *r, unsigned int i);
unsigned int tp4_ring_fill(struct tp4_ring *r, __u64 first, unsigned int n);
unsigned int tp4_ring_peek(struct tp4_ring *r, unsigned int max);
void tp4_ring_recycle(struct tp4_ring *r, unsigned int n);
unsigned int tp4_ring_send(struct tp4_ring *r, const struct tpacket4_desc *d,
			   unsigned int n);
int tp4_wait(struct tp4_socket *s, short events, int timeout);

#endif
