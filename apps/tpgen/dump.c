// SPDX-License-Identifier: GPL-2.0
/* tpgen: packets as hexadecimal text, which text2pcap(1) understands */
#include <ctype.h>

#include "tpgen.h"

#define LINE		16

/**
 * dump_packet - print a packet
 * @what: "sent" or "received"
 * @data: packet, or the part of it in its first frame
 * @len: bytes
 */
void dump_packet(const char *what, const __u8 *data, unsigned int len)
{
	unsigned int at, i;

	flockfile(stdout);
	printf("# %s, %u bytes\n", what, len);
	for (at = 0; at < len; at += LINE) {
		printf("%06x ", at);
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
