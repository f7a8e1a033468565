// SPDX-License-Identifier: GPL-2.0
/*
 * tpgen: sending a capture file
 *
 * Each thread goes through all packets and sends those of its flows, so that
 * the packets of a flow stay in order. If the packets of a thread fit into its
 * frames, they are written once, and the loops after the first only send.
 */
#include <stdlib.h>

#include "input.h"
#include "pace.h"
#include "pcap.h"
#include "slots.h"

#define DRAIN_NS	NSEC		/* wait for the last packets */
#define NO_PACKET	SIZE_MAX
#define NEVER		1e18		/* nanoseconds, longer than any run */

static struct input file;

/**
 * struct replay - what sends
 * @w: thread
 * @c: packets
 * @slots: frames
 * @has: packet in each slot
 * @pace: schedule, if there is a rate
 * @timed: packets are due by their time stamps
 * @at: position in @c
 * @loop: loops that have ended
 * @number: number of the packet since the start, of all threads
 * @start: when the loop has started, if @timed
 */
struct replay {
	struct worker *w;
	const struct capture *c;
	struct slots slots;
	size_t *has;
	struct pace pace;
	bool timed;
	size_t at;
	__u64 loop, number;
	__u64 start;
};

/**
 * replay_load - read the capture file
 * @cfg: command line
 * @c: set to its packets
 *
 * Ends the program if there are none.
 */
void replay_load(const struct config *cfg, struct capture *c)
{
	const char *name = cfg->file;
	char error[CAPTURE_ERROR];

	input_read(&file, name);
	if (!file.len)
		errx(1, "%s: the file is empty", name);
	if (capture_parse(c, file.data, file.len, slots_max_size(), error))
		errx(1, "%s: %s", name, error);
	if (!c->nr)
		errx(1, "%s: no packet of Ethernet that can be sent", name);
	if (c->skipped)
		warnx("%s: %llu packets of other links than Ethernet are left out",
		      name, c->skipped);
	if (c->too_long)
		warnx("%s: %llu packets of more than %u bytes are left out",
		      name, c->too_long, slots_max_size());
	if (c->empty)
		warnx("%s: %llu packets without a byte are left out", name,
		      c->empty);
	if (c->cut)
		warnx("%s: %llu packets were captured only in part, and are sent so",
		      name, c->cut);
	if (c->incomplete)
		warnx("%s: the file ends within a record", name);
	if (*c->damage)
		warnx("%s: the file is damaged behind packet %zu: %s", name,
		      c->nr, c->damage);
	capture_schedule(c);
}

/**
 * replay_free - free what replay_load() has set
 * @c: packets, or nothing
 */
void replay_free(struct capture *c)
{
	capture_free(c);
	input_free(&file);
}

/**
 * replay_max_size - get the size of the longest packet
 * @w: thread
 *
 * Return: bytes.
 */
unsigned int replay_max_size(const struct worker *w)
{
	return w->capture->max_len;
}

/* The thread of a packet: the same for all packets of a flow, both ways */
static unsigned int thread_of(const struct replay *p,
			      const struct captured *packet)
{
	const unsigned int nr = p->w->cfg->nr_threads;
	unsigned int i, from = ETH_HLEN + 12, n = 4;
	__u32 hash = 0;

	if (nr == 1)
		return 0;
	/* addresses of IPv4 or IPv6; others by their MAC addresses */
	if (packet->len >= ETH_HLEN + 20 && packet->data[12] == 0x08 &&
	    !packet->data[13]) {
		n = 4;
	} else if (packet->len >= ETH_HLEN + 40 && packet->data[12] == 0x86 &&
		   packet->data[13] == 0xdd) {
		from = ETH_HLEN + 8;
		n = 16;
	} else if (packet->len >= 2 * ETH_ALEN) {
		from = 0;
		n = ETH_ALEN;
	} else {
		return 0;
	}
	for (i = 0; i < n; i++)
		hash = hash * 31 + (packet->data[from + i] ^
				    packet->data[from + n + i]);
	return (hash ^ hash >> 16) % nr;
}

static bool replay_init(struct replay *p, struct worker *w)
{
	const unsigned int ring = w->sock.tx.q.ring_mask + 1;
	const struct config *cfg = w->cfg;
	const unsigned int room = w->area.frame_size - TP4_ZC_HEADROOM;
	unsigned int i, nr, frames = (w->capture->max_len + room - 1) / room;
	size_t mine = 0;

	memset(p, 0, sizeof(*p));
	p->w = w;
	p->c = w->capture;
	pace_init(&p->pace, cfg, w->speed, w->nr, 1);
	p->timed = !cfg->rate.given;
	nr = ring / frames;
	for (i = 0; i < p->c->nr && mine <= nr; i++)
		mine += thread_of(p, &p->c->packet[i]) == w->nr;
	if (mine && mine < nr)
		nr = mine;
	p->has = malloc(nr * sizeof(*p->has));
	if (!p->has || slots_init(&p->slots, w, frames, nr)) {
		worker_fail(w, "no memory");
		return false;
	}
	for (i = 0; i < nr; i++)
		p->has[i] = NO_PACKET;
	return true;
}

