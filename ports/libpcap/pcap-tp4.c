/*
 * pcap-tp4.c: TPACKET_V4, version 4 of the memory-mapped rings of Linux's
 * packet sockets
 *
 * Redistribution and use in source and binary forms, with or without
 * modification, are permitted provided that the following conditions
 * are met:
 *
 *   1. Redistributions of source code must retain the above copyright
 *      notice, this list of conditions and the following disclaimer.
 *   2. Redistributions in binary form must reproduce the above copyright
 *      notice, this list of conditions and the following disclaimer in the
 *      documentation and/or other materials provided with the distribution.
 *
 * THIS SOFTWARE IS PROVIDED BY THE AUTHOR AND CONTRIBUTORS ``AS IS'' AND
 * ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE
 * IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE
 * ARE DISCLAIMED. IN NO EVENT SHALL THE AUTHOR OR CONTRIBUTORS BE LIABLE
 * FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL
 * DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS
 * OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION)
 * HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT
 * LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY
 * OUT OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF
 * SUCH DAMAGE.
 */


/*
 * In V4, packets are in frames of our own memory, and the ring has a
 * descriptor for each frame that is posted to the kernel.  pcap-linux.c sets
 * up the socket, filters, waits, and hands packets to the callback, as for the
 * older versions; this file handles the ring and V4's zero-copy mode, in which
 * a socket has a queue of a network adapter for itself.  It is selected by
 * the device name: "zc:eth0" for all queues, each with a socket and a ring over
 * the same memory, "zc:eth0:3" for queue 3, or "zc:eth0:0,2-5"; with
 * "zc:eth0+stack" the host gets the packets, too.
 */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <net/if.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/genetlink.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/sockios.h>

#include "pcap-int.h"
#include "pcap-tp4.h"

#define ZC_PREFIX	"zc:"
#define STACK_SUFFIX	"+stack"

/* In zero-copy mode, a packet of this size needs no more than one frame. */
#define FRAME_SIZE	2048

/*
 * There, a frame takes one packet, however small: do not let a small buffer
 * lose a burst of small packets.
 */
#define MIN_FRAMES	4096
#define MAX_FRAMES	(1024*1024)

/*
 * In copy mode, packets lie one behind the other.  V3 has a buffer of whole
 * blocks of this size, and a packet of 60 bytes takes 152 bytes of them: have
 * slots for nine tenths as many at least.
 */
#define BLOCK_SIZE	MAXIMUM_SNAPLEN
#define SLOT_BYTES	(152 * 10 / 9)
#define MAX_SLOTS	(1024*1024)

/*
 * Give back this part of the buffer at a time, if packets are long.
 */
#define BATCH_BYTES	65536

/*
 * Packets to be woken for where they may gather.  More would come through
 * a reader's pipe in bursts that it has no room for.
 */
#define GATHER		512

/*
 * Queues whose events are asked for in one go.  If more have some, it's the
 * turn of the others next time.
 */
#define MAX_EVENTS	64

/*
 * How many receive queues does a device have?  0: its driver doesn't say.
 * /sys may be of another network namespace than the socket.
 */
static u_int
count_queues(int fd, const char *device)
{
	struct ethtool_channels channels;
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", device);
	memset(&channels, 0, sizeof(channels));
	channels.cmd = ETHTOOL_GCHANNELS;
	ifr.ifr_data = (void *)&channels;
	if (ioctl(fd, SIOCETHTOOL, &ifr) == -1)
		return (0);
	return (channels.combined_count + channels.rx_count);
}

/*
 * Which queue has each socket?
 */
static void
number_queues(struct pcap_tp4 *tp4, const struct pcap_opt *opt)
{
	u_int i, queue = 0;

	for (i = 0; i < tp4->nr_queues; i++, queue++) {
		while (opt->zc_queues != 0 &&
		    !(opt->zc_set[queue / 8] & 1 << queue % 8))
			queue++;
		tp4->queues[i].number = queue;
	}
}

/*
 * Lend a queue's frames to the kernel, or let it use all of the buffer.
 */
static void
post_frames(struct pcap_tp4 *tp4, u_int nr)
{
	__u64 frame = (__u64)nr * tp4->slots;
	u_int i;

	for (i = 0; i < tp4->slots; i++) {
		tp4_ring_post(&tp4->queues[nr].sock.rx, &frame, 1);
		if (tp4->zerocopy)
			frame++;
	}
}

/*
 * Get memory for packets that lie one behind the other.  The slots of the ring
 * count, too, but not for more than a tenth of what was asked for.
 */
