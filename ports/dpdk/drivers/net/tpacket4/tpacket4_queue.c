/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: their sockets, the memory of mempools, start and stop.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/net_tstamp.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "rte_eth_tpacket4.h"

/* Where the rings are mapped, in all processes */
#define RINGS_ADDR	((uintptr_t)1 << 45)
#define RINGS_ALIGN	((uintptr_t)1 << 21)
/* Microseconds that poll() polls the device, see SO_BUSY_POLL */
#define BUSY_USECS	20

static LIST_HEAD(, pool_area) pool_areas = LIST_HEAD_INITIALIZER(pool_areas);
static pthread_mutex_t pool_areas_lock = PTHREAD_MUTEX_INITIALIZER;

/* --- sockets of a broker --------------------------------------------------------------- */

/*
 * A broker has the privileges that a program with mr_sock lacks. For each connection to its
 * Unix socket (SOCK_SEQPACKET), it opens a packet socket and sends it along with an int32_t:
 * 0, or an errno. Then it sets options of that socket: it answers each of these requests with
 * an int32_t, too.
 */
struct broker_request {
	int32_t level, option, value;
};

static int
receive_answer(int broker, int *sock)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	int32_t answer;
	struct iovec iov = { .iov_base = &answer, .iov_len = sizeof(answer) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(broker, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c;

	if (n < 0)
		return -errno;
	if (n != sizeof(answer))
		return -EPROTO;
	if (answer || !sock)
		return -answer;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EPROTO;
	memcpy(sock, CMSG_DATA(c), sizeof(int));
	return 0;
}

/*
 * Opens a packet socket, or gets one of the broker: then *@broker, if it is wanted, is the
 * connection, else -1. Returns the socket or a negative errno.
 */
int
tpacket4_open_socket(const struct sockaddr_un *addr, int *broker)
{
	const struct timeval patience = { .tv_sec = 5 };
	int fd, sock = -1, err = 0;

	if (broker)
		*broker = -1;
	if (!addr->sun_path[0]) {
		sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
		return sock < 0 ? -errno : sock;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    connect(fd, (const struct sockaddr *)addr, sizeof(*addr)))
		err = -errno;
	if (!err)
		err = receive_answer(fd, &sock);
	if (err || !broker)
		close(fd);
	else
		*broker = fd;
	return err ? err : sock;
}

static int
ask_broker(int broker, int level, int option, int value)
{
	const struct broker_request request = { level, option, value };

	if (send(broker, &request, sizeof(request), MSG_NOSIGNAL) < 0)
		return -errno;
	return receive_answer(broker, NULL);
}

/* --- the memory of mempools ------------------------------------------------------------ */

struct pool_range {
	uintptr_t start, end;
	size_t len;
	size_t page;		/* the smallest one */
	size_t lead, frame_size;
	bool crossed;		/* a frame crosses a page */
};

static void
add_chunk(struct rte_mempool *pool __rte_unused, void *opaque, struct rte_mempool_memhdr *chunk,
	  unsigned int i __rte_unused)
{
	uintptr_t start = (uintptr_t)chunk->addr, end = start + chunk->len;
	struct pool_range *range = opaque;
	struct rte_memseg_list *list = rte_mem_virt2memseg_list(chunk->addr);
	size_t page = list ? list->page_sz : (size_t)sysconf(_SC_PAGESIZE);

	/* Frames may cross a page within a huge page that is mapped from its start. */
	start = RTE_ALIGN_FLOOR(start, page);
	end = RTE_ALIGN_CEIL(end, page);
	range->start = RTE_MIN(range->start, start);
	range->end = RTE_MAX(range->end, end);
	range->len += end - start;
	range->page = RTE_MIN(range->page, page);
}

/* DPDK only keeps mbufs from crossing its own pages, which may be huge. */
static void
check_mbuf(struct rte_mempool *pool __rte_unused, void *opaque, void *m,
	   unsigned int i __rte_unused)
{
	struct pool_range *range = opaque;
	uintptr_t frame = (uintptr_t)m + range->lead;

	if (frame & (UNIT - 1) ||
	    (frame & (range->page - 1)) + range->frame_size > range->page)
		range->crossed = true;
}

/* Bytes from an mbuf to its frame, which starts at a multiple of UNIT, as mbufs do */
static uint32_t
get_lead(struct rte_mempool *pool)
{
	return RTE_ALIGN_CEIL(sizeof(struct rte_mbuf) + rte_pktmbuf_priv_size(pool), UNIT);
}

/* Returns the size of the frames in mbufs of a pool, or 0 if they cannot be frames. */
static uint32_t
get_frame_size(struct rte_mempool *pool)
{
	uint32_t end = sizeof(struct rte_mbuf) + rte_pktmbuf_priv_size(pool) +
		       rte_pktmbuf_data_room_size(pool);
	uint32_t lead = get_lead(pool);

	if (rte_pktmbuf_priv_flags(pool) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF)
		return 0;
	/* Zero-copy mode needs as much. */
	return end < lead + OWN_FRAME ? 0 : RTE_ALIGN_FLOOR(end - lead, UNIT);
}

/* Registers the memory of a mempool. Returns 0, or a negative errno: packets are copied. */
static int
register_pool(struct pool_area *a, struct rte_mempool *pool, const struct sockaddr_un *broker)
{
	struct pool_range range = {
		.start = UINTPTR_MAX, .page = SIZE_MAX,
		.lead = get_lead(pool), .frame_size = get_frame_size(pool),
	};

	if (!range.frame_size)
		return -EINVAL;
	rte_mempool_mem_iter(pool, add_chunk, &range);
	/* The chunks may lie apart, but not in memory that is mostly others'. */
	if (range.start >= range.end || range.end - range.start > 2 * range.len)
		return -ERANGE;
	rte_mempool_obj_iter(pool, check_mbuf, &range);
	if (range.crossed)
		return -EDOM;
	a->pool = pool;
	a->lead = range.lead;
	a->area.addr = (uint8_t *)range.start;
	a->area.len = range.end - range.start;
	/* Secondary processes map the rings. */
	a->area.shared = tpacket4_has_ipc;
	a->area.frame_unit = UNIT;
	a->area.frame_size = range.frame_size;
	a->fd = tpacket4_open_socket(broker, NULL);
	if (a->fd < 0)
		return a->fd;
	return tp4_area_register(&a->area, a->fd, HEADROOM);
}

/* Returns the area of a mempool, or NULL if it cannot be one. */
static struct pool_area *
get_pool_area(struct rte_mempool *pool, const struct sockaddr_un *broker)
{
	struct pool_area *a;
	int err;

	pthread_mutex_lock(&pool_areas_lock);
	LIST_FOREACH(a, &pool_areas, next)
		if (a->pool == pool)
			goto found;
	a = calloc(1, sizeof(*a));
	if (!a)
		goto out;
	a->fd = -1;
	err = register_pool(a, pool, broker);
	if (err) {
		LOG(NOTICE, "mempool %s: packets are copied: %s", pool->name,
		    err == -ERANGE ? "its memory is not contiguous" :
		    err == -EDOM ? "its mbufs cross pages, or are not aligned" :
		    tp4_strerror(TP4_IN_MEMREG, err));
		if (a->fd >= 0)
			close(a->fd);
		free(a);
		a = NULL;
		goto out;
	}
	LIST_INSERT_HEAD(&pool_areas, a, next);
found:
	a->users++;
out:
	pthread_mutex_unlock(&pool_areas_lock);
	return a;
}

static void
put_pool_area(struct pool_area *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&pool_areas_lock);
	if (!--a->users) {
		LIST_REMOVE(a, next);
		close(a->fd);
		free(a);
	}
	pthread_mutex_unlock(&pool_areas_lock);
}

