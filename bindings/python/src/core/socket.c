// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* Sockets */
#include "binding.h"

#include <limits.h>
#include <stdlib.h>
#include <net/if.h>

/* Maximum number of frames of a packet to send; the kernel accepts fewer. */
#define SEND_FRAMES	64

/**
 * struct sock - a socket and its rings
 * @s: the library's socket
 * @area: its area
 * @next: list of all open sockets, for fork()
 * @busy: number of threads in a system call on the socket
 * @rx_error: error of an Rx slot, not raised yet
 * @tx_error: error of a Tx slot, not raised yet
 * @meta: the rings have metadata
 * @bound: bind() was called
 */
struct sock {
	PyObject_HEAD
	struct tp4_socket s;
	struct area *area;
	struct sock *next;
	int busy;
	int rx_error;
	int tx_error;
	int meta;
	int bound;
};

static PyTypeObject *sock_type, *stats_type;
static struct sock *socks;

static void sock_unlink(struct sock *sock)
{
	struct sock **link;

	for (link = &socks; *link && *link != sock; link = &(*link)->next)
		;
	if (*link)
		*link = sock->next;
}

/* In the child of fork(). Its exit is not to keep the queue of its parent. */
void close_sockets_of_parent(void)
{
	for (; socks; socks = socks->next) {
		socks->busy = 0;
		tp4_close(&socks->s);
	}
}

static int sock_check(const struct sock *sock)
{
	if (sock->s.map)
		return 0;
	if (!sock->area || !sock->area->forked)
		raise_os(TP4_IN_KICK, EBADF, NULL);
	else
		area_check(sock->area);
	return -1;
}

static PyObject *sock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "area", "rx", "tx", "meta", "protocol",
				 "to_stack", "keep", NULL };
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	struct tp4_options opt = { .rx_nr = 0 };
	struct area *area;
	struct sock *sock;
	int err;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|II$pHpp", names,
					 area_type, &area, &opt.rx_nr,
					 &opt.tx_nr, &opt.meta, &opt.protocol,
					 &opt.to_stack, &opt.keep) ||
	    area_check(area))
		return NULL;
	sock = (struct sock *)alloc(type, 0);
	if (!sock)
		return NULL;
	sock->area = (struct area *)Py_NewRef((PyObject *)area);
	sock->meta = opt.meta;
	opt.area = &area->a;
	opt.mr_fd = area->fd;
	err = tp4_open(&sock->s, &opt);
	if (err) {
		raise_os(sock->s.failed, err, NULL);
		Py_DECREF(sock);
		return NULL;
	}
	area->sockets++;
	sock->next = socks;
	socks = sock;
	return (PyObject *)sock;
}

/* --- frames --------------------------------------------------------------- */

/* Is this a frame that a ring has, with its data in it? */
static int slot_is_valid(const struct area *area,
			 const struct tpacket4_desc *d)
{
	return d->idx < area->a.nr_frames && area->posted[d->idx] &&
	       d->offset <= area->a.frame_size &&
	       d->len <= area->a.frame_size - d->offset;
}

/* Post free frames until the Rx ring is full. */
static void sock_fill(struct sock *sock)
{
	struct tp4_pool *pool = &sock->area->pool;
	unsigned int i, n = tp4_ring_free(&sock->s.rx);

	if (n > pool->nr)
		n = pool->nr;
	for (i = 1; i <= n; i++)
		sock->area->posted[pool->frames[pool->nr - i]] = 1;
	if (n)
		tp4_pool_fill(pool, &sock->s.rx);
}

/* Take back what was sent. */
static void sock_reap(struct sock *sock)
{
	struct tp4_ring *tx = &sock->s.tx;
	unsigned int i, n = tp4_ring_peek(tx, UINT_MAX);

	for (i = 0; i < n; i++) {
		const struct tpacket4_desc *d = tp4_ring_at(tx, i);

		if (d->error && !sock->tx_error)
			sock->tx_error = d->error;
		if (d->idx < sock->area->a.nr_frames &&
		    sock->area->posted[d->idx])
			area_put(sock->area, d->idx);
	}
	tp4_ring_take(tx, n);
}

