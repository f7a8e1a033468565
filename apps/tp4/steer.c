// SPDX-License-Identifier: GPL-2.0
/* tp4 steer: rules that steer flows to a queue, as ethtool -N makes */

#include <arpa/inet.h>
#include <ctype.h>
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

#include "steer.h"
#include "tp4.h"

/**
 * ask_device - call ethtool's ioctl
 * @dev: name of the device
 * @data: command of ethtool, and what belongs to it
 *
 * Return: 0, or -errno.
 */
int ask_device(const char *dev, void *data)
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

/* Are rules switched on, as far as the device says? */
static bool has_rules(const char *dev)
{
	struct ethtool_value flags = { .cmd = ETHTOOL_GFLAGS };

	return !ask_device(dev, &flags) && flags.data & ETH_FLAG_NTUPLE;
}

static int fail(const char *dev, const char *what, int err)
{
	const char *hint = "";

	if (err == -EOPNOTSUPP && !has_rules(dev))
		hint = ": the driver has no rules, or they are off (ethtool -K DEVICE ntuple on)";
	else if (err == -EOPNOTSUPP || err == -EINVAL)
		hint = ": the driver refuses this flow or queue; see also the kernel log";
	fprintf(stderr, "tp4: %s: %s: %s%s\n", dev, what, strerror(-err), hint);
	return 1;
}

/**
 * find_rules - ask a device for the places of its rules
 * @dev: name of the device
 * @all: set to the answer, or NULL; the caller frees it
 *
 * Return: 0, or -errno.
 */
int find_rules(const char *dev, struct ethtool_rxnfc **all)
{
	struct ethtool_rxnfc count = { .cmd = ETHTOOL_GRXCLSRLCNT };
	int err;

	*all = NULL;
	err = ask_device(dev, &count);
	if (err)
		return err;
	*all = calloc(1, sizeof(**all) + count.rule_cnt * sizeof(__u32));
	if (!*all)
		return -ENOMEM;
	(*all)->cmd = ETHTOOL_GRXCLSRLALL;
	(*all)->rule_cnt = count.rule_cnt;
	return ask_device(dev, *all);
}

