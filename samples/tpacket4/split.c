// SPDX-License-Identifier: GPL-2.0
/*
 * Whose time is it, the program's or the kernel's? A clock event of perf's
 * notes every few microseconds what it has interrupted in this process: the
 * program, or the kernel on its behalf or in an interrupt on top of it. It
 * needs no counter in hardware, so it works in every emulator, and under
 * "-icount" its parts of the time are parts of the instructions. The kernel's
 * accounting by ticks is too coarse for that, and finer accounting costs time
 * itself.
 */
#include <stdio.h>
#include <sys/syscall.h>
#include <linux/perf_event.h>

#include "tpbench.h"

#define PERIOD_NS	10007	/* a prime, so not in step with anything */
#define PAGES		64	/* of records; a power of two */

static struct perf_event_mmap_page *page;
static int fd;

void split_start(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = PERIOD_NS,
	};

	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1,
		     PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		err(1, "--split: perf_event_open");
	page = mmap(NULL, (1 + PAGES) * sysconf(_SC_PAGESIZE),
		    PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		err(1, "--split: mmap");
}

/*
 * Seconds that the CPUs have been idle since boot, or less than 0 if the kernel
 * does not tell. Not by /proc/stat, which counts in hundredths.
 */
double idle_seconds(void)
{
	FILE *f = fopen("/proc/timer_list", "r");
	unsigned long long ns, sum = 0;
	bool found = false;
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, " .idle_sleeptime : %llu", &ns) == 1) {
			sum += ns;
			found = true;
		}
	}
	if (f)
		fclose(f);
	return found ? sum / 1e9 : -1;
}

/*
 * What part of this process's time since split_start() was the program's; and,
 * in *seconds, how long that was, with what the clock itself took of it.
 */
double split_stop(double *seconds)
{
	__u64 at, head, user = 0, all = 0;
	const __u8 *data;

	head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	data = (__u8 *)page + page->data_offset;
	for (at = 0; at < head; ) {
		const struct perf_event_header *h;

		h = (void *)(data + (at & (page->data_size - 1)));
		if (h->type == PERF_RECORD_SAMPLE) {
			all++;
			user += (h->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
				PERF_RECORD_MISC_USER;
		}
		at += h->size;
	}
	close(fd);
	if (!all)
		errx(1, "--split: no sample");
	*seconds = user * PERIOD_NS / 1e9;
	return (double)user / all;
}
