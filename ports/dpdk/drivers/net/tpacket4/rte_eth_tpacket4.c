/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ethernet device on AF_PACKET V4 (TPACKET_V4) sockets of Linux.
 *
 * A queue pair is a socket with an Rx and a Tx ring. The memory of the Rx mempool is the
 * socket's area of frames: the buffer of an mbuf is a frame, which the kernel fills and
 * sends in place, and the frame number follows from the mbuf's address. If the kernel
 * cannot use the memory of a mempool, the queue pair has an area of its own, and packets
 * are copied.
 *
 * Rx and Tx of a queue pair may run on different lcores. They share the socket alone.
 *
 * Secondary processes get the sockets from the primary one. The queues are in shared memory,
 * and their pointers are valid in all processes: each maps the rings at the same address.
 */
#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/net_tstamp.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>

#include <tpacket4.h>

#include <bus_vdev_driver.h>
#include <ethdev_driver.h>
#include <ethdev_vdev.h>
#include <rte_atomic.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_interrupts.h>
#include <rte_ip.h>
#include <rte_kvargs.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_mempool.h>
#include <rte_net.h>
#include <rte_power_intrinsics.h>
#include <rte_tcp.h>
#include <rte_udp.h>
#include <rte_version.h>

/* <linux/virtio_net.h> has it since Linux 6.2. */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

/* Frame numbers count units, as mbufs are aligned to cache lines. */
#define UNIT_SHIFT	6
#define UNIT		(1u << UNIT_SHIFT)
/* Bytes that Rx leaves before the data, at least */
#define HEADROOM	RTE_PKTMBUF_HEADROOM
#define MIN_DESC	256
#define MAX_DESC	32768
#define DEFAULT_DESC	2048
#define MAX_PAIRS	64
#define MAX_BURST	128u
#define MAX_SPARE	64
/* Size of a frame in an area of the driver, and the least in one of mbufs */
#define OWN_FRAME	2048
/* Where the rings are mapped, in all processes */
#define RINGS_ADDR	((uintptr_t)1 << 45)
#define RINGS_ALIGN	((uintptr_t)1 << 21)
/* Where a frame of the driver's notes that it is the last one of its packet */
#define LAST_MARK	sizeof(struct tpacket4_meta)
/* Microseconds that poll() polls the device, see SO_BUSY_POLL */
#define BUSY_USECS	20
/* Packets of a poll(): those of several bursts, so that there are fewer system calls */
#define DEFAULT_BUDGET	256

#define ARG_IFACE	"iface"
#define ARG_START	"start_queue"
#define ARG_COUNT	"queue_count"
#define ARG_ZEROCOPY	"zerocopy"
#define ARG_TO_STACK	"to_stack"
#define ARG_BUDGET	"busy_budget"
#define ARG_FANOUT	"fanout_mode"
#define ARG_BYPASS	"qdisc_bypass"
#define ARG_LAUNCH	"launch"
#define ARG_BROKER	"mr_sock"

#define RX_META_OFFLOADS (RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_RSS_HASH | \
			  RTE_ETH_RX_OFFLOAD_TIMESTAMP)
#define TX_META_OFFLOADS (RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM | \
			  RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_UDP_TSO)
#define TX_SEG_FLAGS	(RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_UDP_SEG)
#define TX_META_FLAGS	(RTE_MBUF_F_TX_L4_MASK | TX_SEG_FLAGS)

RTE_LOG_REGISTER_DEFAULT(tpacket4_logtype, NOTICE);
#define RTE_LOGTYPE_NET_TPACKET4 tpacket4_logtype

/* DPDK has it since 24.03. */
#ifndef RTE_LOG_LINE
#define RTE_LOG_LINE(level, type, fmt, ...) RTE_LOG(level, type, fmt "\n", ##__VA_ARGS__)
#endif
#define LOG(level, ...) RTE_LOG_LINE(level, NET_TPACKET4, __VA_ARGS__)

/* The memory of a mempool, registered once for all ports and queues of the process */
struct pool_area {
	LIST_ENTRY(pool_area) next;
	struct rte_mempool *pool;
	struct tp4_area area;
	unsigned int lead;	/* bytes from an mbuf to its frame */
	unsigned int users;
	int fd;			/* socket that has registered it */
};

/* The reasons for which the kernel returns packets unsent */
static const struct {
	int err;
	const char *name;
} tx_errors[] = {
	{ 0, "tx_error_other" },	/* first */
	{ EINVAL, "tx_error_invalid" },
	{ EMSGSIZE, "tx_error_size" },
	{ ENOBUFS, "tx_error_no_buffer" },
	{ EOPNOTSUPP, "tx_error_offload" },
	{ ENETDOWN, "tx_error_down" },
	{ ECANCELED, "tx_error_cancelled" },
};

struct queue_pair;

struct __rte_cache_aligned rx_queue {
	struct tp4_ring ring;
	struct rte_mempool *pool;
	uint8_t *base;		/* of frame number 0, less pool_area.lead */
	uint64_t rearm;		/* first eight bytes that Rx writes to an mbuf */
	unsigned int next;	/* slot to read next */
	unsigned int nr_spare;
	void *spare[MAX_SPARE];	/* mbufs of the pool, the last nr_spare */
	struct rte_mbuf *head, *tail;	/* packet whose last frame is to come */
	struct queue_pair *pair;
	uint64_t packets, bytes, errors;
	unsigned int lead;
	uint32_t room;		/* for data that is copied to an mbuf */
	bool busy_poll, scatter, meta, check_ip, strip_tag;
	bool finish;		/* finish_packet() has something to do */
	bool skip;		/* the rest of a packet is dropped */
	uint16_t nr;
	uint16_t data_offset;	/* of a frame in the mbuf's buffer */
};

struct __rte_cache_aligned tx_queue {
	struct tp4_ring ring;
	uint64_t *posted;	/* in copy mode: the frames that the kernel has, by slot */
	struct rte_mempool *pool;	/* of the frames */
	struct rte_mempool *copies;	/* of packets that are copied to get a tag */
	uint8_t *base;
	struct queue_pair *pair;
	uint32_t frame_size;
	uint16_t data_offset;
	unsigned int lead, low;	/* low: fewer free slots, and sent packets are freed */
	bool meta;
	uint16_t nr;
	uint64_t packets, bytes, errors[RTE_DIM(tx_errors)];
	uint64_t copied;
};

/* In memory that all processes share; the sockets are in dev->process_private. */
struct queue_pair {
	struct rx_queue rx;
	struct tx_queue tx;
	void *map;		/* of the rings, in all processes */
	size_t map_len;
	const struct tpacket4_status *status;
	struct pool_area *shared;	/* NULL: own is used */
	struct tp4_area own;
	uint64_t missed;
	uint16_t id;
	uint16_t port;
	bool tx_stalled;	/* the kernel has kept packets after a kick */
};

/* A port: dev->data->dev_private */
struct port {
	struct queue_pair *pairs;
	struct rte_ether_addr mac;
	char iface[IF_NAMESIZE];
	int ifindex;
	int ctl;		/* a packet socket for ioctls and memberships, of the primary */
	int start_queue, nr_queues;
	int zerocopy, to_stack, busy_budget, qdisc_bypass, fanout_mode;
	int clock;		/* of launch times */
	uint64_t tx_offloads;
	struct sockaddr_un broker;	/* of mr_sock; else the path is empty */
	struct rte_intr_handle *events;	/* of the primary: netlink messages */
	bool promiscuous, allmulticast;
	bool running;
	bool removed;		/* the application has been told */
	bool offered;		/* secondary processes can get the sockets */
	bool copied;		/* packets are copied to an area of the primary process */
};

static LIST_HEAD(, pool_area) pool_areas = LIST_HEAD_INITIALIZER(pool_areas);
static pthread_mutex_t pool_areas_lock = PTHREAD_MUTEX_INITIALIZER;
/* Protects the sockets of this process against its thread for messages of others */
static pthread_mutex_t mp_lock = PTHREAD_MUTEX_INITIALIZER;
static bool has_ipc;	/* this process can have others */
static const struct eth_dev_ops eth_ops, secondary_ops;
/* In a secondary process: number of sockets in process_private, by port */
static uint16_t nr_sockets[RTE_MAX_ETHPORTS];
static int timestamp_offset = -1;
static uint64_t timestamp_flag, launch_flag;

static const struct rte_eth_link no_link = {
	.link_speed = RTE_ETH_SPEED_NUM_UNKNOWN,
	.link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
	.link_status = RTE_ETH_LINK_DOWN,
	.link_autoneg = RTE_ETH_LINK_AUTONEG,
};

/* The socket of a queue pair in this process */
static inline struct tp4_socket *
socket_of(const struct queue_pair *pair)
{
	return (struct tp4_socket *)rte_eth_devices[pair->port].process_private + pair->id;
}

/* --- sockets of a broker -------------------------------------------------------------- */

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
static int
open_socket(const struct sockaddr_un *addr, int *broker)
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

/* --- frames and mbufs ----------------------------------------------------------------- */

static inline uint64_t
mbuf_to_idx(const uint8_t *base, const struct rte_mbuf *m)
{
	return (uint64_t)((const uint8_t *)m - base) >> UNIT_SHIFT;
}

static inline struct rte_mbuf *
idx_to_mbuf(uint8_t *base, uint64_t idx)
{
	return (struct rte_mbuf *)(base + (idx << UNIT_SHIFT));
}

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
	a->area.shared = has_ipc;
	a->area.frame_unit = UNIT;
	a->area.frame_size = range.frame_size;
	a->fd = open_socket(broker, NULL);
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

/* --- Rx ------------------------------------------------------------------------------- */

static inline void
kick_tx(struct queue_pair *pair)
{
	int n = tp4_kick(socket_of(pair), MSG_DONTWAIT);

	pair->tx_stalled = n == -EAGAIN || n == -ENOBUFS;
}

/* The ring is empty: lets the device look for packets and frames. */
static __rte_noinline bool
poll_device(struct rx_queue *q)
{
	struct queue_pair *pair = q->pair;
	struct tp4_socket *s = socket_of(pair);

	/* A program that only receives now has packets to send, too. */
	if (unlikely(pair->tx_stalled))
		kick_tx(pair);
	if (q->busy_poll)
		tp4_busy_poll(s);
	else if (tp4_rx_need_kick(s))
		poll(&(struct pollfd){ .fd = s->fd, .events = POLLIN }, 1, 0);
	else
		return false;
	return true;
}

/* All of a descriptor that the kernel has written, in one load */
#define DESC_KERNEL	((uint64_t)TP4_DESC_KERNEL << 56)
#define DESC_CONT	((uint64_t)TP4_PKT_CONT << 56)
#define DESC_META	((uint64_t)TP4_META << 56)
#define DESC_ERROR	((uint64_t)UINT8_MAX << 48)
#define DESC_ANY	(DESC_ERROR | (uint64_t)UINT8_MAX << 56)

static inline uint64_t
read_desc(const struct tpacket4_desc *d)
{
#if defined(RTE_ARCH_64) && RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN
	uint64_t state = *(volatile tp4_word *)__tp4_word(d);

	rte_io_rmb();
	return state;
#else
	uint64_t flags = *(const volatile uint8_t *)&d->flags;

	rte_io_rmb();
	return d->len | (uint64_t)d->offset << 32 | (uint64_t)d->error << 48 | flags << 56;
#endif
}

static inline void
set_received(struct rte_mbuf *m, uint64_t rearm, uint64_t offset, uint32_t len)
{
#if RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN
	rearm += offset;
	memcpy(&m->data_off, &rearm, sizeof(rearm));
#else
	memcpy(&m->data_off, &rearm, sizeof(rearm));
	m->data_off += offset;
#endif
	m->packet_type = 0;
	m->pkt_len = len;
	m->data_len = len;
}

