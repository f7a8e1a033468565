// SPDX-License-Identifier: GPL-2.0
/* tpgen: packets that the kernel has refused, and other errors */
#include "tpgen.h"

/* Errors that have been printed, by their number */
static bool told[REFUSALS];

/* The same packet will be refused again. */
static bool is_final(int error)
{
	return error == EINVAL || error == EMSGSIZE || error == EOPNOTSUPP;
}

/**
 * refuse_packet - count a packet that was refused, and print why
 * @w: thread; refuse_check() tells whether it can go on
 * @error: errno of its descriptor
 */
void refuse_packet(struct worker *w, __u8 error)
{
	count_up(&w->n.tx_refused, 1);
	count_up(&w->refused[error], 1);
	w->last_refusal = error;
	if (error == ENETDOWN || error == ECANCELED)
		w->hopeless = UINT32_MAX;
	else if (is_final(error) && w->hopeless < UINT32_MAX)
		w->hopeless++;
	if (!__atomic_exchange_n(&told[error], true, __ATOMIC_RELAXED))
		warnx("%s: a packet was refused: %s", w->cfg->ifname,
		      tp4_strerror(TP4_IN_TX, error));
}

/**
 * refuse_check - check whether any packet can still be sent
 * @w: thread
 * @packets: so many packets that were refused one after the other, for a reason
 *           that stays, are all that there are
 *
 * Return: false, with the reason noted, if the thread has to end.
 */
bool refuse_check(struct worker *w, __u64 packets)
{
	if (w->hopeless < packets)
		return true;
	worker_error(w, TP4_IN_TX, w->last_refusal);
	return false;
}

/**
 * refuse_any_final - check whether packets were refused that never can be sent
 * @w: thread
 *
 * Return: true if so.
 */
bool refuse_any_final(const struct worker *w)
{
	unsigned int i;

	for (i = 0; i < REFUSALS; i++)
		if (w->refused[i] && is_final(i))
			return true;
	return false;
}

/**
 * worker_error - note why a thread ends early
 * @w: thread
 * @where: where the error occurred, as for tp4_strerror()
 * @e: the errno, positive or negative
 */
void worker_error(struct worker *w, enum tp4_where where, int e)
{
	const char *what = where == TP4_IN_KICK || where == TP4_IN_TX ?
			   "send" : "receive";

	worker_fail(w, "%s: %s", what, tp4_strerror(where, e));
}
