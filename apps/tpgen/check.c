// SPDX-License-Identifier: GPL-2.0
/* tpgen: options that depend on each other, and defaults that follow from them */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <net/if.h>

#include "options.h"
#include "slots.h"
#include "vary.h"

#define MIB	(1u << 20)

static void get_mac(const struct config *cfg, struct address *a)
{
	struct ifreq ifr = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	__be32 low;

	strncpy(ifr.ifr_name, cfg->ifname, sizeof(ifr.ifr_name) - 1);
	if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &ifr))
		err(1, "%s: MAC address", cfg->ifname);
	close(fd);
	memcpy(a->bytes, ifr.ifr_hwaddr.sa_data, ETH_ALEN);
	memcpy(&low, a->bytes + 2, sizeof(low));
	a->low.min = a->low.max = ntohl(low);
}

static void set_random(struct packet_spec *pkt, const char *fields)
{
	const struct {
		const char *name;
		struct range *r;
	} known[] = {
		{ "length", &pkt->size }, { "src", &pkt->src.low },
		{ "dst", &pkt->dst.low }, { "sport", &pkt->sport },
		{ "dport", &pkt->dport }, { "src-mac", &pkt->smac.low },
		{ "dst-mac", &pkt->dmac.low }, { "vlan", &pkt->vlan },
		{ "outer-vlan", &pkt->outer },
	};
	unsigned int i;

	while (fields) {
		size_t len = strcspn(fields, ",");

		for (i = 0; i < sizeof(known) / sizeof(*known); i++)
			if (strlen(known[i].name) == len &&
			    !strncmp(fields, known[i].name, len))
				break;
		if (i == sizeof(known) / sizeof(*known))
			errx(2, "random: '%.*s' is not a field; see --help",
			     (int)len, fields);
		if (known[i].r->min == known[i].r->max)
			errx(2, "random: '%s' has no range", known[i].name);
		known[i].r->random = true;
		fields = fields[len] ? fields + len + 1 : NULL;
	}
}

static void set_protocol(struct packet_spec *pkt, const struct given_packet *given)
{
	static const char *const names[] = { "udp", "tcp", "icmp", NULL };
	static const __u8 number[] = { IPPROTO_UDP, IPPROTO_TCP,
				       IPPROTO_ICMP };

	pkt->protocol = IPPROTO_UDP;
	if (given->protocol)
		pkt->protocol = number[one_of("proto", given->protocol,
					      names)];
	if (pkt->protocol != IPPROTO_ICMP)
		return;
	if (given->ports)
		errx(2, "ICMP has no ports");
	if (pkt->family == AF_INET6)
		pkt->protocol = IPPROTO_ICMPV6;
}

static void raise_sizes(struct packet_spec *pkt, unsigned int min)
{
	unsigned int i;

	if (pkt->size.max < min)
		pkt->size.max = min;
	pkt->size.min = min;
	for (i = 0; i < pkt->nr_sizes; i++)
		if (pkt->sizes[i] < min)
			pkt->sizes[i] = min;
}

/* Sizes of a search are tried one after the other. */
static void set_sizes(struct config *cfg, const struct given_packet *given)
{
	struct packet_spec *pkt = &cfg->pkt;
	unsigned int i, min = vary_min_size(pkt);

	if (cfg->mode != MODE_SEARCH) {
		if (given->length)
			parse_sizes(given->length, pkt);
		return;
	}
	cfg->nr_lengths = parse_lengths(given->length ? given->length :
					"rfc2544", cfg->lengths);
	pkt->size = (struct range){ UINT32_MAX, 0, false };
	for (i = 0; i < cfg->nr_lengths; i++) {
		/* As the default of tx does */
		if (cfg->lengths[i] == MIN_FRAME && min > MIN_FRAME)
			cfg->lengths[i] = min;
		if (cfg->lengths[i] < pkt->size.min)
			pkt->size.min = cfg->lengths[i];
		if (cfg->lengths[i] > pkt->size.max)
			pkt->size.max = cfg->lengths[i];
	}
}

