/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests of a driver that no program of DPDK has, on the two ends of a cable:
 *
 *	driver EAL-ARGUMENT... -- hold SIZE
 *	driver EAL-ARGUMENT... -- monitor SIZE
 *	driver EAL-ARGUMENT... -- segment ADDRESS
 *	driver EAL-ARGUMENT... -- stop SIZE
 *	driver EAL-ARGUMENT... -- tags SIZE
 *
 * hold: an mbuf that the program holds never changes, while packets come and go. SIZE is that
 * of the mbufs' data.
 * monitor: the address for rte_power_monitor() says when a packet has come, and so do the
 * status of descriptors and their count.
 * segment: sends UDP datagrams that the device segments, to a port of the Ethernet ADDRESS.
 * stop: a refused packet counts once, and at a stop, packets that wait for their launch times
 * are returned, although a later one has been sent. The status of Tx descriptors is that of
 * their packets.
 * tags: the same as hold, and clones of the held mbufs are sent with a VLAN tag.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_mempool.h>
#include <rte_udp.h>

#define NR_DESC		256
#define NR_MBUFS	4096
#define NR_HELD		1024
#define NR_PACKETS	20000
#define BURST		32
#define MAX_LEN		1500
#define ETHER_TYPE	0x88b5	/* for experiments */
#define PATIENCE	60	/* seconds */

#define DATAGRAM	4500
#define SEGMENT		1000
#define UDP_PORT	9000
#define VLAN_TAG	7

struct held {
	struct rte_mbuf *m;
	unsigned int len;
	uint8_t data[MAX_LEN];
};

static struct rte_mempool *pool;
static struct held held[NR_HELD];
static struct rte_ether_addr peer;	/* of port 1, which may not be promiscuous at once */
static uint64_t end;
static bool tags;

static void
fail(const char *what)
{
	fprintf(stderr, "driver: %s\n", what);
	exit(1);
}

static void
set_up_port(uint16_t port, uint64_t offloads)
{
	struct rte_eth_conf conf = { .txmode.offloads = offloads };
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(port, &info))
		fail("rte_eth_dev_info_get()");
	if (offloads & ~info.tx_offload_capa)
		fail("the driver lacks an offload");
	if (rte_pktmbuf_data_room_size(pool) < MAX_LEN + RTE_PKTMBUF_HEADROOM)
		conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_SCATTER;
	if (rte_eth_dev_configure(port, 1, 1, &conf) ||
	    rte_eth_rx_queue_setup(port, 0, NR_DESC, SOCKET_ID_ANY, NULL, pool) ||
	    rte_eth_tx_queue_setup(port, 0, NR_DESC, SOCKET_ID_ANY, NULL) ||
	    rte_eth_dev_start(port) || rte_eth_promiscuous_enable(port))
		fail("the port does not start");
}

static void
wait_for_link(uint16_t port)
{
	struct rte_eth_link link = { 0 };

	while (rte_get_timer_cycles() < end) {
		if (!rte_eth_link_get_nowait(port, &link) && link.link_status)
			return;
		rte_delay_us_sleep(10000);
	}
	fail("no link");
}

static int
compare(const void *a, const void *b)
{
	const void *const *p = a, *const *q = b;

	return (*p > *q) - (*p < *q);
}

static void
close_ports(void)
{
	static void *mbufs[NR_MBUFS];
	unsigned int i;
	uint16_t port;

	RTE_ETH_FOREACH_DEV(port) {
		rte_eth_dev_stop(port);
		rte_eth_dev_close(port);
	}
	if (rte_mempool_avail_count(pool) != NR_MBUFS)
		fail("not all mbufs are free after the ports were closed");
	if (rte_mempool_get_bulk(pool, mbufs, NR_MBUFS))
		fail("rte_mempool_get_bulk()");
	qsort(mbufs, NR_MBUFS, sizeof(*mbufs), compare);
	for (i = 1; i < NR_MBUFS; i++)
		if (mbufs[i] == mbufs[i - 1])
			fail("an mbuf was freed twice");
}

