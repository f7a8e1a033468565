// SPDX-License-Identifier: GPL-2.0
/* tpbench: measure AF_PACKET V2 to V4, and AF_XDP (files: see tpbench.h) */
#include <getopt.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <tpacket4_device.h>

#include "tpbench.h"

static const char usage[] =
"usage: tpbench -i IF[,PEER] -v VERSION [-r|-t|-l|-e N] [options]\n"
"\n"
"Benchmarks (one of them):\n"
"  -r, --rxdrop         receive and drop\n"
"  -t, --txpush         send as fast as possible (also --txonly)\n"
"  -l, --l2fwd          receive, swap MAC addresses, send back\n"
"  -e, --veth N         l2fwd between two processes, one on IF and one on\n"
"                       PEER, with N packets in flight\n"
"\n"
"Where:\n"
"  -i, --interface IF[,PEER]\n"
"                       interface, and the other end of its veth pair; with -r\n"
"                       and -l, a generator runs on PEER, if given\n"
"  -v, --rings V        2, 3 or 4: version of AF_PACKET (default 4); xdp: AF_XDP\n"
"                       in copy mode with native XDP; xdp-skb: with generic XDP\n"
"  -z, --zerocopy QUEUE 4, xdp: zero-copy mode on this queue pair, with -e at\n"
"                       both ends\n"
"  -Q, --queues N       4 with -z, xdp: a socket for each of N queues, starting\n"
"                       with that of -z or the first one (default 1)\n"
"  -Q, --queues A-B     the same for queue A to B, or, with \"all\", for all\n"
"                       queues; 4 is then always in zero-copy mode\n"
"      --shared         V4: both ends of -e share a packet buffer; with -z,\n"
"                       frames are swapped instead of copied\n"
"      --meta           V4: rings with metadata\n"
"      --stamps         V4: the same, and a timestamp for each packet\n"
"      --fanout TYPE    V4 with -z and -r: the queue feeds a fanout group of two\n"
"                       sockets, which share a packet buffer with it; lb, cpu,\n"
"                       rnd, qm, hash, cbpf or xdp\n"
"  -c, --cpu A[,B]      CPUs of the two processes (default: the first two)\n"
"      --lockstep       run everything in one process, in turns, to measure the\n"
"                       cost of a packet on one CPU; needs PEER\n"
"\n"
"What:\n"
"  -s, --size N         packet size, with the MAC header (default 64)\n"
"  -b, --batch N        packets per batch (default 64)\n"
"  -R, --ring N         size of a ring in packets, a power of two (default 4096)\n"
"      --block N        V3: block size (default: the fastest one measured)\n"
"      --poll           sleep in poll() instead of spinning\n"
"  -B, --busy-poll US   set SO_PREFER_BUSY_POLL, and SO_BUSY_POLL to US; with -z\n"
"                       or xdp, the processes poll the queues themselves\n"
"      --qdisc          send through the qdisc (default: bypass it)\n"
"      --promisc        promiscuous mode\n"
"      --verify         number and check all packets\n"
"      --split          then measure the kernel's share of the time\n"
"\n"
"How long:\n"
"  -d, --duration S     seconds (default 10, or no limit with -n)\n"
"  -n, --count N        number of packets\n"
"  -w, --warmup N       packets before the measurement (default: 4 rings)\n"
"  -q, --quiet          do not print rates during the run\n"
"  -h, --help           print this text\n"
"      --version        print the version of the library that it uses\n"
"\n"
"Prints rates to stderr each second, and a JSON object to stdout at the end.\n"
"SIGINT ends a run early, with its results.\n";

enum {
	OPT_SHARED = 256,
	OPT_META,
	OPT_STAMPS,
	OPT_FANOUT,
	OPT_LOCKSTEP,
	OPT_BLOCK,
	OPT_POLL,
	OPT_QDISC,
	OPT_PROMISC,
	OPT_VERIFY,
	OPT_SPLIT,
	OPT_VERSION,
};