static void copy_packet(const struct replay *p, const struct tpacket4_desc *d,
			unsigned int nr, const __u8 *data)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		memcpy(tp4_data(&p->w->area, &d[i]), data, d[i].len);
		data += d[i].len;
	}
}

static void send_packet(struct replay *p)
{
	const struct captured *packet = &p->c->packet[p->at];
	unsigned int slot = slots_next(&p->slots), nr;
	struct tpacket4_desc d[TX_FRAMES];

	nr = slots_describe(&p->slots, slot, packet->len, 0, d);
	if (p->has[slot] != p->at) {
		copy_packet(p, d, nr, packet->data);
		p->has[slot] = p->at;
	}
	slots_send(&p->slots, slot, d, nr);
}

/* A time of the file, at the speed of the replay */
static __u64 scale(const struct replay *p, __u64 ns)
{
	double scaled = p->w->cfg->speed ? ns / p->w->cfg->speed : ns;

	return scaled < NEVER ? scaled : NEVER;
}

/* Go to the next packet of the file; returns false behind the last one. */
static bool next_packet(struct replay *p)
{
	const struct config *cfg = p->w->cfg;

	p->number++;
	if (p->pace.limited)
		pace_sent(&p->pace, 1, p->c->packet[p->at].len);
	if (++p->at == p->c->nr) {
		p->at = 0;
		p->loop++;
		p->start += scale(p, p->c->length);
		if (cfg->loops && p->loop == cfg->loops)
			return false;
	}
	return !cfg->count || p->number != cfg->count;
}

static __u64 due(const struct replay *p, __u64 now)
{
	if (p->timed)
		return p->start + scale(p, p->c->packet[p->at].due);
	return p->pace.limited ? pace_next(&p->pace) : now;
}

/* Send what is due; returns false when all was sent. */
static bool send_due(struct replay *p, __u64 now, unsigned int *sent)
{
	unsigned int i;

	/* Others are passed over; Ctrl-C is looked at in between. */
	for (i = 0; i < 16 * BATCH && *sent < BATCH; i++) {
		if (due(p, now) > now)
			return true;
		if (thread_of(p, &p->c->packet[p->at]) == p->w->nr) {
			if (!p->slots.nr_free)
				return true;
			send_packet(p);
			++*sent;
		}
		if (!next_packet(p))
			return false;
	}
	return true;
}

static bool kick_and_reap(struct replay *p, unsigned int *reaped)
{
	int e = 0;

	if (tp4_ring_pending(&p->w->sock.tx))
		e = port_kick(p->w);
	if (e)
		worker_error(p->w, TP4_IN_KICK, e);
	*reaped = slots_reap(&p->slots);
	return !e;
}

static void replay_loop(struct replay *p)
{
	struct tp4_backoff b = { 0 };
	unsigned int sent, reaped;
	bool more = true;
	__u64 now, until;

	while (more && !stopped()) {
		now = clock_ns(CLOCK_MONOTONIC);
		sent = 0;
		more = send_due(p, now, &sent);
		if (!kick_and_reap(p, &reaped) ||
		    !refuse_check(p->w, p->c->nr + p->slots.nr))
			return;
		until = due(p, now);
		if (sent || reaped)
			b.pauses = 0;
		else if (until > now)
			pace_sleep(now, until, p->w->cfg->spin);
		else if (tp4_backoff(&b) && !p->w->cfg->spin)
			tp4_wait(&p->w->sock, POLLOUT, 1);
	}
}

static void drain(struct replay *p)
{
	const __u64 end = clock_ns(CLOCK_MONOTONIC) + DRAIN_NS;
	struct tp4_backoff b = { 0 };
	unsigned int reaped;

	while (tp4_ring_pending(&p->w->sock.tx) && !impatient() &&
	       clock_ns(CLOCK_MONOTONIC) < end) {
		if (!kick_and_reap(p, &reaped))
			return;
		if (!reaped && tp4_backoff(&b))
			tp4_wait(&p->w->sock, POLLOUT, 1);
	}
}

/**
 * replay_run - send the packets of a capture
 * @w: thread, whose port is open
 */
void replay_run(struct worker *w)
{
	struct replay p;

	if (replay_init(&p, w)) {
		w->begin = clock_ns(CLOCK_MONOTONIC);
		p.start = w->begin;
		pace_start(&p.pace, w->begin);
		replay_loop(&p);
		w->span = pace_span(&p.pace);
		if (w->span)
			w->end = clock_ns(CLOCK_MONOTONIC);
		drain(&p);
		if (!w->span)
			w->end = clock_ns(CLOCK_MONOTONIC);
	}
	slots_exit(&p.slots);
	free(p.has);
}