static void finish_packet(struct config *cfg, const struct given_packet *given)
{
	static char src4[] = "10.0.0.1", dst4[] = "10.1.0.1";
	static char src6[] = "fd00::1", dst6[] = "fd00::2";
	struct packet_spec *pkt = &cfg->pkt;
	struct range none;
	unsigned int min;

	pkt->family = given->family ? given->family : AF_INET;
	if (!given->src)
		parse_ip("src", pkt->family == AF_INET ? src4 : src6,
			 &pkt->src, &none);
	if (!given->dst)
		parse_ip("dst", pkt->family == AF_INET ? dst4 : dst6,
			 &pkt->dst, &none);
	if (!given->smac)
		get_mac(cfg, &pkt->smac);
	if (pkt->priority && !pkt->tagged)
		errx(2, "--priority needs --vlan");
	if (pkt->stacked && !pkt->tagged)
		errx(2, "--outer-vlan needs --vlan");
	set_protocol(pkt, given);
	set_sizes(cfg, given);
	set_random(pkt, given->random);
	pkt->run = clock_ns(CLOCK_REALTIME) / 1000 ^ getpid();
	min = vary_min_size(pkt);
	/* The default, and the small packets of the simple IMIX, grow. */
	if (pkt->size.min < min && pkt->size.min == MIN_FRAME &&
	    (pkt->imix || (pkt->size.max == MIN_FRAME && !pkt->nr_sizes)))
		raise_sizes(pkt, min);
	if (pkt->size.min < min)
		errx(2, "length: the headers of these packets have %u bytes",
		     min);
}

static void check_frames(const struct packet_spec *pkt)
{
	unsigned int page = sysconf(_SC_PAGESIZE) < 4096 ? 2048 : 4096;
	unsigned int room = page - TP4_ZC_HEADROOM, max = vary_max_size(pkt);

	if (pkt->frames && pkt->size.min / pkt->frames < vary_min_size(pkt))
		errx(2, "frames: the first of %u frames does not hold the headers of packets of %u bytes",
		     pkt->frames, pkt->size.min);
	if ((max + room - 1) / room > (pkt->frames ? pkt->frames : TX_FRAMES))
		errx(2, "length: packets of %u bytes need more frames", max);
	/* How a packet is divided depends on its size, and its frames keep it. */
	if (pkt->fill && pkt->size.min != pkt->size.max &&
	    (pkt->frames > 1 || max > room))
		errx(2, "payload: packets of different sizes must fit into a frame of %u bytes each",
		     room);
}

/* Options that this mode does not have must not be given. */
static void check_mode(const struct config *cfg, const struct given *given)
{
	const bool tx = cfg->mode == MODE_TX, rx = cfg->mode == MODE_RX;
	const bool ping = cfg->mode == MODE_PING;
	const bool replay = cfg->mode == MODE_REPLAY;
	const bool search = cfg->mode == MODE_SEARCH;

	if (given->packets && !tx && !ping && !search)
		errx(2, "options of packets are for tx, ping and search");
	if (given->rate_options && !tx && !ping && !replay && !search)
		errx(2, "options of the rate are for tx, ping, replay and search");
	if (given->search != search || (search && !cfg->to))
		errx(2, search ? "search needs an interface that receives (--to)" :
		     "--to, --loss and --precision are for search");
	if (search && (cfg->count || cfg->plot || cfg->json_stream))
		errx(2, "search has no --count, --plot and --json-stream");
	if (cfg->pkt.seq && !tx && !rx)
		errx(2, "--seq is for tx and rx");
	if (cfg->write && !rx)
		errx(2, "--write is for rx");
	if (given->stamps && (!rx || (!cfg->pkt.seq && !cfg->write)))
		errx(2, "--stamps is for rx --seq and rx --write");
	if (cfg->launch && !tx)
		errx(2, "--launch is for tx");
	if (ping && (cfg->burst || cfg->pkt.frames))
		errx(2, "--burst and --frames are for tx");
	if (cfg->dump && !tx && !rx)
		errx(2, "--dump is for tx and rx");
	if ((cfg->file || cfg->speed || cfg->loops != 1) && !replay)
		errx(2, "--file, --speed and --loops are for replay");
	if (replay && !cfg->file)
		errx(2, "replay needs a file (-f)");
	if (replay && (cfg->burst || cfg->poisson || cfg->launch))
		errx(2, "replay has no bursts, random gaps and launch times");
	if (replay && cfg->speed && cfg->rate.given)
		errx(2, "--speed and --rate exclude each other");
}

