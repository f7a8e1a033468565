/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The test bed of the XDP selftests of AF_PACKET V4's zero-copy mode: senders
 * and receivers of each kind, and all targets of XDP verdicts
 */
#ifndef TPACKET4_ZC_XDP_FIXTURE_H
#define TPACKET4_ZC_XDP_FIXTURE_H

#include "xdp.h"

#define XDP_MTU		1500	/* small for programs without frags */

static const char if_c[] = "v4c", if_d[] = "v4d";	/* to redirect to */

/*
 * Packets go from if_a to if_b, where the program and the V4 socket @rx are.
 * The other sockets show what the rest of the system receives.
 */
FIXTURE(xdp) {
	struct zc a;			/* zero-copy on if_a, or no fd */
	int plain_a;			/* sends otherwise, and receives */
	struct zc rx;
	int plain_b, plain_d;
	int devmap;
	struct xdp_keyed x;
	char *buf;
};

FIXTURE_VARIANT(xdp) {
	bool zc_tx, zc_rx;
	bool to_stack;			/* with TP4_RING_TO_STACK */
	bool frags;			/* frags; MTU 9000 */
	bool generic;			/* generic XDP */
};

/* Attaches the program to if_b, or detaches it with -1; returns 0 or -errno. */
static inline int attach_b(const struct _fixture_variant_xdp *variant, int prog)
{
	return xdp_attach(if_b, prog, variant->generic ? XDP_FLAGS_SKB_MODE :
						XDP_FLAGS_DRV_MODE);
}

FIXTURE_SETUP(xdp)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	int i, pass, ifindex, flags = variant->frags ? BPF_F_XDP_HAS_FRAGS : 0;

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, add_pair(if_c, if_d, MTU));
	if (!variant->frags) {
		ASSERT_EQ(0, set_mtu(if_a, XDP_MTU));
		ASSERT_EQ(0, set_mtu(if_b, XDP_MTU));
	}
	self->a.s.fd = -1;
	if (variant->zc_tx)
		ASSERT_EQ(0, zc_open(&self->a, &cfg));
	cfg.ifname = if_b;
	cfg.n = variant->zc_rx;
	cfg.to_stack = variant->to_stack;
	ASSERT_EQ(0, zc_open(&self->rx, &cfg));
	self->plain_a = plain_listener(_metadata, if_a);
	self->plain_b = plain_listener(_metadata, if_b);
	self->plain_d = plain_listener(_metadata, if_d);
	self->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!self->buf);

	/* veth receives XDP frames if it has NAPI, which a program enables */
	pass = xdp_const(XDP_PASS, BPF_F_XDP_HAS_FRAGS);
	ASSERT_LE(0, pass);
	ASSERT_EQ(0, xdp_attach_native(if_d, pass));
	if (!variant->zc_tx)
		ASSERT_EQ(0, xdp_attach_native(if_a, pass));
	close(pass);
	self->devmap = bpf_map(BPF_MAP_TYPE_DEVMAP, 4, 1);
	ASSERT_LE(0, self->devmap);
	ifindex = if_nametoindex(if_c);
	ASSERT_EQ(0, bpf_set(self->devmap, 0, &ifindex));
	ASSERT_EQ(0, xdp_keyed_load(&self->x, self->devmap, flags));
	for (i = 0; i < NR_KEYS; i++)
		ASSERT_EQ(0, xdp_set_action(&self->x, i, XDP_PASS));
	ASSERT_EQ(0, attach_b(variant, self->x.prog));
}

FIXTURE_TEARDOWN(xdp)
{
	zc_close(&self->a);
	zc_close(&self->rx);
	close(self->plain_a);
	close(self->plain_b);
	close(self->plain_d);
	free(self->buf);
}

/* Sends from if_a, with the sender of this variant. */
static inline int send_it(struct _test_data_xdp *self, unsigned int len, uint32_t seq)
{
	if (self->a.s.fd >= 0)
		return zc_send_seq(&self->a, len, seq);
	fill_packet(self->buf, len, seq);
	return send(self->plain_a, self->buf, len, 0) == (int)len ? 0 : -errno;
}

/* Receives on if_a, from its ring if it has one. */
static inline int recv_a(struct _test_data_xdp *self, int ms)
{
	if (self->a.s.fd >= 0)
		return zc_recv(&self->a, self->buf, BUF_SIZE, ms);
	return plain_recv(self->plain_a, self->buf, BUF_SIZE, ms);
}

static inline int recv_ring(struct _test_data_xdp *self, int ms)
{
	return zc_recv(&self->rx, self->buf, BUF_SIZE, ms);
}

static inline void expect_books(struct __test_metadata *_metadata,
				struct _test_data_xdp *self)
{
	EXPECT_TRUE(zc_books_balance(&self->rx, NULL));
	EXPECT_EQ(self->rx.s.rx.size,
		  self->rx.s.rx.avail - self->rx.s.rx.used);
	if (self->a.s.fd < 0)
		return;
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(&self->a, NULL));
}

#endif
