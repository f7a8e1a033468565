// SPDX-License-Identifier: GPL-2.0
/* tp4: shows and prepares devices for AF_PACKET V4 */

#include <stdio.h>
#include <string.h>

#include "tp4.h"

static const char help[] =
"usage: tp4 list [-j|--json] [DEVICE...]\n"
"       tp4 steer [-k|--keep] DEVICE FLOW QUEUE\n"
"       tp4 steer -d|--delete DEVICE RULE\n"
"\n"
"list    the devices, with their zero-copy mode and queue pairs, and the\n"
"        processes whose V4 sockets use them\n"
"  -j, --json      as JSON\n"
"steer   receive a flow on one queue, for a program in zero-copy mode, until\n"
"        Ctrl-C. FLOW is tcp, udp or sctp, and one or more of src ADDRESS,\n"
"        dst ADDRESS, sport PORT and dport PORT\n"
"  -k, --keep      return at once; the rule stays\n"
"  -d, --delete    remove a rule\n"
"\n"
"-h, --help        print this\n";

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(help, stdout);
			return 0;
		}
	if (argc > 1 && !strcmp(argv[1], "list"))
		return list_main(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "steer"))
		return steer_main(argc - 1, argv + 1);
	fputs(help, stderr);
	return 2;
}
