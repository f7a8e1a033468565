// SPDX-License-Identifier: GPL-2.0
/* What libpcap promises, through its public functions only:
 *
 *	pcap_test v3|v4|zc DEVICE PEER
 *
 * DEVICE and PEER are the ends of a veth pair with an MTU of 9000 of which nobody
 * else makes use; DEVICE is removed in the end. The words say what libpcap is to
 * use: an older version of the kernel's rings, V4 in copy mode, or in zero-copy
 * mode. Where zero-copy mode differs, the test knows.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MAX_LEN		9014
#define PATIENCE	20000	/* ms that anything may take */

static const char *device, *peer;
static char name[64];		/* for pcap_create() */
static int is_v4, is_zc;
static int peer_fd;
static int number, failed;
static char errbuf[PCAP_ERRBUF_SIZE];

/* Reads while packets are sent: few that come slowly fit into V3's blocks. */
static struct {
	pcap_t *p;
	pcap_handler handler;
	void *arg;
	unsigned int sent;
} reader;

static pcap_t *handles[8];	/* that are open */

static void close_handle(pcap_t *p)
{
	unsigned int i;

	for (i = 0; i < 8; i++)
		if (handles[i] == p)
			handles[i] = NULL;
	reader.p = NULL;
	pcap_close(p);
}

static void result(int good, const char *title)
{
	unsigned int i;

	alarm(300);	/* until the next one */
	/* those of a test that failed */
	for (i = 0; i < 8; i++)
		if (handles[i])
			close_handle(handles[i]);
	printf("%s %d %s\n", good ? "ok" : "not ok", ++number, title);
	failed |= !good;
}

#define check(good, ...) do {						\
	if (!(good)) {							\
		printf("# line %d: %s: ", __LINE__, #good);		\
		printf(__VA_ARGS__);					\
		printf("\n");						\
		return 0;						\
	}								\
} while (0)

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int packet_socket(const char *ifname)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = if_nametoindex(ifname),
	};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&ll, sizeof(ll)))
		err(1, "packet socket on %s", ifname);
	return fd;
}

/* --- packets ---------------------------------------------------------------- */

enum kind { PLAIN, UDP, VLAN_UDP };

static unsigned int put(uint8_t *p, unsigned int pos, const char *hex)
{
	unsigned int byte;

	for (; *hex; hex += 2, pos++) {
		if (sscanf(hex, "%2x", &byte) != 1)
			abort();
		p[pos] = byte;
	}
	return pos;
}

/* Packet @seq of @len bytes, all of which are known. */
static void build(uint8_t *p, enum kind kind, unsigned int seq, unsigned int len)
{
	unsigned int pos = put(p, 0, "020000000001020000000002");

	if (kind == VLAN_UDP)
		pos = put(p, pos, "81000005");
	if (kind == PLAIN) {
		pos = put(p, pos, "88b5");
	} else {
		unsigned int ip_len = len - pos - 2;

		pos = put(p, pos, "0800" "4500");
		p[pos++] = ip_len >> 8;
		p[pos++] = ip_len;
		pos = put(p, pos, "0000000040110000" "c0000201" "c0000202"
				  "10921092" "00000000");
	}
	for (; pos < len; pos++)
		p[pos] = pos * 7 + seq * 13 + (pos >> 8);
}

static void reading(pcap_t *p, pcap_handler handler, void *arg)
{
	reader.p = p;
	reader.handler = handler;
	reader.arg = arg;
	pcap_setnonblock(p, 1, errbuf);
}

static void send_one(int fd, enum kind kind, unsigned int seq, unsigned int len)
{
	uint8_t p[MAX_LEN + 4];

	if (reader.p && ++reader.sent % 16 == 0)
		pcap_dispatch(reader.p, -1, reader.handler, reader.arg);

	build(p, kind, seq, len);
	while (send(fd, p, len, 0) != (ssize_t)len)
		if (errno != ENOBUFS)
			err(1, "send");
}

/* --- handles ---------------------------------------------------------------- */

struct want {
	int snaplen, nano, immediate, timeout, buffer, promisc;
};

static pcap_t *open_handle(const char *what, struct want want, int *status)
{
	pcap_t *p = pcap_create(what, errbuf);
	unsigned int i;

	if (!p) {
		*status = PCAP_ERROR;
		return NULL;
	}
	pcap_set_snaplen(p, want.snaplen ? want.snaplen : 262144);
	pcap_set_timeout(p, want.timeout ? want.timeout : 10);
	pcap_set_promisc(p, want.promisc);
	pcap_set_immediate_mode(p, want.immediate);
	if (want.buffer)
		pcap_set_buffer_size(p, want.buffer);
	if (want.nano)
		pcap_set_tstamp_precision(p, PCAP_TSTAMP_PRECISION_NANO);
	*status = pcap_activate(p);
	snprintf(errbuf, sizeof(errbuf), "%s", pcap_geterr(p));
	if (*status < 0) {
		pcap_close(p);
		return NULL;
	}
	for (i = 0; handles[i]; i++)
		;
	handles[i] = p;
	return p;
}

static pcap_t *must_open(struct want want)
{
	int status;
	pcap_t *p = open_handle(name, want, &status);

	if (!p)
		errx(1, "%s: %d, %s", name, status, errbuf);
	return p;
}

