/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For the selftests of AF_PACKET V4 in which one process waits for another: to
 * know that it sleeps, and not only hope so, and to see it end or not end.
 */
#ifndef TPACKET4_TASK_H
#define TPACKET4_TASK_H

#include "common.h"

/* 'S' where it sleeps, 'R' where it runs, 'Z' once it has ended; 0: none. */
static inline char task_state(pid_t pid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(f);
	return state;
}

/* Waits until it sleeps or has ended; what it does, or 0 if it runs on. */
static inline char wait_until_idle(pid_t pid)
{
	uint64_t end = now_ms() + WAIT_MS;
	char state;

	do {
		state = task_state(pid);
		if (state == 'S' || state == 'D' || state == 'Z')
			return state;
		usleep(1000);
	} while (now_ms() < end);
	return 0;
}

/* How it has ended, as wait_for_exit(), or -EAGAIN if it has not within @ms. */
static inline int exit_within(pid_t pid, int ms)
{
	uint64_t end = now_ms() + ms;
	int status;
	pid_t ret;

	for (;;) {
		ret = waitpid(pid, &status, WNOHANG);
		if (ret < 0)
			return -errno;
		if (ret == pid)
			break;
		if (now_ms() >= end)
			return -EAGAIN;
		usleep(1000);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

#endif
