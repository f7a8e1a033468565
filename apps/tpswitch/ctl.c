// SPDX-License-Identifier: GPL-2.0
/* Commands, and tpswitch ctl, which sends them while the switch runs */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "macs.h"

/**
 * struct sw_ctl - a connection of tpswitch ctl, or the socket that it connects to
 * @ev: a command, or the end
 * @fd: the socket
 */
struct sw_ctl {
	struct sw_event ev;
	int fd;
};

__attribute__((format(printf, 2, 3)))
static int fail(FILE *reply, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(reply, format, args);
	va_end(args);
	fputc('\n', reply);
	return -1;
}

static int cmd_add(struct sw *sw, char *rest, FILE *reply)
{
	char why[256] = "no memory";
	struct sw_port *port = sw->in_file ? sw_config_port(sw, rest) : NULL;
	int nr;

	/* It was there before the file was read again. */
	if (port && port->listed == sw->readings)
		return 0;
	nr = sw_dev_add(sw, rest, why, sizeof(why));
	if (nr < 0)
		return fail(reply, "%s", why);
	if (sw->in_file)
		sw->ports[nr]->listed = sw->readings;
	return 0;
}

static struct sw_port *find(struct sw *sw, char **rest, FILE *reply)
{
	char *name = strsep(rest, " \t");
	struct sw_port *port = name && *name ? sw_port_find(sw, name) : NULL;

	if (!port)
		fail(reply, "%s: no such port", name ? name : "");
	return port;
}

static int cmd_del(struct sw *sw, char *rest, FILE *reply)
{
	struct sw_port *port = find(sw, &rest, reply);

	if (!port)
		return -1;
	sw_port_remove(port);
	return 0;
}

static int cmd_list(struct sw *sw, char *rest, FILE *reply)
{
	(void)rest;
	sw_show_ports(sw, reply);
	return 0;
}

static int cmd_count(struct sw *sw, char *rest, FILE *reply)
{
	struct sw_port *port = NULL;

	if (rest && *rest) {
		port = find(sw, &rest, reply);
		if (!port)
			return -1;
	}
	sw_show_counters(sw, port, reply);
	return 0;
}

static int cmd_limit(struct sw *sw, char *rest, FILE *reply)
{
	struct sw_port *port = find(sw, &rest, reply);
	u64 n, pps, bps, macs;
	char *word, *value;

	if (!port)
		return -1;
	pps = port->pps.rate;
	bps = port->bps.rate;
	macs = port->max_macs;
	while ((word = strsep(&rest, " \t"))) {
		if (!*word)
			continue;
		value = strchr(word, '=');
		if (!value || !sw_number(value + 1, 0, 1ull << 50, &n))
			return fail(reply, "%s: pps=N, bps=N or macs=N", word);
		*value = '\0';
		if (!strcmp(word, "pps"))
			pps = n;
		else if (!strcmp(word, "bps"))
			bps = n;
		else if (!strcmp(word, "macs"))
			macs = n;
		else
			return fail(reply, "%s: pps=N, bps=N or macs=N", word);
	}
	port->pps.rate = pps;
	port->bps.rate = bps;
	port->max_macs = macs < ~0u ? macs : ~0u;
	sw_port_set_special(port);
	return 0;
}

static int cmd_mirror(struct sw *sw, char *rest, FILE *reply)
{
	struct sw_port *port = find(sw, &rest, reply);
	int err, fd = sw->file, waiter = -1;

	if (!port)
		return -1;
	if (rest)
		rest += strspn(rest, " \t");
	if (!rest || !*rest)
		return fail(reply, "mirror PORT FILE|off");
	/* When the file is read again, mirrors go on. */
	if (sw->in_file && port->mirror)
		return 0;
	/* The command ends when the file is complete. */
	if (sw->ctl >= 0)
		waiter = fcntl(sw->ctl, F_DUPFD_CLOEXEC, 0);
	if (!strcmp(rest, "off")) {
		sw_mirror_stop(port, waiter);
		return 0;
	}
	/* tpswitch ctl opens it itself; the configuration file has the path only. */
	if (fd < 0)
		fd = sw_mirror_open(rest);
	sw->file = -1;
	if (fd >= 0)
		err = sw_mirror_start(port, fd, waiter);
	else
		err = fd;
	return err ? fail(reply, "%s: %s", rest, strerror(-err)) : 0;
}