static int
create_packed_area(struct pcap_tp4 *tp4, pcap_t *handle, u_int headroom)
{
	size_t size = handle->opt.buffer_size;
	size_t slots = getpagesize() / sizeof(struct tpacket4_desc);
	size_t area;
	int err;

	size = (size + BLOCK_SIZE - 1) / BLOCK_SIZE * BLOCK_SIZE;
	while (slots < size / SLOT_BYTES)
		slots *= 2;
	if (slots > MAX_SLOTS) {
		/*
		 * V3 has room for more packets.
		 */
		errno = E2BIG;
		return (-1);
	}
	area = size - slots * sizeof(struct tpacket4_desc);
	if (area < size / 10 * 9)
		area = size / 10 * 9;
	tp4->slots = (u_int)slots;
	tp4->batch = PCAP_TP4_BATCH;
	if (area / BATCH_BYTES < tp4->batch)
		tp4->batch = (u_int)(area / BATCH_BYTES) + 1;
	err = tp4_area_create(&tp4->area, (__u32)(area / FRAME_SIZE),
	    FRAME_SIZE);
	if (err == 0)
		err = tp4_area_register(&tp4->area, handle->fd, headroom);
	if (err == 0)
		return (0);
	errno = -err;
	return (-1);
}

/*
 * Get memory for frames, in zero-copy mode.  The queues share the buffer that was asked for,
 * but each has as many frames as a capture must have at least.
 */
static int
create_area(struct pcap_tp4 *tp4, pcap_t *handle, u_int frame_size,
    u_int headroom)
{
	u_int wanted = handle->opt.buffer_size / frame_size / tp4->nr_queues;
	u_int frames = MIN_FRAMES;	/* per queue */
	int err;

	while (frames < wanted && frames < MAX_FRAMES)
		frames *= 2;
	for (;;) {
		err = tp4_area_create(&tp4->area, frames * tp4->nr_queues,
		    frame_size);
		if (err == 0) {
			err = tp4_area_register(&tp4->area, handle->fd,
			    headroom);
			if (err == 0) {
				tp4->slots = frames;
				tp4->batch = PCAP_TP4_BATCH;
				return (0);
			}
			tp4_area_destroy(&tp4->area);
		}
		/*
		 * Is it more than there is, or than we may lock?  One page of
		 * descriptors is the least that there can be.
		 */
		frames /= 2;
		if ((err != -ENOBUFS && err != -ENOMEM) ||
		    frames * sizeof(struct tpacket4_desc) <
		    (size_t)getpagesize()) {
			errno = -err;
			return (-1);
		}
	}
}

/*
 * Make a ring that has a descriptor for each frame of its queue, on the socket
 * "fd" or, if that's 0, on a new one.
 */
static int
create_ring(struct pcap_tp4 *tp4, pcap_t *handle, u_int nr, int fd)
{
	struct tp4_options options;
	int err;

	memset(&options, 0, sizeof(options));
	options.mr_fd = handle->fd;
	options.rx_nr = tp4->slots;
	options.fd = fd;
	options.meta = 1;
	options.to_stack = handle->opt.zc_stack;
	options.packed = !tp4->zerocopy;
	err = tp4_open(&tp4->queues[nr].sock, &options);
	if (err != 0) {
		errno = -err;
		return (-1);
	}
	post_frames(tp4, nr);
	return (0);
}

/*
 * Frames that hold the largest packet of the interface in one piece, if
 * possible.
 */
static u_int
zerocopy_frame_size(int fd, const char *device, u_int headroom)
{
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", device);
	if (ioctl(fd, SIOCGIFMTU, &ifr) != -1 &&
	    headroom + TP4_ZC_HEADROOM + ETH_HLEN + 2 * VLAN_TAG_LEN +
	    ifr.ifr_mtu > FRAME_SIZE)
		return (getpagesize());
	return (FRAME_SIZE);
}

/*
 * Switch the packet socket handle->fd, which is not bound yet, to V4 with an
 * Rx ring.  "reserve" bytes are kept free between a struct sockaddr_ll and the
 * data of a packet.
 *
 * Returns NULL, and sets errno, if that's not possible; the socket can then
 * be switched to another version.
 */