static inline void
read_meta(struct rte_mbuf *m, const struct tpacket4_meta *meta)
{
	uint64_t flags = m->ol_flags;

	if (meta->flags & TP4_META_RX_CSUM_VALID)
		flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	else if (meta->flags & TP4_META_CSUM)	/* of this host, not computed yet */
		flags |= RTE_MBUF_F_RX_L4_CKSUM_NONE;
	if (meta->flags & TP4_META_RX_HASH) {
		flags |= RTE_MBUF_F_RX_RSS_HASH;
		m->hash.rss = meta->hash;
	}
	if (meta->flags & TP4_META_RX_VLAN) {	/* the tag is in the data, too */
		flags |= RTE_MBUF_F_RX_VLAN;
		m->vlan_tci = meta->vlan_tci;
	}
	if (meta->flags & TP4_META_GSO) {
		flags |= RTE_MBUF_F_RX_LRO;
		m->tso_segsz = meta->gso_size;
	}
	if (timestamp_offset >= 0) {
		*RTE_MBUF_DYNFIELD(m, timestamp_offset, rte_mbuf_timestamp_t *) = meta->tstamp;
		flags |= timestamp_flag;
	}
	m->ol_flags = flags;
}

/* Checks the checksum of an IPv4 header, of which the kernel's metadata say nothing. */
static void
check_ipv4(struct rte_mbuf *m)
{
	const uint32_t layers = RTE_PTYPE_L2_MASK | RTE_PTYPE_L3_MASK;
	struct rte_net_hdr_lens lens = { 0 };

	if (!RTE_ETH_IS_IPV4_HDR(rte_net_get_ptype(m, &lens, layers)) ||
	    lens.l2_len + lens.l3_len > rte_pktmbuf_data_len(m))
		return;
	if (lens.l3_len >= sizeof(struct rte_ipv4_hdr) &&
	    rte_raw_cksum(rte_pktmbuf_mtod_offset(m, void *, lens.l2_len), lens.l3_len) ==
	    UINT16_MAX)
		m->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD;
	else
		m->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_BAD;
}

/* Offloads that the driver does itself */
static __rte_noinline void
finish_packet(const struct rx_queue *q, struct rte_mbuf *m)
{
	if (q->check_ip)
		check_ipv4(m);
	/* rte_vlan_strip() does not look at the length. */
	if (q->strip_tag && rte_pktmbuf_data_len(m) >= RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN)
		rte_vlan_strip(m);
}

/* Adds a frame to a packet. Returns the packet if it is complete, else NULL. */
static __rte_noinline struct rte_mbuf *
add_segment(struct rx_queue *q, struct rte_mbuf *m, bool more)
{
	if (!q->head) {
		q->head = m;
	} else {
		q->tail->next = m;
		q->head->nb_segs++;
		q->head->pkt_len += m->data_len;
	}
	q->tail = m;
	if (more)
		return NULL;
	m = q->head;
	q->head = NULL;
	if (m->nb_segs > 1 && !q->scatter) {
		rte_pktmbuf_free(m);
		q->errors++;
		return NULL;
	}
	return m;
}

/* A frame came back without a packet. */
static __rte_noinline void
drop_frame(struct rx_queue *q, struct rte_mbuf *m)
{
	rte_mempool_put(q->pool, m);
	rte_pktmbuf_free(q->head);
	q->head = NULL;
}

/* Gets mbufs of the pool. Returns their number. */
static __rte_noinline unsigned int
refill_spare(struct rx_queue *q)
{
	unsigned int nr = q->nr_spare;

	if (!rte_mempool_get_bulk(q->pool, q->spare, MAX_SPARE - nr)) {
		q->nr_spare = MAX_SPARE;
	} else if (!nr) {
		if (rte_mempool_get(q->pool, &q->spare[MAX_SPARE - 1]))
			rte_eth_devices[q->pair->port].data->rx_mbuf_alloc_failed++;
		else
			q->nr_spare = 1;
	}
	return q->nr_spare;
}

static inline void *
get_spare(struct rx_queue *q)
{
	return q->spare[MAX_SPARE - q->nr_spare--];
}

/*
 * What receive() leaves: packets of several frames, and frames without a packet, for example.
 * There are as many spare mbufs as @nb.
 */
static __rte_noinline uint16_t
receive_rest(struct rx_queue *q, struct rte_mbuf **bufs, uint16_t nb)
{
	const struct tp4_ring *r = &q->ring;
	uint16_t got = 0;

	while (nb--) {
		struct tpacket4_desc *d = &r->q.ring[q->next & r->q.ring_mask];
		uint64_t state = read_desc(d);
		struct rte_mbuf *m;

		if (state & DESC_KERNEL)
			break;
		m = idx_to_mbuf(q->base, d->idx);
		tp4_desc_give(d, mbuf_to_idx(q->base, get_spare(q)), 0, 0, 0);
		q->next++;
		if (state & DESC_ERROR) {
			drop_frame(q, m);
			continue;
		}
		set_received(m, q->rearm, (uint16_t)(state >> 32), state);
		m->ol_flags = 0;
		if (state & DESC_META)
			read_meta(m, (void *)((uint8_t *)m + q->lead));
		m = add_segment(q, m, state & DESC_CONT);
		if (!m)
			continue;
		q->bytes += m->pkt_len;
		if (q->finish)
			finish_packet(q, m);
		bufs[got++] = m;
	}
	return got;
}

/* Appends the data of a frame to a packet, in as many mbufs as it takes. */
static bool
append_data(struct rte_mempool *pool, struct rte_mbuf *head, const uint8_t *data, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_lastseg(head);

	while (len) {
		uint16_t room = rte_pktmbuf_tailroom(m);

		if (!room) {
			m->next = rte_pktmbuf_alloc(pool);
			if (!m->next)
				return false;
			m = m->next;
			head->nb_segs++;
			continue;
		}
		room = RTE_MIN(room, len);
		memcpy(rte_pktmbuf_mtod_offset(m, void *, m->data_len), data, room);
		m->data_len += room;
		head->pkt_len += room;
		data += room;
		len -= room;
	}
	return true;
}

/* Copies a frame to a packet. Returns the packet if it is complete, else NULL. */
static struct rte_mbuf *
copy_frame(struct rx_queue *q, const struct tpacket4_desc *d)
{
	const struct tp4_area *area = &q->pair->own;
	struct rte_mbuf *m = q->head;

	q->head = NULL;
	if (d->error) {
		rte_pktmbuf_free(m);
		q->skip = false;
		return NULL;
	}
	if (q->skip) {
		q->skip = d->flags & TP4_PKT_CONT;
		return NULL;
	}
	if (!m) {
		m = get_spare(q);
		set_received(m, q->rearm, 0, 0);
		m->ol_flags &= RTE_MBUF_F_EXTERNAL;
		if (q->meta && d->flags & TP4_META)
			read_meta(m, tp4_meta(area, d));
	}
	if (!append_data(q->pool, m, tp4_data(area, d), d->len)) {
		rte_eth_devices[q->pair->port].data->rx_mbuf_alloc_failed++;
		rte_pktmbuf_free(m);
		q->skip = d->flags & TP4_PKT_CONT;
		return NULL;
	}
	if (d->flags & TP4_PKT_CONT) {
		q->head = m;
		return NULL;
	}
	if (m->nb_segs > 1 && !q->scatter) {
		rte_pktmbuf_free(m);
		q->errors++;
		return NULL;
	}
	q->bytes += m->pkt_len;
	return m;
}

/* The same as receive_rest(), with an area of the driver's */
static __rte_noinline uint16_t
copy_rest(struct rx_queue *q, struct rte_mbuf **bufs, uint16_t nb)
{
	const struct tp4_ring *r = &q->ring;
	uint16_t got = 0;

	while (nb--) {
		struct tpacket4_desc *d = &r->q.ring[q->next & r->q.ring_mask];
		struct rte_mbuf *m;

		if (read_desc(d) & DESC_KERNEL)
			break;
		m = copy_frame(q, d);
		tp4_desc_give(d, d->idx, 0, 0, 0);
		q->next++;
		if (!m)
			continue;
		if (q->finish)
			finish_packet(q, m);
		bufs[got++] = m;
	}
	return got;
}

/*
 * Takes a packet of one frame, @state, from a slot, which gets another frame: that of the mbuf
 * @spare, or the same one if the packet is copied to @spare. @base and @rearm are the queue's:
 * the compiler cannot know that they stay the same.
 */
static __rte_always_inline struct rte_mbuf *
take_packet(const struct rx_queue *q, uint8_t *base, uint64_t rearm, struct tpacket4_desc *d,
	    uint64_t state, struct rte_mbuf *spare, const bool meta, const bool copy)
{
	struct rte_mbuf *m;
	uint8_t *frame;

	if (copy) {
		m = spare;
		frame = base + d->idx * OWN_FRAME;
		set_received(m, rearm, 0, state);
		m->ol_flags &= RTE_MBUF_F_EXTERNAL;
		memcpy(rte_pktmbuf_mtod(m, void *), frame + (uint16_t)(state >> 32),
		       (uint32_t)state);
	} else {
		m = idx_to_mbuf(base, d->idx);
		frame = (uint8_t *)m + q->lead;
		d->idx = mbuf_to_idx(base, spare);
		set_received(m, rearm, meta ? (uint16_t)(state >> 32) : state >> 32, state);
		m->ol_flags = 0;
	}
	if (meta && state & DESC_META)
		read_meta(m, (void *)frame);
	if (meta && q->finish)
		finish_packet(q, m);
	return m;
}

/*
 * All slots are posted at any time. The first slot of a burst is posted last, so that the
 * kernel sees all at once. The loop ends at the end of the ring; the rest of the burst does not
 * wait, as few packets that go round would come in ever smaller bursts.
 */
static __rte_always_inline uint16_t
receive(struct rx_queue *q, struct rte_mbuf **bufs, uint16_t nb, const bool meta, const bool copy)
{
	const uint64_t special = meta ? DESC_ANY & ~DESC_META : DESC_ANY, rearm = q->rearm;
	const uint32_t room = copy ? q->room : UINT32_MAX;
	unsigned int at = q->next & q->ring.q.ring_mask;
	struct tpacket4_desc *const first = &q->ring.q.ring[at], *d = first;
	uint64_t state = read_desc(first), bytes;
	uint8_t *const base = q->base;
	void *const *spare;
	size_t i = 0, run;

	if (state & DESC_KERNEL) {
		if (!poll_device(q))
			return 0;
		state = read_desc(first);
		if (state & DESC_KERNEL)
			return 0;
	}
	if (unlikely(q->nr_spare < nb))
		nb = RTE_MIN(nb, refill_spare(q));
	if (unlikely(!nb))
		return 0;
	spare = &q->spare[MAX_SPARE - q->nr_spare];
	run = RTE_MIN(nb, q->ring.q.ring_mask + 1 - at);
	if (likely(!(state & special || (uint32_t)state > room || q->head || q->skip))) {
		bufs[0] = take_packet(q, base, rearm, d, state, spare[0], meta, copy);
		bytes = state;	/* the length is the lower half */
		for (i = 1; i < run; i++) {
			state = read_desc(++d);
			if (state & special || (uint32_t)state > room)
				break;
			bufs[i] = take_packet(q, base, rearm, d, state, spare[i], meta, copy);
			tp4_desc_give(d, d->idx, 0, 0, 0);
			bytes += state;
		}
		tp4_desc_give(first, first->idx, 0, 0, 0);
		q->nr_spare -= i;
		q->next += i;
		q->bytes += (uint32_t)bytes;
	}
	if (i < nb && !(state & DESC_KERNEL))
		i += copy ? copy_rest(q, bufs + i, nb - i) : receive_rest(q, bufs + i, nb - i);
	q->packets += i;
	return i;
}

