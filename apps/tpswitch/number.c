// SPDX-License-Identifier: GPL-2.0
/* Numbers of the command line, of commands and of ports */

#include <errno.h>
#include <stdlib.h>

#include "tpswitch.h"

/**
 * sw_number - parse a number
 * @text: the number: decimal, 0x... or 0..., with K, M or G behind it for powers of
 *        1024
 * @least: the least that is allowed
 * @most: the most that is allowed
 * @n: set to it
 *
 * Return: true if it is a number from @least to @most.
 */
bool sw_number(const char *text, u64 least, u64 most, u64 *n)
{
	static const char unit[] = "KMG";
	const char *at;
	char *end;
	int shift;

	/* strtoull() takes a sign and blanks, too. */
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*n = strtoull(text, &end, 0);
	if (errno)
		return false;
	at = *end ? strchr(unit, *end) : NULL;
	if (at) {
		shift = 10 * (at - unit + 1);
		if (*n > ~0ull >> shift)
			return false;
		*n <<= shift;
		end++;
	}
	return !*end && *n >= least && *n <= most;
}
