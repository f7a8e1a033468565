// SPDX-License-Identifier: GPL-2.0
/* tpgen: headers of the packets to send */
#include <netinet/in.h>

#include "vary.h"

#define TCP_ACK		0x10

static unsigned int l4_len(const struct packet_spec *pkt)
{
	return pkt->protocol == IPPROTO_TCP ? 20 : 8;
}

/**
 * vary_min_size - get the size of the headers
 * @pkt: packets to send
 *
 * Return: bytes, with the signature of a packet that is numbered.
 */
unsigned int vary_min_size(const struct packet_spec *pkt)
{
	return ETH_HLEN + (pkt->tagged ? 4 : 0) + (pkt->stacked ? 4 : 0) +
	       (pkt->family == AF_INET ? 20 : 40) + l4_len(pkt) +
	       (pkt->seq ? sizeof(struct signature) : 0);
}

/**
 * vary_max_size - get the size of the largest packet
 * @pkt: packets to send
 *
 * Return: bytes.
 */
unsigned int vary_max_size(const struct packet_spec *pkt)
{
	return pkt->size.max;
}

/**
 * vary_mean_size - get the mean size of the packets
 * @pkt: packets to send
 *
 * Return: bytes.
 */
double vary_mean_size(const struct packet_spec *pkt)
{
	double sum = 0;
	unsigned int i;

	if (!pkt->nr_sizes)
		return (pkt->size.min + (double)pkt->size.max) / 2;
	for (i = 0; i < pkt->nr_sizes; i++)
		sum += pkt->sizes[i];
	return sum / pkt->nr_sizes;
}

static void add_field(struct vary *v, const struct range *r, __u16 offset,
		      struct field f)
{
	f.offset = offset;
	f.value = r->min;
	f.min = r->min;
	f.max = r->max;
	if (r->min == r->max)
		return;
	if (r->random)
		v->random[v->nr_random++] = f;
	else
		v->turn[v->nr_turn++] = f;
}

/* Sum of len bytes, an even number, at p */
static __u32 sum_bytes(const __u8 *p, unsigned int len)
{
	__u32 sum = 0;
	unsigned int i;

	for (i = 0; i < len; i += 2)
		sum += p[i] << 8 | p[i + 1];
	return sum;
}

static void build_ethernet(struct vary *v, const struct packet_spec *pkt)
{
	__u8 *p = v->head;

	memcpy(p, pkt->dmac.bytes, ETH_ALEN);
	memcpy(p + ETH_ALEN, pkt->smac.bytes, ETH_ALEN);
	p += 2 * ETH_ALEN;
	if (pkt->stacked) {
		put16(p, ETH_P_8021AD);
		put16(p + 2, pkt->priority << 13 | pkt->outer.min);
		p += 4;
	}
	if (pkt->tagged) {
		put16(p, ETH_P_8021Q);
		put16(p + 2, pkt->priority << 13 | pkt->vlan.min);
		p += 4;
	}
	put16(p, pkt->family == AF_INET ? ETH_P_IP : ETH_P_IPV6);
	v->l3 = p + 2 - v->head;
}

static void build_ipv4(struct vary *v, const struct packet_spec *pkt)
{
	__u8 *p = v->head + v->l3;

	p[0] = 0x45;
	p[1] = pkt->tos;
	put16(p + 2, v->size - v->l3);
	p[8] = pkt->ttl;
	p[9] = pkt->protocol;
	memcpy(p + 12, pkt->src.bytes, 4);
	memcpy(p + 16, pkt->dst.bytes, 4);
	v->ip_csum = v->l3 + 10;
	v->ip_sum = fold(sum_bytes(p, 20));
	v->l4 = v->l3 + 20;
	if (pkt->protocol != IPPROTO_ICMP)
		v->l4_sum = sum_bytes(p + 12, 8) + pkt->protocol +
			    v->size - v->l4;
}

static void build_ipv6(struct vary *v, const struct packet_spec *pkt)
{
	__u8 *p = v->head + v->l3;

	put32(p, 6u << 28 | pkt->tos << 20);
	put16(p + 4, v->size - v->l3 - 40);
	p[6] = pkt->protocol;
	p[7] = pkt->ttl;
	memcpy(p + 8, pkt->src.bytes, 16);
	memcpy(p + 24, pkt->dst.bytes, 16);
	v->l4 = v->l3 + 40;
	v->l4_sum = sum_bytes(p + 8, 32) + pkt->protocol + v->size - v->l4;
}

static void build_l4(struct vary *v, const struct packet_spec *pkt)
{
	__u8 *p = v->head + v->l4;

	v->payload = v->l4 + l4_len(pkt);
	switch (pkt->protocol) {
	case IPPROTO_UDP:
		v->udp = true;
		put16(p + 4, v->size - v->l4);
		v->l4_csum = v->l4 + 6;
		break;
	case IPPROTO_TCP:
		p[12] = 5 << 4;
		p[13] = TCP_ACK;
		put16(p + 14, 0xffff);
		v->l4_csum = v->l4 + 16;
		break;
	case IPPROTO_ICMP:
		p[0] = 8;	/* echo request */
		v->l4_csum = v->l4 + 2;
		break;
	case IPPROTO_ICMPV6:
		p[0] = 128;
		v->l4_csum = v->l4 + 2;
		break;
	}
	if (pkt->protocol == IPPROTO_UDP || pkt->protocol == IPPROTO_TCP) {
		put16(p, pkt->sport.min);
		put16(p + 2, pkt->dport.min);
	}
	v->len = v->payload;
}

