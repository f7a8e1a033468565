// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: devices without a link-layer header, and with link-layer
 * addresses longer than those of struct sockaddr_ll
 */
#include "common.h"

#include <linux/if_tun.h>
#include <net/if_arp.h>

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

/* An address longer than that of struct sockaddr_ll must be complete. */
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
