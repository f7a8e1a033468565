// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * Areas and packets. A packet object has its frame until the object, and every
 * view of its data, is gone; then the frame can be posted again.
 */
#include "binding.h"

#include <pthread.h>
#include <stdlib.h>

PyTypeObject *area_type, *packet_type;
static PyTypeObject *meta_type;
static struct area *areas;

/* --- helpers -------------------------------------------------------------- */

/* Raise the OSError of @err, with this sentence, and with a device if not NULL. */
static void raise_text(int err, const char *text, const char *name)
{
	PyObject *exc = PyObject_CallFunction(PyExc_OSError, name ? "iss" : "is",
					      err, text, name);

	if (exc)
		PyErr_SetObject((PyObject *)Py_TYPE(exc), exc);
	Py_XDECREF(exc);
}

/* Raise the OSError of an errno or -errno, with the library's sentence. */
void *raise_os(enum tp4_where where, int err, const char *name)
{
	err = err < 0 ? -err : err;
	raise_text(err, tp4_strerror(where, err), name);
	return NULL;
}

PyObject *get_self(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return Py_NewRef(self);
}

void free_object(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	release(self);
	Py_DECREF(type);
}

int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type)
{
	*type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
	return *type ? PyModule_AddType(module, *type) : -1;
}

/* --- areas ---------------------------------------------------------------- */

/* The frames of a parent are not ours to touch: neither they nor its rings. */
static void forget_parent(void)
{
	struct area *area;

	close_sockets_of_parent();
	for (area = areas; area; area = area->next) {
		area->forked = 1;
		area->sockets = 0;
		if (!area->a.addr)
			continue;
		close(area->fd);
		area->fd = -1;
		/* Views stay valid, and read zeros. */
		if (mmap(area->a.addr, area->a.len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) == MAP_FAILED)
			abort();
	}
}

int area_check(const struct area *area)
{
	if (area->forked)
		PyErr_SetString(PyExc_RuntimeError,
				"the area and its packets are the parent's, of fork()");
	else if (area->closed)
		PyErr_SetString(PyExc_ValueError, "the area is closed");
	else
		return 0;
	return -1;
}

/* Give a frame back that no ring and no packet has. */
void area_put(struct area *area, __u64 idx)
{
	area->posted[idx] = 0;
	area->pool.frames[area->pool.nr++] = idx;
}

static void area_unmap(struct area *area)
{
	if (area->fd >= 0)
		close(area->fd);
	area->fd = -1;
	tp4_area_destroy(&area->a);
}

/* A packet or a socket has ended. */
void area_unuse(struct area *area)
{
	if (area->closed && !area->packets && !area->sockets)
		area_unmap(area);
}

/* Create the memory, and register it with a socket of its own. */
static int area_set_up(struct area *area, unsigned int frames,
		       unsigned int frame_size, int huge)
{
	enum tp4_where where = TP4_IN_AREA;
	int err;

	err = huge ? tp4_area_create_huge(&area->a, frames, frame_size) :
		     tp4_area_create(&area->a, frames, frame_size);
	if (!err) {
		where = TP4_IN_SOCKET;
		area->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
		err = area->fd < 0 ? -errno : 0;
	}
	if (!err) {
		where = TP4_IN_VERSION;
		err = tp4_setopt(area->fd, PACKET_VERSION, TPACKET_V4);
	}
	if (!err) {
		where = TP4_IN_MEMREG;
		err = tp4_area_register(&area->a, area->fd,
					sizeof(struct tpacket4_meta));
	}
	if (err)
		raise_os(where, err, NULL);
	return err;
}

static PyObject *area_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "frames", "frame_size", "huge", NULL };
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	unsigned int frames, frame_size = 2048;
	struct area *area;
	__u64 *mem;
	int huge = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "I|$Ip", names, &frames,
					 &frame_size, &huge))
		return NULL;
	area = (struct area *)alloc(type, 0);
	if (!area)
		return NULL;
	area->fd = -1;
	area->next = areas;
	areas = area;
	if (area_set_up(area, frames, frame_size, huge))
		goto fail;
	mem = PyMem_Calloc(frames, sizeof(*mem));
	area->posted = PyMem_Calloc(frames, 1);
	if (!mem || !area->posted) {
		PyMem_Free(mem);
		PyErr_NoMemory();
		goto fail;
	}
	tp4_pool_init(&area->pool, mem, 0, frames);
	return (PyObject *)area;

