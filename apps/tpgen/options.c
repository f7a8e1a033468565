// SPDX-License-Identifier: GPL-2.0
/* tpgen: the command line */
#include <getopt.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "vary.h"

static const char usage[] =
"usage: tpgen tx|rx|ping|pong|replay -i IF [option...]\n"
"\n"
"  tx      send packets\n"
"  rx      receive packets and count them\n"
"  ping    send numbered packets to a pong, and measure the round trip\n"
"  pong    send the packets of a ping back\n"
"  replay  send the packets of a capture file (-f)\n"
"\n"
"Where and how long:\n"
"  -i, --interface IF\n"
"  -z, --zerocopy QUEUES  zero-copy mode on these queue pairs: 0, 0-3, 0,2\n"
"  -p, --threads N        threads, with a socket each (default 1; with -z, one\n"
"                         per queue)\n"
"  -a, --cpus LIST        a CPU for each thread\n"
"  -n, --count N          packets\n"
"  -t, --time SECONDS\n"
"  -w, --wait-link SEC    wait so long for the link (default 2)\n"
"      --ring N           slots of a ring, a power of two from 256 (default\n"
"                         4096, 1024 for ping and pong)\n"
"      --promisc          promiscuous mode\n"
"      --spin             never sleep\n"
"\n"
"Packets (tx, ping):\n"
"  -l, --length SIZE      with MAC header and without CRC: N, N-M or imix\n"
"                         (default 60)\n"
"  -4, -6                 IPv4 (default) or IPv6\n"
"  -s, --src ADDR[-ADDR][:PORT[-PORT]]\n"
"  -d, --dst ADDR[-ADDR][:PORT[-PORT]]\n"
"                         with ports, IPv6: [ADDR[-ADDR]]:PORT\n"
"      --sport PORT[-PORT], --dport PORT[-PORT]\n"
"  -S, --src-mac MAC[-MAC]\n"
"  -D, --dst-mac MAC[-MAC]\n"
"      --vlan ID[-ID]     VLAN tag; --priority N in it\n"
"      --proto udp|tcp|icmp\n"
"      --ttl N, --tos N\n"
"      --random FIELDS    of length, src, dst, sport, dport, src-mac, dst-mac,\n"
"                         vlan: random instead of in turn\n"
"  -F, --frames N         each packet takes N frames\n"
"      --seq              number and stamp the packets, for rx --seq\n"
"      --stream N         number of the first thread's stream (default 0)\n"
"\n"
"Rate (tx, ping, replay):\n"
"  -R, --rate RATE        10k, 1.5Mpps, 500Mbps (of the frames), 1Gbpsl1 (on the\n"
"                         wire), 10% (of the link), max (default)\n"
"  -b, --burst N          tx, ping: packets are due in bursts of N\n"
"      --poisson          tx, ping: random gaps, exponentially distributed\n"
"      --launch fq|etf    tx: the qdisc sends each packet at its launch time\n"
"      --ahead US         post packets so long before that (default 2000)\n"
"      --qdisc            send through the qdisc (default: bypass it)\n"
"\n"
"Receiving (rx):\n"
"      --seq              find lost, reordered and duplicate packets of tx --seq,\n"
"                         and the latency\n"
"      --stamps program|software|hardware\n"
"                         clock of the latency (default program)\n"
"\n"
"Replay:\n"
"  -f, --file FILE        pcap or pcapng file, may be compressed; -: stdin\n"
"  -x, --speed FACTOR     of the file's own timing (default 1); -R replaces it\n"
"  -L, --loops N          send it N times; 0: no limit (default 1)\n"
"\n"
"Output:\n"
"  -T, --interval SEC     of the rates printed (default 1)\n"
"  -q, --quiet            print no rates\n"
"  -X, --dump[=N]         print packets in hexadecimal (default: 1)\n"
"      --json FILE        write the summary as JSON; -: to stdout\n"
"      --plot FILE        write a plot of rate and latency as SVG\n"
"  -h, --help; -V, --version\n"
"\n"
"Ctrl-C ends a run with its summary. See tpgen(1).\n";