static uint16_t
eth_rx(void *queue, struct rte_mbuf **bufs, uint16_t nb)
{
	return receive(queue, bufs, nb, false, false);
}

static uint16_t
eth_rx_meta(void *queue, struct rte_mbuf **bufs, uint16_t nb)
{
	return receive(queue, bufs, nb, true, false);
}

static uint16_t
eth_rx_copy(void *queue, struct rte_mbuf **bufs, uint16_t nb)
{
	return receive(queue, bufs, nb, true, true);
}

/* Of rte_eth_rx_queue_count() */
#if RTE_VER_YEAR * 100 + RTE_VER_MONTH < 2511
typedef uint32_t queue_count_t;
#else
typedef int queue_count_t;
#endif

/* Returns the number of slots that have a packet, or the error of one. */
static queue_count_t
eth_rx_queue_count(void *queue)
{
	const struct rx_queue *q = queue;
	const struct tp4_ring *r = &q->ring;
	unsigned int n = 0;

	while (n < q->nr && !(read_desc(&r->q.ring[(q->next + n) & r->q.ring_mask]) & DESC_KERNEL))
		n++;
	return n;
}

static int
eth_rx_descriptor_status(void *queue, uint16_t offset)
{
	const struct rx_queue *q = queue;
	const struct tp4_ring *r = &q->ring;

	if (offset >= q->nr)
		return -EINVAL;
	return read_desc(&r->q.ring[(q->next + offset) & r->q.ring_mask]) & DESC_KERNEL ?
	       RTE_ETH_RX_DESC_AVAIL : RTE_ETH_RX_DESC_DONE;
}

/* --- Tx ------------------------------------------------------------------------------- */

/* The free slots come first, then those that have been posted for the longest time. */
static int
eth_tx_descriptor_status(void *queue, uint16_t offset)
{
	const struct tx_queue *q = queue;
	const struct tpacket4_queue *r = &q->ring.q;

	if (offset >= q->nr)
		return -EINVAL;
	if (offset < r->num_free)
		return RTE_ETH_TX_DESC_DONE;
	return read_desc(&r->ring[(r->avail_idx + offset) & r->ring_mask]) & DESC_KERNEL ?
	       RTE_ETH_TX_DESC_FULL : RTE_ETH_TX_DESC_DONE;
}

static void
count_tx_error(struct tx_queue *q, uint8_t err)
{
	unsigned int i = RTE_DIM(tx_errors) - 1;

	while (i && tx_errors[i].err != err)
		i--;
	q->errors[i]++;
}

/* Is this the last frame of a packet? The kernel does not return the flag. */
static inline bool
is_last(const struct tx_queue *q, uint64_t idx)
{
	if (q->pool)
		return idx_to_mbuf(q->base, idx)->pkt_len;
	return *(const uint32_t *)(tp4_frame(&q->pair->own, idx) + LAST_MARK);
}

/* In copy mode, frames come back in any order, in the slots of others. */
static inline void
note_sent(struct tx_queue *q, unsigned int at, uint64_t idx)
{
	const unsigned int mask = q->ring.q.ring_mask;
	unsigned int i = at;

	while (q->posted[i & mask] != idx)
		i++;
	q->posted[i & mask] = q->posted[at & mask];
}

/* Frees the mbufs of at most @max frames that were sent. */
static unsigned int
free_sent(struct tx_queue *q, unsigned int max)
{
	struct tp4_ring *r = &q->ring;
	unsigned int i, n, freed = 0;
	void *sent[MAX_BURST];

	while (freed < max) {
		n = tp4_ring_peek(r, RTE_MIN(max - freed, MAX_BURST));
		if (!n)
			break;
		for (i = 0; i < n; i++) {
			const struct tpacket4_desc *d = tp4_ring_at(r, i);

			if (unlikely(d->error) && is_last(q, d->idx))
				count_tx_error(q, d->error);
			if (q->posted)
				note_sent(q, r->q.last_used_idx + i, d->idx);
			if (q->pool)
				sent[i] = idx_to_mbuf(q->base, d->idx);
		}
		tp4_ring_take(r, n);
		if (q->pool)
			rte_mempool_put_bulk(q->pool, sent, n);
		freed += n;
	}
	return freed;
}

/* Can the kernel send this segment from where it lies? */
static inline bool
is_frame(const struct tx_queue *q, const struct rte_mbuf *m, uint16_t min_offset)
{
	uint32_t offset = (uint32_t)m->data_off - q->data_offset;

	/* The receiver at the other end of a veth gets the frame itself. */
	return m->pool == q->pool && rte_mbuf_refcnt_read(m) == 1 &&
	       !(m->ol_flags & (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)) &&
	       offset - min_offset <= q->frame_size &&
	       offset + m->data_len <= q->frame_size;
}

/*
 * A burst that is being written to the ring. The kernel sees it when the first slot is
 * posted, which is done last.
 */
struct burst {
	struct tpacket4_desc first;
	unsigned int posted;
};

static inline struct tpacket4_desc *
next_slot(const struct tx_queue *q, const struct burst *b)
{
	const struct tpacket4_queue *r = &q->ring.q;

	return &r->ring[(r->avail_idx + b->posted) & r->ring_mask];
}

static __rte_always_inline void
post_frame(struct tx_queue *q, struct burst *b, uint64_t idx, uint32_t len, uint16_t offset,
	   uint8_t flags, const bool track)
{
	if (track && q->posted)
		q->posted[(q->ring.q.avail_idx + b->posted) & q->ring.q.ring_mask] = idx;
	if (likely(b->posted))
		tp4_desc_give(next_slot(q, b), idx, len, offset, flags);
	else
		b->first = (struct tpacket4_desc){
			.idx = idx, .len = len, .offset = offset, .flags = flags,
		};
	b->posted++;
}

static void
end_burst(struct tx_queue *q, const struct burst *b)
{
	struct tpacket4_queue *r = &q->ring.q;

	if (!b->posted)
		return;
	tp4_desc_give(&r->ring[r->avail_idx & r->ring_mask], b->first.idx, b->first.len,
		      b->first.offset, b->first.flags);
	r->avail_idx += b->posted;
	r->num_free -= b->posted;
}

static inline unsigned int
slots_left(const struct tx_queue *q, const struct burst *b)
{
	return q->ring.q.num_free - b->posted;
}

static inline bool
needs_meta(const struct rte_mbuf *m)
{
	return m->ol_flags & (TX_META_FLAGS | launch_flag);
}

static inline bool
wants_tag(const struct rte_mbuf *m)
{
	return m->ol_flags & RTE_MBUF_F_TX_VLAN;
}

/* Writes the metadata of a packet that asks for it. Returns the descriptor's flag. */
static uint8_t
write_meta(struct tpacket4_meta *meta, const struct rte_mbuf *m)
{
	uint16_t l4 = m->l2_len + m->l3_len;

	if (!needs_meta(m))
		return 0;
	memset(meta, 0, sizeof(*meta));
	if ((m->ol_flags & RTE_MBUF_F_TX_L4_MASK) == RTE_MBUF_F_TX_UDP_CKSUM ||
	    m->ol_flags & RTE_MBUF_F_TX_UDP_SEG)
		tp4_meta_csum(meta, l4, offsetof(struct rte_udp_hdr, dgram_cksum));
	else if (m->ol_flags & TX_META_FLAGS)
		tp4_meta_csum(meta, l4, offsetof(struct rte_tcp_hdr, cksum));
	if (m->ol_flags & launch_flag)
		tp4_meta_launch(meta, *RTE_MBUF_DYNFIELD(m, timestamp_offset,
							 rte_mbuf_timestamp_t *));
	if (m->ol_flags & RTE_MBUF_F_TX_TCP_SEG)
		tp4_meta_gso(meta, m->ol_flags & RTE_MBUF_F_TX_IPV6 ?
			     VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4,
			     m->tso_segsz);
	else if (m->ol_flags & RTE_MBUF_F_TX_UDP_SEG)
		tp4_meta_gso(meta, VIRTIO_NET_HDR_GSO_UDP_L4, m->tso_segsz);
	return TP4_META;
}

/* Copies a packet to mbufs of the queue's pool. Returns NULL if there are too few. */
static struct rte_mbuf *
copy_to_pool(struct tx_queue *q, const struct rte_mbuf *from)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(q->pool);

	if (!m)
		return NULL;
	m->ol_flags = from->ol_flags & ~(RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL);
	m->tx_offload = from->tx_offload;
	if (m->ol_flags & launch_flag)
		*RTE_MBUF_DYNFIELD(m, timestamp_offset, rte_mbuf_timestamp_t *) =
			*RTE_MBUF_DYNFIELD(from, timestamp_offset, rte_mbuf_timestamp_t *);
	for (; from; from = from->next)
		if (!append_data(q->pool, m, rte_pktmbuf_mtod(from, uint8_t *),
				 from->data_len)) {
			rte_pktmbuf_free(m);
			return NULL;
		}
	q->copied++;
	return m;
}

/* Drops a packet that can never be sent. */
static bool
drop_packet(struct tx_queue *q, struct rte_mbuf *m, struct rte_mbuf *copy, uint8_t err)
{
	rte_pktmbuf_free(copy);
	rte_pktmbuf_free(m);
	count_tx_error(q, err);
	return true;
}

/* A packet of several frames, or one to copy. Returns whether it was taken. */
static __rte_noinline bool
send_slow(struct tx_queue *q, struct burst *b, struct rte_mbuf *m)
{
	uint16_t min_offset = q->meta && needs_meta(m) ? sizeof(struct tpacket4_meta) : 0;
	struct rte_mbuf *next, *copy = NULL, *seg;
	bool in_place = true;
	uint8_t flags = 0;

	for (seg = m; seg; seg = seg->next)
		in_place &= is_frame(q, seg, seg == m ? min_offset : 0) && seg->data_len;
	if (!in_place) {
		copy = copy_to_pool(q, m);
		if (!copy)
			return false;
		for (seg = copy; seg && is_frame(q, seg, 0); seg = seg->next)
			;
		if (seg)
			return drop_packet(q, m, copy, EMSGSIZE);
	}
	if ((copy ? copy : m)->nb_segs > slots_left(q, b)) {
		if ((copy ? copy : m)->nb_segs > q->nr)
			return drop_packet(q, m, copy, EMSGSIZE);
		rte_pktmbuf_free(copy);
		return false;
	}
	if (copy) {
		rte_pktmbuf_free(m);
		m = copy;
	}
	q->bytes += m->pkt_len;
	if (min_offset)
		flags = write_meta((void *)((uint8_t *)m + q->lead), m);
	for (seg = m; seg; seg = next) {
		next = seg->next;
		seg->next = NULL;
		seg->nb_segs = 1;
		seg->pkt_len = !next;	/* see is_last() */
		post_frame(q, b, mbuf_to_idx(q->base, seg), seg->data_len,
			   seg->data_off - q->data_offset, flags | (next ? TP4_PKT_CONT : 0),
			   true);
		flags = 0;
	}
	return true;
}

/* Sends a packet with the VLAN tag that it asks for. Returns whether it was taken. */
static __rte_noinline bool
send_tagged(struct tx_queue *q, struct burst *b, struct rte_mbuf *m,
	    bool (*send)(struct tx_queue *q, struct burst *b, struct rte_mbuf *m))
{
	struct rte_mbuf *copy;

	/* If there is no room, it should stay as it is. */
	if (m->nb_segs > slots_left(q, b) && m->nb_segs <= q->nr)
		return false;
	if (!rte_vlan_insert(&m))
		return send(q, b, m);
	/* Its memory is that of other packets, too, or has no room before the data. */
	copy = q->copies ? rte_pktmbuf_copy(m, q->copies, 0, UINT32_MAX) : NULL;
	if (!copy)
		return false;
	if (rte_vlan_insert(&copy))
		return drop_packet(q, m, copy, EINVAL);
	if (!send(q, b, copy)) {
		rte_pktmbuf_free(copy);
		return false;
	}
	rte_pktmbuf_free(m);
	return true;
}