static int set_filter(pcap_t *p, const char *text)
{
	struct bpf_program prog;
	int rc = pcap_compile(p, &prog, text, 1, 0);

	if (!rc) {
		rc = pcap_setfilter(p, &prog);
		pcap_freecode(&prog);
	}
	if (rc)
		printf("# filter %s: %s\n", text, pcap_geterr(p));
	return rc;
}

/* What came, packet by packet. */
struct got {
	unsigned int nr, lens[64], caplens[64], bad;
	enum kind kind;
	unsigned int seq;	/* of the first one */
	long long first_ns, last_ns;
	int nano;
	const u_char *data;	/* of the last one */
};

static void take(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	struct got *got = (void *)user;
	uint8_t p[MAX_LEN + 4];

	if (h->len > sizeof(p) || h->caplen > h->len) {
		got->bad++;
		return;
	}
	build(p, got->kind, got->seq + got->nr, h->len);
	got->bad += !!memcmp(p, data, h->caplen);
	if (got->nr < 64) {
		got->lens[got->nr] = h->len;
		got->caplens[got->nr] = h->caplen;
	}
	got->last_ns = h->ts.tv_sec * 1000000000LL +
		       h->ts.tv_usec * (got->nano ? 1 : 1000);
	if (!got->nr)
		got->first_ns = got->last_ns;
	got->data = data;
	got->nr++;
}

static void count(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	(void)h;
	(void)data;
	++*(unsigned int *)user;
}

/* Read until there are @nr, or for long enough to know that there are not more. */
static int collect(pcap_t *p, pcap_handler handler, void *arg,
		   const unsigned int *have, unsigned int nr)
{
	long long end = now_ns() + PATIENCE * 1000000LL;
	int quiet = 0, n;

	reader.p = NULL;
	pcap_setnonblock(p, 1, errbuf);
	while (quiet < 30 && now_ns() < end) {
		n = pcap_dispatch(p, -1, handler, arg);
		if (n < 0) {
			printf("# dispatch: %d, %s\n", n, pcap_geterr(p));
			return n;
		}
		quiet = n || *have < nr ? 0 : quiet + 1;
		if (!n)
			usleep(2000);
	}
	pcap_setnonblock(p, 0, errbuf);
	return *have == nr ? 0 : -1;
}

/* --- tests ------------------------------------------------------------------ */

/* Is there the area of a V4 socket, and @p, if that is not NULL, in it? */
static int in_area(const void *p)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int found = 0;
	void *a, *b;

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "memfd:tpacket4") &&
		    sscanf(line, "%p-%p", &a, &b) == 2)
			found |= !p || (p >= a && p < b);
	if (maps)
		fclose(maps);
	return found;
}

static int uses_right_ring(void)
{
	pcap_t *p = must_open((struct want){});
	int found = in_area(NULL);

	close_handle(p);
	check(found == is_v4, "%d", found);
	return 1;
}

static int receives(void)
{
	pcap_t *p = must_open((struct want){ .nano = 1 });
	struct got got = { .kind = PLAIN, .nano = 1 };
	long long before = now_ns();
	unsigned int i;

	reading(p, take, (void *)&got);
	for (i = 0; i < 1500; i++)
		send_one(peer_fd, PLAIN, i, 14 + i);
	check(!collect(p, take, &got, &got.nr, 1500), "%u packets", got.nr);
	check(!got.bad, "%u packets", got.bad);
	for (i = 0; i < 64; i++)
		check(got.lens[i] == 14 + i && got.caplens[i] == 14 + i,
		      "%u, %u of %u", got.caplens[i], got.lens[i], 14 + i);
	check(!is_v4 || in_area(got.data), "copied");
	check(got.first_ns >= before && got.first_ns <= got.last_ns &&
	      got.last_ns <= now_ns(), "%lld ns after sending, %lld later",
	      got.first_ns - before, got.last_ns - got.first_ns);
	close_handle(p);
	return 1;
}

static int joins_frames(void)
{
	static const unsigned int lens[] = { 9014, 60, 1984, 1985, 4000, 2048, 61 };
	pcap_t *p = must_open((struct want){});
	struct got got = { .kind = PLAIN };
	unsigned int i;

	for (i = 0; i < 7; i++)
		send_one(peer_fd, PLAIN, i, lens[i]);
	check(!collect(p, take, &got, &got.nr, 7), "%u packets", got.nr);
	check(!got.bad, "%u packets", got.bad);
	for (i = 0; i < 7; i++)
		check(got.lens[i] == lens[i] && got.caplens[i] == lens[i],
		      "%u, %u of %u", got.caplens[i], got.lens[i], lens[i]);
	close_handle(p);
	return 1;
}

