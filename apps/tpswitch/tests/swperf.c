// SPDX-License-Identifier: GPL-2.0
/* Measures tpswitch with ring ports */

#include <getopt.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sched.h>

#include "tpacket4_port.h"

#define NR		1024
#define SIZE		2048

static const char *path = "/run/tpswitch/port";
static unsigned int bytes = 60, batch = 64;
static bool meta;

static const char help[] =
"usage: swperf [-S PATH] [-n PACKETS] [-s BYTES] [-b BATCH] [-i IDLE]\n"
"           two ports: send from one to the other; IDLE ports do nothing\n"
"       swperf [-S PATH] [--meta] --count SECONDS\n"
"           one port: count received packets, until the switch ends\n"
"       swperf [-S PATH] --receive [-n PACKETS]\n"
"           one port, with the address of the first packet that it receives:\n"
"           measure the time per packet that the only CPU is not idle\n"
"       swperf --veth A,B [--share] [...]\n"
"           the far ends of veth pairs, in zero-copy mode, instead of ring ports\n"
"\n"
"  -S PATH      where the switch listens (/run/tpswitch/port)\n"
"  -n PACKETS   packets to send or to receive (1000000)\n"
"  -s BYTES     length of a packet (60)\n"
"  -b BATCH     packets sent at a time (64)\n"
"  -i IDLE      number of idle ports (0)\n"
"  --meta       with metadata\n"
"  --share      both ends use one packet buffer\n"
"\n"
"Prints the packets received and the nanoseconds per packet, which are\n"
"instructions where a virtual machine counts these as time.\n";

struct end {
	struct tp4_socket s;
	struct tp4_area *area;
	struct tp4_area own;
	unsigned int first;
};

static void die(const char *what, int err)
{
	fprintf(stderr, "swperf: %s: %s%s\n", what, strerror(-err),
		err == -EDQUOT ? ": tpswitch ctl quota" : "");
	exit(1);
}

/* Open a port of the switch, or a device in zero-copy mode. */
static void open_end(struct end *e, const char *dev, struct end *share)
{
	struct tp4_options opt = { .rx_nr = NR, .tx_nr = NR, .meta = meta };
	__u64 frames[NR];
	unsigned int i;
	int err = 0;

	memset(e, 0, sizeof(*e));
	if (share) {
		e->area = share->area;
		e->first = 2 * NR;
	} else {
		err = tp4_area_create(&e->own, 4 * NR, SIZE);
		e->area = &e->own;
	}
	if (err)
		die("area", err);
	if (dev) {
		if (share)
			opt.mr_fd = share->s.fd;
		else
			opt.area = e->area;
		err = tp4_open(&e->s, &opt);
	} else {
		opt.area = e->area;
		err = tp4_connect(&e->s, path, &opt);
	}
	if (err < 0)
		die(dev ? dev : path, err);
	for (i = 0; i < NR; i++)
		frames[i] = e->first + i;
	tp4_ring_post(&e->s.rx, frames, NR);
	if (dev) {
		err = tp4_zerocopy(&e->s, 1);
		if (!err)
			err = tp4_bind(&e->s, if_nametoindex(dev));
		if (err)
			die(dev, err);
	}
}

static void fill_frames(struct end *e, unsigned int to, unsigned int from)
{
	const __u8 mac[2][6] = { { 2, 0, 0, 0, 9, to }, { 2, 0, 0, 0, 9, from } };
	unsigned int i, nr = e->area->nr_frames;

	for (i = 0; i < nr; i++) {
		__u8 *p = tp4_frame(e->area, i) + TP4_ZC_HEADROOM;

		memset(p, 0, bytes);
		memcpy(p, mac, 12);
		p[12] = 0x88;
		p[13] = 0xb5;
	}
}

static void kick(struct end *e)
{
	if (tp4_need_kick(&e->s))
		tp4_kick(&e->s, MSG_DONTWAIT);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

/* The time that CPU 0 was not idle */
static double busy(void)
{
	FILE *f = fopen("/proc/timer_list", "r");
	unsigned long long idle;
	bool found = false;
	char line[256];

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, " .idle_sleeptime : %llu", &idle) == 1;
	if (!found) {
		fprintf(stderr, "swperf: no idle_sleeptime in /proc/timer_list\n");
		exit(1);
	}
	fclose(f);
	return now() - idle;
}

/* Send a packet to everyone, and wait until the switch has it. */
static void send_from(struct end *e, const __u8 *mac)
{
	struct tpacket4_desc d = {
		.idx = e->first + NR, .len = bytes, .offset = TP4_ZC_HEADROOM
	};
	__u8 *p = tp4_data(e->area, &d), keep[12];

	memcpy(keep, p, 12);
	memset(p, 0xff, 6);
	memcpy(p + 6, mac, 6);
	tp4_ring_send(&e->s.tx, &d, 1);
	kick(e);
	while (!tp4_ring_peek(&e->s.tx, 1)) {
		kick(e);
		sched_yield();
	}
	tp4_ring_take(&e->s.tx, 1);
	memcpy(p, keep, 12);
}

/* Let the switch know where an address is. */
static void announce(struct end *e, unsigned int from)
{
	const __u8 mac[6] = { 2, 0, 0, 0, 9, from };

	send_from(e, mac);
	usleep(100000);
}

/*
 * Batches go from a to b; as soon as one is back, it is sent again. No more are on
 * their way than b has frames for, as a device is done with a packet before b has it.
 */