/* Receive nothing any more. Fails in zero-copy mode and in a fanout group. */
static int sock_unbind(struct sock *sock)
{
	struct sockaddr_ll none = { .sll_family = AF_PACKET };

	if (bind(sock->s.fd, (struct sockaddr *)&none, sizeof(none)))
		return -errno;
	return 0;
}

/*
 * The kernel has given up the frames of the last socket. While another one uses
 * the area, frames that the rings have exchanged are not known to be free, unless
 * the ring receives nothing any more.
 */
static void sock_reclaim(struct sock *sock)
{
	struct area *area = sock->area;
	struct tp4_ring *rx = &sock->s.rx;
	unsigned int i, n;

	sock_reap(sock);
	if (tp4_zerocopy(&sock->s, 0) || sock_unbind(sock))
		return;
	n = tp4_ring_pending(rx);
	for (i = 0; i < n; i++) {
		const struct tpacket4_desc *d = tp4_ring_at(rx, i);

		if (d->idx < area->a.nr_frames && area->posted[d->idx])
			area_put(area, d->idx);
	}
}

static void sock_end(struct sock *sock)
{
	struct area *area = sock->area;
	__u64 i;

	if (!sock->s.map)
		return;
	if (area->sockets > 1)
		sock_reclaim(sock);
	tp4_close(&sock->s);
	sock_unlink(sock);
	if (--area->sockets)
		return;
	for (i = 0; i < area->a.nr_frames; i++)
		if (area->posted[i])
			area_put(area, i);
	area_unuse(area);
}

static PyObject *sock_close(PyObject *self, PyObject *Py_UNUSED(args))
{
	struct sock *sock = (struct sock *)self;

	if (sock->busy) {
		PyErr_SetString(PyExc_RuntimeError,
				"another thread waits or sends on the socket");
		return NULL;
	}
	sock_end(sock);
	return Py_NewRef(Py_None);
}

static void sock_dealloc(PyObject *self)
{
	struct sock *sock = (struct sock *)self;

	if (sock->area) {
		sock_end(sock);
		Py_DECREF((PyObject *)sock->area);
	}
	free_object(self);
}

/* --- binding -------------------------------------------------------------- */

/*
 * The queue pair of "zc:eth0:3" plus 1, 0 for a name without "zc:", -1 with an
 * exception. Without a number, the device has a single one.
 */
static int parse_name(const char *name, char *device, unsigned int *ifindex)
{
	const char *colon, *from = strncmp(name, "zc:", 3) ? name : name + 3;
	struct tp4_device what = { .queues = 0 };
	char *end;
	long queue = 0;
	size_t len;
	int err;

	colon = from == name ? NULL : strchr(from, ':');
	len = colon ? (size_t)(colon - from) : strlen(from);
	if (colon) {
		errno = 0;
		queue = strtol(colon + 1, &end, 10);
		if (colon[1] < '0' || colon[1] > '9' || *end || errno ||
		    queue >= INT_MAX) {
			PyErr_Format(PyExc_ValueError,
				     "%s: a queue pair is named zc:eth0:3",
				     name);
			return -1;
		}
	}
	*ifindex = 0;
	if (len < IFNAMSIZ) {
		memcpy(device, from, len);
		device[len] = '\0';
		*ifindex = if_nametoindex(device);
	}
	if (!*ifindex) {
		raise_os(TP4_IN_BIND, ENODEV, name);
		return -1;
	}
	if (from == name)
		return 0;
	err = colon ? 0 : tp4_device((int)*ifindex, &what);
	if (err || what.queues > 1) {
		if (err)
			raise_os(TP4_IN_ZEROCOPY, err, name);
		else
			PyErr_Format(PyExc_ValueError,
				     "%s has %u queue pairs: zc:%s:0 names one",
				     device, what.queues, device);
		return -1;
	}
	return (int)queue + 1;
}