static const struct option options[] = {
	{ "rxdrop", no_argument, NULL, 'r' },
	{ "txpush", no_argument, NULL, 't' },
	{ "txonly", no_argument, NULL, 't' },
	{ "l2fwd", no_argument, NULL, 'l' },
	{ "veth", required_argument, NULL, 'e' },
	{ "interface", required_argument, NULL, 'i' },
	{ "rings", required_argument, NULL, 'v' },
	{ "zerocopy", required_argument, NULL, 'z' },
	{ "queues", required_argument, NULL, 'Q' },
	{ "shared", no_argument, NULL, OPT_SHARED },
	{ "meta", no_argument, NULL, OPT_META },
	{ "stamps", no_argument, NULL, OPT_STAMPS },
	{ "fanout", required_argument, NULL, OPT_FANOUT },
	{ "cpu", required_argument, NULL, 'c' },
	{ "lockstep", no_argument, NULL, OPT_LOCKSTEP },
	{ "size", required_argument, NULL, 's' },
	{ "batch", required_argument, NULL, 'b' },
	{ "ring", required_argument, NULL, 'R' },
	{ "block", required_argument, NULL, OPT_BLOCK },
	{ "poll", no_argument, NULL, OPT_POLL },
	{ "busy-poll", required_argument, NULL, 'B' },
	{ "qdisc", no_argument, NULL, OPT_QDISC },
	{ "promisc", no_argument, NULL, OPT_PROMISC },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "split", no_argument, NULL, OPT_SPLIT },
	{ "duration", required_argument, NULL, 'd' },
	{ "count", required_argument, NULL, 'n' },
	{ "warmup", required_argument, NULL, 'w' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ }
};

static __u64 parse_int(const char *what, const char *s, __u64 min, __u64 max)
{
	char *tail;
	__u64 n;

	errno = 0;
	n = strtoull(s, &tail, 0);
	if (errno || tail == s || *tail || *s == '-' || n < min || n > max)
		errx(2, "%s: '%s' is not a number from %llu to %llu", what, s,
		     min, max);
	return n;
}

static void set_mode(struct config *cfg, enum mode mode)
{
	if (cfg->mode != MODE_NONE)
		errx(2, "-r, -t, -l and -e exclude each other");
	cfg->mode = mode;
}

/* Split "a,b"; returns b, or NULL if there is none. */
static char *split(char *s)
{
	char *comma = strchr(s, ',');

	if (!comma)
		return NULL;
	*comma = 0;
	return comma + 1;
}

