// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of tpswitch with ring ports, which need no kernel with TPACKET_V4:
 *
 *	swtest TPSWITCH [CASE...]
 *	swtest --fuzz SECONDS SEED TPSWITCH
 *
 * TPSWITCH should be built with AddressSanitizer. Each case starts a switch.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "client.h"

/* --- cases --------------------------------------------------------------- */

/* Send a request, perhaps a wrong one, with files; the error of the answer */
static int request_files(const void *req, size_t len, int area, int rings)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct tp4_port_reply reply = { 0 };
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(TP4_PORT_FILES * sizeof(int))];
	} control;
	struct iovec iov = { (void *)req, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int files[TP4_PORT_FILES] = { area, rings };
	size_t nr = (area >= 0) + (rings >= 0);
	struct cmsghdr *c;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	ssize_t n;

	strcpy(un.sun_path, path);
	if (connect(fd, (struct sockaddr *)&un, sizeof(un))) {
		close(fd);
		return -1;
	}
	if (nr) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(nr * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nr * sizeof(int));
		memcpy(CMSG_DATA(c), files, nr * sizeof(int));
	}
	sendmsg(fd, &msg, 0);
	n = recv(fd, &reply, sizeof(reply), 0);
	close(fd);
	return n == sizeof(reply) ? (int)reply.error : -1;
}

/* The same, with rings that are right */
static int request(const void *req, size_t len, int area)
{
	static struct tp4_area rings;

	if (!rings.addr && (tp4_area_create(&rings, 64, SIZE) ||
			    fcntl(rings.memfd, F_ADD_SEALS, F_SEAL_SHRINK)))
		exit(1);
	return request_files(req, len, area, area < 0 ? -1 : rings.memfd);
}

static void refused(void)
{
	struct tp4_port_req good = {
		.magic = TP4_PORT_MAGIC, .version = TP4_PORT_VERSION,
		.rx_nr = NR, .tx_nr = NR, .nr_frames = NR, .frame_size = SIZE,
	}, req;
	int null = open("/dev/null", O_RDWR);
	struct tp4_area a, sealed, readonly;
	struct client c;
	char ro[64];
	int fd, small;

	start(NULL, NULL);
	tp4_area_create(&a, NR, SIZE);
	tp4_area_create(&sealed, NR, SIZE);
	tp4_area_create(&readonly, NR, SIZE);
	fcntl(sealed.memfd, F_ADD_SEALS, F_SEAL_SHRINK);
	fcntl(readonly.memfd, F_ADD_SEALS, F_SEAL_SHRINK);
	snprintf(ro, sizeof(ro), "/proc/self/fd/%d", readonly.memfd);
	fd = open(ro, O_RDONLY);
	/* A page less than the rings and the page behind them need */
	small = memfd_create("small", MFD_ALLOW_SEALING);
	if (ftruncate(small, 2 * NR * sizeof(struct tpacket4_desc)) ||
	    fcntl(small, F_ADD_SEALS, F_SEAL_SHRINK))
		exit(1);

#define refuse(error, len, file, ...) do { \
		int got; \
		req = good; \
		__VA_ARGS__; \
		got = request(&req, len, file); \
		check(got == (error), "%d", got); \
	} while (0)
	refuse(EPROTO, 4, -1, (void)0);
	refuse(EPROTO, sizeof(req), -1, req.magic = 0);
	refuse(EPROTONOSUPPORT, sizeof(req), sealed.memfd, req.version = 1);
	refuse(EINVAL, sizeof(req) - 4, sealed.memfd, (void)0);
	refuse(EINVAL, sizeof(req), -1, (void)0);
	refuse(EINVAL, sizeof(req), null, (void)0);
	refuse(EINVAL, sizeof(req), a.memfd, (void)0);
	refuse(EACCES, sizeof(req), fd, (void)0);
	refuse(EINVAL, sizeof(req), sealed.memfd, req.nr_frames = NR + 1);
	refuse(EDQUOT, sizeof(req), sealed.memfd, req.nr_frames = ~0u);
	refuse(EINVAL, sizeof(req), sealed.memfd, req.nr_frames = 0);
	refuse(EINVAL, sizeof(req), sealed.memfd, req.frame_size = 0);
	refuse(EINVAL, sizeof(req), sealed.memfd, req.frame_size = 2049);
	refuse(EINVAL, sizeof(req), sealed.memfd, req.frame_size = 1 << 31);
	refuse(EINVAL, sizeof(req), sealed.memfd, req.headroom = 2000);
	refuse(EINVAL, sizeof(req), sealed.memfd, req.headroom = ~0u);
	refuse(EINVAL, sizeof(req), sealed.memfd, req.rx_nr = 255);
	refuse(EINVAL, sizeof(req), sealed.memfd, req.rx_nr = 128);
	refuse(EINVAL, sizeof(req), sealed.memfd, req.tx_nr = 1u << 31);
	refuse(EINVAL, sizeof(req), sealed.memfd, req.rx_nr = req.tx_nr = 0);
	refuse(EINVAL, sizeof(req), sealed.memfd, req.flags = 2);
	refuse(0, sizeof(req), sealed.memfd, (void)0);
	/* The rings are the program's, too. */
	check(request_files(&good, sizeof(good), sealed.memfd, -1) == EINVAL,
	      "no rings");
	check(request_files(&good, sizeof(good), sealed.memfd, null) == EINVAL,
	      "no memfd");
	check(request_files(&good, sizeof(good), sealed.memfd, a.memfd) ==
	      EINVAL, "can be cut off");
	check(request_files(&good, sizeof(good), sealed.memfd, fd) == EACCES,
	      "read-only");
	check(request_files(&good, sizeof(good), sealed.memfd, small) ==
	      EINVAL, "too short");
	/* That one is gone, and did no harm. */
	if (join(&c))
		leave(&c);
	tp4_area_destroy(&a);
	tp4_area_destroy(&sealed);
	tp4_area_destroy(&readonly);
	close(small);
	close(fd);
	close(null);
}

/* Send a packet of two frames, both of which start with addresses. */
static bool send_nested(struct client *c, unsigned int to, unsigned int from,
			unsigned int inner)
{
	struct tpacket4_desc d[2] = {
		{ .idx = NR, .len = 60, .flags = TP4_PKT_CONT },
		{ .idx = NR + 1, .len = 60 },
	};
	__u8 *p = tp4_frame(&c->area, NR);

	set_mac(p, to);
	set_mac(p + 6, from);
	p = tp4_frame(&c->area, NR + 1);
	set_mac(p, to);
	set_mac(p + 6, inner);
	tp4_ring_send(&c->s.tx, d, 2);
	return sent(c);
}

static void learning(void)
{
	struct client c[3];
	int i;

	start("--age", "1");
	for (i = 0; i < 3; i++)
		if (!join(&c[i]))
			return;
	/* Nobody knows 2: all others get it. */
	check(send_now(&c[0], 2, 1), "not sent");
	check(receive(&c[1]) == 60 && receive(&c[2]) == 60, "not flooded");
	/* 1 is known, and 2 from now on. */
	check(send_now(&c[1], 1, 2), "not sent");
	check(receive(&c[0]) == 60 && nothing(&c[2]), "not learned");
	check(send_now(&c[0], 2, 1), "not sent");
	check(receive(&c[1]) == 60 && nothing(&c[2]), "not learned");
	/* 2 moves to the third port. */
	check(send_now(&c[2], 1, 2), "not sent");
	check(receive(&c[0]) == 60 && nothing(&c[1]), "not known any more");
	check(send_now(&c[0], 2, 1), "not sent");
	check(receive(&c[2]) == 60 && nothing(&c[1]), "not moved");
	/* Only the first frame of a packet has addresses. */
	check(send_nested(&c[1], 1, 3, 2), "not sent");
	check(receive(&c[0]) == 120, "not received");
	check(send_now(&c[0], 2, 1), "not sent");
	check(receive(&c[2]) == 60 && nothing(&c[1]), "learned from data");
	/* To itself, to all, for bridges only, from nobody */
	check(send_now(&c[0], 1, 1), "not sent");
	check(nothing(&c[0]) && nothing(&c[1]) && nothing(&c[2]), "to itself");
	check(send_now(&c[0], 0xffff, 1), "not sent");
	check(receive(&c[1]) == 60 && receive(&c[2]) == 60 && nothing(&c[0]),
	      "no broadcast");
	check(send_now(&c[0], 2, 0xffff), "not sent");
	check(nothing(&c[2]), "from a broadcast address");
	/* They are forgotten. */
	msleep(2500);
	check(send_now(&c[0], 2, 1), "not sent");
	check(receive(&c[1]) == 60 && receive(&c[2]) == 60, "not forgotten");
	/* A port takes its addresses with it. */
	check(send_now(&c[2], 1, 2), "not sent");
	receive(&c[0]);
	leave(&c[2]);
	for (i = 0; i < 100 && ctl("count 3"); i++)
		msleep(20);
	check(send_now(&c[0], 2, 1), "not sent");
	check(receive(&c[1]) == 60, "a port that is gone has an address");
	leave(&c[0]);
	leave(&c[1]);
}

