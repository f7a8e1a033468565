// SPDX-License-Identifier: GPL-2.0
/*
 * forward IF PEER [PACKETS]: runs the forwarding loop of README.md while IF is
 * slow, so that its Tx ring is full most of the time. It is handed more packets
 * than the ring holds, or as many as the caller says. Each has to come back to
 * PEER once, in order, rewritten once, and with its checksum still to be
 * computed; then IF goes down, and the loop has to end with that error.
 *
 * With PACKETS 0, the loop with a pool is run instead; with "drop", the one that
 * drops the packets of several queue pairs, of which IF has one. With "drop" and
 * a number of queue pairs, it runs until it is killed, for measurements. With
 * "relay" or "zerocopy", the loop with a pool runs in both directions until it is
 * killed, for tunnels.sh.
 */
#include <err.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <linux/virtio_net.h>
#include <tpacket4.h>

#define PACKETS	"800"
#define LEN	1800u	/* more than the kernel copies: frames stay away */
#define KEY	0xa5
#define HEADERS	42u	/* Ethernet, IPv4, UDP */

/* All but the headers, which are the same in all packets. */
static void rewrite(__u8 *data, __u32 len)
{
	__u32 i;

	for (i = HEADERS; i < len; i++)
		data[i] ^= KEY;
}

#include "readme.inc"

static struct tp4_socket s;
static struct tp4_queues queues;
static struct tp4_area area;
static int result;

static void *run(void *unused)
{
	result = forward(&s, &area);
	return unused;
}

static void check(int e, const char *what)
{
	if (e < 0)
		errx(1, "%s: %s", what, strerror(-e));
}

static void fill(__u8 *p, unsigned int seq)
{
	static const __u8 ip[] = {
		0x08, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17
	};
	unsigned int i;

	memset(p, 2, HEADERS);
	memcpy(p + 12, ip, sizeof(ip));
	for (i = HEADERS; i < LEN; i++)
		p[i] = seq * 13 + seq / 256 + i;
}

/* A packet of the stack's whose checksum its device is to compute */
static const struct virtio_net_hdr partial = {
	.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
	.csum_start = 34,
	.csum_offset = 6,
};

static void send_packet(int fd, unsigned int seq)
{
	__u8 buf[sizeof(partial) + LEN];

	memcpy(buf, &partial, sizeof(partial));
	fill(buf + sizeof(partial), seq);
	if (send(fd, buf, sizeof(buf), 0) != (ssize_t)sizeof(buf))
		err(1, "send");
}

static void expect_packet(int fd, unsigned int seq, int rewritten)
{
	__u8 buf[sizeof(partial) + LEN], want[LEN];

	if (recv(fd, buf, sizeof(buf), 0) != (ssize_t)sizeof(buf))
		err(1, "receive");
	if (memcmp(buf, &partial, sizeof(partial)))
		errx(1, "packet %u has lost the state of its checksum", seq);
	fill(want, seq);
	if (rewritten)
		rewrite(want, LEN);
	if (memcmp(buf + sizeof(partial), want, LEN))
		errx(1, "packet %u is not as it should be", seq);
}