static int cuts(void)
{
	static const unsigned int lens[] = { 9014, 60, 100, 101, 2000 };
	unsigned int i, with_filter;

	for (with_filter = 0; with_filter < 2; with_filter++) {
		pcap_t *p = must_open((struct want){ .snaplen = 100 });
		struct got got = { .kind = PLAIN };

		check(pcap_snapshot(p) == 100, "%d", pcap_snapshot(p));
		if (with_filter)
			check(!set_filter(p, "ether proto 0x88b5"), "filter");
		for (i = 0; i < 5; i++)
			send_one(peer_fd, PLAIN, i, lens[i]);
		check(!collect(p, take, &got, &got.nr, 5), "%u packets", got.nr);
		check(!got.bad, "%u packets", got.bad);
		for (i = 0; i < 5; i++) {
			unsigned int cap = lens[i] < 100 ? lens[i] : 100;

			check(got.lens[i] == lens[i] && got.caplens[i] == cap,
			      "%u, %u of %u", got.caplens[i], got.lens[i],
			      lens[i]);
		}
		close_handle(p);
	}
	return 1;
}

static int one_filter(const char *text, unsigned int plain, unsigned int udp,
		      unsigned int vlan, unsigned int min)
{
	pcap_t *p = must_open((struct want){});
	unsigned int have = 0, want = 0, i;

	check(!set_filter(p, text), "%s", pcap_geterr(p));
	reading(p, count, (void *)&have);
	for (i = 0; i < 30; i++) {
		unsigned int len = 100 + 60 * i;

		send_one(peer_fd, PLAIN, i, len);
		send_one(peer_fd, UDP, i, len);
		send_one(peer_fd, VLAN_UDP, i, len);
		want += len >= min ? plain + udp : 0;
		/* A tag is not in the data that a filter sees. */
		want += len - 4 >= min ? vlan : 0;
	}
	check(!collect(p, count, &have, &have, want), "%s: %u packets of %u",
	      text, have, want);
	close_handle(p);
	return 1;
}

static int filters(void)
{
	return one_filter("udp port 4242", 0, 1, 1, 0) &&
	       one_filter("vlan and udp", 0, 0, 1, 0) &&
	       one_filter("vlan 5", 0, 0, 1, 0) &&
	       one_filter("vlan 6", 0, 0, 0, 0) &&
	       one_filter("ip and not vlan", 0, 1, 0, 0) &&
	       one_filter("ether proto 0x88b5", 1, 0, 0, 0) &&
	       one_filter("udp and greater 1000", 0, 1, 1, 1000) &&
	       one_filter("tcp", 0, 0, 0, 0) &&
	       one_filter("", 1, 1, 1, 0);
}

/* Of V3's first block, a filter in user space refuses all. */
static int filters_direction(void)
{
	return one_filter("inbound", 1, 1, 1, 0) &&
	       one_filter("outbound", 0, 0, 0, 0);
}

/* What comes before the filter is set is filtered by it, too. */
static int filters_long(void)
{
	static const unsigned int lens[] = { 9014, 300, 199, 4000 };
	pcap_t *p = must_open((struct want){ .snaplen = 64 });
	unsigned int have = 0, round, i;
	char text[32];
	uint8_t wanted[MAX_LEN];

	build(wanted, PLAIN, 1, MAX_LEN);
	snprintf(text, sizeof(text), "ether[200] = %u", wanted[200]);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 20; i++)
			send_one(peer_fd, PLAIN, i & 1, lens[i / 2 % 4]);
		if (!round) {
			usleep(100000);
			check(!set_filter(p, text), "%s", pcap_geterr(p));
		}
	}
	/* of ten in each round, without those that are too short */
	check(!collect(p, count, &have, &have, 16), "%u packets", have);
	close_handle(p);
	return 1;
}

/* What is in the ring when a filter is set has to pass that one. */
static int new_filter(void)
{
	pcap_t *p = must_open((struct want){});
	unsigned int have = 0, i;

	for (i = 0; i < 10; i++)
		send_one(peer_fd, PLAIN, i, 200);
	usleep(100000);
	check(!set_filter(p, "udp"), "%s", pcap_geterr(p));
	for (i = 0; i < 10; i++) {
		send_one(peer_fd, PLAIN, i, 200);
		send_one(peer_fd, VLAN_UDP, i, 200);
	}
	check(!collect(p, count, &have, &have, 10), "%u packets", have);
	close_handle(p);
	return 1;
}

static int directions(void)
{
	static const pcap_direction_t ways[] = {
		PCAP_D_IN, PCAP_D_OUT, PCAP_D_INOUT
	};
	unsigned int i, k;

	for (k = 0; k < 3; k++) {
		unsigned int have = 0, want = 0;
		pcap_t *p = must_open((struct want){});
		int fd = packet_socket(device);

		check(!pcap_setdirection(p, ways[k]), "%s", pcap_geterr(p));
		for (i = 0; i < 5; i++)
			send_one(peer_fd, PLAIN, i, 100);
		for (i = 0; i < 3; i++)
			send_one(fd, PLAIN, i, 100);
		close(fd);
		if (ways[k] != PCAP_D_OUT)
			want += 5;
		if (ways[k] != PCAP_D_IN && !is_zc)
			want += 3;
		check(!collect(p, count, &have, &have, want), "%u: %u packets",
		      k, have);
		close_handle(p);
	}
	return 1;
}

