/*
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
 * TPACKET_V4: what pcap-linux.c and pcap.c need of pcap-tp4.c.
 */
#include "pcap/vlan.h"

#include <tpacket4.h>

/*
 * Slots of the ring to look at in one go, and the most to give back.
 */
#define PCAP_TP4_BATCH	64

/*
 * A packet, in one piece.
 */
struct pcap_tp4_packet {
	u_char	*frame;		/* starts with a struct sockaddr_ll */
	u_int	mac;		/* offset in the frame of the packet */
	u_int	caplen;
	u_int	len;		/* on the wire */
	u_int	sec, nsec;
	int	vlan_tag_in_data;
	int	vlan_tci_valid;
	uint16_t vlan_tci;
	uint16_t vlan_tpid;
};

/*
 * A socket with a ring: the only one or, in zero-copy mode, that of a queue.
 */
struct pcap_tp4_queue {
	struct tp4_socket sock;
	u_int	number;		/* of the queue */
	u_int	done;		/* frames read that aren't given back yet */
	int	ready;		/* it's among the queues that have a packet */
	int	active;		/* it had packets since we last slept */
	uint64_t stamp;		/* time of the next packet */
};

struct pcap_tp4 {
	struct tp4_area	area;
	u_int	slots;		/* of the ring of each queue */
	u_int	batch;		/* slots to give back in one go */
	u_int	headroom;	/* if packed, in front of each packet, else 0 */
	struct pcap_tp4_queue *queues;
	u_int	nr_queues;
	struct pcap_tp4_queue *q;	/* that of the current packet */
	int	epoll_fd;	/* for several queues, else -1 */
	struct pcap_tp4_queue **ready;	/* those that have one; the oldest is last */
	u_int	nr_ready;
	int	look;		/* look at all when none of them has one */
	uint64_t looked;	/* when all queues were looked at; 0: never */
	uint64_t until;		/* "q" has the next packets up to this time */
	int	own_clock;	/* the adapter makes the time stamps */
	u_int	frames;		/* frames that the current packet has */
	int	zerocopy;
	int	delivering;	/* the callback has not returned yet */
	u_char	*joined;	/* for a packet of several frames */
	size_t	joined_size;
	struct pcap_tp4_packet packet;	/* such a packet */
};

pcap_t	*pcap_tp4_create(const char *device, char *errbuf, int *is_ours);
const char *pcap_tp4_interface(const char *device, char *name, size_t size);
int	pcap_tp4_findalldevs(pcap_if_list_t *devlistp, char *errbuf);

struct pcap_tp4 *pcap_tp4_open(pcap_t *handle, u_int reserve);
int	pcap_tp4_set_zerocopy(pcap_t *handle, struct pcap_tp4 *tp4);
void	pcap_tp4_close(struct pcap_tp4 *tp4);

int	pcap_tp4_fd(const struct pcap_tp4 *tp4);
short	pcap_tp4_events(const struct pcap_tp4 *tp4, short events);
int	pcap_tp4_error(const struct pcap_tp4 *tp4);
void	pcap_tp4_add_stats(const struct pcap_tp4 *tp4, struct pcap_stat *stat);

int	pcap_tp4_look(struct pcap_tp4 *tp4);
u_int	pcap_tp4_ahead(struct pcap_tp4 *tp4, u_int max,
    const struct tpacket4_desc **next);
int	pcap_tp4_pick(struct pcap_tp4 *tp4);
int	pcap_tp4_next_long(struct pcap_tp4 *tp4, u_int join_len);
void	pcap_tp4_give_back(struct pcap_tp4 *tp4);
void	pcap_tp4_gather(struct pcap_tp4 *tp4, int breakloop_fd, int timeout);
int	pcap_tp4_pending(struct pcap_tp4 *tp4);

/*
 * What follows is done for each packet.
 */

/*
 * A slot that comes next.
 */
static inline const struct tpacket4_desc *
pcap_tp4_slot(const struct pcap_tp4 *tp4, u_int i)
{
	return (tp4_ring_at(&tp4->q->sock.rx, tp4->q->done + i));
}

/*
 * The bytes from the start of the metadata of a packet to its data.
 */
static inline u_int
pcap_tp4_mac(const struct pcap_tp4 *tp4, const struct tpacket4_desc *d)
{
	return (tp4->headroom != 0 ? tp4->headroom : d->offset);
}

