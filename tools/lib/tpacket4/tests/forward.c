// SPDX-License-Identifier: GPL-2.0
/*
 * forward IF PEER [PACKETS]: runs the forwarding loop of README.md while IF is
 * slow, so that its Tx ring is full most of the time. It is handed more packets
 * than the ring holds, or as many as the caller says. Each has to come back to
 * PEER once, in order, and rewritten once; then IF goes down, and the loop has
 * to end with that error.
 */
#include <err.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tpacket4.h>

#define PACKETS	"800"
#define LEN	1800u	/* more than the kernel copies: frames stay away */
#define KEY	0xa5

/* All but the header, which is the same in all packets. */
static void rewrite(__u8 *data, __u32 len)
{
	__u32 i;

	for (i = ETH_HLEN; i < len; i++)
		data[i] ^= KEY;
}

#include "readme.inc"

static struct tp4_socket s;
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
	unsigned int i;

	memset(p, 2, 2 * ETH_ALEN);
	p[12] = 0x88;
	p[13] = 0xb5;
	for (i = ETH_HLEN; i < LEN; i++)
		p[i] = seq * 13 + seq / 256 + i;
}

int main(int argc, char **argv)
{
	unsigned int packets = atoi(argc == 4 ? argv[3] : PACKETS);
	int ifindex = argc > 2 ? if_nametoindex(argv[1]) : 0;
	int peer = argc > 2 ? if_nametoindex(argv[2]) : 0;
	struct tp4_socket plain = { .fd = -1 };
	__u8 packet[LEN], want[LEN];
	int size = 16 << 20;
	pthread_t thread;
	char down[64];
	unsigned int i;
	__u64 frame;

	if (!ifindex || !peer || !packets)
		errx(2, "usage: forward IF PEER [PACKETS]");
	check(open_socket(&s, &area), "V4 socket");
	for (frame = 0; frame < 1024; frame++)
		tp4_ring_post(&s.rx, &frame, 1);
	check(tp4_setopt(s.fd, PACKET_IGNORE_OUTGOING, 1), "socket option");
	check(tp4_bind(&s, ifindex), "bind");

	plain.fd = socket(AF_PACKET, SOCK_RAW, 0);
	setsockopt(plain.fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	setsockopt(plain.fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	check(tp4_setopt(plain.fd, PACKET_IGNORE_OUTGOING, 1), "socket option");
	check(tp4_bind(&plain, peer), "bind");
	for (i = 0; i < packets; i++) {
		fill(packet, i);
		if (send(plain.fd, packet, LEN, 0) != (ssize_t)LEN)
			err(1, "send");
	}
	/* Then all of them are there: more than the Tx ring has slots. */
	while (tp4_ring_peek(&s.rx, packets) < packets)
		check(tp4_wait(&s, POLLIN, -1), "receive");

	if (pthread_create(&thread, NULL, run, NULL))
		errx(1, "cannot make a thread");
	for (i = 0; i < packets; i++) {
		if (recv(plain.fd, packet, LEN, 0) != (ssize_t)LEN)
			err(1, "receive");
		fill(want, i);
		rewrite(want, LEN);
		if (memcmp(packet, want, LEN))
			errx(1, "packet %u is not rewritten once", i);
	}
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