fail:
	Py_DECREF(area);
	return NULL;
}

static void area_dealloc(PyObject *self)
{
	struct area *area = (struct area *)self, **link;

	for (link = &areas; *link != area; link = &(*link)->next)
		;
	*link = area->next;
	area_unmap(area);
	PyMem_Free(area->pool.frames);
	PyMem_Free(area->posted);
	free_object(self);
}

static PyObject *area_close(PyObject *self, PyObject *Py_UNUSED(args))
{
	struct area *area = (struct area *)self;

	if (area->sockets) {
		PyErr_SetString(PyExc_BufferError,
				"a socket of the area is open");
		return NULL;
	}
	area->closed = 1;
	area_unuse(area);
	return Py_NewRef(Py_None);
}

/* Take a free frame, with room for a packet that a receiver can get as it is. */
static struct packet *area_take(struct area *area)
{
	struct tpacket4_desc d = { .offset = TP4_ZC_HEADROOM };

	if (!tp4_pool_get(&area->pool, (__u64 *)&d.idx, 1)) {
		raise_text(ENOBUFS, "no frame of the area is free", NULL);
		return NULL;
	}
	return packet_new(area, &d);
}

/* A packet with these bytes, or with so many zeros, in as many frames as needed */
struct packet *area_packet(struct area *area, PyObject *data)
{
	struct packet *head = NULL, **link = &head;
	__u32 room = area->a.frame_size - TP4_ZC_HEADROOM;
	Py_buffer buf = { .buf = NULL };
	const char *from;
	size_t left;

	if (PyLong_Check(data)) {
		left = PyLong_AsSize_t(data);
		if (left == (size_t)-1 && PyErr_Occurred())
			return NULL;
	} else {
		if (PyObject_GetBuffer(data, &buf, PyBUF_SIMPLE))
			return NULL;
		left = (size_t)buf.len;
	}
	/* The object that has the bytes may have closed it. */
	if (area_check(area))
		goto out;
	if (left > (size_t)area->a.nr_frames * room) {
		PyErr_SetString(PyExc_ValueError,
				"the packet is longer than the area");
		goto out;
	}
	from = buf.buf;
	do {
		struct packet *part = area_take(area);

		if (!part) {
			Py_CLEAR(head);
			break;
		}
		part->len = left < room ? (__u32)left : room;
		if (from) {
			memcpy(tp4_frame(&area->a, part->idx) + part->offset,
			       from, part->len);
			from += part->len;
		} else {
			memset(tp4_frame(&area->a, part->idx) + part->offset, 0,
			       part->len);
		}
		left -= part->len;
		part->part = link != &head;
		*link = part;
		link = &part->next;
	} while (left);
out:
	if (buf.obj)
		PyBuffer_Release(&buf);
	return head;
}

static PyObject *area_packet_method(PyObject *self, PyObject *data)
{
	return (PyObject *)area_packet((struct area *)self, data);
}

static PyObject *area_get(PyObject *self, void *what)
{
	const struct area *area = (const struct area *)self;

	switch (*(const char *)what) {
	case 'f':
		return PyLong_FromUnsignedLong(area->a.nr_frames);
	case 's':
		return PyLong_FromUnsignedLong(area->a.frame_size);
	default:
		return PyLong_FromUnsignedLong(area->pool.nr);
	}
}

static PyMethodDef area_methods[] = {
	{ "__enter__", get_self, METH_NOARGS, NULL },
	{ "__exit__", area_close, METH_VARARGS, NULL },
	{ "close", area_close, METH_NOARGS,
	  "Unmap the memory, once no packet and no view of it is left." },
	{ "packet", area_packet_method, METH_O,
	  "Take free frames for a packet with these bytes, or this many zeros." },
	{ NULL, NULL, 0, NULL }
};

static PyGetSetDef area_getset[] = {
	{ "frames", area_get, NULL, "Number of frames", "f" },
	{ "frame_size", area_get, NULL, "Bytes of a frame", "s" },
	{ "free", area_get, NULL,
	  "Number of frames that no ring and no packet has", "n" },
	{ NULL, NULL, NULL, NULL, NULL }
};