static void set_mac64(__u8 *p, __u64 mac)
{
	int i;

	for (i = 0; i < 6; i++)
		p[i] = mac >> 8 * i;
}

/* Send a packet to all from any address, without waiting. */
static void announce_mac(struct client *c, __u64 mac)
{
	struct tpacket4_desc d = { .idx = c->next, .len = 60 };
	__u8 *p = tp4_frame(&c->area, c->next);

	/* There are as many frames as slots. */
	if (!tp4_ring_free(&c->s.tx))
		check(sent(c), "stuck");
	if (++c->next == 2 * NR)
		c->next = NR;
	set_mac(p, 0xffff);
	set_mac64(p + 6, mac);
	tp4_ring_send(&c->s.tx, &d, 1);
	if (tp4_need_kick(&c->s))
		tp4_kick(&c->s, MSG_DONTWAIT);
}

/* Who knows how addresses were hashed cannot make those of others unknown. */
static void colliding_addresses(void)
{
	const __u64 victim = 0x010000000002, factor = 0x9e3779b97f4a7c15ull;
	enum { HONEST, VICTIM, ATTACKER };
	struct client c[3];
	__u64 mac = 2;
	int i;

	start(NULL, NULL);
	for (i = 0; i < 3; i++)
		if (!join(&c[i]))
			return;
	check(send_now(&c[VICTIM], 0xffff, 1), "not sent");
	check(receive(&c[HONEST]) && receive(&c[ATTACKER]), "no broadcast");
	for (i = 0; i < 8; mac += 1 << 16)
		if ((mac << 16) * factor >> 50 == (victim << 16) * factor >> 50 &&
		    mac != victim) {
			announce_mac(&c[ATTACKER], mac);
			i++;
		}
	check(sent(&c[ATTACKER]), "not sent");
	check(receive_packets(&c[VICTIM], 8) == 8, "no broadcast");
	check(receive_packets(&c[HONEST], 8) == 8, "no broadcast");
	check(send_now(&c[HONEST], 1, 2), "not sent");
	check(receive(&c[VICTIM]) == 60, "not received");
	check(nothing(&c[ATTACKER]), "sees the packets of another port");
	for (i = 0; i < 3; i++)
		leave(&c[i]);
}

/* A table full of the addresses of one port has room for those of others. */
static void full_table(void)
{
	struct client c[4];
	unsigned int i;

	start(NULL, NULL);
	for (i = 0; i < 3; i++)
		if (!join(&c[i]))
			return;
	check(send_now(&c[1], 0xffff, 1), "not sent");
	check(send_now(&c[0], 0xffff, 2), "not sent");
	/* 256 are the most of a program, unless it may have more. */
	for (i = 0; i < 1000; i++)
		announce_mac(&c[2], (i + 1) * 0x9e3779b9ull << 12 | 2);
	check(sent(&c[2]), "not sent");
	check(counter(3, "macs") == 256, "%s", out);
	check(counter(3, "unlearned") == 1000 - 256, "%s", out);
	check(ctl("limit ring3 macs=1M"), "%s", out);
	for (i = 0; i < 150000; i++)
		announce_mac(&c[2], (i + 1) * 0x9e3779b9ull << 12 | 2);
	check(sent(&c[2]), "not sent");
	check(counter(3, "macs") > 65000, "%s", out);
	drain(&c[0]);
	drain(&c[1]);
	drain(&c[2]);
	check(counter(1, "macs") == 1 && counter(2, "macs") == 1, "%s", out);
	check(send_now(&c[0], 1, 2), "not sent");
	check(receive(&c[1]) == 60 && nothing(&c[2]), "forgotten");
	/* One that comes now is known, too. */
	if (!join(&c[3]))
		return;
	check(send_now(&c[3], 2, 3), "not sent");
	check(receive(&c[0]) == 60 && nothing(&c[2]), "forgotten");
	check(send_now(&c[0], 3, 2), "not sent");
	check(receive(&c[3]) == 60 && nothing(&c[2]), "not learned");
	for (i = 0; i < 4; i++)
		leave(&c[i]);
}

/* Addresses that have aged do not count. */
static void aged_addresses(void)
{
	struct client c[2];
	unsigned int i;
	unsigned long n;

	start("--age", "1");
	if (!join(&c[0]) || !join(&c[1]))
		return;
	check(ctl("limit ring1 macs=8"), "%s", out);
	for (i = 0; i < 9; i++)
		announce_mac(&c[0], i << 16 | 2);
	check(sent(&c[0]), "not sent");
	n = counter(1, "unlearned");
	for (i = 0; i < 100 && counter(1, "macs"); i++)
		msleep(100);
	check(counter(1, "macs") == 0, "%s", out);
	for (i = 10; i < 18; i++)
		announce_mac(&c[0], i << 16 | 2);
	check(sent(&c[0]), "not sent");
	check(counter(1, "macs") > 0, "%s", out);
	check(counter(1, "unlearned") == n, "%s", out);
	leave(&c[0]);
	leave(&c[1]);
}

/* Addresses that the administrator has fixed, and ports that do not learn */
static void fixed_addresses(void)
{
	struct client c[3];
	int i;

	start("--age", "1");
	for (i = 0; i < 3; i++)
		if (!join(&c[i]))
			return;
	check(ctl("fix ring2 02:00:00:00:00:02"), "%s", out);
	check(ctl("macs") && !strcmp(out, "02:00:00:00:00:02 ring2 fixed\n"), "%s",
	      out);
	/* It is known before its first packet, and cannot be taken. */
	check(send_now(&c[2], 0xffff, 2), "not sent");
	check(nothing(&c[0]) && nothing(&c[1]), "with the address of another");
	check(counter(3, "in_spoofed") == 1, "%s", out);
	check(send_now(&c[2], 1, 2), "not sent");
	check(nothing(&c[0]) && nothing(&c[1]), "with the address of another");
	check(counter(3, "in_spoofed") == 2, "%s", out);
	check(counter(3, "in_nowhere") == 0, "%s", out);
	msleep(2500);
	check(send_now(&c[0], 2, 1), "not sent");
	check(receive(&c[1]) == 60 && nothing(&c[2]), "not fixed");
	check(send_now(&c[1], 1, 2), "not sent");
	check(receive(&c[0]) == 60 && nothing(&c[2]), "not sent by its port");
	/* Nothing is learned, so all others get what is for it. */
	check(ctl("set ring3 learning=off"), "%s", out);
	check(send_now(&c[2], 1, 3), "not sent");
	check(receive(&c[0]) == 60 && counter(3, "macs") == 0, "%s", out);
	check(send_now(&c[0], 3, 1), "not sent");
	check(receive(&c[1]) == 60 && receive(&c[2]) == 60, "learned");
	/* It moves if the administrator says so. */
	check(ctl("fix ring3 02:00:00:00:00:02"), "%s", out);
	check(counter(2, "fixed") == 0 && counter(3, "fixed") == 1, "%s", out);
	check(send_now(&c[0], 2, 1), "not sent");
	check(receive(&c[2]) == 60 && nothing(&c[1]), "not moved");
	check(ctl("unfix 02:00:00:00:00:02"), "%s", out);
	check(!ctl("unfix 02:00:00:00:00:02"), "%s", out);
	check(send_now(&c[1], 0xffff, 2), "not sent");
	check(receive(&c[0]) == 60 && receive(&c[2]) == 60, "still refused");
	/* A port takes its fixed addresses with it. */
	check(ctl("fix ring2 02:00:00:00:00:05"), "%s", out);
	leave(&c[1]);
	for (i = 0; i < 100 && ctl("list") && strstr(out, "ring2"); i++)
		msleep(20);
	check(ctl("macs") && !strstr(out, "00:05"), "%s", out);
	check(!ctl("fix ring1 03:00:00:00:00:05"), "%s", out);
	check(!ctl("fix ring1 02:00:00:00:00:05x"), "%s", out);
	check(!ctl("fix ring1 2:0:0:0:0:5"), "%s", out);
	check(!ctl("fix ring1"), "%s", out);
	check(!ctl("fix ring9 02:00:00:00:00:05"), "%s", out);
	check(!ctl("set ring1 learning=perhaps"), "%s", out);
	leave(&c[0]);
	leave(&c[2]);
}