/* --- start and stop of a queue pair ---------------------------------------------------- */

/* Returns the length of the longest packet that is received into one mbuf of a pool. */
uint32_t
tpacket4_get_room(const struct port *port, struct rte_mempool *pool)
{
	uint32_t frame_size = get_frame_size(pool), len = rte_pktmbuf_data_room_size(pool);

	if (frame_size)
		return frame_size - HEADROOM - (port->zerocopy ? TP4_ZC_HEADROOM : 0);
	return len - RTE_MIN(len, (uint32_t)HEADROOM);
}

/* Posts as many mbufs of the pool as the ring has slots. */
static int
fill_rx(struct rx_queue *q)
{
	struct rte_mbuf *m[MAX_BURST];
	__u64 frames[MAX_BURST];
	unsigned int i, n;

	while ((n = RTE_MIN(tp4_ring_free(&q->ring), MAX_BURST))) {
		if (rte_mempool_get_bulk(q->pool, (void **)m, n))
			return -ENOMEM;
		for (i = 0; i < n; i++)
			frames[i] = mbuf_to_idx(q->base, m[i]);
		tp4_ring_post(&q->ring, frames, n);
	}
	return 0;
}

/*
 * Writes down the mbufs of all slots that the program has not taken. @posted has their frames
 * if it is not NULL.
 */