static inline void
kick_if_needed(struct tx_queue *q)
{
	if (tp4_ring_pending(&q->ring) && tp4_need_kick(socket_of(q->pair)))
		kick_tx(q->pair);
}

static __rte_always_inline uint16_t
transmit(struct tx_queue *q, struct rte_mbuf **bufs, uint16_t nb, const bool meta,
	 const bool track)
{
	struct burst b = { .posted = 0 };
	uint64_t bytes = 0;
	uint16_t i;

	if (q->ring.q.num_free < q->low + nb)
		free_sent(q, UINT_MAX);
	for (i = 0; i < nb; i++) {
		struct rte_mbuf *m = bufs[i];

		if (unlikely(m->nb_segs != 1 || !is_frame(q, m, 0) ||
			     (meta && (needs_meta(m) || wants_tag(m))))) {
			if (meta && wants_tag(m) ? !send_tagged(q, &b, m, send_slow) :
						   !send_slow(q, &b, m))
				break;
			continue;
		}
		if (unlikely(!slots_left(q, &b)))
			break;
		bytes += m->data_len;
		post_frame(q, &b, mbuf_to_idx(q->base, m), m->data_len,
			   m->data_off - q->data_offset, 0, track);
	}
	end_burst(q, &b);
	kick_if_needed(q);
	q->packets += i;
	q->bytes += bytes;
	return i;
}

static uint16_t
eth_tx(void *queue, struct rte_mbuf **bufs, uint16_t nb)
{
	return transmit(queue, bufs, nb, false, false);
}

static uint16_t
eth_tx_meta(void *queue, struct rte_mbuf **bufs, uint16_t nb)
{
	return transmit(queue, bufs, nb, true, false);
}

/* With or without metadata, in copy mode */
static uint16_t
eth_tx_tap(void *queue, struct rte_mbuf **bufs, uint16_t nb)
{
	return transmit(queue, bufs, nb, true, true);
}

/* Copies a packet to frames of the driver's area. A free slot has the number of one. */
static bool
send_copy(struct tx_queue *q, struct burst *b, struct rte_mbuf *m)
{
	const uint32_t room = OWN_FRAME - TP4_ZC_HEADROOM;
	uint32_t n, pos = 0, left = m->pkt_len;
	const struct tp4_area *area = &q->pair->own;
	uint8_t flags = 0;

	n = (left + room - 1) / room;
	if (n > q->nr)
		return drop_packet(q, m, NULL, EMSGSIZE);
	if (n > slots_left(q, b))
		return false;
	for (; left; pos += n, left -= n) {
		uint64_t idx = next_slot(q, b)->idx;
		uint8_t *frame = tp4_frame(area, idx), *to = frame + TP4_ZC_HEADROOM;
		const void *from;

		n = RTE_MIN(left, room);
		from = rte_pktmbuf_read(m, pos, n, to);
		if (from != to)
			memcpy(to, from, n);
		if (q->meta && !pos)
			flags = write_meta((void *)frame, m);
		*(uint32_t *)(frame + LAST_MARK) = left == n;
		post_frame(q, b, idx, n, TP4_ZC_HEADROOM, flags | (left > n ? TP4_PKT_CONT : 0),
			   false);
		flags = 0;
	}
	q->bytes += m->pkt_len;
	q->copied++;
	rte_pktmbuf_free(m);
	return true;
}

/* The same as transmit(), with an area of the driver's */
static uint16_t
eth_tx_copy(void *queue, struct rte_mbuf **bufs, uint16_t nb)
{
	struct burst b = { .posted = 0 };
	struct tx_queue *q = queue;
	uint16_t i;

	if (q->ring.q.num_free < q->low + nb)
		free_sent(q, UINT_MAX);
	for (i = 0; i < nb; i++)
		if (wants_tag(bufs[i]) ? !send_tagged(q, &b, bufs[i], send_copy) :
					 !send_copy(q, &b, bufs[i]))
			break;
	end_burst(q, &b);
	kick_if_needed(q);
	q->packets += i;
	return i;
}

/* Writes the checksum of the pseudo header, which V4 expects with the length. */
static uint16_t
eth_tx_prepare(void *queue __rte_unused, struct rte_mbuf **bufs, uint16_t nb)
{
	uint16_t i;

	for (i = 0; i < nb; i++) {
		struct rte_mbuf *m = bufs[i];
		uint16_t cksum;
		void *ip, *l4;
		int err;

		err = rte_net_intel_cksum_prepare(m);
		if (err) {
			rte_errno = -err;
			break;
		}
		if (!(m->ol_flags & TX_SEG_FLAGS))
			continue;
		if (rte_pktmbuf_data_len(m) < m->l2_len + m->l3_len + m->l4_len) {
			rte_errno = ENOTSUP;
			break;
		}
		ip = rte_pktmbuf_mtod_offset(m, void *, m->l2_len);
		/* It was set to 0. Nobody computes it for a packet that stays whole. */
		if (m->ol_flags & RTE_MBUF_F_TX_IPV4 && m->ol_flags & RTE_MBUF_F_TX_IP_CKSUM)
			((struct rte_ipv4_hdr *)ip)->hdr_checksum = rte_ipv4_cksum(ip);
		l4 = rte_pktmbuf_mtod_offset(m, void *, m->l2_len + m->l3_len);
		cksum = m->ol_flags & RTE_MBUF_F_TX_IPV6 ?
			rte_ipv6_phdr_cksum(ip, 0) : rte_ipv4_phdr_cksum(ip, 0);
		if (m->ol_flags & RTE_MBUF_F_TX_UDP_SEG)
			((struct rte_udp_hdr *)l4)->dgram_cksum = cksum;
		else
			((struct rte_tcp_hdr *)l4)->cksum = cksum;
	}
	return i;
}

static int
eth_tx_done_cleanup(void *queue, uint32_t max)
{
	struct tx_queue *q = queue;

	return free_sent(q, max ? max : UINT_MAX);
}

/* --- the interface -------------------------------------------------------------------- */

/* The interface may have got another name. */
static int
ask_interface(const struct port *port, unsigned long request, struct ifreq *ifr)
{
	struct ifreq name = { .ifr_ifindex = port->ifindex };

	if (ioctl(port->ctl, SIOCGIFNAME, &name))
		return -errno;
	memcpy(ifr->ifr_name, name.ifr_name, sizeof(ifr->ifr_name));
	return ioctl(port->ctl, request, ifr) ? -errno : 0;
}

static int
set_flag(const struct port *port, short flag, bool on)
{
	struct ifreq ifr = { 0 };
	int err = ask_interface(port, SIOCGIFFLAGS, &ifr);

	if (err || !(ifr.ifr_flags & flag) == !on)
		return err;
	ifr.ifr_flags ^= flag;
	return ask_interface(port, SIOCSIFFLAGS, &ifr);
}

static int
eth_link_up(struct rte_eth_dev *dev)
{
	return set_flag(dev->data->dev_private, IFF_UP, true);
}

static int
eth_link_down(struct rte_eth_dev *dev)
{
	return set_flag(dev->data->dev_private, IFF_UP, false);
}

/* Mbit/s, or unknown, as for a virtual device */
static uint32_t
get_speed(const struct port *port)
{
	struct {
		struct ethtool_link_settings settings;
		uint32_t masks[3 * 127];
	} link = { .settings.cmd = ETHTOOL_GLINKSETTINGS };
	struct ifreq ifr = { .ifr_data = (void *)&link };

	/* The first call returns the size of the masks. */
	if (ask_interface(port, SIOCETHTOOL, &ifr))
		return RTE_ETH_SPEED_NUM_UNKNOWN;
	link.settings.link_mode_masks_nwords = -link.settings.link_mode_masks_nwords;
	link.settings.cmd = ETHTOOL_GLINKSETTINGS;
	if (ask_interface(port, SIOCETHTOOL, &ifr))
		return RTE_ETH_SPEED_NUM_UNKNOWN;
	return link.settings.speed;
}

static int
eth_link_update(struct rte_eth_dev *dev, int wait __rte_unused)
{
	const struct port *port = dev->data->dev_private;
	struct rte_eth_link link = no_link;
	struct ifreq ifr = { 0 };

	if (port->running && !ask_interface(port, SIOCGIFFLAGS, &ifr) &&
	    ifr.ifr_flags & IFF_RUNNING) {
		link.link_status = RTE_ETH_LINK_UP;
		link.link_speed = get_speed(port);
	}
	return rte_eth_linkstatus_set(dev, &link);
}

static int
eth_is_removed(struct rte_eth_dev *dev)
{
	const struct port *port = dev->data->dev_private;
	char name[IF_NAMESIZE];

	return !if_indextoname(port->ifindex, name);
}

/* --- events --------------------------------------------------------------------------- */

/*
 * In the interrupt thread: an interface has changed. The messages are not read, as the kernel
 * can drop some of them.
 */
static void
handle_events(void *arg)
{
	struct rte_eth_dev *dev = arg;
	const struct rte_intr_conf *conf = &dev->data->dev_conf.intr_conf;
	struct port *port = dev->data->dev_private;
	int fd = rte_intr_fd_get(port->events);
	char message[8192];
	ssize_t n;

	do
		n = recv(fd, message, sizeof(message), 0);
	while (n > 0 || (n < 0 && (errno == ENOBUFS || errno == EINTR)));
	if (!eth_link_update(dev, 0) && conf->lsc)
		rte_eth_dev_callback_process(dev, RTE_ETH_EVENT_INTR_LSC, NULL);
	if (eth_is_removed(dev) && conf->rmv && !port->removed) {
		port->removed = true;
		rte_eth_dev_callback_process(dev, RTE_ETH_EVENT_INTR_RMV, NULL);
	}
}

static void
stop_events(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;

	if (!port->events)
		return;
	rte_intr_callback_unregister_sync(port->events, handle_events, dev);
	close(rte_intr_fd_get(port->events));
	rte_intr_instance_free(port->events);
	port->events = NULL;
}

static int
start_events(struct rte_eth_dev *dev)
{
	const struct rte_intr_conf *conf = &dev->data->dev_conf.intr_conf;
	const struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	struct port *port = dev->data->dev_private;
	int fd, err = -ENOMEM;

	if (!conf->lsc && !conf->rmv)
		return 0;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr))) {
		err = -errno;
		goto close;
	}
	port->events = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	if (!port->events)
		goto close;
	if (rte_intr_type_set(port->events, RTE_INTR_HANDLE_EXT) ||
	    rte_intr_fd_set(port->events, fd))
		goto free;
	err = rte_intr_callback_register(port->events, handle_events, dev);
	if (!err)
		return 0;
free:
	rte_intr_instance_free(port->events);
	port->events = NULL;
close:
	close(fd);
	return err;
}

/* The kernel counts memberships, and ethdev asks for them again at each start. */
static int
set_membership(struct rte_eth_dev *dev, int type, bool on)
{
	struct port *port = dev->data->dev_private;
	bool *is_on = type == PACKET_MR_PROMISC ? &port->promiscuous : &port->allmulticast;
	struct packet_mreq req = { .mr_ifindex = port->ifindex, .mr_type = type };

	if (*is_on == on)
		return 0;
	if (setsockopt(port->ctl, SOL_PACKET, on ? PACKET_ADD_MEMBERSHIP :
		       PACKET_DROP_MEMBERSHIP, &req, sizeof(req)))
		return -errno;
	*is_on = on;
	return 0;
}

static int
eth_promiscuous_enable(struct rte_eth_dev *dev)
{
	return set_membership(dev, PACKET_MR_PROMISC, true);
}

static int
eth_promiscuous_disable(struct rte_eth_dev *dev)
{
	return set_membership(dev, PACKET_MR_PROMISC, false);
}