static void build_signature(struct vary *v, __u16 run, __u16 stream)
{
	v->has_seq = true;
	v->seq.max = UINT32_MAX;
	v->seq.offset = SIGNATURE(v, seq);
	v->seq.wide = true;
	v->seq.in_l4 = true;
	put16(v->head + SIGNATURE(v, magic), SIGNATURE_MAGIC);
	put16(v->head + SIGNATURE(v, run), run);
	put16(v->head + SIGNATURE(v, stream), stream);
	v->len += sizeof(struct signature);
}

static void add_fields(struct vary *v, const struct packet_spec *pkt)
{
	const bool v4 = pkt->family == AF_INET;
	const struct field ip = {
		.wide = true,
		.in_ip = v4,
		.in_l4 = pkt->protocol != IPPROTO_ICMP,
	};
	const struct field port = { .in_l4 = true }, mac = { .wide = true };
	const struct field tag = { .or_bits = pkt->priority << 13 };
	const unsigned int low = v4 ? 12 : 20;
	const unsigned int tci = 2 * ETH_ALEN + 2;

	add_field(v, &pkt->sport, v->l4, port);
	add_field(v, &pkt->src.low, v->l3 + low, ip);
	add_field(v, &pkt->dport, v->l4 + 2, port);
	add_field(v, &pkt->dst.low, v->l3 + low + (v4 ? 4 : 16), ip);
	add_field(v, &pkt->smac.low, ETH_ALEN + 2, mac);
	add_field(v, &pkt->dmac.low, 2, mac);
	if (pkt->tagged)
		add_field(v, &pkt->vlan, tci + (pkt->stacked ? 4 : 0), tag);
	if (pkt->stacked)
		add_field(v, &pkt->outer, tci, tag);
}

/* Find the words of the image that can change. */
static void set_window(struct vary *v)
{
	unsigned int first = HEAD_MAX, last = 0, end, i;

	for (i = 0; i < v->nr_turn + v->nr_random; i++) {
		const struct field *f = i < v->nr_turn ? &v->turn[i] :
					&v->random[i - v->nr_turn];

		if (f->offset < first)
			first = f->offset;
		end = f->offset + (f->wide ? 4 : 2);
		if (end > last)
			last = end;
		if (f->in_ip && v->ip_csum < first)
			first = v->ip_csum;
		if (f->in_l4 && v->l4_csum + 2u > last)
			last = v->l4_csum + 2;
		if (f->in_l4 && v->l4_csum < first)
			first = v->l4_csum;
	}
	if (v->has_sizes && v->l3 < first)
		first = v->l3;
	if (v->has_sizes && v->l4_csum + 2u > last)
		last = v->l4_csum + 2;
	if (v->has_seq && v->l4_csum < first)
		first = v->l4_csum;
	if (v->has_seq)
		last = v->len;
	if (first >= last)
		return;
	v->first = first / 8;
	v->words = (last + 7) / 8 - v->first;
}

/**
 * vary_init - build the headers of the first packet
 * @v: image
 * @cfg: command line
 * @nr: number of the thread, which has its own random numbers and stream
 */
void vary_init(struct vary *v, const struct config *cfg, unsigned int nr)
{
	const struct packet_spec *pkt = &cfg->pkt;

	memset(v, 0, sizeof(*v));
	v->seed = seed_of(cfg, nr, 0xd1b54a32d192ed03ull);
	v->size = pkt->nr_sizes ? pkt->sizes[0] : pkt->size.min;
	v->sizes = pkt->sizes;
	v->nr_sizes = pkt->nr_sizes;
	v->random_size = pkt->size;
	v->has_sizes = pkt->size.min != pkt->size.max;

	build_ethernet(v, pkt);
	if (pkt->family == AF_INET)
		build_ipv4(v, pkt);
	else
		build_ipv6(v, pkt);
	build_l4(v, pkt);
	if (pkt->seq)
		build_signature(v, pkt->run, pkt->stream + nr);
	v->l4_sum = fold(v->l4_sum +
			 sum_bytes(v->head + v->l4, v->len - v->l4));
	if (pkt->fill) {
		v->fill_sum = pkt->fill->sum;
		v->l4_sum = fold(v->l4_sum + v->fill_sum[v->size - v->len]);
		/* The last word that is copied may have the first ones of these. */
		memcpy(v->head + v->len, pkt->fill->bytes, sizeof(__u64));
	}
	add_fields(v, pkt);
	if (v->nr_random || v->has_sizes || (v->nr_turn && v->has_seq))
		v->alone = NULL;
	else if (v->nr_turn)
		v->alone = v->turn;
	else if (v->has_seq)
		v->alone = &v->seq;
	set_window(v);
	vary_csum(v, v->ip_csum);
}