enum {
	OPT_RING = 256,
	OPT_PROMISC,
	OPT_SPIN,
	OPT_SPORT,
	OPT_DPORT,
	OPT_VLAN,
	OPT_PRIORITY,
	OPT_PROTO,
	OPT_TTL,
	OPT_TOS,
	OPT_RANDOM,
	OPT_SEQ,
	OPT_STREAM,
	OPT_POISSON,
	OPT_LAUNCH,
	OPT_AHEAD,
	OPT_QDISC,
	OPT_STAMPS,
	OPT_JSON,
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
	{ "priority", required_argument, NULL, OPT_PRIORITY },
	{ "proto", required_argument, NULL, OPT_PROTO },
	{ "ttl", required_argument, NULL, OPT_TTL },
	{ "tos", required_argument, NULL, OPT_TOS },
	{ "random", required_argument, NULL, OPT_RANDOM },
	{ "frames", required_argument, NULL, 'F' },
	{ "seq", no_argument, NULL, OPT_SEQ },
	{ "stream", required_argument, NULL, OPT_STREAM },
	{ "rate", required_argument, NULL, 'R' },
	{ "burst", required_argument, NULL, 'b' },
	{ "poisson", no_argument, NULL, OPT_POISSON },
	{ "launch", required_argument, NULL, OPT_LAUNCH },
	{ "ahead", required_argument, NULL, OPT_AHEAD },
	{ "qdisc", no_argument, NULL, OPT_QDISC },
	{ "stamps", required_argument, NULL, OPT_STAMPS },
	{ "file", required_argument, NULL, 'f' },
	{ "speed", required_argument, NULL, 'x' },
	{ "loops", required_argument, NULL, 'L' },
	{ "interval", required_argument, NULL, 'T' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "dump", optional_argument, NULL, 'X' },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "plot", required_argument, NULL, OPT_PLOT },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ }
};

/* Options that need a check when all of them are known */
struct given {
	const char *protocol, *random;
	bool smac, src, dst, ports, threads, ring, packets, rate_options;
	unsigned int cpus[MAX_THREADS], nr_cpus;
	int family;			/* of addresses; 0: none */
};

static enum mode parse_mode(const char *s)
{
	static const char *const names[] = { "tx", "rx", "ping", "pong",
					     "replay" };
	unsigned int i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(s, names[i]))
			return i;
	errx(2, "'%s' is not tx, rx, ping, pong or replay; see --help", s);
}

static unsigned int one_of(const char *what, const char *s,
			   const char *const *names)
{
	unsigned int i;

	for (i = 0; names[i]; i++)
		if (!strcmp(s, names[i]))
			return i;
	errx(2, "--%s: '%s' is not known; see --help", what, s);
}

static void set_length(struct packet_spec *pkt, const char *s)
{
	pkt->imix = !strcmp(s, "imix");
	if (pkt->imix)
		pkt->size.min = pkt->size.max = MIN_FRAME;
	else
		parse_range("length", s, 14, 65535, &pkt->size);
}

static void set_address(const char *what, char *s, struct address *a,
			struct range *port, struct given *given)
{
	struct range none = { 1, 0, false };
	int family;

	family = parse_ip(what, s, a, &none);
	if (none.min <= none.max) {
		*port = none;
		given->ports = true;
	}
	if (given->family && given->family != family)
		errx(2, "IPv4 and IPv6 addresses exclude each other");
	given->family = family;
}