static PyType_Slot area_slots[] = {
	{ Py_tp_doc, "Area(frames, *, frame_size=2048, huge=False)\n--\n\n"
		     "Memory for packets, divided into frames." },
	{ Py_tp_new, area_new },
	{ Py_tp_dealloc, area_dealloc },
	{ Py_tp_methods, area_methods },
	{ Py_tp_getset, area_getset },
	{ 0, NULL }
};

static PyType_Spec area_spec = {
	.name = "tpacket4.Area",
	.basicsize = sizeof(struct area),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = area_slots,
};

/* --- packets -------------------------------------------------------------- */

/* A packet that owns the frame of @d, which is given back if this fails */
struct packet *packet_new(struct area *area, const struct tpacket4_desc *d)
{
	struct packet *packet = PyObject_New(struct packet, packet_type);

	if (!packet) {
		area_put(area, d->idx);
		return NULL;
	}
	packet->area = (struct area *)Py_NewRef((PyObject *)area);
	packet->next = NULL;
	packet->exports = 0;
	packet->idx = d->idx;
	packet->len = d->len;
	packet->offset = d->offset;
	packet->flags = d->flags & TP4_META;
	packet->owned = 1;
	packet->part = 0;
	area->posted[d->idx] = 0;
	area->packets++;
	return packet;
}

/* Give its frame back. */
static void packet_drop(struct packet *packet)
{
	if (!packet->owned)
		return;
	packet->owned = 0;
	area_put(packet->area, packet->idx);
	packet->area->packets--;
	area_unuse(packet->area);
}

static void packet_dealloc(PyObject *self)
{
	struct packet *packet = (struct packet *)self;
	struct packet *next, *rest = packet->next;

	packet->next = NULL;
	packet_drop(packet);
	Py_DECREF((PyObject *)packet->area);
	free_object(self);
	/* One by one: a packet can have more frames than the stack. */
	for (; rest; rest = next) {
		next = Py_REFCNT((PyObject *)rest) == 1 ? rest->next : NULL;
		if (next)
			rest->next = NULL;
		Py_DECREF((PyObject *)rest);
	}
}

int packet_check(const struct packet *packet)
{
	if (packet->area->forked)
		return area_check(packet->area);
	if (packet->owned)
		return 0;
	PyErr_SetString(PyExc_ValueError, "the packet was sent or released");
	return -1;
}

/* Check that no view is left of any of its frames. */
int packet_check_unused(const struct packet *packet)
{
	if (packet_check(packet))
		return -1;
	for (; packet; packet = packet->next) {
		if (packet->exports) {
			PyErr_SetString(PyExc_BufferError,
					"a view of the packet is alive: release() it");
			return -1;
		}
	}
	return 0;
}

static int packet_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
	struct packet *packet = (struct packet *)self;

	view->obj = NULL;
	if (packet_check(packet))
		return -1;
	if (packet->next && !packet->part) {
		PyErr_SetString(PyExc_BufferError,
				"the packet is in several frames: use parts() or bytes()");
		return -1;
	}
	if (PyBuffer_FillInfo(view, self,
			      tp4_frame(&packet->area->a, packet->idx) +
			      packet->offset, packet->len, 0, flags))
		return -1;
	packet->exports++;
	return 0;
}

static void packet_releasebuffer(PyObject *self, Py_buffer *Py_UNUSED(view))
{
	((struct packet *)self)->exports--;
}

static Py_ssize_t packet_length(PyObject *self)
{
	const struct packet *packet = (const struct packet *)self;
	Py_ssize_t len = 0;

	for (; packet; packet = packet->next)
		len += packet->len;
	return len;
}

static PyObject *packet_bytes(PyObject *self, PyObject *Py_UNUSED(args))
{
	const struct packet *packet = (const struct packet *)self;
	PyObject *bytes;
	char *to;

	if (packet_check(packet))
		return NULL;
	bytes = PyBytes_FromStringAndSize(NULL, packet_length(self));
	if (!bytes)
		return NULL;
	to = PyBytes_AsString(bytes);
	for (; packet; packet = packet->next) {
		memcpy(to, tp4_frame(&packet->area->a, packet->idx) +
		       packet->offset, packet->len);
		to += packet->len;
	}
	return bytes;
}