/* Find a free place for a rule. Return it, or -errno. */
static long long find_place(const char *dev)
{
	struct ethtool_rxnfc count = { .cmd = ETHTOOL_GRXCLSRLCNT };
	struct ethtool_rxnfc *all;
	long long place;
	__u32 i;
	int err;

	err = ask_device(dev, &count);
	if (err)
		return err;
	if (count.data & RX_CLS_LOC_SPECIAL)
		return RX_CLS_LOC_ANY;
	err = find_rules(dev, &all);
	if (err) {
		free(all);
		return err;
	}
	/* The last ones, as ethtool does */
	for (place = (long long)all->data - 1; place >= 0; place--) {
		for (i = 0; i < all->rule_cnt; i++)
			if (all->rule_locs[i] == (__u32)place)
				break;
		if (i == all->rule_cnt)
			break;
	}
	free(all);
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

/* An address, with the length of its prefix if it is a network. */
static bool read_address(const char *word, bool is_ip6, void *value, void *mask)
{
	unsigned long bits = is_ip6 ? 128 : 32, i;
	char address[INET6_ADDRSTRLEN];
	const char *slash = strchrnul(word, '/');
	__u8 *to = mask, *from = value;

	if ((size_t)(slash - word) >= sizeof(address) || *to)
		return false;
	memcpy(address, word, slash - word);
	address[slash - word] = 0;
	if (inet_pton(is_ip6 ? AF_INET6 : AF_INET, address, value) != 1 ||
	    (*slash && (!read_number(slash + 1, bits, &bits) || !bits)))
		return false;
	for (i = 0; i < bits; i++)
		to[i / 8] |= 0x80 >> i % 8;
	for (i = 0; i < (is_ip6 ? 16 : 4); i++)
		from[i] &= to[i];
	return true;
}

static bool read_mac(const char *word, __u8 *value, __u8 *mask)
{
	unsigned int byte, i;

	if (*mask || strlen(word) != 3 * ETH_ALEN - 1)
		return false;
	for (i = 0; i < ETH_ALEN; i++, word += 3) {
		if (!isxdigit(word[0]) || !isxdigit(word[1]) ||
		    word[2] != (i < ETH_ALEN - 1 ? ':' : 0) ||
		    sscanf(word, "%2x", &byte) != 1)
			return false;
		value[i] = byte;
	}
	memset(mask, 0xff, ETH_ALEN);
	return true;
}

static bool read_vlan(const char *word, struct ethtool_rx_flow_spec *fs)
{
	unsigned long id;

	if (fs->m_ext.vlan_tci || !read_number(word, 4095, &id))
		return false;
	fs->h_ext.vlan_tci = htons(id);
	fs->m_ext.vlan_tci = htons(0xfff);
	fs->flow_type |= FLOW_EXT;
	return true;
}

const struct flow_type flow_types[] = {
	{ "tcp", TCP_V4_FLOW, TCP_V6_FLOW, true },
	{ "udp", UDP_V4_FLOW, UDP_V6_FLOW, true },
	{ "sctp", SCTP_V4_FLOW, SCTP_V6_FLOW, true },
	{ "ip", IPV4_USER_FLOW, IPV6_USER_FLOW, false },
	{ "ether", ETHER_FLOW, ETHER_FLOW, false },
	{ }
};

/* Addresses and ports are at the same places in the specs of all protocols. */
static bool read_field(const char *what, const char *word,
		       const struct flow_type *type, bool is_ip6,
		       struct ethtool_rx_flow_spec *fs)
{
	struct ethtool_tcpip4_spec *v4 = &fs->h_u.tcp_ip4_spec;
	struct ethtool_tcpip4_spec *m4 = &fs->m_u.tcp_ip4_spec;
	struct ethtool_tcpip6_spec *v6 = &fs->h_u.tcp_ip6_spec;
	struct ethtool_tcpip6_spec *m6 = &fs->m_u.tcp_ip6_spec;
	const bool ether = type->ip4 == ETHER_FLOW;

	if (!strcmp(what, "vlan"))
		return read_vlan(word, fs);
	if (!strcmp(what, "mac") && !ether) {
		fs->flow_type |= FLOW_MAC_EXT;
		return read_mac(word, fs->h_ext.h_dest, fs->m_ext.h_dest);
	}
	if (!strcmp(what, "src") && ether)
		return read_mac(word, fs->h_u.ether_spec.h_source,
				fs->m_u.ether_spec.h_source);
	if (!strcmp(what, "dst") && ether)
		return read_mac(word, fs->h_u.ether_spec.h_dest,
				fs->m_u.ether_spec.h_dest);
	if (!strcmp(what, "src"))
		return read_address(word, is_ip6,
				    is_ip6 ? (void *)v6->ip6src : &v4->ip4src,
				    is_ip6 ? (void *)m6->ip6src : &m4->ip4src);
	if (!strcmp(what, "dst"))
		return read_address(word, is_ip6,
				    is_ip6 ? (void *)v6->ip6dst : &v4->ip4dst,
				    is_ip6 ? (void *)m6->ip6dst : &m4->ip4dst);
	if (!strcmp(what, "sport") && type->has_ports)
		return read_port(word, is_ip6 ? &v6->psrc : &v4->psrc,
				 is_ip6 ? &m6->psrc : &m4->psrc);
	if (!strcmp(what, "dport") && type->has_ports)
		return read_port(word, is_ip6 ? &v6->pdst : &v4->pdst,
				 is_ip6 ? &m6->pdst : &m4->pdst);
	return false;
}

/* Parse a type and pairs of a field and its value. */
static bool read_flow(int nr, char **word, struct ethtool_rx_flow_spec *fs)
{
	const struct flow_type *type;
	bool is_ip6 = false;
	int i;

	for (type = flow_types; type->name; type++)
		if (!strcmp(word[0], type->name))
			break;
	if (!type->name || nr < 3 || !(nr & 1))
		return false;
	for (i = 1; i < nr; i += 2)
		if ((!strcmp(word[i], "src") || !strcmp(word[i], "dst")) &&
		    strchr(word[i + 1], ':'))
			is_ip6 = true;
	fs->flow_type = is_ip6 ? type->ip6 : type->ip4;
	for (i = 1; i < nr; i += 2)
		if (!read_field(word[i], word[i + 1], type, is_ip6, fs))
			return false;
	if (fs->flow_type == IPV4_USER_FLOW) {
		fs->h_u.usr_ip4_spec.ip_ver = ETH_RX_NFC_IP4;
		fs->m_u.usr_ip4_spec.ip_ver = 0;
	}
	return true;
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
	err = ask_device(dev, &nfc);
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
	const bool drop = !strcmp(word[nr - 1], "drop");
	unsigned long queue = 0;
	sigset_t signals;
	char number[16];
	long long place;
	int err;

	if ((!drop && !read_number(word[nr - 1], 65535, &queue)) ||
	    !read_flow(nr - 1, word, &nfc.fs)) {
		fprintf(stderr, "tp4: not a flow and a queue: tp4 --help\n");
		return 2;
	}
	nfc.fs.ring_cookie = drop ? RX_CLS_FLOW_DISC : queue;
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
	err = ask_device(dev, &nfc);
	if (err)
		return fail(dev, "adding the rule", err);
	snprintf(number, sizeof(number), "%u", nfc.fs.location);
	printf("rule %s: ", number);
	if (drop)
		printf("dropped by %s", dev);
	else
		printf("to queue %lu of %s", queue, dev);
	printf("%s\n", keep ? "" : ", until Ctrl-C");
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
		{ "list", no_argument, NULL, 'l' },
		{ }
	};
	bool delete = false, keep = false, list = false;
	const char *dev;
	int c, err;

	while ((c = getopt_long(argc, argv, "+dkl", options, NULL)) != -1) {
		if (c == 'd')
			delete = true;
		else if (c == 'k')
			keep = true;
		else if (c == 'l')
			list = true;
		else
			return 2;
	}
	argc -= optind;
	argv += optind;
	if (list ? argc != 1 : delete ? argc != 2 : argc < 5) {
		fprintf(stderr, "tp4: %s: tp4 --help\n", list ? "a device" :
			delete ? "a device and the number of a rule" :
			"a device, a flow and a queue");
		return 2;
	}
	dev = argv[0];
	if (!if_nametoindex(dev)) {
		fprintf(stderr, "tp4: %s: %s\n", dev, strerror(errno));
		return 1;
	}
	if (list) {
		err = list_rules(dev);
		return err ? fail(dev, "listing the rules", err) : 0;
	}
	return delete ? remove_rule(dev, argv[1]) :
			add_rule(dev, argc - 1, argv + 1, keep);
}
