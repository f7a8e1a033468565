// SPDX-License-Identifier: GPL-2.0
/* What commands print: ports, counters, addresses and limits, as text or as JSON */

#include "macs.h"

static const char *const counters[] = {
	"in", "in_bytes", "out", "out_bytes", "out_drops", "out_errors", "in_errors",
	"in_limited", "in_nowhere", "in_spoofed", "in_vlan", "macs", "fixed", "unlearned",
	"mirror_lost",
};

#define COUNTERS	(sizeof(counters) / sizeof(*counters))

/* Read the counters of a port; return how many it has: the last needs a mirror. */
static unsigned int read_counters(const struct sw_port *port, u64 *n)
{
	const struct sw_counters *c = &port->count;
	const u64 all[COUNTERS] = {
		c->in, c->in_bytes, c->out, c->out_bytes, c->out_drops, c->out_errors,
		c->in_errors, c->in_limited, c->in_nowhere, c->in_spoofed, c->in_vlan,
		port->macs, port->fixed, port->unlearned,
		port->mirror ? sw_mirror_lost(port->mirror) : 0,
	};

	memcpy(n, all, sizeof(all));
	return port->mirror ? COUNTERS : COUNTERS - 1;
}

static void json_string(FILE *reply, const char *s)
{
	putc('"', reply);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(reply, "\\%c", *s);
		else if (*s > 0 && *s < 0x20)
			fprintf(reply, "\\u%04x", *s);
		else
			putc(*s, reply);
	}
	putc('"', reply);
}

static const char *json_bool(bool b)
{
	return b ? "true" : "false";
}

/* Begin an array, or its next object. */
static void json_next(FILE *reply, unsigned int *nr)
{
	fputs((*nr)++ ? ",\n {" : "[{", reply);
}

static void json_end(FILE *reply, unsigned int nr)
{
	fputs(nr ? "]\n" : "[]\n", reply);
}

/* The next port from number nr on, or NULL */
static struct sw_port *next_port(struct sw *sw, unsigned int nr)
{
	for (; nr <= SW_PORTS; nr++)
		if (sw->ports[nr] && !sw->ports[nr]->gone)
			return sw->ports[nr];
	return NULL;
}

#define for_each_port(sw, port) \
	for (port = next_port(sw, 1); port; port = next_port(sw, port->nr + 1))

static void json_port(struct sw_port *port, FILE *reply)
{
	fprintf(reply, "\"nr\": %u, \"name\": ", port->nr);
	json_string(reply, port->name);
	fprintf(reply, ", \"type\": \"%s\", \"description\": \"", port->ops->type);
	port->ops->describe(port, reply);
	fprintf(reply, "\", \"learning\": %s, \"isolated\": %s, \"max_macs\": %u",
		json_bool(port->learning), json_bool(port->isolated), port->max_macs);
	if (port->untagged && port->untagged != SW_NO_VLAN)
		fprintf(reply, ", \"vlan\": %u", port->untagged);
	else
		fputs(", \"vlan\": null", reply);
	fputs(", \"trunk\": ", reply);
	if (port->trunk) {
		putc('"', reply);
		sw_vlan_list(port, reply);
		putc('"', reply);
	} else {
		fputs("null", reply);
	}
	fprintf(reply, ", \"pps\": %llu, \"bps\": %llu, \"mirror\": %s}",
		(unsigned long long)port->pps.rate, (unsigned long long)port->bps.rate,
		json_bool(port->mirror));
}

static void text_vlans(const struct sw_port *port, FILE *reply)
{
	if (port->trunk) {
		fputs(", trunk ", reply);
		sw_vlan_list(port, reply);
		if (port->untagged != SW_NO_VLAN)
			fprintf(reply, ", native %u", port->untagged);
	} else if (port->untagged) {
		fprintf(reply, ", VLAN %u", port->untagged);
	}
}

/**
 * sw_show_ports - print the ports
 * @sw: switch
 * @reply: where to
 */
void sw_show_ports(struct sw *sw, FILE *reply)
{
	struct sw_port *port;
	unsigned int n = 0;

	for_each_port(sw, port) {
		if (sw->json) {
			json_next(reply, &n);
			json_port(port, reply);
			continue;
		}
		fprintf(reply, "%u %s %s ", port->nr, port->name, port->ops->type);
		port->ops->describe(port, reply);
		text_vlans(port, reply);
		putc('\n', reply);
	}
	if (sw->json)
		json_end(reply, n);
}

static void json_counters(const struct sw_port *port, FILE *reply)
{
	unsigned int i, nr;
	u64 n[COUNTERS];

	nr = read_counters(port, n);
	fputs("\"port\": ", reply);
	json_string(reply, port->name);
	for (i = 0; i < nr; i++)
		fprintf(reply, ", \"%s\": %llu", counters[i], (unsigned long long)n[i]);
	putc('}', reply);
}