static unsigned int
list_mbufs(const struct tp4_ring *r, uint8_t *base, const uint64_t *posted, void **mbufs)
{
	unsigned int i, n = tp4_ring_pending(r);

	for (i = 0; i < n; i++)
		mbufs[i] = idx_to_mbuf(base, posted ?
				       posted[(r->q.last_used_idx + i) & r->q.ring_mask] :
				       tp4_ring_at(r, i)->idx);
	return n;
}

static void
set_up_rx(struct rx_queue *q, const struct rte_eth_dev *dev, bool busy_poll)
{
	const struct pool_area *shared = q->pair->shared;
	struct rte_mbuf model = { .nb_segs = 1, .port = dev->data->port_id };

	rte_mbuf_refcnt_set(&model, 1);
	q->ring = socket_of(q->pair)->rx;
	q->busy_poll = busy_poll;
	q->scatter = dev->data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_SCATTER;
	q->check_ip = dev->data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
	q->strip_tag = dev->data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
	q->finish = q->check_ip || q->strip_tag;
	q->meta = wants_meta(dev);
	q->head = NULL;
	q->skip = false;
	q->next = 0;
	q->nr_spare = 0;
	q->pause = 0;
	q->paused = 0;
	if (shared) {
		q->lead = shared->lead;
		q->base = shared->area.addr - q->lead;
		model.data_off = q->lead - sizeof(struct rte_mbuf) -
				 rte_pktmbuf_priv_size(q->pool);
	} else {
		q->base = q->pair->own.addr;
		q->room = rte_pktmbuf_data_room_size(q->pool);
		model.data_off = RTE_MIN(q->room, (uint32_t)HEADROOM);
		q->room -= model.data_off;
	}
	memcpy(&q->rearm, &model.data_off, sizeof(q->rearm));
}

static int
set_up_tx(struct tx_queue *q, const struct rte_eth_dev *dev)
{
	const struct pool_area *shared = q->pair->shared;
	const struct rx_queue *rx = rx_of(dev, q->pair->id);
	const struct port *port = dev->data->dev_private;
	unsigned int i;

	q->ring = socket_of(q->pair)->tx;
	q->low = q->nr / 2;
	q->meta = wants_meta(dev);
	q->pool = shared ? shared->pool : NULL;
	q->copies = rx ? rx->pool : rx_of(dev, 0) ? rx_of(dev, 0)->pool : NULL;
	if (shared) {
		q->lead = shared->lead;
		q->base = shared->area.addr - q->lead;
		q->frame_size = shared->area.frame_size;
		q->data_offset = q->lead - sizeof(struct rte_mbuf) -
				 rte_pktmbuf_priv_size(q->pool);
		if (port->zerocopy)
			return 0;
		q->posted = rte_malloc("net_tpacket4", q->nr * sizeof(*q->posted), 0);
		return q->posted ? 0 : -ENOMEM;
	}
	for (i = 0; i < q->nr; i++)
		q->ring.q.ring[i].idx = (rx ? rx->nr : 0) + i;
	return 0;
}

void
tpacket4_read_missed(struct queue_pair *pair)
{
	const struct tp4_socket *s = socket_of(pair);
	struct tpacket_stats_v4 st;

	/* The kernel resets what is read. */
	if (s->map && !tp4_stats(s, &st))
		pair->missed += st.tp_drops;
}

/* Another process may still have the socket when this one has closed it. */
static void
stop_rx(const struct tp4_socket *s)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = { .len = 1, .filter = &nothing };

	setsockopt(s->fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
}

