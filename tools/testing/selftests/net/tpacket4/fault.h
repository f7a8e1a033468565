/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault injection into allocations
 */
#ifndef TPACKET4_FAULT_H
#define TPACKET4_FAULT_H

#include "common.h"

#include <glob.h>
#include <sys/mount.h>

#define DEBUGFS		"/sys/kernel/debug"
#define MANY		1000000

/* Sets a file of all kinds of faults, or of one kind. */
static inline void set_fault(const char *kind, const char *file,
			     const char *value)
{
	char pattern[128];
	glob_t paths;
	size_t i;

	snprintf(pattern, sizeof(pattern), DEBUGFS "/%s/%s", kind, file);
	if (glob(pattern, 0, NULL, &paths))
		return;
	for (i = 0; i < paths.gl_pathc; i++)
		write_file(paths.gl_pathv[i], value);
	globfree(&paths);
}

static inline void set_number(const char *kind, const char *file,
			      unsigned int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	set_fault(kind, file, text);
}

static inline void no_faults(void)
{
	set_fault("fail*", "probability", "0");
	set_fault("fail*", "times", "1");
	set_fault("fail*", "space", "0");
}

/* Forks a process that ends all faults when @fd is closed, or when this process
 * is killed. Returns its pid, or -1.
 */
static inline pid_t guard_faults(int *fd)
{
	int p[2];
	pid_t pid;
	char c;

	if (pipe(p))
		return -1;
	pid = fork();
	if (!pid) {
		/* not killed with the others */
		setpgid(0, 0);
		close(p[1]);
		if (read(p[0], &c, 1) >= 0)
			no_faults();
		_exit(0);
	}
	close(p[0]);
	*fd = p[1];
	return pid;
}

/* Returns why fault injection is not available, or NULL. */
static inline const char *faults_missing(void)
{
	if (access(DEBUGFS "/failslab", F_OK))
		mount("none", DEBUGFS, "debugfs", 0, NULL);
	if (access(DEBUGFS "/failslab", F_OK))
		return "no failslab: needs CONFIG_FAILSLAB";
	if (access(DEBUGFS "/fail_page_alloc", F_OK))
		return "needs CONFIG_FAIL_PAGE_ALLOC";
	return NULL;
}

/* Returns the number of faults of a kind since its times were set to MANY, or
 * -errno.
 */
static inline int faults_of(const char *kind)
{
	unsigned int left = MANY;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), DEBUGFS "/%s/times", kind);
	f = fopen(path, "r");
	if (!f)
		return -errno;
	if (fscanf(f, "%u", &left) != 1)
		left = MANY;
	fclose(f);
	return MANY - left;
}

#endif