static int
eth_allmulticast_enable(struct rte_eth_dev *dev)
{
	return set_membership(dev, PACKET_MR_ALLMULTI, true);
}

static int
eth_allmulticast_disable(struct rte_eth_dev *dev)
{
	return set_membership(dev, PACKET_MR_ALLMULTI, false);
}

static int
eth_mac_addr_set(struct rte_eth_dev *dev, struct rte_ether_addr *addr)
{
	struct ifreq ifr = { .ifr_hwaddr.sa_family = ARPHRD_ETHER };

	memcpy(ifr.ifr_hwaddr.sa_data, addr, sizeof(*addr));
	return ask_interface(dev->data->dev_private, SIOCSIFHWADDR, &ifr);
}

static int
set_mtu(const struct port *port, uint16_t mtu)
{
	struct ifreq ifr = { .ifr_mtu = mtu };

	return ask_interface(port, SIOCSIFMTU, &ifr);
}

static int
get_mtu(const struct port *port)
{
	struct ifreq ifr = { 0 };
	int err = ask_interface(port, SIOCGIFMTU, &ifr);

	return err ? err : ifr.ifr_mtu;
}

/* --- start and stop of a queue pair --------------------------------------------------- */

/* Returns the length of the longest packet that is received into one mbuf of a pool. */
static uint32_t
get_room(const struct port *port, struct rte_mempool *pool)
{
	uint32_t frame_size = get_frame_size(pool), len = rte_pktmbuf_data_room_size(pool);

	if (frame_size)
		return frame_size - HEADROOM - (port->zerocopy ? TP4_ZC_HEADROOM : 0);
	return len - RTE_MIN(len, (uint32_t)HEADROOM);
}

static unsigned int
nr_pairs(const struct rte_eth_dev *dev)
{
	return RTE_MAX(dev->data->nb_rx_queues, dev->data->nb_tx_queues);
}

static struct rx_queue *
rx_of(const struct rte_eth_dev *dev, unsigned int i)
{
	return i < dev->data->nb_rx_queues ? dev->data->rx_queues[i] : NULL;
}

static struct tx_queue *
tx_of(const struct rte_eth_dev *dev, unsigned int i)
{
	return i < dev->data->nb_tx_queues ? dev->data->tx_queues[i] : NULL;
}

#define TOO_LONG "%s: MTU of %d: an mbuf of %s holds %u bytes of a packet, " \
		 "and longer ones need RTE_ETH_RX_OFFLOAD_SCATTER"

/* Checks whether the mbufs of all queues hold packets of that MTU. */
static int
check_mtu(const struct rte_eth_dev *dev, int mtu, bool notice)
{
	const uint32_t max = mtu + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN;
	const struct port *port = dev->data->dev_private;
	unsigned int i;

	if (dev->data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_SCATTER)
		return 0;
	for (i = 0; i < dev->data->nb_rx_queues; i++) {
		const struct rx_queue *q = rx_of(dev, i);
		uint32_t room;

		if (!q)
			continue;
		room = get_room(port, q->pool);
		if (max <= room)
			continue;
		if (notice)
			LOG(NOTICE, TOO_LONG, port->iface, mtu, q->pool->name, room);
		else
			LOG(ERR, TOO_LONG, port->iface, mtu, q->pool->name, room);
		return -EINVAL;
	}
	return 0;
}

static int
eth_mtu_set(struct rte_eth_dev *dev, uint16_t mtu)
{
	int err = check_mtu(dev, mtu, false);

	return err ? err : set_mtu(dev->data->dev_private, mtu);
}