static void check(struct config *cfg, struct given *given)
{
	if (cfg->zerocopy && given->threads)
		errx(2, "--zerocopy and --threads exclude each other");
	if (cfg->zerocopy && cfg->qdisc)
		errx(2, "in zero-copy mode, packets do not pass a qdisc");
	if (given->nr_cpus && given->nr_cpus < cfg->nr_threads)
		errx(2, "cpus: %u for %u threads", given->nr_cpus,
		     cfg->nr_threads);
	if (cfg->count && cfg->count < cfg->nr_threads)
		errx(2, "count: less than a packet for each thread");
	if ((cfg->poisson || cfg->launch || cfg->burst) &&
	    cfg->rate.unit == RATE_MAX && cfg->mode == MODE_TX &&
	    (cfg->poisson || cfg->launch))
		errx(2, "--poisson and --launch need a rate (-R)");
	check_mode(cfg, given);
}

static void set_cpus(struct config *cfg, const struct given *given)
{
	unsigned int i;

	for (i = 0; i < cfg->nr_threads; i++)
		cfg->cpu[i] = given->nr_cpus ? (int)given->cpus[i] : -1;
}

/*
 * The default of RLIMIT_MEMLOCK is 8 MiB for a user, which is room for a sender
 * and a receiver, and their rings. Zero-copy mode is for the administrator.
 */
static unsigned int default_ring(const struct config *cfg)
{
	const bool both = cfg->mode == MODE_PING || cfg->mode == MODE_PONG;
	unsigned int size = 2048, memory = 2 * MIB;

	if (cfg->mode == MODE_TX || cfg->mode == MODE_PING ||
	    cfg->mode == MODE_SEARCH)
		size = slots_frame_size(vary_max_size(&cfg->pkt));
	else if (cfg->mode == MODE_REPLAY)
		size = slots_frame_size(UINT32_MAX);
	if (cfg->mode == MODE_RX)
		memory = 4 * MIB;
	if (cfg->zerocopy)
		memory = 8 * MIB;
	return memory / size / (both ? 2 : 1);
}

/**
 * finish_options - check the options together, and set what follows from them
 * @cfg: command line
 * @given: options that were given
 *
 * Ends the program if they are not valid.
 */
void finish_options(struct config *cfg, struct given *given)
{
	if (!cfg->launch)
		cfg->ahead = 0;
	check(cfg, given);
	if (cfg->write && !given->stamps)
		cfg->stamps = STAMPS_SOFTWARE;
	set_cpus(cfg, given);
	if (cfg->mode == MODE_PING || cfg->mode == MODE_SEARCH)
		cfg->pkt.seq = true;
	if (cfg->mode == MODE_SEARCH && !cfg->seconds)
		cfg->seconds = 2;
	if (cfg->mode == MODE_SEARCH && !cfg->rate.given)
		cfg->rate = (struct rate){ 100, true, RATE_PERCENT };
	if (cfg->mode == MODE_TX || cfg->mode == MODE_PING ||
	    cfg->mode == MODE_SEARCH) {
		finish_packet(cfg, &given->pkt);
		check_frames(&cfg->pkt);
	}
	if (!given->ring)
		cfg->ring = default_ring(cfg);
	if (cfg->burst > cfg->ring)
		errx(2, "burst: more packets than a ring holds");
}
