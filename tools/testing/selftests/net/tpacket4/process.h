/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Processes and shared resources, for the selftests of AF_PACKET V4
 */
#ifndef TPACKET4_PROCESS_H
#define TPACKET4_PROCESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring.h"

/* Forks a child that is killed if the test fails. */
static inline pid_t pv4_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* It may have ended before. */
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

/* Waits for the end of a child and returns its status. */
static inline int wait_for_exit(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline char process_state(pid_t pid)
{
	char path[32], line[512] = "", *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	fclose(f);
	/* the name in parentheses may contain any character */
	end = strrchr(line, ')');
	return end && end[1] ? end[2] : 0;
}

/* Waits until a process blocks. Returns false if it never sleeps. What wakes a
 * child depends on its parent.
 */
static inline bool wait_until_asleep(pid_t pid)
{
	__u64 end = now_ms() + WAIT_MS;

	while (process_state(pid) != 'S') {
		if (now_ms() > end)
			return false;
		usleep(1000);
	}
	return true;
}

static inline void interrupted(int sig)
{
	(void)sig;
}

/* Forks a child that interrupts this process when it sleeps. */
static inline pid_t signal_when_asleep(void)
{
	struct sigaction sa = { .sa_handler = interrupted };
	pid_t parent = getpid(), pid;

	if (sigaction(SIGUSR1, &sa, NULL))
		return -1;
	pid = pv4_fork();
	if (!pid)
		_exit(!wait_until_asleep(parent) || kill(parent, SIGUSR1));
	return pid;
}

static inline void pin_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Removes capabilities from the effective set; returns 0 or -errno. */
static inline int drop_cap(unsigned int cap)
{
	struct __user_cap_header_struct h = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct d[2];

	if (syscall(SYS_capget, &h, d))
		return -errno;
	d[cap / 32].effective &= ~(1u << (cap % 32));
	return syscall(SYS_capset, &h, d) ? -errno : 0;
}

/* Maps memory that a test shares with its children. */
static inline void *shared_memory(size_t len)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* Passes fds over a UNIX socket, at most four; returns 0, -errno or -1. */
static inline int send_fds(int sock, int *fds, int n)
{
	char ctl[CMSG_SPACE(4 * sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = ctl, .msg_controllen = CMSG_SPACE(n * sizeof(int)),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	return sendmsg(sock, &m, 0) == 1 ? 0 : -errno;
}

static inline int recv_fds(int sock, int *fds, int n)
{
	char ctl[CMSG_SPACE(4 * sizeof(int))] = { 0 }, byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = ctl, .msg_controllen = sizeof(ctl),
	};
	struct cmsghdr *c;

	if (recvmsg(sock, &m, 0) != 1)
		return -1;
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_len != CMSG_LEN(n * sizeof(int)))
		return -1;
	memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	return 0;
}

/* Forks a process that keeps its own network namespace alive. Returns its pid,
 * or -1.
 */
static inline pid_t other_netns(void)
{
	int p[2];
	pid_t pid;
	char c;

	if (pipe(p))
		return -1;
	pid = pv4_fork();
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

/* Enters the network namespace of a process; returns 0 or -errno. */
static inline int enter_netns(pid_t pid)
{
	char path[32];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = setns(fd, CLONE_NEWNET) ? -errno : 0;
	close(fd);
	return err;
}

#endif