/* Are there offloads that need metadata? */
static bool
wants_meta(const struct rte_eth_dev *dev)
{
	return dev->data->dev_conf.rxmode.offloads & RX_META_OFFLOADS ||
	       dev->data->dev_conf.txmode.offloads &
	       (TX_META_OFFLOADS | RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP);
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

static void
read_missed(struct queue_pair *pair)
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

static void
stop_pair(struct queue_pair *pair, struct rx_queue *rx, struct tx_queue *tx)
{
	struct tp4_socket *s = socket_of(pair);
	void **mbufs = NULL;
	unsigned int tries, n = 0;

	if (!s->map)
		goto out;
	for (tries = 0; tx && tp4_ring_pending(&tx->ring) && tries < 100; tries++) {
		if (!free_sent(tx, UINT_MAX)) {
			kick_tx(pair);
			rte_delay_us_sleep(1000);
		}
	}
	/*
	 * In zero-copy mode, the kernel returns all frames now. In copy mode, it has them
	 * until the socket is closed, and those to receive into stay in their slots.
	 */
	tp4_zerocopy(s, 0);
	if (rx) {
		stop_rx(s);
		read_missed(pair);
	}
	if (tx)
		free_sent(tx, UINT_MAX);
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
	if (rx) {
		rte_mempool_put_bulk(rx->pool, &rx->spare[MAX_SPARE - rx->nr_spare],
				     rx->nr_spare);
		rx->nr_spare = 0;
		rte_pktmbuf_free(rx->head);
		rx->head = NULL;
	}
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

/* With a socket @fd of a broker, or -1 */
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
	pair->shared = first ? get_pool_area(first->pool, &port->broker) : NULL;
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
	if (has_ipc)
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
	if (err)
		return fail(port, pair, !port->zerocopy ? "bind()" :
			    err == -EOPNOTSUPP ? "zero-copy mode (try zerocopy=0)" :
			    "zero-copy mode",
			    tp4_strerror(port->zerocopy ? TP4_IN_ZEROCOPY : TP4_IN_BIND, err));
	/* bind() would check the privileges of this process. */
	if (port->zerocopy && broker >= 0) {
		err = ask_broker(broker, SOL_PACKET, PACKET_ZEROCOPY, port->start_queue + i + 1);
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
start_pair(struct rte_eth_dev *dev, unsigned int i)
{
	const struct port *port = dev->data->dev_private;
	int fd = -1, broker = -1, err;

	if (port->broker.sun_path[0]) {
		fd = open_socket(&port->broker, &broker);
		if (fd < 0)
			return fail(port, &port->pairs[i], ARG_BROKER, strerror(-fd));
	}
	err = open_pair(dev, i, fd, broker);
	if (broker >= 0)
		close(broker);
	return err;
}

static void
remove_interrupts(struct rte_eth_dev *dev)
{
	if (!dev->intr_handle)
		return;
	rte_intr_vec_list_free(dev->intr_handle);
	rte_intr_instance_free(dev->intr_handle);
	dev->intr_handle = NULL;
}

/* A queue's interrupt is its socket being readable. */
static int
add_interrupts(struct rte_eth_dev *dev)
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

static void
set_functions(struct rte_eth_dev *dev)
{
	const struct port *port = dev->data->dev_private;
	bool rx_meta = wants_meta(dev), tx_meta = rx_meta;

	/* The functions for metadata see to tags, too. */
	if (dev->data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_STRIP)
		rx_meta = true;
	if (dev->data->dev_conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_VLAN_INSERT)
		tx_meta = true;
	dev->rx_pkt_burst = port->copied ? eth_rx_copy : rx_meta ? eth_rx_meta : eth_rx;
	dev->tx_pkt_burst = port->copied ? eth_tx_copy : !port->zerocopy ? eth_tx_tap :
			    tx_meta ? eth_tx_meta : eth_tx;
	dev->tx_pkt_prepare = eth_tx_prepare;
	dev->rx_queue_count = eth_rx_queue_count;
	dev->rx_descriptor_status = eth_rx_descriptor_status;
	dev->tx_descriptor_status = eth_tx_descriptor_status;
}

static void
set_queue_states(struct rte_eth_dev *dev, uint8_t state)
{
	unsigned int i;

	for (i = 0; i < dev->data->nb_rx_queues; i++)
		dev->data->rx_queue_state[i] = state;
	for (i = 0; i < dev->data->nb_tx_queues; i++)
		dev->data->tx_queue_state[i] = state;
}

/* --- secondary processes -------------------------------------------------------------- */

#define MP_NAME	"net_tpacket4"

/*
 * From the primary process: the sockets of some queue pairs, or that the port stops. A
 * secondary one asks for it with the same message.
 */
struct mp_message {
	uint16_t port;
	uint16_t first;		/* queue pair of the first socket */
	uint16_t nr;		/* queue pairs of the port; 0: it is stopped */
};

static struct mp_message *
init_message(struct rte_mp_msg *msg, uint16_t port, unsigned int first)
{
	struct mp_message *m = (void *)msg->param;

	memset(msg, 0, sizeof(*msg));
	strlcpy(msg->name, MP_NAME, sizeof(msg->name));
	msg->len_param = sizeof(*m);
	m->port = port;
	m->first = first;
	return m;
}

/* As many sockets as a message can have, from queue pair @first on */
static void
offer_sockets(struct rte_mp_msg *msg, const struct rte_eth_dev *dev, unsigned int first)
{
	struct mp_message *m = init_message(msg, dev->data->port_id, first);
	const struct tp4_socket *sockets = dev->process_private;

	m->nr = nr_pairs(dev);
	while (first < m->nr && msg->num_fds < RTE_MP_MAX_FD_NUM)
		msg->fds[msg->num_fds++] = sockets[first++].fd;
}

/* In the primary process: sends a message to all others, which have done it on return. */
static void
tell_others(struct rte_mp_msg *msg)
{
	const struct timespec patience = { .tv_sec = 2 };
	struct rte_mp_reply reply = { 0 };

	if (rte_mp_request_sync(msg, &reply, &patience) && rte_errno != ENOTSUP)
		LOG(NOTICE, "a secondary process does not answer: %s", rte_strerror(rte_errno));
	free(reply.msgs);
}

/* In the primary process: a secondary one asks for sockets. */
static int
answer_request(const struct rte_mp_msg *request, const void *peer)
{
	const struct mp_message *m = (const void *)request->param;
	const struct rte_eth_dev *dev = NULL;
	const struct port *port;
	struct rte_mp_msg reply;
	int err;

	init_message(&reply, m->port, m->first);
	/* The sockets must not be closed before they are sent. */
	pthread_mutex_lock(&mp_lock);
	if (rte_eth_dev_is_valid_port(m->port))
		dev = &rte_eth_devices[m->port];
	if (dev && dev->dev_ops == &eth_ops) {
		port = dev->data->dev_private;
		if (port->offered)
			offer_sockets(&reply, dev, m->first);
	}
	err = rte_mp_reply(&reply, peer);
	pthread_mutex_unlock(&mp_lock);
	return err;
}

static void
offer_port(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;
	struct rte_mp_msg msg;
	unsigned int i;

	if (!has_ipc)
		return;
	pthread_mutex_lock(&mp_lock);
	port->offered = true;
	pthread_mutex_unlock(&mp_lock);
	for (i = 0; i < nr_pairs(dev); i += RTE_MP_MAX_FD_NUM) {
		offer_sockets(&msg, dev, i);
		tell_others(&msg);
	}
}

static void
revoke_port(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;
	struct rte_mp_msg msg;

	if (!port->offered)
		return;
	pthread_mutex_lock(&mp_lock);
	port->offered = false;
	pthread_mutex_unlock(&mp_lock);
	init_message(&msg, dev->data->port_id, 0);
	tell_others(&msg);
}

/* --- in a secondary process --- */

/* The program that polls a port sees other functions at its next call. */
static void
update_functions(struct rte_eth_dev *dev)
{
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[dev - rte_eth_devices];

	ops->rxq.data = dev->data->rx_queues;
	ops->txq.data = dev->data->tx_queues;
	rte_wmb();
	ops->rx_pkt_burst = dev->rx_pkt_burst;
	ops->tx_pkt_burst = dev->tx_pkt_burst;
	ops->tx_pkt_prepare = dev->tx_pkt_prepare;
	ops->rx_queue_count = dev->rx_queue_count;
	ops->rx_descriptor_status = dev->rx_descriptor_status;
	ops->tx_descriptor_status = dev->tx_descriptor_status;
}

/* The primary process may have closed the port: then dev->data is empty. */
static void
unmap_port(struct rte_eth_dev *dev)
{
	struct tp4_socket *sockets = dev->process_private;
	int i;

	dev->rx_pkt_burst = rte_eth_pkt_burst_dummy;
	dev->tx_pkt_burst = rte_eth_pkt_burst_dummy;
	dev->tx_pkt_prepare = rte_eth_pkt_burst_dummy;
	dev->rx_queue_count = NULL;
	dev->rx_descriptor_status = NULL;
	dev->tx_descriptor_status = NULL;
	update_functions(dev);
	remove_interrupts(dev);
	for (i = 0; i < nr_sockets[dev - rte_eth_devices]; i++)
		tp4_close(&sockets[i]);
}

static int
map_rings(struct tp4_socket *s, const struct queue_pair *pair, int fd)
{
	void *map;

	tp4_close(s);
	map = mmap(pair->map, pair->map_len, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	if (map != pair->map) {
		munmap(map, pair->map_len);
		return -EEXIST;
	}
	s->fd = fd;
	s->map = map;
	s->map_len = pair->map_len;
	s->status = pair->status;
	return 0;
}

/* Takes the sockets of a message. With the last one, the port is ready. */
static void
take_sockets(struct rte_eth_dev *dev, const struct rte_mp_msg *msg)
{
	const struct mp_message *m = (const void *)msg->param;
	const struct port *port = dev->data->dev_private;
	struct tp4_socket *sockets = dev->process_private;
	int i, err = 0;

	if (m->first + msg->num_fds > RTE_MIN(port->nr_queues,
					      nr_sockets[dev - rte_eth_devices]))
		err = -EINVAL;
	for (i = 0; i < msg->num_fds; i++) {
		if (!err)
			err = map_rings(&sockets[m->first + i], &port->pairs[m->first + i],
					msg->fds[i]);
		if (err)
			close(msg->fds[i]);
	}
	if (!err && port->copied)
		err = -ENOTSUP;
	if (err) {
		LOG(ERR, "%s: not usable in this process: %s", port->iface,
		    err == -ENOTSUP ? "the mempool is no area" :
		    err == -EEXIST ? "the address of the rings is in use" : strerror(-err));
		unmap_port(dev);
		return;
	}
	if (!m->nr || m->first + msg->num_fds < m->nr)
		return;
	for (i = 0; i < m->nr; i++)
		if (!sockets[i].map)
			return;
	if (dev->data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP)
		rte_mbuf_dyn_rx_timestamp_register(&timestamp_offset, &timestamp_flag);
	if (dev->data->dev_conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP)
		rte_mbuf_dyn_tx_timestamp_register(&timestamp_offset, &launch_flag);
	if (dev->data->dev_conf.intr_conf.rxq && add_interrupts(dev))
		LOG(NOTICE, "%s: no interrupts in this process", port->iface);
	set_functions(dev);
	update_functions(dev);
}

/* The primary process has started or stopped a port. */
static int
handle_message(const struct rte_mp_msg *msg, const void *peer)
{
	const struct mp_message *m = (const void *)msg->param;
	struct rte_eth_dev *dev;
	struct rte_mp_msg reply;
	int i;

	pthread_mutex_lock(&mp_lock);
	dev = rte_eth_dev_is_valid_port(m->port) ? &rte_eth_devices[m->port] : NULL;
	if (!dev || dev->dev_ops != &secondary_ops)	/* it is not attached yet */
		for (i = 0; i < msg->num_fds; i++)
			close(msg->fds[i]);
	else if (m->nr)
		take_sockets(dev, msg);
	else
		unmap_port(dev);
	pthread_mutex_unlock(&mp_lock);
	init_message(&reply, m->port, m->first);
	return rte_mp_reply(&reply, peer);
}

/* Gets the sockets of a port, if it is running. */
static int
request_sockets(struct rte_eth_dev *dev)
{
	const struct timespec patience = { .tv_sec = 5 };
	unsigned int first = 0, nr = 1;
	struct rte_mp_reply reply;
	struct rte_mp_msg msg;

	while (first < nr) {
		const struct rte_mp_msg *answer;

		init_message(&msg, dev->data->port_id, first);
		memset(&reply, 0, sizeof(reply));
		if (rte_mp_request_sync(&msg, &reply, &patience) || reply.nb_received != 1) {
			free(reply.msgs);
			return -EIO;
		}
		answer = reply.msgs;
		nr = ((const struct mp_message *)answer->param)->nr;
		first += answer->num_fds;
		pthread_mutex_lock(&mp_lock);
		if (answer->num_fds)
			take_sockets(dev, answer);
		else
			nr = 0;
		pthread_mutex_unlock(&mp_lock);
		free(reply.msgs);
	}
	return 0;
}

/* --- start and stop of a port --------------------------------------------------------- */

static int
eth_stop(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;
	unsigned int i;

	if (!port->running)
		return 0;
	stop_events(dev);
	revoke_port(dev);
	port->running = false;
	dev->data->dev_link.link_status = RTE_ETH_LINK_DOWN;
	set_queue_states(dev, RTE_ETH_QUEUE_STATE_STOPPED);
	remove_interrupts(dev);
	for (i = 0; i < nr_pairs(dev); i++)
		stop_pair(&port->pairs[i], rx_of(dev, i), tx_of(dev, i));
	return 0;
}

/* Says if a mempool may run dry, which the kernel counts as missed packets. */
static void
check_mbufs(const struct rte_eth_dev *dev, const struct rte_mempool *pool)
{
	const struct port *port = dev->data->dev_private;
	const struct rx_queue *first = rx_of(dev, 0);
	unsigned int i, room = 0;

	for (i = 0; i < nr_pairs(dev); i++) {
		const struct rx_queue *rx = rx_of(dev, i);
		const struct tx_queue *tx = tx_of(dev, i);

		if (rx && rx->pool == pool)
			room += rx->nr + MAX_SPARE;
		if (tx && (rx ? rx : first)->pool == pool)
			room += tx->nr;
	}
	if (pool->size < room)
		LOG(NOTICE, "%s: mempool %s has %u mbufs, but the rings have room for %u: packets "
		    "are missed while it is empty", port->iface, pool->name, pool->size, room);
}

/* The port has started, but may not do all that the application expects. */
static void
give_notices(const struct rte_eth_dev *dev)
{
	const struct port *port = dev->data->dev_private;
	int i, nr = dev->data->nb_rx_queues;

	if (nr && nr < port->nr_queues && port->zerocopy)
		LOG(NOTICE, "%s: the port has %d Rx queues: the kernel receives the packets of "
		    "queues %d to %d", port->iface, nr, port->start_queue + nr,
		    port->start_queue + port->nr_queues - 1);
	check_mtu(dev, get_mtu(port), true);
	for (i = 0; i < nr && !port->copied; i++)
		if (!i || rx_of(dev, i)->pool != rx_of(dev, i - 1)->pool)
			check_mbufs(dev, rx_of(dev, i)->pool);
}

static int
eth_start(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;
	struct ifreq ifr = { 0 };
	unsigned int i;
	int err;

	err = check_mtu(dev, dev->data->mtu, false);
	if (err)
		return err;
	port->running = true;
	/* ethdev sets the address that it has, and the interface may have another one since. */
	if (!ask_interface(port, SIOCGIFHWADDR, &ifr))
		memcpy(&port->mac, ifr.ifr_hwaddr.sa_data, sizeof(port->mac));
	err = set_flag(port, IFF_UP, true);
	if (err)
		LOG(NOTICE, "%s: cannot be set up: %s", port->iface, strerror(-err));
	for (i = 0; i < nr_pairs(dev); i++)
		if (start_pair(dev, i))
			goto fail;
	port->copied = !port->pairs[0].shared;
	for (i = 1; i < nr_pairs(dev); i++)
		if (!port->pairs[i].shared != port->copied) {
			LOG(ERR, "%s: the mempool of only some queues can be an area", port->iface);
			goto fail;
		}
	if (dev->data->dev_conf.intr_conf.rxq && add_interrupts(dev)) {
		LOG(ERR, "%s: no memory for the interrupts", port->iface);
		goto fail;
	}
	err = start_events(dev);
	if (err) {
		LOG(ERR, "%s: no events of the interface: %s", port->iface, strerror(-err));
		goto fail;
	}
	set_functions(dev);
	set_queue_states(dev, RTE_ETH_QUEUE_STATE_STARTED);
	offer_port(dev);
	eth_link_update(dev, 0);
	give_notices(dev);
	return 0;
fail:
	eth_stop(dev);
	return -EIO;
}

/* --- configuration -------------------------------------------------------------------- */

static int
eth_configure(struct rte_eth_dev *dev)
{
	const struct port *port = dev->data->dev_private;
	uint16_t mtu = dev->data->dev_conf.rxmode.mtu;
	int err = 0;

	/* 1500 may only be the default of ethdev, so the MTU is raised, but not lowered. */
	if (mtu > get_mtu(port)) {
		err = set_mtu(port, mtu);
		if (err) {
			LOG(ERR, "%s: MTU of %u: %s", port->iface, mtu, strerror(-err));
			return err;
		}
	}
	if (dev->data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP)
		err = rte_mbuf_dyn_rx_timestamp_register(&timestamp_offset, &timestamp_flag);
	if (!err &&
	    dev->data->dev_conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP)
		err = rte_mbuf_dyn_tx_timestamp_register(&timestamp_offset, &launch_flag);
	return err ? -rte_errno : 0;
}

static int
eth_infos_get(struct rte_eth_dev *dev, struct rte_eth_dev_info *info)
{
	const struct port *port = dev->data->dev_private;
	const struct rte_eth_desc_lim limits = {
		.nb_min = MIN_DESC, .nb_max = MAX_DESC, .nb_align = MIN_DESC,
		.nb_seg_max = UINT8_MAX, .nb_mtu_seg_max = UINT8_MAX,
	};

	info->if_index = port->ifindex;
	info->max_mac_addrs = 1;
	info->min_mtu = RTE_ETHER_MIN_MTU;
	info->max_mtu = UINT16_MAX - RTE_ETHER_HDR_LEN;
	info->max_rx_pktlen = UINT16_MAX;
	info->min_rx_bufsize = 0;
	info->max_rx_queues = port->nr_queues;
	info->max_tx_queues = port->nr_queues;
	info->rx_desc_lim = limits;
	info->tx_desc_lim = limits;
	info->default_rxportconf.ring_size = DEFAULT_DESC;
	info->default_txportconf.ring_size = DEFAULT_DESC;
	info->default_rxportconf.burst_size = 64;
	info->default_txportconf.burst_size = 64;
	info->rx_offload_capa = RX_META_OFFLOADS | RTE_ETH_RX_OFFLOAD_SCATTER |
				RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
	info->tx_offload_capa = port->tx_offloads;
	/* The device hashes by the kernel's key and functions. */
	info->flow_type_rss_offloads = 0;
	return 0;
}

static uint16_t
ring_size(uint16_t nr)
{
	return rte_align32pow2(RTE_MAX(nr, MIN_DESC));
}

static int
eth_rx_queue_setup(struct rte_eth_dev *dev, uint16_t i, uint16_t nr,
		   unsigned int socket __rte_unused, const struct rte_eth_rxconf *conf,
		   struct rte_mempool *pool)
{
	struct port *port = dev->data->dev_private;
	struct rx_queue *q = &port->pairs[i].rx;

	if (conf->rx_deferred_start) {
		LOG(ERR, "%s: all queues are started with the port", port->iface);
		return -ENOTSUP;
	}
	q->nr = ring_size(nr);
	q->pool = pool;
	dev->data->rx_queues[i] = q;
	return 0;
}

static int
eth_tx_queue_setup(struct rte_eth_dev *dev, uint16_t i, uint16_t nr,
		   unsigned int socket __rte_unused, const struct rte_eth_txconf *conf)
{
	struct port *port = dev->data->dev_private;
	struct tx_queue *q = &port->pairs[i].tx;

	if (conf->tx_deferred_start) {
		LOG(ERR, "%s: all queues are started with the port", port->iface);
		return -ENOTSUP;
	}
	q->nr = ring_size(nr);
	dev->data->tx_queues[i] = q;
	return 0;
}

static void
eth_rxq_info_get(struct rte_eth_dev *dev, uint16_t i, struct rte_eth_rxq_info *info)
{
	const struct rx_queue *q = dev->data->rx_queues[i];

	info->mp = q->pool;
	info->nb_desc = q->nr;
	info->scattered_rx = q->scatter;
}

static void
eth_txq_info_get(struct rte_eth_dev *dev, uint16_t i, struct rte_eth_txq_info *info)
{
	const struct tx_queue *q = dev->data->tx_queues[i];

	info->nb_desc = q->nr;
}

static int
eth_rx_intr_enable(struct rte_eth_dev *dev __rte_unused, uint16_t i __rte_unused)
{
	/* The socket is readable if the next slot is, as all others are posted. */
	return 0;
}

static int
eth_rx_intr_disable(struct rte_eth_dev *dev __rte_unused, uint16_t i __rte_unused)
{
	return 0;
}

#define WAKE_MASK	0

static int
is_received(const uint64_t value, const uint64_t opaque[RTE_POWER_MONITOR_OPAQUE_SZ])
{
	return value & opaque[WAKE_MASK] ? 0 : -1;
}

/* The next slot's last byte changes when a packet comes. */
static int
eth_get_monitor_addr(void *queue, struct rte_power_monitor_cond *cond)
{
	const struct rx_queue *q = queue;

	cond->addr = &q->ring.q.ring[q->next & q->ring.q.ring_mask].flags;
	cond->size = sizeof(uint8_t);
	cond->opaque[WAKE_MASK] = TP4_DESC_KERNEL;
	cond->fn = is_received;
	return 0;
}

/* The clock of launch times, if there are any, else that of the kernel's time stamps */
static int
eth_read_time(struct rte_eth_dev *dev, uint64_t *clock)
{
	const struct port *port = dev->data->dev_private;
	struct timespec now;
	bool launch = dev->data->dev_conf.txmode.offloads &
		      RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;

	if (clock_gettime(launch ? port->clock : CLOCK_REALTIME, &now))
		return -errno;
	*clock = now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
	return 0;
}

/* --- statistics ----------------------------------------------------------------------- */

/* Since DPDK 25.11, the counters of queues are not in struct rte_eth_stats. */
#if RTE_VER_YEAR * 100 + RTE_VER_MONTH < 2511
#define eth_queue_stats rte_eth_stats
#endif

static void
add_queue_stats(struct eth_queue_stats *stats, unsigned int i, const struct rx_queue *rx,
		const struct tx_queue *tx)
{
	if (!stats || i >= RTE_ETHDEV_QUEUE_STAT_CNTRS)
		return;
	if (rx) {
		stats->q_ipackets[i] = rx->packets;
		stats->q_ibytes[i] = rx->bytes;
		stats->q_errors[i] = rx->errors;
	}
	if (tx) {
		stats->q_opackets[i] = tx->packets;
		stats->q_obytes[i] = tx->bytes;
	}
}

static int
get_stats(struct rte_eth_dev *dev, struct rte_eth_stats *stats, struct eth_queue_stats *queues)
{
	struct port *port = dev->data->dev_private;
	unsigned int i, j;

	for (i = 0; i < nr_pairs(dev); i++) {
		struct queue_pair *pair = &port->pairs[i];
		const struct rx_queue *rx = rx_of(dev, i);
		const struct tx_queue *tx = tx_of(dev, i);

		if (rx) {
			read_missed(pair);
			stats->ipackets += rx->packets;
			stats->ibytes += rx->bytes;
			stats->ierrors += rx->errors;
			stats->imissed += pair->missed;
		}
		if (tx) {
			stats->opackets += tx->packets;
			stats->obytes += tx->bytes;
			for (j = 0; j < RTE_DIM(tx_errors); j++)
				stats->oerrors += tx->errors[j];
		}
		add_queue_stats(queues, i, rx, tx);
	}
	/* Packets that came back unsent were counted when they were posted. */
	stats->opackets -= RTE_MIN(stats->oerrors, stats->opackets);
	return 0;
}

#ifdef eth_queue_stats
static int
eth_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats)
{
	return get_stats(dev, stats, stats);
}
#else
static int
eth_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats,
	      struct eth_queue_stats *queues)
{
	return get_stats(dev, stats, queues);
}
#endif

static int
eth_stats_reset(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;
	unsigned int i;

	for (i = 0; i < nr_pairs(dev); i++) {
		struct queue_pair *pair = &port->pairs[i];

		read_missed(pair);
		pair->missed = 0;
		pair->rx.packets = 0;
		pair->rx.bytes = 0;
		pair->rx.errors = 0;
		pair->tx.packets = 0;
		pair->tx.bytes = 0;
		pair->tx.copied = 0;
		memset(pair->tx.errors, 0, sizeof(pair->tx.errors));
	}
	return 0;
}

#define NR_XSTATS	(RTE_DIM(tx_errors) + 1)

static int
eth_xstats_get_names(struct rte_eth_dev *dev __rte_unused, struct rte_eth_xstat_name *names,
		     unsigned int size)
{
	unsigned int i;

	if (!names || size < NR_XSTATS)
		return NR_XSTATS;
	for (i = 0; i < RTE_DIM(tx_errors); i++)
		strlcpy(names[i].name, tx_errors[i].name, sizeof(names[i].name));
	strlcpy(names[i].name, "tx_copied_packets", sizeof(names[i].name));
	return NR_XSTATS;
}

static int
eth_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *xstats, unsigned int size)
{
	unsigned int i, q;

	if (size < NR_XSTATS)
		return NR_XSTATS;
	for (i = 0; i < NR_XSTATS; i++) {
		xstats[i].id = i;
		xstats[i].value = 0;
		for (q = 0; q < dev->data->nb_tx_queues; q++) {
			const struct tx_queue *tx = tx_of(dev, q);

			if (tx)
				xstats[i].value += i < RTE_DIM(tx_errors) ? tx->errors[i] :
						   tx->copied;
		}
	}
	return NR_XSTATS;
}

/* --- probe and remove ----------------------------------------------------------------- */

static int
eth_close(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;

	if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
		pthread_mutex_lock(&mp_lock);
		if (dev->process_private)
			unmap_port(dev);
		free(dev->process_private);
		dev->process_private = NULL;
		dev->dev_ops = NULL;
		pthread_mutex_unlock(&mp_lock);
		return 0;
	}
	eth_stop(dev);
	close(port->ctl);
	rte_free(port->pairs);
	port->pairs = NULL;
	free(dev->process_private);
	dev->process_private = NULL;
	/* It lies in the port, which ethdev frees. */
	dev->data->mac_addrs = NULL;
	return 0;
}

