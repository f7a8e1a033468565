/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For the selftests that run on two ports of hardware, which TPACKET4_PORTS says
 * are there: their state, whatever the test before has left
 */
#ifndef TPACKET4_ZC_PORT_H
#define TPACKET4_ZC_PORT_H

#include "xdp.h"

#define PORT_MTU	8900		/* five frames of 2048 bytes take it */

/* Runs a shell command; its exit code. */
static inline int run(const char *fmt, ...)
{
	char cmd[512];
	va_list ap;
	int ret;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd) - 16, fmt, ap);
	va_end(ap);
	strcat(cmd, " >/dev/null 2>&1");
	ret = system(cmd);
	return WIFEXITED(ret) ? WEXITSTATUS(ret) : -1;
}

static inline bool is_virtio(void)
{
	return !run("ethtool -i %s | grep -w virtio_net", if_b);
}

/* While a socket has a queue of if_a in zero-copy mode: whether it is so by AF_XDP's
 * driver interface
 */
static inline bool by_af_xdp(void)
{
	return !run("ip link show %s | grep -w xdp", if_a);
}

/* Packets of several frames are not for all ports. */
static inline int port_mtu(int mtu)
{
	const char *most = getenv("TPACKET4_PORT_MTU");

	return most && atoi(most) < mtu ? atoi(most) : mtu;
}

static inline int both_mtu(int mtu)
{
	int err = set_mtu(if_a, mtu);

	err = err ? err : set_mtu(if_b, mtu);
	err = err ? err : wait_for_carrier(if_a);
	return err ? err : wait_for_carrier(if_b);
}

/* As set_up(), but whatever a packet's address is, the port takes it. */
static inline int port_up(const char *name, bool up)
{
	struct ifreq ifr = { .ifr_flags = IFF_PROMISC | (up ? IFF_UP : 0) };

	return dev_ioctl(name, SIOCSIFFLAGS, &ifr);
}

/* All packets by the queues that the tests have. */
static inline int channels(int n)
{
	int i, err = 0;

	for (i = 0; i < 2 && !err; i++) {
		const char *name = i ? if_b : if_a;

		/* it is an error to ask for what is there */
		run("ethtool -L %s combined %d", name, n);
		err = run("ethtool -l %s | tail -n 2 | grep -w 'Combined:.*%d'",
			  name, n);
	}
	err = err ? err : wait_for_carrier(if_a);
	return err ? err : wait_for_carrier(if_b);
}

/* zc_open(), after which many drivers reset the port. A port that the test has set
 * down stays down.
 */
static inline int port_open(struct zc *z, const struct zc_cfg *cfg)
{
	int err = zc_open(z, cfg), i;

	for (i = 0; i < 2 && !err && cfg->n && cfg->ifname; i++) {
		const char *name = i ? if_b : if_a;
		struct ifreq ifr = { };

		err = dev_ioctl(name, SIOCGIFFLAGS, &ifr);
		if (!err && ifr.ifr_flags & IFF_UP)
			err = wait_for_carrier(name);
	}
	return err;
}

/* Packets that a device has received and dropped */
static inline long dropped(const char *ifname)
{
	FILE *f = fopen("/proc/net/dev", "r");
	char line[512], name[32];
	long drops = -1, value;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " %31[^:]: %*u %*u %*u %ld", name, &value) == 2 &&
		    !strcmp(name, ifname))
			drops = value;
	if (f)
		fclose(f);
	return drops;
}

/* Waits until a device has dropped @nr packets: it counts them after it has
 * published those behind them.
 */
static inline long wait_for_drops(const char *ifname, long nr)
{
	__u64 end = now_ms() + WAIT_MS;
	long drops;

	do {
		drops = dropped(ifname);
	} while (drops >= 0 && drops < nr && now_ms() < end && !usleep(1000));
	return drops;
}

/* As every test finds the ports, whatever the one before has left. */
static inline void ports(struct __test_metadata *_metadata)
{
	int i;

	pv4_net_setup(_metadata);
	for (i = 0; i < 2; i++) {
		const char *name = i ? if_b : if_a;

		ASSERT_EQ(0, port_up(name, true));
		xdp_attach_native(name, -1);
		run("ethtool -G %s rx 512 tx 512", name);
		run("ethtool -N %s delete 3", name);
	}
	ASSERT_EQ(0, channels(1));
	ASSERT_EQ(0, both_mtu(port_mtu(PORT_MTU)));
}

#endif
