/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For selftests of AF_PACKET V4 in which a process waits for another one:
 * checks that it really sleeps, and whether it has ended
 */
#ifndef TPACKET4_TASK_H
#define TPACKET4_TASK_H

#include "common.h"

/* Returns 'S' if it sleeps, 'R' if it runs, 'Z' after its end, 0 if there is
 * none.
 */
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

/* Waits until it sleeps or has ended. Returns its state, or 0 if it keeps
 * running.
 */
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

/* Same as wait_for_exit(), or -EAGAIN if it has not ended within @ms. */
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
