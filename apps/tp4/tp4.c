// SPDX-License-Identifier: GPL-2.0
/* tp4: shows and prepares devices for AF_PACKET V4 */

#include <stdio.h>
#include <string.h>
#include <tpacket4.h>

#include "tp4.h"

static const char help[] =
"usage: tp4 list [-j|--json] [DEVICE...]\n"
"       tp4 stats [-j|--json] [-1|-c|--count N] [PID]\n"
"       tp4 steer [-k|--keep] DEVICE FLOW QUEUE\n"
"       tp4 steer -d|--delete DEVICE RULE\n"
"\n"
"list    the devices, with their zero-copy mode and queue pairs, and the\n"
"        processes whose V4 sockets use them\n"
"  -j, --json      as JSON\n"
"stats   packets a second of each V4 socket, or of those of a process, and those\n"
"        that were dropped, by cause; each second, until Ctrl-C\n"
"  -1, -c, --count N\n"
"                  print this once, or N times, and exit\n"
"  -j, --json      as JSON, an array in a line each time\n"
"steer   receive a flow on one queue, for a program in zero-copy mode, until\n"
"        Ctrl-C. FLOW is tcp, udp or sctp, and one or more of src ADDRESS,\n"
"        dst ADDRESS, sport PORT and dport PORT\n"
"  -k, --keep      return at once; the rule stays\n"
"  -d, --delete    remove a rule\n"
"\n"
"-h, --help        print this\n"
"-V, --version     print the version\n";

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(help, stdout);
			return 0;
		}
	if (argc > 1 && (!strcmp(argv[1], "--version") ||
			 !strcmp(argv[1], "-V"))) {
		printf("tp4 for tpacket4.h %d.%d\n", TP4_VERSION_MAJOR,
		       TP4_VERSION_MINOR);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "list"))
		return list_main(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "stats"))
		return stats_main(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "steer"))
		return steer_main(argc - 1, argv + 1);
	fputs(help, stderr);
	return 2;
}