/* Isolated ports see only packets of others. */
static void isolated_ports(void)
{
	struct client c[3];
	int i;

	start(NULL, NULL);
	for (i = 0; i < 3; i++)
		if (!join(&c[i]))
			return;
	check(ctl("set ring2 isolated=on") && ctl("set ring3 isolated=on"), "%s",
	      out);
	for (i = 0; i < 3; i++)
		check(send_now(&c[i], 0xffff, i + 1), "not sent");
	/* To all, to one that is known, to one that nobody knows */
	check(drain(&c[0]) == 2 && drain(&c[1]) == 1 && drain(&c[2]) == 1,
	      "a broadcast");
	check(send_now(&c[1], 3, 2), "not sent");
	check(nothing(&c[2]), "not isolated");
	check(counter(2, "in_nowhere") == 1, "%s", out);
	check(send_now(&c[1], 77, 2), "not sent");
	check(receive(&c[0]) && nothing(&c[2]), "not isolated");
	check(send_now(&c[0], 3, 1) && receive(&c[2]), "not received");
	check(ctl("set ring3 isolated=off"), "%s", out);
	check(send_now(&c[1], 3, 2) && receive(&c[2]), "still isolated");
	for (i = 0; i < 3; i++)
		leave(&c[i]);
}

static void lengths(void)
{
	static const unsigned int len[] = {
		14, 15, 31, 32, 33, 59, 60, 63, 64, 65, 127, 128, 129, 255,
		256, 257, 1500, 1514, 1983, 1984, 1985, 2047, 2048, 2049, 4096,
		9000, 65535, 65553
	};
	struct client c[2];
	unsigned int i, j;

	start(NULL, NULL);
	if (!join(&c[0]))
		return;
	/* Room for headers, and so another number of frames */
	check(join_opt(&c[1], (struct tp4_options){ .headroom = 100 }) > 0,
	      "not connected");
	for (i = 0; i < sizeof(len) / sizeof(*len); i++) {
		unsigned int n;

		check(send_mac(&c[0], 2, 1, len[i], i) && sent(&c[0]),
		      "%u bytes not sent", len[i]);
		n = receive(&c[1]);
		check(n == len[i], "%u of %u bytes", n, len[i]);
		for (j = 12; j < n; j++)
			if (!check(buf[j] == pattern(j, i), "byte %u of %u", j,
				   n))
				break;
	}
	check(send_mac(&c[0], 2, 1, 65554, 0) && sent(&c[0]), "not sent");
	check(send_mac(&c[0], 2, 1, 13, 0) && sent(&c[0]), "not sent");
	check(nothing(&c[1]), "too long or too short");
	check(counter(1, "in_errors") == 2, "%s", out);
	/* What is behind a short packet is not the receiver's. */
	memset(c[1].area.addr, 0xaa, NR * SIZE);
	memset(tp4_frame(&c[0].area, c[0].next), 0x55, SIZE);
	check(send_mac(&c[0], 2, 1, 40, 1) && sent(&c[0]), "not sent");
	check(receive(&c[1]) == 40, "not received");
	check(!memchr(c[1].area.addr, 0x55, NR * SIZE), "bytes of others");
	leave(&c[0]);
	leave(&c[1]);
}

static void descriptors(void)
{
	struct tpacket4_desc d = { .idx = NR, .len = 60 }, chain[60];
	struct client c[2];
	unsigned int i;
	__u64 wrong = 1ull << 60;

	start(NULL, NULL);
	if (!join(&c[0]) || !join(&c[1]))
		return;
	send_mac(&c[0], 0xffff, 1, 60, 0);
	check(receive(&c[1]) == 60, "not received");
	set_mac(tp4_frame(&c[0].area, NR), 0xffff);
	set_mac(tp4_frame(&c[0].area, NR) + 6, 1);
#define desc(want, ...) do { \
		struct tpacket4_desc e = d; \
		int got; \
		__VA_ARGS__; \
		got = post_one(&c[0], e); \
		check(got == (want), "%d", got); \
	} while (0)
	desc(EINVAL, e.idx = 2 * NR);
	desc(EINVAL, e.idx = ~0ull);
	desc(EINVAL, e.idx = 1ull << 53);
	desc(EINVAL, e.len = 0);
	desc(EINVAL, e.len = SIZE + 1);
	desc(EINVAL, e.len = ~0u);
	desc(EINVAL, e.offset = SIZE - 59);
	desc(EINVAL, e.offset = 65535);
	desc(EINVAL, e.len = ~0u - 10; e.offset = 20);
	desc(EINVAL, (e.flags = TP4_META, e.offset = 64));
	check(nothing(&c[1]), "an invalid packet");
	desc(0, e.offset = SIZE - 60);
	check(counter(1, "in_errors") == 10, "%s", out);
	drain(&c[1]);

	/* Half a packet waits for the rest. */
	for (i = 0; i < 60; i++)
		chain[i] = (struct tpacket4_desc){
			.idx = NR, .len = 100, .flags = TP4_PKT_CONT
		};
	tp4_ring_send(&c[0].s.tx, chain, 2);
	tp4_kick(&c[0].s, 0);
	msleep(50);
	check(!tp4_ring_peek(&c[0].s.tx, 1) && nothing(&c[1]), "half a packet");
	check(post_one(&c[0], d) == 0 && receive(&c[1]) == 260, "not whole");
	/* A packet with an invalid frame is none. */
	chain[1].idx = ~0ull;
	tp4_ring_send(&c[0].s.tx, chain, 2);
	check(post_one(&c[0], d) == 0 && nothing(&c[1]), "invalid frame");
	/* One with too many frames is none, and the next one is one. */
	chain[1].idx = NR;
	tp4_ring_send(&c[0].s.tx, chain, 60);
	i = post_one(&c[0], d);
	check(i == EMSGSIZE && nothing(&c[1]), "%u", i);
	check(post_one(&c[0], d) == 0 && receive(&c[1]) == 60, "next one");

	/* An Rx frame that does not exist comes back at once. */
	for (i = 0; i < NR; i++) {
		send_mac(&c[0], 0xffff, 1, 60, 0);
		check(receive(&c[1]) == 60, "packet %u", i);
	}
	leave(&c[1]);
	if (join(&c[1])) {
		/* frames 0..255 are posted: fill the ring, then post wrongly */
		for (i = 0; i < NR; i++)
			send_mac(&c[0], 0xffff, 1, 60, 0);
		check(sent(&c[0]), "not sent");
		i = tp4_ring_peek(&c[1].s.rx, NR);
		check(i == NR, "%u of %u", i, NR);
		tp4_ring_take(&c[1].s.rx, i);
		tp4_ring_post(&c[1].s.rx, &wrong, 1);
		send_now(&c[0], 0xffff, 1);
		i = tp4_ring_peek(&c[1].s.rx, 1);
		check(i == 1 && tp4_ring_error(&c[1].s.rx, 1) == -EINVAL,
		      "%d", tp4_ring_error(&c[1].s.rx, 1));
		leave(&c[1]);
	}
	leave(&c[0]);
}

static void full_receiver(void)
{
	struct client c[3];
	unsigned int i;

	start(NULL, NULL);
	for (i = 0; i < 3; i++)
		if (!join(&c[i]))
			return;
	/* The second does not look at its ring; the third does. */
	for (i = 0; i < 1000; i++) {
		check(send_now(&c[0], 0xffff, 1), "packet %u not sent", i);
		check(receive(&c[2]) == 60, "packet %u not received", i);
	}
	check(counter(c[1].port, "out") == NR, "%s", out);
	check(counter(c[1].port, "out_drops") == 1000 - NR, "%s", out);
	check(counter(c[2].port, "out_drops") == 0, "%s", out);
	for (i = 0; i < 3; i++)
		leave(&c[i]);
}