static void measure(struct end *a, struct end *b, unsigned long packets)
{
	unsigned long sent, got = 0, all = 0, room;
	struct tpacket4_desc d[NR];
	unsigned int i, n, m, idle = 0;
	double start = 0, end;

	tp4_ring_recycle(&b->s.rx, tp4_ring_peek(&b->s.rx, NR));
	tp4_ring_flush(&b->s.rx);
	for (i = 0; i < NR; i++)
		d[i] = (struct tpacket4_desc){
			.idx = a->first + NR + i, .len = bytes,
			.offset = TP4_ZC_HEADROOM
		};
	tp4_ring_send(&a->s.tx, d, batch);
	sent = batch;
	kick(a);
	while (got < packets && idle < 20) {
		/* The first part only warms up. */
		if (!start && got >= packets / 4) {
			start = now();
			packets -= got;
			all = got;
			got = 0;
		}
		n = tp4_ring_peek(&b->s.rx, batch);
		tp4_ring_recycle(&b->s.rx, n);
		got += n;
		room = NR / 2 - (sent - got - all);
		m = tp4_ring_peek(&a->s.tx, room < batch ? room : batch);
		tp4_ring_resend(&a->s.tx, m, bytes, TP4_ZC_HEADROOM);
		sent += m;
		if (m)
			kick(a);
		if (n || m) {
			idle = 0;
		} else if (tp4_wait(&b->s, POLLIN, 100) <= 0) {
			kick(a);
			idle++;
		}
	}
	end = now();
	packets = got;
	/* Those on their way are not lost. */
	for (idle = 0; sent != got + all && idle < 20; idle++) {
		n = tp4_ring_peek(&b->s.rx, NR);
		tp4_ring_recycle(&b->s.rx, n);
		got += n;
		if (n)
			idle = 0;
		else if (tp4_wait(&b->s, POLLIN, 50) <= 0)
			kick(a);
	}
	printf("{\"warmup\": %lu, \"packets\": %lu, \"ns_per_packet\": %.1f, \"lost\": %lu}\n",
	       all, packets, packets ? (end - start) / packets : 0,
	       sent - got - all);
}

static void count(struct end *e, unsigned int seconds)
{
	double until = now() + seconds * 1e9;
	unsigned long packets = 0, sum = 0;
	unsigned int i, n;

	while (now() < until) {
		n = tp4_ring_peek(&e->s.rx, 64);
		for (i = 0; i < n; i++) {
			const struct tpacket4_desc *d =
				tp4_ring_at(&e->s.rx, i);

			if (d->error)
				continue;
			packets += !(d->flags & TP4_PKT_CONT);
			sum += d->len;
		}
		tp4_ring_recycle(&e->s.rx, n);
		if (!n && tp4_wait(&e->s, POLLIN, 100) < 0)
			break;
	}
	printf("{\"packets\": %lu, \"bytes\": %lu}\n", packets, sum);
}

/* Until its address is known, the switch floods. */
static void receive(struct end *e, unsigned long packets)
{
	unsigned long got = 0;
	bool known = false;
	double start = 0;
	unsigned int n;

	while (got < packets) {
		n = tp4_ring_peek(&e->s.rx, NR);
		if (!n && tp4_wait(&e->s, POLLIN, 10000) <= 0)
			die("no packets", -ETIMEDOUT);
		if (n && !known) {
			send_from(e, tp4_data(e->area, tp4_ring_at(&e->s.rx, 0)));
			known = true;
		}
		tp4_ring_recycle(&e->s.rx, n);
		got += n;
		if (!start && got >= packets / 4) {
			packets -= got;
			got = 0;
			start = busy();
		}
	}
	printf("{\"packets\": %lu, \"ns_per_packet\": %.1f}\n", got,
	       (busy() - start) / got);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", required_argument, NULL, 'c' },
		{ "veth", required_argument, NULL, 'v' },
		{ "share", no_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ "meta", no_argument, NULL, 'm' },
		{ "receive", no_argument, NULL, 'r' },
		{ }
	};
	static struct end end[2], idle[254];
	unsigned int i, nr_idle = 0, seconds = 0;
	unsigned long packets = 1000000;
	char *dev[2] = { NULL, NULL };
	bool share = false, receiver = false;
	int c;

	while ((c = getopt_long(argc, argv, "S:n:s:b:i:h", options, NULL)) !=
	       -1) {
		switch (c) {
		case 'S':
			path = optarg;
			break;
		case 'n':
			packets = strtoul(optarg, NULL, 0);
			break;
		case 's':
			bytes = strtoul(optarg, NULL, 0);
			break;
		case 'b':
			batch = strtoul(optarg, NULL, 0);
			break;
		case 'i':
			nr_idle = strtoul(optarg, NULL, 0);
			break;
		case 'c':
			seconds = strtoul(optarg, NULL, 0);
			break;
		case 'v':
			dev[0] = strtok(optarg, ",");
			dev[1] = strtok(NULL, ",");
			break;
		case 'm':
			meta = true;
			break;
		case 'r':
			receiver = true;
			break;
		case 'o':
			share = true;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			return 2;
		}
	}
	if (bytes < 14 || bytes > SIZE - TP4_ZC_HEADROOM || !batch ||
	    batch > NR / 2 || nr_idle > 250)
		return 2;
	open_end(&end[0], dev[0], NULL);
	if (seconds) {
		count(&end[0], seconds);
		return 0;
	}
	if (receiver) {
		receive(&end[0], packets);
		return 0;
	}
	open_end(&end[1], dev[1], share ? &end[0] : NULL);
	for (i = 0; i < nr_idle; i++)
		open_end(&idle[i], NULL, NULL);
	fill_frames(&end[0], 2, 1);
	if (!share)
		fill_frames(&end[1], 1, 2);
	announce(&end[1], 2);
	announce(&end[0], 1);
	fprintf(stderr, "swperf: sending %lu packets, a quarter of them to warm up\n",
		packets);
	measure(&end[0], &end[1], packets);
	return 0;
}
