// SPDX-License-Identifier: GPL-2.0
/* tp4 stats: packets and drops per second of V4 sockets, as top shows processes */

#include <errno.h>
#include <getopt.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tp4.h"

#define INTERVAL	1		/* seconds */

/**
 * struct rates - what a socket has done since the report before
 * @rx: packets received, without the dropped ones
 * @tx: descriptors returned on the Tx ring
 * @drops: packets dropped
 * @ring_full: packets dropped because the program owns all slots
 * @no_desc: packets dropped because too few frames were posted, and how often a network
 *	card had none
 * @other: packets dropped otherwise
 * @rx_invalid: Rx descriptors refused
 * @tx_invalid: Tx descriptors refused
 * @tx_ring_full: kicks stopped by a full device
 * @tx_no_desc: kicks that found nothing posted
 */
struct rates {
	double rx;
	double tx;
	double drops;
	double ring_full;
	double no_desc;
	double other;
	double rx_invalid;
	double tx_invalid;
	double tx_ring_full;
	double tx_no_desc;
};

/**
 * struct sample - counters of a socket at the report before
 * @ino: the socket's inode
 * @last: the counters
 * @rates: how fast they were
 */
struct sample {
	uint32_t ino;
	struct packet_diag_stats last;
	struct rates rates;
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* --- counters ------------------------------------------------------------- */

/* What a counter has grown by. While the program reads PACKET_STATISTICS, it can
 * be too low for a moment: then the growth is counted the next time.
 */
static double growth32(uint32_t *last, uint32_t value)
{
	uint32_t n = value - *last;

	if (n > INT32_MAX)
		return 0;
	*last = value;
	return n;
}

static double growth(__u64 *last, __u64 value)
{
	__u64 n = value - *last;

	if (n > INT64_MAX)
		return 0;
	*last = value;
	return n;
}

static void update(struct sample *s, const struct packet_diag_stats *st,
		   double seconds)
{
	struct rates *r = &s->rates;
	struct packet_diag_stats *last = &s->last;
	double drops = growth32(&last->pds_drops, st->pds_drops) / seconds;

	r->rx = growth32(&last->pds_packets, st->pds_packets) / seconds - drops;
	r->tx = growth(&last->pds_tx_descs, st->pds_tx_descs) / seconds;
	r->drops = drops;
	r->ring_full = growth(&last->pds_rx_ring_full,
			      st->pds_rx_ring_full) / seconds;
	r->no_desc = growth(&last->pds_rx_no_desc,
			    st->pds_rx_no_desc) / seconds;
	r->other = drops - r->ring_full - r->no_desc;
	if (r->other < 0)
		r->other = 0;
	r->rx_invalid = growth(&last->pds_rx_invalid_descs,
			       st->pds_rx_invalid_descs) / seconds;
	r->tx_invalid = growth(&last->pds_tx_invalid_descs,
			       st->pds_tx_invalid_descs) / seconds;
	r->tx_ring_full = growth(&last->pds_tx_ring_full,
				 st->pds_tx_ring_full) / seconds;
	r->tx_no_desc = growth(&last->pds_tx_no_desc,
			       st->pds_tx_no_desc) / seconds;
	/* The counters are not read at the same moment. */
	if (r->rx < 0)
		r->rx = 0;
	if (r->other < 0)
		r->other = 0;
}

static const struct sample *find_sample(const struct sample *samples, int nr,
					uint32_t ino)
{
	int i;

	for (i = 0; i < nr; i++)
		if (samples[i].ino == ino)
			return &samples[i];
	return NULL;
}

/* Samples of the sockets in the listing, from the previous ones */
static struct sample *next_samples(const struct listing *l,
				   const struct sample *before, int nr,
				   double seconds)
{
	struct sample *samples = calloc(l->nr_sockets + 1, sizeof(*samples));
	const struct sample *old;
	int i;

	if (!samples) {
		fprintf(stderr, "tp4: out of memory\n");
		exit(1);
	}
	for (i = 0; i < l->nr_sockets; i++) {
		const struct v4_socket *s = &l->sockets[i];

		old = find_sample(before, nr, s->ino);
		if (old)
			samples[i] = *old;
		else
			samples[i].last = s->stats;
		samples[i].ino = s->ino;
		if (old)
			update(&samples[i], &s->stats, seconds);
	}
	return samples;
}

/* --- reports -------------------------------------------------------------- */

static const char *name_of(int ifindex, char *name)
{
	return ifindex && if_indextoname(ifindex, name) ? name : "-";
}

static void print_table(const struct listing *l, const struct sample *samples)
{
	char name[IF_NAMESIZE], queue[16];
	int i;

	/* clear the screen */
	if (isatty(STDOUT_FILENO))
		printf("\033[H\033[2J");
	printf("%-15s %5s %10s %10s %10s %10s %8s %8s %8s  %s\n", "DEVICE",
	       "QUEUE", "RX", "TX", "RING-FULL", "NO-FRAMES", "OTHER",
	       "INVALID", "TX-FULL", "PROCESS");
	for (i = 0; i < l->nr_sockets; i++) {
		const struct v4_socket *s = &l->sockets[i];
		const struct rates *r = &samples[i].rates;

		strcpy(queue, "-");
		if (s->zerocopy)
			snprintf(queue, sizeof(queue), "%u", s->queue);
		printf("%-15s %5s %10.0f %10.0f %10.0f %10.0f %8.0f %8.0f %8.0f  ",
		       name_of(s->ifindex, name), queue, r->rx, r->tx,
		       r->ring_full, r->no_desc, r->other,
		       r->rx_invalid + r->tx_invalid, r->tx_ring_full);
		print_processes(l, s->ino);
	}
}

/* Print an object with the counters, in the order of their names. */
static void print_values(const char *name, const double *values, int digits)
{
	static const char *const names[] = {
		"rx_packets", "rx_drops", "rx_ring_full", "rx_no_desc",
		"rx_invalid_descs", "tx_descs", "tx_ring_full", "tx_no_desc",
		"tx_invalid_descs",
	};
	unsigned int i;

	printf(",\"%s\":{", name);
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		printf("%s\"%s\":%.*f", i ? "," : "", names[i], digits,
		       values[i]);
	putchar('}');
}

static void print_json_socket(const struct listing *l, const struct v4_socket *s,
			      const struct rates *r)
{
	const struct packet_diag_stats *st = &s->stats;
	const double total[] = {
		st->pds_packets - st->pds_drops, st->pds_drops,
		st->pds_rx_ring_full, st->pds_rx_no_desc,
		st->pds_rx_invalid_descs, st->pds_tx_descs,
		st->pds_tx_ring_full, st->pds_tx_no_desc,
		st->pds_tx_invalid_descs,
	};
	const double per_second[] = {
		r->rx, r->drops, r->ring_full,
		r->no_desc, r->rx_invalid, r->tx, r->tx_ring_full,
		r->tx_no_desc, r->tx_invalid,
	};
	char name[IF_NAMESIZE];

	printf("{\"inode\":%u,\"device\":", s->ino);
	print_string(name_of(s->ifindex, name));
	printf(",\"mode\":\"%s\"", s->zerocopy ? "zero-copy" : "copy");
	if (s->zerocopy)
		printf(",\"queue\":%u", s->queue);
	print_values("total", total, 0);
	print_values("per_second", per_second, 1);
	putchar(',');
	print_json_processes(l, s->ino);
	putchar('}');
}

static void print_json(const struct listing *l, const struct sample *samples)
{
	int i;

	putchar('[');
	for (i = 0; i < l->nr_sockets; i++) {
		fputs(i ? "," : "", stdout);
		print_json_socket(l, &l->sockets[i], &samples[i].rates);
	}
	printf("]\n");
}

/* --- what is shown -------------------------------------------------------- */

static bool has(const struct listing *l, pid_t pid, uint32_t ino)
{
	int i;

	for (i = 0; i < l->nr_holders; i++)
		if (l->holders[i].ino == ino && l->holders[i].pid == pid)
			return true;
	return false;
}

/* Find the sockets, of one process or, with 0, of all. */
static int find(struct listing *l, pid_t pid)
{
	int i, nr = 0, err = find_all(l);

	for (i = 0; !err && i < l->nr_sockets; i++) {
		if (!l->sockets[i].has_stats) {
			fprintf(stderr, "tp4: the kernel reports no statistics of sockets\n");
			err = -EOPNOTSUPP;
		} else if (!pid || has(l, pid, l->sockets[i].ino)) {
			l->sockets[nr++] = l->sockets[i];
		}
	}
	if (err)
		forget_all(l);
	else
		l->nr_sockets = nr;
	return err;
}

static int show(pid_t pid, unsigned long count, bool json)
{
	const struct timespec interval = { .tv_sec = INTERVAL };
	struct sample *samples, *before;
	double start = now(), end;
	struct listing l;
	int nr;

	if (find(&l, pid))
		return 1;
	nr = l.nr_sockets;
	samples = next_samples(&l, NULL, 0, 0);
	forget_all(&l);
	if (pid && !nr) {
		fprintf(stderr, "tp4: process %d has no V4 socket here\n", pid);
		free(samples);
		return 1;
	}
	/* A count of 0 becomes ULONG_MAX. */
	do {
		nanosleep(&interval, NULL);
		end = now();
		if (find(&l, pid)) {
			free(samples);
			return 1;
		}
		before = samples;
		samples = next_samples(&l, before, nr, end - start);
		free(before);
		start = end;
		nr = l.nr_sockets;
		if (json)
			print_json(&l, samples);
		else
			print_table(&l, samples);
		forget_all(&l);
		if (fflush(stdout)) {
			perror("tp4");
			free(samples);
			return 1;
		}
	} while (--count && (nr || !pid));
	free(samples);
	return 0;
}

/* A number from 1 on, or 0 if it is none */
static unsigned long number(const char *what, const char *word)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(word, &end, 10);
	if (*word < '1' || *word > '9' || *end || errno || n > INT32_MAX) {
		fprintf(stderr, "tp4: %s is not %s: tp4 --help\n", word, what);
		return 0;
	}
	return n;
}

/**
 * stats_main - tp4 stats
 * @argc: number of arguments, from "stats" on
 * @argv: the arguments
 *
 * Return: the exit status.
 */
int stats_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "count", required_argument, NULL, 'c' },
		{ }
	};
	unsigned long count = 0, pid = 0;
	bool json = false;
	int c;

	while ((c = getopt_long(argc, argv, "j1c:", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case '1':
			count = 1;
			break;
		case 'c':
			count = number("a number of reports", optarg);
			if (!count)
				return 2;
			break;
		default:
			return 2;
		}
	}
	if (optind < argc) {
		pid = number("a process", argv[optind++]);
		if (!pid)
			return 2;
	}
	if (optind < argc) {
		fprintf(stderr, "tp4: only one process: tp4 --help\n");
		return 2;
	}
	return show(pid, count, json);
}