static PyObject *sock_bind(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "name", "promisc", NULL };
	struct sock *sock = (struct sock *)self;
	int queue, err = 0, promisc = 0, first = !sock->bound;
	enum tp4_where where = TP4_IN_BIND;
	char device[IFNAMSIZ];
	unsigned int ifindex;
	const char *name;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|$p", names, &name,
					 &promisc) ||
	    sock_check(sock))
		return NULL;
	queue = parse_name(name, device, &ifindex);
	if (queue < 0)
		return NULL;
	sock_fill(sock);
	/*
	 * Before the first bind(), the mode is only requested, and nothing is
	 * received in copy mode meanwhile. Later, it is that of the device.
	 */
	if (queue && first) {
		where = TP4_IN_ZEROCOPY;
		err = tp4_zerocopy(&sock->s, queue);
	}
	if (!err && promisc)
		err = tp4_promisc(&sock->s, (int)ifindex);
	if (!err) {
		where = TP4_IN_BIND;
		err = tp4_bind(&sock->s, (int)ifindex);
		sock->bound = 1;
	}
	if (!err && queue && !first) {
		where = TP4_IN_ZEROCOPY;
		err = tp4_zerocopy(&sock->s, queue);
		if (err)
			(void)sock_unbind(sock);
	}
	if (!err)
		return Py_NewRef(Py_None);
	if (queue && first) {
		(void)tp4_zerocopy(&sock->s, 0);
		(void)sock_unbind(sock);
		/* Forget that the device is down. */
		(void)tp4_rx_kick(&sock->s);
	}
	return raise_os(where, err, name);
}

/* --- receiving ------------------------------------------------------------ */

static PyObject *sock_receive(PyObject *self, PyObject *args)
{
	struct sock *sock = (struct sock *)self;
	struct packet *head = NULL, *last = NULL;
	unsigned int i, n, done = 0, max = 64;
	struct tp4_ring *rx = &sock->s.rx;
	struct area *area = sock->area;
	PyObject *list;

	if (!PyArg_ParseTuple(args, "|I", &max) || sock_check(sock))
		return NULL;
	list = PyList_New(0);
	if (!list)
		return NULL;
	n = tp4_ring_peek(rx, UINT_MAX);
	/* The rest of a packet may not be there yet: count whole ones. */
	for (i = 0; i < n && max; i++) {
		if (tp4_ring_at(rx, i)->error ||
		    !(tp4_ring_at(rx, i)->flags & TP4_PKT_CONT)) {
			done = i + 1;
			max--;
		}
	}
	for (i = 0; i < done; i++) {
		struct tpacket4_desc d = *tp4_ring_at(rx, i);
		struct packet *packet;

		if (d.error || !slot_is_valid(area, &d)) {
			if (!sock->rx_error)
				sock->rx_error = d.error ? d.error : EIO;
			if (d.idx < area->a.nr_frames && area->posted[d.idx])
				area_put(area, d.idx);
			Py_CLEAR(head);
			continue;
		}
		packet = packet_new(area, &d);
		if (!packet) {
			/* Those that follow are given back, too. */
			Py_CLEAR(head);
			continue;
		}
		if (head) {
			packet->part = 1;
			last->next = packet;
		} else {
			head = packet;
		}
		last = packet;
		if (d.flags & TP4_PKT_CONT)
			continue;
		(void)PyList_Append(list, (PyObject *)head);
		Py_CLEAR(head);
	}
	Py_XDECREF((PyObject *)head);
	tp4_ring_take(rx, done);
	sock_fill(sock);
	if (PyErr_Occurred()) {
		Py_DECREF(list);
		return NULL;
	}
	if (sock->rx_error && !PyList_Size(list)) {
		int err = sock->rx_error;

		sock->rx_error = 0;
		Py_DECREF(list);
		return raise_os(TP4_IN_RX, err, NULL);
	}
	return list;
}

/* --- waiting -------------------------------------------------------------- */

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The end of a wait of so many seconds. -1: none. -2: exception. */
static long long deadline_of(PyObject *timeout)
{
	double seconds;

	if (!timeout || Py_IsNone(timeout))
		return -1;
	seconds = PyFloat_AsDouble(timeout);
	if (PyErr_Occurred())
		return -2;
	if (seconds != seconds) {
		PyErr_SetString(PyExc_ValueError, "the timeout is not a number");
		return -2;
	}
	if (seconds <= 0)
		return 0;
	return seconds > 1e9 ? -1 : now_ns() + (long long)(seconds * 1e9);
}