static int cmd_set(struct sw *sw, char *rest, FILE *reply)
{
	struct sw_port *port = find(sw, &rest, reply);
	bool learning, isolated, on;
	char *word;

	if (!port)
		return -1;
	learning = port->learning;
	isolated = port->isolated;
	while ((word = strsep(&rest, " \t"))) {
		size_t len = strcspn(word, "=");

		if (!*word)
			continue;
		on = !strcmp(word + len, "=on");
		if (!on && strcmp(word + len, "=off"))
			len = 0;
		if (len == 8 && !strncmp(word, "learning", len))
			learning = on;
		else if (len == 8 && !strncmp(word, "isolated", len))
			isolated = on;
		else
			return fail(reply, "%s: learning=on|off, isolated=on|off",
				    word);
	}
	port->learning = learning;
	port->isolated = isolated;
	return 0;
}

/* Six bytes in hexadecimal; 0 if it is not the address of one station. */
static u64 parse_mac(const char *text)
{
	unsigned int i, byte;
	u64 key = 0;

	for (i = 0; text && i < 6; i++, text += i < 6 ? 3 : 2) {
		if (strspn(text, "0123456789abcdefABCDEF") != 2 ||
		    text[2] != (i < 5 ? ':' : '\0') ||
		    sscanf(text, "%2x", &byte) != 1)
			return 0;
		key |= (u64)byte << (16 + 8 * i);
	}
	return key & SW_MULTICAST ? 0 : key;
}

/* Cut a line into words; return their number, up to @most, or @most + 1. */
static unsigned int split(char *line, char **word, unsigned int most)
{
	unsigned int n = 0;
	char *w;

	while ((w = strsep(&line, " \t"))) {
		if (!*w)
			continue;
		if (n == most)
			return n + 1;
		word[n++] = w;
	}
	return n;
}

static int cmd_vlan(struct sw *sw, char *rest, FILE *reply)
{
	struct sw_port *port = find(sw, &rest, reply);
	char *word;

	if (!port)
		return -1;
	if (split(rest, &word, 1) != 1 || sw_vlan_access(port, word))
		return fail(reply, "vlan PORT VLAN|off, a VLAN from 1 to 4094");
	return 0;
}

static int cmd_trunk(struct sw *sw, char *rest, FILE *reply)
{
	struct sw_port *port = find(sw, &rest, reply);
	char *word[2], *native = NULL;
	unsigned int n;
	int err = -EINVAL;

	if (!port)
		return -1;
	n = split(rest, word, 2);
	if (n == 2 && !strncmp(word[1], "native=", 7))
		native = word[1] + 7;
	if (n == 1 || native)
		err = sw_vlan_trunk(port, word[0], native);
	if (err == -EINVAL)
		return fail(reply, "trunk PORT VLAN[-VLAN][,...] [native=VLAN], from 1 to 4094");
	return err ? fail(reply, "%s", strerror(-err)) : 0;
}

/* An address and perhaps a VLAN; 0 if they are wrong. */
static u64 parse_key(char *text, u16 vid, FILE *reply)
{
	char *word[2] = { NULL };
	unsigned int n = split(text, word, 2);
	u64 key = parse_mac(word[0]), number = vid;

	if (!key)
		fail(reply, "%s: no address of a station", n ? word[0] : "");
	else if (n > 2 || (n == 2 && !sw_number(word[1], 1, 4094, &number)))
		fail(reply, "%s: no VLAN from 1 to 4094", word[1]);
	else
		return key | number;
	return 0;
}

static int cmd_fix(struct sw *sw, char *rest, FILE *reply)
{
	struct sw_port *port = find(sw, &rest, reply);
	u64 key;
	int err;

	if (!port)
		return -1;
	key = parse_key(rest, port->untagged == SW_NO_VLAN ? 0 : port->untagged, reply);
	if (!key)
		return -1;
	if (!sw_vlan_has(port, key & 0xffff))
		return fail(reply, "the port does not have that VLAN");
	if (sw->lookup != SW_LEARN)
		return fail(reply, "addresses are used by --lookup learn only");
	err = sw_mac_fix(sw, port, key);
	return err ? fail(reply, "%s: %s", rest, strerror(-err)) : 0;
}

