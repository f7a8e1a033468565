// SPDX-License-Identifier: GPL-2.0
/* Ports that are network devices, in copy mode or in zero-copy mode */

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <tpacket4_device.h>

#include "tpswitch.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING	23
#endif

#define QUEUES		64
#define HEADROOM	64		/* as metadata needs */
#define PENDING		256		/* packets for a device before a kick */
#define DEV_MACS	4096		/* addresses behind a device */

/**
 * struct sw_queue - a queue of a device, or the device in copy mode
 * @src: its source
 * @dev: its device
 * @refuse: refuse the rest of a packet that has too many frames
 * @s: the packet socket; Tx is on the first queue
 */
struct sw_queue {
	struct sw_source src;
	bool refuse;
	struct sw_dev *dev;
	struct tp4_socket s;
};

/**
 * struct sw_dev - a device
 * @port: the port
 * @ifindex: number of the device
 * @zerocopy: it is in zero-copy mode
 * @first: first queue
 * @nr: number of queues
 * @rx_nr: descriptors of an Rx ring
 * @tx_nr: descriptors of the Tx ring
 * @reserved: frames of the pool that belong to this device
 * @stalled: the device has to be kicked again
 * @unkicked: descriptors were posted since the last kick
 * @pending: descriptors that are to be posted
 * @nr_pending: their number
 * @queue: the queues
 */
struct sw_dev {
	struct sw_port port;
	int ifindex;
	bool zerocopy;
	unsigned int first, nr;
	unsigned int rx_nr, tx_nr;
	u32 reserved;
	bool stalled, unkicked;
	struct tpacket4_desc pending[PENDING];
	unsigned int nr_pending;
	struct sw_queue queue[QUEUES];
};

/* --- from the device ----------------------------------------------------- */

/* Post frames in all free slots. */
static void fill(struct sw_queue *q)
{
	tp4_pool_fill(&q->dev->port.sw->pool, &q->s.rx);
	if (q->dev->zerocopy && tp4_rx_need_kick(&q->s))
		tp4_rx_kick(&q->s);
}

/* The kernel sets no flags but those of SW_WORD_FLAGS. */
static inline void read_desc(const struct tpacket4_desc *d, u64 word,
			     const u8 *area, u32 frame_size, struct sw_frag *f)
{
	const u8 *data;

	f->idx = d->idx;
	f->word = word;
	data = area + f->idx * frame_size + f->offset;
	/* By the time that sw_lookup_batch() reads it, it is in the cache. */
	__builtin_prefetch(data);
	f->data = data;
}

/* Packets of one frame, up to the end of the ring or of the batch */
static unsigned int input_short(struct sw_queue *q, unsigned int most,
				struct sw_frag *frag)
{
	const u32 mask = q->s.rx.q.ring_mask;
	const u32 first = q->s.rx.q.last_used_idx & mask;
	const struct tpacket4_desc *d = q->s.rx.q.ring + first, *end;
	/* In registers: what is stored in the loop could change them. */
	const u8 *area = q->dev->port.sw->area.addr;
	const u32 size = q->dev->port.sw->frame_size;
	struct sw_frag *f = frag;
	u64 word;

	if (most > SW_BATCH)
		most = SW_BATCH;
	if (most > mask + 1 - first)
		most = mask + 1 - first;
	for (end = d + most; d != end; d++, f++) {
		word = __atomic_load_n(sw_word_of(d), __ATOMIC_ACQUIRE);
		if (word & (TP4_WORD_KERNEL | TP4_WORD(0, 0, TP4_PKT_CONT)))
			break;
		read_desc(d, word, area, size, f);
	}
	return f - frag;
}