static struct rte_mbuf *
make_packet(void)
{
	unsigned int i, n, len = 64 + rand() % (MAX_LEN - 63);
	struct rte_mbuf *m, *last;
	uint8_t data[MAX_LEN];

	for (i = 0; i < len; i++)
		data[i] = rand();
	memcpy(data, &peer, sizeof(peer));
	data[12] = ETHER_TYPE >> 8;
	data[13] = ETHER_TYPE & 0xff;
	m = rte_pktmbuf_alloc(pool);
	for (i = 0, last = m; last && i < len; i += n) {
		n = RTE_MIN(len - i, rte_pktmbuf_tailroom(last));
		memcpy(rte_pktmbuf_append(last, n), data + i, n);
		if (i)
			rte_pktmbuf_chain(m, last);
		last = i + n < len ? rte_pktmbuf_alloc(pool) : last;
	}
	if (!last)
		fail("no mbufs");
	return m;
}

static void
send_or_free(uint16_t port, struct rte_mbuf **bufs, unsigned int nr)
{
	unsigned int sent = rte_eth_tx_burst(port, 0, bufs, nr);

	rte_pktmbuf_free_bulk(bufs + sent, nr - sent);
}

/* Is it a packet of this program? */
static bool
is_mine(const struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->ether_type ==
	       rte_cpu_to_be_16(ETHER_TYPE) && m->pkt_len <= MAX_LEN;
}

static void
release(struct held *h)
{
	uint8_t data[MAX_LEN];

	if (!h->m)
		return;
	if (h->m->pkt_len != h->len ||
	    memcmp(rte_pktmbuf_read(h->m, 0, h->len, data), h->data, h->len))
		fail("an mbuf has changed while it was held");
	rte_pktmbuf_free(h->m);
	h->m = NULL;
}

static void
hold(struct held *h, struct rte_mbuf *m)
{
	const void *data;

	release(h);
	h->m = m;
	h->len = m->pkt_len;
	data = rte_pktmbuf_read(m, 0, h->len, h->data);
	if (data != h->data)
		memcpy(h->data, data, h->len);
}

/* Another reference to a held packet, of one of the two kinds */
static struct rte_mbuf *
refer(struct rte_mbuf *m, bool clone)
{
	if (!clone) {
		rte_pktmbuf_refcnt_update(m, 1);
		return m;
	}
	m = rte_pktmbuf_clone(m, pool);
	if (m && tags) {
		m->ol_flags |= RTE_MBUF_F_TX_VLAN;
		m->vlan_tci = VLAN_TAG;
	}
	return m;
}

static bool
is_tagged(const struct rte_mbuf *m)
{
	const struct rte_ether_hdr *ether = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	const struct rte_vlan_hdr *vlan = (const void *)(ether + 1);

	return ether->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN) &&
	       vlan->vlan_tci == rte_cpu_to_be_16(VLAN_TAG) &&
	       vlan->eth_proto == rte_cpu_to_be_16(ETHER_TYPE);
}

static void
overwrite(struct rte_mbuf *m)
{
	for (; m; m = m->next)
		memset(rte_pktmbuf_mtod(m, void *), 0xff, m->data_len);
}

/*
 * Port 0 sends packets, and port 1 holds them. Port 1 also sends those that it holds, and port
 * 0 overwrites all that comes: that must be a copy.
 */