static const struct eth_dev_ops eth_ops = {
	.dev_configure = eth_configure,
	.dev_start = eth_start,
	.dev_stop = eth_stop,
	.dev_set_link_up = eth_link_up,
	.dev_set_link_down = eth_link_down,
	.dev_close = eth_close,
	.dev_infos_get = eth_infos_get,
	.link_update = eth_link_update,
	.is_removed = eth_is_removed,
	.promiscuous_enable = eth_promiscuous_enable,
	.promiscuous_disable = eth_promiscuous_disable,
	.allmulticast_enable = eth_allmulticast_enable,
	.allmulticast_disable = eth_allmulticast_disable,
	.mac_addr_set = eth_mac_addr_set,
	.mtu_set = eth_mtu_set,
	.rx_queue_setup = eth_rx_queue_setup,
	.tx_queue_setup = eth_tx_queue_setup,
	.rxq_info_get = eth_rxq_info_get,
	.txq_info_get = eth_txq_info_get,
	.rx_queue_intr_enable = eth_rx_intr_enable,
	.rx_queue_intr_disable = eth_rx_intr_disable,
	.get_monitor_addr = eth_get_monitor_addr,
	.read_clock = eth_read_time,
	.tx_done_cleanup = eth_tx_done_cleanup,
	.stats_get = eth_stats_get,
	.stats_reset = eth_stats_reset,
	.xstats_get = eth_xstats_get,
	.xstats_get_names = eth_xstats_get_names,
	.xstats_reset = eth_stats_reset,
};

static int
eth_link_of_primary(struct rte_eth_dev *dev __rte_unused, int wait __rte_unused)
{
	return 0;	/* it is in shared memory */
}

/* The primary process configures the port. */
static const struct eth_dev_ops secondary_ops = {
	.dev_close = eth_close,
	.dev_infos_get = eth_infos_get,
	.link_update = eth_link_of_primary,
	.is_removed = eth_is_removed,
	.rxq_info_get = eth_rxq_info_get,
	.txq_info_get = eth_txq_info_get,
	.rx_queue_intr_enable = eth_rx_intr_enable,
	.rx_queue_intr_disable = eth_rx_intr_disable,
	.get_monitor_addr = eth_get_monitor_addr,
	.read_clock = eth_read_time,
	.tx_done_cleanup = eth_tx_done_cleanup,
	.stats_get = eth_stats_get,
	.stats_reset = eth_stats_reset,
	.xstats_get = eth_xstats_get,
	.xstats_get_names = eth_xstats_get_names,
	.xstats_reset = eth_stats_reset,
};

static int
parse_number(const char *key, const char *value, void *number)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(value, &end, 0);
	if (errno || !*value || *end || n < 0 || n > UINT16_MAX) {
		LOG(ERR, "%s=%s: not a number", key, value);
		return -EINVAL;
	}
	*(int *)number = n;
	return 0;
}

static int
parse_iface(const char *key, const char *value, void *name)
{
	if (strlen(value) >= IF_NAMESIZE || !if_nametoindex(value)) {
		LOG(ERR, "%s=%s: no such interface", key, value);
		return -ENODEV;
	}
	strlcpy(name, value, IF_NAMESIZE);
	return 0;
}

static int
parse_broker(const char *key, const char *value, void *broker)
{
	struct sockaddr_un *addr = broker;

	if (!*value || strlen(value) >= sizeof(addr->sun_path)) {
		LOG(ERR, "%s=%s: not the path of a socket", key, value);
		return -EINVAL;
	}
	addr->sun_family = AF_UNIX;
	strlcpy(addr->sun_path, value, sizeof(addr->sun_path));
	return 0;
}

static int
parse_fanout(const char *key, const char *value, void *mode)
{
	static const char * const names[] = {
		[PACKET_FANOUT_HASH] = "hash", [PACKET_FANOUT_LB] = "lb",
		[PACKET_FANOUT_CPU] = "cpu", [PACKET_FANOUT_ROLLOVER] = "rollover",
		[PACKET_FANOUT_RND] = "rnd", [PACKET_FANOUT_QM] = "qm",
	};
	unsigned int i;

	for (i = 0; i < RTE_DIM(names); i++)
		if (!strcmp(value, names[i])) {
			*(int *)mode = i;
			return 0;
		}
	LOG(ERR, "%s=%s: hash, lb, cpu, rollover, rnd or qm", key, value);
	return -EINVAL;
}

static int
parse_launch(const char *key, const char *value, void *clock)
{
	if (!strcmp(value, "fq")) {
		*(int *)clock = CLOCK_MONOTONIC;
		return 0;
	}
	if (!strcmp(value, "etf")) {
		*(int *)clock = CLOCK_TAI;
		return 0;
	}
	LOG(ERR, "%s=%s: fq or etf", key, value);
	return -EINVAL;
}