static unsigned int dev_input(struct sw_source *src, struct sw_frag *frag)
{
	struct sw_queue *q = container_of(src, struct sw_queue, src);
	const struct sw *sw = src->port->sw;
	unsigned int n = 0, most, whole;
	bool refuse = q->refuse;

	most = tp4_ring_pending(&q->s.rx);
	if (most > SW_FRAGS)
		most = SW_FRAGS;
	if (likely(!refuse))
		n = input_short(q, most, frag);
	/* The last packet may go on beyond the batch. */
	for (whole = n; n < most && (n < SW_BATCH || n > whole); ) {
		const struct tpacket4_desc *d = tp4_ring_at(&q->s.rx, n);
		struct sw_frag *f = frag + n;
		u64 word;

		word = __atomic_load_n(sw_word_of(d), __ATOMIC_ACQUIRE);
		if (word & TP4_WORD_KERNEL)
			break;
		read_desc(d, word, sw->area.addr, sw->frame_size, f);
		n++;
		if (refuse) {
			refuse = f->flags & TP4_PKT_CONT;
			f->flags = 0;
			f->error = refuse ? SW_MORE : EMSGSIZE;
		}
		if (!(f->flags & TP4_PKT_CONT))
			whole = n;
	}
	/* As tp4_ring_peek() does */
	q->s.rx.seen = n;
	if (unlikely(n == SW_FRAGS && !whole)) {
		for (; whole < n; whole++) {
			frag[whole].flags = 0;
			frag[whole].error = SW_MORE;
		}
	}
	return whole;
}

static void dev_done(struct sw_source *src, const struct sw_frag *frag,
		     unsigned int n)
{
	struct sw_queue *q = container_of(src, struct sw_queue, src);
	struct sw *sw = src->port->sw;
	unsigned int i;

	if (n)
		q->refuse = frag[n - 1].error == SW_MORE;
	if (!src->kept) {
		tp4_ring_recycle(&q->s.rx, n);
		if (q->dev->zerocopy && tp4_rx_need_kick(&q->s))
			tp4_rx_kick(&q->s);
		return;
	}
	for (i = 0; src->kept != n && i < n; i++)
		if (frag[i].error != SW_KEPT)
			sw->pool.frames[sw->pool.nr++] = frag[i].idx;
	tp4_ring_take(&q->s.rx, n);
	fill(q);
}

/* Take sent frames back. */
static void reap(struct sw_dev *dev)
{
	struct tp4_ring *tx = &dev->queue[0].s.tx;
	/* In registers: what is stored in the loop could change them. */
	const u32 pending = tp4_ring_pending(tx);
	struct tp4_pool *pool = &dev->port.sw->pool;
	__u64 *to = pool->frames + pool->nr;
	const struct tpacket4_desc *d, *end;
	u32 n = 0, m;

	while (n < pending) {
		d = tp4_ring_at(tx, n);
		m = tp4_ring_contiguous(tx, n, pending - n);
		for (end = d + m; d != end; d++) {
			u64 word = __atomic_load_n(sw_word_of(d),
						   __ATOMIC_ACQUIRE);

			if (word & TP4_WORD_KERNEL)
				break;
			if (unlikely(word & TP4_WORD_ERROR))
				dev->port.count.out_errors++;
			*to++ = d->idx;
		}
		n += m - (u32)(end - d);
		if (d != end)
			break;
	}
	pool->nr += n;
	/* As tp4_ring_peek() does */
	tx->seen = n;
	tp4_ring_take(tx, n);
}

static bool dev_sleep(struct sw_source *src)
{
	struct sw_queue *q = container_of(src, struct sw_queue, src);

	tp4_ring_flush(&q->s.rx);
	return tp4_ring_peek(&q->s.rx, 1);
}

/* Packets are there, or the device went down. */
static void dev_event(struct sw *sw, struct sw_event *ev, u32 events)
{
	struct sw_source *src = container_of(ev, struct sw_source, ev);
	struct sw_queue *q = container_of(src, struct sw_queue, src);
	socklen_t len = sizeof(int);
	int err;

	/* It is reported until it is read. */
	if (events & EPOLLERR)
		(void)getsockopt(q->s.fd, SOL_SOCKET, SO_ERROR, &err, &len);
	sw_activate(sw, src);
}

