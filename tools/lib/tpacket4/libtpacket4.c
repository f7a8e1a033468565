// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * libtpacket4.so: the functions of tpacket4.h and tpacket4_device.h for
 * languages that cannot call inline functions of C, and functions that allocate
 * structures, for languages that do not know how large they are.
 */
#define TP4_API __attribute__((__visibility__("default")))
#define __TP4_SHARED_OBJECT

#include <assert.h>
#include <stdlib.h>
#include <tpacket4_device.h>

/* --- structures -------------------------------------------------------- */

/**
 * tp4_area_new - allocate a structure for an area
 *
 * Return: the structure, zeroed; or NULL without memory.
 */
TP4_API struct tp4_area *tp4_area_new(void)
{
	return calloc(1, sizeof(struct tp4_area));
}

/**
 * tp4_area_free - destroy an area and free the structure
 * @a: of tp4_area_new(), or NULL
 */
TP4_API void tp4_area_free(struct tp4_area *a)
{
	if (a)
		tp4_area_destroy(a);
	free(a);
}

/**
 * tp4_socket_new - allocate a structure for tp4_open()
 *
 * Return: the structure, zeroed; or NULL without memory.
 */
TP4_API struct tp4_socket *tp4_socket_new(void)
{
	return calloc(1, sizeof(struct tp4_socket));
}

/**
 * tp4_socket_free - close a socket and free the structure
 * @s: of tp4_socket_new(), or NULL
 */
TP4_API void tp4_socket_free(struct tp4_socket *s)
{
	if (s)
		tp4_close(s);
	free(s);
}

/**
 * tp4_socket_fd - return the packet socket
 * @s: socket
 *
 * Return: the file descriptor, -1 if the socket is not open.
 */
TP4_API int tp4_socket_fd(const struct tp4_socket *s)
{
	return s->map ? s->fd : -1;
}

/**
 * tp4_socket_rx - return the Rx ring
 * @s: socket
 *
 * Return: the ring, which has no slots if the socket has none.
 */
TP4_API struct tp4_ring *tp4_socket_rx(struct tp4_socket *s)
{
	return &s->rx;
}

/**
 * tp4_socket_tx - return the Tx ring
 * @s: socket
 *
 * Return: the ring, which has no slots if the socket has none.
 */
TP4_API struct tp4_ring *tp4_socket_tx(struct tp4_socket *s)
{
	return &s->tx;
}

/**
 * tp4_socket_failed - return the step in which tp4_open() has failed
 * @s: socket
 *
 * Return: the step, for tp4_strerror().
 */
TP4_API enum tp4_where tp4_socket_failed(const struct tp4_socket *s)
{
	return s->failed;
}

/**
 * tp4_queues_new - allocate a structure for tp4_open_queues()
 *
 * Return: the structure, zeroed; or NULL without memory.
 */
TP4_API struct tp4_queues *tp4_queues_new(void)
{
	return calloc(1, sizeof(struct tp4_queues));
}

/**
 * tp4_queues_free - close the sockets and free the structure
 * @q: of tp4_queues_new(), or NULL
 */
TP4_API void tp4_queues_free(struct tp4_queues *q)
{
	if (q)
		tp4_close_queues(q);
	free(q);
}

/**
 * tp4_queues_socket - return one of the sockets
 * @q: queues
 * @i: index, from 0 on
 *
 * Return: the socket, or NULL if there are not so many.
 */
TP4_API struct tp4_socket *tp4_queues_socket(struct tp4_queues *q,
					     unsigned int i)
{
	return i < q->nr ? &q->s[i] : NULL;
}

/* --- version 1.4 ------------------------------------------------------- */

/*
 * Programs have these. Another layout needs another version of the functions
 * that use it; struct tp4_options may grow.
 */
#ifdef __LP64__
static_assert(sizeof(struct tp4_area) == 40, "tp4_area");
static_assert(sizeof(struct tp4_ring) == 32, "tp4_ring");
static_assert(sizeof(struct tp4_socket) == 112, "tp4_socket");
static_assert(offsetof(struct tp4_options, size) == 48, "tp4_options");
static_assert(sizeof(struct tp4_pool) == 16, "tp4_pool");
static_assert(sizeof(struct tp4_device) == 24, "tp4_device");
#endif