struct pcap_tp4 *
pcap_tp4_open(pcap_t *handle, u_int reserve)
{
	static struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = { 1, &nothing };
	int zerocopy = handle->opt.zerocopy;
	int fd = handle->fd;
	u_int headroom;
	struct pcap_tp4 *tp4;
	int ret, save_errno;

	tp4 = calloc(1, sizeof(*tp4));
	if (tp4 == NULL)
		return (NULL);
	tp4->zerocopy = zerocopy;
	tp4->epoll_fd = -1;
	tp4->nr_queues = 1;
	if (zerocopy) {
		tp4->nr_queues = handle->opt.zc_queues;
		if (tp4->nr_queues == 0)
			tp4->nr_queues = count_queues(fd, handle->opt.device);
		if (tp4->nr_queues == 0) {
			free(tp4);
			errno = EOPNOTSUPP;
			return (NULL);
		}
	}
	tp4->queues = calloc(tp4->nr_queues, sizeof(*tp4->queues));
	tp4->ready = calloc(tp4->nr_queues, sizeof(*tp4->ready));
	if (tp4->queues == NULL || tp4->ready == NULL)
		goto fail;
	tp4->q = tp4->queues;
	tp4->until = UINT64_MAX;
	tp4->own_clock = handle->opt.tstamp_type == PCAP_TSTAMP_ADAPTER ||
	    handle->opt.tstamp_type == PCAP_TSTAMP_ADAPTER_UNSYNCED;
	number_queues(tp4, &handle->opt);

	/*
	 * The metadata at the start of the frame makes room for the struct
	 * sockaddr_ll.
	 */
	headroom = sizeof(struct tpacket4_meta);
	if (sizeof(struct sockaddr_ll) + reserve > headroom)
		headroom += reserve;

	if (zerocopy) {
		/*
		 * Between bind() and zero-copy mode, the socket would receive
		 * copies of packets.  A program that is executed must not keep
		 * the queue.
		 */
		if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter,
		    sizeof(filter)) == -1 ||
		    fcntl(fd, F_SETFD, FD_CLOEXEC) == -1)
			goto fail;
		ret = create_area(tp4, handle, zerocopy_frame_size(fd,
		    handle->opt.device, headroom), headroom);
	} else {
		/*
		 * A multiple of 64, as the kernel takes it.
		 */
		headroom = (headroom + 63) / 64 * 64;
		tp4->headroom = headroom;
		ret = create_packed_area(tp4, handle, headroom);
	}
	if (ret == 0 && create_ring(tp4, handle, 0, fd) == 0)
		return (tp4);

fail:
	save_errno = errno;
	pcap_tp4_close(tp4);
	errno = save_errno;
	return (NULL);
}

/*
 * Free the rings, and close all sockets but the first one, which is the
 * caller's.
 */
void
pcap_tp4_close(struct pcap_tp4 *tp4)
{
	u_int i;

	for (i = 1; tp4->queues != NULL && i < tp4->nr_queues; i++)
		tp4_close(&tp4->queues[i].sock);
	if (tp4->epoll_fd != -1)
		close(tp4->epoll_fd);
	if (tp4->queues != NULL && tp4->queues[0].sock.map != NULL) {
		/*
		 * A child process may still have the socket.
		 */
		if (tp4->zerocopy)
			(void)tp4_zerocopy(&tp4->queues[0].sock, 0);
		munmap(tp4->queues[0].sock.map, tp4->queues[0].sock.map_len);
	}
	tp4_area_destroy(&tp4->area);
	free(tp4->queues);
	free(tp4->ready);
	free(tp4->joined);
	free(tp4);
}

/*
 * Open the socket of another queue than the first, in zero-copy mode.
 *
 * Returns 0 or a negative errno.
 */
static int
open_queue(pcap_t *handle, struct pcap_tp4 *tp4, u_int nr)
{
	struct tp4_socket *sock = &tp4->queues[nr].sock;
	socklen_t len = sizeof(int);
	int err, stamps;

	if (create_ring(tp4, handle, nr, 0) == -1)
		return (-errno);
	/*
	 * The same time stamps as those of the first.
	 */
	if (getsockopt(handle->fd, SOL_PACKET, PACKET_TIMESTAMP, &stamps,
	    &len) == -1 ||
	    setsockopt(sock->fd, SOL_PACKET, PACKET_TIMESTAMP, &stamps,
	    sizeof(stamps)) == -1)
		return (-errno);
	err = tp4_zerocopy(sock, tp4->queues[nr].number + 1);
	if (err == 0)
		err = tp4_bind(sock, (int)if_nametoindex(handle->opt.device));
	return (err);
}

/*
 * Make one file descriptor to wait for all queues.
 */
static int
create_epoll(struct pcap_tp4 *tp4)
{
	struct epoll_event event;
	u_int i;

	memset(&event, 0, sizeof(event));
	event.events = EPOLLIN;
	tp4->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (tp4->epoll_fd == -1)
		return (-errno);
	for (i = 0; i < tp4->nr_queues; i++) {
		if (epoll_ctl(tp4->epoll_fd, EPOLL_CTL_ADD,
		    tp4->queues[i].sock.fd, &event) == -1)
			return (-errno);
	}
	return (0);
}

