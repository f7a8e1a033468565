// SPDX-License-Identifier: GPL-2.0
/* What the commands print in the same way */

#include <ctype.h>
#include <stdio.h>

#include "tp4.h"

/**
 * print_string - print a JSON string
 * @s: the string; bytes that are not ASCII are printed as Latin-1
 */
void print_string(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		unsigned char c = *s;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

/**
 * print_processes - print the processes that have a socket, and a line feed
 * @l: what is known
 * @ino: inode of the socket
 */
void print_processes(const struct listing *l, uint32_t ino)
{
	const char *separator = "", *c;
	int i;

	for (i = 0; i < l->nr_holders; i++) {
		if (l->holders[i].ino != ino)
			continue;
		fputs(separator, stdout);
		/* A process chooses its name, which may control a terminal. */
		for (c = l->holders[i].name; *c; c++)
			putchar(isprint((unsigned char)*c) ? *c : '?');
		printf(" (%d)", l->holders[i].pid);
		separator = ", ";
	}
	/* Of another user, or in the kernel's hands while it closes */
	printf("%s\n", *separator ? "" : "?");
}

/**
 * print_json_processes - print the processes that have a socket, as a member
 * @l: what is known
 * @ino: inode of the socket
 */
void print_json_processes(const struct listing *l, uint32_t ino)
{
	const char *separator = "";
	int i;

	printf("\"processes\":[");
	for (i = 0; i < l->nr_holders; i++) {
		if (l->holders[i].ino != ino)
			continue;
		printf("%s{\"pid\":%d,\"name\":", separator, l->holders[i].pid);
		print_string(l->holders[i].name);
		putchar('}');
		separator = ",";
	}
	putchar(']');
}
