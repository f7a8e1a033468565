// SPDX-License-Identifier: GPL-2.0
/* tpgen: the command line */
#include <getopt.h>
#include <net/if.h>
#include <stdlib.h>

#include "options.h"

enum {
	OPT_RING = 256,
	OPT_PROMISC,
	OPT_SPIN,
	OPT_SPORT,
	OPT_DPORT,
	OPT_VLAN,
	OPT_OUTER_VLAN,
	OPT_PRIORITY,
	OPT_PROTO,
	OPT_TTL,
	OPT_TOS,
	OPT_RANDOM,
	OPT_SEED,
	OPT_SEQ,
	OPT_STREAM,
	OPT_PAYLOAD,
	OPT_POISSON,
	OPT_LAUNCH,
	OPT_AHEAD,
	OPT_QDISC,
	OPT_STAMPS,
	OPT_WRITE,
	OPT_TO,
	OPT_LOSS,
	OPT_PRECISION,
	OPT_JSON,
	OPT_JSON_STREAM,
	OPT_PLOT,
};

static const struct option options[] = {
	{ "interface", required_argument, NULL, 'i' },
	{ "zerocopy", required_argument, NULL, 'z' },
	{ "threads", required_argument, NULL, 'p' },
	{ "cpus", required_argument, NULL, 'a' },
	{ "count", required_argument, NULL, 'n' },
	{ "time", required_argument, NULL, 't' },
	{ "wait-link", required_argument, NULL, 'w' },
	{ "ring", required_argument, NULL, OPT_RING },
	{ "promisc", no_argument, NULL, OPT_PROMISC },
	{ "spin", no_argument, NULL, OPT_SPIN },
	{ "length", required_argument, NULL, 'l' },
	{ "src", required_argument, NULL, 's' },
	{ "dst", required_argument, NULL, 'd' },
	{ "sport", required_argument, NULL, OPT_SPORT },
	{ "dport", required_argument, NULL, OPT_DPORT },
	{ "src-mac", required_argument, NULL, 'S' },
	{ "dst-mac", required_argument, NULL, 'D' },
	{ "vlan", required_argument, NULL, OPT_VLAN },
	{ "outer-vlan", required_argument, NULL, OPT_OUTER_VLAN },
	{ "priority", required_argument, NULL, OPT_PRIORITY },
	{ "proto", required_argument, NULL, OPT_PROTO },
	{ "ttl", required_argument, NULL, OPT_TTL },
	{ "tos", required_argument, NULL, OPT_TOS },
	{ "random", required_argument, NULL, OPT_RANDOM },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "frames", required_argument, NULL, 'F' },
	{ "seq", no_argument, NULL, OPT_SEQ },
	{ "stream", required_argument, NULL, OPT_STREAM },
	{ "payload", required_argument, NULL, OPT_PAYLOAD },
	{ "rate", required_argument, NULL, 'R' },
	{ "burst", required_argument, NULL, 'b' },
	{ "poisson", no_argument, NULL, OPT_POISSON },
	{ "launch", required_argument, NULL, OPT_LAUNCH },
	{ "ahead", required_argument, NULL, OPT_AHEAD },
	{ "qdisc", no_argument, NULL, OPT_QDISC },
	{ "stamps", required_argument, NULL, OPT_STAMPS },
	{ "write", required_argument, NULL, OPT_WRITE },
	{ "file", required_argument, NULL, 'f' },
	{ "speed", required_argument, NULL, 'x' },
	{ "loops", required_argument, NULL, 'L' },
	{ "to", required_argument, NULL, OPT_TO },
	{ "loss", required_argument, NULL, OPT_LOSS },
	{ "precision", required_argument, NULL, OPT_PRECISION },
	{ "interval", required_argument, NULL, 'T' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "dump", optional_argument, NULL, 'X' },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "json-stream", required_argument, NULL, OPT_JSON_STREAM },
	{ "plot", required_argument, NULL, OPT_PLOT },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ }
};

static enum mode parse_mode(const char *s)
{
	static const char *const names[] = { "tx", "rx", "ping", "pong",
					     "replay", "search" };
	unsigned int i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(s, names[i]))
			return i;
	errx(2, "'%s' is not tx, rx, ping, pong, replay or search; see --help",
	     s);
}

/**
 * one_of - find an argument among the names of an option
 * @what: option
 * @s: argument
 * @names: NULL-terminated
 *
 * Return: the index; ends the program if the name is not known.
 */
unsigned int one_of(const char *what, const char *s, const char *const *names)
{
	unsigned int i;

	for (i = 0; names[i]; i++)
		if (!strcmp(s, names[i]))
			return i;
	errx(2, "--%s: '%s' is not known; see --help", what, s);
}