/*
 * Enter zero-copy mode on the queues that the device name selects.
 *
 * Returns 0 or a PCAP_ERROR_ value.  That the host doesn't see the packets is no
 * warning: Suricata and other programs take each warning for an error.
 */
int
pcap_tp4_set_zerocopy(pcap_t *handle, struct pcap_tp4 *tp4)
{
	const char *device = handle->opt.device;
	u_int queue = tp4->queues[0].number;
	u_int i;
	int err;

	err = tp4_zerocopy(&tp4->queues[0].sock, queue + 1);
	for (i = 1; err == 0 && i < tp4->nr_queues; i++) {
		queue = tp4->queues[i].number;
		err = open_queue(handle, tp4, i);
	}
	if (err == 0 && tp4->nr_queues > 1)
		err = create_epoll(tp4);
	switch (-err) {

	case 0:
		return (0);

	case EOPNOTSUPP:
		snprintf(handle->errbuf, PCAP_ERRBUF_SIZE,
		    "%s: the driver has no zero-copy mode", device);
		return (PCAP_ERROR);

	case ENXIO:
		snprintf(handle->errbuf, PCAP_ERRBUF_SIZE,
		    "%s has no queue %u for zero-copy mode", device, queue);
		return (PCAP_ERROR);

	case EBUSY:
		snprintf(handle->errbuf, PCAP_ERRBUF_SIZE,
		    "queue %u of %s is already used in zero-copy mode",
		    queue, device);
		return (PCAP_ERROR);

	case EPERM:
		snprintf(handle->errbuf, PCAP_ERRBUF_SIZE,
		    "%s: zero-copy mode needs CAP_NET_ADMIN", device);
		return (PCAP_ERROR_PERM_DENIED);

	default:
		snprintf(handle->errbuf, PCAP_ERRBUF_SIZE,
		    "%s: can't enable zero-copy mode of queue %u: %s", device,
		    queue, pcap_strerror(-err));
		return (PCAP_ERROR);
	}
}

/*
 * The file descriptor to wait for packets with.
 */
int
pcap_tp4_fd(const struct pcap_tp4 *tp4)
{
	return (tp4->epoll_fd != -1 ? tp4->epoll_fd : tp4->queues[0].sock.fd);
}

/*
 * What events of pcap_tp4_fd() mean.  That of several queues is also ready
 * when one of them has an error, which it doesn't report as such.
 */
short
pcap_tp4_events(const struct pcap_tp4 *tp4, short events)
{
	struct epoll_event ready[MAX_EVENTS];
	int i, n;

	if (tp4->epoll_fd == -1 || events == 0)
		return (events);
	/*
	 * The events of epoll have the values of those of poll().
	 */
	n = epoll_wait(tp4->epoll_fd, ready, MAX_EVENTS, 0);
	for (i = 0; i < n; i++)
		events |= (short)ready[i].events;
	return (events);
}

/*
 * Get, and clear, the error of a queue other than the first.
 */
int
pcap_tp4_error(const struct pcap_tp4 *tp4)
{
	socklen_t len;
	int err = 0;
	u_int i;

	for (i = 1; err == 0 && i < tp4->nr_queues; i++) {
		len = sizeof(err);
		if (getsockopt(tp4->queues[i].sock.fd, SOL_SOCKET, SO_ERROR,
		    &err, &len) == -1)
			err = errno;
	}
	return (err);
}

/*
 * Add the statistics of the other queues to those of the first.
 */
void
pcap_tp4_add_stats(const struct pcap_tp4 *tp4, struct pcap_stat *stat)
{
	struct tpacket_stats_v4 stats;
	u_int i;

	for (i = 1; i < tp4->nr_queues; i++) {
		if (tp4_stats(&tp4->queues[i].sock, &stats) == 0) {
			stat->ps_recv += stats.tp_packets;
			stat->ps_drop += stats.tp_drops;
		}
	}
}

/*
 * Post the frames of the packets that were read.
 */
void
pcap_tp4_give_back(struct pcap_tp4 *tp4)
{
	struct tp4_ring *ring = &tp4->q->sock.rx;

	tp4_ring_recycle(ring, tp4->q->done);
	tp4->q->done = 0;
	if (ring->seen == 0)
		tp4_ring_prepare_poll(ring);
}

/*
 * Check for a packet, or the first part of one, after all packets seen so far
 * have been read.
 */
