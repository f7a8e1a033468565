/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Busy polling, for the selftests of AF_PACKET V4's zero-copy mode. With
 * TPACKET4_BUSY_POLL set, all zero-copy sockets use it.
 */
#ifndef TPACKET4_BUSY_H
#define TPACKET4_BUSY_H

#include "process.h"

#include <stdlib.h>
#include <sys/mount.h>

static inline bool all_busy_poll(void)
{
	const char *s = getenv("TPACKET4_BUSY_POLL");

	return s && *s && *s != '0';
}

static inline int set_sockopt(int fd, int opt, int val)
{
	return setsockopt(fd, SOL_SOCKET, opt, &val, sizeof(val)) ? -errno : 0;
}

static inline int write_sysfs(const char *sysfs, const char *ifname,
			      const char *file, const char *value)
{
	char path[128];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/class/net/%s/%s", sysfs, ifname, file);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}

/* Keeps interrupts off while the program polls often enough, see the
 * documentation of SO_PREFER_BUSY_POLL: for this many polls without a packet,
 * and this many nanoseconds. /sys shows the namespace in which it was mounted.
 * Returns 0 or -errno.
 */
static inline int defer_irqs(const char *ifname, const char *polls,
			     const char *ns)
{
	char dir[] = "/tmp/tpacket4.XXXXXX";
	int err = 0;

	if (!mkdtemp(dir))
		return -errno;
	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("sysfs", dir, "sysfs", 0, NULL))
		err = -errno;
	if (!err) {
		err = write_sysfs(dir, ifname, "napi_defer_hard_irqs", polls);
		if (!err)
			err = write_sysfs(dir, ifname, "gro_flush_timeout", ns);
		umount(dir);
	}
	rmdir(dir);
	return err;
}

/* Same as in AF_XDP's xskxceiver. Returns 0 or -errno. */
static inline int busy_poll_by_default(int fd, const char *ifname)
{
	int err = ifname ? defer_irqs(ifname, "2", "200000") : 0;

	err = err ? err : set_sockopt(fd, SO_PREFER_BUSY_POLL, 1);
	err = err ? err : set_sockopt(fd, SO_BUSY_POLL, 20);
	return err ? err : set_sockopt(fd, SO_BUSY_POLL_BUDGET, 64);
}

#endif
