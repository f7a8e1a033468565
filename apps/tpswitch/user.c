// SPDX-License-Identifier: GPL-2.0
/* What programs of a user may have: ports, slots of rings, and bytes of memory */

#include <errno.h>
#include <stdlib.h>

#include "tpswitch.h"

static struct sw_user *find(struct sw *sw, u32 uid)
{
	struct sw_user *user = sw->users;

	while (user && user->uid != uid)
		user = user->next;
	return user;
}

/**
 * sw_user_get - find a user, or add one with the limits of all others
 * @sw: switch
 * @uid: number of the user
 *
 * Return: the user, or NULL without memory.
 */
struct sw_user *sw_user_get(struct sw *sw, u32 uid)
{
	struct sw_user *user = find(sw, uid);

	if (user)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = uid;
	user->next = sw->users;
	sw->users = user;
	return user;
}

/* A user who has nothing, and no limits of his own, needs no memory. */
static void put(struct sw *sw, struct sw_user *user)
{
	struct sw_user **at = &sw->users;

	if (user->used.ports || user->own)
		return;
	while (*at != user)
		at = &(*at)->next;
	*at = user->next;
	free(user);
}

static bool fits(const struct sw_quota *used, const struct sw_quota *more,
		 const struct sw_quota *most)
{
	return used->ports + more->ports <= most->ports &&
	       used->slots + more->slots <= most->slots &&
	       used->bytes + more->bytes <= most->bytes;
}

/* With a factor of 1 or -1 */
static void add(struct sw_quota *used, const struct sw_quota *more, u64 factor)
{
	used->ports += factor * more->ports;
	used->slots += factor * more->slots;
	used->bytes += factor * more->bytes;
}

/**
 * sw_user_charge - count what a program wants
 * @sw: switch
 * @uid: its user
 * @more: what it wants
 * @user: set to its user, or to NULL after an error
 *
 * Return: 0, or -errno: %EDQUOT if it is above a limit.
 */
int sw_user_charge(struct sw *sw, u32 uid, const struct sw_quota *more,
		   struct sw_user **user)
{
	*user = sw_user_get(sw, uid);
	if (!*user)
		return -ENOMEM;
	if (!fits(&(*user)->used, more, sw_user_quota(sw, *user)) ||
	    !fits(&sw->all_used, more, &sw->all)) {
		put(sw, *user);
		*user = NULL;
		return -EDQUOT;
	}
	add(&(*user)->used, more, 1);
	add(&sw->all_used, more, 1);
	return 0;
}

/**
 * sw_user_uncharge - a port is gone
 * @sw: switch
 * @user: its user, which may be freed
 * @less: what was counted for it
 */
void sw_user_uncharge(struct sw *sw, struct sw_user *user,
		      const struct sw_quota *less)
{
	add(&user->used, less, -1);
	add(&sw->all_used, less, -1);
	put(sw, user);
}
