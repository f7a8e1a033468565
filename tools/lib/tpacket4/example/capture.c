// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* capture IF > FILE.pcap: what is received on IF, until Ctrl-C */
#include <err.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <tpacket4.h>

#define FRAMES	1024
#define SIZE	2048

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = sig;
}

int main(int argc, char **argv)
{
	const __u32 file[] = { 0xa1b23c4d, 2 | 4 << 16, 0, 0, 262144, 1 };
	static __u8 packet[FRAMES * SIZE];
	__u64 frames[FRAMES];
	struct tp4_sock s = { .fd = -1 };
	struct tp4_pool pool;
	struct tp4_area area;
	unsigned int i, n;
	__u32 len = 0;

	if (argc != 2 || !if_nametoindex(argv[1]))
		errx(1, "usage: capture IF >FILE.pcap");
	signal(SIGINT, on_signal);
	tp4_pool_init(&pool, frames, 0, FRAMES);
	if ((errno = -tp4_area_create(&area, FRAMES, SIZE)) ||
	    (errno = -tp4_open(&s, &area, 0, -1, FRAMES, 0)))
		err(1, "cannot set up AF_PACKET V4");
	tp4_ring_post(&s.rx, frames, FRAMES);
	if ((errno = -tp4_bind(&s, if_nametoindex(argv[1]))))
		err(1, "%s", argv[1]);
	fwrite(file, sizeof(file), 1, stdout);
	for (; !stop; tp4_ring_recycle(&s.rx, n)) {
		for (i = 0, n = tp4_ring_peek(&s.rx, 64); i < n; i++) {
			struct tpacket4_desc *d = tp4_ring_at(&s.rx, i);
			struct timespec t;

			memcpy(packet + len, tp4_data(&area, d), d->len);
			len += d->len;
			if (d->flags & TP4_PKT_CONT)
				continue;
			clock_gettime(CLOCK_REALTIME, &t);
			fwrite((__u32[]){ t.tv_sec, t.tv_nsec, len, len }, 16,
			       1, stdout);
			fwrite(packet, len, 1, stdout);
			len = 0;
		}
		if (!n && fflush(stdout) == 0)
			tp4_wait(&s, POLLIN, -1);
	}
	return 0;
}
