// SPDX-License-Identifier: GPL-2.0
/* tpswitch ctl: sends a command to a switch that runs */

#include <errno.h>
#include <sys/un.h>

#include "tpswitch.h"

/* Send a command, perhaps with a file. */
static int send_command(int fd, char *line, size_t len, int file)
{
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = { .buf = "" };
	struct iovec iov = { .iov_base = line, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c = &control.hdr;

	if (file >= 0) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(file));
		memcpy(CMSG_DATA(c), &file, sizeof(file));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Print the answer; return the exit status. */
static int print_answer(int fd)
{
	static char part[SW_PART + 1];
	ssize_t n;

	do {
		n = recv(fd, part, SW_PART, 0);
		if (n <= 0) {
			fprintf(stderr, "tpswitch: no answer, or not all of it\n");
			return 1;
		}
		part[n] = '\0';
		fputs(part + 1, *part == '1' ? stderr : stdout);
	} while (*part == '+');
	return *part != '0';
}

static int usage(FILE *file)
{
	fprintf(file, "usage: tpswitch ctl [-S PATH] [-j] COMMAND\n"
		"  -S PATH  the socket of the switch, without .ctl\n"
		"  -j       list, count, macs and quota print JSON\nCommands:\n");
	sw_commands_print(file);
	return file == stdout ? 0 : 2;
}

/**
 * sw_ctl_main - the main function of tpswitch ctl
 * @argc: number of words, the first of which is ctl
 * @argv: the words
 *
 * Return: the exit status.
 */
int sw_ctl_main(int argc, char **argv)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const char *path = "/run/tpswitch/port";
	char line[512] = "";
	int fd, i, n, failed, file = -1;
	size_t at = 0;

	for (i = 1; i < argc && *argv[i] == '-'; i++) {
		if (!strcmp(argv[i], "-S") && i + 1 < argc)
			path = argv[++i];
		else if (!strcmp(argv[i], "-j"))
			at = snprintf(line, sizeof(line), "-j");
		else
			return usage(!strcmp(argv[i], "-h") ||
				     !strcmp(argv[i], "--help") ? stdout : stderr);
	}
	if (i >= argc)
		return usage(stderr);
	if (!strcmp(argv[i], "help"))
		return usage(stdout);
	/* By its path from here, and with the rights of who runs this */
	if (argc == i + 3 && !strcmp(argv[i], "mirror") &&
	    strcmp(argv[i + 2], "off")) {
		file = sw_mirror_open(argv[i + 2]);
		if (file < 0) {
			fprintf(stderr, "tpswitch: %s: %s\n", argv[i + 2],
				strerror(-file));
			return 1;
		}
	}
	for (; i < argc; i++) {
		n = snprintf(line + at, sizeof(line) - at, "%s%s",
			     at ? " " : "", argv[i]);
		at += n;
		if (at >= sizeof(line)) {
			fprintf(stderr, "tpswitch: command too long\n");
			return 2;
		}
	}
	n = snprintf(un.sun_path, sizeof(un.sun_path), "%s.ctl", path);
	if ((size_t)n >= sizeof(un.sun_path)) {
		fprintf(stderr, "tpswitch: %s: %s\n", path,
			strerror(ENAMETOOLONG));
		return 1;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&un, sizeof(un)) ||
	    send_command(fd, line, at, file)) {
		fprintf(stderr, "tpswitch: %s: %s\n", un.sun_path,
			strerror(errno));
		return 1;
	}
	failed = print_answer(fd);
	/* The file of a mirror is complete when the switch closes this. */
	while (recv(fd, line, sizeof(line), 0) > 0)
		;
	close(fd);
	return failed;
}