static int injects(void)
{
	pcap_t *p = must_open((struct want){});
	int fd = packet_socket(peer);
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint8_t sent[1000], got[2000];
	ssize_t n;

	build(sent, PLAIN, 3, 1000);
	check(!pcap_sendpacket(p, sent, 1000), "%s", pcap_geterr(p));
	do {
		check(poll(&pfd, 1, PATIENCE) == 1, "nothing came");
		n = recv(fd, got, sizeof(got), 0);
	} while (n != 1000);
	check(!memcmp(sent, got, 1000), "other bytes");
	close(fd);
	close_handle(p);
	return 1;
}

/* What the filter refuses does not count. */
static int statistics(void)
{
	pcap_t *p = must_open((struct want){});
	unsigned int have = 0, i;
	struct pcap_stat st;

	check(!set_filter(p, "udp"), "%s", pcap_geterr(p));
	reading(p, count, (void *)&have);
	for (i = 0; i < 300; i++) {
		send_one(peer_fd, UDP, i, 200);
		send_one(peer_fd, PLAIN, i, 200);
	}
	check(!collect(p, count, &have, &have, 300), "%u packets", have);
	for (i = 0; i < 2; i++) {
		check(!pcap_stats(p, &st), "%s", pcap_geterr(p));
		check(st.ps_recv == 300 && !st.ps_drop, "%u, %u",
		      st.ps_recv, st.ps_drop);
	}
	close_handle(p);
	return 1;
}

static bool kernel_is_late;

/* The library's call: the kernel may count packets after they can be read. */
int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (kernel_is_late && level == SOL_PACKET && name == PACKET_STATISTICS) {
		memset(value, 0, *len);
		return 0;
	}
	return syscall(SYS_getsockopt, fd, level, name, value, len);
}

/* A callback asks for the statistics, as Suricata's does. */
static void count_and_compare(u_char *user, const struct pcap_pkthdr *h,
			      const u_char *data)
{
	unsigned int *have = (void *)user;
	struct pcap_stat st;

	(void)h;
	(void)data;
	have[0]++;
	if (pcap_stats(handles[0], &st) || st.ps_recv < have[0])
		have[1]++;
}

static int late_statistics(void)
{
	unsigned int have[2] = { 0, 0 }, i;
	pcap_t *p = must_open((struct want){});
	struct pcap_stat st;

	check(p == handles[0], "not the first handle");
	kernel_is_late = true;
	for (i = 0; i < 100; i++)
		send_one(peer_fd, UDP, i, 200);
	i = collect(p, count_and_compare, have, have, 100);
	kernel_is_late = false;
	check(!i, "%u packets", have[0]);
	check(!have[1], "%u times more delivered than received", have[1]);
	check(!pcap_stats(p, &st), "%s", pcap_geterr(p));
	check(st.ps_recv == 100 && !st.ps_drop, "%u, %u", st.ps_recv,
	      st.ps_drop);
	close_handle(p);
	return 1;
}

static int overload(void)
{
	pcap_t *p = must_open((struct want){ .buffer = 1 << 20 });
	unsigned int have = 0, i, nr = 12000;
	struct pcap_stat st;

	for (i = 0; i < nr; i++)
		send_one(peer_fd, PLAIN, i, 1400);
	check(!pcap_stats(p, &st), "%s", pcap_geterr(p));
	check(st.ps_recv == nr && st.ps_drop && st.ps_drop < nr,
	      "%u, %u dropped", st.ps_recv, st.ps_drop);
	check(!collect(p, count, &have, &have, nr - st.ps_drop),
	      "%u packets, %u dropped", have, st.ps_drop);
	/* and then it goes on */
	reading(p, count, (void *)&have);
	for (i = 0; i < 100; i++)
		send_one(peer_fd, PLAIN, i, 1400);
	check(!collect(p, count, &have, &have, nr - st.ps_drop + 100),
	      "%u packets", have);
	close_handle(p);
	return 1;
}

static int nonblocking(void)
{
	pcap_t *p = must_open((struct want){ .immediate = 1 });
	struct epoll_event event = { .events = EPOLLIN };
	struct pollfd pfd = { .events = POLLIN };
	unsigned int have = 0;
	int i, epfd;

	pfd.fd = pcap_get_selectable_fd(p);
	check(pfd.fd >= 0, "no fd");
	epfd = epoll_create1(EPOLL_CLOEXEC);
	check(!epoll_ctl(epfd, EPOLL_CTL_ADD, pfd.fd, &event), "epoll_ctl()");
	check(!pcap_setnonblock(p, 1, errbuf), "%s", errbuf);
	check(pcap_getnonblock(p, errbuf) == 1, "%s", errbuf);
	for (i = 0; i < 5; i++) {
		check(!pcap_dispatch(p, -1, count, (void *)&have), "not 0");
		check(!poll(&pfd, 1, 50), "readable, but empty");
		check(!epoll_wait(epfd, &event, 1, 0), "epoll: readable");
		send_one(peer_fd, PLAIN, i, 100);
		send_one(peer_fd, PLAIN, i, 100);
		check(poll(&pfd, 1, PATIENCE) == 1 && pfd.revents == POLLIN,
		      "not readable: %x", pfd.revents);
		check(epoll_wait(epfd, &event, 1, PATIENCE) == 1 &&
		      event.events == EPOLLIN, "epoll: %x", event.events);
		/* one at a time: the other one is still to be told of */
		check(pcap_dispatch(p, 1, count, (void *)&have) == 1, "not 1");
		check(poll(&pfd, 1, PATIENCE) == 1, "not readable");
		while (have < 2 * i + 2u)
			check(pcap_dispatch(p, -1, count, (void *)&have) >= 0,
			      "%s", pcap_geterr(p));
	}
	close(epfd);
	close_handle(p);
	return 1;
}

