// SPDX-License-Identifier: GPL-2.0
/* The init of the guest of net.py: echoes what it gets by TCP, and does what the lines of its
 * second serial port say. Each is answered with ok and perhaps a value, or with a reason.
 *
 *	up MTU		wait for a network card, and configure it
 *	carrier N	wait for this state of its link
 *	channels N	use N queue pairs of the card
 *	send N		send N bytes by UDP to the host
 *	unplug		remove it, and switch its slot off
 *	plug		switch the slot on, and look for a card
 *	poweroff
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>

#define CARD	"eth0"
#define PCI	"/sys/bus/pci"
#define PORT	7

/* struct in6_ifreq of the kernel */
struct address6 {
	struct in6_addr addr;
	uint32_t prefix_len;
	int ifindex;
};

static const char address[] = "10.77.0.2", address6[] = "fd77::2", host[] = "10.77.0.1";

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), good;

	if (fd < 0)
		return -1;
	good = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return good ? 0 : -1;
}

static long read_number(const char *path)
{
	char text[32] = "";
	FILE *f = fopen(path, "re");

	if (!f)
		return -1;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	return text[0] ? strtol(text, NULL, 0) : -1;
}

static void echo(int fd)
{
	static char buf[1 << 16];
	ssize_t n, m, done;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		for (done = 0; done < n; done += m) {
			m = write(fd, buf + done, n - done);
			if (m < 0)
				_exit(1);
		}
	}
	_exit(0);
}

static void serve(void)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(PORT) };
	int one = 1, fd, s = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (s < 0 || setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(s, (struct sockaddr *)&any, sizeof(any)) || listen(s, 64))
		_exit(1);
	for (;;) {
		fd = accept(s, NULL, NULL);
		if (fd < 0)
			continue;
		if (!fork()) {
			close(s);
			echo(fd);
		}
		close(fd);
	}
}

static const char *up(int mtu)
{
	struct sockaddr_in *sin;
	struct ifreq ifr = { .ifr_name = CARD };
	struct address6 a6 = { .prefix_len = 64 };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int s6 = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const char *why = NULL;

	if (ioctl(s, SIOCGIFINDEX, &ifr)) {
		why = "no " CARD;
		goto out;
	}
	a6.ifindex = ifr.ifr_ifindex;
	ifr.ifr_mtu = mtu;
	if (ioctl(s, SIOCSIFMTU, &ifr))
		why = "MTU";
	sin = (struct sockaddr_in *)&ifr.ifr_addr;
	memset(sin, 0, sizeof(*sin));
	sin->sin_family = AF_INET;
	inet_pton(AF_INET, address, &sin->sin_addr);
	if (ioctl(s, SIOCSIFADDR, &ifr))
		why = "address";
	inet_pton(AF_INET, "255.255.255.0", &sin->sin_addr);
	if (ioctl(s, SIOCSIFNETMASK, &ifr))
		why = "netmask";
	ifr.ifr_flags = IFF_UP;
	if (ioctl(s, SIOCSIFFLAGS, &ifr))
		why = "flags";
	inet_pton(AF_INET6, address6, &a6.addr);
	if (ioctl(s6, SIOCSIFADDR, &a6) && errno != EEXIST)
		why = "IPv6 address";
out:
	close(s);
	close(s6);
	return why;
}

static const char *carrier(long want)
{
	int i;

	for (i = 0; i < 3000; i++) {
		if (read_number("/sys/class/net/" CARD "/carrier") == want)
			return NULL;
		usleep(10000);
	}
	return "the link has another state";
}

static const char *channels(unsigned int nr)
{
	struct ethtool_channels get = { .cmd = ETHTOOL_GCHANNELS };
	struct ifreq ifr = { .ifr_name = CARD, .ifr_data = (void *)&get };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	err = ioctl(s, SIOCETHTOOL, &ifr);
	get.cmd = ETHTOOL_SCHANNELS;
	get.combined_count = nr;
	err = err ? err : ioctl(s, SIOCETHTOOL, &ifr);
	close(s);
	return err ? strerror(errno) : NULL;
}

