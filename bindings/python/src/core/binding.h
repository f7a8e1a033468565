/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * What the files of the module share. The interpreter's lock protects all of it:
 * only the system calls that may sleep are made without it.
 */
#ifndef BINDING_H
#define BINDING_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API		0x030b0000
#include <Python.h>
#include <tpacket4_device.h>

/**
 * struct area - memory for packets, and who has each frame
 * @a: the memory
 * @fd: packet socket that has registered it; rings refer to it by this one
 * @pool: the frames that no ring and no packet has
 * @posted: a byte for each frame, not 0 while a ring has it
 * @packets: number of packet objects that have a frame
 * @sockets: number of open sockets
 * @closed: the memory is unmapped when the last packet is gone
 * @forked: this is the child: the frames are the parent's
 * @next: list of all areas, for fork()
 */
struct area {
	PyObject_HEAD
	struct tp4_area a;
	int fd;
	struct tp4_pool pool;
	__u8 *posted;
	size_t packets;
	unsigned int sockets;
	int closed;
	int forked;
	struct area *next;
};

/**
 * struct packet - a frame that the program has, and the packet in it
 * @area: its area
 * @next: the rest of the packet, in another frame, or NULL
 * @exports: number of buffers, each with any number of views
 * @idx: frame number
 * @len: bytes of data in the frame
 * @offset: offset of the data in the frame
 * @flags: TP4_META or 0
 * @owned: 0 after it was sent or released: it has no frame
 * @part: exports the data of this frame alone
 */
struct packet {
	PyObject_HEAD
	struct area *area;
	struct packet *next;
	Py_ssize_t exports;
	__u64 idx;
	__u32 len;
	__u16 offset;
	__u8 flags;
	__u8 owned;
	__u8 part;
};

extern PyTypeObject *area_type, *packet_type;

void *raise_os(enum tp4_where where, int err, const char *name);
PyObject *get_self(PyObject *self, PyObject *unused);
int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type);
void free_object(PyObject *self);

int area_check(const struct area *area);
void area_put(struct area *area, __u64 idx);
void area_unuse(struct area *area);
struct packet *area_packet(struct area *area, PyObject *data);

struct packet *packet_new(struct area *area, const struct tpacket4_desc *d);
int packet_check(const struct packet *packet);
int packet_check_unused(const struct packet *packet);

int add_packet_types(PyObject *module);
int add_socket_types(PyObject *module);
void close_sockets_of_parent(void);

#endif /* BINDING_H */
