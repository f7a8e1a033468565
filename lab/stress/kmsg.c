// SPDX-License-Identifier: GPL-2.0
/* Watches the kernel log for complaints. */

#define _GNU_SOURCE
#include "kmsg.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char * const complaints[] = {
	"BUG:", "WARNING:", "KASAN:", "UBSAN:", "Oops", "Kernel panic",
	"general protection", "possible circular", "possible recursive",
	"suspicious RCU", "inconsistent lock state", "sleeping function",
	"scheduling while atomic", "INFO: task", "soft lockup", "rcu: INFO:",
	"unregister_netdevice: waiting", "ref_tracker:", "refcount_t:",
	"leaked", "corruption", "ODEBUG:", "DMA-API:", "Bad page",
	"invalid opcode", "Call Trace", "NETDEV WATCHDOG",
};

/* Lines of a complaint that are printed */
#define LINES		70

static int log_fd = -1;
static bool bad_frame;
static bool expects_no_memory, expects_warning, expects_trace;

int kmsg_open(void)
{
	/* No rate limit for kmsg_note(). The newline is required. */
	int fd = open("/proc/sys/kernel/printk_devkmsg", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (write(fd, "on\n", 3) < 0)
			perror("printk_devkmsg");
		close(fd);
	}
	log_fd = open("/dev/kmsg", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (log_fd < 0)
		return -1;
	return lseek(log_fd, 0, SEEK_END) < 0 ? -1 : 0;
}

void kmsg_note(const char *fmt, ...)
{
	char line[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (log_fd < 0 || write(log_fd, line, n) < 0)
		fprintf(stderr, "kmsg: %s\n", line);
}

/* The text of a record is behind its first semicolon, in one line. */
static const char *next_line(char *buf, size_t size)
{
	ssize_t n = read(log_fd, buf, size - 1);
	char *text, *end;

	if (n <= 0)
		return NULL;
	buf[n] = 0;
	text = strchr(buf, ';');
	if (!text)
		return "";
	end = strchr(++text, '\n');
	if (end)
		*end = 0;
	return text;
}

static bool is_complaint(const char *line)
{
	unsigned int i;

	/* Memory that is allocated once */
	if (strstr(line, "ref_tracker: memory"))
		return false;
	/* A page fault whose allocation was made to fail */
	if (strstr(line, "VM_FAULT_OOM leaked out"))
		return false;
	if (expects_no_memory && (strstr(line, "vmalloc error: size") ||
				  strstr(line, "page allocation failure: ")))
		expects_trace = true;
	/* A process whose signal frame could not be written goes on anywhere, until
	 * the kernel ends it.
	 */
	if (bad_frame && strstr(line, "traps: "))
		return false;
	/* Generic XDP finds a packet in the backlog of a veth for a queue that
	 * ethtool -L has removed. It warns once.
	 */
	if (strstr(line, "received packet on queue"))
		expects_warning = true;
	if (expects_warning && strstr(line, "WARNING: CPU:")) {
		expects_warning = false;
		expects_trace = true;
		return false;
	}
	if (expects_trace && strstr(line, "Call Trace")) {
		expects_trace = false;
		return false;
	}
	if (strstr(line, "KCSAN:"))
		return strstr(line, "tp4") || strstr(line, "packet_");
	for (i = 0; i < sizeof(complaints) / sizeof(complaints[0]); i++)
		if (strstr(line, complaints[i]))
			return true;
	return false;
}

bool kmsg_complains(void)
{
	char buf[8192];
	const char *line;
	int left = 0, idle = 0;

	/* The rest of a complaint may arrive later. */
	while (idle < 20) {
		line = next_line(buf, sizeof(buf));
		if (!line) {
			if (!left)
				return false;
			usleep(100000);
			idle++;
			continue;
		}
		if (strstr(line, "bad frame in"))
			bad_frame = true;
		if (!left && is_complaint(line))
			left = LINES;
		if (!left)
			continue;
		printf("| %s\n", line);
		if (!--left)
			left++, idle = 20;
	}
	fflush(stdout);
	return left;
}

void kmsg_expect_no_memory(void)
{
	expects_no_memory = true;
}

bool kmsg_bad_frame(void)
{
	bool bad = bad_frame;

	bad_frame = false;
	return bad;
}
