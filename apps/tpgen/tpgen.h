/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tpgen: a packet generator and receiver on AF_PACKET V4
 *
 * tpgen.c	threads, signals, samples
 * options.c,.h	the command line
 * check.c	options that depend on each other
 * usage.c	what --help prints
 * parse.c	numbers, rates, addresses and ranges in it
 * packet.c	headers of the packets to send
 * vary.c,.h	fields that differ from packet to packet
 * port.c	a socket, its rings and its frames
 * pace.c,.h	when packets are due
 * tx.c		sending
 * rx.c		receiving
 * echo.c,.h	what ping and pong share
 * ping.c	sending pings
 * pong.c	answering them
 * replay.c	sending a capture file
 * search.c	the highest rate without loss
 * bisect.c,.h	the rates that are tried for it
 * refuse.c	packets that the kernel has refused
 * slots.c,.h	frames of packets of any size
 * input.c,.h	reading a file of any kind as a whole
 * pcap.c,.h	finding the packets of a capture file
 * pcapng.c,.h	writing a capture file
 * stream.c,.h	lost, reordered and duplicate packets
 * hist.c,.h	histograms of latency
 * report.c	rates each second, the summary
 * json.c	the summary as JSON
 * plot.c	rate and latency over time as SVG
 * dump.c	packets as hexadecimal text
 */
#ifndef TPGEN_H
#define TPGEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include <tpacket4.h>

#include "hist.h"

#define MAX_THREADS	128
#define MAX_STREAMS	256		/* that a thread keeps apart */
#define BATCH		64
#define TX_FRAMES	17		/* most frames of a packet */
#define NSEC		1000000000ull
#define WIRE_OVERHEAD	24		/* CRC, preamble and gap of Ethernet */
#define MIN_FRAME	60		/* of Ethernet, without CRC */
#define MAX_LENGTHS	32		/* of packets in a search */
#define REFUSALS	256		/* errno of a descriptor */
#define MAX_SIZES	256		/* of packets, in a mix of them */

enum mode { MODE_TX, MODE_RX, MODE_PING, MODE_PONG, MODE_REPLAY, MODE_SEARCH };

enum launch { LAUNCH_NONE, LAUNCH_FQ, LAUNCH_ETF };

/* The clock that latency is measured with at the receiver */
enum stamps { STAMPS_PROGRAM, STAMPS_SOFTWARE, STAMPS_HARDWARE };

/**
 * struct range - values of a field
 * @min: first value, or the only one
 * @max: last value
 * @random: not in turn
 */
struct range {
	__u32 min;
	__u32 max;
	bool random;
};

/**
 * struct address - range of MAC or IP addresses
 * @bytes: the first address; only the low 32 bits vary
 * @low: values of these 32 bits
 */
struct address {
	__u8 bytes[16];
	struct range low;
};

enum rate_unit { RATE_MAX, RATE_PACKETS, RATE_BITS, RATE_WIRE_BITS,
		 RATE_PERCENT };

/**
 * struct rate - asked rate of all threads together
 * @value: per second, or percent of the link's speed
 * @unit: of @value; %RATE_MAX: as fast as possible
 * @given: by an option
 */
struct rate {
	double value;
	bool given;
	enum rate_unit unit;
};

/**
 * struct fill - payload of the packets to send
 * @bytes: the longest payload
 * @sum: for each length, its folded sum of 16-bit words
 */
struct fill {
	__u8 bytes[UINT16_MAX + 1];
	__u16 sum[UINT16_MAX + 1];
};

/**
 * struct packet_spec - packets to send
 * @family: %AF_INET or %AF_INET6
 * @protocol: IPPROTO_*
 * @dmac: destination MAC addresses
 * @smac: source MAC addresses
 * @src: source addresses
 * @dst: destination addresses
 * @sport: source ports
 * @dport: destination ports
 * @vlan: VLAN IDs, if @tagged
 * @outer: and of a service tag in front of it, if @stacked
 * @tagged: packets have a VLAN tag
 * @stacked: they have both
 * @priority: of the tags
 * @ttl: time to live, or hop limit
 * @tos: type of service, or traffic class
 * @size: bytes, from the MAC header on
 * @sizes: a mix of sizes in turn, all of them in @size
 * @nr_sizes: number of these, 0: no mix
 * @imix: these are the simple IMIX
 * @frames: frames per packet
 * @seq: packets are numbered and stamped
 * @stream: number of the first thread's stream
 * @run: number of this run
 * @fill: what is behind the headers, or NULL: zeros
 */
struct packet_spec {
	int family;
	__u8 protocol;
	struct address dmac, smac, src, dst;
	struct range sport, dport, vlan, outer;
	bool tagged, stacked;
	__u8 priority;
	__u8 ttl, tos;
	struct range size;
	__u16 sizes[MAX_SIZES];
	unsigned int nr_sizes;
	bool imix;
	unsigned int frames;
	bool seq;
	__u16 stream;
	__u16 run;
	const struct fill *fill;
};