static void
test_hold(void)
{
	unsigned int i, n, nr = 0, returned = 0, tagged = 0;
	struct rte_mbuf *bufs[2 * BURST];

	while (nr < NR_PACKETS || returned < NR_PACKETS / 4 ||
	       (tags && tagged < NR_PACKETS / 4)) {
		if (rte_get_timer_cycles() > end)
			fail("too few packets came");
		for (i = 0; i < BURST; i++)
			bufs[i] = make_packet();
		send_or_free(0, bufs, BURST);
		n = rte_eth_rx_burst(1, 0, bufs, RTE_DIM(bufs));
		for (i = 0; i < n; i++) {
			if (is_mine(bufs[i])) {
				hold(&held[rand() % NR_HELD], bufs[i]);
				nr++;
			} else {
				rte_pktmbuf_free(bufs[i]);
			}
		}
		for (i = n = 0; i < BURST; i++) {
			struct rte_mbuf *m = held[rand() % NR_HELD].m;

			if (m)
				bufs[n] = refer(m, rand() % 2);
			if (m && bufs[n])
				n++;
		}
		send_or_free(1, bufs, n);
		n = rte_eth_rx_burst(0, 0, bufs, RTE_DIM(bufs));
		for (i = 0; i < n; i++) {
			returned += is_mine(bufs[i]);
			tagged += is_tagged(bufs[i]);
			overwrite(bufs[i]);
		}
		rte_pktmbuf_free_bulk(bufs, n);
	}
	for (i = 0; i < NR_HELD; i++)
		release(&held[i]);
	if (tagged && !tags)
		fail("packets have got tags");
	printf("%u packets were held, and %u came back, and %u with a tag\n", nr, returned,
	       tagged);
}

/* Would rte_power_monitor() sleep? */
static bool
would_sleep(void)
{
	struct rte_power_monitor_cond cond;

	if (rte_eth_get_monitor_addr(1, 0, &cond))
		fail("rte_eth_get_monitor_addr()");
	if (cond.size != 1)
		fail("the size is not 1");
	return !cond.fn(*(volatile uint8_t *)cond.addr, cond.opaque);
}

static void
check_rx_status(bool received)
{
	if ((rte_eth_rx_queue_count(1, 0) > 0) != received)
		fail("rte_eth_rx_queue_count()");
	if (rte_eth_rx_descriptor_status(1, 0, 0) !=
	    (received ? RTE_ETH_RX_DESC_DONE : RTE_ETH_RX_DESC_AVAIL) ||
	    rte_eth_rx_descriptor_status(1, 0, NR_DESC - 1) != RTE_ETH_RX_DESC_AVAIL ||
	    rte_eth_rx_descriptor_status(1, 0, NR_DESC) != -EINVAL)
		fail("rte_eth_rx_descriptor_status()");
}

/* More packets than the ring has slots */
static void
test_monitor(void)
{
	struct rte_mbuf *m;
	unsigned int nr = 0;

	while (nr < 2 * NR_DESC + BURST) {
		if (!would_sleep())
			fail("it would not sleep without a packet");
		check_rx_status(false);
		m = make_packet();
		send_or_free(0, &m, 1);
		while (would_sleep()) {
			if (rte_get_timer_cycles() > end)
				fail("it would sleep though a packet has come");
			rte_delay_us_sleep(10);
		}
		check_rx_status(true);
		if (rte_eth_rx_burst(1, 0, &m, 1) != 1)
			fail("there is no packet when it would wake up");
		nr += is_mine(m);
		rte_pktmbuf_free(m);
	}
	printf("%u packets woke it up\n", nr);
}

static void
add_header(struct rte_mbuf *m, const void *header, size_t len)
{
	memcpy(rte_pktmbuf_append(m, len), header, len);
}