static const char *send_udp(size_t len)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;
	static char buf[1 << 16];

	inet_pton(AF_INET, host, &to.sin_addr);
	err = sendto(s, buf, len, 0, (struct sockaddr *)&to, sizeof(to)) < 0;
	close(s);
	return err ? strerror(errno) : NULL;
}

/* Find the first device of a class, and return the path of its directory. */
static int find(long class, char *path, size_t len)
{
	DIR *dir = opendir(PCI "/devices");
	struct dirent *entry;
	char file[512];
	int found = 0;

	while (dir && !found && (entry = readdir(dir))) {
		snprintf(file, sizeof(file), PCI "/devices/%s/class", entry->d_name);
		found = read_number(file) == class;
		if (found)
			snprintf(path, len, PCI "/devices/%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Write the control register of the slot, as the driver pciehp does, which the kernel does not
 * have: power and its indicator.
 */
static const char *slot(int on)
{
	uint16_t control = on ? 0x0100 : 0x0700;
	uint8_t at, id[2] = { 0 };
	const char *why = "no PCI Express capability";
	char path[300], file[320];
	int fd;

	if (!find(0x060400, path, sizeof(path)))
		return "no root port";
	snprintf(file, sizeof(file), "%s/config", path);
	fd = open(file, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return "no configuration space";
	for (at = 0x34; pread(fd, &at, 1, at) == 1 && at; at++) {
		if (pread(fd, id, 2, at) != 2)
			break;
		if (id[0] == 0x10) {
			why = pwrite(fd, &control, 2, at + 0x18) == 2 ? NULL : "slot control";
			break;
		}
	}
	close(fd);
	return why;
}

static const char *unplug(void)
{
	char path[300], file[320];

	if (!find(0x020000, path, sizeof(path)))
		return "no network card";
	snprintf(file, sizeof(file), "%s/remove", path);
	if (write_file(file, "1"))
		return "remove";
	return slot(0);
}

static const char *plug(void)
{
	const char *why = slot(1);
	char path[300];

	if (why)
		return why;
	if (write_file(PCI "/rescan", "1"))
		return "rescan";
	return find(0x020000, path, sizeof(path)) ? NULL : "no network card";
}

static const char *command(const char *line)
{
	int n;

	if (sscanf(line, "up %d", &n) == 1)
		return up(n);
	if (sscanf(line, "carrier %d", &n) == 1)
		return carrier(n);
	if (sscanf(line, "channels %d", &n) == 1)
		return channels(n);
	if (sscanf(line, "send %d", &n) == 1)
		return send_udp(n);
	if (!strcmp(line, "unplug\n"))
		return unplug();
	if (!strcmp(line, "plug\n"))
		return plug();
	if (!strcmp(line, "poweroff\n"))
		reboot(RB_AUTOBOOT);
	return "no such command";
}

/* Go on in memory: QEMU does not migrate a guest that uses files of the host. */
static void leave_host(void)
{
	int from, to;

	mount("tmp", "/dev", "tmpfs", 0, NULL);
	from = open("/init", O_RDONLY | O_CLOEXEC);
	to = open("/dev/init", O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	while (sendfile(to, from, NULL, 1 << 20) > 0)
		;
	close(to);
	mkdir("/dev/dev", 0700);
	mkdir("/dev/proc", 0700);
	mkdir("/dev/sys", 0700);
	mkdir("/dev/old", 0700);
	if (!chdir("/dev") && !syscall(SYS_pivot_root, ".", "old") &&
	    !umount2("/old", MNT_DETACH))
		execl("/init", "/init", NULL);
}

int main(void)
{
	struct termios tio;
	const char *why;
	char line[128];
	FILE *in, *out;

	if (access("/old", F_OK))
		leave_host();
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sys", "/sys", "sysfs", 0, NULL);
	write_file("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	if (!fork())
		serve();
	in = fopen("/dev/ttyS1", "re");
	out = fopen("/dev/ttyS1", "we");
	if (!in || !out || tcgetattr(fileno(in), &tio))
		return 1;
	cfmakeraw(&tio);
	tcsetattr(fileno(in), TCSANOW, &tio);
	fprintf(out, "ready\n");
	fflush(out);
	while (fgets(line, sizeof(line), in)) {
		why = command(line);
		fprintf(out, "%s\n", why ? why : "ok");
		fflush(out);
	}
	return 1;
}
