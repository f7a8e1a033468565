// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* capture IF >FILE.pcap: all that passes an interface, until Ctrl-C */
#include <err.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <tpacket4.h>

enum { FRAMES = 1024, SIZE = 2048 };
static int stop;

static void on_signal(int sig)
{
	__atomic_store_n(&stop, sig, __ATOMIC_RELAXED);
}

int main(int argc, char **argv)
{
	const __u32 file[] = { 0xa1b23c4d, 2 | 4 << 16, 0, 0, 262144, 1 };
	struct sigaction sa = { .sa_handler = on_signal };
	static __u8 packet[FRAMES * SIZE];
	static __u64 frames[FRAMES];
	struct tp4_sock s = { .fd = -1 };
	struct tp4_area area = { 0 };
	struct tp4_pool pool;
	unsigned int i, n;
	__u32 len = 0;
	int e;

	sigaction(SIGINT, &sa, NULL);
	tp4_pool_init(&pool, frames, 0, FRAMES);
	e = tp4_area_create(&area, FRAMES, SIZE);
	e = e ? e : tp4_open(&s, &area, 0, -1, FRAMES, 0);
	if (!e && tp4_ring_post(&s.rx, frames, FRAMES))
		e = tp4_bind(&s, argc == 2 ? if_nametoindex(argv[1]) : 0);
	if (e)
		errx(1, "usage: capture IF >FILE.pcap: %s", strerror(-e));
	fwrite(file, sizeof(file), 1, stdout);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		for (i = 0, n = tp4_ring_peek(&s.rx, 64); i < n; i++) {
			struct tpacket4_desc *d = tp4_ring_at(&s.rx, i);
			struct timespec t;

			memcpy(packet + len, tp4_data(&area, d), d->len);
			len += d->len;
			if (d->flags & TP4_PKT_CONT)
				continue;	/* it goes on in the next */
			clock_gettime(CLOCK_REALTIME, &t);
			fwrite((__u32[]){ t.tv_sec, t.tv_nsec, len, len },
			       16, 1, stdout);
			fwrite(packet, len, 1, stdout);
			len = 0;
		}
		tp4_ring_recycle(&s.rx, n);
		if (!n && !fflush(stdout))
			tp4_wait(&s, POLLIN, -1);
	}
}
