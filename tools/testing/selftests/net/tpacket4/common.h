/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared helpers of the AF_PACKET V4 selftests: a private network namespace
 * with a veth pair, and packets whose contents can be checked. Helpers that
 * take _metadata end the test on failure.
 */
#ifndef TPACKET4_COMMON_H
#define TPACKET4_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <sys/ioctl.h>

#include "../../kselftest_harness.h"
#include "netlink.h"
#include "process.h"
#include "ring.h"

#define MTU		9000
#define MAX_PKT		(ETH_HLEN + MTU)
#define ETH_P_TEST	0x88b5		/* IEEE: local experimental */

static const char if_a[] = "v4a", if_b[] = "v4b";	/* the veth pair */

/* True if tests should send fewer packets: on request, or on a debug kernel,
 * which is slow and is recognized by kmemleak.
 */
static inline bool pv4_fast(void)
{
	const char *s = getenv("TPACKET4_FAST");

	if (s && *s)
		return *s != '0';
	return !access("/sys/kernel/debug/kmemleak", F_OK);
}

/* ---- the network ---- */

/* Runs ip(8) or tc(8) with these commands, one per line; returns 0 if all
 * succeeded.
 */
static inline int net_batch(const char *tool, const char *commands)
{
	char cmd[64];
	FILE *f;

	snprintf(cmd, sizeof(cmd), "%s -batch - >/dev/null", tool);
	f = popen(cmd, "w");
	if (!f)
		return -1;
	fputs(commands, f);
	return pclose(f);
}

static inline int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	n = n < 0 ? -errno : 0;
	close(fd);
	return n;
}

/* Runs the ioctl @cmd on the device @name, which is filled in; returns 0 or
 * -errno.
 */
static inline int dev_ioctl(const char *name, unsigned long cmd,
			    struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), err = 0;

	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, cmd, ifr))
		err = -errno;
	close(fd);
	return err;
}

static inline int set_up(const char *name, bool up)
{
	struct ifreq ifr = { .ifr_flags = up ? IFF_UP : 0 };

	return dev_ioctl(name, SIOCSIFFLAGS, &ifr);
}

/* Waits for the carrier, before which the stack drops packets. Returns 0 or
 * -errno.
 */
static inline int wait_for_carrier(const char *name)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (link_state(name) != OPER_UP) {
		if (now_ms() > end)
			return -ETIMEDOUT;
		usleep(1000);
	}
	return 0;
}

static inline int run_ip(const char *fmt, ...)
{
	char cmd[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	return net_batch("ip", cmd);
}

static inline int set_mtu(const char *name, int mtu)
{
	struct ifreq ifr = { .ifr_mtu = mtu };

	return dev_ioctl(name, SIOCSIFMTU, &ifr);
}

static inline int ethtool_ioctl(const char *name, void *data)
{
	struct ifreq ifr = { .ifr_data = data };

	return dev_ioctl(name, SIOCETHTOOL, &ifr);
}

/* Runs an ethtool command with a yes or no, such as ETHTOOL_SGRO. */
static inline int set_offload(const char *name, int cmd, bool on)
{
	struct ethtool_value v = { .cmd = cmd, .data = on };

	return ethtool_ioctl(name, &v);
}

static inline int set_channels(const char *name, unsigned int rx,
			       unsigned int tx)
{
	struct ethtool_channels ch = { .cmd = ETHTOOL_GCHANNELS };
	int err = ethtool_ioctl(name, &ch);

	if (err)
		return err;
	ch.cmd = ETHTOOL_SCHANNELS;
	if (rx <= ch.max_rx && tx <= ch.max_tx) {
		ch.rx_count = rx;
		ch.tx_count = tx;
	} else if (rx == tx && rx <= ch.max_combined) {
		ch.combined_count = rx;
	} else {
		return -ERANGE;
	}
	return ethtool_ioctl(name, &ch);
}

/* A veth pair with one queue pair each that carries packets; 0 or -errno. */
static inline int add_pair(const char *name, const char *peer, __u32 mtu)
{
	int err = add_veth(name, peer, mtu);

	err = err ? err : set_channels(name, 1, 1);
	err = err ? err : set_channels(peer, 1, 1);
	err = err ? err : set_up(name, true);
	err = err ? err : set_up(peer, true);
	err = err ? err : wait_for_carrier(name);
	return err ? err : wait_for_carrier(peer);
}

/* A new network namespace with a veth pair that carries only the packets of the
 * test. With TPACKET4_PORTS set, if_a and if_b already exist, are connected to
 * each other, and are not veth.
 */
static inline void pv4_net_setup(struct __test_metadata *_metadata)
{
	signal(SIGPIPE, SIG_IGN);
	if (getenv("TPACKET4_PORTS")) {
		ASSERT_EQ(0, wait_for_carrier(if_a));
		ASSERT_EQ(0, wait_for_carrier(if_b));
		return;
	}
	ASSERT_EQ(0, unshare(CLONE_NEWNET)) {
		TH_LOG("unshare: %s (needs root)", strerror(errno));
	}
	/* no router solicitations and multicast reports of IPv6 */
	write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	ASSERT_EQ(0, set_up("lo", true));
	ASSERT_EQ(0, add_pair(if_a, if_b, MTU));
}

static inline int poll_for(int fd, int events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, ms) < 0 ? -errno : p.revents;
}