/**
 * struct config - the command line
 * @mode: what to do
 * @ifname: interface
 * @ifindex: its index
 * @zerocopy: in zero-copy mode, on @queue
 * @nr_threads: number of threads and sockets
 * @queue: queue pair of each thread
 * @cpu: CPU of each thread, or -1
 * @count: packets of all threads; 0: no limit
 * @seconds: 0: no limit
 * @interval: seconds between two lines of rates
 * @wait_link: seconds to wait for the link
 * @ring: slots of a ring
 * @burst: packets that are due together; 0: not set
 * @rate: asked rate
 * @poisson: gaps are distributed exponentially
 * @seed: of random numbers
 * @launch: packets have launch times
 * @ahead: nanoseconds that these are posted before they are due
 * @qdisc: send through the qdisc
 * @promisc: promiscuous mode
 * @spin: never sleep
 * @dump: number of packets to print
 * @quiet: print no rates
 * @stamps: clock of the receiver
 * @write: file for the packets received, "-": stdout
 * @file: capture file
 * @speed: factor of its speed
 * @loops: how often it is sent; 0: no limit
 * @to: search: interface that receives
 * @lengths: search: sizes of packets, one after the other
 * @nr_lengths: number of these
 * @loss: search: share of packets that may be lost
 * @precision: search: of the rate, as a share of it
 * @json: file for the summary as JSON, "-": stdout
 * @json_stream: file for the samples, a line of JSON each, "-": stdout
 * @plot: file for the plot
 * @pkt: packets to send
 */
struct config {
	enum mode mode;
	const char *ifname;
	int ifindex;
	bool zerocopy;
	unsigned int nr_threads;
	unsigned int queue[MAX_THREADS];
	int cpu[MAX_THREADS];
	__u64 count;
	double seconds;
	double interval;
	double wait_link;
	unsigned int ring;
	unsigned int burst;
	struct rate rate;
	bool poisson;
	__u32 seed;
	enum launch launch;
	__u64 ahead;
	bool qdisc;
	bool promisc;
	bool spin;
	__u64 dump;
	bool quiet;
	enum stamps stamps;
	const char *write;
	const char *file;
	double speed;
	__u64 loops;
	const char *to;
	__u16 lengths[MAX_LENGTHS];
	unsigned int nr_lengths;
	double loss, precision;
	const char *json, *json_stream;
	const char *plot;
	struct packet_spec pkt;
};

/**
 * struct counters - work of one thread so far
 * @tx_packets: sent and returned by the kernel
 * @tx_bytes: of these
 * @tx_refused: returned with an error
 * @rx_packets: received
 * @rx_bytes: of these
 * @other: received, but not numbered and stamped
 * @timeouts: pings without an answer in time
 * @missed: packets that were so late that they were left out
 */
struct counters {
	__u64 tx_packets, tx_bytes, tx_refused;
	__u64 rx_packets, rx_bytes;
	__u64 other;
	__u64 timeouts;
	__u64 missed;
};

struct stream_table;
struct capture;

/**
 * struct worker - a thread and its socket
 * @cfg: command line
 * @nr: number of the thread, from 0
 * @sock: socket
 * @area: packet memory
 * @rx_frames: frames from 0 on that are posted on the Rx ring
 * @count: packets that this thread sends or receives; 0: no limit
 * @n: counters, which the main thread reads
 * @streams: numbered packets that were received, or NULL
 * @capture: packets of the replay
 * @out: file for the packets received, or NULL
 * @speed: bits per second of the link, 0: unknown
 * @begin: CLOCK_MONOTONIC of the first packet, 0: none yet
 * @end: and of the last one
 * @span: seconds from @begin to when the packet after the last one is due
 * @late: nanoseconds that a packet was sent too late at most
 * @first_packets: packets received when @begin was read, which is their end
 * @first_bytes: of these
 * @rx_drops: packets that the socket has dropped
 * @hw_stamps: packets with a hardware time stamp
 * @refused: packets that were refused, by errno
 * @last_refusal: errno of the last one of them
 * @hopeless: packets refused since the last one that was sent, for a reason
 *            that stays
 * @error: reason for an early end, or an empty string
 */
struct worker {
	const struct config *cfg;
	unsigned int nr;
	struct tp4_socket sock;
	struct tp4_area area;
	unsigned int rx_frames;
	__u64 count;
	struct counters n __attribute__((__aligned__(64)));
	struct stream_table *streams;
	const struct capture *capture;
	FILE *out;
	__u64 speed;
	__u64 begin, end;
	double span;
	__u64 late;
	__u64 first_packets, first_bytes;
	__u64 rx_drops;
	__u64 hw_stamps;
	__u64 refused[REFUSALS];
	__u8 last_refusal;
	__u32 hopeless;
	char error[128];
};

/**
 * struct sample - one interval
 * @at: its end, in seconds since the start
 * @tx_pps: packets sent per second
 * @rx_pps: packets received per second
 * @tx_bps: bits of these
 * @rx_bps: bits of these
 * @latencies: number of latencies measured
 * @p50: median of these in nanoseconds
 * @p99: 99th percentile
 * @max: highest one, rounded as the histogram does
 */
struct sample {
	double at;
	double tx_pps, rx_pps, tx_bps, rx_bps;
	__u64 latencies, p50, p99, max;
};

