// SPDX-License-Identifier: GPL-2.0
/* tp4: shows and prepares devices for AF_PACKET V4 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <tpacket4.h>

#include "tp4.h"

static const char help[] =
"usage: tp4 list [-j|--json] [DEVICE...]\n"
"       tp4 stats [-j|--json] [-1|-c|--count N] [PID]\n"
"       tp4 steer [-k|--keep] DEVICE FLOW QUEUE|drop\n"
"       tp4 steer -d|--delete DEVICE RULE\n"
"       tp4 steer -l|--list DEVICE\n"
"       tp4 hold DEVICE...\n"
"\n"
"list    the devices, with their zero-copy mode and queue pairs, and the\n"
"        processes whose V4 sockets use them\n"
"  -j, --json      as JSON\n"
"stats   packets a second of each V4 socket, or of those of a process, and those\n"
"        that were dropped, by cause; each second, until Ctrl-C\n"
"  -1, -c, --count N\n"
"                  print this once, or N times, and exit\n"
"  -j, --json      as JSON, an array in a line each time\n"
"steer   receive a flow on one queue, for a program in zero-copy mode, or drop\n"
"        it, until Ctrl-C. FLOW is tcp, udp, sctp or ip, and one or more of\n"
"        src ADDRESS[/LENGTH], dst ADDRESS[/LENGTH], sport PORT, dport PORT,\n"
"        vlan ID and mac DESTINATION; or ether, and of src MAC, dst MAC, vlan ID\n"
"  -k, --keep      return at once; the rule stays\n"
"  -d, --delete    remove a rule\n"
"  -l, --list      list the rules\n"
"hold    keep the link up when programs in zero-copy mode start and stop, until\n"
"        Ctrl-C, on devices whose driver resets the port for them\n"
"\n"
"-h, --help        print this\n"
"-V, --version     print the version\n";

/*
 * False if the kernel has no V4. A user who cannot open a packet socket cannot
 * use it, but may see who does.
 */
static bool kernel_has_v4(void)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	bool has = true;

	if (fd < 0)
		return errno != EAFNOSUPPORT;
	if (tp4_setopt(fd, PACKET_VERSION, TPACKET_V4) == -EINVAL)
		has = false;
	close(fd);
	return has;
}

static int run(const char *command, int argc, char **argv)
{
	/* getopt_long() starts its messages with this. */
	argv[0] = "tp4";
	if (!kernel_has_v4()) {
		fprintf(stderr, "tp4: this kernel has no AF_PACKET V4 (CONFIG_PACKET_V4)\n");
		return 1;
	}
	if (!strcmp(command, "list"))
		return list_main(argc, argv);
	if (!strcmp(command, "stats"))
		return stats_main(argc, argv);
	if (!strcmp(command, "hold"))
		return hold_main(argc, argv);
	return steer_main(argc, argv);
}

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
	if (argc > 1 && (!strcmp(argv[1], "list") || !strcmp(argv[1], "stats") ||
			 !strcmp(argv[1], "steer") || !strcmp(argv[1], "hold")))
		return run(argv[1], argc - 1, argv + 1);
	fputs(help, stderr);
	return 2;
}