int
pcap_tp4_look(struct pcap_tp4 *tp4)
{
	struct tp4_socket *sock = &tp4->q->sock;
	struct pollfd pfd;

	if (tp4->zerocopy && tp4_rx_need_kick(sock)) {
		/*
		 * Not tp4_rx_kick(): an error of the socket is left to
		 * whoever waits for packets.
		 */
		pfd.fd = sock->fd;
		pfd.events = POLLIN;
		(void)poll(&pfd, 1, 0);
	}
	return (tp4_ring_peek(&sock->rx, PCAP_TP4_BATCH) != 0);
}

/*
 * Get the slots that come next and lie side by side, up to "max", and to those
 * that are to be given back together.
 *
 * Returns how many there are.
 */
u_int
pcap_tp4_ahead(struct pcap_tp4 *tp4, u_int max,
    const struct tpacket4_desc **next)
{
	const struct pcap_tp4_queue *q = tp4->q;
	u_int n, straight;

	if (q->sock.rx.seen == 0 && !pcap_tp4_look(tp4))
		return (0);
	*next = pcap_tp4_slot(tp4, 0);
	straight = tp4->slots - (u_int)(*next - q->sock.rx.q.ring);
	n = q->sock.rx.seen < tp4->batch ? q->sock.rx.seen : tp4->batch;
	n -= q->done;
	if (n > straight)
		n = straight;
	return (n < max ? n : max);
}

/*
 * If a queue has a packet, put it where it belongs among those that have one.
 */
static void
add_if_ready(struct pcap_tp4 *tp4, struct pcap_tp4_queue *q)
{
	const struct tpacket4_desc *d;
	struct timespec when;
	u_int i;

	tp4->q = q;
	if (q->sock.rx.seen == 0 && !pcap_tp4_look(tp4))
		return;
	/*
	 * What has an error isn't a packet, and has no time.
	 */
	d = pcap_tp4_slot(tp4, 0);
	q->stamp = 0;
	if (d->error == 0) {
		when = tp4_meta_time(tp4_meta(&tp4->area, d));
		q->stamp = (uint64_t)when.tv_sec * 1000000000 + when.tv_nsec;
	}
	for (i = tp4->nr_ready++; i > 0 && tp4->ready[i - 1]->stamp <= q->stamp;
	    i--)
		tp4->ready[i] = tp4->ready[i - 1];
	tp4->ready[i] = q;
	q->ready = 1;
}

/*
 * Look at the queues that had no packet.  Most of many still have none.
 */