/* The packet that was not complete is dropped, and the pool gets the spare mbufs back. */
void
tpacket4_stop_rx(struct rx_queue *q)
{
	rte_mempool_put_bulk(q->pool, &q->spare[MAX_SPARE - q->nr_spare], q->nr_spare);
	q->nr_spare = 0;
	rte_pktmbuf_free(q->head);
	q->head = NULL;
	q->skip = false;
}

/* Waits for a while until all packets are sent. */
void
tpacket4_stop_tx(struct tx_queue *q)
{
	unsigned int tries;

	for (tries = 0; tp4_ring_pending(&q->ring) && tries < 100; tries++) {
		if (!tpacket4_free_packets(q, UINT_MAX)) {
			kick_tx(q->pair);
			rte_delay_us_sleep(1000);
		}
	}
}

void
tpacket4_stop_pair(struct queue_pair *pair, struct rx_queue *rx, struct tx_queue *tx)
{
	struct tp4_socket *s = socket_of(pair);
	void **mbufs = NULL;
	unsigned int n = 0;

	if (!s->map)
		goto out;
	if (tx)
		tpacket4_stop_tx(tx);
	/*
	 * In zero-copy mode, the kernel returns all frames now. In copy mode, it has them
	 * until the socket is closed, and those to receive into stay in their slots.
	 */
	tp4_zerocopy(s, 0);
	if (rx) {
		stop_rx(s);
		tpacket4_read_missed(pair);
	}
	if (tx)
		tpacket4_free_packets(tx, UINT_MAX);
	if (pair->shared) {
		mbufs = calloc((rx ? rx->nr : 0) + (tx ? tx->nr : 0), sizeof(*mbufs));
		if (!mbufs)
			LOG(ERR, "no memory to free the mbufs of queue %u", pair->id);
	}
	if (mbufs && rx)
		n = list_mbufs(&rx->ring, rx->base, NULL, mbufs);
	if (mbufs && tx)
		n += list_mbufs(&tx->ring, tx->base, tx->posted, mbufs + n);
	tp4_close(s);
	if (n)
		rte_mempool_put_bulk(pair->shared->pool, mbufs, n);
	free(mbufs);
	if (rx)
		tpacket4_stop_rx(rx);
out:
	if (tx) {
		rte_free(tx->posted);
		tx->posted = NULL;
	}
	tp4_area_destroy(&pair->own);
	put_pool_area(pair->shared);
	pair->shared = NULL;
}

static int
fail(const struct port *port, const struct queue_pair *pair, const char *where, const char *why)
{
	LOG(ERR, "%s, queue %d: %s: %s", port->iface, port->start_queue + pair->id, where, why);
	return -1;
}

/* The socket joins the others of the port, which have the packets of a device by turns. */
static int
join_fanout(const struct rte_eth_dev *dev, struct queue_pair *pair)
{
	const struct port *port = dev->data->dev_private;
	int mode = port->fanout_mode, arg;
	socklen_t len = sizeof(arg);

	if (pair->id) {
		if (getsockopt(socket_of(port->pairs)->fd, SOL_PACKET, PACKET_FANOUT, &arg,
			       &len))
			return -errno;
		arg = (arg & 0xffff) | mode << 16;
	} else {
		arg = (mode | PACKET_FANOUT_FLAG_UNIQUEID) << 16;
	}
	return tp4_setopt(socket_of(pair)->fd, PACKET_FANOUT, arg);
}

/*
 * Maps the rings where secondary processes have nothing, as far as possible: the kernel maps
 * libraries elsewhere, and EAL the huge pages. It is the same memory.
 */
static void
move_rings(struct tp4_socket *s)
{
	static uintptr_t next = RINGS_ADDR;
	uint8_t *old = s->map, *map = MAP_FAILED;
	unsigned int tries;

	for (tries = 0; map == MAP_FAILED && tries < 64; tries++) {
		map = mmap((void *)next, s->map_len, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED_NOREPLACE, s->fd, 0);
		next += RTE_ALIGN_CEIL(s->map_len, RINGS_ALIGN);
		if (next > 2 * RINGS_ADDR)
			next = RINGS_ADDR;
	}
	if (map == MAP_FAILED)
		return;
	if (s->rx.q.ring)
		s->rx.q.ring = (void *)(map + ((uint8_t *)s->rx.q.ring - old));
	if (s->tx.q.ring)
		s->tx.q.ring = (void *)(map + ((uint8_t *)s->tx.q.ring - old));
	s->status = (void *)(map + ((const uint8_t *)s->status - old));
	s->map = map;
	munmap(old, s->map_len);
}

