// SPDX-License-Identifier: GPL-2.0
/* tp4 steer -l: the rules of a device, in the words that make them */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>

#include "steer.h"

/* Has each byte of a mask this value? */
static bool is_all(const void *mask, size_t len, __u8 byte)
{
	const __u8 *m = mask;

	while (len && *m == byte) {
		m++;
		len--;
	}
	return !len;
}

/* The functions below return false if the words of tp4 steer cannot say it. */

static bool print_address(FILE *f, const char *what, bool is_ip6, const void *value,
			  const void *mask)
{
	const unsigned int len = is_ip6 ? 16 : 4;
	char text[INET6_ADDRSTRLEN];
	const __u8 *m = mask;
	unsigned int bits = 0, i;

	while (bits < 8 * len && m[bits / 8] & 0x80 >> bits % 8)
		bits++;
	for (i = bits; i < 8 * len; i++)
		if (m[i / 8] & 0x80 >> i % 8)
			return false;
	if (!bits)
		return true;
	inet_ntop(is_ip6 ? AF_INET6 : AF_INET, value, text, sizeof(text));
	fprintf(f, " %s %s", what, text);
	if (bits < 8 * len)
		fprintf(f, "/%u", bits);
	return true;
}

static bool print_port(FILE *f, const char *what, __be16 value, __be16 mask)
{
	if (mask == 0xffff)
		fprintf(f, " %s %u", what, ntohs(value));
	return !mask || mask == 0xffff;
}

static bool print_mac(FILE *f, const char *what, const __u8 *value, const __u8 *mask)
{
	if (is_all(mask, ETH_ALEN, 0))
		return true;
	fprintf(f, " %s %02x:%02x:%02x:%02x:%02x:%02x", what, value[0], value[1],
		value[2], value[3], value[4], value[5]);
	return is_all(mask, ETH_ALEN, 0xff);
}

static bool print_ip4(FILE *f, const struct ethtool_rx_flow_spec *fs, bool has_ports)
{
	const struct ethtool_tcpip4_spec *v = &fs->h_u.tcp_ip4_spec;
	const struct ethtool_tcpip4_spec *m = &fs->m_u.tcp_ip4_spec;
	const struct ethtool_usrip4_spec *any = &fs->m_u.usr_ip4_spec;

	if (!print_address(f, "src", false, &v->ip4src, &m->ip4src) ||
	    !print_address(f, "dst", false, &v->ip4dst, &m->ip4dst))
		return false;
	if (!has_ports)
		return !any->l4_4_bytes && !any->tos && !any->proto;
	return print_port(f, "sport", v->psrc, m->psrc) &&
	       print_port(f, "dport", v->pdst, m->pdst) && !m->tos;
}

static bool print_ip6(FILE *f, const struct ethtool_rx_flow_spec *fs, bool has_ports)
{
	const struct ethtool_tcpip6_spec *v = &fs->h_u.tcp_ip6_spec;
	const struct ethtool_tcpip6_spec *m = &fs->m_u.tcp_ip6_spec;
	const struct ethtool_usrip6_spec *any = &fs->m_u.usr_ip6_spec;

	if (!print_address(f, "src", true, v->ip6src, m->ip6src) ||
	    !print_address(f, "dst", true, v->ip6dst, m->ip6dst))
		return false;
	if (!has_ports)
		return !any->l4_4_bytes && !any->tclass && !any->l4_proto;
	return print_port(f, "sport", v->psrc, m->psrc) &&
	       print_port(f, "dport", v->pdst, m->pdst) && !m->tclass;
}

static bool print_ether(FILE *f, const struct ethtool_rx_flow_spec *fs)
{
	const struct ethhdr *v = &fs->h_u.ether_spec, *m = &fs->m_u.ether_spec;

	return print_mac(f, "src", v->h_source, m->h_source) &&
	       print_mac(f, "dst", v->h_dest, m->h_dest) && !m->h_proto;
}

static bool print_ext(FILE *f, const struct ethtool_rx_flow_spec *fs)
{
	const struct ethtool_flow_ext *v = &fs->h_ext, *m = &fs->m_ext;
	const __u16 tci = ntohs(v->vlan_tci), mask = ntohs(m->vlan_tci);

	if (fs->flow_type & FLOW_MAC_EXT && !print_mac(f, "mac", v->h_dest, m->h_dest))
		return false;
	if (!(fs->flow_type & FLOW_EXT))
		return true;
	/* Drivers match the priority and the type, too, and say so. */
	if (mask == 0xfff || (mask == 0xffff && tci < 4096))
		fprintf(f, " vlan %u", tci & 0xfff);
	else if (mask)
		return false;
	return !m->data[0] && !m->data[1] &&
	       (!m->vlan_etype || v->vlan_etype == htons(ETH_P_8021Q));
}