static void
look_at_all(struct pcap_tp4 *tp4)
{
	struct pcap_tp4_queue *q = tp4->queues;
	struct pcap_tp4_queue *end = q + tp4->nr_queues;
	struct timespec now;

	tp4->looked = 0;
	if (!tp4->own_clock && clock_gettime(CLOCK_REALTIME, &now) == 0)
		tp4->looked = (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	for (; q != end; q++) {
		if (!q->ready && (tp4_desc_ready(tp4_ring_at(&q->sock.rx, 0)) ||
		    tp4_rx_need_kick(&q->sock)))
			add_if_ready(tp4, q);
	}
}

/*
 * Of several queues, make the one current whose next packet is the oldest, and
 * set the time up to which its packets come next.  A queue that was empty when
 * we last looked has none that is older than that look, so as long as others
 * have, it needn't be looked at again.
 *
 * Returns 0 if there is no packet, or, to be called again after "look" was set,
 * if all have been read that were there.
 */
int
pcap_tp4_pick(struct pcap_tp4 *tp4)
{
	struct pcap_tp4_queue *q;
	uint64_t next = UINT64_MAX;

	if (!tp4->q->ready)
		add_if_ready(tp4, tp4->q);
	if (tp4->nr_ready == 0 && !tp4->look)
		return (0);
	if (tp4->nr_ready == 0 ||
	    tp4->ready[tp4->nr_ready - 1]->stamp > tp4->looked)
		look_at_all(tp4);
	tp4->look = 0;
	if (tp4->nr_ready == 0)
		return (0);
	q = tp4->ready[--tp4->nr_ready];
	q->ready = 0;
	q->active = 1;
	tp4->q = q;
	if (tp4->nr_ready != 0)
		next = tp4->ready[tp4->nr_ready - 1]->stamp;
	tp4->until = next < tp4->looked ? next : tp4->looked;
	if (tp4->until < q->stamp)
		tp4->until = q->stamp;
	return (1);
}

/*
 * Get the number of slots of the next packet, or 0 if the kernel has not
 * returned all of them yet.
 */
static u_int
count_frames(struct pcap_tp4 *tp4)
{
	u_int n, last;

	for (n = 1; ; n++) {
		last = tp4->q->done + n;
		if (tp4_ring_peek(&tp4->q->sock.rx, last) != last)
			return (0);
		if (!(pcap_tp4_slot(tp4, n - 1)->flags & TP4_PKT_CONT))
			return (n);
	}
}

/*
 * Copy the parts of a packet, up to the length that is needed of it, behind
 * its first part.
 */
static int
join_frames(struct pcap_tp4 *tp4, struct pcap_tp4_packet *packet,
    u_int join_len)
{
	const struct tpacket4_desc *d;
	size_t size, pos;
	u_char *p;
	u_int i, len;

	size = packet->mac + join_len;
	if (tp4->joined_size < size) {
		p = realloc(tp4->joined, size);
		if (p == NULL)
			return (-1);
		tp4->joined = p;
		tp4->joined_size = size;
	}
	memcpy(tp4->joined, packet->frame, packet->mac);
	pos = packet->mac;
	packet->len = 0;
	for (i = 0; i < tp4->frames; i++) {
		d = pcap_tp4_slot(tp4, i);
		len = d->len;
		packet->len += len;
		if (len > size - pos)
			len = (u_int)(size - pos);
		memcpy(tp4->joined + pos, tp4_data(&tp4->area, d), len);
		pos += len;
	}
	packet->frame = tp4->joined;
	packet->caplen = (u_int)pos - packet->mac;
	return (0);
}

/*
 * As pcap_tp4_next(), for what isn't a packet in one frame; tp4->packet is set.
 */
int
pcap_tp4_next_long(struct pcap_tp4 *tp4, u_int join_len)
{
	struct pcap_tp4_packet *packet = &tp4->packet;
	const struct tpacket4_meta *meta;
	const struct tpacket4_desc *d;

	do {
		tp4->frames = count_frames(tp4);
		if (tp4->frames == 0)
			break;
		d = pcap_tp4_slot(tp4, 0);
		if (d->error == 0) {
			pcap_tp4_read_frame(tp4, packet, d);
			if (tp4->frames == 1 ||
			    join_frames(tp4, packet, join_len) == 0) {
				meta = tp4_meta(&tp4->area, d);
				pcap_tp4_read_meta(packet, meta);
				pcap_tp4_put_sll(packet, meta);
				return (1);
			}
		}
		/*
		 * There is no packet in it, for zero-copy mode has ended, or
		 * no memory for it.
		 */
		pcap_tp4_release(tp4);
	} while (tp4->q->sock.rx.seen != 0 || pcap_tp4_look(tp4));
	pcap_tp4_give_back(tp4);
	return (0);
}

static void
set_lowat(struct pcap_tp4 *tp4, int slots)
{
	u_int i;

	for (i = 0; i < tp4->nr_queues; i++) {
		if (tp4->nr_queues == 1 || tp4->queues[i].active)
			(void)setsockopt(tp4->queues[i].sock.fd, SOL_SOCKET,
			    SO_RCVLOWAT, &slots, sizeof(slots));
	}
}

/*
 * Sleep until there are so many packets that it's worth to be woken for them,
 * or a quarter of the buffer is full, or for the timeout, or until
 * pcap_breakloop() is called.  A queue that had no packets wakes us with its
 * first one, so that most of many queues cost nothing here.
 */
void
pcap_tp4_gather(struct pcap_tp4 *tp4, int breakloop_fd, int timeout)
{
	struct pollfd fds[2];
	int slots = GATHER;
	u_int i;

	if (tp4->slots / 4 < GATHER)
		slots = (int)tp4->slots / 4;
	fds[0].fd = pcap_tp4_fd(tp4);
	fds[0].events = POLLIN;
	fds[1].fd = breakloop_fd;
	fds[1].events = POLLIN;
	/*
	 * Whoever selects on the socket is to hear of each.
	 */
	set_lowat(tp4, slots);
	(void)poll(fds, 2, timeout);
	set_lowat(tp4, 1);
	for (i = 0; i < tp4->nr_queues; i++)
		tp4->queues[i].active = 0;
}

/*
 * How many packets has the kernel put into the ring by now?
 */
int
pcap_tp4_pending(struct pcap_tp4 *tp4)
{
	u_int slots = tp4_ring_peek(&tp4->q->sock.rx, INT_MAX) - tp4->q->done;
	u_int i;
	int n = 0;

	for (i = 0; i < slots; i++) {
		if (!(pcap_tp4_slot(tp4, i)->flags & TP4_PKT_CONT))
			n++;
	}
	return (n);
}

/*
 * Get the name of the interface of a device name, or NULL if it isn't one for
 * zero-copy mode, or the name is too long.
 */
const char *
pcap_tp4_interface(const char *device, char *name, size_t size)
{
	size_t prefix_len = sizeof(ZC_PREFIX) - 1;
	size_t suffix_len = sizeof(STACK_SUFFIX) - 1;
	size_t len;

	if (strncmp(device, ZC_PREFIX, prefix_len) != 0)
		return (NULL);
	device += prefix_len;
	len = strcspn(device, ":");
	if (device[len] == '\0' && len >= suffix_len &&
	    strcmp(device + len - suffix_len, STACK_SUFFIX) == 0)
		len -= suffix_len;
	if (len >= size)
		return (NULL);
	memcpy(name, device, len);
	name[len] = '\0';
	return (name);
}

/*
 * Read the number of a queue.
 */
static int
read_queue(const char **text, u_int *queue)
{
	unsigned long value;
	char *end;

	if (**text < '0' || **text > '9')
		return (0);
	value = strtoul(*text, &end, 10);
	*text = end;
	*queue = (u_int)value;
	return (value < PCAP_ZC_MAX_QUEUES);
}

/*
 * Read queues and ranges of them, such as "0,2-5".
 *
 * Returns 0 if the text is something else.
 */
static int
read_queues(const char *text, struct pcap_opt *opt)
{
	u_int first, last;

	do {
		if (!read_queue(&text, &first))
			return (0);
		last = first;
		if (*text == '-') {
			text++;
			if (!read_queue(&text, &last))
				return (0);
		}
		if (last < first)
			return (0);
		for (; first <= last; first++) {
			if (opt->zc_set[first / 8] & 1 << first % 8)
				continue;
			opt->zc_set[first / 8] |= 1 << first % 8;
			opt->zc_queues++;
		}
	} while (*text++ == ',');
	return (text[-1] == '\0');
}

pcap_t *
pcap_tp4_create(const char *device, char *errbuf, int *is_ours)
{
	size_t prefix_len = sizeof(ZC_PREFIX) - 1;
	size_t suffix_len = sizeof(STACK_SUFFIX) - 1;
	struct pcap_opt opt;
	char *name, *colon;
	size_t len;
	pcap_t *p;

	*is_ours = strncmp(device, ZC_PREFIX, prefix_len) == 0;
	if (! *is_ours)
		return (NULL);

	/*
	 * "device" is pcap_create()'s own copy, which it will take for the
	 * name of the device: leave the name of the interface in it.
	 */
	name = (char *)device;
	memmove(name, name + prefix_len, strlen(name + prefix_len) + 1);
	len = strlen(name);
	memset(&opt, 0, sizeof(opt));
	opt.zc_stack = len >= suffix_len &&
	    strcmp(name + len - suffix_len, STACK_SUFFIX) == 0;
	if (opt.zc_stack)
		name[len - suffix_len] = '\0';
	colon = strchr(name, ':');
	if (colon != NULL) {
		if (!read_queues(colon + 1, &opt)) {
			snprintf(errbuf, PCAP_ERRBUF_SIZE,
			    ZC_PREFIX "%s: \"%s\" is not a list of queues, as in 0,2-5",
			    name, colon + 1);
			return (NULL);
		}
		*colon = '\0';
	}
	p = pcap_create_interface(name, errbuf);
	if (p != NULL) {
		p->opt.zerocopy = 1;
		p->opt.zc_queues = opt.zc_queues;
		p->opt.zc_stack = opt.zc_stack;
		memcpy(p->opt.zc_set, opt.zc_set, sizeof(opt.zc_set));
	}
	return (p);
}

/*
 * What <linux/netdev.h> has, which may be missing, or older than tpacket4.h.
 */
#define NETDEV_FAMILY		"netdev"
#define NETDEV_DEV_GET		1	/* NETDEV_CMD_DEV_GET */
#define NETDEV_IFINDEX		1	/* NETDEV_A_DEV_IFINDEX */
#define NETDEV_XDP_FEATURES	3	/* NETDEV_A_DEV_XDP_FEATURES */
#define NETDEV_TP4_ZEROCOPY	128	/* NETDEV_XDP_ACT_TP4_ZEROCOPY */

/*
 * Generic netlink: what a request and its attributes look like.
 */
struct genl_request {
	struct nlmsghdr	nlh;
	struct genlmsghdr genlh;
	struct nlattr	attr;
	char	value[GENL_NAMSIZ];
};

#define ATTR_NEXT(a)	((struct nlattr *)((u_char *)(a) + NLA_ALIGN((a)->nla_len)))
#define ATTR_DATA(a)	((void *)((a) + 1))
#define ATTR_OK(a, end)	((u_char *)((a) + 1) <= (u_char *)(end) && \
			 (a)->nla_len >= sizeof(*(a)) && \
			 (u_char *)(a) + (a)->nla_len <= (u_char *)(end))

