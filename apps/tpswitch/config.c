// SPDX-License-Identifier: GPL-2.0
/* The configuration file: commands that are run at the start and at each SIGHUP */

#include <errno.h>
#include <stdlib.h>

#include "tpswitch.h"

/* Call a function for each command of the file. */
static int for_each_command(struct sw *sw, int (*fn)(struct sw *sw, char *line,
						     unsigned int number))
{
	FILE *in = fopen(sw->config, "re");
	unsigned int number = 0;
	char line[512];
	int err = 0;

	if (!in) {
		fprintf(stderr, "tpswitch: %s: %s\n", sw->config, strerror(errno));
		return -1;
	}
	while (!err && fgets(line, sizeof(line), in)) {
		char *p = line + strspn(line, " \t");

		number++;
		if (!strchr(line, '\n') && !feof(in)) {
			fprintf(stderr, "tpswitch: %s, line %u: too long\n",
				sw->config, number);
			err = -1;
			break;
		}
		p[strcspn(p, "#\n")] = '\0';
		if (*p)
			err = fn(sw, p, number);
	}
	if (ferror(in)) {
		fprintf(stderr, "tpswitch: %s: %s\n", sw->config, strerror(errno));
		err = -1;
	}
	fclose(in);
	return err;
}

static int run(struct sw *sw, char *line, unsigned int number)
{
	int err = sw_command(sw, line, stderr);

	if (err)
		fprintf(stderr, "tpswitch: %s, line %u: not done\n", sw->config,
			number);
	return err;
}

/* A mistake in one line must not keep the others from being run while packets flow. */
static int run_again(struct sw *sw, char *line, unsigned int number)
{
	(void)run(sw, line, number);
	return 0;
}

/* Note that a port is still in the file. */
static int look(struct sw *sw, char *line, unsigned int number)
{
	char *name = strsep(&line, " \t");
	struct sw_port *port;

	(void)number;
	port = line && !strcmp(name, "add") ? sw_config_port(sw, line) : NULL;
	if (port)
		port->listed = sw->readings;
	return 0;
}

/**
 * sw_config_port - find the port that a line of the file adds
 * @sw: switch
 * @spec: the words behind add, which are those that have added the port
 *
 * Return: the port, or NULL.
 */
struct sw_port *sw_config_port(struct sw *sw, const char *spec)
{
	size_t len;
	unsigned int i;

	spec += strspn(spec, " \t");
	for (len = strlen(spec); len && strchr(" \t", spec[len - 1]); )
		len--;
	for (i = 0; i < sw->nr_ports; i++) {
		const char *own = sw->list[i]->spec;

		if (own && strlen(own) == len && !strncmp(own, spec, len))
			return sw->list[i];
	}
	return NULL;
}

/**
 * sw_config_read - run the commands of the file
 * @sw: switch
 *
 * Return: 0, or -1 after a message.
 */
int sw_config_read(struct sw *sw)
{
	int err;

	sw->readings++;
	sw->in_file = true;
	err = for_each_command(sw, run);
	sw->in_file = false;
	return err;
}

/**
 * sw_config_reload - remove the ports that the file has no more, and run its commands
 * @sw: switch, between two rounds
 */
void sw_config_reload(struct sw *sw)
{
	unsigned int i;

	sw->reload = false;
	sw->readings++;
	if (for_each_command(sw, look))
		return;
	/* The last port takes the place of one that is removed. */
	for (i = sw->nr_ports; i--; )
		if (sw->list[i]->listed && sw->list[i]->listed != sw->readings)
			sw_port_remove(sw->list[i]);
	/* Ports that were changed are added again: their queues must be free. */
	sw_port_reap(sw);
	sw->in_file = true;
	(void)for_each_command(sw, run_again);
	sw->in_file = false;
	fprintf(stderr, "tpswitch: %s: read again\n", sw->config);
}