/*
 * Sleep once, at most until the deadline and for at most so many ms (-1: no
 * limit). Return the socket's events, 0 after the time, -1 with an exception.
 */
static int sock_poll(struct sock *sock, short events, long long deadline,
		     int most)
{
	struct pollfd pfd = { sock->s.fd, events, 0 };
	int err, n, ms = deadline < 0 ? most : 0;
	long long left;

	/* A signal's handler may have closed it. */
	if (sock_check(sock))
		return -1;
	if (deadline > 0) {
		left = (deadline - now_ns() + 999999) / 1000000;
		ms = left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
		if (most >= 0 && ms > most)
			ms = most;
	}
	if (events & POLLIN)
		tp4_ring_prepare_poll(&sock->s.rx);
	sock->busy++;
	Py_BEGIN_ALLOW_THREADS
	n = poll(&pfd, 1, ms);
	err = errno;
	Py_END_ALLOW_THREADS
	sock->busy--;
	if (n < 0 && err == EINTR)
		return PyErr_CheckSignals();
	if (n < 0)
		err = -err;
	else
		err = pfd.revents & ~events ?
		      tp4_wait(&sock->s, events, 0) : pfd.revents;
	if (err < 0) {
		raise_os(TP4_IN_WAIT, err, NULL);
		return -1;
	}
	return err;
}

static PyObject *sock_wait(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "timeout", NULL };
	struct sock *sock = (struct sock *)self;
	PyObject *timeout = NULL;
	long long deadline;
	int ready;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &timeout) ||
	    sock_check(sock))
		return NULL;
	deadline = deadline_of(timeout);
	if (deadline == -2)
		return NULL;
	sock_fill(sock);
	for (;;) {
		/* Without a system call, unless the driver needs one. */
		if (tp4_ring_peek(&sock->s.rx, 1) || sock->rx_error) {
			if (!tp4_rx_need_kick(&sock->s))
				return Py_NewRef(Py_True);
			deadline = 0;
		}
		ready = sock_poll(sock, POLLIN, deadline, -1);
		if (ready < 0)
			return NULL;
		if (tp4_ring_peek(&sock->s.rx, 1) || sock->rx_error)
			return Py_NewRef(Py_True);
		if (deadline >= 0 && deadline <= now_ns())
			return Py_NewRef(Py_False);
		sock_fill(sock);
	}
}

/* --- sending -------------------------------------------------------------- */

/* Let the kernel send. It keeps what a full device does not take. */
static int sock_kick(struct sock *sock)
{
	int n;

	if (!tp4_ring_pending(&sock->s.tx) || !tp4_need_kick(&sock->s))
		return 0;
	sock->busy++;
	Py_BEGIN_ALLOW_THREADS
	n = tp4_kick(&sock->s, MSG_DONTWAIT);
	Py_END_ALLOW_THREADS
	sock->busy--;
	if (n >= 0 || n == -ENOBUFS || n == -EAGAIN || n == -EINTR)
		return 0;
	raise_os(TP4_IN_KICK, n, NULL);
	return -1;
}

/* Post one packet. Return 1, 0 if the ring is full, or -1 with an exception. */
static int sock_post(struct sock *sock, struct packet *packet)
{
	struct tpacket4_desc d[SEND_FRAMES];
	struct packet *part;
	unsigned int n = 0;

	if (packet_check_unused(packet))
		return -1;
	if (packet->area != sock->area || packet->part) {
		PyErr_SetString(PyExc_ValueError,
				"the packet is not of the socket's area");
		return -1;
	}
	for (part = packet; part; part = part->next) {
		if (n == SEND_FRAMES) {
			raise_os(TP4_IN_TX, EMSGSIZE, NULL);
			return -1;
		}
		d[n].idx = part->idx;
		d[n].len = part->len;
		d[n].offset = part->offset;
		d[n].error = 0;
		d[n].flags = part->next ? TP4_PKT_CONT : 0;
		if (sock->meta && part == packet)
			d[n].flags |= part->flags;
		n++;
	}
	if (!tp4_ring_send(&sock->s.tx, d, n))
		return 0;
	for (part = packet; part; part = part->next) {
		sock->area->posted[part->idx] = 1;
		sock->area->packets--;
		part->owned = 0;
	}
	return 1;
}

