// SPDX-License-Identifier: GPL-2.0
/*
 * The packets of tpbench, and their generator.
 *
 * A packet has an Ethernet header with an experimental ethertype, its number (8
 * bytes, network byte order), and a pattern that depends on the number.
 *
 * The generator does not depend on what is measured. It uses sendmmsg() on a
 * packet socket without a ring, the cheapest sender that every kernel has and
 * that is not part of the comparison.
 */
#include <endian.h>
#include <stdlib.h>
#include <net/if.h>

#include "tpbench.h"

static const __u8 header[ETH_HEADER] = {
	0x02, 0, 0, 0, 0, 0x02,
	0x02, 0, 0, 0, 0, 0x01,
	TEST_ETHERTYPE >> 8, TEST_ETHERTYPE & 0xff,
};

static __u8 pattern(__u64 seq, unsigned int i)
{
	return seq * 7 + i;
}

void packet_make(__u8 *data, unsigned int size, __u64 seq)
{
	__u64 be = htobe64(seq);
	unsigned int i;

	memcpy(data, header, sizeof(header));
	memcpy(data + ETH_HEADER, &be, sizeof(be));
	for (i = MIN_SIZE; i < size; i++)
		data[i] = pattern(seq, i);
}

void packet_check(struct port *p, const __u8 *data, unsigned int len)
{
	struct verify *v = &p->verify;
	unsigned int i;
	__u64 seq;

	if (len < MIN_SIZE || memcmp(data + 12, header + 12, 2)) {
		v->foreign++;
		return;
	}
	v->checked++;
	memcpy(&seq, data + ETH_HEADER, sizeof(seq));
	seq = be64toh(seq);
	for (i = MIN_SIZE; i < len && data[i] == pattern(seq, i); i++)
		;
	if (i != p->cfg->size) {
		v->corrupt++;
		return;
	}

	if (!v->started) {
		v->started = true;
		v->next = seq;
	}
	if (p->cfg->in_flight) {
		/* The same packets are sent again and again. */
		v->reordered += seq != v->next % p->cfg->in_flight;
	} else if (seq >= v->next) {
		v->lost += seq - v->next;
	} else {
		v->reordered++;
		return;
	}
	v->next = seq + 1;
}

struct generator {
	const struct config *cfg;
	int fd;
	__u64 seq;
	__u8 *data;		/* one packet; with verify, a batch */
	struct iovec *iov;
	struct mmsghdr *msgs;
};

struct generator *generator_open(const struct config *cfg)
{
	struct generator *g = calloc(1, sizeof(*g));
	int e, ifindex = if_nametoindex(cfg->ifname[1]);
	unsigned int i;

	if (!ifindex)
		err(1, "%s", cfg->ifname[1]);
	if (!g)
		err(1, "generator");
	g->cfg = cfg;
	g->data = calloc(cfg->batch, FRAME_SIZE);
	g->iov = calloc(cfg->batch, sizeof(*g->iov));
	g->msgs = calloc(cfg->batch, sizeof(*g->msgs));
	if (!g->data || !g->iov || !g->msgs)
		err(1, "generator");

	for (i = 0; i < cfg->batch; i++) {
		g->iov[i].iov_base = g->data;
		if (cfg->verify)
			g->iov[i].iov_base = g->data + i * FRAME_SIZE;
		g->iov[i].iov_len = cfg->size;
		g->msgs[i].msg_hdr.msg_iov = &g->iov[i];
		g->msgs[i].msg_hdr.msg_iovlen = 1;
	}
	packet_make(g->data, cfg->size, 0);

	/* Protocol 0: send only, receive nothing. */
	g->fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (g->fd < 0)
		err(1, "generator: socket");
	e = tp4_setopt(g->fd, PACKET_QDISC_BYPASS, cfg->bypass);
	if (!e) {
		struct sockaddr_ll ll = {
			.sll_family = AF_PACKET,
			.sll_ifindex = ifindex,
		};

		if (bind(g->fd, (struct sockaddr *)&ll, sizeof(ll)))
			e = -errno;
	}
	if (e)
		errx(1, "generator on %s: %s", cfg->ifname[1], strerror(-e));
	return g;
}

/* Send one batch; return the number of packets sent. */
unsigned int generator_send(struct generator *g)
{
	unsigned int i;
	int n;

	if (g->cfg->verify)
		for (i = 0; i < g->cfg->batch; i++)
			packet_make(g->data + i * FRAME_SIZE, g->cfg->size,
				    g->seq + i);
	n = sendmmsg(g->fd, g->msgs, g->cfg->batch, 0);
	if (n < 0) {
		if (errno != EINTR && errno != ENOBUFS && errno != EAGAIN)
			err(1, "generator: sendmmsg");
		return 0;
	}
	g->seq += n;
	return n;
}

void generator_close(struct generator *g)
{
	close(g->fd);
	free(g->msgs);
	free(g->iov);
	free(g->data);
	free(g);
}
