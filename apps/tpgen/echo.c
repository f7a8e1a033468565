// SPDX-License-Identifier: GPL-2.0
/* tpgen: what ping and pong share (see echo.h) */
#include "echo.h"
#include "pace.h"

#define WAIT_MS		100

/**
 * echo_kick - let the kernel send what was posted
 * @w: thread
 *
 * Return: false, with the reason noted, if it fails.
 */
bool echo_kick(struct worker *w)
{
	int e = 0;

	if (tp4_ring_pending(&w->sock.tx))
		e = port_kick(w);
	if (e)
		worker_error(w, TP4_IN_KICK, e);
	return !e;
}

/**
 * echo_recycle - post frames again that were received
 * @w: thread, whose driver gets these frames
 * @n: number of slots
 *
 * Return: false, with the reason noted, if it fails.
 */
bool echo_recycle(struct worker *w, unsigned int n)
{
	int e = 0;

	tp4_ring_recycle(&w->sock.rx, n);
	if (tp4_rx_need_kick(&w->sock))
		e = tp4_rx_kick(&w->sock);
	if (e)
		worker_error(w, TP4_IN_WAIT, e);
	return !e;
}

/**
 * echo_wait - sleep until something is received
 * @w: thread
 * @b: how often this was called without success
 * @until: time of CLOCK_MONOTONIC to return at in any case
 *
 * Return: false, with the reason noted, if it fails.
 */
bool echo_wait(struct worker *w, struct tp4_backoff *b, __u64 until)
{
	__u64 now;
	int e, ms = WAIT_MS;

	tp4_ring_flush(&w->sock.rx);
	if (!tp4_backoff(b) || w->cfg->spin)
		return true;
	now = clock_ns(CLOCK_MONOTONIC);
	if (until <= now)
		return true;
	if ((until - now) / 1000000 < WAIT_MS)
		ms = (until - now) / 1000000;
	if (!ms) {
		pace_sleep(now, until, false);
		return true;
	}
	e = tp4_wait(&w->sock, POLLIN, ms);
	if (e < 0)
		worker_error(w, TP4_IN_WAIT, e);
	return e >= 0;
}