static void count_line(const struct sw_port *port, FILE *reply)
{
	const struct sw_counters *c = &port->count;

	fprintf(reply, "%-12s %10llu %12llu %8llu %10llu %12llu %8llu\n", port->name,
		(unsigned long long)c->in, (unsigned long long)c->in_bytes,
		(unsigned long long)(c->in_errors + c->in_limited + c->in_nowhere +
				     c->in_spoofed + c->in_vlan),
		(unsigned long long)c->out, (unsigned long long)c->out_bytes,
		(unsigned long long)(c->out_drops + c->out_errors));
}

/**
 * sw_show_counters - print the counters of a port, or a line for each port
 * @sw: switch
 * @port: port, or NULL for all
 * @reply: where to
 */
void sw_show_counters(struct sw *sw, struct sw_port *port, FILE *reply)
{
	unsigned int i, nr = 0;
	u64 n[COUNTERS];

	sw_macs_expire(sw);
	if (port && !sw->json) {
		nr = read_counters(port, n);
		for (i = 0; i < nr; i++)
			fprintf(reply, "%-11s %llu\n", counters[i],
				(unsigned long long)n[i]);
		return;
	}
	if (!sw->json)
		fprintf(reply, "%-12s %10s %12s %8s %10s %12s %8s\n", "port", "in",
			"in_bytes", "in_lost", "out", "out_bytes", "out_lost");
	if (port) {
		json_next(reply, &nr);
		json_counters(port, reply);
	} else {
		for_each_port(sw, port) {
			if (!sw->json) {
				count_line(port, reply);
				continue;
			}
			json_next(reply, &nr);
			json_counters(port, reply);
		}
	}
	if (sw->json)
		json_end(reply, nr);
}

/**
 * sw_show_macs - print the table of addresses
 * @sw: switch
 * @reply: where to
 */
void sw_show_macs(struct sw *sw, FILE *reply)
{
	const struct sw_mac *m = sw->macs->set[0], *end = m + SW_SETS * SW_WAYS;
	unsigned int i, n = 0;
	char text[19];

	sw_macs_expire(sw);
	for (; m < end; m++) {
		unsigned int vid = m->key & 0xffff;
		const char *name;

		if (!m->key)
			continue;
		name = sw->ports[m->port]->name;
		for (i = 0; i < 6; i++)
			sprintf(text + 3 * i, "%02x:",
				(unsigned int)(m->key >> (16 + 8 * i)) & 255);
		text[17] = '\0';
		if (sw->json) {
			json_next(reply, &n);
			fprintf(reply, "\"address\": \"%s\", \"port\": ", text);
			json_string(reply, name);
			if (vid)
				fprintf(reply, ", \"vlan\": %u", vid);
			if (m->fixed)
				fputs(", \"fixed\": true}", reply);
			else
				fprintf(reply, ", \"seconds\": %u}",
					sw->seconds - m->seen);
			continue;
		}
		fprintf(reply, "%s %s ", text, name);
		if (m->fixed)
			fputs("fixed", reply);
		else
			fprintf(reply, "%u", sw->seconds - m->seen);
		if (vid)
			fprintf(reply, " vlan %u", vid);
		putc('\n', reply);
	}
	if (sw->json)
		json_end(reply, n);
}

static void quota_text(FILE *reply, const char *who, const struct sw_quota *used,
		       const struct sw_quota *max)
{
	fprintf(reply, "%s ports %llu/%llu slots %llu/%llu bytes %llu/%llu\n", who,
		(unsigned long long)used->ports, (unsigned long long)max->ports,
		(unsigned long long)used->slots, (unsigned long long)max->slots,
		(unsigned long long)used->bytes, (unsigned long long)max->bytes);
}

static void json_quota(FILE *reply, const char *name, const struct sw_quota *q)
{
	fprintf(reply, ", \"%s\": {\"ports\": %llu, \"slots\": %llu, \"bytes\": %llu}",
		name, (unsigned long long)q->ports, (unsigned long long)q->slots,
		(unsigned long long)q->bytes);
}

static void show_quota(struct sw *sw, FILE *reply, unsigned int *nr, const char *who,
		       const struct sw_quota *used, const struct sw_quota *max)
{
	if (!sw->json) {
		quota_text(reply, who, used, max);
		return;
	}
	json_next(reply, nr);
	fprintf(reply, "\"who\": \"%s\"", who);
	json_quota(reply, "used", used);
	json_quota(reply, "max", max);
	putc('}', reply);
}

/**
 * sw_show_quotas - print what programs have, and may have
 * @sw: switch
 * @reply: where to
 */
void sw_show_quotas(struct sw *sw, FILE *reply)
{
	const struct sw_quota none = { 0 };
	const struct sw_user *user;
	unsigned int n = 0;
	char uid[16];

	show_quota(sw, reply, &n, "all", &sw->all_used, &sw->all);
	show_quota(sw, reply, &n, "each", &none, &sw->each);
	for (user = sw->users; user; user = user->next) {
		snprintf(uid, sizeof(uid), "%u", user->uid);
		show_quota(sw, reply, &n, uid, &user->used, sw_user_quota(sw, user));
	}
	if (sw->json)
		json_end(reply, n);
}