/**
 * struct run - everything that is reported
 * @cfg: command line
 * @w: threads
 * @sample: intervals
 * @nr_samples: number of these
 * @start: CLOCK_MONOTONIC at the start
 * @speed: bits per second of the link, 0: unknown
 * @sampled: time of the last sample
 * @counted: counters at that time
 * @measured: latencies until that time
 * @stream: samples are written there as JSON, or NULL
 * @out: packets received are written there, or NULL
 */
struct run {
	const struct config *cfg;
	struct worker *w;
	struct sample *sample;
	unsigned int nr_samples;
	__u64 start;
	__u64 speed;
	__u64 sampled;
	struct counters counted;
	struct hist measured;
	FILE *stream, *out;
};

/**
 * struct totals - results of all threads
 * @n: counters
 * @seconds: from the first packet to the last one
 * @pps: packets per second that were sent, or received; each packet counts with
 *       the gap behind it
 * @bps: bits of these
 * @asked: packets per second that were asked for; 0: as many as possible
 * @late: nanoseconds that a packet was sent too late at most
 * @drops: packets that the sockets have dropped
 * @hw_stamps: packets with a hardware time stamp
 * @refused: packets that were refused, by errno
 */
struct totals {
	struct counters n;
	double seconds;
	double pps, bps, asked;
	__u64 late, drops, hw_stamps;
	__u64 refused[REFUSALS];
};

/**
 * struct dump - packet to print
 * @data: its frames so far
 * @len: bytes of them
 * @packets: printed so far
 */
struct dump {
	__u8 *data;
	size_t len;
	__u64 packets;
};

static inline __u64 clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * NSEC + t.tv_nsec;
}

/* A seed that differs from thread to thread, and is not 0 if @odd is odd */
static inline __u64 seed_of(const struct config *cfg, unsigned int nr,
			    __u64 odd)
{
	return odd * ((__u64)cfg->seed * MAX_THREADS + nr + 1);
}

/* Add to a counter that the main thread reads. */
static inline void count_up(__u64 *counter, __u64 n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static inline __u64 counter_read(const __u64 *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* tpgen.c */
bool stopped(void);
bool impatient(void);
bool interrupted(void);
void set_signals(sigset_t *set);
void run_all(struct run *r, const struct capture *capture, bool *ready);
bool run_failed(const struct run *r);
void __attribute__((__format__(__printf__, 2, 3)))
worker_fail(struct worker *w, const char *format, ...);

/* refuse.c */
void refuse_packet(struct worker *w, __u8 error);
bool refuse_check(struct worker *w, __u64 packets);
bool refuse_any_final(const struct worker *w);
void worker_error(struct worker *w, enum tp4_where where, int e);

/* options.c */
void options_parse(struct config *cfg, int argc, char **argv);

/* parse.c */
__u64 parse_number(const char *what, const char *s, __u64 min, __u64 max);
double parse_decimal(const char *what, const char *s, double min, double max);
void parse_range(const char *what, const char *s, __u64 min, __u64 max,
		 struct range *r);
unsigned int parse_lengths(const char *s, __u16 *lengths);
void parse_sizes(const char *s, struct packet_spec *pkt);
void parse_payload(const char *s, struct packet_spec *pkt);
void parse_mac(const char *what, const char *s, struct address *a);
int parse_ip(const char *what, char *s, struct address *a, struct range *port);
void parse_rate(const char *s, struct rate *rate);
unsigned int parse_list(const char *what, const char *s, unsigned int *list,
			unsigned int max);

/* port.c */
void port_open(struct worker *w, unsigned int rx_nr, unsigned int tx_nr,
	       unsigned int tx_frames, unsigned int frame_size);
void port_warn(const struct config *cfg);
void port_close(struct worker *w);
void port_read_drops(struct worker *w);
int port_kick(struct worker *w);
__u64 port_speed(const char *ifname);
void port_wait_link(const struct config *cfg);

/* tx.c, rx.c, ping.c, pong.c, replay.c */
void tx_run(struct worker *w);
void rx_run(struct worker *w);
void ping_run(struct worker *w);
void pong_run(struct worker *w);
void replay_load(const struct config *cfg, struct capture *c);
void replay_free(struct capture *c);
unsigned int replay_max_size(const struct worker *w);
void replay_run(struct worker *w);

/* report.c */
void report_sample(struct run *r);
void report_totals(const struct run *r, struct totals *t);
struct stream;
unsigned int report_streams(const struct run *r, struct stream **merged);
__u64 report_tail(const struct run *r, const struct stream *s, unsigned int n);
void report_summary(struct run *r, FILE *f);
void report_free(struct run *r);

/* search.c */
int search_main(const struct config *cfg, FILE *json);

/* json.c, plot.c, dump.c */
void json_string(FILE *f, const char *s);
void json_write(struct run *r, FILE *f);
void json_sample(const struct run *r, const struct sample *s);
void plot_write(struct run *r, FILE *f);
void dump_frame(struct dump *d, const char *what, const __u8 *data,
		unsigned int len, bool more);

#endif /* TPGEN_H */
