// SPDX-License-Identifier: GPL-2.0
/*
 * lib_debug IF PEER: with TP4_DEBUG, each wrong use of a ring ends the program,
 * and right use does not.
 */
#define TP4_DEBUG

#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tpacket4.h>

#define NR	256

static struct tp4_area area;
static struct tp4_socket s, peer;
static int ifindex, peerindex;

static void send_frame(__u64 frame)
{
	unsigned char p[60] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5 };
	struct tpacket4_desc d = { .idx = frame, .len = sizeof(p) };

	memcpy(tp4_data(&area, &d), p, sizeof(p));
	tp4_ring_send(&peer.tx, &d, 1);
}

static void send_some(unsigned int n)
{
	for (; n; n--)
		send_frame(3 * NR + n);
	tp4_kick(&peer, 0);
}

static void receive(unsigned int n)
{
	while (tp4_ring_peek(&s.rx, n) < n)
		if (tp4_wait(&s, POLLIN, 20000) <= 0)
			exit(2);
}

static void right_use(void)
{
	unsigned int i;

	for (i = 0; i < 3 * NR; i++) {
		send_some(3);
		receive(3);
		if (i % 3 == 0) {
			tp4_ring_recycle(&s.rx, 3);
		} else {
			tp4_ring_forward(&s.rx, &s.tx, 3);
			tp4_kick(&s, 0);
			while (tp4_ring_peek(&s.tx, 3) < 3)
				tp4_cpu_relax();
			tp4_ring_refill(&s.tx, &s.rx, 3);
		}
		while (tp4_ring_peek(&peer.tx, 3) < 3)
			tp4_cpu_relax();
		tp4_ring_take(&peer.tx, 3);
	}
}

/* With a shared area, zero-copy mode of veth exchanges frames, so that those of
 * one socket return to the other one.
 */
static void right_use_of_exchanged_frames(void)
{
	__u64 frame = 3 * NR;
	unsigned int i;

	if (tp4_zerocopy(&s, 1) || tp4_zerocopy(&peer, 1))
		exit(2);
	for (i = 0; i < 3 * NR; i++) {
		send_frame(frame);
		tp4_kick(&peer, 0);
		receive(1);
		tp4_ring_recycle(&s.rx, 1);
		while (!tp4_ring_peek(&peer.tx, 1))
			tp4_cpu_relax();
		frame = tp4_ring_at(&peer.tx, 0)->idx;
		tp4_ring_take(&peer.tx, 1);
	}
}

static void take_more_than_was_peeked(void)
{
	send_some(1);
	receive(1);
	tp4_ring_take(&s.rx, 2);
}

static void recycle_more_than_was_peeked(void)
{
	tp4_ring_recycle(&s.rx, 1);
}

static void post_a_frame_that_does_not_exist(void)
{
	__u64 frame = 4 * NR;

	send_some(1);
	receive(1);
	tp4_ring_take(&s.rx, 1);
	tp4_ring_post(&s.rx, &frame, 1);
}

static void post_a_frame_twice(void)
{
	__u64 frame;

	send_some(2);
	receive(2);
	frame = tp4_ring_at(&s.rx, 0)->idx;
	tp4_ring_take(&s.rx, 2);
	tp4_ring_post(&s.rx, &frame, 1);
	tp4_ring_post(&s.rx, &frame, 1);
}

static void exchange_for_a_frame_that_is_posted(void)
{
	__u64 frame = 1;

	send_some(1);
	receive(1);
	tp4_ring_exchange(&s.rx, &frame, 1);
}

static void send_a_frame_that_is_posted(void)
{
	struct tpacket4_desc d = { .idx = 5, .len = 60 };

	tp4_ring_send(&s.tx, &d, 1);
}

static const struct {
	const char *name;
	void (*run)(void);
	int signal;
} tests[] = {
	{ "right_use", right_use, 0 },
	{ "right_use_of_exchanged_frames", right_use_of_exchanged_frames, 0 },
	{ "take_more_than_was_peeked", take_more_than_was_peeked, SIGABRT },
	{ "recycle_more_than_was_peeked", recycle_more_than_was_peeked,
	  SIGABRT },
	{ "post_a_frame_that_does_not_exist", post_a_frame_that_does_not_exist,
	  SIGABRT },
	{ "post_a_frame_twice", post_a_frame_twice, SIGABRT },
	{ "send_a_frame_that_is_posted", send_a_frame_that_is_posted, SIGABRT },
	{ "exchange_for_a_frame_that_is_posted",
	  exchange_for_a_frame_that_is_posted, SIGABRT },
};

static int child(unsigned int i)
{
	struct tp4_options opt = { .area = &area, .rx_nr = NR, .tx_nr = NR };
	struct tp4_options sender = { .area = &area, .tx_nr = NR };

	if (tp4_area_create(&area, 4 * NR, 2048) || tp4_open(&s, &opt))
		return 2;
	sender.mr_fd = s.fd;
	tp4_ring_fill(&s.rx, 0, NR);
	if (tp4_setopt(s.fd, PACKET_IGNORE_OUTGOING, 1) ||
	    tp4_open(&peer, &sender) || tp4_bind(&s, ifindex) ||
	    tp4_bind(&peer, peerindex))
		return 2;
	tests[i].run();
	return 0;
}

int main(int argc, char **argv)
{
	unsigned int i, failed = 0, nr = sizeof(tests) / sizeof(*tests);
	int status, ok;
	pid_t pid;

	if (argc == 3) {
		ifindex = if_nametoindex(argv[1]);
		peerindex = if_nametoindex(argv[2]);
	}
	if (!ifindex || !peerindex) {
		fprintf(stderr, "usage: lib_debug IF PEER\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n1..%u\n", nr);
	for (i = 0; i < nr; i++) {
		pid = fork();
		if (!pid)
			_exit(child(i));
		ok = pid > 0 && waitpid(pid, &status, 0) == pid &&
		     (tests[i].signal ? WIFSIGNALED(status) &&
					WTERMSIG(status) == tests[i].signal :
		      status == 0);
		failed += !ok;
		if (!ok)
			printf("# error: status %d\n", status);
		printf("%sok %u %s\n", ok ? "" : "not ", i + 1, tests[i].name);
	}
	return !!failed;
}
