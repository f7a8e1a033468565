// SPDX-License-Identifier: GPL-2.0
/* A switch and programs with ring ports, for its tests */

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "client.h"

const char *binary;
char path[64];
pid_t switch_pid;
bool bad;
char dir[32] = "/tmp/swtest.XXXXXX";

bool check_at(int line, bool ok, const char *cond, const char *format, ...)
{
	va_list args;

	if (ok)
		return true;
	printf("# line %d: EXPECT %s: ", line, cond);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	bad = true;
	return false;
}

void msleep(int ms)
{
	usleep(ms * 1000);
}

/* --- the switch ---------------------------------------------------------- */

void start(const char *arg1, const char *arg2)
{
	char ready[80];
	int i;

	snprintf(path, sizeof(path), "%s/sw", dir);
	snprintf(ready, sizeof(ready), "%s.ctl", path);
	unlink(ready);
	switch_pid = fork();
	if (!switch_pid) {
		execl(binary, binary, "-S", path, arg1, arg2, NULL);
		_exit(127);
	}
	for (i = 0; i < 500 && access(ready, F_OK); i++)
		msleep(20);
}

/* End the switch; true if nothing was wrong with it. */
bool end(int sig)
{
	int status;

	if (!switch_pid)
		return true;
	kill(switch_pid, sig);
	waitpid(switch_pid, &status, 0);
	switch_pid = 0;
	if (WIFEXITED(status) ? !WEXITSTATUS(status) :
	    WTERMSIG(status) == sig && sig == SIGKILL)
		return true;
	printf("# status %x after signal %d\n", status, sig);
	return false;
}

/* Run tpswitch ctl; true if it succeeds. The answer is in out. */
char out[65536];
bool ctl(const char *format, ...)
{
	char command[512];
	va_list args;
	size_t n;
	FILE *p;
	int at;

	at = snprintf(command, sizeof(command), "%s ctl -S %s ", binary, path);
	va_start(args, format);
	vsnprintf(command + at, sizeof(command) - at, format, args);
	va_end(args);
	strcat(command, " 2>&1");
	fflush(stdout);
	p = popen(command, "r");
	n = fread(out, 1, sizeof(out) - 1, p);
	out[n] = '\0';
	return !pclose(p);
}

/* A counter of a port */
unsigned long counter(int port, const char *name)
{
	char find[64], *at;

	ctl("count %d", port);
	snprintf(find, sizeof(find), "\n%s ", name);
	/* The first one is in. */
	at = strcmp(name, "in") ? strstr(out, find) : out;
	return check(at, "%s in %s", name, out) ?
	       strtoul(at + strlen(find), NULL, 10) : ~0ul;
}

/* --- a port -------------------------------------------------------------- */

int join_opt(struct client *c, struct tp4_options opt)
{
	__u64 frames[64 * NR];
	unsigned int i;

	if (!opt.rx_nr)
		opt.rx_nr = NR;
	memset(c, 0, sizeof(*c));
	if (tp4_area_create(&c->area, opt.rx_nr + NR, SIZE))
		exit(1);
	opt.area = &c->area;
	opt.tx_nr = NR;
	c->port = tp4_connect(&c->s, path, &opt);
	if (c->port < 0)
		return c->port;
	for (i = 0; i < opt.rx_nr; i++)
		frames[i] = i < NR ? i : i + NR;
	tp4_ring_post(&c->s.rx, frames, opt.rx_nr);
	c->next = NR;
	return c->port;
}

bool join(struct client *c)
{
	int err = join_opt(c, (struct tp4_options){ 0 });

	return check(err > 0, "tp4_connect: %s", strerror(-err));
}

void leave(struct client *c)
{
	tp4_close(&c->s);
	tp4_area_destroy(&c->area);
}

/* Wait until all that was posted has been taken. */
bool sent(struct client *c)
{
	int i;

	for (i = 0; i < 20000 && tp4_ring_pending(&c->s.tx); i++) {
		unsigned int n = tp4_ring_peek(&c->s.tx, NR);

		tp4_ring_take(&c->s.tx, n);
		if (!n) {
			if (tp4_need_kick(&c->s))
				tp4_kick(&c->s, MSG_DONTWAIT);
			usleep(200);
		}
	}
	return !tp4_ring_pending(&c->s.tx);
}

void set_mac(__u8 *p, unsigned int nr)
{
	__u8 mac[6] = { 2, 0, 0, 0, nr >> 8, nr };

	memcpy(p, mac, 6);
	if (nr == 0xffff)
		memset(p, 0xff, 6);
}

/* The byte at a place of a packet, so that a wrong one is seen */
__u8 pattern(unsigned int i, unsigned int seed)
{
	return (i * 7 + seed * 13) >> 1;
}

