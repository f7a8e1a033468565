// SPDX-License-Identifier: GPL-2.0
/* tp4 steer: rules that steer flows to a queue, as ethtool -N makes */

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>

#include "tp4.h"

static int ask(const char *dev, void *data)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;
	struct ifreq ifr = { .ifr_data = data };

	if (fd < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", dev);
	if (ioctl(fd, SIOCETHTOOL, &ifr))
		err = -errno;
	close(fd);
	return err;
}

static int fail(const char *dev, const char *what, int err)
{
	const char *hint = "";

	if (err == -EOPNOTSUPP)
		hint = ": the driver has no rules, or they are off (ethtool -K DEVICE ntuple on)";
	fprintf(stderr, "tp4: %s: %s: %s%s\n", dev, what, strerror(-err), hint);
	return 1;
}

/* Find a free place for a rule. Return it, or -errno. */
static long long find_place(const char *dev)
{
	struct ethtool_rxnfc count = { .cmd = ETHTOOL_GRXCLSRLCNT };
	struct ethtool_rxnfc *all;
	long long place;
	__u32 i;
	int err;

	err = ask(dev, &count);
	if (err)
		return err;
	if (count.data & RX_CLS_LOC_SPECIAL)
		return RX_CLS_LOC_ANY;
	all = calloc(1, sizeof(*all) + count.rule_cnt * sizeof(__u32));
	if (!all)
		return -ENOMEM;
	all->cmd = ETHTOOL_GRXCLSRLALL;
	all->rule_cnt = count.rule_cnt;
	err = ask(dev, all);
	/* The last ones, as ethtool does */
	for (place = (long long)all->data - 1; !err && place >= 0; place--) {
		for (i = 0; i < all->rule_cnt; i++)
			if (all->rule_locs[i] == (__u32)place)
				break;
		if (i == all->rule_cnt)
			break;
	}
	free(all);
	if (err)
		return err;
	return place < 0 ? -ENOSPC : place;
}

/* Unlike strtoul() alone: digits only, and nothing is cut off. */
static bool read_number(const char *word, unsigned long max,
			unsigned long *number)
{
	if (!*word || word[strspn(word, "0123456789")])
		return false;
	errno = 0;
	*number = strtoul(word, NULL, 10);
	return !errno && *number <= max;
}

/* False also if there was one before: each field has one value. */
static bool read_port(const char *word, __be16 *value, __be16 *mask)
{
	unsigned long port;

	if (*mask || !read_number(word, 65535, &port))
		return false;
	*value = htons(port);
	*mask = 0xffff;
	return true;
}

static bool read_address(const char *word, bool is_ip6, void *value, void *mask)
{
	if (*(__u8 *)mask ||
	    inet_pton(is_ip6 ? AF_INET6 : AF_INET, word, value) != 1)
		return false;
	memset(mask, 0xff, is_ip6 ? 16 : 4);
	return true;
}

/* Parse [tcp|udp|sctp] and pairs of src, dst, sport, dport and a value. */
static bool read_flow(int nr, char **word, struct ethtool_rx_flow_spec *fs)
{
	static const struct {
		const char *name;
		__u32 ip4, ip6;
	} types[] = {
		{ "tcp", TCP_V4_FLOW, TCP_V6_FLOW },
		{ "udp", UDP_V4_FLOW, UDP_V6_FLOW },
		{ "sctp", SCTP_V4_FLOW, SCTP_V6_FLOW },
	};
	struct ethtool_tcpip4_spec *v4 = &fs->h_u.tcp_ip4_spec;
	struct ethtool_tcpip4_spec *m4 = &fs->m_u.tcp_ip4_spec;
	struct ethtool_tcpip6_spec *v6 = &fs->h_u.tcp_ip6_spec;
	struct ethtool_tcpip6_spec *m6 = &fs->m_u.tcp_ip6_spec;
	bool is_ip6 = false, ok = true;
	size_t type;
	int i;

	for (type = 0; type < 3 && strcmp(word[0], types[type].name); )
		type++;
	if (type == 3 || nr < 3 || !(nr & 1))
		return false;
	for (i = 1; i < nr; i += 2)
		if (strchr(word[i + 1], ':'))
			is_ip6 = true;
	fs->flow_type = is_ip6 ? types[type].ip6 : types[type].ip4;
	for (i = 1; ok && i < nr; i += 2) {
		const char *what = word[i], *value = word[i + 1];

		if (!strcmp(what, "src"))
			ok = read_address(value, is_ip6,
					  is_ip6 ? (void *)v6->ip6src : &v4->ip4src,
					  is_ip6 ? (void *)m6->ip6src : &m4->ip4src);
		else if (!strcmp(what, "dst"))
			ok = read_address(value, is_ip6,
					  is_ip6 ? (void *)v6->ip6dst : &v4->ip4dst,
					  is_ip6 ? (void *)m6->ip6dst : &m4->ip4dst);
		else if (!strcmp(what, "sport"))
			ok = read_port(value, is_ip6 ? &v6->psrc : &v4->psrc,
				       is_ip6 ? &m6->psrc : &m4->psrc);
		else if (!strcmp(what, "dport"))
			ok = read_port(value, is_ip6 ? &v6->pdst : &v4->pdst,
				       is_ip6 ? &m6->pdst : &m4->pdst);
		else
			ok = false;
	}
	return ok;
}

