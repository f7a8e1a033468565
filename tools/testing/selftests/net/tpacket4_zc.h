/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared helpers of the selftests of AF_PACKET V4's zero-copy mode, on top of
 * those of copy mode.
 */
#ifndef TPACKET4_ZC_H
#define TPACKET4_ZC_H

#include "tpacket4.h"
#include "tpacket4_zc_ring.h"

#include <linux/ethtool.h>
#include <linux/if_xdp.h>
#include <linux/sockios.h>

#ifndef AF_XDP
#define AF_XDP		44
#endif
#ifndef SOL_XDP
#define SOL_XDP		283
#endif

/* Puts packet number @seq of @len bytes on the Tx ring; 0 or -ENOBUFS. */
static inline int zc_put_seq(struct zc *z, size_t len, uint32_t seq)
{
	char pkt[MAX_PKT];

	fill_packet(pkt, len, seq);
	zc_reap(z);
	return zc_put(z, pkt, len, z->s.frame_size, 0);
}

/* Sends it; 0 or -errno. */
static inline int zc_send_seq(struct zc *z, size_t len, uint32_t seq)
{
	int err = zc_put_seq(z, len, seq);

	return err ? err : zc_kick(z);
}

/* ---- the network ---- */

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
	int fd = socket(AF_INET, SOCK_DGRAM, 0), err = 0;
	struct ifreq ifr = { .ifr_mtu = mtu };

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, SIOCSIFMTU, &ifr))
		err = -errno;
	close(fd);
	return err;
}

static inline int ethtool_ioctl(const char *name, void *data)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), err = 0;
	struct ifreq ifr = { .ifr_data = data };

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, SIOCETHTOOL, &ifr))
		err = -errno;
	close(fd);
	return err;
}

static inline int set_channels(const char *name, unsigned int rx,
			       unsigned int tx)
{
	struct ethtool_channels ch = { .cmd = ETHTOOL_GCHANNELS };
	int err = ethtool_ioctl(name, &ch);

	if (err)
		return err;
	if (rx > ch.max_rx || tx > ch.max_tx)
		return -ERANGE;
	ch.cmd = ETHTOOL_SCHANNELS;
	ch.rx_count = rx;
	ch.tx_count = tx;
	return ethtool_ioctl(name, &ch);
}

static inline int set_gro(const char *name, bool on)
{
	struct ethtool_value v = { .cmd = ETHTOOL_SGRO, .data = on };

	return ethtool_ioctl(name, &v);
}

/* Two queue pairs at both ends; veth starts with one. */
static inline int two_channels(void)
{
	int err = set_channels(if_a, 2, 2);

	return err ? err : set_channels(if_b, 2, 2);
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

/* An ordinary socket that sees what comes in and nothing that goes out. */
static inline int plain_listener(struct __test_metadata *_metadata,
				 const char *ifname)
{
	int fd = plain_socket(_metadata, ifname, ETH_P_ALL);

	ASSERT_EQ(0, tp4_setint(fd, PACKET_IGNORE_OUTGOING, 1));
	return fd;
}

/* Memory that a test and its children share. */
static inline void *shared_memory(size_t len)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static inline void pin_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* How it ended, and not before it did. */
static inline int wait_for_exit(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* A process in a network namespace of its own: that lives as long. Its pid, or
 * -1.
 */
static inline pid_t other_netns(void)
{
	int p[2];
	pid_t pid;
	char c;

	if (pipe(p))
		return -1;
	pid = tp4_fork();
	if (!pid) {
		if (unshare(CLONE_NEWNET) || write(p[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(p[1]);
	if (pid > 0 && read(p[0], &c, 1) != 1)
		pid = -1;
	close(p[0]);
	return pid;
}

#endif