static const struct sw_source_ops dev_source_ops = {
	.input = dev_input,
	.done = dev_done,
	.sleep = dev_sleep,
};

/* --- to the device ------------------------------------------------------- */

static void set_stalled(struct sw_dev *dev, bool stalled)
{
	if (dev->stalled == stalled)
		return;
	dev->stalled = stalled;
	dev->port.sw->stalled += stalled ? 1 : -1;
}

static void kick(struct sw_dev *dev)
{
	struct tp4_socket *s = &dev->queue[0].s;
	int err = 0;

	dev->unkicked = false;
	if (tp4_ring_pending(&s->tx) && tp4_need_kick(s))
		err = tp4_kick(s, MSG_DONTWAIT);
	/* A full device goes on with the packets when it is kicked again. */
	set_stalled(dev, err == -EAGAIN || err == -ENOBUFS);
	reap(dev);
}

/**
 * sw_dev_retry - kick devices that were full
 * @sw: switch
 */
void sw_dev_retry(struct sw *sw)
{
	unsigned int i;

	for (i = 0; i < sw->nr_ports; i++) {
		struct sw_port *port = sw->list[i];

		if (!strcmp(port->ops->type, "dev") &&
		    container_of(port, struct sw_dev, port)->stalled)
			kick(container_of(port, struct sw_dev, port));
	}
}

static void dev_flush(struct sw_port *port)
{
	struct sw_dev *dev = container_of(port, struct sw_dev, port);

	if (!dev->nr_pending)
		return;
	tp4_ring_send(&dev->queue[0].s.tx, dev->pending, dev->nr_pending);
	dev->nr_pending = 0;
	dev->unkicked = true;
}

static void dev_wake(struct sw_port *port)
{
	struct sw_dev *dev = container_of(port, struct sw_dev, port);

	if (dev->unkicked)
		kick(dev);
}

/* Are there n free slots and frames, behind what is pending? */
static bool room(struct sw_dev *dev, unsigned int n, unsigned int frames)
{
	struct tp4_ring *tx = &dev->queue[0].s.tx;
	struct sw *sw = dev->port.sw;

	if (unlikely(dev->nr_pending + n > PENDING))
		dev_flush(&dev->port);
	if (unlikely(tp4_ring_free(tx) < dev->nr_pending + n ||
		     sw->pool.nr < frames)) {
		if (dev->unkicked)
			kick(dev);
		else
			reap(dev);
	}
	return tp4_ring_free(tx) >= dev->nr_pending + n &&
	       sw->pool.nr >= frames;
}

static struct tpacket4_desc *add_pending(struct sw_dev *dev, u64 idx, u32 len,
					 u16 offset, u8 flags)
{
	struct tpacket4_desc *d = &dev->pending[dev->nr_pending++];

	d->idx = idx;
	d->len = len;
	d->offset = offset;
	d->error = 0;
	d->flags = flags;
	return d;
}

/* The device sends the frames that the packet came in. */
static bool keep(struct sw_dev *dev, struct sw_packet *pkt)
{
	unsigned int i;

	if (!room(dev, pkt->nr, 0))
		return false;
	for (i = 0; i < pkt->nr; i++) {
		struct sw_frag *f = pkt->frag + i;
		u8 flags = f->flags;

		if (!dev->port.meta)
			flags &= ~TP4_META;
		add_pending(dev, f->idx, f->len, f->offset, flags);
		f->error = SW_KEPT;
	}
	pkt->from->kept += pkt->nr;
	return true;
}