/* Returns the number of queue pairs of the interface. */
static unsigned int
count_queues(const struct port *port)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	struct ifreq ifr = { .ifr_data = (void *)&channels };

	if (ask_interface(port, SIOCETHTOOL, &ifr))
		return 1;
	return RTE_MAX(channels.combined_count,
		       RTE_MIN(channels.rx_count, channels.tx_count));
}

#define MAX_FEATURES	1024

/* Which of the device's features are on, by ethtool's names */
struct features {
	struct {
		struct ethtool_sset_info head;
		uint32_t nr;
	} set;
	struct {
		struct ethtool_gstrings head;
		char name[MAX_FEATURES][ETH_GSTRING_LEN];
	} strings;
	struct {
		struct ethtool_gfeatures head;
		struct ethtool_get_features_block block[MAX_FEATURES / 32];
	} state;
};

static int
read_features(const struct port *port, struct features *f)
{
	struct ifreq ifr = { .ifr_data = (void *)&f->set };
	int err;

	f->set.head.cmd = ETHTOOL_GSSET_INFO;
	f->set.head.sset_mask = UINT64_C(1) << ETH_SS_FEATURES;
	err = ask_interface(port, SIOCETHTOOL, &ifr);
	if (err)
		return err;
	if (f->set.nr > MAX_FEATURES)
		return -E2BIG;
	f->strings.head.cmd = ETHTOOL_GSTRINGS;
	f->strings.head.string_set = ETH_SS_FEATURES;
	f->strings.head.len = f->set.nr;
	ifr.ifr_data = (void *)&f->strings;
	err = ask_interface(port, SIOCETHTOOL, &ifr);
	if (err)
		return err;
	f->state.head.cmd = ETHTOOL_GFEATURES;
	f->state.head.size = RTE_DIM(f->state.block);
	ifr.ifr_data = (void *)&f->state;
	return ask_interface(port, SIOCETHTOOL, &ifr);
}

static bool
has_feature(const struct features *f, const char *name)
{
	unsigned int i;

	for (i = 0; i < f->set.nr; i++)
		if (!strncmp(f->strings.name[i], name, ETH_GSTRING_LEN))
			return f->state.block[i / 32].active & 1u << i % 32;
	return false;
}

/* In copy mode, the kernel does what the device cannot do. */
static uint64_t
get_tx_offloads(const struct port *port)
{
	uint64_t found = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_VLAN_INSERT;
	struct features *f;

	if (!port->zerocopy) {
		found |= TX_META_OFFLOADS;
		/* A queueing discipline waits for the launch time. */
		if (!port->qdisc_bypass)
			found |= RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;
		return found;
	}
	f = calloc(1, sizeof(*f));
	if (f && !read_features(port, f) &&
	    (has_feature(f, "tx-checksum-ip-generic") ||
	     (has_feature(f, "tx-checksum-ipv4") && has_feature(f, "tx-checksum-ipv6")))) {
		found |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
		if (has_feature(f, "tx-tcp-segmentation") &&
		    has_feature(f, "tx-tcp6-segmentation"))
			found |= RTE_ETH_TX_OFFLOAD_TCP_TSO;
		if (has_feature(f, "tx-udp-segmentation"))
			found |= RTE_ETH_TX_OFFLOAD_UDP_TSO;
	}
	free(f);
	return found;
}

static int
parse_arguments(struct port *port, const char *text)
{
	static const char * const valid[] = {
		ARG_IFACE, ARG_START, ARG_COUNT, ARG_ZEROCOPY, ARG_TO_STACK, ARG_BUDGET,
		ARG_FANOUT, ARG_BYPASS, ARG_LAUNCH, ARG_BROKER, NULL
	};
	const struct {
		const char *name;
		arg_handler_t parse;
		void *value;
	} args[] = {
		{ ARG_IFACE, parse_iface, port->iface },
		{ ARG_START, parse_number, &port->start_queue },
		{ ARG_COUNT, parse_number, &port->nr_queues },
		{ ARG_ZEROCOPY, parse_number, &port->zerocopy },
		{ ARG_TO_STACK, parse_number, &port->to_stack },
		{ ARG_BUDGET, parse_number, &port->busy_budget },
		{ ARG_FANOUT, parse_fanout, &port->fanout_mode },
		{ ARG_BYPASS, parse_number, &port->qdisc_bypass },
		{ ARG_LAUNCH, parse_launch, &port->clock },
		{ ARG_BROKER, parse_broker, &port->broker },
	};
	struct rte_kvargs *kvargs = rte_kvargs_parse(text, valid);
	unsigned int i;
	int err = 0;

	if (!kvargs) {
		LOG(ERR, "invalid arguments: %s", text);
		return -EINVAL;
	}
	for (i = 0; i < RTE_DIM(args) && !err; i++)
		err = rte_kvargs_process(kvargs, args[i].name, args[i].parse, args[i].value);
	rte_kvargs_free(kvargs);
	if (!err && !port->iface[0]) {
		LOG(ERR, "iface=NAME is missing");
		err = -EINVAL;
	}
	return err;
}

static int
init_port(struct port *port, int numa_node)
{
	struct ifreq ifr = { 0 };
	int err, queues;

	port->ifindex = if_nametoindex(port->iface);
	port->ctl = open_socket(&port->broker, NULL);
	if (port->ctl < 0) {
		err = port->ctl;
		if (port->broker.sun_path[0]) {
			LOG(ERR, "%s=%s: %s", ARG_BROKER, port->broker.sun_path, strerror(-err));
			return err;
		}
		LOG(ERR, "%s: %s", port->iface, tp4_strerror(TP4_IN_SOCKET, err));
		return err;
	}
	err = tp4_setopt(port->ctl, PACKET_VERSION, TPACKET_V4);
	if (err) {
		LOG(ERR, "%s: %s", port->iface, tp4_strerror(TP4_IN_VERSION, err));
		goto close;
	}
	err = ask_interface(port, SIOCGIFHWADDR, &ifr);
	if (!err && ifr.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		err = -EAFNOSUPPORT;
	if (err) {
		LOG(ERR, "%s: no Ethernet address: %s", port->iface, strerror(-err));
		goto close;
	}
	memcpy(&port->mac, ifr.ifr_hwaddr.sa_data, sizeof(port->mac));
	queues = port->zerocopy ? count_queues(port) : MAX_PAIRS;
	if (port->start_queue >= queues || port->nr_queues > queues - port->start_queue) {
		LOG(ERR, "%s has %d queues", port->iface, queues);
		err = -EINVAL;
		goto close;
	}
	port->tx_offloads = get_tx_offloads(port);
	if (!port->nr_queues)
		port->nr_queues = RTE_MIN(queues - port->start_queue, MAX_PAIRS);
	err = -ENOMEM;
	port->pairs = rte_zmalloc_socket("net_tpacket4", port->nr_queues * sizeof(*port->pairs),
					 RTE_CACHE_LINE_SIZE, numa_node);
	if (!port->pairs)
		goto close;
	return 0;
close:
	close(port->ctl);
	return err;
}

/* Lets other processes have the sockets, or this one get them. Returns 0 or a negative errno. */
static int
register_messages(bool primary)
{
	if (rte_mp_action_register(MP_NAME, primary ? answer_request : handle_message) &&
	    rte_errno != EEXIST)
		return -rte_errno;
	has_ipc = true;
	return 0;
}

static int
attach_secondary(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *dev = rte_eth_dev_attach_secondary(rte_vdev_device_name(vdev));
	const struct port *port;
	int err;

	if (!dev)
		return -ENODEV;
	port = dev->data->dev_private;
	dev->device = &vdev->device;
	dev->process_private = calloc(port->nr_queues, sizeof(struct tp4_socket));
	nr_sockets[dev - rte_eth_devices] = dev->process_private ? port->nr_queues : 0;
	err = dev->process_private ? register_messages(false) : -ENOMEM;
	if (!err) {
		pthread_mutex_lock(&mp_lock);
		dev->dev_ops = &secondary_ops;
		unmap_port(dev);
		pthread_mutex_unlock(&mp_lock);
		err = request_sockets(dev);
	}
	if (err) {
		LOG(ERR, "%s: no sockets of the primary process: %s", port->iface,
		    strerror(-err));
		eth_close(dev);
		rte_eth_dev_release_port(dev);
		return err;
	}
	rte_eth_dev_probing_finish(dev);
	return 0;
}

/* Drivers use internal structures, which change while the ABI does not. */
static bool
is_version_of_dpdk(void)
{
	if (rte_version_year() == RTE_VER_YEAR && rte_version_month() == RTE_VER_MONTH)
		return true;
	LOG(ERR, "this driver is for DPDK %d.%02d, but the program runs on %s", RTE_VER_YEAR,
	    RTE_VER_MONTH, rte_version());
	return false;
}

static int
tpacket4_probe(struct rte_vdev_device *vdev)
{
	struct port *port, options = {
		.zerocopy = 1, .busy_budget = DEFAULT_BUDGET, .clock = CLOCK_MONOTONIC,
	};
	struct tp4_socket *sockets;
	struct rte_eth_dev *dev;
	int i, err;

	if (!is_version_of_dpdk())
		return -ENOTSUP;
	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return attach_secondary(vdev);
	err = parse_arguments(&options, rte_vdev_device_args(vdev));
	if (err)
		return err;
	if (vdev->device.numa_node == SOCKET_ID_ANY)
		vdev->device.numa_node = rte_socket_id();
	err = init_port(&options, vdev->device.numa_node);
	if (err)
		return err;
	register_messages(true);	/* without it, there are no other processes */
	sockets = calloc(options.nr_queues, sizeof(*sockets));
	dev = sockets ? rte_eth_vdev_allocate(vdev, sizeof(*port)) : NULL;
	if (!dev) {
		free(sockets);
		rte_free(options.pairs);
		close(options.ctl);
		return -ENOMEM;
	}
	dev->process_private = sockets;
	port = dev->data->dev_private;
	*port = options;
	for (i = 0; i < port->nr_queues; i++) {
		struct queue_pair *pair = &port->pairs[i];

		pair->id = i;
		pair->port = dev->data->port_id;
		pair->rx.pair = pair;
		pair->tx.pair = pair;
	}
	dev->data->dev_link = no_link;
	dev->data->mac_addrs = &port->mac;
	dev->data->mtu = RTE_MIN(get_mtu(port), UINT16_MAX - RTE_ETHER_HDR_LEN);
	dev->data->dev_flags |= RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS | RTE_ETH_DEV_INTR_LSC |
				RTE_ETH_DEV_INTR_RMV;
	dev->dev_ops = &eth_ops;
	dev->rx_pkt_burst = eth_rx;
	dev->tx_pkt_burst = eth_tx;
	rte_eth_dev_probing_finish(dev);
	return 0;
}

static int
tpacket4_remove(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));

	if (!dev)
		return 0;	/* it was closed */
	eth_close(dev);
	return rte_eth_dev_release_port(dev);
}

static struct rte_vdev_driver tpacket4_driver = {
	.probe = tpacket4_probe,
	.remove = tpacket4_remove,
};

RTE_PMD_REGISTER_VDEV(net_tpacket4, tpacket4_driver);
RTE_PMD_REGISTER_PARAM_STRING(net_tpacket4,
	ARG_IFACE "=<string> "
	ARG_START "=<int> "
	ARG_COUNT "=<int> "
	ARG_ZEROCOPY "=<0|1> "
	ARG_TO_STACK "=<0|1> "
	ARG_BUDGET "=<int> "
	ARG_FANOUT "=<hash|lb|cpu|rollover|rnd|qm> "
	ARG_BYPASS "=<0|1> "
	ARG_LAUNCH "=<fq|etf> "
	ARG_BROKER "=<string>");