/* From 10.74.0.2 to 10.74.0.1, or from fd74::2 to fd74::1 */
static void
send_datagram(const struct rte_ether_hdr *ether, bool v6)
{
	struct rte_ipv4_hdr ip4 = {
		.version_ihl = RTE_IPV4_VHL_DEF, .time_to_live = 64, .next_proto_id = IPPROTO_UDP,
		.total_length = rte_cpu_to_be_16(sizeof(struct rte_udp_hdr) + sizeof(ip4) + DATAGRAM),
		.src_addr = rte_cpu_to_be_32(RTE_IPV4(10, 74, 0, 2)),
		.dst_addr = rte_cpu_to_be_32(RTE_IPV4(10, 74, 0, 1)),
	};
	const uint16_t len = sizeof(struct rte_udp_hdr) + DATAGRAM;
	const struct rte_udp_hdr udp = {
		.src_port = rte_cpu_to_be_16(UDP_PORT), .dst_port = rte_cpu_to_be_16(UDP_PORT),
		.dgram_len = rte_cpu_to_be_16(len),
	};
	struct rte_ipv6_hdr ip6 = {
		.vtc_flow = rte_cpu_to_be_32(6u << 28), .hop_limits = 64, .proto = IPPROTO_UDP,
		.payload_len = rte_cpu_to_be_16(len),
	};
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool), *last;
	uint8_t *src = (uint8_t *)&ip6.src_addr, *dst = (uint8_t *)&ip6.dst_addr;
	unsigned int i;

	if (!m)
		fail("no mbufs");
	src[0] = dst[0] = 0xfd;
	src[1] = dst[1] = 0x74;
	src[15] = 2;
	dst[15] = 1;
	add_header(m, ether, sizeof(*ether));
	rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->ether_type =
		rte_cpu_to_be_16(v6 ? RTE_ETHER_TYPE_IPV6 : RTE_ETHER_TYPE_IPV4);
	if (v6)
		add_header(m, &ip6, sizeof(ip6));
	else
		add_header(m, &ip4, sizeof(ip4));
	m->l2_len = sizeof(*ether);
	m->l3_len = m->data_len - m->l2_len;
	m->l4_len = sizeof(udp);
	add_header(m, &udp, sizeof(udp));
	m->tso_segsz = SEGMENT;
	m->ol_flags |= RTE_MBUF_F_TX_UDP_SEG |
		       (v6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM);
	for (i = 0; i < DATAGRAM; i++) {
		uint8_t *data = (uint8_t *)rte_pktmbuf_append(m, 1);

		if (!data) {
			last = rte_pktmbuf_alloc(pool);
			if (!last || rte_pktmbuf_chain(m, last))
				fail("no mbufs");
			data = (uint8_t *)rte_pktmbuf_append(m, 1);
		}
		*data = i % 251;
	}
	if (rte_eth_tx_prepare(0, 0, &m, 1) != 1)
		fail("rte_eth_tx_prepare() refuses the packet");
	if (rte_eth_tx_burst(0, 0, &m, 1) != 1)
		fail("the packet is not sent");
}

static void
test_segment(const char *address)
{
	struct rte_ether_hdr ether = { .src_addr.addr_bytes = { 2 } };
	struct rte_eth_stats stats;

	if (rte_ether_unformat_addr(address, &ether.dst_addr))
		fail("no Ethernet address");
	send_datagram(&ether, false);
	send_datagram(&ether, true);
	rte_delay_us_sleep(100000);
	rte_eth_tx_done_cleanup(0, 0, 0);
	rte_eth_stats_get(0, &stats);
	printf("%lu packets were sent, %lu not\n", stats.opackets, stats.oerrors);
	if (stats.oerrors)
		fail("the device cannot segment");
}

/* A packet of @nr segments, each with @len bytes */
static struct rte_mbuf *
make_segments(unsigned int nr, uint16_t len)
{
	struct rte_mbuf *m = NULL, *next;
	char *data;

	while (nr--) {
		next = rte_pktmbuf_alloc(pool);
		data = next ? rte_pktmbuf_append(next, len) : NULL;
		if (!data || (m && rte_pktmbuf_chain(m, next)))
			fail("no mbufs");
		memset(data, 0xff, len);
		m = m ? m : next;
	}
	return m;
}