/* Post frames, the last one first as tp4_ring_send() does. */
static void post(struct tpacket4_desc *d, struct sw_frag *frag, unsigned int n)
{
	struct sw_frag *f = frag + n;

	for (d += n; f-- != frag; ) {
		u64 word = f->word | TP4_WORD_KERNEL;

		/* Else a device that sends has no use for it. */
		if (!sw_asks_offload(f))
			word &= ~TP4_WORD(0, 0, TP4_META);
		(--d)->idx = f->idx;
		__atomic_store_n(sw_word_of(d), word, __ATOMIC_RELEASE);
		f->error = SW_KEPT;
	}
}

static unsigned int dev_forward(struct sw_port *port, struct sw_source *src,
				struct sw_frag *frag, unsigned int n,
				u64 *bytes)
{
	struct sw_dev *dev = container_of(port, struct sw_dev, port);
	struct tp4_ring *tx = &dev->queue[0].s.tx;
	u32 first, straight, left;

	dev_flush(port);
	/* If there is room for a part only, that part is sent. */
	if (unlikely(!room(dev, n, 0)) && n > tp4_ring_free(tx)) {
		left = n - tp4_ring_free(tx);
		n -= left;
		*bytes -= sw_bytes(frag + n, left);
	}
	first = tx->q.avail_idx & tx->q.ring_mask;
	straight = tx->q.ring_mask + 1 - first;
	if (unlikely(straight < n))
		post(tx->q.ring, frag + straight, n - straight);
	else
		straight = n;
	post(tx->q.ring + first, frag, straight);
	__tp4_ring_gave(tx, n);
	dev->unkicked = true;
	src->kept += n;
	return n;
}

static bool dev_output(struct sw_port *port, struct sw_packet *pkt)
{
	struct sw_dev *dev = container_of(port, struct sw_dev, port);
	struct sw *sw = port->sw;
	u32 most = sw->frame_size - HEADROOM, left = pkt->len, n, part, at = 0;
	const struct sw_frag *f = pkt->frag;
	unsigned int nr, i;

	if (pkt->from && pkt->from->is_dev)
		return keep(dev, pkt);
	nr = (left + most - 1) / most;
	if (!room(dev, nr, nr))
		return false;
	for (i = 0; i < nr; i++) {
		struct tpacket4_desc *d;
		u64 idx = 0;
		u8 *to;

		tp4_pool_get(&sw->pool, (__u64 *)&idx, 1);
		part = left < most ? left : most;
		left -= part;
		d = add_pending(dev, idx, part, HEADROOM,
				left ? TP4_PKT_CONT : 0);
		to = tp4_data(&sw->area, d);
		if (likely(f->len == part && !at)) {
			sw_copy(to, f->data, part);
			f++;
		} else {
			for (n = 0; n < part; ) {
				u32 m = f->len - at < part - n ?
					f->len - at : part - n;

				memcpy(to + n, f->data + at, m);
				n += m;
				at += m;
				if (at == f->len) {
					f++;
					at = 0;
				}
			}
		}
		if (!i && pkt->meta && port->meta) {
			sw_meta_copy((void *)tp4_frame(&sw->area, idx),
				     pkt->meta, pkt->len);
			d->flags |= TP4_META;
		}
	}
	return true;
}

static void dev_describe(struct sw_port *port, FILE *file)
{
	const struct sw_dev *dev = container_of(port, struct sw_dev, port);

	if (dev->zerocopy)
		fprintf(file, "zero-copy, queues %u-%u", dev->first,
			dev->first + dev->nr - 1);
	else
		fprintf(file, "copy mode");
	fprintf(file, "%s", port->meta ? ", metadata" : "");
}

/* Take everything on a ring back from a socket that is to be closed. */
static void take_all(struct sw *sw, struct tp4_ring *r)
{
	unsigned int i;

	tp4_ring_flush(r);
	for (i = 0; i < tp4_ring_pending(r); i++)
		sw->pool.frames[sw->pool.nr++] = tp4_ring_at(r, i)->idx;
}