static PyObject *packet_parts(PyObject *self, PyObject *Py_UNUSED(args))
{
	struct packet *packet = (struct packet *)self;
	PyObject *view, *list = PyList_New(0);

	if (!list || packet_check(packet))
		goto fail;
	packet->part = 1;
	for (; packet; packet = packet->next) {
		view = PyMemoryView_FromObject((PyObject *)packet);
		if (!view || PyList_Append(list, view)) {
			Py_XDECREF(view);
			goto fail;
		}
		Py_DECREF(view);
	}
	((struct packet *)self)->part = 0;
	return list;

fail:
	((struct packet *)self)->part = 0;
	Py_XDECREF(list);
	return NULL;
}

static PyObject *packet_release(PyObject *self, PyObject *Py_UNUSED(args))
{
	struct packet *packet = (struct packet *)self;

	if (!packet->owned)
		return Py_NewRef(Py_None);
	if (packet_check_unused(packet))
		return NULL;
	for (; packet; packet = packet->next)
		packet_drop(packet);
	return Py_NewRef(Py_None);
}

static PyObject *packet_data(PyObject *self, void *Py_UNUSED(closure))
{
	return PyMemoryView_FromObject(self);
}

/* --- metadata ------------------------------------------------------------- */

static PyStructSequence_Field meta_fields[] = {
	{ "tstamp", "ns since 1970, or of the device's clock; 0: none" },
	{ "flags", "META_*" },
	{ "wire_len", "length before filters cut the packet" },
	{ "ifindex", "interface" },
	{ "protocol", "Ethernet type" },
	{ "hatype", "ARPHRD_*" },
	{ "vlan_tci", "VLAN tag, if META_RX_VLAN" },
	{ "vlan_tpid", "its Ethernet type" },
	{ "pkt_type", "socket.PACKET_HOST, PACKET_OUTGOING, ..." },
	{ "addr", "address of the sender" },
	{ "hash", "flow hash, if META_RX_HASH" },
	{ "csum_start", "if META_CSUM: where a missing checksum begins" },
	{ "csum_offset", "and where it is to be stored from there" },
	{ "gso_type", "if META_GSO: VIRTIO_NET_HDR_GSO_*" },
	{ "gso_size", "and the payload of a segment" },
	{ NULL, NULL }
};

static PyStructSequence_Desc meta_desc = {
	.name = "tpacket4.Meta",
	.doc = "Metadata of a received packet",
	.fields = meta_fields,
	.n_in_sequence = 15,
};

static struct tpacket4_meta *packet_meta(const struct packet *packet)
{
	return (struct tpacket4_meta *)(void *)tp4_frame(&packet->area->a,
							 packet->idx);
}

static PyObject *packet_get_meta(PyObject *self, void *Py_UNUSED(closure))
{
	const struct packet *packet = (const struct packet *)self;
	struct tpacket4_meta m;
	Py_ssize_t i = 0;
	PyObject *seq;

	if (packet_check(packet))
		return NULL;
	if (!(packet->flags & TP4_META))
		return Py_NewRef(Py_None);
	seq = PyStructSequence_New(meta_type);
	if (!seq)
		return NULL;
	m = *packet_meta(packet);
	if (m.halen > sizeof(m.addr))
		m.halen = sizeof(m.addr);
#define ADD(value) PyStructSequence_SetItem(seq, i++, value)
	ADD(PyLong_FromUnsignedLongLong(m.tstamp));
	ADD(PyLong_FromUnsignedLong(m.flags));
	ADD(PyLong_FromUnsignedLong(m.wire_len));
	ADD(PyLong_FromUnsignedLong(m.ifindex));
	ADD(PyLong_FromUnsignedLong(ntohs(m.protocol)));
	ADD(PyLong_FromUnsignedLong(m.hatype));
	ADD(PyLong_FromUnsignedLong(m.vlan_tci));
	ADD(PyLong_FromUnsignedLong(m.vlan_tpid));
	ADD(PyLong_FromUnsignedLong(m.pkt_type));
	ADD(PyBytes_FromStringAndSize((char *)m.addr, m.halen));
	ADD(PyLong_FromUnsignedLong(m.hash));
	ADD(PyLong_FromUnsignedLong(m.csum_start));
	ADD(PyLong_FromUnsignedLong(m.csum_offset));
	ADD(PyLong_FromUnsignedLong(m.gso_type));
	ADD(PyLong_FromUnsignedLong(m.gso_size));
#undef ADD
	if (PyErr_Occurred())
		Py_CLEAR(seq);
	return seq;
}

