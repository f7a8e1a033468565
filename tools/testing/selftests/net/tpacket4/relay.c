// SPDX-License-Identifier: GPL-2.0
/* A forwarder between two devices, for tunnels.sh: relay IF1 IF2 [zerocopy]
 *
 * Each received packet is sent by the other device as it is, with its metadata.
 * It ends with SIGTERM, prints counters, and fails if a packet was returned with
 * an error, or is a GSO packet that cannot be sent.
 */
#include <signal.h>

#include "ring.h"

#define RING		2048		/* frames of each Rx ring */

static int stop;

static struct {
	unsigned int packets, gso, tunnel, crc32c, unknown, partial, errors;
} count;

static void on_signal(int sig)
{
	(void)sig;
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

/* The second socket uses the area of the first one, and its other frames. */
static int open_both(struct pv4 s[2])
{
	struct pv4_cfg cfg = {
		.rx_nr = RING, .tx_nr = RING, .headroom = 64, .meta = true,
	};
	int err = pv4_open(&s[0], &cfg), sndbuf = 8 << 20;
	unsigned int i;

	if (err)
		return err;
	s[1] = s[0];
	s[1].fd = pv4_socket();
	if (s[1].fd < 0)
		return -errno;
	setsockopt(s[1].fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf, sizeof(sndbuf));
	err = pv4_set_ring_flags(s[1].fd, PACKET_RX_RING, s[0].fd, RING,
				 TP4_RING_META);
	if (!err)
		err = pv4_set_ring_flags(s[1].fd, PACKET_TX_RING, s[0].fd, RING,
					 TP4_RING_META);
	memset(&s[1].rx, 0, sizeof(s[1].rx));
	memset(&s[1].tx, 0, sizeof(s[1].tx));
	if (!err)
		err = pv4_map_rings(&s[1], RING, RING);
	for (i = 0; !err && i < RING; i++)
		pv4_rx_post(&s[1], RING + i);
	return err;
}

static void look_at(struct pv4 *s, const struct tpacket4_desc *d)
{
	const struct tpacket4_meta *m = (void *)pv4_frame(s, d->idx);

	count.packets++;
	if (!(d->flags & TP4_META))
		return;
	count.gso += !!(m->flags & TP4_META_GSO);
	count.tunnel += !!(m->flags & TP4_META_TUNNEL);
	count.crc32c += !!(m->flags & TP4_META_CSUM_CRC32C);
	count.partial += !!(m->flags & TP4_META_CSUM);
	count.unknown += m->flags & TP4_META_GSO && !m->gso_type;
}

/* The other ring has a slot for each frame. */
static bool forward(struct pv4 *from, struct pv4 *to)
{
	struct tpacket4_desc d[MAX_CHAIN];
	unsigned int n = 0, before = to->tx.avail;
	struct tpacket4_desc *last;

	while (n < MAX_CHAIN && pv4_take(&from->rx, &d[n])) {
		if (d[n++].flags & TP4_PKT_CONT)
			continue;
		look_at(from, &d[0]);
		pv4_post(&to->tx, d, n);
		n = 0;
	}
	if (before == to->tx.avail)
		return false;
	/* poll() is to wait for more. */
	last = pv4_slot(&from->rx, from->rx.used - 1);
	if (!desc_is_kernels(last))
		__atomic_store_n(&last->flags, TP4_DESC_SEEN, __ATOMIC_RELEASE);
	return true;
}

/* Frames that have been sent go back to the ring that they are from. */
static void reap(struct pv4 s[2], struct pv4 *from)
{
	struct tpacket4_desc d;

	while (pv4_take(&from->tx, &d)) {
		if (d.error)
			from->errors[d.error]++;
		count.errors += !!d.error;
		pv4_rx_post(&s[d.idx >= RING], d.idx);
	}
}

static int relay(struct pv4 s[2])
{
	struct pollfd p[2] = {
		{ .fd = s[0].fd, .events = POLLIN },
		{ .fd = s[1].fd, .events = POLLIN },
	};
	int i, err, ms;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		ms = 1000;
		for (i = 0; i < 2; i++) {
			reap(s, &s[i]);
			forward(&s[!i], &s[i]);
			if (s[i].tx.avail == s[i].tx.used)
				continue;
			err = pv4_kick(&s[i], MSG_DONTWAIT);
			if (err < 0 && err != -ENOBUFS && err != -EAGAIN)
				return err;
			reap(s, &s[i]);
			if (s[i].tx.avail != s[i].tx.used)
				ms = 1;
		}
		if (poll(p, 2, ms) < 0 && errno != EINTR)
			return -errno;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal };
	bool zerocopy = argc == 4 && !strcmp(argv[3], "zerocopy");
	struct pv4 s[2];
	int i, k, err;

	if (argc != 3 && !zerocopy) {
		fprintf(stderr, "usage: relay IF1 IF2 [zerocopy]\n");
		return 2;
	}
	sigaction(SIGTERM, &sa, NULL);
	err = open_both(s);
	for (i = 0; !err && i < 2; i++) {
		err = pv4_setint(s[i].fd, PACKET_IGNORE_OUTGOING, 1);
		if (!err)
			err = pv4_bind(s[i].fd, argv[1 + i], ETH_P_ALL);
		if (!err && zerocopy)
			err = pv4_setint(s[i].fd, PACKET_ZEROCOPY, 1);
	}
	if (!err) {
		printf("relaying\n");
		fflush(stdout);
		err = relay(s);
	}
	if (err) {
		fprintf(stderr, "relay: %s\n", strerror(-err));
		return 1;
	}
	printf("packets %u gso %u partial %u tunnel %u crc32c %u unknown %u errors %u\n",
	       count.packets, count.gso, count.partial, count.tunnel,
	       count.crc32c, count.unknown, count.errors);
	for (i = 0; i < 2; i++)
		for (k = 1; k < 256; k++)
			if (s[i].errors[k])
				printf("%u by %s: %s\n", s[i].errors[k],
				       argv[1 + i], strerror(k));
	return count.errors || count.unknown;
}
