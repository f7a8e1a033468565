// SPDX-License-Identifier: GPL-2.0
/* Captures from an interface with AF_PACKET V4 to a pcap file until SIGINT or
 * SIGTERM. For cap.sh, which compares the file with that of tcpdump. Fails if
 * packets were lost.
 */
#include <signal.h>

#include "ring.h"

#define RX_DESCS	8192
#define SNAPLEN		262144

static int stop;

static void on_signal(int sig)
{
	(void)sig;
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

struct pcap_file {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, sigfigs, snaplen, linktype;
};

struct pcap_packet {
	uint32_t sec, usec, caplen, len;
};

static int write_packet(FILE *f, const void *data, int len)
{
	struct pcap_packet h = { .caplen = len, .len = len };
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	h.sec = ts.tv_sec;
	h.usec = ts.tv_nsec / 1000;
	return fwrite(&h, sizeof(h), 1, f) == 1 &&
	       fwrite(data, len, 1, f) == 1 ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct pv4_cfg cfg = { .rx_nr = RX_DESCS };
	struct pcap_file head = {
		.magic = 0xa1b2c3d4, .major = 2, .minor = 4,
		.snaplen = SNAPLEN, .linktype = 1,
	};
	struct sigaction sa = { .sa_handler = on_signal };
	static char buf[SNAPLEN];
	struct tpacket_stats_v4 st;
	unsigned int n = 0;
	struct pv4 s;
	int len, err;
	FILE *f;

	if (argc != 3) {
		fprintf(stderr, "usage: %s INTERFACE FILE\n", argv[0]);
		return 2;
	}
	cfg.ifname = argv[1];
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	f = fopen(argv[2], "w");
	if (!f || fwrite(&head, sizeof(head), 1, f) != 1) {
		perror(argv[2]);
		return 1;
	}
	err = pv4_open(&s, &cfg);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	/* the script waits for this line */
	printf("capturing on %s\n", argv[1]);
	fflush(stdout);
	/* when stopped, read what has been received */
	for (;;) {
		bool last = __atomic_load_n(&stop, __ATOMIC_RELAXED);

		len = pv4_recv(&s, buf, sizeof(buf), last ? 0 : 50);
		if (len == -EAGAIN && last)
			break;
		if (len == -EAGAIN) {
			fflush(f);
			continue;
		}
		if (len < 0 || write_packet(f, buf, len)) {
			fprintf(stderr, "packet %u: %s\n", n,
				len < 0 ? strerror(-len) : "write error");
			return 1;
		}
		n++;
	}
	err = pv4_stats(s.fd, &st);
	if (err || fclose(f)) {
		fprintf(stderr, "%s: %s\n", argv[2], strerror(errno));
		return 1;
	}
	printf("%u packets captured, %u received, %u dropped\n", n,
	       st.tp_packets, st.tp_drops);
	pv4_close(&s);
	return n != st.tp_packets || st.tp_drops ? 1 : 0;
}