static pcap_t *to_break;

static void on_alarm(int signum)
{
	(void)signum;
	pcap_breakloop(to_break);
}

static void *break_later(void *arg)
{
	usleep(200000);
	pcap_breakloop(arg);
	return NULL;
}

static int breaks(bool by_signal)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval soon = { .it_value.tv_usec = 100000 };
	pcap_t *p = must_open((struct want){});
	unsigned int have = 0;
	pthread_t thread;
	int rc;

	to_break = p;
	if (by_signal) {
		check(!sigaction(SIGALRM, &action, NULL), "sigaction()");
		check(!setitimer(ITIMER_REAL, &soon, NULL), "setitimer()");
	} else {
		pthread_create(&thread, NULL, break_later, p);
	}
	rc = pcap_loop(p, -1, count, (void *)&have);
	if (!by_signal)
		pthread_join(thread, NULL);
	check(rc == PCAP_ERROR_BREAK, "%d", rc);
	/* and goes on */
	send_one(peer_fd, PLAIN, 0, 100);
	check(!collect(p, count, &have, &have, 1), "%u packets", have);
	close_handle(p);
	return 1;
}

enum change { BREAK, FILTER, DIRECTION };

struct changer {
	pcap_t *p;
	enum change what;
	unsigned int nr;
	int rc;
};

/* Of what is in the ring, only five packets are to come. */
static void change(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	struct changer *c = (void *)user;

	(void)h;
	(void)data;
	if (++c->nr != 5)
		return;
	if (c->what == BREAK)
		pcap_breakloop(c->p);
	else if (c->what == FILTER)
		c->rc = set_filter(c->p, "udp");
	else
		c->rc = pcap_setdirection(c->p, PCAP_D_OUT);
}

static int callback_changes(void)
{
	enum change what;
	unsigned int i;
	int rc;

	for (what = BREAK; what <= DIRECTION; what++) {
		pcap_t *p = must_open((struct want){});
		struct changer c = { .p = p, .what = what };

		for (i = 0; i < 20; i++)
			send_one(peer_fd, PLAIN, i, 100);
		if (what == BREAK) {
			rc = pcap_loop(p, -1, change, (void *)&c);
			check(rc == PCAP_ERROR_BREAK, "%d", rc);
			check(c.nr == 5, "%u packets", c.nr);
		}
		check(!collect(p, change, &c, &c.nr, what == BREAK ? 20 : 5),
		      "change %d: %u packets", what, c.nr);
		check(!c.rc, "change %d: %s", what, pcap_geterr(p));
		close_handle(p);
	}
	return 1;
}

/* What a callback does with a packet */
struct dumping {
	pcap_dumper_t *to[2];
	struct got got;
};

/* Write each packet to two files, and each way to the first one: with other
 * lengths, from its middle, from a copy, and as it is.
 */
static void dump(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	struct dumping *d = (void *)user;
	struct pcap_pkthdr cut = *h;
	u_char *to = (u_char *)d->to[0];
	uint8_t copy[MAX_LEN + 4];

	memcpy(copy, data, h->caplen);
	pcap_dump(to, h, data);
	pcap_dump(to, h, copy);
	cut.caplen = h->caplen / 2;
	pcap_dump(to, &cut, data);
	pcap_dump(to, &cut, data + cut.caplen);
	pcap_dump(to, h, data);
	pcap_dump((u_char *)d->to[1], h, data);
	take((u_char *)&d->got, h, data);
}

/* Check the next record of a file: bytes from @from on of packet @seq. */
static int reads(pcap_t *p, unsigned int seq, unsigned int len,
		 unsigned int from, unsigned int caplen)
{
	struct pcap_pkthdr *h;
	const u_char *data;
	uint8_t want[MAX_LEN + 4];
	int rc = pcap_next_ex(p, &h, &data);

	check(rc == 1, "%d, %s", rc, pcap_geterr(p));
	build(want, PLAIN, seq, len);
	check(h->len == len && h->caplen == caplen, "%u of %u, not %u of %u",
	      h->caplen, h->len, caplen, len);
	check(!memcmp(data, want + from, caplen), "packet %u from %u", seq,
	      from);
	return 1;
}