/* Without a VLAN, in all of them */
static int cmd_unfix(struct sw *sw, char *rest, FILE *reply)
{
	u64 key = parse_key(rest, 0, reply);
	bool found = false;
	u16 vid;

	if (!key)
		return -1;
	if (key & 0xffff)
		found = !sw_mac_fix(sw, NULL, key);
	else for (vid = 0; vid < 4095; vid++)
		found |= !sw_mac_fix(sw, NULL, key | vid);
	return found ? 0 : fail(reply, "%s: not fixed", rest);
}

static int cmd_macs(struct sw *sw, char *rest, FILE *reply)
{
	(void)rest;
	sw_show_macs(sw, reply);
	return 0;
}

/*
 * all, each, or the number of a user: to look for a name could take time that all ports
 * wait for.
 */
static struct sw_quota *find_quota(struct sw *sw, const char *who, FILE *reply)
{
	struct sw_user *user;
	u64 uid;

	if (!strcmp(who, "all"))
		return &sw->all;
	if (!strcmp(who, "each"))
		return &sw->each;
	if (!sw_number(who, 0, ~0u - 1, &uid)) {
		fail(reply, "%s: all, each, or the number of a user", who);
		return NULL;
	}
	user = sw_user_get(sw, uid);
	if (!user) {
		fail(reply, "no memory");
		return NULL;
	}
	if (!user->own)
		user->max = sw->each;
	user->own = true;
	return &user->max;
}

static int cmd_quota(struct sw *sw, char *rest, FILE *reply)
{
	char *who = strsep(&rest, " \t"), *word, *value;
	struct sw_quota *max, new = { ~0ull, ~0ull, ~0ull };
	u64 n;

	if (!who || !*who) {
		sw_show_quotas(sw, reply);
		return 0;
	}
	while ((word = strsep(&rest, " \t"))) {
		if (!*word)
			continue;
		value = strchr(word, '=');
		if (!value || !sw_number(value + 1, 0, 1ull << 40, &n))
			return fail(reply, "%s: ports=N, slots=N or bytes=N",
				    word);
		*value = '\0';
		if (!strcmp(word, "ports"))
			new.ports = n;
		else if (!strcmp(word, "slots"))
			new.slots = n;
		else if (!strcmp(word, "bytes"))
			new.bytes = n;
		else
			return fail(reply, "%s: ports=N, slots=N or bytes=N",
				    word);
	}
	max = find_quota(sw, who, reply);
	if (!max)
		return -1;
	if (new.ports != ~0ull)
		max->ports = new.ports;
	if (new.slots != ~0ull)
		max->slots = new.slots;
	if (new.bytes != ~0ull)
		max->bytes = new.bytes;
	return 0;
}

static const struct {
	const char *name, *words, *what;
	int (*fn)(struct sw *sw, char *rest, FILE *reply);
} commands[] = {
	{ "add", "[zc:]NAME[:FIRST[-LAST]] [meta=on|off] [rx=N] [tx=N]",
	  "add a network device", cmd_add },
	{ "del", "PORT", "remove a port, by its name or number", cmd_del },
	{ "list", "", "list the ports", cmd_list },
	{ "count", "[PORT]", "print counters", cmd_count },
	{ "limit", "PORT [pps=N] [bps=N] [macs=N]",
	  "limit packets, bits and addresses of a port", cmd_limit },
	{ "set", "PORT [learning=on|off] [isolated=on|off]",
	  "learn no addresses from a port; separate it from others", cmd_set },
	{ "vlan", "PORT VLAN|off", "make a port an access port of a VLAN", cmd_vlan },
	{ "trunk", "PORT VLAN[-VLAN][,...] [native=VLAN]",
	  "make a port a trunk of several VLANs", cmd_trunk },
	{ "fix", "PORT ADDRESS [VLAN]", "say where an address is", cmd_fix },
	{ "unfix", "ADDRESS [VLAN]", "end this", cmd_unfix },
	{ "mirror", "PORT FILE|off", "write the packets of a port to a pcap file",
	  cmd_mirror },
	{ "macs", "", "print the known addresses", cmd_macs },
	{ "quota", "[all|each|UID [ports=N] [slots=N] [bytes=N]]",
	  "limit what programs may have, or print the limits", cmd_quota },
};

#define COMMANDS	(sizeof(commands) / sizeof(*commands))

/**
 * sw_commands_print - print the commands
 * @file: where to
 */