/* The metadata of a packet to send, which at first requests nothing */
static struct tpacket4_meta *packet_request(struct packet *packet)
{
	struct tpacket4_meta *meta;

	if (packet_check(packet))
		return NULL;
	meta = packet_meta(packet);
	if (packet->offset < sizeof(*meta)) {
		PyErr_SetString(PyExc_ValueError,
				"the frame has no room for metadata");
		return NULL;
	}
	if (!(packet->flags & TP4_META)) {
		memset(meta, 0, sizeof(*meta));
		packet->flags |= TP4_META;
	}
	return meta;
}

static PyObject *packet_csum(PyObject *self, PyObject *args)
{
	struct tpacket4_meta *meta;
	__u16 start, offset;

	if (!PyArg_ParseTuple(args, "HH", &start, &offset))
		return NULL;
	meta = packet_request((struct packet *)self);
	if (!meta)
		return NULL;
	tp4_meta_csum(meta, start, offset);
	return Py_NewRef(Py_None);
}

static PyObject *packet_gso(PyObject *self, PyObject *args)
{
	struct tpacket4_meta *meta;
	unsigned char type;
	__u16 size;

	if (!PyArg_ParseTuple(args, "bH", &type, &size))
		return NULL;
	meta = packet_request((struct packet *)self);
	if (!meta)
		return NULL;
	tp4_meta_gso(meta, type, size);
	return Py_NewRef(Py_None);
}

static PyObject *packet_launch(PyObject *self, PyObject *ns)
{
	unsigned long long when = PyLong_AsUnsignedLongLong(ns);
	struct tpacket4_meta *meta;

	if (PyErr_Occurred())
		return NULL;
	meta = packet_request((struct packet *)self);
	if (!meta)
		return NULL;
	tp4_meta_launch(meta, when);
	return Py_NewRef(Py_None);
}

static PyMethodDef packet_methods[] = {
	{ "__bytes__", packet_bytes, METH_NOARGS, NULL },
	{ "parts", packet_parts, METH_NOARGS,
	  "Views of the data in each of the packet's frames" },
	{ "release", packet_release, METH_NOARGS,
	  "Give the frames back now. BufferError if a view is alive." },
	{ "request_csum", packet_csum, METH_VARARGS,
	  "Request a checksum from start on, stored at start + offset." },
	{ "request_gso", packet_gso, METH_VARARGS,
	  "Request segments of size bytes; type is VIRTIO_NET_HDR_GSO_*." },
	{ "request_launch", packet_launch, METH_O,
	  "Set the launch time, by the clock of SO_TXTIME." },
	{ NULL, NULL, 0, NULL }
};

static PyGetSetDef packet_getset[] = {
	{ "data", packet_data, NULL, "A view of the data, without a copy",
	  NULL },
	{ "meta", packet_get_meta, NULL, "The metadata, or None", NULL },
	{ NULL, NULL, NULL, NULL, NULL }
};

static PyType_Slot packet_slots[] = {
	{ Py_tp_doc, "A packet, which has its frames until it and all views "
		     "of it are gone." },
	{ Py_tp_dealloc, packet_dealloc },
	{ Py_tp_methods, packet_methods },
	{ Py_tp_getset, packet_getset },
	{ Py_sq_length, packet_length },
	{ Py_bf_getbuffer, packet_getbuffer },
	{ Py_bf_releasebuffer, packet_releasebuffer },
	{ 0, NULL }
};

static PyType_Spec packet_spec = {
	.name = "tpacket4.Packet",
	.basicsize = sizeof(struct packet),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE |
		 Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = packet_slots,
};

int add_packet_types(PyObject *module)
{
	int err;

	meta_type = PyStructSequence_NewType(&meta_desc);
	if (!meta_type || PyModule_AddType(module, meta_type) ||
	    add_type(module, &area_spec, &area_type) ||
	    add_type(module, &packet_spec, &packet_type))
		return -1;
	err = pthread_atfork(NULL, NULL, forget_parent);
	if (err) {
		errno = err;
		PyErr_SetFromErrno(PyExc_OSError);
		return -1;
	}
	return 0;
}