static void waits(void)
{
	struct client c[2];
	char byte;
	int n, go[2];
	pid_t pid;

	start(NULL, NULL);
	if (pipe(go))
		return;
	if (!join(&c[0]) || !join(&c[1]))
		return;
	check(tp4_wait(&c[0].s, POLLIN, 0) == 0, "POLLIN");
	check(tp4_wait(&c[0].s, POLLIN, 20) == 0, "POLLIN");
	check(tp4_wait(&c[0].s, POLLIN | POLLOUT, 20) == POLLOUT, "POLLOUT");
	/* A sleeper is woken for each packet. */
	pid = fork();
	if (!pid) {
		for (n = 0; n < 100; n++) {
			if (read(go[0], &byte, 1) != 1)
				_exit(1);
			msleep(n % 4);
			send_now(&c[0], 0xffff, 1);
		}
		_exit(0);
	}
	for (n = 0; n < 100; n++) {
		if (write(go[1], "", 1) != 1)
			break;
		if (!check(receive_in(&c[1], 10000) == 60, "packet %d", n))
			break;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(go[0]);
	close(go[1]);
	leave(&c[0]);
	leave(&c[1]);
}

static void *sleep_until_packets(void *arg)
{
	struct client *c = arg;

	return (void *)(intptr_t)tp4_wait(&c->s, POLLIN, 20000);
}

/* Who sleeps is woken up, whether the last batch of the switch is full or not. */
static void wakes(void)
{
	static const unsigned int len[] = { 1, 63, 64, 65, 128, 191, 192, 255 };
	struct tpacket4_desc d[NR];
	struct client c[2];
	unsigned int i, j, n;
	pthread_t thread;
	void *ready;

	start("--spin", "0");
	/* With a short ring, it would be woken up after each batch. */
	if (!join(&c[0]) ||
	    !check(join_opt(&c[1], (struct tp4_options){ .rx_nr = 4 * NR }) > 0,
		   "not connected"))
		return;
	for (i = 0; i < NR; i++) {
		d[i] = (struct tpacket4_desc){ .idx = NR + i, .len = 60 };
		set_mac(tp4_frame(&c[0].area, NR + i), 0xffff);
		set_mac(tp4_frame(&c[0].area, NR + i) + 6, 1);
	}
	for (i = 0; i < sizeof(len) / sizeof(*len); i++) {
		struct tp4_port_page *page = __tp4_port_page(&c[1].s);

		if (pthread_create(&thread, NULL, sleep_until_packets, &c[1]))
			exit(1);
		for (j = 0; j < 20000 &&
		     !__atomic_load_n(&page->want[0], __ATOMIC_ACQUIRE); j++)
			msleep(1);
		tp4_ring_send(&c[0].s.tx, d, len[i]);
		tp4_kick(&c[0].s, MSG_DONTWAIT);
		pthread_join(thread, &ready);
		check((intptr_t)ready == POLLIN, "%u packets: not woken up",
		      len[i]);
		check(sent(&c[0]), "not sent");
		n = receive_packets(&c[1], len[i]);
		check(n == len[i], "%u of %u", n, len[i]);
	}
	leave(&c[0]);
	leave(&c[1]);
}

/* A mirror whose disk is full costs no packet, and can be ended. */
static void full_disk(void)
{
	struct client c[2];
	unsigned int i, lost = 0;

	start(NULL, NULL);
	if (!join(&c[0]) || !join(&c[1]))
		return;
	check(ctl("mirror 1 /dev/full"), "%s", out);
	/* More than a mirror has memory for */
	for (i = 0; i < 1200; i++) {
		check(send_mac(&c[0], 2, 1, 1500, i) && sent(&c[0]), "not sent");
		lost += receive(&c[1]) != 1500;
	}
	check(!lost, "%u packets lost", lost);
	check(counter(1, "mirror_lost") > 400, "%s", out);
	check(ctl("mirror 1 off"), "%s", out);
	check(send_now(&c[0], 2, 1) && receive(&c[1]) == 60, "not received");
	leave(&c[0]);
	leave(&c[1]);
}

/* Send a command with a file; the connection */
static int ctl_file(const char *command, int file)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct iovec iov = { (void *)command, strlen(command) };
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = { .hdr = {
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof(int)),
	} };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.hdr), &file, sizeof(file));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s.ctl", path);
	check(!connect(fd, (struct sockaddr *)&un, sizeof(un)) &&
	      sendmsg(fd, &msg, 0) > 0, "%d", errno);
	return fd;
}

/* A file whose write() blocks: packets do not wait for it. */
static void slow_disk(void)
{
	struct client c[2];
	int ends[2], fd;
	unsigned int i;
	char answer;

	start(NULL, NULL);
	if (!join(&c[0]) || !join(&c[1]) || !check(!pipe(ends), "%d", errno))
		return;
	fd = ctl_file("mirror 1 pipe", ends[1]);
	close(ends[1]);
	check(recv(fd, &answer, 1, 0) == 1 && answer == '0', "refused");
	close(fd);
	for (i = 0; i < 1200; i++)
		if (!check(send_mac(&c[0], 2, 1, 1500, i) && sent(&c[0]) &&
			   receive(&c[1]) == 1500, "packet %u", i))
			break;
	check(counter(1, "mirror_lost") > 400, "%s", out);
	/* It ends when somebody has read all. */
	fd = ctl_file("mirror 1 off", ends[0]);
	check(recv(fd, &answer, 1, 0) == 1 && answer == '0', "refused");
	check(recv(fd, &answer, 1, MSG_DONTWAIT) < 0, "written to nobody");
	while (read(ends[0], buf, sizeof(buf)) > 0)
		;
	check(!recv(fd, &answer, 1, 0), "still there");
	close(fd);
	close(ends[0]);
	leave(&c[0]);
	leave(&c[1]);
}

/* Send packets of 60 bytes, and end the mirror. */
static void mirrored(struct client *c, unsigned int n, const char *file)
{
	struct stat st = { 0 };
	unsigned int i;

	for (i = 0; i < n; i++)
		check(send_now(c, 2, 1), "not sent");
	check(ctl("mirror 1 off"), "%s", out);
	stat(file, &st);
	check(st.st_size == 24 + n * 76, "%ld bytes", (long)st.st_size);
}

static void mirror_files(void)
{
	char *absolute = realpath(binary, NULL), *cwd = getcwd(NULL, 0);
	const char *old = binary;
	struct stat st = { 0 };
	struct client c;

	start(NULL, NULL);
	binary = absolute;
	if (!join(&c) || !check(!chdir(dir), "%d", errno))
		return;
	check(ctl("mirror 1 a.pcap"), "%s", out);
	mirrored(&c, 3, "a.pcap");
	/* It loses what was in it. */
	check(ctl("mirror 1 a.pcap"), "%s", out);
	/* Neither of these ends it. */
	check(!ctl("mirror 1 a.pcap") && strstr(out, "busy"), "%s", out);
	check(!ctl("mirror 1 none/b.pcap"), "%s", out);
	check(!symlink("c.pcap", "link") && !ctl("mirror 1 link"), "%s", out);
	check(access("c.pcap", F_OK), "a link was followed");
	check(!ctl("mirror 2 b.pcap"), "%s", out);
	mirrored(&c, 2, "a.pcap");
	/* This does: it goes on in the other file. */
	check(ctl("mirror 1 a.pcap"), "%s", out);
	check(send_now(&c, 2, 1), "not sent");
	check(ctl("mirror 1 b.pcap"), "%s", out);
	mirrored(&c, 1, "b.pcap");
	stat("a.pcap", &st);
	check(st.st_size == 24 + 76, "%ld bytes", (long)st.st_size);
	leave(&c);
	unlink("a.pcap");
	unlink("b.pcap");
	unlink("link");
	check(!chdir(cwd), "%d", errno);
	binary = old;
	free(absolute);
	free(cwd);
}

static void no_switch(void)
{
	static const int how[] = { SIGTERM, SIGKILL };
	struct client c, d;
	unsigned int i, n;
	pid_t killer;
	int err;

	for (i = 0; i < 2; i++) {
		start(NULL, NULL);
		if (!join(&c) || !join(&d))
			return;
		send_now(&c, 0xffff, 1);
		killer = fork();
		if (!killer) {
			msleep(100);
			kill(switch_pid, how[i]);
			_exit(0);
		}
		check(receive(&d) == 60, "a packet of before");
		err = tp4_wait(&d.s, POLLIN, 5000);
		if (how[i] == SIGTERM) {
			n = tp4_ring_peek(&d.s.rx, NR);
			check(err == POLLIN && n == NR, "%d, %u slots", err, n);
			check(tp4_ring_error(&d.s.rx, 1) == -ENETDOWN, "%d",
			      tp4_ring_error(&d.s.rx, 1));
			tp4_ring_take(&d.s.rx, n);
			err = tp4_wait(&d.s, POLLIN, 5000);
		}
		check(err == -ENETDOWN, "%d", err);
		check(tp4_wait(&d.s, POLLIN, 0) == -ENETDOWN, "not again");
		waitpid(killer, NULL, 0);
		check(end(how[i]), "exit status");
		leave(&c);
		leave(&d);
	}
	/* What a switch that was killed leaves behind does not matter. */
	start(NULL, NULL);
	msleep(100);
	if (join(&c))
		leave(&c);
}

static void dies_under_traffic(void)
{
	unsigned int round, i, got = 0;
	struct client good[2], c;
	pid_t pid;

	start(NULL, NULL);
	if (!join(&good[0]) || !join(&good[1]))
		return;
	for (round = 0; round < 20; round++) {
		pid = fork();
		if (!pid) {
			if (!join(&c))
				_exit(1);
			for (;;) {
				send_mac(&c, 0xffff, 9, 60 + rand() % 5000, 0);
				tp4_ring_recycle(&c.s.rx,
					tp4_ring_peek(&c.s.rx, NR));
			}
		}
		msleep(10 + round);
		for (i = 0; i < 20; i++)
			send_now(&good[0], 2, 1);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		for (i = 0; i < 20; i++)
			send_now(&good[0], 2, 1);
		while (receive_in(&good[1], 20))
			got++;
	}
	check(got > 100, "%u packets", got);
	for (i = 0; i < 100 && ctl("list") && strstr(out, "ring3"); i++)
		msleep(20);
	check(!strstr(out, "ring3"), "%s", out);
	drain(&good[1]);
	check(send_now(&good[0], 2, 1) && receive(&good[1]) == 60, "not alive");
	leave(&good[0]);
	leave(&good[1]);
}