/* The first two CPUs of the affinity mask, or the only one twice. */
static void default_cpus(struct config *cfg)
{
	cpu_set_t set;
	int i, n = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	for (i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			cfg->cpu[n++] = i;
	if (n == 1)
		cfg->cpu[1] = cfg->cpu[0];
}

static double parse_seconds(const char *s)
{
	char *tail;
	double d = strtod(s, &tail);

	if (tail == s || *tail || !(d > 0))
		errx(2, "duration: '%s' is not a number of seconds", s);
	return d;
}

static void parse_version(struct config *cfg, const char *s)
{
	cfg->skb_mode = !strcmp(s, "xdp-skb");
	if (cfg->skb_mode || !strcmp(s, "xdp"))
		cfg->version = VERSION_XDP;
	else
		cfg->version = parse_int("version", s, 2, 4);
}

static int parse_fanout(const char *s)
{
	static const char * const names[] = {
		[PACKET_FANOUT_HASH] = "hash",
		[PACKET_FANOUT_LB] = "lb",
		[PACKET_FANOUT_CPU] = "cpu",
		[PACKET_FANOUT_RND] = "rnd",
		[PACKET_FANOUT_QM] = "qm",
		[PACKET_FANOUT_CBPF] = "cbpf",
		[PACKET_FANOUT_XDP] = "xdp",
	};
	unsigned int i;

	for (i = 0; i <= PACKET_FANOUT_XDP; i++)
		if (names[i] && !strcmp(s, names[i]))
			return i;
	errx(2, "fanout: no such type as '%s'", s);
}

/* N, A-B or all */
static void parse_queues(struct config *cfg, char *s)
{
	char *last = strchr(s, '-');

	cfg->queues = 0;
	cfg->range = last || !strcmp(s, "all");
	if (!cfg->range)
		cfg->queues = parse_int("queues", s, 1, MAX_QUEUES);
	if (!last)
		return;
	*last++ = 0;
	cfg->first_queue = parse_int("queues", s, 0, 1 << 16);
	cfg->queues = parse_int("queues", last, cfg->first_queue,
				cfg->first_queue + MAX_QUEUES - 1) -
		      cfg->first_queue + 1;
}

/* Find out which queues are meant. */
static void set_queues(struct config *cfg)
{
	struct tp4_device device = { 0 };
	int e;

	if (!cfg->queues) {
		e = tp4_device(if_nametoindex(cfg->ifname[0]), &device);
		cfg->queues = device.queues;
		if (e || !cfg->queues || cfg->queues > MAX_QUEUES)
			errx(1, "%s: number of queues: %s", cfg->ifname[0],
			     e ? strerror(-e) :
			     cfg->queues ? "too many" : "unknown");
	}
	if (!cfg->range && cfg->zerocopy)
		cfg->first_queue = cfg->zerocopy - 1;
	else if (cfg->range && (cfg->zerocopy || cfg->version == 4))
		cfg->zerocopy = cfg->first_queue + 1;
}

/* Say that zero-copy mode takes the link down, if it does. */
static void warn_of_reset(const struct config *cfg)
{
	int i;

	if (!cfg->zerocopy || cfg->version != 4)
		return;
	for (i = 0; i < 2 && cfg->ifname[i]; i++) {
		if (tp4_resets_link(if_nametoindex(cfg->ifname[i])) <= 0)
			continue;
		warnx("%s: the link goes down for some seconds, as the driver resets the port",
		      cfg->ifname[i]);
	}
}

/* Check for conflicting options, and set dependent ones. */
static void check(struct config *cfg)
{
	const bool xdp = cfg->version == VERSION_XDP;

	if (!cfg->ifname[0])
		errx(2, "no interface given (-i), see --help");
	if (cfg->mode == MODE_NONE)
		errx(2, "no benchmark given (-r, -t, -l or -e), see --help");
	set_queues(cfg);
	if (cfg->meta && cfg->version != 4)
		errx(2, "--meta and --stamps need -v 4");
	if (cfg->shared && cfg->version != 4)
		errx(2, "--shared needs -v 4");
	if (cfg->zerocopy && cfg->version != 4 && !xdp)
		errx(2, "--zerocopy needs -v 4 or -v xdp");
	if (cfg->zerocopy && cfg->skb_mode)
		errx(2, "--zerocopy needs the driver's XDP: -v xdp");
	if (cfg->queues > 1 && !cfg->zerocopy && !xdp)
		errx(2, "--queues needs --zerocopy or -v xdp");
	if (cfg->queues > 1 && cfg->shared)
		errx(2, "--shared supports one queue only");
	if (cfg->shared && !cfg->in_flight)
		errx(2, "--shared needs --veth");
	if (cfg->fanout >= 0 &&
	    (cfg->version != 4 || !cfg->zerocopy || cfg->queues > 1 ||
	     cfg->mode != MODE_RXDROP))
		errx(2, "--fanout needs --rxdrop with -v 4 and -z, on one queue");
	if (cfg->fanout >= 0)
		cfg->shared = true;
	if ((cfg->zerocopy || xdp) && cfg->size > FRAME_SIZE - TP4_ZC_HEADROOM)
		errx(2, "--zerocopy and -v xdp support packets up to %d bytes",
		     FRAME_SIZE - TP4_ZC_HEADROOM);
	if ((cfg->in_flight || cfg->lockstep) && cfg->mode != MODE_TXPUSH &&
	    !cfg->ifname[1])
		errx(2, "this needs both ends of a veth pair: -i IF,PEER");
	if (cfg->in_flight > cfg->ring)
		errx(2, "more packets in flight than a ring holds");
	/*
	 * A zero-copy sender is not throttled: all packets in flight can be
	 * received while the same number of frames is on the Tx ring.
	 */
	if (cfg->zerocopy && cfg->in_flight > cfg->ring / 2)
		errx(2, "--zerocopy: at most half a ring in flight");
	if (cfg->mode == MODE_TXPUSH) {
		/* A sender alone always runs in lockstep. */
		cfg->lockstep = false;
		cfg->ifname[1] = NULL;
	}
}

static void parse(struct config *cfg, int argc, char **argv)
{
	bool duration = false, warmup = false;
	char *second;
	int c;

	while ((c = getopt_long(argc, argv, "rtle:i:v:z:Q:c:s:b:R:B:d:n:w:qh",
				options, NULL)) != -1) {
		switch (c) {
		case 'r':
			set_mode(cfg, MODE_RXDROP);
			break;
		case 't':
			set_mode(cfg, MODE_TXPUSH);
			break;
		case 'l':
			set_mode(cfg, MODE_L2FWD);
			break;
		case 'e':
			set_mode(cfg, MODE_L2FWD);
			cfg->in_flight = parse_int("veth", optarg, 1, 1 << 16);
			break;
		case 'i':
			cfg->ifname[0] = optarg;
			cfg->ifname[1] = split(optarg);
			break;
		case 'v':
			parse_version(cfg, optarg);
			break;
		case 'z':
			cfg->zerocopy = 1 + parse_int("zerocopy", optarg, 0,
						      (1 << 16) - 1);
			break;
		case 'Q':
			parse_queues(cfg, optarg);
			break;
		case OPT_SHARED:
			cfg->shared = true;
			break;
		case OPT_STAMPS:
			cfg->meta = true;
			cfg->stamps = true;
			break;
		case OPT_META:
			cfg->meta = true;
			break;
		case OPT_FANOUT:
			cfg->fanout = parse_fanout(optarg);
			break;
		case 'c':
			second = split(optarg);
			cfg->cpu[0] = parse_int("cpu", optarg, 0, 1 << 16);
			cfg->cpu[1] = cfg->cpu[0];
			if (second)
				cfg->cpu[1] = parse_int("cpu", second, 0,
							1 << 16);
			break;
		case OPT_LOCKSTEP:
			cfg->lockstep = true;
			break;
		case 's':
			/* the data of a V3 Tx frame */
			cfg->size = parse_int("size", optarg, MIN_SIZE,
					      FRAME_SIZE - 128);
			break;
		case 'b':
			cfg->batch = parse_int("batch", optarg, 1, MAX_BATCH);
			break;
		case 'R':
			cfg->ring = parse_int("ring", optarg, 256, 1 << 16);
			if (cfg->ring & (cfg->ring - 1))
				errx(2, "ring: not a power of two");
			break;
		case OPT_BLOCK:
			cfg->block = parse_int("block", optarg, 4096, 1 << 22);
			break;
		case OPT_POLL:
			cfg->poll = true;
			break;
		case 'B':
			cfg->busy_poll = parse_int("busy-poll", optarg, 1,
						   1000000);
			break;
		case OPT_QDISC:
			cfg->bypass = false;
			break;
		case OPT_PROMISC:
			cfg->promisc = true;
			break;
		case OPT_VERIFY:
			cfg->verify = true;
			break;
		case OPT_SPLIT:
			cfg->split = true;
			break;
		case 'd':
			cfg->duration = parse_seconds(optarg);
			duration = true;
			break;
		case 'n':
			cfg->count = parse_int("count", optarg, 1,
					       UINT64_MAX / 2);
			break;
		case 'w':
			cfg->warmup = parse_int("warmup", optarg, 0,
						UINT64_MAX / 2);
			warmup = true;
			break;
		case 'q':
			cfg->quiet = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		case OPT_VERSION:
			printf("tpbench with tpacket4.h %d.%d\n",
			       TP4_VERSION_MAJOR, TP4_VERSION_MINOR);
			exit(0);
		default:
			errx(2, "see --help");
		}
	}
	if (optind != argc)
		errx(2, "unexpected argument '%s', see --help", argv[optind]);
	check(cfg);
	warn_of_reset(cfg);
	if (cfg->count && !duration)
		cfg->duration = 0;
	if (!warmup)
		cfg->warmup = 4 * cfg->ring * cfg->queues;
}

int main(int argc, char **argv)
{
	struct config cfg = {
		.version = 4,
		.cpu = { -1, -1 },
		.size = 64,
		.batch = 64,
		.ring = 4096,
		.queues = 1,
		.fanout = -1,
		.duration = 10,
		.bypass = true,
	};
	struct result res;

	default_cpus(&cfg);
	parse(&cfg, argc, argv);
	run(&cfg, &res);
	report_json(&cfg, &res);
	if (!res.n.packets)
		warnx("no packets%s", has_carrier(cfg.ifname[0]) ? "" :
		      ": the interface has no carrier");
	return res.verify.corrupt || res.verify.reordered || !res.n.packets;
}