static inline int socket_error(int fd)
{
	socklen_t len = sizeof(int);
	int err = -1;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) ? -errno : err;
}

/* An ordinary packet socket; with proto 0 it only sends. */
static inline int plain_socket(struct __test_metadata *_metadata,
			       const char *ifname, int proto)
{
	int fd = socket(AF_PACKET, SOCK_RAW, 0), size = 8 << 20;

	ASSERT_LE(0, fd);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	ASSERT_EQ(0, pv4_bind(fd, ifname, proto));
	return fd;
}

/* An ordinary socket that receives incoming packets but not outgoing ones */
static inline int plain_listener(struct __test_metadata *_metadata,
				 const char *ifname)
{
	int fd = plain_socket(_metadata, ifname, ETH_P_ALL);

	ASSERT_EQ(0, pv4_setint(fd, PACKET_IGNORE_OUTGOING, 1));
	return fd;
}

/* Returns the length of the packet received within @ms, or -EAGAIN. */
static inline int plain_recv(int fd, void *buf, size_t size, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, ms) != 1)
		return -EAGAIN;
	return recv(fd, buf, size, MSG_DONTWAIT | MSG_TRUNC);
}

/* A packet that no protocol receives; every byte depends on @seq and on its
 * position
 */
static inline void fill_packet(void *buf, size_t len, uint32_t seq)
{
	static const unsigned char head[ETH_HLEN] = {
		2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2,
		ETH_P_TEST >> 8, ETH_P_TEST & 0xff
	};
	unsigned char *p = buf;
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (seq + i) * 31 + (i >> 8) + (seq >> 8);
	memcpy(p, head, len < ETH_HLEN ? len : ETH_HLEN);
	if (len >= ETH_HLEN + sizeof(seq))
		memcpy(p + ETH_HLEN, &seq, sizeof(seq));
}

/* UDP with a source port of its own: one flow per port */
static inline void fill_udp(char *p, unsigned int len, unsigned int port,
			    uint32_t seq)
{
	fill_packet(p, len, seq);
	p[12] = ETH_P_IP >> 8;
	p[13] = 0;
	memset(p + 14, 0, 28);
	p[14] = 0x45;
	p[17] = len - ETH_HLEN;
	p[22] = 64;
	p[23] = IPPROTO_UDP;
	p[26] = 10;
	p[30] = 10;
	p[33] = 1;
	p[34] = port >> 8;
	p[35] = port;
	p[39] = len - ETH_HLEN - 20;
	memcpy(p + 42, &seq, sizeof(seq));
}

static inline uint32_t packet_seq(const void *buf)
{
	uint32_t seq;

	memcpy(&seq, (const char *)buf + ETH_HLEN, sizeof(seq));
	return seq;
}

static inline bool packet_ok(const void *buf, int len, int want, uint32_t seq)
{
	static unsigned char expect[1 << 17];

	if (len != want)
		return false;
	fill_packet(expect, want, seq);
	return !memcmp(buf, expect, want);
}

/* Inserts a VLAN tag; returns the new length. */
static inline size_t add_tag(char *p, size_t len, int proto, int tci)
{
	memmove(p + 16, p + 12, len - 12);
	p[12] = proto >> 8;
	p[13] = proto;
	p[14] = tci >> 8;
	p[15] = tci;
	return len + 4;
}

/* Is it as a new area is? */
static inline bool untouched(const char *p, size_t n)
{
	while (n--)
		if (*p++ != (char)UNTOUCHED)
			return false;
	return true;
}

/* ---- one packet at a time ---- */

/* Size of each packet. The kernel may copy a short packet and return its frame
 * at once; it keeps the frames of a long one until the packet is gone.
 */
static unsigned int pkt_len = 100;

#define LONG_LEN	1900

static inline int post_one(struct pv4 *s, uint32_t seq)
{
	char pkt[MAX_PKT];

	fill_packet(pkt, pkt_len, seq);
	return pv4_put(s, pkt, pkt_len, 2048, 0);
}

/* Bytes sent, or -errno. */
static inline int send_one(struct pv4 *s, uint32_t seq)
{
	pv4_reap(s);
	if (post_one(s, seq))
		return -ENOSPC;
	return pv4_kick(s, MSG_DONTWAIT);
}

/* Returns the number in the next packet received, or -1. */
static inline int recv_one(struct pv4 *s, int ms)
{
	char buf[MAX_PKT];
	int len = pv4_recv(s, buf, sizeof(buf), ms);
	uint32_t seq;

	if (len < ETH_HLEN + 4)
		return -1;
	seq = packet_seq(buf);
	return packet_ok(buf, len, pkt_len, seq) ? (int)seq : -1;
}

/* Sets a qdisc of if_a, in the syntax of tc(8). */
static inline int set_qdisc(const char *spec)
{
	char cmd[160];

	snprintf(cmd, sizeof(cmd), "qdisc replace dev %s root %s\n", if_a,
		 spec);
	return net_batch("tc", cmd);
}

#endif