static void hundred(void)
{
	static struct client c[100];
	unsigned int i, got;

	start(NULL, NULL);
	check(ctl("quota each ports=100 slots=1M bytes=1G"), "%s", out);
	for (i = 0; i < 100; i++)
		if (!join(&c[i]))
			return;
	for (i = 0; i < 100; i++)
		send_now(&c[i], 0xffff, 1000 + i);
	for (i = 0; i < 100; i++) {
		got = receive_packets(&c[i], 99);
		check(got == 99, "%u of 99 packets at %u", got, i);
	}
	for (i = 0; i < 100; i++)
		send_now(&c[i], 1000 + (i + 1) % 100, 1000 + i);
	for (i = 0; i < 100; i++) {
		got = receive_packets(&c[i], 1);
		check(got == 1, "%u packets at %u", got, i);
	}
	for (i = 0; i < 100; i++)
		leave(&c[i]);
}

static void too_many(void)
{
	struct tp4_port_req req = {
		.magic = TP4_PORT_MAGIC, .version = TP4_PORT_VERSION,
		.rx_nr = NR, .nr_frames = NR, .frame_size = SIZE,
	};
	static struct tp4_socket s[254];
	struct tp4_area a;
	int i, n;

	start(NULL, NULL);
	check(ctl("quota each ports=300 slots=1M bytes=1G"), "%s", out);
	check(ctl("quota all ports=300"), "%s", out);
	tp4_area_create(&a, NR, SIZE);
	for (i = 0; i < 254; i++) {
		n = tp4_connect(&s[i], path, &(struct tp4_options){
			.area = &a, .rx_nr = NR });
		if (!check(n == i + 1, "port %d: %d", i + 1, n))
			break;
	}
	check(request(&req, sizeof(req), a.memfd) == ENOSPC, "one more");
	while (i--)
		tp4_close(&s[i]);
	for (i = 0; i < 100 && ctl("list") && *out; i++)
		msleep(20);
	check(!*out, "%s", out);
	tp4_area_destroy(&a);
}

/* What the programs of a user may have, and what the switch has of them */
static void quotas(void)
{
	static struct tp4_socket s[20];
	struct tp4_options opt = { .rx_nr = NR, .tx_nr = NR };
	struct tp4_port_req req = {
		.magic = TP4_PORT_MAGIC, .version = TP4_PORT_VERSION,
		.rx_nr = NR, .tx_nr = NR, .nr_frames = NR, .frame_size = SIZE,
	};
	unsigned int uid = getuid();
	struct tp4_area a, big;
	char expect[128];
	int i, n;

	start(NULL, NULL);
	tp4_area_create(&a, NR, SIZE);
	opt.area = &a;
	/* 4096 slots */
	for (i = 0; i < 20; i++) {
		n = tp4_connect(&s[i], path, &opt);
		if (n < 0)
			break;
	}
	check(i == 8 && n == -EDQUOT, "%d ports, %d", i, n);
	check(ctl("quota"), "%s", out);
	snprintf(expect, sizeof(expect), "\n%u ports 8/16 slots 4096/4096 ", uid);
	check(strstr(out, expect), "%s", out);
	/* What is gone does not count. */
	tp4_close(&s[0]);
	for (n = 0; n < 100 && ctl("list") && strstr(out, "ring1 "); n++)
		msleep(20);
	check(tp4_connect(&s[0], path, &opt) > 0, "still counted");
	/* Ports, slots and bytes, for a user and for all */
	check(ctl("quota %u slots=64K ports=9", uid), "%s", out);
	check(tp4_connect(&s[8], path, &opt) > 0, "%d", errno);
	check(tp4_connect(&s[9], path, &opt) == -EDQUOT, "too many ports");
	check(ctl("quota %u ports=99", uid), "%s", out);
	check(ctl("quota all ports=9"), "%s", out);
	check(tp4_connect(&s[9], path, &opt) == -EDQUOT, "too many for all");
	check(ctl("quota all ports=99"), "%s", out);
	/* A file that has pages nowhere is as large as it says. */
	tp4_area_create(&big, 32768, SIZE);
	fcntl(big.memfd, F_ADD_SEALS, F_SEAL_SHRINK);
	req.nr_frames = 32768;
	check(request(&req, sizeof(req), big.memfd) == EDQUOT, "64 MB more");
	check(ctl("quota %u bytes=128M slots=4M", uid), "%s", out);
	check(ctl("quota all slots=4M"), "%s", out);
	check(request(&req, sizeof(req), big.memfd) == 0, "not connected");
	req.rx_nr = 1 << 20;
	check(request(&req, sizeof(req), a.memfd) == EINVAL, "short rings");
	check(ctl("quota %u bytes=0", uid), "%s", out);
	check(tp4_connect(&s[9], path, &opt) == -EDQUOT, "without memory");
	for (i = 0; i < 9; i++)
		tp4_close(&s[i]);
	for (n = 0; n < 100 && ctl("list") && *out; n++)
		msleep(20);
	check(ctl("quota") && strstr(out, "all ports 0/99 slots 0/4194304 "
				     "bytes 0/1073741824\n"), "%s", out);
	check(!ctl("quota x ports=1"), "%s", out);
	check(!ctl("quota each ports=-1"), "%s", out);
	check(!ctl("quota each ports=1x"), "%s", out);
	check(!ctl("quota each ports=99999999999999999999"), "%s", out);
	check(!ctl("quota each ports"), "%s", out);
	tp4_area_destroy(&a);
	tp4_area_destroy(&big);
}

/* Wake-ups that nobody reads cost the switch no memory. */
static void unread_wakes(void)
{
	struct client c[2];
	unsigned int i, n;
	char bytes[4096];

	start(NULL, NULL);
	if (!join(&c[0]) || !join(&c[1]))
		return;
	for (i = 0; i < 1000; i++) {
		struct tp4_port_page *page = __tp4_port_page(&c[1].s);

		__atomic_store_n(&page->want[0], 1, __ATOMIC_SEQ_CST);
		send_now(&c[0], 0xffff, 1);
		n = tp4_ring_peek(&c[1].s.rx, NR);
		tp4_ring_recycle(&c[1].s.rx, n);
		tp4_ring_flush(&c[1].s.rx);
	}
	n = read(c[1].s.fd, bytes, sizeof(bytes));
	check(n > 0 && n < 50, "%u wake-ups", n);
	leave(&c[0]);
	leave(&c[1]);
}

/* Memory is allocated, and charged, before the switch writes to it. */
static void charged(void)
{
	unsigned long blocks;
	struct client c;
	struct stat st;

	start(NULL, NULL);
	if (!join(&c))
		return;
	blocks = c.area.len / 512;
	fstat(c.area.memfd, &st);
	check((unsigned long)st.st_blocks >= blocks, "%lu of %lu blocks",
	      (unsigned long)st.st_blocks, blocks);
	leave(&c);
}

static void commands(void)
{
	struct client c[2];
	unsigned int i, n;
	char file[128];
	__u32 head[10];
	FILE *pcap;

	start(NULL, NULL);
	if (!join(&c[0]) || !join(&c[1]))
		return;
	check(ctl("list") && strstr(out, "1 ring1 ring pid ") &&
	      strstr(out, "2 ring2 ring pid "), "%s", out);
	check(!ctl("nonsense") && strstr(out, "add, del"), "%s", out);
	check(!ctl("del ring7") && strstr(out, "no such port"), "%s", out);
	check(!ctl("add nonsense") && strstr(out, "no such device"), "%s",
	      out);
	send_now(&c[0], 2, 1);
	check(ctl("macs") && strstr(out, "02:00:00:00:00:01 ring1 "), "%s",
	      out);
	check(ctl("limit ring1 macs=1"), "%s", out);
	send_now(&c[0], 2, 5);
	check(counter(1, "unlearned") == 1, "%s", out);
	check(ctl("macs") && !strstr(out, "00:05 "), "%s", out);

	/* 10 packets a second, whatever the machine has time for */
	drain(&c[1]);
	check(ctl("limit ring1 pps=10 bps=0 macs=256"), "%s", out);
	for (i = 0; i < 250; i++)
		send_now(&c[0], 2, 1);
	check(ctl("limit ring1 pps=0"), "%s", out);
	n = counter(1, "in_limited");
	for (i = 0; receive_in(&c[1], 100); )
		i++;
	check(i + n == 250 && i && n > 50, "%u of 250 and %u", i, n);
	check(ctl("limit ring1 bps=8"), "%s", out);
	msleep(20);
	for (i = 0; i < 2000; i++)
		send_mac(&c[0], 2, 1, 1514, 1);
	sent(&c[0]);
	check(counter(1, "in_limited") > 1900, "%s", out);
	check(ctl("limit ring1 bps=0"), "%s", out);
	check(!ctl("limit ring1 bps=x") && !ctl("limit ring1 x=1"), "%s", out);
	drain(&c[1]);

	/* Both directions of a port */
	snprintf(file, sizeof(file), "%s/pcap", dir);
	check(ctl("mirror ring1 %s", file), "%s", out);
	send_mac(&c[0], 2, 1, 60, 1);
	sent(&c[0]);
	send_mac(&c[1], 1, 2, 5000, 2);
	sent(&c[1]);
	receive(&c[1]);
	receive(&c[0]);
	check(ctl("mirror ring1 off"), "%s", out);
	pcap = fopen(file, "r");
	n = pcap ? fread(buf, 1, sizeof(buf), pcap) : 0;
	memcpy(head, buf, sizeof(head));
	check(n == 24 + 16 + 60 + 16 + 5000 && head[0] == 0xa1b23c4d &&
	      head[9] == 60 && buf[40 + 50] == pattern(50, 1) &&
	      buf[116 + 4000] == pattern(4000, 2), "%u bytes", n);
	if (pcap)
		fclose(pcap);
	/* A reader that hangs costs the mirror, not the traffic. */
	snprintf(file, sizeof(file), "%s/fifo", dir);
	mkfifo(file, 0600);
	n = open(file, O_RDONLY | O_NONBLOCK);
	check(ctl("mirror ring1 %s", file), "%s", out);
	for (i = 0; i < 2000; i++) {
		send_mac(&c[0], 2, 1, 1514, 1);
		sent(&c[0]);
		if (!check(receive(&c[1]) == 1514, "packet %u", i))
			break;
	}
	close(n);

	check(ctl("del ring2"), "%s", out);
	n = tp4_ring_peek(&c[1].s.rx, NR);
	msleep(100);
	n = tp4_ring_peek(&c[1].s.rx, NR);
	check(n == NR && tp4_ring_error(&c[1].s.rx, n) == -ENETDOWN, "%u", n);
	tp4_ring_take(&c[1].s.rx, n);
	check(tp4_wait(&c[1].s, POLLIN, 1000) == -ENETDOWN, "still there");
	leave(&c[0]);
	leave(&c[1]);
}

