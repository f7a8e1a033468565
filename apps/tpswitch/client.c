// SPDX-License-Identifier: GPL-2.0
/* tpswitch ctl: sends a command to a switch that runs */

#include <errno.h>
#include <stdlib.h>
#include <sys/un.h>

#include "tpswitch.h"

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
	int fd, i = 1, n, failed;
	size_t at = 0;

	if (argc > 2 && !strcmp(argv[1], "-S")) {
		path = argv[2];
		i = 3;
	}
	if (i >= argc || *argv[i] == '-') {
		fprintf(stderr, "usage: tpswitch ctl [-S PATH] COMMAND...\n");
		return 2;
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
	    send(fd, line, at, MSG_NOSIGNAL) < 0) {
		fprintf(stderr, "tpswitch: %s: %s\n", un.sun_path,
			strerror(errno));
		return 1;
	}
	reply = malloc(1 << 22);
	n = reply ? recv(fd, reply, (1 << 22) - 1, 0) : -1;
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
