// SPDX-License-Identifier: GPL-2.0
/* tpswitch ctl: sends a command to a switch that runs */

#include <errno.h>
#include <stdlib.h>
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
	char line[512] = "", *reply;
	int fd, i = 1, n, failed, file = -1;
	size_t at = 0;

	if (argc > 2 && !strcmp(argv[1], "-S")) {
		path = argv[2];
		i = 3;
	}
	if (i >= argc || *argv[i] == '-') {
		fprintf(stderr, "usage: tpswitch ctl [-S PATH] COMMAND...\n");
		return 2;
	}
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
	reply = malloc(1 << 22);
	n = reply ? recv(fd, reply, (1 << 22) - 1, 0) : -1;
	/* The file of a mirror is complete when the switch closes this. */
	while (n > 0 && recv(fd, line, sizeof(line), 0) > 0)
		;
	close(fd);
	if (n <= 0) {
		fprintf(stderr, "tpswitch: no answer\n");
		free(reply);
		return 1;
	}
	reply[n] = '\0';
	failed = *reply != '0';
	fputs(reply + 1, failed ? stderr : stdout);
	free(reply);
	return failed;
}
