/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTE_ETH_TPACKET4_H
#define RTE_ETH_TPACKET4_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <tpacket4.h>
#include <tpacket4_device.h>

#include <bus_vdev_driver.h>
#include <ethdev_driver.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_interrupts.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_version.h>

/* Frame numbers count units, as mbufs are aligned to cache lines. */
#define UNIT_SHIFT	6
#define UNIT		(1u << UNIT_SHIFT)
/* Bytes that Rx leaves before the data, at least */
#define HEADROOM	RTE_PKTMBUF_HEADROOM
#define MAX_BURST	128u
#define MAX_SPARE	64
/* Size of a frame in an area of the driver, and the least in one of mbufs */
#define OWN_FRAME	2048

/* The option for a broker */
#define ARG_BROKER	"mr_sock"

#define RX_META_OFFLOADS (RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_RSS_HASH | \
			  RTE_ETH_RX_OFFLOAD_TIMESTAMP)
#define TX_META_OFFLOADS (RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM | \
			  RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_UDP_TSO)

extern int tpacket4_logtype;
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

/* Reasons for which the kernel returns packets unsent, and the names of their counters */
#define NR_TX_ERRORS	7

struct tpacket4_tx_error {
	int err;
	const char *name;
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
	bool deferred;		/* the application starts it */
	uint8_t pause;		/* calls for which the last busy poll is not repeated */
	uint8_t paused;		/* how many of them are to come */
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
	bool meta, deferred;
	uint16_t nr;
	uint64_t packets, bytes, errors[NR_TX_ERRORS];
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
	bool no_mbufs;		/* for the kernel's driver cannot use mbufs in place */
};

/* The socket of a queue pair in this process */
static inline struct tp4_socket *
socket_of(const struct queue_pair *pair)
{
	return (struct tp4_socket *)rte_eth_devices[pair->port].process_private + pair->id;
}

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

static inline unsigned int
nr_pairs(const struct rte_eth_dev *dev)
{
	return RTE_MAX(dev->data->nb_rx_queues, dev->data->nb_tx_queues);
}

static inline struct rx_queue *
rx_of(const struct rte_eth_dev *dev, unsigned int i)
{
	return i < dev->data->nb_rx_queues ? dev->data->rx_queues[i] : NULL;
}

static inline struct tx_queue *
tx_of(const struct rte_eth_dev *dev, unsigned int i)
{
	return i < dev->data->nb_tx_queues ? dev->data->tx_queues[i] : NULL;
}

/* Are there offloads that need metadata? */
static inline bool
wants_meta(const struct rte_eth_dev *dev)
{
	return dev->data->dev_conf.rxmode.offloads & RX_META_OFFLOADS ||
	       dev->data->dev_conf.txmode.offloads &
	       (TX_META_OFFLOADS | RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP);
}

static inline void
kick_tx(struct queue_pair *pair)
{
	int n = tp4_kick(socket_of(pair), MSG_DONTWAIT);

	pair->tx_stalled = n == -EAGAIN || n == -ENOBUFS;
}

/* rte_eth_tpacket4.c */
extern const struct eth_dev_ops tpacket4_ops, tpacket4_secondary_ops;

/* tpacket4_iface.c; all but tpacket4_is_removed() is for the primary process */
extern const struct rte_eth_link tpacket4_no_link;

int tpacket4_ask_interface(const struct port *port, unsigned long request, struct ifreq *ifr);
int tpacket4_set_flag(const struct port *port, short flag, bool on);
int tpacket4_set_mtu(const struct port *port, uint16_t mtu);
int tpacket4_get_mtu(const struct port *port);
unsigned int tpacket4_count_queues(const struct port *port);
uint64_t tpacket4_get_tx_offloads(const struct port *port);
int tpacket4_link_update(struct rte_eth_dev *dev, int wait);
int tpacket4_is_removed(struct rte_eth_dev *dev);
int tpacket4_start_events(struct rte_eth_dev *dev);
void tpacket4_stop_events(struct rte_eth_dev *dev);

/* tpacket4_queue.c */
int tpacket4_open_socket(const struct sockaddr_un *addr, int *broker);
uint32_t tpacket4_get_room(const struct port *port, struct rte_mempool *pool);
void tpacket4_read_missed(struct queue_pair *pair);
int tpacket4_start_pair(struct rte_eth_dev *dev, unsigned int i);
void tpacket4_stop_pair(struct queue_pair *pair, struct rx_queue *rx, struct tx_queue *tx);
void tpacket4_stop_rx(struct rx_queue *q);
void tpacket4_stop_tx(struct tx_queue *q);
int tpacket4_add_interrupts(struct rte_eth_dev *dev);
void tpacket4_remove_interrupts(struct rte_eth_dev *dev);

/* tpacket4_rxtx.c */
extern const struct tpacket4_tx_error tpacket4_tx_errors[NR_TX_ERRORS];

unsigned int tpacket4_free_packets(struct tx_queue *q, unsigned int max);
unsigned int tpacket4_drop_packets(struct rx_queue *q);
int tpacket4_register_times(const struct rte_eth_dev *dev);
void tpacket4_set_functions(struct rte_eth_dev *dev);

/* tpacket4_mp.c */
extern bool tpacket4_has_ipc;	/* this process can have others */

int tpacket4_register_messages(bool primary);
void tpacket4_offer_port(struct rte_eth_dev *dev);
void tpacket4_revoke_port(struct rte_eth_dev *dev);
int tpacket4_attach_secondary(struct rte_vdev_device *vdev);
void tpacket4_detach_secondary(struct rte_eth_dev *dev);

#endif
