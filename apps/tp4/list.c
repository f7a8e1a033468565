// SPDX-License-Identifier: GPL-2.0
/* tp4 list: devices, their zero-copy mode, and who uses them */

#include <errno.h>
#include <getopt.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tpacket4_device.h>
#include "tp4.h"

static const char *way_of(const struct tp4_device *d)
{
	return d->zerocopy == TP4_WAY_DRIVER ? "driver" : NULL;
}

/* --- as a table ----------------------------------------------------------- */

static void print_device(const struct listing *l, int ifindex, const char *name,
			 const struct tp4_device *d)
{
	const char *way = d ? way_of(d) : NULL;
	char queues[16] = "-";
	int i, lines = 0;

	if (d && d->queues)
		snprintf(queues, sizeof(queues), "%u", d->queues);
	for (i = 0; i < l->nr_sockets; i++) {
		const struct v4_socket *s = &l->sockets[i];

		if (s->ifindex != ifindex)
			continue;
		if (lines++)
			printf("%-15s %-9s %6s", "", "", "");
		else
			printf("%-15s %-9s %6s", name, way ? way : "-", queues);
		printf("  %-9s ", s->zerocopy ? "zero-copy" : "copy");
		if (s->zerocopy)
			printf("%5u  ", s->queue);
		else
			printf("%5s  ", "-");
		print_processes(l, s->ino);
	}
	if (!lines)
		printf("%-15s %-9s %6s\n", name, way ? way : "-", queues);
}

/* --- as JSON -------------------------------------------------------------- */

static void print_json_socket(const struct listing *l, const struct v4_socket *s)
{
	printf("{\"inode\":%u,\"mode\":\"%s\"", s->ino,
	       s->zerocopy ? "zero-copy" : "copy");
	if (s->zerocopy)
		printf(",\"queue\":%u", s->queue);
	printf(",\"rx_descriptors\":%u,\"tx_descriptors\":%u,", s->rx_nr,
	       s->tx_nr);
	print_json_processes(l, s->ino);
	putchar('}');
}

static void print_json_device(const struct listing *l, int ifindex,
			      const char *name, const struct tp4_device *d)
{
	const char *separator = "";
	int i;

	printf("{\"device\":");
	print_string(name);
	printf(",\"ifindex\":%d,\"zerocopy\":", ifindex);
	if (d && way_of(d))
		print_string(way_of(d));
	else
		printf("null");
	if (d)
		printf(",\"queues\":%u,\"pass_to_kernel\":%s", d->queues,
		       d->pass_to_kernel ? "true" : "false");
	printf(",\"sockets\":[");
	for (i = 0; i < l->nr_sockets; i++) {
		if (l->sockets[i].ifindex != ifindex)
			continue;
		fputs(separator, stdout);
		print_json_socket(l, &l->sockets[i]);
		separator = ",";
	}
	printf("]}");
}

/* --- both ----------------------------------------------------------------- */

static bool is_asked_for(const char *name, int argc, char **argv)
{
	int i;

	for (i = optind; i < argc; i++)
		if (!strcmp(name, argv[i]))
			return true;
	return optind == argc;
}

static int list(const struct listing *l, bool json, int argc, char **argv)
{
	struct if_nameindex *all = if_nameindex(), *i;
	struct tp4_device device;
	bool first = true;

	if (!all) {
		perror("tp4: list of devices");
		return 1;
	}
	if (json)
		putchar('[');
	else
		printf("%-15s %-9s %6s  %-9s %5s  %s\n", "DEVICE", "ZERO-COPY",
		       "QUEUES", "MODE", "QUEUE", "PROCESS");
	for (i = all; i->if_index; i++) {
		const struct tp4_device *d = &device;

		if (!is_asked_for(i->if_name, argc, argv))
			continue;
		/* Old kernels do not report this. */
		if (tp4_device(i->if_index, &device))
			d = NULL;
		if (json) {
			fputs(first ? "" : ",\n", stdout);
			print_json_device(l, i->if_index, i->if_name, d);
		} else {
			print_device(l, i->if_index, i->if_name, d);
		}
		first = false;
	}
	if_freenameindex(all);
	if (json)
		printf("]\n");
	return 0;
}

/**
 * list_main - tp4 list
 * @argc: number of arguments, from "list" on
 * @argv: the arguments
 *
 * Return: the exit status.
 */
int list_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ }
	};
	struct listing l = { 0 };
	bool json = false;
	int c, i, rc;

	while ((c = getopt_long(argc, argv, "j", options, NULL)) != -1) {
		if (c != 'j')
			return 2;
		json = true;
	}
	for (i = optind; i < argc; i++) {
		if (if_nametoindex(argv[i]))
			continue;
		fprintf(stderr, "tp4: %s: %s\n", argv[i], strerror(errno));
		return 1;
	}
	if (find_all(&l))
		return 1;
	rc = list(&l, json, argc, argv);
	forget_all(&l);
	return rc;
}