static int dumps(void)
{
	static const unsigned int lens[] = { 60, 256, 257, 1500, 300, 100, 5000 };
	enum { KINDS = sizeof(lens) / sizeof(*lens), NR = 6 * KINDS };
	pcap_t *p = must_open((struct want){}), *file;
	struct dumping d = { .got = { .kind = PLAIN } };
	char path[2][32] = { "/tmp/pcap_test.XXXXXX", "/tmp/pcap_test.XXXXXX" };
	struct pcap_pkthdr *h;
	const u_char *data;
	unsigned int i, k;
	int rc;

	for (k = 0; k < 2; k++) {
		close(mkstemp(path[k]));
		d.to[k] = pcap_dump_open(p, path[k]);
		check(d.to[k], "%s", pcap_geterr(p));
	}
	reading(p, dump, &d);
	for (i = 0; i < NR; i++)
		send_one(peer_fd, PLAIN, i, lens[i % KINDS]);
	check(!collect(p, dump, &d, &d.got.nr, NR), "%u packets", d.got.nr);
	check(!d.got.bad, "%u packets", d.got.bad);

	/* One that no callback has */
	send_one(peer_fd, PLAIN, NR, 1400);
	do {
		rc = pcap_next_ex(p, &h, &data);
	} while (!rc);
	check(rc == 1, "%d, %s", rc, pcap_geterr(p));
	pcap_dump((u_char *)d.to[1], h, data);
	close_handle(p);

	for (k = 0; k < 2; k++) {
		pcap_dump_close(d.to[k]);
		file = pcap_open_offline(path[k], errbuf);
		unlink(path[k]);
		check(file, "%s", errbuf);
		for (i = 0; i < NR; i++) {
			unsigned int len = lens[i % KINDS], half = len / 2;

			if (!reads(file, i, len, 0, len))
				return 0;
			if (k == 0 && (!reads(file, i, len, 0, len) ||
				       !reads(file, i, len, 0, half) ||
				       !reads(file, i, len, half, half) ||
				       !reads(file, i, len, 0, len)))
				return 0;
		}
		if (k == 1 && !reads(file, NR, 1400, 0, 1400))
			return 0;
		rc = pcap_next_ex(file, &h, &data);
		check(rc == PCAP_ERROR_BREAK, "%d", rc);
		pcap_close(file);
	}
	return 1;
}

/* What pcap_next_ex() gives stays while others arrive, up to the next one. */
static int one_by_one(void)
{
	pcap_t *p = must_open((struct want){ .immediate = 1 });
	struct pcap_pkthdr *h;
	const u_char *data;
	uint8_t want[5000];
	unsigned int i, k;
	int rc;

	/* V2, which takes the place of V3 here, has room for 32. */
	for (i = 0; i < 20; i++)
		send_one(peer_fd, PLAIN, i, i & 1 ? 5000 : 100);
	for (i = 0; i < 30; i++) {
		unsigned int len = i < 20 && i & 1 ? 5000 : 100;

		do {
			rc = pcap_next_ex(p, &h, &data);
		} while (!rc);
		check(rc == 1, "%d, %s", rc, pcap_geterr(p));
		if (i == 15)
			for (k = 0; k < 10; k++)
				send_one(peer_fd, PLAIN, 20 + k, 100);
		build(want, PLAIN, i, len);
		check(h->caplen == len && !memcmp(data, want, len),
		      "packet %u", i);
	}
	close_handle(p);
	return 1;
}

static void set_up(const char *ifname, int up)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq ifr = {};

	snprintf(ifr.ifr_name, IFNAMSIZ, "%s", ifname);
	if (ioctl(fd, SIOCGIFFLAGS, &ifr))
		err(1, "%s", ifname);
	ifr.ifr_flags = up ? ifr.ifr_flags | IFF_UP : ifr.ifr_flags & ~IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &ifr))
		err(1, "%s", ifname);
	close(fd);
	usleep(300000);
}

static int down_and_up(void)
{
	pcap_t *p = must_open((struct want){});
	unsigned int have = 0, i;
	int status;

	set_up(device, 0);
	pcap_setnonblock(p, 1, errbuf);
	for (i = 0; i < 20; i++)
		check(!pcap_dispatch(p, -1, count, (void *)&have), "%s",
		      pcap_geterr(p));
	check(!open_handle(name, (struct want){}, &status) &&
	      status == PCAP_ERROR_IFACE_NOT_UP,
	      "%d, %s", status, errbuf);
	set_up(device, 1);
	for (i = 0; i < 20; i++)
		send_one(peer_fd, PLAIN, i, 100);
	check(!collect(p, count, &have, &have, 20), "%u packets", have);
	close_handle(p);
	return 1;
}

static int several_handles(void)
{
	pcap_t *p = must_open((struct want){}), *q;
	unsigned int a = 0, b = 0, i;
	int status;

	q = open_handle(is_zc ? device : name, (struct want){}, &status);
	check(q, "%d, %s", status, errbuf);
	for (i = 0; i < 50; i++)
		send_one(peer_fd, PLAIN, i, 100);
	check(!collect(p, count, &a, &a, 50), "%u packets", a);
	check(!collect(q, count, &b, &b, is_zc ? 0 : 50), "%u packets", b);
	close_handle(q);
	if (is_zc) {
		q = open_handle(name, (struct want){}, &status);
		check(!q && status == PCAP_ERROR && strstr(errbuf, "already used"),
		      "%d, %s", status, errbuf);
	}
	close_handle(p);
	return 1;
}

static int promiscuous(void)
{
	pcap_t *p = must_open((struct want){ .promisc = 1 });
	char path[64], text[16] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/net/%s/flags", device);
	file = fopen(path, "r");
	check(file && fgets(text, sizeof(text), file), "%s", path);
	fclose(file);
	check(strtol(text, NULL, 16) & IFF_PROMISC, "%s", text);
	close_handle(p);
	return 1;
}

