// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * capture [-p] IF >FILE.pcap: capture all packets of an interface until Ctrl-C.
 *
 * The interface is in promiscuous mode, except with -p.
 */
#include <err.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <linux/if_arp.h>
#include <tpacket4.h>

enum { FRAMES = 1024, SIZE = 2048 };

/* The file has the byte order of the writer, which the magic shows. */
static const struct {
	__u32 magic;
	__u16 major, minor;
	__u32 zone, accuracy, snaplen, linktype;
} file_header = { 0xa1b23c4d, 2, 4, 0, 0, FRAMES * SIZE, 1 };

static int stop;

static void on_signal(int sig)
{
	__atomic_store_n(&stop, sig, __ATOMIC_RELAXED);
}

static void check(int e, const char *what)
{
	if (e < 0)
		errx(1, "%s: %s", what, strerror(-e));
}

static void put(const void *data, size_t len)
{
	if (len && fwrite(data, len, 1, stdout) != 1)
		err(1, "write");
}

/* A frame of a packet. The packet is written with its last frame; the first one
 * has the metadata.
 */
static void add(const struct tp4_area *area, const struct tpacket4_desc *d)
{
	static __u8 packet[FRAMES * SIZE];
	static __u32 total, wire_len;
	static struct timespec t;

	if (!total) {
		t = tp4_meta_time(tp4_meta(area, d));
		wire_len = tp4_meta(area, d)->wire_len;
	}
	memcpy(packet + total, tp4_data(area, d), d->len);
	total += d->len;
	if (d->flags & TP4_PKT_CONT)
		return;
	put((__u32[]){ t.tv_sec, t.tv_nsec, total, wire_len }, 16);
	put(packet, total);
	total = 0;
}

static void capture(struct tp4_socket *s, const struct tp4_area *area)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		unsigned int i, n = tp4_ring_peek(&s->rx, 64);

		check(tp4_ring_error(&s->rx, n), "receive");
		for (i = 0; i < n; i++)
			add(area, tp4_ring_at(&s->rx, i));
		tp4_ring_recycle(&s->rx, n);
		if (n)
			continue;
		if (fflush(stdout))
			err(1, "write");
		/* A signal may be received just before: check stop again. */
		check(tp4_wait(s, POLLIN, 200), "receive");
	}
}

int main(int argc, char **argv)
{
	int tame = argc == 3 && !strcmp(argv[1], "-p"), ifindex;
	struct sigaction sa = {
		.sa_handler = on_signal,
		.sa_flags = SA_RESTART,	/* a signal interrupts poll() */
	};
	static __u64 frames[FRAMES];
	struct tpacket_stats_v4 st;
	struct sockaddr_ll ll;
	struct tp4_socket s;
	struct tp4_area area;
	struct tp4_pool pool;

	if (argc != 2 + tame || isatty(STDOUT_FILENO))
		errx(2, "usage: capture [-p] IF >FILE.pcap");
	ifindex = if_nametoindex(argv[1 + tame]);
	if (!ifindex)
		err(1, "%s", argv[1 + tame]);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);

	check(tp4_area_create(&area, FRAMES, SIZE), "packet memory");
	check(tp4_open(&s, &(struct tp4_options){
		.area = &area,
		.rx_nr = FRAMES,
		.meta = 1,
	}), "socket");
	tp4_pool_init(&pool, frames, 0, FRAMES);
	tp4_ring_post(&s.rx, frames, FRAMES);
	if (!tame)
		check(tp4_promisc(&s, ifindex), "promiscuous mode");
	check(tp4_bind(&s, ifindex), "bind");
	if (getsockname(s.fd, (struct sockaddr *)&ll,
			&(socklen_t){ sizeof(ll) }))
		err(1, "getsockname");
	if (ll.sll_hatype != ARPHRD_ETHER && ll.sll_hatype != ARPHRD_LOOPBACK)
		errx(1, "%s has no Ethernet header", argv[1 + tame]);

	put(&file_header, sizeof(file_header));
	fprintf(stderr, "listening on %s\n", argv[1 + tame]);
	capture(&s, &area);
	check(tp4_stats(&s, &st), "statistics");
	fprintf(stderr, "%u packets received, %u of them dropped\n",
		st.tp_packets, st.tp_drops);
	tp4_close(&s);
	tp4_area_destroy(&area);
	if (fclose(stdout))
		err(1, "write");
	return 0;
}