static void set_address(const char *what, char *s, struct address *a,
			struct range *port, struct given *given)
{
	struct range none = { 1, 0, false };
	int family;

	family = parse_ip(what, s, a, &none);
	if (none.min <= none.max) {
		*port = none;
		given->pkt.ports = true;
	}
	if (given->pkt.family && given->pkt.family != family)
		errx(2, "IPv4 and IPv6 addresses exclude each other");
	given->pkt.family = family;
}

/* An option of packets; returns false if it is another one. */
static bool packet_option(struct packet_spec *pkt, int c, char *arg,
			  struct given *given)
{
	switch (c) {
	case 'l':
		given->pkt.length = arg;
		break;
	case '4':
	case '6':
		c = c == '4' ? AF_INET : AF_INET6;
		if (given->pkt.family && given->pkt.family != c)
			errx(2, "IPv4 and IPv6 exclude each other");
		given->pkt.family = c;
		break;
	case 's':
		given->pkt.src = true;
		set_address("src", arg, &pkt->src, &pkt->sport, given);
		break;
	case 'd':
		given->pkt.dst = true;
		set_address("dst", arg, &pkt->dst, &pkt->dport, given);
		break;
	case OPT_SPORT:
		given->pkt.ports = true;
		parse_range("sport", arg, 0, 65535, &pkt->sport);
		break;
	case OPT_DPORT:
		given->pkt.ports = true;
		parse_range("dport", arg, 0, 65535, &pkt->dport);
		break;
	case 'S':
		given->pkt.smac = true;
		parse_mac("src-mac", arg, &pkt->smac);
		break;
	case 'D':
		parse_mac("dst-mac", arg, &pkt->dmac);
		break;
	case OPT_VLAN:
		pkt->tagged = true;
		parse_range("vlan", arg, 0, 4095, &pkt->vlan);
		break;
	case OPT_OUTER_VLAN:
		pkt->stacked = true;
		parse_range("outer-vlan", arg, 0, 4095, &pkt->outer);
		break;
	case OPT_PRIORITY:
		pkt->priority = parse_number("priority", arg, 0, 7);
		break;
	case OPT_PROTO:
		given->pkt.protocol = arg;
		break;
	case OPT_TTL:
		pkt->ttl = parse_number("ttl", arg, 0, 255);
		break;
	case OPT_TOS:
		pkt->tos = parse_number("tos", arg, 0, 255);
		break;
	case OPT_RANDOM:
		given->pkt.random = arg;
		break;
	case 'F':
		pkt->frames = parse_number("frames", arg, 1, TX_FRAMES);
		break;
	case OPT_STREAM:
		pkt->stream = parse_number("stream", arg, 0, 65535);
		break;
	case OPT_PAYLOAD:
		parse_payload(arg, pkt);
		break;
	default:
		return false;
	}
	given->packets = true;
	return true;
}

/* An option of the rate; returns false if it is another one. */
static bool rate_option(struct config *cfg, int c, char *arg,
			struct given *given)
{
	static const char *const launch[] = { "fq", "etf", NULL };

	switch (c) {
	case 'R':
		parse_rate(arg, &cfg->rate);
		break;
	case 'b':
		cfg->burst = parse_number("burst", arg, 1, 1 << 16);
		break;
	case OPT_POISSON:
		cfg->poisson = true;
		break;
	case OPT_LAUNCH:
		cfg->launch = LAUNCH_FQ + one_of("launch", arg, launch);
		cfg->qdisc = true;
		break;
	case OPT_AHEAD:
		cfg->ahead = parse_number("ahead", arg, 1, 10000000) * 1000;
		break;
	case OPT_QDISC:
		cfg->qdisc = true;
		break;
	default:
		return false;
	}
	given->rate_options = true;
	return true;
}

/* An option of a search; returns false if it is another one. */
static bool search_option(struct config *cfg, int c, const char *arg,
			  struct given *given)
{
	switch (c) {
	case OPT_TO:
		cfg->to = arg;
		break;
	case OPT_LOSS:
		cfg->loss = parse_decimal("loss", arg, 0, 99) / 100;
		break;
	case OPT_PRECISION:
		cfg->precision = parse_decimal("precision", arg, 0.01, 50) /
				 100;
		break;
	default:
		return false;
	}
	given->search = true;
	return true;
}

static void other_option(struct config *cfg, int c, char *arg,
			 struct given *given)
{
	static const char *const stamps[] = { "program", "software",
					      "hardware", NULL };