static int refuses(const char *what, const char *text)
{
	int status;
	pcap_t *p = open_handle(what, (struct want){}, &status);

	check(!p && strstr(errbuf, text), "%s: %d, %s", what, status, errbuf);
	return 1;
}

static int errors(void)
{
	char text[64];

	snprintf(text, sizeof(text), "zc:%s:99", device);
	check(refuses(text, "has no queue 99"), "no queue");
	snprintf(text, sizeof(text), "zc:%s:x", device);
	check(refuses(text, "not a list of queues"), "no number");
	snprintf(text, sizeof(text), "zc:%s:", device);
	check(refuses(text, "not a list of queues"), "no number");
	return refuses("zc:lo", "no zero-copy mode") &&
	       refuses("zc:any", "single interfaces") &&
	       refuses("zc:nodevice", "No such device");
}

/* Only on request */
static int lists_zerocopy(void)
{
	unsigned int plain = 0, found = 0, pos = 1;
	pcap_if_t *devs, *d;
	char zc[64];

	snprintf(zc, sizeof(zc), "zc:%s+stack", device);
	unsetenv("PCAP_ZC");
	check(!pcap_findalldevs(&devs, errbuf), "%s", errbuf);
	for (d = devs; d; d = d->next)
		check(strncmp(d->name, "zc:", 3), "%s is listed", d->name);
	pcap_freealldevs(devs);
	setenv("PCAP_ZC", "1", 1);
	check(!pcap_findalldevs(&devs, errbuf), "%s", errbuf);
	unsetenv("PCAP_ZC");
	for (d = devs; d; d = d->next, pos++) {
		check(strcmp(d->name, "zc:lo+stack"), "lo is listed");
		if (!strcmp(d->name, device))
			plain = pos;
		if (!strcmp(d->name, zc))
			found = pos;
	}
	check(strncmp(devs->name, "zc:", 3), "%s is the first", devs->name);
	pcap_freealldevs(devs);
	check(plain && found > plain, "%s is %u, %s %u", device, plain, zc,
	      found);
	return 1;
}

/* Wireshark opens every device that is listed: the host does not notice, and
 * the queue is still free.
 */
static int opens_all(void)
{
	unsigned int nr = 0, zerocopy = 0, received = 0, i;
	struct pollfd pfd = { .events = POLLIN };
	pcap_t *taken, *all[64];
	pcap_if_t *devs, *d;
	uint8_t p[200];
	char zc[64];

	check(!pcap_findalldevs(&devs, errbuf), "%s", errbuf);
	for (d = devs; d && nr < 64; d = d->next) {
		all[nr] = pcap_create(d->name, errbuf);
		if (!all[nr])
			continue;
		if (pcap_activate(all[nr]) < 0) {
			printf("# %s: %s\n", d->name, pcap_geterr(all[nr]));
			pcap_close(all[nr]);
			continue;
		}
		zerocopy += !strncmp(d->name, "zc:", 3);
		nr++;
	}
	pcap_freealldevs(devs);
	pfd.fd = packet_socket(device);
	for (i = 0; i < 20; i++)
		send_one(peer_fd, PLAIN, i, 100);
	while (received < 20 && poll(&pfd, 1, PATIENCE) == 1)
		received += recv(pfd.fd, p, sizeof(p), 0) == 100;
	close(pfd.fd);
	snprintf(zc, sizeof(zc), "zc:%s", device);
	taken = pcap_create(zc, errbuf);
	check(taken && pcap_activate(taken) >= 0, "%s: %s", zc,
	      taken ? pcap_geterr(taken) : errbuf);
	pcap_close(taken);
	while (nr)
		pcap_close(all[--nr]);
	check(!zerocopy, "%u devices", zerocopy);
	check(received == 20, "%u packets", received);
	return 1;
}

static unsigned int packet_sockets(void)
{
	FILE *file = fopen("/proc/net/packet", "r");
	unsigned int n = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		n++;
	if (file)
		fclose(file);
	return n;
}

/* As with nsenter -n: /sys does not have the device. All queues are captured. */
static int queues_without_sys(void)
{
	struct want want = {};
	unsigned int before;
	int status;
	pcap_t *p;

	check(!system("ip link add tp4Q numrxqueues 4 numtxqueues 4 type veth "
		      "peer name tp4R numrxqueues 4 numtxqueues 4 && "
		      "ip link set tp4Q up && ip link set tp4R up"), "no device");
	check(!unshare(CLONE_NEWNS) &&
	      !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	      !mount("none", "/sys", "tmpfs", 0, NULL), "%d", errno);
	before = packet_sockets();
	p = open_handle("zc:tp4Q", want, &status);
	check(p, "%d, %s", status, errbuf);
	check(packet_sockets() == before + 4, "%u sockets, %u before",
	      packet_sockets(), before);
	close_handle(p);
	umount("/sys");
	check(!system("ip link del tp4Q"), "not removed");
	return 1;
}