/*
 * Send a request, and call "found" for each message of the answer.
 */
static int
genl_ask(int fd, int family, int cmd, int flags, const char *name,
    int (*found)(struct nlattr *, void *, void *), void *arg)
{
	struct genl_request req;
	union {
		struct nlmsghdr	nlh;
		char	buf[32768];
	} answer;
	struct nlmsghdr *nlh;
	ssize_t len;

	memset(&req, 0, sizeof(req));
	req.nlh.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	req.nlh.nlmsg_type = family;
	req.nlh.nlmsg_flags = NLM_F_REQUEST | flags;
	req.genlh.cmd = cmd;
	req.genlh.version = 1;
	if (name != NULL) {
		req.attr.nla_type = CTRL_ATTR_FAMILY_NAME;
		req.attr.nla_len = NLA_HDRLEN + strlen(name) + 1;
		memcpy(req.value, name, strlen(name) + 1);
		req.nlh.nlmsg_len += NLA_ALIGN(req.attr.nla_len);
	}
	if (send(fd, &req, req.nlh.nlmsg_len, 0) == -1)
		return (-1);

	for (;;) {
		len = recv(fd, &answer, sizeof(answer), 0);
		if (len <= 0)
			return (-1);
		for (nlh = &answer.nlh; NLMSG_OK(nlh, (size_t)len);
		    nlh = NLMSG_NEXT(nlh, len)) {
			if (nlh->nlmsg_type == NLMSG_DONE)
				return (0);
			if (nlh->nlmsg_type == NLMSG_ERROR)
				return (-1);
			if (found((struct nlattr *)((u_char *)NLMSG_DATA(nlh) +
			    GENL_HDRLEN), (u_char *)nlh + nlh->nlmsg_len,
			    arg) == -1)
				return (-1);
			if (!(flags & NLM_F_DUMP))
				return (0);
		}
	}
}