/* Post the next packet, or a copy of bytes. Same return values. */
static int sock_post_item(struct sock *sock, PyObject *item)
{
	struct packet *copy;
	int ret;

	if (PyObject_TypeCheck(item, packet_type))
		return sock_post(sock, (struct packet *)item);
	if (PyLong_Check(item)) {
		PyErr_SetString(PyExc_TypeError, "a packet or bytes are needed");
		return -1;
	}
	copy = area_packet(sock->area, item);
	if (!copy)
		return -1;
	ret = sock_post(sock, copy);
	Py_DECREF((PyObject *)copy);
	return ret;
}

static PyObject *sock_send(PyObject *self, PyObject *packets)
{
	struct sock *sock = (struct sock *)self;
	PyObject *iter, *item;
	Py_ssize_t sent = 0;
	int ret = 1;

	if (sock_check(sock))
		return NULL;
	if (!sock->s.tx.q.ring) {
		PyErr_SetString(PyExc_ValueError, "the socket has no Tx ring");
		return NULL;
	}
	sock_reap(sock);
	iter = PyObject_GetIter(packets);
	if (!iter)
		return NULL;
	while (ret > 0 && (item = PyIter_Next(iter))) {
		/* The iterator may have closed the socket. */
		ret = sock_check(sock) ? -1 : sock_post_item(sock, item);
		Py_DECREF(item);
		sent += ret > 0;
	}
	Py_DECREF(iter);
	/* What was posted counts; the next call raises the exception. */
	if (PyErr_Occurred()) {
		if (!sent)
			return NULL;
		PyErr_Clear();
	}
	if (sock_check(sock) || sock_kick(sock))
		return NULL;
	return PyLong_FromSsize_t(sent);
}

static PyObject *sock_flush(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "timeout", NULL };
	struct sock *sock = (struct sock *)self;
	PyObject *timeout = NULL;
	long long deadline;
	int err;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &timeout) ||
	    sock_check(sock))
		return NULL;
	deadline = deadline_of(timeout);
	if (deadline == -2)
		return NULL;
	for (;;) {
		if (sock_kick(sock))
			return NULL;
		sock_reap(sock);
		if (!tp4_ring_pending(&sock->s.tx))
			break;
		/* A full device does not always tell when to kick again. */
		if (sock_poll(sock, POLLOUT, deadline, 10) < 0)
			return NULL;
		if (deadline >= 0 && deadline <= now_ns())
			break;
	}
	if (sock->tx_error) {
		err = sock->tx_error;
		sock->tx_error = 0;
		return raise_os(TP4_IN_TX, err, NULL);
	}
	return PyBool_FromLong(!tp4_ring_pending(&sock->s.tx));
}

/* --- the rest ------------------------------------------------------------- */

static PyStructSequence_Field stats_fields[] = {
	{ "packets", "received and dropped ones" },
	{ "drops", "all drops" },
	{ "rx_ring_full", "drops: the program owns all slots" },
	{ "rx_no_desc", "drops: too few frames are posted" },
	{ "rx_invalid_descs", "invalid Rx descriptors" },
	{ "tx_ring_full", "kicks that a full device has stopped" },
	{ "tx_no_desc", "kicks that have found nothing" },
	{ "tx_invalid_descs", "invalid Tx descriptors" },
	{ NULL, NULL }
};

static PyStructSequence_Desc stats_desc = {
	.name = "tpacket4.Stats",
	.doc = "Counters since the last call",
	.fields = stats_fields,
	.n_in_sequence = 8,
};