/*
 * Describe the packet whose first, or only, frame a slot has.
 */
static inline void
pcap_tp4_read_frame(const struct pcap_tp4 *tp4, struct pcap_tp4_packet *packet,
    const struct tpacket4_desc *d)
{
	packet->mac = pcap_tp4_mac(tp4, d);
	packet->frame = tp4_data(&tp4->area, d) - packet->mac;
	packet->caplen = d->len;
}

/*
 * Tell what is known of a packet.
 */
static inline void
pcap_tp4_read_meta(struct pcap_tp4_packet *packet,
    const struct tpacket4_meta *there)
{
	struct timespec when = tp4_meta_time(there);

	packet->len = there->wire_len;
	packet->sec = (u_int)when.tv_sec;
	packet->nsec = (u_int)when.tv_nsec;
	packet->vlan_tci_valid = (there->flags & TP4_META_RX_VLAN) != 0;
	packet->vlan_tag_in_data = packet->vlan_tci_valid;
	packet->vlan_tci = there->vlan_tci;
	packet->vlan_tpid = there->vlan_tpid;
}

/*
 * Put a struct sockaddr_ll where the metadata was.
 */
static inline void
pcap_tp4_put_sll(const struct pcap_tp4_packet *packet,
    const struct tpacket4_meta *there)
{
	struct sockaddr_ll sll;

	sll.sll_family = AF_PACKET;
	sll.sll_protocol = there->protocol;
	sll.sll_ifindex = there->ifindex;
	sll.sll_hatype = there->hatype;
	sll.sll_pkttype = there->pkt_type;
	sll.sll_halen = there->halen;
	memcpy(sll.sll_addr, there->addr, sizeof(sll.sll_addr));
	memcpy(packet->frame, &sll, sizeof(sll));
}

/*
 * Get the next packet, if there is one; it's valid until pcap_tp4_release().
 * "join_len" bytes are needed of one that is in several frames.
 *
 * Returns 1 if there is one and 0 if not; poll() can then be called.
 */
static inline int
pcap_tp4_next(struct pcap_tp4 *tp4, struct pcap_tp4_packet *packet,
    u_int join_len)
{
	const struct tpacket4_meta *meta;
	const struct tpacket4_desc *d;

	if (tp4->nr_queues > 1 && !pcap_tp4_pick(tp4))
		return (0);
	if (tp4->q->sock.rx.seen == 0 && !pcap_tp4_look(tp4))
		return (0);
	d = pcap_tp4_slot(tp4, 0);
	if ((d->flags & TP4_PKT_CONT) || d->error != 0) {
		if (!pcap_tp4_next_long(tp4, join_len))
			return (0);
		*packet = tp4->packet;
		return (1);
	}
	tp4->frames = 1;
	pcap_tp4_read_frame(tp4, packet, d);
	meta = (const struct tpacket4_meta *)packet->frame;
	pcap_tp4_read_meta(packet, meta);
	pcap_tp4_put_sll(packet, meta);
	return (1);
}

/*
 * Give back the frames of the packets that were read, if they are enough.
 */
static inline void
pcap_tp4_give_back_batch(struct pcap_tp4 *tp4)
{
	const struct pcap_tp4_queue *q = tp4->q;

	if (q->done == q->sock.rx.seen || q->done >= tp4->batch)
		pcap_tp4_give_back(tp4);
}

/*
 * Be done with the current packet.  Its frames go back to the kernel with
 * others.
 */
static inline void
pcap_tp4_release(struct pcap_tp4 *tp4)
{
	struct pcap_tp4_queue *q = tp4->q;

	q->done += tp4->frames;
	pcap_tp4_give_back_batch(tp4);
}

/*
 * Take the VLAN tag out of the packet, to where filters expect it.
 */
static inline void
pcap_tp4_strip_vlan_tag(struct pcap_tp4_packet *packet)
{
	u_char *p = packet->frame + packet->mac;

	if (packet->caplen < ETH_HLEN + VLAN_TAG_LEN)
		return;
	memmove(p + VLAN_TAG_LEN, p, 2 * ETH_ALEN);
	packet->mac += VLAN_TAG_LEN;
	packet->caplen -= VLAN_TAG_LEN;
	packet->len -= VLAN_TAG_LEN;
	packet->vlan_tag_in_data = 0;
}
