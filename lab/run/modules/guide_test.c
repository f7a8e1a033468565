// SPDX-License-Identifier: GPL-2.0
/* Metadata between the two ports of guide.c, which are in zero-copy mode and have the
 * driver guide's code for it. The other tests are those of zc_port.
 */
#include <linux/net_tstamp.h>

#include "meta.h"
#include "xdp.h"

/* As in guide.c */
#define HASH		0x12345678
#define HWTSTAMP	1234567890123

FIXTURE(meta) {
	struct zc a, b;
};

FIXTURE_SETUP(meta)
{
	struct zc_cfg cfg = {
		.ifname = if_a, .n = 1, .headroom = 64, .meta = true,
	};

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, zc_open(&self->a, &cfg));
	cfg.ifname = if_b;
	ASSERT_EQ(0, zc_open(&self->b, &cfg));
	ASSERT_EQ(0, pv4_setint(self->b.s.fd, PACKET_TIMESTAMP,
				SOF_TIMESTAMPING_RAW_HARDWARE));
}

FIXTURE_TEARDOWN(meta)
{
	zc_close(&self->a);
	zc_close(&self->b);
}

TEST_F_TIMEOUT(meta, received, 120)
{
	static const unsigned int lens[] = { 60, 1500, 1800, 5000, 9000 };
	const __u32 want = TP4_META_RX_HASH | TP4_META_RX_CSUM_VALID |
			   TP4_META_RX_TS_HARDWARE;
	const struct tpacket4_meta *got = &self->b.s.got;
	static char buf[BUF_SIZE];
	unsigned int i, len;
	int n;

	for (i = 0; i < 50; i++) {
		len = lens[i % ARRAY_SIZE(lens)];
		ASSERT_EQ(0, zc_send_seq(&self->a, len, i));
		n = zc_recv(&self->b, buf, sizeof(buf), WAIT_MS);
		ASSERT_TRUE(packet_ok(buf, n, len, i)) {
			TH_LOG("packet %u of %u bytes: received %d", i, len, n);
		}
		EXPECT_EQ(want, got->flags & want);
		EXPECT_EQ(HASH, got->hash);
		EXPECT_EQ(HWTSTAMP, got->tstamp);
		EXPECT_EQ(len, got->wire_len);
	}
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(&self->a, NULL));
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
}

/* The packets before and after those that the device cannot send arrive. */
TEST_F_TIMEOUT(meta, refused, 120)
{
	struct tpacket4_meta m[] = {
		gso_meta(IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV4, 500),
		csum_meta(IPPROTO_TCP),
	};
	static char pkt[BUF_SIZE], buf[BUF_SIZE];
	unsigned int i;

	fill_ip4(pkt, IPPROTO_TCP, 1000, 1);
	for (i = 0; i < ARRAY_SIZE(m); i++) {
		ASSERT_EQ(0, zc_put_seq(&self->a, 100, 2 * i));
		self->a.s.put = &m[i];
		ASSERT_EQ(0, zc_put(&self->a, pkt, L4 + 20 + 1000, 1900, 64));
		self->a.s.put = NULL;
		ASSERT_EQ(0, zc_send_seq(&self->a, 100, 2 * i + 1));
		ASSERT_TRUE(packet_ok(buf, zc_recv(&self->b, buf, sizeof(buf),
						   WAIT_MS), 100, 2 * i));
		ASSERT_TRUE(packet_ok(buf, zc_recv(&self->b, buf, sizeof(buf),
						   WAIT_MS), 100, 2 * i + 1));
	}
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	EXPECT_EQ(ARRAY_SIZE(m), self->a.s.errors[EOPNOTSUPP]);
	EXPECT_EQ(-EAGAIN, zc_recv(&self->b, buf, sizeof(buf), QUIET_MS));
	EXPECT_TRUE(zc_books_balance(&self->a, NULL));
}

/* As ptp4l does, behind a queue whose packets are copied to the stack by the ring, and by an
 * XDP program
 */
TEST(hardware_time_reaches_udp)
{
	const int want = SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_port = htons(320),
		.sin_addr.s_addr = htonl(INADDR_ANY),
	};
	int udp, fd, k, prog, len = L4 + 8 + 44;
	static char pkt[BUF_SIZE];
	struct ifreq ifr = {};
	struct zc z;

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, run_ip("addr replace 10.73.0.2/24 dev %s\n", if_b));
	ASSERT_EQ(0, dev_ioctl(if_b, SIOCGIFHWADDR, &ifr));
	fd = plain_socket(_metadata, if_a, 0);
	udp = socket(AF_INET, SOCK_DGRAM, 0);
	ASSERT_EQ(0, bind(udp, (struct sockaddr *)&addr, sizeof(addr)));
	ASSERT_EQ(0, setsockopt(udp, SOL_SOCKET, SO_TIMESTAMPING, &want, sizeof(want)));
	prog = xdp_const(XDP_PASS_TO_KERNEL, BPF_F_XDP_HAS_FRAGS);
	ASSERT_LE(0, prog);

	/* with and without metadata on the ring */
	for (k = 0; k < 4; k++) {
		struct zc_cfg cfg = {
			.ifname = if_b, .n = 1, .headroom = 64,
			.meta = k & 1, .to_stack = k & 2,
		};
		char buf[200], control[200];
		struct iovec iov = { .iov_base = buf, .iov_len = sizeof(buf) };
		struct msghdr msg = {
			.msg_iov = &iov, .msg_iovlen = 1,
			.msg_control = control, .msg_controllen = sizeof(control),
		};
		struct pollfd p = { .fd = udp, .events = POLLIN };
		struct cmsghdr *c;
		__s64 ns = 0;

		ASSERT_EQ(0, zc_open(&z, &cfg));
		if (!cfg.to_stack)
			ASSERT_EQ(0, xdp_attach_native(if_b, prog));
		fill_ip4(pkt, IPPROTO_UDP, 44, k);
		memcpy(pkt, ifr.ifr_hwaddr.sa_data, ETH_ALEN);
		put16(pkt + L3 + 10, 0);
		memcpy(pkt + L3 + 12, (char []){ 10, 73, 0, 1, 10, 73, 0, 2 }, 8);
		put16(pkt + L3 + 10, ~sum_up(pkt + L3, 20, 0));
		put16(pkt + L4 + 2, 320);
		put16(pkt + L4 + 6, 0);		/* no checksum */
		ASSERT_EQ(len, send(fd, pkt, len, 0));
		ASSERT_EQ(1, poll(&p, 1, WAIT_MS));
		ASSERT_EQ(44, recvmsg(udp, &msg, 0));
		for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
			struct timespec ts[3];

			if (c->cmsg_level != SOL_SOCKET ||
			    c->cmsg_type != SCM_TIMESTAMPING)
				continue;
			memcpy(ts, CMSG_DATA(c), sizeof(ts));
			ns = ts[2].tv_sec * 1000000000LL + ts[2].tv_nsec;
		}
		EXPECT_EQ(HWTSTAMP, ns);
		xdp_attach_native(if_b, -1);
		zc_close(&z);
	}
	close(prog);
	close(udp);
	close(fd);
	run_ip("addr flush dev %s\n", if_b);
}

TEST_HARNESS_MAIN