static int
start_busy_poll(const struct port *port, const struct tp4_socket *s, int broker)
{
	int err;

	if (broker < 0)
		return tp4_busy_poll_start(s, BUSY_USECS, port->busy_budget);
	err = ask_broker(broker, SOL_SOCKET, SO_PREFER_BUSY_POLL, 1);
	if (!err)
		err = ask_broker(broker, SOL_SOCKET, SO_BUSY_POLL, BUSY_USECS);
	if (!err)
		err = ask_broker(broker, SOL_SOCKET, SO_BUSY_POLL_BUDGET, port->busy_budget);
	return err;
}

/*
 * With a socket @fd of a broker, or -1. Returns -EOPNOTSUPP if the device does not support
 * zero-copy mode, or not with mbufs in place.
 */
static int
open_pair(struct rte_eth_dev *dev, unsigned int i, int fd, int broker)
{
	struct port *port = dev->data->dev_private;
	struct queue_pair *pair = &port->pairs[i];
	struct tx_queue *tx = tx_of(dev, i);
	struct rx_queue *rx = rx_of(dev, i);
	struct rx_queue *first = rx ? rx : rx_of(dev, 0);
	struct tp4_options opt = {
		.rx_nr = rx ? rx->nr : 0,
		.tx_nr = tx ? tx->nr : 0,
		.meta = wants_meta(dev),
		.to_stack = rx && port->to_stack && port->zerocopy,
		.fd = RTE_MAX(fd, 0),
	};
	struct tp4_socket *s = socket_of(pair);
	int err;

	pair->tx_stalled = false;
	pair->shared = first && !port->no_mbufs ? get_pool_area(first->pool, &port->broker) : NULL;
	if (pair->shared) {
		opt.mr_fd = pair->shared->fd;
	} else {
		opt.area = &pair->own;
		opt.headroom = HEADROOM;
		err = tp4_area_create_huge(&pair->own, opt.rx_nr + opt.tx_nr, OWN_FRAME);
		if (err) {
			close(fd);
			return fail(port, pair, "frames", tp4_strerror(TP4_IN_AREA, err));
		}
	}
	err = tp4_open(s, &opt);
	if (err) {
		close(fd);
		return fail(port, pair, "socket", tp4_strerror(s->failed, err));
	}
	if (tpacket4_has_ipc)
		move_rings(s);
	pair->map = s->map;
	pair->map_len = s->map_len;
	pair->status = s->status;
	if (rx)
		set_up_rx(rx, dev, port->zerocopy && port->busy_budget);
	if (tx && set_up_tx(tx, dev))
		return fail(port, pair, "frames", strerror(ENOMEM));
	if (port->qdisc_bypass && tp4_setopt(s->fd, PACKET_QDISC_BYPASS, 1))
		return fail(port, pair, "PACKET_QDISC_BYPASS", strerror(errno));
	if (dev->data->dev_conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP) {
		struct sock_txtime txtime = { .clockid = port->clock };

		if (setsockopt(s->fd, SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime)))
			return fail(port, pair, "SO_TXTIME", strerror(errno));
	}
	err = tp4_setopt(s->fd, PACKET_IGNORE_OUTGOING, 1);
	if (err)
		return fail(port, pair, "PACKET_IGNORE_OUTGOING", strerror(-err));
	if (port->zerocopy && broker < 0) {
		if (!i && tp4_resets_link(port->ifindex) > 0)
			LOG(NOTICE, "%s: the link goes down for some seconds, as the driver resets the port",
			    port->iface);
		err = tp4_zerocopy(s, port->start_queue + i + 1);
		if (err)
			return fail(port, pair, "zero-copy mode",
				    tp4_strerror(TP4_IN_ZEROCOPY, err));
	}
	if (port->zerocopy && port->busy_budget) {
		err = start_busy_poll(port, s, broker);
		if (err)
			LOG(NOTICE, "%s: no busy polling: %s", port->iface, strerror(-err));
		if (rx && err)
			rx->busy_poll = false;
	}
	if (rx && port->zerocopy && pair->shared && fill_rx(rx))
		return fail(port, pair, rx->pool->name, "has fewer free mbufs than the ring slots");
	if (rx && port->zerocopy && !pair->shared)
		tp4_ring_fill(&rx->ring, 0, rx->nr);
	err = tp4_bind(s, port->ifindex);
	if (err == -EOPNOTSUPP && port->zerocopy && pair->shared)
		return err;
	if (err)
		return fail(port, pair, !port->zerocopy ? "bind()" :
			    err == -EOPNOTSUPP ? "zero-copy mode (try zerocopy=0)" :
			    "zero-copy mode",
			    tp4_strerror(port->zerocopy ? TP4_IN_ZEROCOPY : TP4_IN_BIND, err));
	/* bind() would check the privileges of this process. */
	if (port->zerocopy && broker >= 0) {
		err = ask_broker(broker, SOL_PACKET, PACKET_ZEROCOPY, port->start_queue + i + 1);
		if (err == -EOPNOTSUPP && pair->shared)
			return err;
		if (err)
			return fail(port, pair, "zero-copy mode, by the broker",
				    tp4_strerror(TP4_IN_ZEROCOPY, err));
	}
	if (!rx || port->zerocopy)
		return 0;
	/* No frames before it is a member: each packet is to be received once. */
	if (dev->data->nb_rx_queues > 1) {
		err = join_fanout(dev, pair);
		if (err)
			return fail(port, pair, "PACKET_FANOUT", strerror(-err));
	}
	if (!pair->shared)
		tp4_ring_fill(&rx->ring, 0, rx->nr);
	else if (fill_rx(rx))
		return fail(port, pair, rx->pool->name, "has fewer free mbufs than the ring slots");
	return 0;
}

