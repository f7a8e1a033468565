// SPDX-License-Identifier: GPL-2.0
/* The table of ports, their limits and their end */

#include <errno.h>
#include <stdlib.h>

#include "macs.h"

/**
 * sw_port_add - give a port a number
 * @sw: switch
 * @port: port, zeroed but for ops and sources
 * @name: name, or NULL for one with the number
 *
 * Return: the number, or -errno: %ENOSPC if there are too many, %EEXIST if the
 * name is taken.
 */
int sw_port_add(struct sw *sw, struct sw_port *port, const char *name)
{
	unsigned int nr = 1;

	if (name && sw_port_find(sw, name))
		return -EEXIST;
	while (nr <= SW_PORTS && sw->ports[nr])
		nr++;
	if (nr > SW_PORTS)
		return -ENOSPC;
	port->nr = nr;
	port->sw = sw;
	port->id = ++sw->ids;
	port->learning = true;
	port->from = port->to = &sw->macs->none;
	if (name)
		snprintf(port->name, sizeof(port->name), "%s", name);
	else
		snprintf(port->name, sizeof(port->name), "ring%u", nr);
	sw->ports[nr] = port;
	if (nr > sw->last_port)
		sw->last_port = nr;
	sw->list[sw->nr_ports++] = port;
	return nr;
}

/**
 * sw_port_remove - remove a port at the end of the round
 * @port: port, which gets no packet any more
 */
void sw_port_remove(struct sw_port *port)
{
	struct sw *sw = port->sw;
	unsigned int i;

	if (port->gone)
		return;
	port->gone = true;
	sw->gone = true;
	sw_forget(sw, port, true);
	for (i = 0; sw->list[i] != port; )
		i++;
	sw->list[i] = sw->list[--sw->nr_ports];
}

/**
 * sw_port_reap - free the ports that were removed
 * @sw: switch, between two rounds
 */
void sw_port_reap(struct sw *sw)
{
	unsigned int nr;

	sw->gone = false;
	for (nr = 1; nr <= SW_PORTS; nr++) {
		struct sw_port *port = sw->ports[nr];

		if (!port || !port->gone)
			continue;
		sw->ports[nr] = NULL;
		sw_mirror_stop(port, -1);
		free(port->spec);
		free(port->trunk);
		port->ops->free(port);
	}
	while (sw->last_port && !sw->ports[sw->last_port])
		sw->last_port--;
}

/**
 * sw_port_find - find a port
 * @sw: switch
 * @name: its name, or its number
 *
 * Return: the port, or NULL.
 */
struct sw_port *sw_port_find(struct sw *sw, const char *name)
{
	unsigned long nr;
	unsigned int i;
	char *end;

	for (i = 0; i < sw->nr_ports; i++)
		if (!strcmp(sw->list[i]->name, name))
			return sw->list[i];
	nr = strtoul(name, &end, 10);
	if (*name && !*end && nr && nr <= SW_PORTS && sw->ports[nr] &&
	    !sw->ports[nr]->gone)
		return sw->ports[nr];
	return NULL;
}

/* Add what a time has brought, up to a tenth of a second. */
static void refill(struct sw_bucket *b, u64 ns)
{
	double most = b->rate / 10.0;

	if (most < 1)
		most = 1;
	b->tokens += b->rate * (ns / 1e9);
	if (b->tokens > most)
		b->tokens = most;
}

/* What is above what is left is taken from what comes. */
static bool take(struct sw_bucket *b, double n)
{
	if (!b->rate)
		return true;
	if (b->tokens < 1)
		return false;
	b->tokens -= n;
	return true;
}

/**
 * sw_port_limited - count a packet for the limits of the port that sends it
 * @port: port
 * @pkt: packet
 *
 * Return: true if the packet is above a limit and must be dropped.
 */
bool sw_port_limited(struct sw_port *port, const struct sw_packet *pkt)
{
	u64 ns = port->sw->now - port->refilled;

	if (ns) {
		refill(&port->pps, ns);
		refill(&port->bps, ns);
		port->refilled = port->sw->now;
	}
	return !take(&port->pps, sw_segments(pkt)) ||
	       !take(&port->bps, pkt->len * 8.0);
}

/**
 * sw_port_set_special - take the slower path if a port needs it
 * @port: port whose limits, mirror or VLANs have changed
 */
void sw_port_set_special(struct sw_port *port)
{
	port->special = port->pps.rate || port->bps.rate || port->mirror ||
			port->untagged || port->trunk;
}