static int open_plain(int peer)
{
	struct tp4_socket plain = { .fd = socket(AF_PACKET, SOCK_RAW, 0) };
	int size = 16 << 20;

	setsockopt(plain.fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	setsockopt(plain.fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	check(tp4_setopt(plain.fd, PACKET_VNET_HDR, 1), "socket option");
	check(tp4_setopt(plain.fd, PACKET_IGNORE_OUTGOING, 1), "socket option");
	check(tp4_bind(&plain, peer), "bind");
	return plain.fd;
}

/* Until all of them have come back, in batches that the frames are enough for */
static void test_pool(int plain, int ifindex, unsigned int packets)
{
	struct tp4_socket sender, *both[2] = { &s, &sender };
	unsigned int seq = 0, got = 0, i;
	static __u64 frames[4096];
	struct tp4_pool pool;
	int ready[2];

	check(tp4_open(&sender, &(struct tp4_options){
		.mr_fd = s.fd, .tx_nr = 256, .meta = 1,
	}), "V4 socket");
	check(tp4_bind(&sender, ifindex), "bind");
	tp4_pool_init(&pool, frames, 1024, 3072);
	while (got < packets) {
		for (i = 0; i < 100; i++)
			send_packet(plain, seq++);
		while (got < seq) {
			struct pollfd p = { plain, POLLIN, 0 };

			check(relay(&s, &sender, &pool), "forward");
			if (tp4_ring_pending(&s.rx) != 1024)
				errx(1, "the Rx ring is not full");
			if (poll(&p, 1, 0) > 0)
				expect_packet(plain, got++, 0);
			else
				check(tp4_wait_any(both, 2, POLLIN, 10, ready),
				      "wait");
		}
	}
	tp4_close(&sender);
	printf("%u packets were forwarded with a pool\n", got);
}

/* Forwards between two devices. */
static void run_relay(int ifindex, int peer, int zerocopy)
{
	struct tp4_socket other, *both[2] = { &s, &other };
	static __u64 frames[4096];
	struct tp4_pool pool;
	int i, ready[2];

	check(tp4_open(&other, &(struct tp4_options){
		.mr_fd = s.fd, .rx_nr = 1024, .tx_nr = 256, .meta = 1,
	}), "V4 socket");
	tp4_pool_init(&pool, frames, 0, 4096);
	for (i = 0; i < 2; i++) {
		tp4_pool_fill(&pool, &both[i]->rx);
		check(tp4_setopt(both[i]->fd, PACKET_IGNORE_OUTGOING, 1),
		      "socket option");
		check(tp4_bind(both[i], i ? peer : ifindex), "bind");
		check(tp4_setopt(both[i]->fd, PACKET_ZEROCOPY, zerocopy),
		      "zero-copy mode");
	}
	for (;;) {
		check(relay(&s, &other, &pool), "forward");
		check(relay(&other, &s, &pool), "forward");
		check(tp4_wait_any(both, 2, POLLIN, 10, ready), "wait");
	}
}

static void *run_drop(void *ifindex)
{
	result = drop_all(&queues, &area, *(int *)ifindex, 1);
	return ifindex;
}

/* Run drop_all() until it has posted the frames of the ring again, twice. */
static void test_drop(int peer, int ifindex, const char *ifname)
{
	unsigned int seq = 0, got = 0;
	struct tpacket_stats_v4 st;
	pthread_t thread;
	char down[64];
	int plain;

	plain = open_plain(peer);
	if (pthread_create(&thread, NULL, run_drop, &ifindex))
		errx(1, "cannot make a thread");
	while (got < 3000) {
		send_packet(plain, seq++);
		if (seq % 32)
			continue;
		usleep(1000);
		if (!__atomic_load_n(&queues.nr, __ATOMIC_ACQUIRE))
			continue;
		check(tp4_stats(&queues.s[0], &st), "statistics");
		got += st.tp_packets - st.tp_drops;
	}
	snprintf(down, sizeof(down), "ip link set %s down", ifname);
	if (system(down))
		errx(1, "%s", down);
	pthread_join(thread, NULL);
	if (result != -ENETDOWN)
		errx(1, "drop_all() returned %d, not ENETDOWN", result);
	printf("more than 3000 packets were dropped\n");
}

int main(int argc, char **argv)
{
	unsigned int packets = atoi(argc == 4 ? argv[3] : PACKETS);
	int ifindex = argc > 2 ? if_nametoindex(argv[1]) : 0;
	int peer = argc > 2 ? if_nametoindex(argv[2]) : 0;
	pthread_t thread;
	char down[64];
	unsigned int i;
	int plain;

	if (!ifindex || !peer)
		errx(2, "usage: forward IF PEER [PACKETS|drop [QUEUES]|relay|zerocopy]");
	if (argc == 5)
		check(drop_all(&queues, &area, ifindex, atoi(argv[4])), "drop");
	if (argc == 4 && !strcmp(argv[3], "drop")) {
		test_drop(peer, ifindex, argv[1]);
		return 0;
	}
	check(open_socket(&s, &area), "V4 socket");
	if (argc == 4 && strchr("rz", *argv[3]))
		run_relay(ifindex, peer, *argv[3] == 'z');
	tp4_ring_fill(&s.rx, 0, 1024);
	check(tp4_setopt(s.fd, PACKET_IGNORE_OUTGOING, 1), "socket option");
	check(tp4_bind(&s, ifindex), "bind");
	plain = open_plain(peer);
	if (!packets) {
		test_pool(plain, ifindex, 3000);
		return 0;
	}

	for (i = 0; i < packets; i++)
		send_packet(plain, i);
	/* Then all of them are there: more than the Tx ring has slots. */
	while (tp4_ring_peek(&s.rx, packets) < packets)
		check(tp4_wait(&s, POLLIN, -1), "receive");

	if (pthread_create(&thread, NULL, run, NULL))
		errx(1, "cannot make a thread");
	for (i = 0; i < packets; i++)
		expect_packet(plain, i, 1);
	snprintf(down, sizeof(down), "ip link set %s down", argv[1]);
	if (system(down))
		errx(1, "%s", down);
	pthread_join(thread, NULL);
	if (result != -ENETDOWN)
		errx(1, "forward() returned %d, not ENETDOWN", result);
	tp4_close(&s);
	tp4_area_destroy(&area);
	printf("%u packets were forwarded\n", packets);
	return 0;
}