/* Close a socket; return the number of frames that are lost. */
static u32 close_queue(struct sw *sw, struct sw_queue *q)
{
	struct tp4_socket *s = &q->s;
	u32 lost = 0;

	if (!s->map)
		return 0;
	/* In zero-copy mode, this returns all frames. */
	(void)tp4_zerocopy(s, 0);
	if (s->rx.q.ring)
		take_all(sw, &s->rx);
	if (s->tx.q.ring) {
		tp4_pool_put(&sw->pool, &s->tx,
			     tp4_ring_peek(&s->tx, ~0u));
		/* The device may still read these: nobody can use them. */
		lost = tp4_ring_pending(&s->tx);
	}
	tp4_close(s);
	return lost;
}

static void dev_release(struct sw *sw, struct sw_dev *dev)
{
	unsigned int i;

	set_stalled(dev, false);
	for (i = 0; i < dev->nr; i++) {
		sw_quit_source(sw, &dev->queue[i].src);
		dev->reserved -= close_queue(sw, &dev->queue[i]);
	}
	sw->pool_spare += dev->reserved;
	free(dev);
}

static void dev_free(struct sw_port *port)
{
	struct sw_dev *dev = container_of(port, struct sw_dev, port);
	unsigned int i;

	for (i = 0; i < dev->nr_pending; i++)
		port->sw->pool.frames[port->sw->pool.nr++] =
			dev->pending[i].idx;
	dev_release(port->sw, dev);
}

static const struct sw_port_ops dev_ops = {
	.type = "dev",
	.output = dev_output,
	.forward = dev_forward,
	.flush = dev_flush,
	.wake = dev_wake,
	.describe = dev_describe,
	.free = dev_free,
};

/* --- a device goes away -------------------------------------------------- */

/*
 * A device has changed: remove the ports whose device is gone. The error of their
 * sockets does not show this: it comes as the device goes down, before it is gone.
 */
static void links_changed(struct sw *sw, struct sw_event *ev, u32 events)
{
	char name[IF_NAMESIZE], message[8192];
	unsigned int i;

	(void)ev;
	(void)events;
	/* An overflow, too, is only one more reason to look. */
	while (recv(sw->links_fd, message, sizeof(message), MSG_DONTWAIT) > 0)
		;
	/* The last port takes the place of one that is removed. */
	for (i = sw->nr_ports; i--; ) {
		struct sw_port *port = sw->list[i];

		if (port->ops != &dev_ops ||
		    if_indextoname(container_of(port, struct sw_dev,
						port)->ifindex, name) ||
		    errno != ENXIO)
			continue;
		fprintf(stderr, "tpswitch: %s is gone\n", port->name);
		sw_port_remove(port);
	}
}

static int watch_links(struct sw *sw)
{
	const struct sockaddr_nl nl = {
		.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK
	};
	int err;

	sw->links_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
			      NETLINK_ROUTE);
	if (sw->links_fd < 0)
		return -errno;
	sw->links.fn = links_changed;
	err = bind(sw->links_fd, (const struct sockaddr *)&nl, sizeof(nl)) ?
	      -errno : sw_watch(sw, sw->links_fd, EPOLLIN, &sw->links);
	if (err)
		close(sw->links_fd);
	return err;
}

/* --- a new port ---------------------------------------------------------- */

/* Create the area of all devices, and a socket that has registered it. */
static int make_area(struct sw *sw)
{
	u64 *frames;
	int err;

	if (sw->area.addr)
		return 0;
	frames = calloc(sw->frames, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	err = tp4_area_create(&sw->area, sw->frames, sw->frame_size);
	if (!err) {
		sw->area_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
		err = sw->area_fd < 0 ? -errno :
		      tp4_area_register(&sw->area, sw->area_fd, HEADROOM);
		if (!err)
			err = watch_links(sw);
		if (err && sw->area_fd >= 0)
			close(sw->area_fd);
	}
	if (err) {
		tp4_area_destroy(&sw->area);
		free(frames);
		return err;
	}
	tp4_pool_init(&sw->pool, (__u64 *)frames, 0, sw->frames);
	sw->pool_spare = sw->frames;
	return 0;
}

/* Ask the device of that name in this network namespace, of which /sys need not be. */
static bool ask_device(const char *name, void *data)
{
	struct ifreq ifr = { .ifr_data = data };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	err = ioctl(fd, SIOCETHTOOL, &ifr);
	close(fd);
	return !err;
}

static bool is_veth(const char *name)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };

	return ask_device(name, &info) && !strcmp(info.driver, "veth");
}