static void lookups(void)
{
	unsigned int i, n, got[4] = { 0 };
	struct client c[4];
	char file[256];

	start("--lookup", "hub");
	for (i = 0; i < 3; i++)
		if (!join(&c[i]))
			return;
	for (n = 0; n < 2; n++) {
		send_now(&c[0], 2, 1);
		check(receive(&c[1]) && receive(&c[2]) && nothing(&c[0]),
		      "hub");
		send_now(&c[1], 1, 2);
		check(receive(&c[0]) && receive(&c[2]), "hub");
	}
	for (i = 0; i < 3; i++)
		leave(&c[i]);
	end(SIGTERM);

	snprintf(file, sizeof(file), "%s", binary);
	*strrchr(file, '/') = '\0';
	strcat(file, "/lookup_last.so");
	start("--lookup", file);
	for (i = 0; i < 3; i++)
		if (!join(&c[i]))
			return;
	send_now(&c[0], 3, 1);
	check(receive(&c[2]) && nothing(&c[1]), "file");
	send_now(&c[0], 0, 1);
	send_now(&c[0], 1, 1);
	send_now(&c[0], 77, 1);
	check(nothing(&c[0]) && nothing(&c[1]) && nothing(&c[2]), "file");
	send_now(&c[0], 255, 1);
	check(receive(&c[1]) && receive(&c[2]) && nothing(&c[0]), "file");
	for (i = 0; i < 3; i++)
		leave(&c[i]);
	end(SIGTERM);

	start("--lookup", "hash");
	for (i = 0; i < 4; i++)
		if (!join(&c[i]))
			return;
	/* Flows of IPv4 spread, and each stays where it is. */
	for (i = 0; i < 60; i++) {
		unsigned int again, tries, at[2] = { 0 };

		for (again = 0; again < 2; again++) {
			__u8 *p = tp4_frame(&c[0].area, NR);
			struct tpacket4_desc d = { .idx = NR, .len = 60 };

			memset(p, 0, 60);
			set_mac(p, 2);
			set_mac(p + 6, 1);
			p[12] = 8;
			p[14] = 0x45;
			p[23] = IPPROTO_UDP;
			/* the other direction of the flow, too */
			p[again ? 33 : 29] = i;
			p[again ? 29 : 33] = 1;
			post_one(&c[0], d);
			/* Whichever port gets it, on a busy machine late */
			for (tries = 0; tries < 1000 && !at[again]; tries++)
				for (n = 1; n < 4; n++)
					if (receive_in(&c[n], 5))
						at[again] = n;
		}
		check(at[0] && at[0] == at[1], "flow %u: %u, %u", i, at[0],
		      at[1]);
		got[at[0]]++;
	}
	check(got[1] > 5 && got[2] > 5 && got[3] > 5, "%u, %u, %u", got[1],
	      got[2], got[3]);
	send_now(&c[2], 77, 2);
	check(receive(&c[0]) && nothing(&c[1]), "not to the first port");
	for (i = 0; i < 4; i++)
		leave(&c[i]);
}

static void metadata(void)
{
	unsigned int i, n, got = 0, seq = 0;
	struct tpacket4_desc d;
	struct tpacket4_meta *m;
	struct client c[3];

	start(NULL, NULL);
	if (join_opt(&c[0], (struct tp4_options){ .meta = 1 }) < 0 ||
	    join_opt(&c[1], (struct tp4_options){ .meta = 1 }) < 0 ||
	    !join(&c[2]))
		return;
	/* With metadata as it is; without, the switch computes the checksum. */
	make_tcp(&c[0], &d, 1000);
	check(post_one(&c[0], d) == 0, "not sent");
	check(tp4_wait(&c[1].s, POLLIN, 1000) == POLLIN, "not received");
	tp4_ring_peek(&c[1].s.rx, 1);
	m = tp4_meta(&c[1].area, tp4_ring_at(&c[1].s.rx, 0));
	check(m && (m->flags & TP4_META_CSUM) && m->csum_start == 34 &&
	      m->wire_len == 1000, "no metadata");
	tp4_ring_recycle(&c[1].s.rx, 1);
	check(receive(&c[2]) == 1000 && !check_csum(buf, 1000), "checksum %x",
	      check_csum(buf, 1000));
	/* The same for segments */
	make_tcp(&c[0], &d, 1954);
	m = (struct tpacket4_meta *)tp4_frame(&c[0].area, NR);
	tp4_meta_gso(m, 1, 300);
	check(post_one(&c[0], d) == 0, "not sent");
	check(receive(&c[1]) == 1954, "not whole");
	for (i = 0; (n = receive_in(&c[2], 200)); i++) {
		bool last = got + n - 54 == 1900;

		check(!check_csum(buf, n), "segment %u: %x", i,
		      check_csum(buf, n));
		check((buf[16] << 8 | buf[17]) == (int)n - 14, "length %u", n);
		check((unsigned int)(buf[40] << 8 | buf[41]) == seq,
		      "sequence %u", seq);
		check(buf[47] == (last ? 0x19 : 0x10), "flags %x", buf[47]);
		check(n == 54 || buf[54] == pattern(54 + got, 3), "data");
		got += n - 54;
		seq += n - 54;
	}
	check(i == 7 && got == 1900, "%u segments, %u bytes", i, got);
	/* Nothing leads beyond the packet. */
#define meta(...) do { \
		make_tcp(&c[0], &d, 1000); \
		m = (struct tpacket4_meta *)tp4_frame(&c[0].area, NR); \
		__VA_ARGS__; \
		post_one(&c[0], d); \
		check(nothing(&c[2]), "wrong metadata"); \
	} while (0)
	meta(m->csum_start = 999);
	meta(m->csum_start = 65535);
	meta(m->csum_offset = 65535);
	meta(tp4_meta_gso(m, 1, 0));
	meta(tp4_meta_gso(m, 1, 1));
	meta(tp4_meta_gso(m, 77, 300));
	meta(d.offset = 32);
	leave(&c[0]);
	leave(&c[1]);
	leave(&c[2]);
}

/*
 * Another program's packets have a turn, however much work one has posted: packets of
 * the first that the receiver gets before that of the second.
 */
static unsigned int before_others(struct client *attacker, struct client *other,
				  struct client *receiver, unsigned int to,
				  unsigned int size)
{
	unsigned int n = 0, len, i;

	drain(receiver);
	kill(switch_pid, SIGSTOP);
	for (i = 0; i < 8; i++)
		post_gso(attacker, to, size);
	tp4_kick(&attacker->s, MSG_DONTWAIT);
	send_mac(other, 2, 9, 77, 1);
	kill(switch_pid, SIGCONT);
	while ((len = receive_in(receiver, 10000)) != 77 &&
	       check(len, "not received after %u packets", n))
		n++;
	check(sent(attacker), "stuck");
	check(sent(other), "stuck");
	return n;
}

