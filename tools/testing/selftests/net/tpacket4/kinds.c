// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: areas of huge pages, and devices without a link-layer header, or
 * with long addresses
 */
#include "huge.h"

#include <linux/if_tun.h>
#include <net/if_arp.h>

static const unsigned int sizes[] = {
	60, 128, 1514, 1537, 2047, 2048, 2049, 4096, 6145, 8192, MAX_PKT,
};

/* ---- huge pages ---- */

FIXTURE(huge) {
	struct pv4 tx, rx;		/* on if_a and if_b, a huge page each */
	long free;			/* before them */
	char *buf;
};

FIXTURE_SETUP(huge)
{
	size_t size = need_huge_pages(2);
	struct pv4_cfg cfg = {
		.ifname = if_a, .tx_nr = pv4_min_descs(),
		.frames = size / 2048,
	};

	self->tx.fd = -1;
	self->rx.fd = -1;
	if (!size)
		SKIP(return, "no huge pages");
	self->free = read_meminfo("HugePages_Free");
	pv4_net_setup(_metadata);
	cfg.area = map_huge_page(size);
	ASSERT_TRUE(cfg.area != MAP_FAILED);
	ASSERT_EQ(0, pv4_open(&self->tx, &cfg));
	cfg.ifname = if_b;
	cfg.rx_nr = cfg.tx_nr;
	cfg.tx_nr = 0;
	cfg.area = map_huge_page(size);
	ASSERT_TRUE(cfg.area != MAP_FAILED);
	ASSERT_EQ(0, pv4_open(&self->rx, &cfg));
	self->buf = malloc(1 << 17);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(huge)
{
	if (self->tx.fd >= 0)
		pv4_close(&self->tx);
	if (self->rx.fd >= 0)
		pv4_close(&self->rx);
	free(self->buf);
	huge_pages_restore();
}

/* Uses all frames of a huge page; then none of it is pinned. */
TEST_F(huge, contents)
{
	unsigned int n, len, rounds = 3 * self->tx.frames / 2;
	int got;

	for (n = 0; n < rounds; n++) {
		len = sizes[n % ARRAY_SIZE(sizes)];
		fill_packet(self->buf, len, n);
		/* least recently used frames first */
		if (self->tx.nr_spare > 8) {
			__u64 *spare = self->tx.spare;
			__u64 last = spare[self->tx.nr_spare - 1];

			memmove(spare + 1, spare, (self->tx.nr_spare - 1) *
				sizeof(*spare));
			spare[0] = last;
		}
		ASSERT_EQ(0, pv4_put(&self->tx, self->buf, len, 2048, 0));
		ASSERT_EQ((int)len, pv4_kick(&self->tx, 0));
		got = pv4_recv(&self->rx, self->buf, 1 << 17, WAIT_MS);
		ASSERT_TRUE(packet_ok(self->buf, got, len, n)) {
			TH_LOG("packet %u of %u bytes: %d", n, len, got);
		}
		ASSERT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
	}
	EXPECT_EQ(self->tx.frames, self->tx.nr_spare);
	pv4_close(&self->tx);
	pv4_close(&self->rx);
	EXPECT_TRUE(huge_pages_back(self->free));
}

/* Packets in flight keep the page pinned, and release it. */
TEST_F(huge, closed_in_flight)
{
	unsigned int i, n = 30;
	int got;

	ASSERT_EQ(0, hold_queue(if_a));
	for (i = 0; i < n; i++) {
		fill_packet(self->buf, MAX_PKT, i);
		ASSERT_EQ(0, pv4_put(&self->tx, self->buf, MAX_PKT, 2048, 0));
	}
	ASSERT_EQ((int)n * MAX_PKT, pv4_kick(&self->tx, MSG_DONTWAIT));
	pv4_close(&self->tx);
	EXPECT_GT(self->free, read_meminfo("HugePages_Free") + 1);
	ASSERT_EQ(0, release_queue(if_a));
	for (i = 0; i < n; i++) {
		got = pv4_recv(&self->rx, self->buf, 1 << 17, WAIT_MS);
		ASSERT_TRUE(packet_ok(self->buf, got, MAX_PKT, i));
	}
	pv4_close(&self->rx);
	EXPECT_TRUE(huge_pages_back(self->free));
}

/* ---- devices ---- */

/* An IP packet, as on a tun device; there is no reply. */
static void fill_ip(char *ip, unsigned int len, uint32_t seq)
{
	char pkt[MAX_PKT + ETH_HLEN];

	fill_udp(pkt, len + ETH_HLEN, 9, seq);
	memcpy(ip, pkt + ETH_HLEN, len);
}

TEST(no_link_layer_header)
{
	static const unsigned int lens[] = {
		28, 60, 1500, 1537, 2047, 2048, 2049, 4097, MTU,
	};
	struct ifreq ifr = {
		.ifr_name = "v4tun", .ifr_flags = IFF_TUN | IFF_NO_PI,
	};
	struct pv4_cfg cfg = {
		.ifname = "v4tun", .rx_nr = pv4_min_descs(),
		.tx_nr = pv4_min_descs(), .headroom = 64,
	};
	char want[MTU], buf[MTU + 100];
	struct pollfd p = { .events = POLLIN };
	unsigned int i, len;
	struct pv4 s;
	int tun, got;

	pv4_net_setup(_metadata);
	tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	if (tun < 0)
		SKIP(return, "no /dev/net/tun: %s", strerror(errno));
	p.fd = tun;
	ASSERT_EQ(0, ioctl(tun, TUNSETIFF, &ifr));
	ASSERT_EQ(0, set_mtu("v4tun", MTU));
	ASSERT_EQ(0, set_up("v4tun", true));
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	ASSERT_EQ(0, pv4_setint(s.fd, PACKET_IGNORE_OUTGOING, 1));
	for (i = 0; i < 300; i++) {
		len = lens[i % ARRAY_SIZE(lens)];
		fill_ip(want, len, i);
		/* the data starts with the IP header */
		ASSERT_EQ((ssize_t)len, write(tun, want, len));
		got = pv4_recv(&s, buf, sizeof(buf), WAIT_MS);
		ASSERT_EQ((int)len, got);
		ASSERT_EQ(0, memcmp(want, buf, len));

		ASSERT_EQ(0, pv4_put(&s, want, len, 1500, 100));
		ASSERT_EQ((int)len, pv4_kick(&s, 0));
		ASSERT_EQ(1, poll(&p, 1, WAIT_MS));
		ASSERT_EQ((ssize_t)len, read(tun, buf, sizeof(buf)));
		ASSERT_EQ(0, memcmp(want, buf, len));
		ASSERT_TRUE(pv4_reap_all(&s, WAIT_MS));
	}
	EXPECT_EQ(0U, s.errors[EINVAL] + s.errors[EMSGSIZE]);
	pv4_close(&s);
	close(tun);
}

/* An address that is longer than in struct sockaddr_ll must be given whole. */
TEST(long_link_layer_addresses)
{
	enum { ADDR_LEN = 16 };		/* of a tunnel over IPv6 */
	struct ifreq ifr = {
		.ifr_name = "v4tun", .ifr_flags = IFF_TUN | IFF_NO_PI,
	};
	struct pv4_cfg cfg = {
		.ifname = "v4tun", .tx_nr = pv4_min_descs(),
		.type = SOCK_DGRAM,
	};
	union {
		struct sockaddr_ll ll;
		char room[offsetof(struct sockaddr_ll, sll_addr) + ADDR_LEN];
	} to = { .ll.sll_family = AF_PACKET };
	struct sockaddr *addr = (struct sockaddr *)&to;
	char want[100], buf[200];
	struct pv4 s;
	int tun;

	pv4_net_setup(_metadata);
	tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	if (tun < 0)
		SKIP(return, "no /dev/net/tun: %s", strerror(errno));
	ASSERT_EQ(0, ioctl(tun, TUNSETIFF, &ifr));
	ASSERT_EQ(0, ioctl(tun, TUNSETLINK, ARPHRD_TUNNEL6));
	ASSERT_EQ(0, set_up("v4tun", true));
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	to.ll.sll_protocol = htons(ETH_P_IP);
	to.ll.sll_ifindex = if_nametoindex("v4tun");
	fill_ip(want, sizeof(want), 1);
	ASSERT_EQ(0, pv4_put(&s, want, sizeof(want), 1500, 100));
	EXPECT_EQ(-1, sendto(s.fd, NULL, 0, 0, addr, sizeof(to.ll)));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, sendto(s.fd, NULL, 0, 0, addr, sizeof(to.room) - 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ((ssize_t)sizeof(want),
		  sendto(s.fd, NULL, 0, 0, addr, sizeof(to.room)));
	ASSERT_EQ((ssize_t)sizeof(want), read(tun, buf, sizeof(buf)));
	EXPECT_EQ(0, memcmp(want, buf, sizeof(want)));
	EXPECT_TRUE(pv4_reap_all(&s, WAIT_MS));
	pv4_close(&s);
	close(tun);
}

TEST_HARNESS_MAIN
