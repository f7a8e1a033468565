// SPDX-License-Identifier: GPL-2.0
/* tpgen: packets as hexadecimal text, which text2pcap(1) understands */
#include <ctype.h>
#include <stdlib.h>

#include "tpgen.h"

#define LINE		16

static void print(const char *what, const __u8 *data, size_t len)
{
	size_t at, i;

	flockfile(stdout);
	printf("# %s, %zu bytes\n", what, len);
	for (at = 0; at < len; at += LINE) {
		printf("%06zx ", at);
		for (i = at; i < at + LINE; i++) {
			if (i < len)
				printf(" %02x", data[i]);
			else
				printf("   ");
		}
		printf("  ");
		for (i = at; i < at + LINE && i < len; i++)
			putchar(isprint(data[i]) ? data[i] : '.');
		putchar('\n');
	}
	fflush(stdout);
	funlockfile(stdout);
}

/**
 * dump_frame - add a frame of a packet, and print the packet if it is the last
 * @d: packet
 * @what: "sent" or "received"
 * @data: frame
 * @len: bytes of it
 * @more: frames follow
 */
void dump_frame(struct dump *d, const char *what, const __u8 *data,
		unsigned int len, bool more)
{
	__u8 *all = realloc(d->data, d->len + len + 1);

	if (!all)
		err(1, "dump");
	memcpy(all + d->len, data, len);
	d->data = all;
	d->len += len;
	if (more)
		return;
	print(what, d->data, d->len);
	free(d->data);
	d->data = NULL;
	d->len = 0;
	d->packets++;
}