/* The last one of three packets has been sent, and the others wait until @launch. */
static void
check_tx_status(uint64_t launch)
{
	int status[NR_DESC + 1], i;
	uint64_t now;

	while (rte_eth_tx_descriptor_status(0, 0, NR_DESC - 3) != RTE_ETH_TX_DESC_DONE) {
		if (rte_get_timer_cycles() > end)
			fail("a packet is not sent");
		rte_delay_us_sleep(1000);
	}
	for (i = 0; i <= NR_DESC; i++)
		status[i] = rte_eth_tx_descriptor_status(0, 0, i);
	if (rte_eth_read_clock(0, &now))
		fail("rte_eth_read_clock()");
	if (status[NR_DESC] != -EINVAL)
		fail("the ring has a descriptor more");
	for (i = 0; i < NR_DESC - 2; i++)
		if (status[i] != RTE_ETH_TX_DESC_DONE)
			fail("a free descriptor is not done");
	for (; i < NR_DESC; i++)
		if (status[i] != RTE_ETH_TX_DESC_FULL && now < launch)
			fail("a descriptor that has a packet is not full");
}

static void
test_stop(void)
{
	const uint64_t delay = 5 * UINT64_C(1000000000);
	struct rte_mbuf *bufs[3], *m = make_segments(5, MAX_LEN);
	struct rte_eth_stats stats;
	uint64_t now, flag;
	int i, field;

	if (rte_eth_tx_burst(0, 0, &m, 1) != 1)
		fail("the long packet is not taken");
	rte_delay_us_sleep(10000);
	rte_eth_tx_done_cleanup(0, 0, 0);
	rte_eth_stats_get(0, &stats);
	if (stats.oerrors != 1 || stats.opackets)
		fail("a refused packet does not count as one");

	if (rte_mbuf_dyn_tx_timestamp_register(&field, &flag) || rte_eth_read_clock(0, &now))
		fail("no launch times");
	for (i = 0; i < 3; i++)
		bufs[i] = make_segments(1, MAX_LEN);
	for (i = 0; i < 2; i++) {
		bufs[i]->ol_flags |= flag;
		*RTE_MBUF_DYNFIELD(bufs[i], field, rte_mbuf_timestamp_t *) =
			now + delay;
	}
	if (rte_eth_tx_burst(0, 0, bufs, 3) != 3)
		fail("the packets are not taken");
	check_tx_status(now + delay);
}

int
main(int argc, char **argv)
{
	const uint64_t segment = RTE_ETH_TX_OFFLOAD_UDP_TSO | RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	int n = rte_eal_init(argc, argv);
	unsigned int size = RTE_MBUF_DEFAULT_BUF_SIZE;
	const char *name, *arg;
	bool segments, stop;
	uint64_t offloads;
	uint16_t port;

	if (n < 0 || argc - n != 3)
		fail("usage: see the head of driver.c");
	name = argv[n + 1];
	arg = argv[n + 2];
	segments = !strcmp(name, "segment");
	stop = !strcmp(name, "stop");
	offloads = segments ? segment : RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (stop)
		offloads |= RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;
	tags = !strcmp(name, "tags");
	if (tags)
		offloads |= RTE_ETH_TX_OFFLOAD_VLAN_INSERT;
	if (!segments)
		size = atoi(arg);
	pool = rte_pktmbuf_pool_create("mbufs", NR_MBUFS, 0, 0, size, SOCKET_ID_ANY);
	if (!pool)
		fail("no pool");
	end = rte_get_timer_cycles() + PATIENCE * rte_get_timer_hz();
	RTE_ETH_FOREACH_DEV(port)
		set_up_port(port, offloads);
	RTE_ETH_FOREACH_DEV(port)
		wait_for_link(port);
	if (!segments && !stop && rte_eth_macaddr_get(1, &peer))
		fail("there is no second port");
	if (segments)
		test_segment(arg);
	else if (stop)
		test_stop();
	else if (!strcmp(name, "monitor"))
		test_monitor();
	else if (tags || !strcmp(name, "hold"))
		test_hold();
	else
		fail("no such test");
	close_ports();
	return 0;
}
