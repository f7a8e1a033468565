// SPDX-License-Identifier: GPL-2.0
/*
 * The shares of the program and of the kernel in the time. Every few
 * microseconds, a perf clock event samples this process: it was in the program,
 * or in the kernel for it or for an interrupt. This needs no hardware counter
 * and therefore works in any emulator. Under "-icount", shares of the time are
 * shares of the instructions. The kernel's tick-based accounting is too coarse,
 * and precise accounting takes time itself.
 */
#include <stdio.h>
#include <sys/syscall.h>
#include <linux/perf_event.h>

#include "tpbench.h"

#define PERIOD_NS	10007	/* a prime number, to avoid aliasing */
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

/* In nanoseconds, but not on newer kernels, and for root only */
static double idle_seconds_of_timers(void)
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

/* Idle seconds of the CPUs since boot, or less than 0 if not available */
double idle_seconds(void)
{
	double seconds = idle_seconds_of_timers();
	unsigned long long idle, iowait;
	FILE *f;

	if (seconds >= 0)
		return seconds;
	/* Its unit is 10 ms on most systems. */
	f = fopen("/proc/stat", "r");
	if (f && fscanf(f, "cpu %*u %*u %*u %llu %llu", &idle, &iowait) == 2)
		seconds = (double)(idle + iowait) / sysconf(_SC_CLK_TCK);
	if (f)
		fclose(f);
	return seconds;
}

/*
 * The program's share of the time of this process since split_start(), and in
 * *seconds its duration, including the cost of sampling.
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