static int remove_rule(const char *dev, const char *word)
{
	struct ethtool_rxnfc nfc = { .cmd = ETHTOOL_SRXCLSRLDEL };
	unsigned long rule;
	int err;

	if (!read_number(word, RX_CLS_LOC_SPECIAL - 1ul, &rule)) {
		fprintf(stderr, "tp4: %s is not the number of a rule\n", word);
		return 2;
	}
	nfc.fs.location = rule;
	err = ask(dev, &nfc);
	return err ? fail(dev, "removing the rule", err) : 0;
}

/* Wait for a signal that ends the program. */
static void wait_for_end(const sigset_t *signals)
{
	int sig;

	sigwait(signals, &sig);
}

static int add_rule(const char *dev, int nr, char **word, bool keep)
{
	struct ethtool_rxnfc nfc = { .cmd = ETHTOOL_SRXCLSRLINS };
	unsigned long queue;
	sigset_t signals;
	char number[16];
	long long place;
	int err;

	if (!read_number(word[nr - 1], 65535, &queue) ||
	    !read_flow(nr - 1, word, &nfc.fs)) {
		fprintf(stderr, "tp4: not a flow and a queue: tp4 --help\n");
		return 2;
	}
	nfc.fs.ring_cookie = queue;
	place = find_place(dev);
	if (place < 0)
		return fail(dev, "finding room for a rule", place);
	nfc.fs.location = place;

	/* From here on, the rule must not outlive this program by accident. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	if (!keep) {
		sigprocmask(SIG_BLOCK, &signals, NULL);
		signal(SIGPIPE, SIG_IGN);
	}
	err = ask(dev, &nfc);
	if (err)
		return fail(dev, "adding the rule", err);
	snprintf(number, sizeof(number), "%u", nfc.fs.location);
	printf("rule %s: to queue %lu of %s%s\n", number, queue, dev,
	       keep ? "" : ", until Ctrl-C");
	fflush(stdout);
	if (keep)
		return 0;
	wait_for_end(&signals);
	return remove_rule(dev, number);
}

/**
 * steer_main - tp4 steer
 * @argc: number of arguments, from "steer" on
 * @argv: the arguments
 *
 * Return: the exit status.
 */
int steer_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "delete", no_argument, NULL, 'd' },
		{ "keep", no_argument, NULL, 'k' },
		{ }
	};
	bool delete = false, keep = false;
	const char *dev;
	int c;

	while ((c = getopt_long(argc, argv, "+dk", options, NULL)) != -1) {
		if (c == 'd')
			delete = true;
		else if (c == 'k')
			keep = true;
		else
			return 2;
	}
	argc -= optind;
	argv += optind;
	if (delete ? argc != 2 : argc < 5) {
		fprintf(stderr, "tp4: %s: tp4 --help\n", delete ?
			"a device and the number of a rule" :
			"a device, a flow and a queue");
		return 2;
	}
	dev = argv[0];
	if (!if_nametoindex(dev)) {
		fprintf(stderr, "tp4: %s: %s\n", dev, strerror(errno));
		return 1;
	}
	return delete ? remove_rule(dev, argv[1]) :
			add_rule(dev, argc - 1, argv + 1, keep);
}