void sw_commands_print(FILE *file)
{
	unsigned int i;

	for (i = 0; i < COMMANDS; i++)
		fprintf(file, "  %s%s%s\n        %s\n", commands[i].name,
			*commands[i].words ? " " : "", commands[i].words,
			commands[i].what);
}

/* The next word of a line, which then starts with the one behind it */
static char *next_word(char **line)
{
	char *word = strsep(line, " \t");

	if (!*line)
		*line = word + strlen(word);
	*line += strspn(*line, " \t");
	return word;
}

/**
 * sw_command - run a command
 * @sw: switch
 * @line: the command, which is changed
 * @reply: gets the answer, or the reason of a failure
 *
 * Return: 0, or -1.
 */
int sw_command(struct sw *sw, char *line, FILE *reply)
{
	size_t len = strlen(line);
	unsigned int i;
	char *name;

	while (len && strchr(" \t", line[len - 1]))
		line[--len] = '\0';
	name = next_word(&line);
	sw->json = !strcmp(name, "-j");
	if (sw->json)
		name = next_word(&line);
	for (i = 0; i < COMMANDS; i++)
		if (!strcmp(name, commands[i].name))
			return commands[i].fn(sw, line, reply);
	fprintf(reply, "%s: no such command:", name);
	for (i = 0; i < COMMANDS; i++)
		fprintf(reply, "%s %s", i ? "," : "", commands[i].name);
	putc('\n', reply);
	return -1;
}

/* Receive a command, perhaps with a file. */
static ssize_t receive(struct sw *sw, int fd, char *line, size_t len)
{
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = line, .iov_len = len };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	ssize_t n;

	n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	c = n < 0 ? NULL : CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&sw->file, CMSG_DATA(c), sizeof(sw->file));
	return n;
}

/*
 * Send an answer in parts. The first byte of each is + if there is another one, else the
 * exit status. That of the text is not used, nor is what was sent before.
 */
static void answer(int fd, char *text, size_t len, char status)
{
	for (; len > SW_PART; text += SW_PART - 1, len -= SW_PART - 1) {
		*text = '+';
		if (send(fd, text, SW_PART, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			return;
	}
	*text = status;
	(void)send(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void ctl_event(struct sw *sw, struct sw_event *ev, u32 events)
{
	struct sw_ctl *ctl = container_of(ev, struct sw_ctl, ev);
	char line[512], *text = NULL;
	size_t len = 0;
	ssize_t n;
	FILE *reply;
	int err;

	(void)events;
	n = receive(sw, ctl->fd, line, sizeof(line) - 1);
	if (n < 0 && errno == EAGAIN)
		return;
	reply = n > 0 ? open_memstream(&text, &len) : NULL;
	if (reply) {
		line[n] = '\0';
		fputc('+', reply);
		sw->ctl = ctl->fd;
		err = sw_command(sw, line, reply);
		sw->ctl = -1;
		fclose(reply);
		answer(ctl->fd, text, len, err ? '1' : '0');
		free(text);
	}
	if (sw->file >= 0)
		sw_close_foreign(sw->file);
	sw->file = -1;
	/* A duplicate is still watched. */
	(void)epoll_ctl(sw->epoll, EPOLL_CTL_DEL, ctl->fd, NULL);
	close(ctl->fd);
	free(ctl);
}

static void listen_event(struct sw *sw, struct sw_event *ev, u32 events)
{
	struct sw_ctl *l = container_of(ev, struct sw_ctl, ev), *ctl;
	int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	const int room = SW_ANSWER;

	(void)events;
	if (fd < 0)
		return;
	ctl = calloc(1, sizeof(*ctl));
	if (!ctl) {
		close(fd);
		return;
	}
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)))
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room,
				 sizeof(room));
	ctl->ev.fn = ctl_event;
	ctl->fd = fd;
	if (sw_watch(sw, fd, EPOLLIN, &ctl->ev)) {
		close(fd);
		free(ctl);
	}
}

/**
 * sw_listen_ctl - let tpswitch ctl connect
 * @sw: switch
 * @path: path of the socket, for its owner only
 *
 * Return: 0, or -errno.
 */
int sw_listen_ctl(struct sw *sw, const char *path)
{
	static struct sw_ctl listener = { .ev.fn = listen_event };

	listener.fd = sw_listen(path, 0600);
	if (listener.fd < 0)
		return listener.fd;
	return sw_watch(sw, listener.fd, EPOLLIN, &listener.ev);
}