	switch (c) {
	case 'i':
		cfg->ifname = arg;
		break;
	case 'z':
		cfg->zerocopy = true;
		cfg->nr_threads = parse_list("zerocopy", arg, cfg->queue,
					     MAX_THREADS);
		break;
	case 'p':
		cfg->nr_threads = parse_number("threads", arg, 1, MAX_THREADS);
		given->threads = true;
		break;
	case 'a':
		given->nr_cpus = parse_list("cpus", arg, given->cpus,
					    MAX_THREADS);
		break;
	case 'n':
		cfg->count = parse_number("count", arg, 1, UINT64_MAX / 2);
		break;
	case 't':
		cfg->seconds = parse_decimal("time", arg, 0.001, 1e9);
		break;
	case 'w':
		cfg->wait_link = parse_decimal("wait-link", arg, 0, 1e6);
		break;
	case OPT_RING:
		cfg->ring = parse_number("ring", arg, 256, 1 << 16);
		if (cfg->ring & (cfg->ring - 1))
			errx(2, "ring: not a power of two");
		given->ring = true;
		break;
	case OPT_PROMISC:
		cfg->promisc = true;
		break;
	case OPT_SPIN:
		cfg->spin = true;
		break;
	case OPT_SEED:
		cfg->seed = parse_number("seed", arg, 0, UINT32_MAX);
		given->packets = true;
		break;
	case OPT_SEQ:
		cfg->pkt.seq = true;
		break;
	case OPT_STAMPS:
		cfg->stamps = one_of("stamps", arg, stamps);
		given->stamps = true;
		break;
	case OPT_WRITE:
		cfg->write = arg;
		break;
	case 'f':
		cfg->file = arg;
		break;
	case 'x':
		cfg->speed = parse_decimal("speed", arg, 1e-6, 1e6);
		break;
	case 'L':
		cfg->loops = parse_number("loops", arg, 0, UINT32_MAX);
		break;
	case 'T':
		cfg->interval = parse_decimal("interval", arg, 0.01, 1e6);
		break;
	case 'q':
		cfg->quiet = true;
		break;
	case 'X':
		cfg->dump = arg ? parse_number("dump", arg, 1, UINT64_MAX / 2) :
				  1;
		break;
	case OPT_JSON:
		cfg->json = arg;
		break;
	case OPT_JSON_STREAM:
		cfg->json_stream = arg;
		break;
	case OPT_PLOT:
		cfg->plot = arg;
		break;
	case 'h':
		fputs(usage, stdout);
		exit(0);
	case 'V':
		printf("tpgen for tpacket4.h %d.%d\n", TP4_VERSION_MAJOR,
		       TP4_VERSION_MINOR);
		exit(0);
	default:
		errx(2, "see --help");
	}
}

static const struct config defaults = {
	.nr_threads = 1,
	.interval = 1,
	.wait_link = 2,
	.ahead = 2000000,
	.loops = 1,
	.precision = 0.01,
	.pkt = {
		.ttl = 64,
		.size = { MIN_FRAME, MIN_FRAME, false },
		.sport = { 1234, 1234, false },
		.dport = { 1234, 1234, false },
		.dmac = {
			.bytes = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
			.low = { UINT32_MAX, UINT32_MAX, false },
		},
	},
};

/**
 * options_parse - parse the command line
 * @cfg: set to what it says
 * @argc: as for main()
 * @argv: as for main()
 *
 * Ends the program if it is not valid, and for --help and --version.
 */
void options_parse(struct config *cfg, int argc, char **argv)
{
	struct given given = { 0 };
	int c;

	*cfg = defaults;
	while ((c = getopt_long(argc, argv,
				"i:z:p:a:n:t:w:l:46s:d:S:D:F:R:b:f:x:L:T:qX::hV",
				options, NULL)) != -1)
		if (!packet_option(&cfg->pkt, c, optarg, &given) &&
		    !rate_option(cfg, c, optarg, &given) &&
		    !search_option(cfg, c, optarg, &given))
			other_option(cfg, c, optarg, &given);
	if (optind + 1 != argc)
		errx(2, "%s; see --help", optind == argc ?
		     "nothing to do: tx, rx, ping, pong, replay or search" :
		     "more than one of tx, rx, ping, pong, replay and search");
	cfg->mode = parse_mode(argv[optind]);
	if (!cfg->ifname)
		errx(2, "no interface given (-i); see --help");
	cfg->ifindex = if_nametoindex(cfg->ifname);
	if (!cfg->ifindex)
		err(1, "%s", cfg->ifname);
	finish_options(cfg, &given);
}