/* --- version 1.3 ------------------------------------------------------- */

/*
 * Programs of version 1.3 have a shorter struct tp4_area, and padding in place
 * of packed in struct tp4_options.
 */
struct area_1_3 {
	__u8 *addr;
	size_t len;
	__u32 frame_size;
	__u32 nr_frames;
	int memfd;
	int shared;
};

/* The function name_1_3() is name() for these programs. */
#define V1_3(name)							\
	__asm__(".symver " #name "_1_3," #name "@TPACKET4_1.3\n"	\
		".symver " #name "," #name "@@@TPACKET4_1.4")

static struct tp4_area from_1_3(const struct area_1_3 *old)
{
	struct tp4_area a = { .addr = NULL };

	memcpy(&a, old, sizeof(*old));
	return a;
}

static int to_1_3(struct area_1_3 *old, const struct tp4_area *a, int err)
{
	memcpy(old, a, sizeof(*old));
	return err;
}

V1_3(tp4_area_create);
TP4_API int tp4_area_create_1_3(struct area_1_3 *old, __u32 nr_frames,
				__u32 frame_size)
{
	struct tp4_area a;
	int err = tp4_area_create(&a, nr_frames, frame_size);

	return to_1_3(old, &a, err);
}

V1_3(tp4_area_create_huge);
TP4_API int tp4_area_create_huge_1_3(struct area_1_3 *old, __u32 nr_frames,
				     __u32 frame_size)
{
	struct tp4_area a;
	int err = tp4_area_create_huge(&a, nr_frames, frame_size);

	return to_1_3(old, &a, err);
}

V1_3(tp4_area_attach);
TP4_API int tp4_area_attach_1_3(struct area_1_3 *old)
{
	struct tp4_area a = from_1_3(old);
	int err = tp4_area_attach(&a);

	return to_1_3(old, &a, err);
}

V1_3(tp4_area_destroy);
TP4_API void tp4_area_destroy_1_3(struct area_1_3 *old)
{
	struct tp4_area a = from_1_3(old);

	tp4_area_destroy(&a);
	to_1_3(old, &a, 0);
}

V1_3(tp4_area_register);
TP4_API int tp4_area_register_1_3(const struct area_1_3 *old, int fd,
				  __u32 headroom)
{
	struct tp4_area a = from_1_3(old);

	return tp4_area_register(&a, fd, headroom);
}

V1_3(tp4_frame);
TP4_API __u8 *tp4_frame_1_3(const struct area_1_3 *old, __u64 idx)
{
	struct tp4_area a = from_1_3(old);

	return tp4_frame(&a, idx);
}

V1_3(tp4_data);
TP4_API __u8 *tp4_data_1_3(const struct area_1_3 *old,
			   const struct tpacket4_desc *d)
{
	struct tp4_area a = from_1_3(old);

	return tp4_data(&a, d);
}

V1_3(tp4_meta);
TP4_API struct tpacket4_meta *tp4_meta_1_3(const struct area_1_3 *old,
					   const struct tpacket4_desc *d)
{
	struct tp4_area a = from_1_3(old);

	return tp4_meta(&a, d);
}

V1_3(tp4_meta_new);
TP4_API struct tpacket4_meta *tp4_meta_new_1_3(const struct area_1_3 *old,
					       struct tpacket4_desc *d)
{
	struct tp4_area a = from_1_3(old);

	return tp4_meta_new(&a, d);
}

V1_3(tp4_open);
TP4_API int tp4_open_1_3(struct tp4_socket *s, const struct tp4_options *old)
{
	struct tp4_options opt = { .rx_nr = 0 };
	struct tp4_area a;

	memcpy(&opt, old, offsetof(struct tp4_options, packed));
	if (opt.area) {
		a = from_1_3((const struct area_1_3 *)opt.area);
		opt.area = &a;
	}
	return tp4_open(s, &opt);
}