static void turns(void)
{
	enum { MANY = 60 };
	static struct client c[3], more[MANY];
	unsigned int i, n;

	start(NULL, NULL);
	check(ctl("quota each ports=100 slots=1M bytes=1G"), "%s", out);
	if (join_opt(&c[2], (struct tp4_options){ .rx_nr = 64 * NR }) < 0 ||
	    join_opt(&c[0], (struct tp4_options){ .meta = 1 }) < 0 ||
	    !join(&c[1]))
		return;
	send_now(&c[2], 0xffff, 2);
	/* 1365 segments each, of which a turn is for less */
	n = before_others(&c[0], &c[1], &c[2], 2, 48);
	check(n < 2500, "%u segments", n);
	/* To all ports: one packet takes more than a turn */
	for (i = 0; i < MANY; i++)
		if (!join(&more[i]))
			return;
	n = before_others(&c[0], &c[1], &c[2], 0xffff, 0);
	check(n < 3, "%u packets", n);
	for (i = 0; i < 3; i++)
		leave(&c[i]);
	for (i = 0; i < MANY; i++)
		leave(&more[i]);
}

/* A limit of packets counts segments. */
static void limited_segments(void)
{
	struct client c[2];
	unsigned int i;

	start(NULL, NULL);
	if (join_opt(&c[0], (struct tp4_options){ .meta = 1 }) < 0 || !join(&c[1]))
		return;
	check(ctl("limit ring1 pps=1000"), "%s", out);
	msleep(200);
	for (i = 0; i < 10; i++) {
		post_gso(&c[0], 2, 500);
		check(sent(&c[0]), "not sent");
	}
	/* 131 segments each, of which a tenth of a second has 100 */
	check(counter(1, "in_limited") > 5, "%s", out);
	leave(&c[0]);
	leave(&c[1]);
}

/* --- fuzzing ------------------------------------------------------------- */

/* A program that writes anything anywhere, while two others go on */
static void scribble(unsigned int seed)
{
	struct client c;
	__u8 *map;
	size_t len;

	srand(seed);
	if (join_opt(&c, (struct tp4_options){ .meta = seed & 1 }) < 0)
		_exit(1);
	map = c.s.map;
	len = 2 * NR * sizeof(struct tpacket4_desc) + 4096;
	for (;;) {
		unsigned int at = rand() % len & ~15u, n;
		struct tpacket4_desc *d = (void *)(map + at);

		switch (rand() % 8) {
		case 0:
			map[rand() % len] = rand();
			break;
		case 1:	/* almost right */
			d->idx = rand() % (2 * NR + 8);
			d->len = rand() % (SIZE + 64);
			d->offset = rand() % 3 ? 64 : rand() % SIZE;
			d->flags = TP4_DESC_KERNEL | (rand() & 3);
			break;
		case 2:
			d->flags = rand();
			break;
		case 3:
			for (n = 0; n < 16; n++)
				((__u8 *)d)[n] = rand();
			break;
		case 4:	/* headers, also of a packet on its way */
			for (n = 0; n < 80; n++)
				c.area.addr[rand() % (NR * SIZE)] = rand();
			memset(c.area.addr + NR * SIZE + rand() % 99, rand(),
			       rand() % 4000);
			break;
		case 5: {
			struct tpacket4_meta *m = (void *)
				tp4_frame(&c.area, rand() % (2 * NR));

			m->flags = rand() & 7;
			m->gso_type = rand() % 6;
			m->gso_size = rand() % 3000;
			m->csum_start = rand() % 300;
			m->csum_offset = rand() % 64;
			break;
		}
		case 6:
			make_tcp(&c, d, 54 + rand() % 1900);
			tp4_meta_gso((void *)tp4_frame(&c.area, NR),
				     1, 48 + rand() % 500);
			d->flags |= TP4_DESC_KERNEL;
			break;
		case 7:
			tp4_kick(&c.s, 0);
			break;
		}
	}
}

static void fuzz(int seconds, unsigned int seed)
{
	time_t until = time(NULL) + seconds;
	unsigned long n = 0, lost = 0;
	struct client c[2];
	pid_t pid[3] = { 0 };
	unsigned int i;

	if (!join(&c[0]) || !join(&c[1]))
		return;
	send_now(&c[1], 0xffff, 2);
	while (time(NULL) < until) {
		i = rand() % 3;
		if (pid[i] && rand() % 4 == 0) {
			kill(pid[i], SIGKILL);
			waitpid(pid[i], NULL, 0);
			pid[i] = 0;
		}
		if (!pid[i]) {
			seed++;
			pid[i] = fork();
			if (!pid[i])
				scribble(seed);
		}
		for (i = 0; i < 500; i++, n++) {
			unsigned int len = 60 + n % 1400, got, j;

			if (!check(send_mac(&c[0], 2, 1, len, n) &&
				   sent(&c[0]), "packet %lu not sent", n))
				goto out;
			/* Theirs come, too, and may leave no room for one. */
			while ((got = receive_in(&c[1], 20)))
				if (got == len && !memcmp(buf + 6, "\2\0\0\0\0\1",
							  6))
					break;
			if (!got) {
				lost++;
				continue;
			}
			for (j = 12; j < len; j++)
				if (buf[j] != pattern(j, n))
					break;
			lost += j < len;
		}
	}
out:
	for (i = 0; i < 3; i++)
		if (pid[i]) {
			kill(pid[i], SIGKILL);
			waitpid(pid[i], NULL, 0);
		}
	msleep(200);
	drain(&c[1]);
	send_now(&c[1], 0xffff, 2);
	check(send_now(&c[0], 2, 1) && receive(&c[1]) == 60, "not alive");
	printf("# seeds up to %u, %lu packets, %lu of them lost\n", seed, n,
	       lost);
	check(n > 100, "%lu packets", n);
	leave(&c[0]);
	leave(&c[1]);
}

/* --- files and connections of programs ----------------------------------- */

/* An event of a port that is gone */
static void late_kick(void)
{
	const __u64 one = 1;
	struct client c;
	int kick;

	start(NULL, NULL);
	if (!join(&c))
		return;
	kick = dup(__tp4_port(&c.s)->kick_fd);
	leave(&c);
	msleep(200);
	check(write(kick, &one, sizeof(one)) == sizeof(one), "%d", errno);
	msleep(100);
	check(ctl("list"), "%s", out);
	close(kick);
}

static int connect_to_switch(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(un.sun_path, path);
	check(!connect(fd, (struct sockaddr *)&un, sizeof(un)), "%d", errno);
	return fd;
}

/* How many files make the switch accept no connection */
static unsigned int queue_room(void)
{
	struct rlimit limit;

	prlimit(switch_pid, RLIMIT_NOFILE, NULL, &limit);
	return limit.rlim_cur / 3 < 16384 ? limit.rlim_cur / 3 : 16384;
}

/* A connection that makes room for another has sent something, too. */
static void evicted(void)
{
	unsigned int i, n;
	int fd[65];

	start(NULL, NULL);
	n = queue_room() / 254;
	if (n > 64)
		n = 64;
	for (i = 0; i < n; i++)
		fd[i] = connect_to_switch();
	msleep(200);
	kill(switch_pid, SIGSTOP);
	msleep(50);
	fd[n] = connect_to_switch();
	for (i = 0; i < n / 2; i++)
		check(send(fd[i], "x", 1, 0) == 1, "%d", errno);
	kill(switch_pid, SIGCONT);
	msleep(200);
	check(ctl("list"), "%s", out);
	for (i = 0; i <= n; i++)
		close(fd[i]);
}

/* A TCP socket whose peers have little room for what they do not read */
static int small_listener(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), room = 4096;
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	check(!bind(fd, (struct sockaddr *)&in, sizeof(in)) && !listen(fd, 5),
	      "%d", errno);
	return fd;
}

/* A TCP socket that cannot send all of its data, and whose close() waits */
static int lingering_socket(int listener)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = 20 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static char data[65536];
	struct sockaddr_in in;
	socklen_t len = sizeof(in);

	getsockname(listener, (struct sockaddr *)&in, &len);
	check(!connect(fd, (struct sockaddr *)&in, len), "%d", errno);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		;
	return fd;
}

/* Send a message that has no meaning, with @nr other files and @file, if it is not -1. */
static void send_files(int fd, int other, unsigned int nr, int file)
{
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(253 * sizeof(int))];
	} control = { .buf = "" };
	struct iovec iov = { .iov_base = (char []){ "garbage" }, .iov_len = 7 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
	};
	struct cmsghdr *c = &control.hdr;
	int files[253];
	unsigned int i;

	for (i = 0; i < nr; i++)
		files[i] = other;
	if (file >= 0)
		files[nr++] = file;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(nr * sizeof(int));
	memcpy(CMSG_DATA(c), files, nr * sizeof(int));
	msg.msg_controllen = CMSG_SPACE(nr * sizeof(int));
	check(sendmsg(fd, &msg, 0) == 7, "%d", errno);
}

/* Files that the switch does not get, or that it never asks for */
static void lingering_files(void)
{
	int listener = small_listener();
	int null = open("/dev/null", O_RDWR), fd, file;
	unsigned int second;
	time_t began;

	start(NULL, NULL);
	for (second = 0; second < 2; second++) {
		file = lingering_socket(listener);
		fd = connect_to_switch();
		kill(switch_pid, SIGSTOP);
		if (second)
			check(send(fd, "garbage", 7, 0) == 7, "%d", errno);
		send_files(fd, null, second ? 0 : 12, file);
		close(file);
		began = time(NULL);
		kill(switch_pid, SIGCONT);
		msleep(100);
		check(ctl("list"), "%s", out);
		check(time(NULL) - began < 10, "it has waited");
		close(fd);
	}
	close(null);
	close(listener);
}