static int
found_family(struct nlattr *a, void *end, void *arg)
{
	for (; ATTR_OK(a, end); a = ATTR_NEXT(a)) {
		if (a->nla_type == CTRL_ATTR_FAMILY_ID) {
			*(int *)arg = *(__u16 *)ATTR_DATA(a);
			return (0);
		}
	}
	return (-1);
}

struct add_arg {
	pcap_if_list_t *devlistp;
	char	*errbuf;
	int	failed;
};

static int
found_device(struct nlattr *a, void *end, void *arg)
{
	struct add_arg *add = arg;
	char ifname[IF_NAMESIZE];
	char name[sizeof(ZC_PREFIX STACK_SUFFIX) + IF_NAMESIZE];
	char descr[64 + IF_NAMESIZE];
	__u64 features = 0;
	__u32 ifindex = 0;

	for (; ATTR_OK(a, end); a = ATTR_NEXT(a)) {
		if (a->nla_type == NETDEV_IFINDEX)
			memcpy(&ifindex, ATTR_DATA(a), sizeof(ifindex));
		else if (a->nla_type == NETDEV_XDP_FEATURES)
			memcpy(&features, ATTR_DATA(a), sizeof(features));
	}
	if (!(features & NETDEV_TP4_ZEROCOPY) ||
	    if_indextoname(ifindex, ifname) == NULL)
		return (0);

	snprintf(name, sizeof(name), ZC_PREFIX "%s" STACK_SUFFIX, ifname);
	snprintf(descr, sizeof(descr),
	    "Zero-copy mode of %s: the host sees the packets, too", ifname);
	/*
	 * Whatever state the interface is in, it's to be listed behind those
	 * that don't take a queue for themselves.
	 */
	if (add_dev(add->devlistp, name,
	    PCAP_IF_CONNECTION_STATUS_NOT_APPLICABLE, descr,
	    add->errbuf) == NULL) {
		add->failed = 1;
		return (-1);
	}
	return (0);
}

/*
 * List the interfaces whose drivers have zero-copy mode, if the environment
 * variable PCAP_ZC is set.  A kernel that does not know of it has none.
 *
 * Some programs open every device that is listed, Wireshark for its start page;
 * that takes the queues, which others may want, and costs the host packets if
 * the machine is busy.
 */
int
pcap_tp4_findalldevs(pcap_if_list_t *devlistp, char *errbuf)
{
	struct add_arg add = { devlistp, errbuf, 0 };
	int family, fd;

	if (getenv("PCAP_ZC") == NULL)
		return (0);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (fd == -1)
		return (0);
	if (genl_ask(fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0,
	    NETDEV_FAMILY, found_family, &family) == 0)
		(void)genl_ask(fd, family, NETDEV_DEV_GET, NLM_F_DUMP,
		    NULL, found_device, &add);
	close(fd);
	return (add.failed ? -1 : 0);
}