/* Some queues of a device with four, and its network */
static int queue_lists(void)
{
	static const char *const bad[] = { "0,", ",1", "1,,2", "3-1", "4096",
					   "1-", "1;2", "0-1-2" };
	struct want want = {};
	pcap_t *some, *others;
	bpf_u_int32 net, mask;
	unsigned int i, have = 0;
	int status;
	char text[32];

	check(!system("ip link add tp4Q numrxqueues 4 numtxqueues 4 type veth "
		      "peer name tp4R numrxqueues 4 numtxqueues 4 && "
		      "ip addr add 192.0.2.17/28 dev tp4Q && "
		      "ip link set tp4Q up && ip link set tp4R up"), "no device");
	some = open_handle("zc:tp4Q:1,3", want, &status);
	check(some, "%d, %s", status, errbuf);
	for (i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), "zc:tp4Q:%u", i);
		others = open_handle(text, want, &status);
		check((others == NULL) == (i & 1), "queue %u: %s", i, errbuf);
		check(others || strstr(errbuf, "already used"), "%s", errbuf);
		if (others)
			close_handle(others);
	}
	others = open_handle("zc:tp4Q:2,0,0-0+stack", want, &status);
	check(others, "%d, %s", status, errbuf);
	check(!pcap_stats(some, &(struct pcap_stat){ 0 }), "%s",
	      pcap_geterr(some));
	/* there may be no packet for these queues */
	check(!pcap_setnonblock(others, 1, errbuf), "%s", errbuf);
	check(pcap_dispatch(others, -1, count, (void *)&have) >= 0, "%s",
	      pcap_geterr(others));
	close_handle(some);
	close_handle(others);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(text, sizeof(text), "zc:tp4Q:%s", bad[i]);
		check(!open_handle(text, want, &status) &&
		      strstr(errbuf, "not a list of queues"), "%s: %s", text,
		      errbuf);
	}
	check(!pcap_lookupnet("zc:tp4Q:1,3+stack", &net, &mask, errbuf), "%s",
	      errbuf);
	check(net == htonl(0xc0000210) && mask == htonl(0xfffffff0),
	      "%08x, %08x", ntohl(net), ntohl(mask));
	check(!pcap_lookupnet("zc:tp4Q", &net, &mask, errbuf) &&
	      mask == htonl(0xfffffff0), "%s", errbuf);
	check(pcap_lookupnet("zc:tp4R", &net, &mask, errbuf) < 0 &&
	      strstr(errbuf, "no IPv4 address"), "%s", errbuf);
	check(!system("ip link del tp4Q"), "not removed");
	return 1;
}

static int removed(void)
{
	pcap_t *p = must_open((struct want){});
	unsigned int have = 0, i;
	char command[80];
	int rc = 0;

	for (i = 0; i < 20; i++)
		send_one(peer_fd, PLAIN, i, 100);
	check(!collect(p, count, &have, &have, 20), "%u packets", have);
	snprintf(command, sizeof(command), "ip link del %s", device);
	check(!system(command), "%s", command);
	for (i = 0; i < 1000 && rc >= 0; i++)
		rc = pcap_dispatch(p, -1, count, (void *)&have);
	check(rc == PCAP_ERROR && strstr(pcap_geterr(p), "disappeared"),
	      "%d, %s", rc, pcap_geterr(p));
	close_handle(p);
	return 1;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		errx(2, "usage: pcap_test v3|v4|zc DEVICE PEER");
	is_zc = !strcmp(argv[1], "zc");
	is_v4 = is_zc || !strcmp(argv[1], "v4");
	device = argv[2];
	peer = argv[3];
	snprintf(name, sizeof(name), "%s%s", is_zc ? "zc:" : "", device);
	set_up("lo", 1);
	peer_fd = packet_socket(peer);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n# %s\n", pcap_lib_version());

	result(uses_right_ring(), "the ring is of the right version");
	result(receives(), "packets come whole, in order and with their time");
	result(joins_frames(), "packets of several frames are joined");
	result(cuts(), "the snapshot length cuts, the wire length stays");
	result(filters(), "filters pass what they have to");
	result(new_filter(), "a new filter is for what is in the ring, too");
	result(directions(), "directions");
	result(injects(), "what is injected arrives");
	result(statistics(), "statistics count what the filter passes");
	if (is_v4)
		result(late_statistics(), "received is never less than delivered");
	result(overload(), "what is received is delivered or counted as dropped");
	result(nonblocking(), "non-blocking, and a descriptor to wait for");
	result(breaks(false), "pcap_breakloop() of another thread");
	result(breaks(true), "pcap_breakloop() of a signal handler");
	result(callback_changes(), "what a callback changes holds from the next packet on");
	result(dumps(), "pcap_dump() writes what it was given");
	result(one_by_one(), "pcap_next_ex() one by one");
	result(down_and_up(), "the interface goes down and up");
	result(several_handles(), "several handles");
	result(promiscuous(), "promiscuous mode");
	if (is_v4) {
		result(filters_direction(), "filters know the direction");
		result(errors(), "errors of zero-copy mode say what is wrong");
		result(lists_zerocopy(), "zero-copy devices are listed behind the others");
		result(opens_all(), "with all devices open, the host receives");
		result(filters_long(), "filters see what the snapshot length cuts off");
		result(queue_lists(), "lists of queues, and the network of an interface");
		result(queues_without_sys(), "all queues, in another namespace's /sys");
	}
	result(removed(), "the interface disappears");
	printf("1..%d\n", number);
	return failed;
}