/* The number of Rx queues, or 0 if the driver does not report it */
static unsigned int count_queues(const char *name)
{
	struct ethtool_channels ch = { .cmd = ETHTOOL_GCHANNELS };

	if (!ask_device(name, &ch))
		return 0;
	return ch.combined_count + ch.rx_count;
}

static int open_queue(struct sw *sw, struct sw_dev *dev, unsigned int i)
{
	struct sw_queue *q = &dev->queue[i];
	const struct tp4_options opt = {
		.rx_nr = dev->rx_nr,
		.tx_nr = i ? 0 : dev->tx_nr,
		.mr_fd = sw->area_fd,
		.meta = dev->port.meta,
		.gso = dev->port.meta,
	};
	int err;

	q->dev = dev;
	q->src.ops = &dev_source_ops;
	q->src.port = &dev->port;
	q->src.ev.fn = dev_event;
	q->src.is_dev = true;
	err = tp4_open(&q->s, &opt);
	if (err)
		return err;
	fill(q);
	/* What the host sends is not from the network. */
	err = tp4_setopt(q->s.fd, PACKET_IGNORE_OUTGOING, 1);
	if (!err)
		err = tp4_promisc(&q->s, dev->ifindex);
	if (!err && dev->zerocopy)
		err = tp4_zerocopy(&q->s, dev->first + i + 1);
	if (!err)
		err = tp4_bind(&q->s, dev->ifindex);
	if (!err)
		err = sw_watch(sw, q->s.fd, EPOLLIN, &q->src.ev);
	if (!err)
		sw_activate(sw, &q->src);
	return err;
}

/* Parse FIRST[-LAST]; return how many of them are given, or 0 after an error. */
static int parse_queues(char *text, unsigned int *first, unsigned int *last)
{
	char *end = strchr(text, '-');
	u64 from, to;

	if (end)
		*end++ = '\0';
	if (!sw_number(text, 0, ~0u - 1, &from) ||
	    !sw_number(end ? end : text, 0, ~0u - 1, &to))
		return 0;
	*first = from;
	*last = to;
	return end ? 2 : 1;
}

/* Parse rx=N or tx=N. */
static bool parse_ring(const char *word, const char *name, unsigned int *nr)
{
	u64 n;

	if (strncmp(word, name, 3) || !sw_number(word + 3, 1, 1u << 20, &n))
		return false;
	*nr = n;
	return true;
}

