// SPDX-License-Identifier: GPL-2.0
/* A bridge between a V4 socket in zero-copy mode and a tap, for zc_stack.sh.
 *
 * Packets that the stack at the other end of the veth sends must be valid on a
 * wire when they are received from the ring: not longer than the MTU and with
 * all checksums computed. The bridge checks each packet, because a receiving
 * stack would trust the kernel. It ends with SIGINT or SIGTERM, prints
 * counters, and fails if it has received an invalid packet.
 */
#include <fcntl.h>
#include <linux/if_tun.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "zc_ring.h"

static int stop;

static struct {
	unsigned int arp, icmp, icmp6, nd, tcp, tcp6, udp, udp6, fragments;
	unsigned int to_tap, to_ring, chains;
	unsigned int bad_ip, bad_sum, too_long, lost;
} count;

static void on_signal(int sig)
{
	(void)sig;
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

static uint32_t sum_add(uint32_t sum, const unsigned char *p, size_t len)
{
	for (; len > 1; p += 2, len -= 2)
		sum += p[0] << 8 | p[1];
	if (len)
		sum += p[0] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* TCP, UDP, ICMP or ICMPv6 at @p, @pseudo the sum of its pseudo header. */
static void check_l4(const unsigned char *p, size_t len, int proto,
		     uint32_t pseudo, bool v6)
{
	switch (proto) {
	case IPPROTO_TCP:
		(*(v6 ? &count.tcp6 : &count.tcp))++;
		break;
	case IPPROTO_UDP:
		(*(v6 ? &count.udp6 : &count.udp))++;
		/* optional over IPv4 */
		if (!v6 && len >= 8 && !p[6] && !p[7])
			return;
		break;
	case IPPROTO_ICMP:
		count.icmp++;
		pseudo = 0;
		break;
	case IPPROTO_ICMPV6:
		count.icmp6++;
		if (p[0] == ND_NEIGHBOR_SOLICIT || p[0] == ND_NEIGHBOR_ADVERT)
			count.nd++;
		break;
	default:
		return;
	}
	if (sum_add(pseudo, p, len) != 0xffff)
		count.bad_sum++;
}

static void check_ipv4(const unsigned char *p, size_t len)
{
	unsigned int head, total;
	uint32_t pseudo;

	head = (p[0] & 15) * 4;
	total = p[2] << 8 | p[3];
	if (len < 20 || head < 20 || total < head || total > len ||
	    sum_add(0, p, head) != 0xffff) {
		count.bad_ip++;
		return;
	}
	if ((p[6] << 8 | p[7]) & (IP_MF | IP_OFFMASK)) {
		count.fragments++;
		return;
	}
	pseudo = sum_add(p[9] + total - head, p + 12, 8);
	check_l4(p + head, total - head, p[9], pseudo, false);
}

static void check_ipv6(const unsigned char *p, size_t len)
{
	unsigned int payload, head = 40, next;
	uint32_t pseudo;

	payload = p[4] << 8 | p[5];
	next = p[6];
	if (len < 40 || payload > len - 40 || payload < 8) {
		count.bad_ip++;
		return;
	}
	if (next == IPPROTO_FRAGMENT) {
		count.fragments++;
		return;
	}
	if (next == IPPROTO_HOPOPTS) {	/* multicast listener reports */
		next = p[40];
		head += 8 + 8 * p[41];
	}
	if (head > 40 + payload) {
		count.bad_ip++;
		return;
	}
	payload -= head - 40;
	pseudo = sum_add(next + payload, p + 8, 32);
	check_l4(p + head, payload, next, pseudo, true);
}

static void check_packet(const unsigned char *p, int len, int mtu)
{
	if (len > mtu + ETH_HLEN)
		count.too_long++;
	switch (p[12] << 8 | p[13]) {
	case ETH_P_ARP:
		count.arp++;
		break;
	case ETH_P_IP:
		check_ipv4(p + ETH_HLEN, len - ETH_HLEN);
		break;
	case ETH_P_IPV6:
		check_ipv6(p + ETH_HLEN, len - ETH_HLEN);
		break;
	}
}

static int open_tap(const char *name)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (fd >= 0 && ioctl(fd, TUNSETIFF, &ifr)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int get_mtu(const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq ifr = { 0 };

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, SIOCGIFMTU, &ifr))
		return -1;
	close(fd);
	return ifr.ifr_mtu;
}

/* At most one ring of packets, because the other direction waits. */
static int ring_to_tap(struct zc *z, int tap, int mtu)
{
	static unsigned char buf[BUF_SIZE];
	unsigned int before;
	int n, len;

	for (n = 0; n < 64; n++) {
		before = z->s.rx.used;
		len = zc_recv(z, buf, sizeof(buf), 0);
		if (len == -EAGAIN)
			return 0;
		if (len < ETH_HLEN)
			return len < 0 ? len : -EBADMSG;
		count.chains += z->s.rx.used - before > 1;
		check_packet(buf, len, mtu);
		count.to_tap++;
		if (write(tap, buf, len) != len)
			count.lost++;
	}
	return 0;
}

static int tap_to_ring(struct zc *z, int tap)
{
	static char buf[BUF_SIZE];
	int n, len, err;

	zc_reap(z);
	for (n = 0; n < 32; n++) {
		/* no more than fit in the Tx ring, the rest would be lost */
		if (z->s.nr_spare < 8 ||
		    z->s.tx.size - (z->s.tx.avail - z->s.tx.used) < 8)
			break;
		len = read(tap, buf, sizeof(buf));
		if (len <= 0)
			break;
		err = zc_put(z, buf, len, z->s.frame_size, 0);
		if (err)
			return err;
		count.to_ring++;
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (z->s.tx.used != z->s.tx.avail &&
	    __atomic_load_n(&z->status->tx_need_wakeup, __ATOMIC_RELAXED))
		return zc_kick(z);
	return 0;
}

/* Packets of the stack that the Tx ring did not send */
static unsigned int tx_errors(const struct zc *z)
{
	unsigned int i, n = 0;

	for (i = 1; i < 256; i++)
		n += z->s.errors[i];
	return n;
}

int main(int argc, char **argv)
{
	struct zc_cfg cfg = { .n = 1, .rx_nr = 4096, .tx_nr = 1024 };
	struct sigaction sa = { .sa_handler = on_signal };
	struct tpacket_stats_v4 st;
	struct pollfd p[2];
	int err, tap, mtu;
	struct zc z;

	if (argc != 3) {
		fprintf(stderr, "usage: %s INTERFACE TAP\n", argv[0]);
		return 2;
	}
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	tap = open_tap(argv[2]);
	mtu = get_mtu(argv[1]);
	if (tap < 0 || mtu < 0) {
		perror(argv[2]);
		return 1;
	}
	cfg.ifname = argv[1];
	err = zc_open(&z, &cfg);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	/* the script waits for this line */
	printf("bridging %s and %s\n", argv[1], argv[2]);
	fflush(stdout);
	p[0] = (struct pollfd){ .fd = z.s.fd, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = tap, .events = POLLIN };
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		poll(p, 2, 100);
		err = ring_to_tap(&z, tap, mtu);
		if (err) {
			fprintf(stderr, "Rx ring: %s\n", strerror(-err));
			return 1;
		}
		err = tap_to_ring(&z, tap);
		if (err) {
			fprintf(stderr, "Tx ring: %s\n", strerror(-err));
			return 1;
		}
	}
	if (pv4_stats(z.s.fd, &st))
		return 1;
	printf("arp %u icmp %u icmp6 %u nd %u fragments %u chains %u\n",
	       count.arp, count.icmp, count.icmp6, count.nd, count.fragments,
	       count.chains);
	printf("tcp %u tcp6 %u udp %u udp6 %u\n", count.tcp, count.tcp6,
	       count.udp, count.udp6);
	printf("to_tap %u to_ring %u lost %u dropped %u\n", count.to_tap,
	       count.to_ring, count.lost, st.tp_drops);
	printf("bad_ip %u bad_checksum %u too_long %u errors %u strays %u\n",
	       count.bad_ip, count.bad_sum, count.too_long,
	       tx_errors(&z), z.strays);
	return count.bad_ip || count.bad_sum || count.too_long || z.strays ||
	       tx_errors(&z);
}