/* An option of packets; returns false if it is another one. */
static bool packet_option(struct packet_spec *pkt, int c, char *arg,
			  struct given *given)
{
	switch (c) {
	case 'l':
		set_length(pkt, arg);
		break;
	case '4':
	case '6':
		c = c == '4' ? AF_INET : AF_INET6;
		if (given->family && given->family != c)
			errx(2, "IPv4 and IPv6 exclude each other");
		given->family = c;
		break;
	case 's':
		given->src = true;
		set_address("src", arg, &pkt->src, &pkt->sport, given);
		break;
	case 'd':
		given->dst = true;
		set_address("dst", arg, &pkt->dst, &pkt->dport, given);
		break;
	case OPT_SPORT:
		given->ports = true;
		parse_range("sport", arg, 0, 65535, &pkt->sport);
		break;
	case OPT_DPORT:
		given->ports = true;
		parse_range("dport", arg, 0, 65535, &pkt->dport);
		break;
	case 'S':
		given->smac = true;
		parse_mac("src-mac", arg, &pkt->smac);
		break;
	case 'D':
		parse_mac("dst-mac", arg, &pkt->dmac);
		break;
	case OPT_VLAN:
		pkt->tagged = true;
		parse_range("vlan", arg, 0, 4095, &pkt->vlan);
		break;
	case OPT_PRIORITY:
		pkt->priority = parse_number("priority", arg, 0, 7);
		break;
	case OPT_PROTO:
		given->protocol = arg;
		break;
	case OPT_TTL:
		pkt->ttl = parse_number("ttl", arg, 0, 255);
		break;
	case OPT_TOS:
		pkt->tos = parse_number("tos", arg, 0, 255);
		break;
	case OPT_RANDOM:
		given->random = arg;
		break;
	case 'F':
		pkt->frames = parse_number("frames", arg, 1, TX_FRAMES);
		break;
	case OPT_STREAM:
		pkt->stream = parse_number("stream", arg, 0, 65535);
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
	case OPT_SEQ:
		cfg->pkt.seq = true;
		break;
	case OPT_STAMPS:
		cfg->stamps = one_of("stamps", arg, stamps);
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

/* --- checks and defaults ------------------------------------------------- */

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

static void set_protocol(struct packet_spec *pkt, const struct given *given)
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

static void finish_packet(struct config *cfg, const struct given *given)
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
	set_protocol(pkt, given);
	set_random(pkt, given->random);
	pkt->run = clock_ns(CLOCK_REALTIME) / 1000 ^ getpid();
	min = vary_min_size(pkt);
	if (pkt->size.min < min && !pkt->imix && pkt->size.min == MIN_FRAME &&
	    pkt->size.max == MIN_FRAME)
		pkt->size.min = pkt->size.max = min;	/* the default */
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
}

/* Options that this mode does not have must not be given. */
static void check_mode(const struct config *cfg, const struct given *given)
{
	const bool tx = cfg->mode == MODE_TX, rx = cfg->mode == MODE_RX;
	const bool ping = cfg->mode == MODE_PING;
	const bool replay = cfg->mode == MODE_REPLAY;

	if (given->packets && !tx && !ping)
		errx(2, "options of packets are for tx and ping");
	if (given->rate_options && !tx && !ping && !replay)
		errx(2, "options of the rate are for tx, ping and replay");
	if (cfg->pkt.seq && !tx && !rx)
		errx(2, "--seq is for tx and rx");
	if (cfg->stamps != STAMPS_PROGRAM && (!rx || !cfg->pkt.seq))
		errx(2, "--stamps is for rx --seq");
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
	if (cfg->zerocopy && cfg->stamps == STAMPS_SOFTWARE)
		errx(2, "in zero-copy mode, the stack does not stamp packets");
	if (given->nr_cpus && given->nr_cpus < cfg->nr_threads)
		errx(2, "cpus: %u for %u threads", given->nr_cpus,
		     cfg->nr_threads);
	if (cfg->count && cfg->count < cfg->nr_threads)
		errx(2, "count: less than a packet for each thread");
	if ((cfg->poisson || cfg->launch || cfg->burst) &&
	    cfg->rate.unit == RATE_MAX && cfg->mode == MODE_TX &&
	    (cfg->poisson || cfg->launch))
		errx(2, "--poisson and --launch need a rate (-R)");
	if (cfg->burst > cfg->ring)
		errx(2, "burst: more packets than a ring holds");
	check_mode(cfg, given);
}

static void set_cpus(struct config *cfg, const struct given *given)
{
	unsigned int i;

	for (i = 0; i < cfg->nr_threads; i++)
		cfg->cpu[i] = given->nr_cpus ? (int)given->cpus[i] : -1;
}

static const struct config defaults = {
	.nr_threads = 1,
	.interval = 1,
	.wait_link = 2,
	.ring = 4096,
	.ahead = 2000000,
	.loops = 1,
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
		    !rate_option(cfg, c, optarg, &given))
			other_option(cfg, c, optarg, &given);
	if (optind + 1 != argc)
		errx(2, "%s; see --help", optind == argc ?
		     "nothing to do: tx, rx, ping, pong or replay" :
		     "more than one of tx, rx, ping, pong and replay");
	cfg->mode = parse_mode(argv[optind]);
	if (!cfg->ifname)
		errx(2, "no interface given (-i); see --help");
	cfg->ifindex = if_nametoindex(cfg->ifname);
	if (!cfg->ifindex)
		err(1, "%s", cfg->ifname);
	if ((cfg->mode == MODE_PING || cfg->mode == MODE_PONG) && !given.ring)
		cfg->ring = 1024;
	if (!cfg->launch)
		cfg->ahead = 0;
	check(cfg, &given);
	set_cpus(cfg, &given);
	if (cfg->mode == MODE_PING)
		cfg->pkt.seq = true;
	if (cfg->mode == MODE_TX || cfg->mode == MODE_PING) {
		finish_packet(cfg, &given);
		check_frames(&cfg->pkt);
	}
}