/* Parse [zc:]NAME[:FIRST[-LAST]] and the words behind it. */
static int parse(struct sw_dev *dev, char *spec, char *name, char *why,
		 size_t len)
{
	unsigned int last, all;
	int meta = -1, fields = 0;
	char *word, *save, *p;

	word = strtok_r(spec, " \t", &save);
	if (word && !strncmp(word, "zc:", 3)) {
		dev->zerocopy = true;
		word += 3;
	}
	if (!word || !*word) {
		snprintf(why, len, "no name of a device");
		return -1;
	}
	p = strchr(word, ':');
	if (p) {
		*p++ = '\0';
		fields = parse_queues(p, &dev->first, &last);
	}
	if (strlen(word) >= IF_NAMESIZE || (p && !dev->zerocopy)) {
		snprintf(why, len, "%s: %s", word, p ?
			 "only zc: devices have queues" : "name too long");
		return -1;
	}
	strcpy(name, word);
	dev->ifindex = if_nametoindex(name);
	if (!dev->ifindex) {
		snprintf(why, len, "%s: no such device", name);
		return -1;
	}
	if (p && fields < 1) {
		snprintf(why, len, "%s: queues are given as 0 or 0-3", name);
		return -1;
	}
	all = dev->zerocopy ? count_queues(name) : 1;
	if (!all && !p) {
		snprintf(why, len,
			 "%s: its driver does not report the number of queues: give them, as in zc:%s:0-3",
			 name, name);
		return -1;
	}
	/* Those that are not there are refused when they are opened. */
	if (!all)
		all = ~0u;
	if (fields < 1)
		last = all - 1;
	if (last >= all || last < dev->first || last - dev->first >= QUEUES) {
		snprintf(why, len, "%s: it has queues 0-%u", name, all - 1);
		return -1;
	}
	dev->nr = last - dev->first + 1;
	dev->rx_nr = dev->tx_nr = 1024;
	while ((word = strtok_r(NULL, " \t", &save))) {
		if (!strcmp(word, "meta=on") || !strcmp(word, "meta=off")) {
			meta = !strcmp(word, "meta=on");
		} else if (!parse_ring(word, "rx=", &dev->rx_nr) &&
			   !parse_ring(word, "tx=", &dev->tx_nr)) {
			snprintf(why, len, "%s: meta=on|off, rx=N or tx=N",
				 word);
			return -1;
		}
	}
	/* Cards that segment nothing in zero-copy mode do without. */
	dev->port.meta = meta < 0 ? !dev->zerocopy || is_veth(name) : meta;
	return 0;
}

/**
 * sw_dev_add - add a device
 * @sw: switch
 * @spec: [zc:]NAME[:FIRST-LAST] [meta=on|off] [rx=N] [tx=N]
 * @why: set to the reason of a failure
 * @len: bytes of @why
 *
 * Return: the number of the port, or -1.
 */
int sw_dev_add(struct sw *sw, const char *spec, char *why, size_t len)
{
	struct sw_dev *dev = calloc(1, sizeof(*dev));
	char words[256], name[IF_NAMESIZE] = "";
	unsigned int i;
	int err;

	snprintf(words, sizeof(words), "%s", spec);
	if (!dev)
		return -1;
	if (parse(dev, words, name, why, len)) {
		free(dev);
		return -1;
	}
	if (sw_port_find(sw, name)) {
		snprintf(why, len, "%s: is a port already", name);
		free(dev);
		return -1;
	}
	dev->port.ops = &dev_ops;
	dev->port.sw = sw;
	dev->port.max_macs = DEV_MACS;
	dev->port.is_dev = true;
	err = make_area(sw);
	if (err) {
		snprintf(why, len, "%s: packet memory: %s", name,
			 strerror(-err));
		free(dev);
		return -1;
	}
	dev->reserved = dev->nr * dev->rx_nr + dev->tx_nr;
	if (dev->reserved > sw->pool_spare) {
		snprintf(why, len,
			 "%s: needs %u frames, %u are left: --frames", name,
			 dev->reserved, sw->pool_spare);
		free(dev);
		return -1;
	}
	sw->pool_spare -= dev->reserved;
	if (dev->zerocopy && tp4_resets_link(dev->ifindex) > 0)
		fprintf(stderr, "tpswitch: %s: the link goes down for some seconds, as the driver resets the port for zero-copy mode; \"tp4 hold %s\" keeps it up between programs\n",
			name, name);
	for (i = 0, err = 0; i < dev->nr && !err; i++) {
		err = open_queue(sw, dev, i);
		if (err)
			snprintf(why, len, "%s, queue %u: %s", name,
				 dev->first + i, strerror(-err));
	}
	if (!err) {
		err = sw_port_add(sw, &dev->port, name);
		if (err >= 0) {
			dev->port.spec = strdup(spec);
			return err;
		}
		snprintf(why, len, "%s: %s", name, strerror(-err));
	}
	dev_release(sw, dev);
	return -1;
}
