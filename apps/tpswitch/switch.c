// SPDX-License-Identifier: GPL-2.0
/* The loop of the switch: polls what is active and sleeps otherwise */

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "tpswitch.h"

/* Most rounds between two looks at what has become active meanwhile */
#define ROUNDS		16

/* How often a full device is kicked again, in milliseconds */
#define RETRY		1

/**
 * sw_watch - watch a file descriptor
 * @sw: switch
 * @fd: file descriptor; closing it ends this
 * @events: EPOLL...
 * @ev: event
 *
 * Return: 0, or -errno.
 */
int sw_watch(struct sw *sw, int fd, u32 events, struct sw_event *ev)
{
	struct epoll_event e = { .events = events, .data.ptr = ev };

	return epoll_ctl(sw->epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

/**
 * sw_activate - poll a source from the next round on
 * @sw: switch
 * @src: source
 */
void sw_activate(struct sw *sw, struct sw_source *src)
{
	src->idle = 0;
	if (src->active || src->port->gone)
		return;
	if (sw->nr_active == sw->max_active) {
		unsigned int n = sw->max_active * 2 + 64;
		void *mem = realloc(sw->active, n * sizeof(*sw->active));

		if (!mem)
			return;		/* its next event tries again */
		sw->active = mem;
		sw->max_active = n;
	}
	src->active = true;
	sw->active[sw->nr_active++] = src;
}

/**
 * sw_quit_source - take a source that goes away off the list of active ones
 * @sw: switch, not in a round
 * @src: source
 */
void sw_quit_source(struct sw *sw, struct sw_source *src)
{
	unsigned int i;

	for (i = 0; src->active && i < sw->nr_active; i++)
		if (sw->active[i] == src) {
			sw->active[i] = sw->active[--sw->nr_active];
			src->active = false;
		}
}

/**
 * sw_read_clock - set the time of the switch
 * @sw: switch
 */
void sw_read_clock(struct sw *sw)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	sw->now = (u64)t.tv_sec * 1000000000 + t.tv_nsec;
	sw->seconds = t.tv_sec;
}

static void wait_for_events(struct sw *sw, int timeout)
{
	struct epoll_event e[64];
	int i, n = epoll_wait(sw->epoll, e, 64, timeout);

	/* It may have slept for long. */
	if (n > 0)
		sw_read_clock(sw);
	for (i = 0; i < n; i++) {
		struct sw_event *ev = e[i].data.ptr;

		ev->fn(sw, ev, e[i].events);
	}
}

/* Poll all active sources once; return how many bytes they have forwarded. */
static long poll_sources(struct sw *sw)
{
	struct sw_frag frag[SW_FRAGS];
	unsigned int i, n, left = 0;
	long spent = 0;

	for (i = 0; i < sw->nr_active; i++) {
		struct sw_source *src = sw->active[i];

		if (unlikely(src->job.nr) && !src->port->gone) {
			sw_resume(src);
			spent += SW_BUDGET - sw->budget;
			sw->active[left++] = src;
			continue;
		}
		n = src->port->gone ? 0 : src->ops->input(src, frag);
		if (n) {
			sw_forward(src, frag, n);
			spent += SW_BUDGET - sw->budget;
			src->idle = 0;
			sw->active[left++] = src;
			continue;
		}
		if (unlikely(sw->nr_waking))
			sw_wake(sw);
		if (src->port->gone ||
		    (src->idle++ >= sw->spin && !src->ops->sleep(src))) {
			src->active = false;
			continue;
		}
		sw->active[left++] = src;
	}
	sw->nr_active = left;
	return spent;
}

/**
 * sw_run - switch packets until @sw->stop
 * @sw: switch
 */
void sw_run(struct sw *sw)
{
	unsigned int round = 0;
	long spent = 0;

	while (!sw->stop) {
		if (!sw->nr_active) {
			wait_for_events(sw, sw->stalled ? RETRY : -1);
		} else if (!(++round % ROUNDS) || spent > SW_BUDGET) {
			wait_for_events(sw, 0);
			spent = 0;
		}
		sw_read_clock(sw);
		spent += poll_sources(sw);
		if (unlikely(sw->stalled))
			sw_dev_retry(sw);
		if (unlikely(sw->gone)) {
			sw_wake(sw);
			sw_loop_end(sw);
			sw_port_reap(sw);
			if (sw->reload)
				sw_config_reload(sw);
		}
	}
}