/* Send a packet from address to address, of several frames if it is long. */
bool send_mac(struct client *c, unsigned int to, unsigned int from,
	      unsigned int len, unsigned int seed)
{
	unsigned int at = 0, nr = (len + SIZE - 1) / SIZE, i, n = 0;
	struct tpacket4_desc d[64];

	if (tp4_ring_free(&c->s.tx) < nr && !sent(c))
		return false;
	while (at < len) {
		unsigned int part = len - at < SIZE ? len - at : SIZE;
		__u8 *p = tp4_frame(&c->area, c->next);

		for (i = at ? 0 : 12; i < part; i++)
			p[i] = pattern(at + i, seed);
		if (!at) {
			set_mac(p, to);
			set_mac(p + 6, from);
		}
		at += part;
		d[n++] = (struct tpacket4_desc){
			.idx = c->next,
			.len = part,
			.flags = at < len ? TP4_PKT_CONT : 0,
		};
		if (++c->next == 2 * NR)
			c->next = NR;
	}
	tp4_ring_send(&c->s.tx, d, n);
	if (tp4_need_kick(&c->s))
		tp4_kick(&c->s, MSG_DONTWAIT);
	return true;
}

/* Send, and wait until the switch has it. */
bool send_now(struct client *c, unsigned int to, unsigned int from)
{
	return send_mac(c, to, from, 60, from) && sent(c);
}

/* Receive a packet to buf; its length, or 0 after the time. */
__u8 buf[70000];
unsigned int receive_in(struct client *c, int ms)
{
	unsigned int len = 0, flags;

	do {
		const struct tpacket4_desc *d;

		while (!tp4_ring_peek(&c->s.rx, 1))
			if (tp4_wait(&c->s, POLLIN, ms) <= 0)
				return 0;
		d = tp4_ring_at(&c->s.rx, 0);
		flags = d->flags;
		if (len + d->len <= sizeof(buf))
			memcpy(buf + len, tp4_data(&c->area, d), d->len);
		len += d->len;
		tp4_ring_recycle(&c->s.rx, 1);
		tp4_ring_flush(&c->s.rx);
	} while (flags & TP4_PKT_CONT);
	return len;
}

unsigned int receive(struct client *c)
{
	return receive_in(c, 2000);
}

/* Waits for @want packets, and counts those that are there besides */
unsigned int receive_packets(struct client *c, unsigned int want)
{
	unsigned int n = 0;

	while (receive_in(c, n < want ? 2000 : 0))
		n++;
	return n;
}

bool nothing(struct client *c)
{
	return !receive_in(c, 50);
}

unsigned int drain(struct client *c)
{
	unsigned int n = 0;

	while (receive_in(c, 200))
		n++;
	return n;
}

/* The checksum of a transport protocol over IPv4: 0 if it is right */
unsigned int check_csum(const __u8 *p, unsigned int len)
{
	unsigned int i, sum = p[23] + len - 34;

	for (i = 26; i < len; i++)
		sum += i & 1 ? p[i] : p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return 0xffff - sum;
}

/* A TCP segment of IPv4, as a stack that leaves its checksum to the card has */
void make_tcp(struct client *c, struct tpacket4_desc *d, unsigned int len)
{
	__u8 *p = tp4_frame(&c->area, NR) + 64;
	struct tpacket4_meta *m;
	unsigned int i, sum;

	for (i = 54; i < len; i++)
		p[i] = pattern(i, 3);
	memset(p, 0, 54);
	set_mac(p, 2);
	set_mac(p + 6, 1);
	p[12] = 8;
	p[14] = 0x45;
	p[16] = (len - 14) >> 8;
	p[17] = len - 14;
	p[22] = 64;
	p[23] = IPPROTO_TCP;
	p[29] = 1;
	p[33] = 2;
	p[46] = 5 << 4;
	p[47] = 0x19;		/* ACK, PSH, FIN */
	sum = 3 + IPPROTO_TCP + len - 34;
	p[50] = sum >> 8;
	p[51] = sum;
	memset(d, 0, sizeof(*d));
	d->idx = NR;
	d->len = len;
	d->offset = 64;
	m = tp4_meta_new(&c->area, d);
	tp4_meta_csum(m, 34, 16);
}

/* Post one descriptor, and return what its error is. */
int post_one(struct client *c, struct tpacket4_desc d)
{
	struct tpacket4_desc *slot = &c->s.tx.q.ring[c->s.tx.q.avail_idx &
						     (NR - 1)];

	tp4_ring_send(&c->s.tx, &d, 1);
	tp4_kick(&c->s, MSG_DONTWAIT);
	if (!sent(c))
		return -1;
	return slot->error;
}

/*
 * A packet of 64 KB in segments of 48 bytes, for an address that may be unknown; its
 * frames are all the same.
 */
void post_gso(struct client *c, unsigned int to, unsigned int size)
{
	const unsigned int frames = 32, most = SIZE - 64;
	struct tpacket4_desc d[32];
	struct tpacket4_meta *m;
	unsigned int i, len;
	__u8 *p;

	make_tcp(c, &d[0], most);
	len = frames * most;
	p = tp4_frame(&c->area, NR) + 64;
	set_mac(p, to);
	p[16] = (len - 14) >> 8;
	p[17] = len - 14;
	m = (struct tpacket4_meta *)tp4_frame(&c->area, NR);
	if (size)
		tp4_meta_gso(m, 1, size);
	for (i = 0; i < frames; i++) {
		d[i] = d[0];
		d[i].flags = i + 1 < frames ? TP4_PKT_CONT : 0;
	}
	d[0].flags |= TP4_META;
	tp4_ring_send(&c->s.tx, d, frames);
}