static unsigned int entries(const char *what)
{
	unsigned int n = 0;
	char name[64];
	DIR *list;

	snprintf(name, sizeof(name), "/proc/%d/%s", switch_pid, what);
	list = opendir(name);
	while (list && readdir(list))
		n++;
	if (list)
		closedir(list);
	return n > 2 ? n - 2 : 0;
}

/* Send files until the switch accepts no more connections; their number */
static unsigned int fill_queue(int *fd, unsigned int most, unsigned int files)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	unsigned int n = 0, tries = 0;

	strcpy(un.sun_path, path);
	while (n < most && tries < 2000) {
		fd[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
			       SOCK_NONBLOCK, 0);
		if (!connect(fd[n], (struct sockaddr *)&un, sizeof(un))) {
			send_files(fd[n++], null, 253, -1);
			continue;
		}
		close(fd[n]);
		if (entries("fd") > files)
			break;
		tries++;
		msleep(5);
	}
	close(null);
	return n;
}

/*
 * While a file does not close, others wait in a queue, which a program cannot fill; then
 * none is accepted. Packets go on all the time, and connections when it has closed.
 */
static void many_files(void)
{
	int listener = small_listener();
	int fd[300], file, end, status = -1;
	unsigned int before, queue, n, i;
	struct client c[2], late;
	pid_t pid;

	start(NULL, NULL);
	if (!join(&c[0]) || !join(&c[1]))
		return;
	queue = queue_room();
	before = entries("fd");
	file = lingering_socket(listener);
	end = accept(listener, NULL, NULL);
	fd[0] = connect_to_switch();
	/* The switch closes it last. */
	kill(switch_pid, SIGSTOP);
	send_files(fd[0], 0, 0, file);
	close(file);
	kill(switch_pid, SIGCONT);
	i = 1 + fill_queue(fd + 1, 299, before + queue);
	n = entries("fd") - before;
	check(i < 300 && n > queue && n < 3 * queue, "%u connections, %u files", i, n);
	check(entries("task") == 2, "%u threads", entries("task"));
	check(send_now(&c[0], 0xffff, 1) && receive(&c[1]) == 60, "no packet");
	/* This one waits until there is room. */
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(!join(&late));
	while (read(end, buf, sizeof(buf)) > 0)
		;
	check(waitpid(pid, &status, 0) == pid && !status, "not connected");
	while (i--)
		close(fd[i]);
	for (i = 0; i < 500 && entries("fd") > before; i++)
		msleep(20);
	check(entries("fd") <= before, "%u files", entries("fd") - before);
	close(end);
	close(listener);
	leave(&c[0]);
	leave(&c[1]);
}

/* What the switch does with wrong options: its exit status */
static int run(const char *sock, const char *arg1, const char *arg2)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		/* An error is expected, and no switch that goes on. */
		alarm(2);
		(void)!freopen("/dev/null", "w", stderr);
		execl(binary, binary, "-S", sock, arg1, arg2, NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void options(void)
{
	static const char *const wrong[][2] = {
		{ "-m", "0x1ff" }, { "-m", "888" }, { "-m", "7777" }, { "-m", "" },
		{ "-a", "-1" }, { "-a", "0" }, { "-a", "5000000000" },
		{ "-f", "0" }, { "-f", "1x" }, { "-f", "99999999999999999999" },
		{ "-s", " 1" }, { "-g", "no such group" },
	};
	const struct group *group;
	struct stat st = { 0 };
	unsigned int i;
	char sock[80];
	gid_t gid;

	snprintf(sock, sizeof(sock), "%s/none", dir);
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		check(run(sock, wrong[i][0], wrong[i][1]) == 2, "%s %s",
		      wrong[i][0], wrong[i][1]);
	/* A group of ours, as others need a privilege */
	gid = getgid();
	if (!geteuid()) {
		group = getgrnam("daemon");
		if (check(group, "no group"))
			gid = group->gr_gid;
	}
	group = getgrgid(gid);
	if (!check(group, "no group %u", gid))
		return;
	start("-g", group->gr_name);
	check(!stat(path, &st) && st.st_gid == gid, "group %u", st.st_gid);
	check((st.st_mode & 07777) == 0660, "mode %o", st.st_mode);
	check(end(SIGTERM), "not ended");
	/* It makes its directory. */
	strcat(dir, "/made");
	start(NULL, NULL);
	check(!ctl("add lo rx=1x") && strstr(out, "rx=N"), "%s", out);
	check(!ctl("add lo tx=-8") && strstr(out, "tx=N"), "%s", out);
	check(!ctl("add zc:lo:0-4294967296") && strstr(out, "given as"), "%s",
	      out);
	check(!ctl("add zc:lo:0x") && strstr(out, "given as"), "%s", out);
	check(!ctl("add zc:lo") && strstr(out, "does not report"), "%s", out);
	check(end(SIGTERM), "not ended");
	check(!rmdir(dir), "%d", errno);
	dir[strlen(dir) - 5] = '\0';
}

/* What is not a socket is not deleted. */
static void other_file(void)
{
	int fd;

	snprintf(path, sizeof(path), "%s/file", dir);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	switch_pid = fork();
	if (!switch_pid) {
		execl(binary, binary, "-S", path, NULL);
		_exit(127);
	}
	waitpid(switch_pid, NULL, 0);
	switch_pid = 0;
	check(!access(path, F_OK), "%s is gone", path);
	unlink(path);
	close(fd);
}

static int fuzz_seconds = 5;
static unsigned int fuzz_seed = 1;

static void hostile(void)
{
	start(NULL, NULL);
	fuzz(fuzz_seconds, fuzz_seed);
}

/* --- main ---------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*fn)(void);
} cases[] = {
	{ "refused", refused },
	{ "learning", learning },
	{ "colliding_addresses", colliding_addresses },
	{ "full_table", full_table },
	{ "aged_addresses", aged_addresses },
	{ "fixed_addresses", fixed_addresses },
	{ "isolated_ports", isolated_ports },
	{ "lengths", lengths },
	{ "descriptors", descriptors },
	{ "full_receiver", full_receiver },
	{ "waits", waits },
	{ "wakes", wakes },
	{ "full_disk", full_disk },
	{ "slow_disk", slow_disk },
	{ "mirror_files", mirror_files },
	{ "no_switch", no_switch },
	{ "dies_under_traffic", dies_under_traffic },
	{ "hundred_clients", hundred },
	{ "too_many_clients", too_many },
	{ "quotas", quotas },
	{ "unread_wakes", unread_wakes },
	{ "charged", charged },
	{ "commands", commands },
	{ "lookups", lookups },
	{ "vlan_access", vlan_access },
	{ "vlan_trunk", vlan_trunk },
	{ "vlan_double_tags", vlan_double_tags },
	{ "vlan_metadata", vlan_metadata },
	{ "vlan_turns", vlan_turns },
	{ "vlan_rewritten", vlan_rewritten },
	{ "vlan_commands", vlan_commands },
	{ "metadata", metadata },
	{ "turns", turns },
	{ "limited_segments", limited_segments },
	{ "late_kick", late_kick },
	{ "evicted", evicted },
	{ "lingering_files", lingering_files },
	{ "many_files", many_files },
	{ "other_file", other_file },
	{ "options", options },
	{ "hostile_clients", hostile },
};

int main(int argc, char **argv)
{
	unsigned int i, nr = 0, failed = 0;
	int arg;

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	if (argc == 5 && !strcmp(argv[1], "--fuzz")) {
		fuzz_seconds = atoi(argv[2]);
		fuzz_seed = strtoul(argv[3], NULL, 0);
		argv[2] = argv[4];
		argv[3] = "hostile_clients";
		argv++;
		argc = 3;
	}
	if (argc < 2 || *argv[1] == '-') {
		fprintf(stderr, "usage: swtest TPSWITCH [CASE...]\n"
			"       swtest --fuzz SECONDS SEED TPSWITCH\n");
		return argc < 2 || strcmp(argv[1], "--help") ? 2 : 0;
	}
	binary = realpath(argv[1], NULL);
	if (!binary || !mkdtemp(dir)) {
		perror("swtest");
		return 1;
	}
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		for (arg = 2; arg < argc; arg++)
			if (!strcmp(argv[arg], cases[i].name))
				break;
		if (argc > 2 && arg == argc)
			continue;
		bad = false;
		cases[i].fn();
		check(end(SIGTERM), "the switch ended with an error");
		printf("%sok %u - %s\n", bad ? "not " : "", ++nr,
		       cases[i].name);
		failed += bad;
	}
	printf("1..%u\n", nr);
	snprintf(path, sizeof(path), "rm -rf %s", dir);
	if (system(path))
		return 1;
	return failed || !nr;
}