static int
try_pair(struct rte_eth_dev *dev, unsigned int i)
{
	const struct port *port = dev->data->dev_private;
	int fd = -1, broker = -1, err;

	if (port->broker.sun_path[0]) {
		fd = tpacket4_open_socket(&port->broker, &broker);
		if (fd < 0)
			return fail(port, &port->pairs[i], ARG_BROKER, strerror(-fd));
	}
	err = open_pair(dev, i, fd, broker);
	if (broker >= 0)
		close(broker);
	return err;
}

int
tpacket4_start_pair(struct rte_eth_dev *dev, unsigned int i)
{
	struct port *port = dev->data->dev_private;
	int err = try_pair(dev, i);

	if (err != -EOPNOTSUPP)
		return err;
	/* AF_XDP's drivers want frames side by side. */
	tpacket4_stop_pair(&port->pairs[i], rx_of(dev, i), tx_of(dev, i));
	port->no_mbufs = true;
	err = try_pair(dev, i);
	port->no_mbufs = !err;
	if (!err)
		LOG(NOTICE, "%s: packets are copied: its driver cannot use mbufs in place",
		    port->iface);
	return err;
}

void
tpacket4_remove_interrupts(struct rte_eth_dev *dev)
{
	if (!dev->intr_handle)
		return;
	rte_intr_vec_list_free(dev->intr_handle);
	rte_intr_instance_free(dev->intr_handle);
	dev->intr_handle = NULL;
}

/* A queue's interrupt is its socket being readable. */
int
tpacket4_add_interrupts(struct rte_eth_dev *dev)
{
	const struct port *port = dev->data->dev_private;
	unsigned int i, nr = dev->data->nb_rx_queues;
	struct rte_intr_handle *h;

	h = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_SHARED);
	if (!h)
		return -ENOMEM;
	dev->intr_handle = h;
	if (rte_intr_type_set(h, RTE_INTR_HANDLE_VDEV) ||
	    rte_intr_efd_counter_size_set(h, 0) ||
	    rte_intr_vec_list_alloc(h, NULL, nr) || rte_intr_nb_efd_set(h, nr) ||
	    rte_intr_max_intr_set(h, nr + 1))
		return -rte_errno;
	for (i = 0; i < nr; i++)
		if (rte_intr_vec_list_index_set(h, i, RTE_INTR_VEC_RXTX_OFFSET + i) ||
		    rte_intr_efds_index_set(h, i, socket_of(&port->pairs[i])->fd))
			return -rte_errno;
	return 0;
}