static bool print_flow(FILE *f, const struct ethtool_rx_flow_spec *fs)
{
	const __u32 flow = fs->flow_type & ~(FLOW_EXT | FLOW_MAC_EXT);
	const struct flow_type *type;

	for (type = flow_types; type->name; type++)
		if (flow == type->ip4 || flow == type->ip6)
			break;
	if (!type->name)
		return false;
	fputs(type->name, f);
	if (flow == ETHER_FLOW)
		return print_ether(f, fs) && print_ext(f, fs);
	return (flow == type->ip4 ? print_ip4(f, fs, type->has_ports) :
				    print_ip6(f, fs, type->has_ports)) &&
	       print_ext(f, fs);
}

static bool print_target(FILE *f, __u64 cookie)
{
	if (cookie == RX_CLS_FLOW_DISC)
		fprintf(f, ": dropped");
	else
		fprintf(f, ": to queue %llu", (unsigned long long)cookie);
	/* Another function of the card, or waking it up */
	return cookie == RX_CLS_FLOW_DISC || cookie <= ETHTOOL_RX_FLOW_SPEC_RING;
}

static bool is_i40e(const char *dev)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };

	return !ask_device(dev, &info) && !strcmp(info.driver, "i40e");
}

static void set_mask(void *mask, const void *value, size_t len)
{
	memset(mask, is_all(value, len, 0) ? 0 : 0xff, len);
}

/*
 * i40e takes the masks of IPv4's and IPv6's fields for each other, so that one covers the
 * other. It matches fields as a whole only, and nothing but addresses and ports.
 */
static void set_masks(struct ethtool_rx_flow_spec *fs)
{
	const __u32 flow = fs->flow_type & ~(FLOW_EXT | FLOW_MAC_EXT);
	const struct ethtool_tcpip4_spec *v4 = &fs->h_u.tcp_ip4_spec;
	const struct ethtool_tcpip6_spec *v6 = &fs->h_u.tcp_ip6_spec;
	struct ethtool_tcpip4_spec *m4 = &fs->m_u.tcp_ip4_spec;
	struct ethtool_tcpip6_spec *m6 = &fs->m_u.tcp_ip6_spec;
	const struct flow_type *type;

	for (type = flow_types; type->name; type++)
		if (flow == type->ip4 || flow == type->ip6)
			break;
	if (!type->name || flow == ETHER_FLOW)
		return;
	memset(&fs->m_u, 0, sizeof(fs->m_u));
	if (flow == type->ip4) {
		set_mask(&m4->ip4src, &v4->ip4src, sizeof(v4->ip4src));
		set_mask(&m4->ip4dst, &v4->ip4dst, sizeof(v4->ip4dst));
		set_mask(&m4->psrc, &v4->psrc, sizeof(v4->psrc));
		set_mask(&m4->pdst, &v4->pdst, sizeof(v4->pdst));
	} else {
		set_mask(m6->ip6src, v6->ip6src, sizeof(v6->ip6src));
		set_mask(m6->ip6dst, v6->ip6dst, sizeof(v6->ip6dst));
		set_mask(&m6->psrc, &v6->psrc, sizeof(v6->psrc));
		set_mask(&m6->pdst, &v6->pdst, sizeof(v6->pdst));
	}
}

static int print_rule(const char *dev, __u32 place, bool i40e)
{
	struct ethtool_rxnfc nfc = {
		.cmd = ETHTOOL_GRXCLSRULE, .fs.location = place,
	};
	char *text = NULL;
	size_t len;
	bool known;
	FILE *f;
	int err;

	err = ask_device(dev, &nfc);
	if (err)
		return err;
	if (i40e)
		set_masks(&nfc.fs);
	f = open_memstream(&text, &len);
	if (!f)
		return -ENOMEM;
	known = print_flow(f, &nfc.fs) && print_target(f, nfc.fs.ring_cookie);
	fclose(f);
	if (known)
		printf("rule %u: %s\n", place, text);
	else
		printf("rule %u: of another kind: ethtool -n %s rule %u\n", place, dev,
		       place);
	free(text);
	return 0;
}

/**
 * list_rules - print the rules of a device
 * @dev: its name
 *
 * Return: 0, or -errno.
 */
int list_rules(const char *dev)
{
	const bool i40e = is_i40e(dev);
	struct ethtool_rxnfc *all;
	__u32 i;
	int err;

	err = find_rules(dev, &all);
	for (i = 0; !err && i < all->rule_cnt; i++) {
		err = print_rule(dev, all->rule_locs[i], i40e);
		/* It was deleted meanwhile. */
		if (err == -ENOENT)
			err = 0;
	}
	free(all);
	return err;
}