static PyObject *sock_stats(PyObject *self, PyObject *Py_UNUSED(args))
{
	struct sock *sock = (struct sock *)self;
	struct tpacket_stats_v4 st;
	Py_ssize_t i;
	PyObject *seq;
	int err;

	if (sock_check(sock))
		return NULL;
	err = tp4_stats(&sock->s, &st);
	if (err)
		return raise_os(TP4_IN_OPTIONS, err, NULL);
	seq = PyStructSequence_New(stats_type);
	if (!seq)
		return NULL;
	for (i = 0; i < stats_desc.n_in_sequence; i++) {
		unsigned long long all[] = {
			st.tp_packets, st.tp_drops, st.rx_ring_full,
			st.rx_no_desc, st.rx_invalid_descs, st.tx_ring_full,
			st.tx_no_desc, st.tx_invalid_descs,
		};

		PyStructSequence_SetItem(seq, i,
					 PyLong_FromUnsignedLongLong(all[i]));
	}
	if (PyErr_Occurred())
		Py_CLEAR(seq);
	return seq;
}

static PyObject *sock_fileno(PyObject *self, PyObject *Py_UNUSED(args))
{
	return PyLong_FromLong(((struct sock *)self)->s.fd);
}

static PyObject *sock_pending(PyObject *self, void *Py_UNUSED(closure))
{
	struct sock *sock = (struct sock *)self;

	if (sock->s.map)
		sock_reap(sock);
	return PyLong_FromUnsignedLong(tp4_ring_pending(&sock->s.tx));
}

static PyMethodDef sock_methods[] = {
	{ "__enter__", get_self, METH_NOARGS, NULL },
	{ "__exit__", sock_close, METH_VARARGS, NULL },
	{ "bind", (PyCFunction)(void *)sock_bind, METH_VARARGS | METH_KEYWORDS,
	  "bind($self, name, *, promisc=False)\n--\n\n"
	  "Start to receive on \"eth0\", in zero-copy mode on \"zc:eth0:3\"." },
	{ "close", sock_close, METH_NOARGS,
	  "Close the socket. Packets and their views stay valid." },
	{ "fileno", sock_fileno, METH_NOARGS, "The socket, -1 if it is closed" },
	{ "flush", (PyCFunction)(void *)sock_flush, METH_VARARGS | METH_KEYWORDS,
	  "flush($self, timeout=None)\n--\n\n"
	  "Wait until all packets are sent. OSError if one was not." },
	{ "receive", sock_receive, METH_VARARGS,
	  "Return up to max packets that were received, without waiting." },
	{ "send", sock_send, METH_O,
	  "Send packets, or bytes; return how many the ring has taken." },
	{ "stats", sock_stats, METH_NOARGS, "Counters since the last call" },
	{ "wait", (PyCFunction)(void *)sock_wait, METH_VARARGS | METH_KEYWORDS,
	  "wait($self, timeout=None)\n--\n\n"
	  "Sleep until packets are received; False after timeout seconds." },
	{ NULL, NULL, 0, NULL }
};

static PyGetSetDef sock_getset[] = {
	{ "pending", sock_pending, NULL,
	  "Number of frames that are being sent", NULL },
	{ NULL, NULL, NULL, NULL, NULL }
};

static PyType_Slot sock_slots[] = {
	{ Py_tp_doc, "Socket(area, rx=0, tx=0, *, meta=False, protocol=0, "
		     "to_stack=False, keep=False)\n--\n\n"
		     "A packet socket with rings of rx and tx slots." },
	{ Py_tp_new, sock_new },
	{ Py_tp_dealloc, sock_dealloc },
	{ Py_tp_methods, sock_methods },
	{ Py_tp_getset, sock_getset },
	{ 0, NULL }
};

static PyType_Spec sock_spec = {
	.name = "tpacket4._core.Socket",
	.basicsize = sizeof(struct sock),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = sock_slots,
};

int add_socket_types(PyObject *module)
{
	stats_type = PyStructSequence_NewType(&stats_desc);
	if (!stats_type || PyModule_AddType(module, stats_type))
		return -1;
	return add_type(module, &sock_spec, &sock_type);
}
