// SPDX-License-Identifier: GPL-2.0
/*
 * old_program IF PEER: a program of version 1.3 with the shared object of today.
 * All memory behind its structures and between their members is filled with
 * 0xff. Prints TAP.
 */

#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/if_ether.h>

#include "version_1_3.h"

#define NR	256
#define SIZE	2048
#define LEN	100
#define PACKETS	20
#define PROTO	0x88b5

static struct {
	struct tp4_area it;
	__u8 guard[64];
} area, second, huge;

static struct {
	struct tp4_socket it;
	__u8 guard[64];
} rx, tx;

static struct {
	struct tp4_options it;
	__u8 guard[64];
} opt;

static int tests, failed;

static void result(int ok, const char *name)
{
	printf("%sok %d %s\n", ok ? "" : "not ", ++tests, name);
	failed |= !ok;
}

static int whole(const __u8 *guard)
{
	unsigned int i;

	for (i = 0; i < 64; i++)
		if (guard[i] != 0xff)
			return 0;
	return 1;
}

static void fill(__u8 *p, int i)
{
	static const __u8 header[] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2,
				       PROTO >> 8, PROTO & 255 };

	memset(p, i, LEN);
	memcpy(p, header, sizeof(header));
}

static void options(const struct tp4_area *a, int rx_nr, int tx_nr)
{
	memset(&opt, 0xff, sizeof(opt));
	opt.it.rx_nr = rx_nr;
	opt.it.tx_nr = tx_nr;
	opt.it.area = a;
	opt.it.headroom = 0;
	opt.it.mr_fd = 0;
	opt.it.fd = 0;
	opt.it.meta = 1;
	opt.it.to_stack = 0;
	opt.it.protocol = PROTO;
	opt.it.keep = 0;
}

static int send_all(void)
{
	struct tpacket4_desc d;
	int i;

	for (i = 0; i < PACKETS; i++) {
		memset(&d, 0, sizeof(d));
		d.idx = NR + i;
		d.offset = 64;
		d.len = LEN;
		if ((__u8 *)tp4_meta_new(&second.it, &d) + 64 !=
		    tp4_data(&second.it, &d))
			return 0;
		fill(tp4_data(&second.it, &d), i);
		if (tp4_ring_send(&tx.it.tx, &d, 1) != 1)
			return 0;
	}
	return tp4_kick(&tx.it, 0) == LEN * PACKETS;
}

/* Return: the number of packets that are as they were sent */
static int receive_all(void)
{
	const struct tpacket4_meta *m;
	struct tpacket4_desc *d;
	__u8 sent[LEN];
	int i = 0;

	while (i < PACKETS && tp4_wait(&rx.it, POLLIN, 20000) > 0) {
		for (; tp4_ring_peek(&rx.it.rx, 1); i++) {
			d = tp4_ring_at(&rx.it.rx, 0);
			m = tp4_meta(&area.it, d);
			fill(sent, i);
			if (!m || m->wire_len != LEN || d->len != LEN ||
			    memcmp(tp4_data(&area.it, d), sent, LEN))
				return i;
			tp4_ring_recycle(&rx.it.rx, 1);
		}
	}
	return i;
}

int main(int argc, char **argv)
{
	int err, fd, ifindex[2];

	if (argc != 3) {
		fprintf(stderr, "usage: old_program IF PEER\n");
		return 2;
	}
	ifindex[0] = if_nametoindex(argv[1]);
	ifindex[1] = if_nametoindex(argv[2]);
	memset(&area, 0xff, sizeof(area));
	memset(&second, 0xff, sizeof(second));
	memset(&huge, 0xff, sizeof(huge));
	memset(&rx, 0xff, sizeof(rx));
	memset(&tx, 0xff, sizeof(tx));
	printf("TAP version 13\n");

	result(!tp4_area_create(&area.it, 2 * NR, SIZE), "area");
	second.it.memfd = dup(area.it.memfd);
	second.it.frame_size = SIZE;
	second.it.nr_frames = 2 * NR;
	result(!tp4_area_attach(&second.it), "the same area again");
	tp4_frame(&area.it, 2 * NR - 1)[SIZE - 1] = 99;
	result(tp4_frame(&second.it, 2 * NR - 1)[SIZE - 1] == 99, "frames");
	err = tp4_area_create_huge(&huge.it, 16, SIZE);
	result(!err == !!huge.it.addr || huge.it.memfd == -1, "huge pages");
	if (!err)
		tp4_area_destroy(&huge.it);
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	result(!tp4_area_register(&area.it, fd, 0), "register");
	close(fd);

	options(&area.it, NR, 0);
	result(!tp4_open(&rx.it, &opt.it), "Rx socket");
	result(tp4_ring_fill(&rx.it.rx, 0, NR) == NR, "post");
	result(!tp4_bind(&rx.it, ifindex[0]), "bind");
	options(&second.it, 0, NR);
	result(!tp4_open(&tx.it, &opt.it), "Tx socket");
	result(!tp4_bind(&tx.it, ifindex[1]), "bind Tx");
	result(send_all(), "send");
	result(receive_all() == PACKETS, "receive");

	tp4_close(&rx.it);
	tp4_close(&tx.it);
	tp4_area_destroy(&area.it);
	tp4_area_destroy(&second.it);
	result(!area.it.addr && area.it.memfd == -1, "destroy");
	result(whole(area.guard) && whole(second.guard) && whole(huge.guard) &&
	       whole(rx.guard) && whole(tx.guard) && whole(opt.guard),
	       "nothing is written behind the structures");
	printf("1..%d\n", tests);
	return failed;
}
