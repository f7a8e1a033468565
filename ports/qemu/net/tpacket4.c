/*
 * AF_PACKET V4 network backend
 *
 * The guest gets the packets of a device of the host by a packet socket: its
 * rings and frames are memory that the kernel shares with QEMU.  Checksums and
 * segmentation stay what they are in the guest, as the metadata of V4 has what
 * virtio's header has.
 *
 * This work is licensed under the terms of the GNU GPL, version 2 or later.
 * See the COPYING file in the top-level directory.
 */

#include "qemu/osdep.h"

#include <sys/ioctl.h>
#include <net/if.h>

#include "net/net.h"
#include "net/checksum.h"
#include "net/eth.h"
/* Some ETH_P_ are also the kernel's; a system header may define them again. */
#include "tpacket4.h"
#include "clients.h"
#include "monitor/monitor.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-net.h"
#include "qemu/crc32c.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "qemu/iov.h"
#include "qemu/main-loop.h"
#include "standard-headers/linux/virtio_net.h"
#include "tpacket4_gso.h"

#define TPACKET4_RX_NR      1024
#define TPACKET4_TX_NR      512
#define TPACKET4_MAX_QUEUES 64

/*
 * A frame is a page, so that a packet of 64 KiB has no more frames than an skb
 * has fragments, and is not copied once more.
 */
#define TPACKET4_FRAME_SIZE 4096

/* Bytes in front of a received packet: the metadata, and virtio's header. */
#define TPACKET4_HEADROOM   128

/* Bytes in front of a packet to send, where a device may put XDP's own */
#define TPACKET4_TX_OFFSET  TP4_ZC_HEADROOM

/* Frames of the longest packet that a guest can send, and one more */
#define TPACKET4_TX_FRAMES  (NET_BUFSIZE / TPACKET4_FRAME_SIZE + 2)

/* Pieces of memory of the longest packet that a guest can receive */
#define TPACKET4_RX_PIECES  64

/* As net/tap.c does: the main loop has others to serve. */
#define TPACKET4_RX_BATCH   64

/* How soon a full device is tried again, and a device that is down looked at */
#define TPACKET4_RETRY_MS   1
#define TPACKET4_DOWN_MS    200

typedef struct TPacket4State {
    NetClientState nc;
    struct TPacket4State *first;
    struct tp4_socket sock;
    struct tp4_area area;
    struct tp4_pool tx_free;
    __u64 tx_frames[TPACKET4_TX_NR];
    char ifname[IFNAMSIZ];
    int vnet_hdr_len;
    bool zerocopy;
    bool read_poll;
    bool write_poll;
    bool gone;
    bool down;
    /* The bottom half is scheduled: doing it for each packet costs more. */
    bool kicking;
    /* What the guest takes, of the first queue; all else is done here */
    bool guest_csum;
    bool guest_tso4;
    bool guest_tso6;
    bool guest_ecn;
    bool guest_ufo;
    /* The device has refused an offload: all of them are done here. */
    bool tx_software;
    uint8_t *linear;
    QEMUBH *kick;
    QEMUTimer *retry;
    QEMUTimer *look;
} TPacket4State;

static void tpacket4_send(void *opaque);
static void tpacket4_writable(void *opaque);

static void tpacket4_update_fd_handler(TPacket4State *s)
{
    qemu_set_fd_handler(s->sock.fd,
                        s->read_poll && !s->gone ? tpacket4_send : NULL,
                        s->write_poll && !s->gone ? tpacket4_writable : NULL,
                        s);
}

static void tpacket4_read_poll(TPacket4State *s, bool enable)
{
    if (s->read_poll != enable) {
        s->read_poll = enable;
        tpacket4_update_fd_handler(s);
    }
}

static void tpacket4_write_poll(TPacket4State *s, bool enable)
{
    if (s->write_poll != enable) {
        s->write_poll = enable;
        tpacket4_update_fd_handler(s);
    }
}

static void tpacket4_poll(NetClientState *nc, bool enable)
{
    TPacket4State *s = DO_UPCAST(TPacket4State, nc, nc);

    tpacket4_read_poll(s, enable);
    tpacket4_write_poll(s, enable);
}

/* The device ------------------------------------------------------------- */

/* The flags of the device, or -1 if it is not there any more */
static int tpacket4_device_flags(TPacket4State *s)
{
    struct sockaddr_ll addr = { };
    socklen_t len = sizeof(addr);
    struct ifreq ifr = { };

    /* It may have a new name. */
    if (getsockname(s->sock.fd, (struct sockaddr *)&addr, &len) < 0) {
        return -1;
    }
    ifr.ifr_ifindex = addr.sll_ifindex;
    if (ioctl(s->sock.fd, SIOCGIFNAME, &ifr) < 0 ||
        ioctl(s->sock.fd, SIOCGIFFLAGS, &ifr) < 0) {
        return -1;
    }
    return (uint16_t)ifr.ifr_flags;
}

/* The first queue speaks for all of them. */
static void tpacket4_set_link(TPacket4State *s, bool up)
{
    Error *err = NULL;

    if (s->nc.queue_index == 0) {
        qmp_set_link(s->nc.name, up, &err);
        if (err) {
            error_report_err(err);
        }
    }
}

static void tpacket4_gone(TPacket4State *s)
{
    s->gone = true;
    timer_del(s->look);
    timer_del(s->retry);
    tpacket4_update_fd_handler(s);
    qemu_set_info_str(&s->nc, "ifname=%s,removed", s->ifname);
    if (s->nc.queue_index == 0) {
        error_report("netdev %s: the device %s was removed", s->nc.name,
                     s->ifname);
    }
    tpacket4_set_link(s, false);
}

/* Waits for a device that is down: nothing reports that it is up again. */
static void tpacket4_look(void *opaque)
{
    TPacket4State *s = opaque;
    int flags = tpacket4_device_flags(s);

    if (flags < 0) {
        tpacket4_gone(s);
    } else if (!(flags & IFF_UP)) {
        timer_mod(s->look, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) +
                           TPACKET4_DOWN_MS);
    } else if (s->down) {
        s->down = false;
        tpacket4_set_link(s, true);
        qemu_bh_schedule(s->kick);
    }
}

/* An empty ring was readable: the socket has an error. */
static void tpacket4_check(TPacket4State *s)
{
    int e = tp4_wait(&s->sock, POLLIN, 0);

    if (e == -ENODEV) {
        tpacket4_gone(s);
    } else if (e == -ENETDOWN) {
        /* A link that is down already is somebody else's. */
        if (!s->down && !s->nc.link_down &&
            !(tpacket4_device_flags(s) & IFF_UP)) {
            s->down = true;
            if (s->nc.queue_index == 0) {
                warn_report("netdev %s: the device %s is down", s->nc.name,
                            s->ifname);
            }
            tpacket4_set_link(s, false);
        }
        tpacket4_look(s);
    }
}

/* From the device to the guest ------------------------------------------- */

static void tpacket4_send_completed(NetClientState *nc, ssize_t len)
{
    NetClientState *ncs[TPACKET4_MAX_QUEUES] = { nc };
    int i, n = 1;

    /* Packets of the others may have gone there, see tpacket4_sender(). */
    if (nc->queue_index == 0) {
        n = qemu_find_net_clients_except(nc->name, ncs, NET_CLIENT_DRIVER_NIC,
                                         TPACKET4_MAX_QUEUES);
    }
    for (i = 0; i < n; i++) {
        tpacket4_read_poll(DO_UPCAST(TPacket4State, nc, ncs[i]), true);
    }
}

/*
 * A guest can have fewer queue pairs than the device, and has one until its
 * driver asks for more.  The first one takes the packets of those it lacks.
 */
static NetClientState *tpacket4_sender(TPacket4State *s)
{
    NetClientState *peer = s->nc.peer;

    return peer && peer->info->can_receive && !peer->info->can_receive(peer) ?
           &s->first->nc : &s->nc;
}

static bool tpacket4_guest_takes(const TPacket4State *s, uint8_t gso_type)
{
    if (gso_type & VIRTIO_NET_HDR_GSO_ECN && !s->guest_ecn) {
        return false;
    }
    switch (gso_type & ~VIRTIO_NET_HDR_GSO_ECN) {
    case VIRTIO_NET_HDR_GSO_TCPV4:
        return s->guest_tso4;
    case VIRTIO_NET_HDR_GSO_TCPV6:
        return s->guest_tso6;
    case VIRTIO_NET_HDR_GSO_UDP:
        return s->guest_ufo;
    default:
        return false;
    }
}

/* Gives a packet to the peer.  The peer's queue copies what it cannot take. */
static ssize_t tpacket4_deliver(TPacket4State *s, const struct iovec *iov,
                                int iovcnt)
{
    NetClientState *nc = tpacket4_sender(s);
    struct iovec padded;
    uint8_t min_pkt[ETH_ZLEN];
    size_t min_pktsz = sizeof(min_pkt);

    if (iovcnt > 1) {
        return qemu_sendv_packet_async(nc, iov, iovcnt,
                                       tpacket4_send_completed);
    }
    if (net_peer_needs_padding(nc) &&
        eth_pad_short_frame(min_pkt, &min_pktsz, iov->iov_base,
                            iov->iov_len)) {
        padded.iov_base = min_pkt;
        padded.iov_len = min_pktsz;
        iov = &padded;
    }
    return qemu_send_packet_async(nc, iov->iov_base, iov->iov_len,
                                  tpacket4_send_completed);
}

/* A segment for a guest that takes no whole packet: without requests */
static ssize_t tpacket4_deliver_segment(void *opaque, uint8_t *data, size_t len)
{
    TPacket4State *s = opaque;
    struct iovec iov = {
        .iov_base = data - s->vnet_hdr_len,
        .iov_len = len + s->vnet_hdr_len,
    };

    memset(iov.iov_base, 0, s->vnet_hdr_len);
    return tpacket4_deliver(s, &iov, 1);
}

/* Computes the checksum that the guest wants to find in the packet. */
static bool tpacket4_complete_csum(const struct iovec *iov, int iovcnt,
                                   size_t size,
                                   const struct tpacket4_meta *meta)
{
    size_t at = meta->csum_start + meta->csum_offset;
    g_autofree uint8_t *linear = NULL;
    uint32_t crc = 0;
    uint16_t csum;

    if (meta->flags & TP4_META_CSUM_CRC32C) {
        if (at + sizeof(crc) > size) {
            return false;
        }
        linear = g_malloc(size);
        iov_from_buf(iov, iovcnt, at, &crc, sizeof(crc));
        iov_to_buf(iov, iovcnt, 0, linear, size);
        crc = cpu_to_le32(crc32c(0xffffffff, linear + meta->csum_start,
                                 size - meta->csum_start));
        return iov_from_buf(iov, iovcnt, at, &crc, sizeof(crc)) == sizeof(crc);
    }
    if (at + sizeof(csum) > size) {
        return false;
    }
    /* The sum of the pseudo header is where the checksum will be. */
    csum = net_checksum_finish_nozero(
        net_checksum_add_iov(iov, iovcnt, meta->csum_start,
                             size - meta->csum_start, 0));
    csum = cpu_to_be16(csum);
    return iov_from_buf(iov, iovcnt, at, &csum, sizeof(csum)) == sizeof(csum);
}

/*
 * Collects the memory of a packet.  The kernel fills frames that lie side by
 * side: but for the end of the ring, this is one piece.
 */
static int tpacket4_collect(TPacket4State *s, unsigned int first,
                            unsigned int slots, struct iovec *iov)
{
    struct iovec *end = iov;
    unsigned int i;

    for (i = 0; i < slots; i++) {
        const struct tpacket4_desc *d = tp4_ring_at(&s->sock.rx, first + i);
        uint8_t *data = tp4_data(&s->area, d);

        if (i && end->iov_base + end->iov_len == data) {
            end->iov_len += d->len;
            continue;
        }
        if (i && ++end - iov == TPACKET4_RX_PIECES) {
            return -1;
        }
        end->iov_base = data;
        end->iov_len = d->len;
    }
    return end - iov + 1;
}

/* Returns 0 if the peer has to be waited for. */
static ssize_t tpacket4_send_one(TPacket4State *s, unsigned int first,
                                 unsigned int slots)
{
    const struct tpacket4_desc *d = tp4_ring_at(&s->sock.rx, first);
    struct virtio_net_hdr_v1_hash hdr = { };
    struct iovec iov[TPACKET4_RX_PIECES];
    struct tpacket4_meta meta = *tp4_meta(&s->area, d);
    int iovcnt = tpacket4_collect(s, first, slots, iov);
    size_t size = iovcnt < 0 ? 0 : iov_size(iov, iovcnt);

    if (size < ETH_HLEN || size + s->vnet_hdr_len > NET_BUFSIZE) {
        return size ?: 1;
    }
    if (meta.flags & TP4_META_GSO &&
        (meta.flags & TP4_META_TUNNEL || !s->vnet_hdr_len ||
         !tpacket4_guest_takes(s->first, meta.gso_type))) {
        uint8_t *data = s->linear + TPACKET4_GSO_HEADROOM;

        iov_to_buf(iov, iovcnt, 0, data, size);
        return tpacket4_segment(data, size, &meta, tpacket4_deliver_segment,
                                s);
    }
    if (meta.flags & TP4_META_CSUM) {
        if (s->first->guest_csum && !(meta.flags & TP4_META_CSUM_CRC32C)) {
            hdr.hdr.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
            hdr.hdr.csum_start = meta.csum_start;
            hdr.hdr.csum_offset = meta.csum_offset;
        } else if (!tpacket4_complete_csum(iov, iovcnt, size, &meta)) {
            return size;
        }
    } else if (meta.flags & TP4_META_RX_CSUM_VALID && s->first->guest_csum) {
        hdr.hdr.flags = VIRTIO_NET_HDR_F_DATA_VALID;
    }
    if (meta.flags & TP4_META_GSO) {
        hdr.hdr.gso_type = meta.gso_type;
        hdr.hdr.gso_size = meta.gso_size;
        hdr.hdr.hdr_len = tpacket4_hdr_len(iov[0].iov_base, iov[0].iov_len,
                                           &meta);
    }
    /* The headroom has space for it behind the metadata. */
    iov[0].iov_base -= s->vnet_hdr_len;
    iov[0].iov_len += s->vnet_hdr_len;
    memcpy(iov[0].iov_base, &hdr, s->vnet_hdr_len);
    return tpacket4_deliver(s, iov, iovcnt);
}

static void tpacket4_send(void *opaque)
{
    TPacket4State *s = opaque;
    struct tp4_ring *rx = &s->sock.rx;
    unsigned int packets = 0, slots = 0, n = tp4_ring_peek(rx, TPACKET4_RX_NR);
    unsigned int i, first = 0;
    bool full = false;

    if (!n) {
        tpacket4_check(s);
        return;
    }
    for (i = 0; i < n && !full && packets < TPACKET4_RX_BATCH; i++) {
        const struct tpacket4_desc *d = tp4_ring_at(rx, i);

        if (d->flags & TP4_PKT_CONT) {
            continue;
        }
        /* A slot with an error, at the end of zero-copy mode, has no packet. */
        slots = i + 1 - first;
        if (!d->error && d->len) {
            full = tpacket4_send_one(s, first, slots) == 0;
            packets++;
        }
        first = i + 1;
    }
    tp4_ring_recycle(rx, first);
    tp4_ring_prepare_poll(rx);
    if (full) {
        tpacket4_read_poll(s, false);
    }
    if (tp4_rx_need_kick(&s->sock)) {
        tpacket4_check(s);
    }
}

/* From the guest to the device ------------------------------------------- */

/* Takes back what the kernel has sent. */
static void tpacket4_reap(TPacket4State *s)
{
    struct tp4_ring *tx = &s->sock.tx;
    unsigned int i, n = tp4_ring_peek(tx, TPACKET4_TX_NR);

    for (i = 0; i < n; i++) {
        const struct tpacket4_desc *d = tp4_ring_at(tx, i);

        /* What zero-copy mode does not offload; or the frames are too many. */
        if (s->zerocopy && !s->tx_software &&
            (d->error == EOPNOTSUPP || d->error == EMSGSIZE)) {
            s->tx_software = true;
            pstrcat(s->nc.info_str, sizeof(s->nc.info_str),
                    ",offloads by QEMU");
        }
    }
    tp4_pool_put(&s->tx_free, tx, n);
}

static void tpacket4_try_again(TPacket4State *s)
{
    timer_mod(s->retry, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) +
                        TPACKET4_RETRY_MS);
}

/* Runs once for all packets that the guest has sent meanwhile. */
static void tpacket4_kick(void *opaque)
{
    TPacket4State *s = opaque;
    int e;

    s->kicking = false;
    if (s->gone || !tp4_ring_pending(&s->sock.tx) ||
        !tp4_need_kick(&s->sock)) {
        return;
    }
    e = tp4_kick(&s->sock, MSG_DONTWAIT);
    if (e == -ENETDOWN || e == -ENXIO) {
        /* The ring keeps them.  The error of the socket says more. */
        return;
    }
    tpacket4_reap(s);
    /* Nothing reports that a device is no longer full. */
    if (e && tp4_ring_pending(&s->sock.tx)) {
        tpacket4_try_again(s);
    }
}

static void tpacket4_writable(void *opaque)
{
    TPacket4State *s = opaque;

    tpacket4_write_poll(s, false);
    tpacket4_kick(s);
    tpacket4_reap(s);
    qemu_flush_queued_packets(&s->nc);
}

/* Returns false if the ring has no room, and arranges for another try. */
static bool tpacket4_reserve(TPacket4State *s, unsigned int frames)
{
    if (s->tx_free.nr >= frames) {
        return true;
    }
    tpacket4_reap(s);
    if (s->tx_free.nr >= frames) {
        return true;
    }
    tpacket4_kick(s);
    tpacket4_reap(s);
    if (s->tx_free.nr >= frames) {
        return true;
    }
    /* With a free slot, poll() would return at once. */
    if (s->tx_free.nr) {
        tpacket4_try_again(s);
    } else {
        tpacket4_write_poll(s, true);
    }
    return false;
}

static size_t tpacket4_frames(size_t size)
{
    return DIV_ROUND_UP(TPACKET4_TX_OFFSET + size, TPACKET4_FRAME_SIZE);
}

/* Copies a packet to frames and posts them.  The header is virtio's. */
static ssize_t tpacket4_post(TPacket4State *s, const struct iovec *iov,
                             int iovcnt, size_t skip, size_t size,
                             const struct virtio_net_hdr *hdr)
{
    struct tpacket4_desc d[TPACKET4_TX_FRAMES];
    __u64 frames[TPACKET4_TX_FRAMES];
    unsigned int i, n = tpacket4_frames(size);
    size_t done = 0;

    if (!tpacket4_reserve(s, n)) {
        return 0;
    }
    tp4_pool_get(&s->tx_free, frames, n);
    for (i = 0; i < n; i++) {
        d[i].idx = frames[i];
        d[i].offset = i ? 0 : TPACKET4_TX_OFFSET;
        d[i].len = MIN(size - done, TPACKET4_FRAME_SIZE - d[i].offset);
        d[i].error = 0;
        d[i].flags = i + 1 < n ? TP4_PKT_CONT : 0;
        if (iovcnt == 1) {
            memcpy(tp4_data(&s->area, &d[i]), iov->iov_base + skip + done,
                   d[i].len);
        } else {
            iov_to_buf(iov, iovcnt, skip + done, tp4_data(&s->area, &d[i]),
                       d[i].len);
        }
        done += d[i].len;
    }
    if (hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM || hdr->gso_type) {
        struct tpacket4_meta *meta = tp4_meta_new(&s->area, &d[0]);

        if (hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
            tp4_meta_csum(meta, hdr->csum_start, hdr->csum_offset);
        }
        if (hdr->gso_type) {
            tp4_meta_gso(meta, hdr->gso_type, hdr->gso_size);
        }
    }
    tp4_ring_send(&s->sock.tx, d, n);
    if (!s->kicking) {
        s->kicking = true;
        qemu_bh_schedule(s->kick);
    }
    return size;
}

static ssize_t tpacket4_post_segment(void *opaque, uint8_t *data, size_t len)
{
    static const struct virtio_net_hdr none;
    struct iovec iov = { .iov_base = data, .iov_len = len };
    TPacket4State *s = opaque;

    tpacket4_post(s, &iov, 1, 0, len, &none);
    return len;
}

/* Does what the device does not, in memory of our own. */
static ssize_t tpacket4_post_software(TPacket4State *s,
                                      const struct iovec *iov, int iovcnt,
                                      size_t skip, size_t size,
                                      const struct virtio_net_hdr *hdr)
{
    static const struct virtio_net_hdr none;
    uint8_t *data = s->linear + TPACKET4_GSO_HEADROOM;
    struct iovec copy = { .iov_base = data, .iov_len = size };
    struct tpacket4_meta meta = { };
    size_t frames;

    if (hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
        tp4_meta_csum(&meta, hdr->csum_start, hdr->csum_offset);
    }
    iov_to_buf(iov, iovcnt, skip, data, size);
    if (!hdr->gso_type) {
        if (!tpacket4_complete_csum(&copy, 1, size, &meta)) {
            return size;
        }
        return tpacket4_post(s, &copy, 1, 0, size, &none);
    }
    tp4_meta_gso(&meta, hdr->gso_type, hdr->gso_size);
    frames = tpacket4_segments(data, size, &meta) *
             tpacket4_frames(TPACKET4_GSO_HEADERS + hdr->gso_size);
    /* All segments, or none and another try */
    if (frames <= TPACKET4_TX_NR && !tpacket4_reserve(s, frames)) {
        return 0;
    }
    if (frames <= TPACKET4_TX_NR) {
        tpacket4_segment(data, size, &meta, tpacket4_post_segment, s);
    }
    return size;
}

static ssize_t tpacket4_transmit(TPacket4State *s, const struct iovec *iov,
                                 int iovcnt, size_t hdr_len)
{
    struct virtio_net_hdr hdr = { };
    size_t size = iov_size(iov, iovcnt);

    if (s->gone || size < hdr_len + ETH_HLEN || size > NET_BUFSIZE) {
        return size;
    }
    /* The guest can still write to it. */
    if (hdr_len) {
        iov_to_buf(iov, iovcnt, 0, &hdr, sizeof(hdr));
    }
    size -= hdr_len;
    if (s->tx_software &&
        (hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM || hdr.gso_type)) {
        size = tpacket4_post_software(s, iov, iovcnt, hdr_len, size, &hdr);
    } else {
        size = tpacket4_post(s, iov, iovcnt, hdr_len, size, &hdr);
    }
    return size ? size + hdr_len : 0;
}

static ssize_t tpacket4_receive_iov(NetClientState *nc,
                                    const struct iovec *iov, int iovcnt)
{
    TPacket4State *s = DO_UPCAST(TPacket4State, nc, nc);

    return tpacket4_transmit(s, iov, iovcnt, s->vnet_hdr_len);
}

static ssize_t tpacket4_receive(NetClientState *nc, const uint8_t *buf,
                                size_t size)
{
    struct iovec iov = { .iov_base = (void *)buf, .iov_len = size };

    return tpacket4_receive_iov(nc, &iov, 1);
}

/* A packet of QEMU itself, without a header */
static ssize_t tpacket4_receive_raw(NetClientState *nc, const uint8_t *buf,
                                    size_t size)
{
    TPacket4State *s = DO_UPCAST(TPacket4State, nc, nc);
    struct iovec iov = { .iov_base = (void *)buf, .iov_len = size };

    return tpacket4_transmit(s, &iov, 1, 0);
}

/* Virtio's header -------------------------------------------------------- */

static bool tpacket4_has_ufo(NetClientState *nc)
{
    return true;
}

static bool tpacket4_has_vnet_hdr(NetClientState *nc)
{
    return true;
}

static bool tpacket4_has_vnet_hdr_len(NetClientState *nc, int len)
{
    return len == sizeof(struct virtio_net_hdr) ||
           len == sizeof(struct virtio_net_hdr_mrg_rxbuf) ||
           len == sizeof(struct virtio_net_hdr_v1_hash);
}

static void tpacket4_using_vnet_hdr(NetClientState *nc, bool enable)
{
    TPacket4State *s = DO_UPCAST(TPacket4State, nc, nc);

    s->vnet_hdr_len = enable ? sizeof(struct virtio_net_hdr) : 0;
}

static void tpacket4_set_vnet_hdr_len(NetClientState *nc, int len)
{
    TPacket4State *s = DO_UPCAST(TPacket4State, nc, nc);

    assert(tpacket4_has_vnet_hdr_len(nc, len));
    s->vnet_hdr_len = len;
}

static void tpacket4_set_offload(NetClientState *nc, int csum, int tso4,
                                 int tso6, int ecn, int ufo)
{
    TPacket4State *s = DO_UPCAST(TPacket4State, nc, nc);

    s->guest_csum = csum;
    s->guest_tso4 = tso4;
    s->guest_tso6 = tso6;
    s->guest_ecn = ecn;
    s->guest_ufo = ufo;
}

/* Beginning and end ------------------------------------------------------ */

static void tpacket4_cleanup(NetClientState *nc)
{
    TPacket4State *s = DO_UPCAST(TPacket4State, nc, nc);

    qemu_purge_queued_packets(nc);
    if (s->sock.map) {
        tpacket4_poll(nc, false);
        tpacket4_kick(s);
        tp4_close(&s->sock);
    }
    tp4_area_destroy(&s->area);
    qemu_bh_delete(s->kick);
    timer_free(s->retry);
    timer_free(s->look);
    g_free(s->linear);
    s->linear = NULL;
}

static NetClientInfo net_tpacket4_info = {
    .type = NET_CLIENT_DRIVER_TPACKET4,
    .size = sizeof(TPacket4State),
    .receive = tpacket4_receive,
    .receive_raw = tpacket4_receive_raw,
    .receive_iov = tpacket4_receive_iov,
    .poll = tpacket4_poll,
    .cleanup = tpacket4_cleanup,
    .has_ufo = tpacket4_has_ufo,
    .has_vnet_hdr = tpacket4_has_vnet_hdr,
    .has_vnet_hdr_len = tpacket4_has_vnet_hdr_len,
    .using_vnet_hdr = tpacket4_using_vnet_hdr,
    .set_offload = tpacket4_set_offload,
    .set_vnet_hdr_len = tpacket4_set_vnet_hdr_len,
};

static void tpacket4_set_error(Error **errp, enum tp4_where where, int e,
                               const char *ifname)
{
    error_setg(errp, "cannot use the device %s: %s", ifname,
               tp4_strerror(where, e));
}

static TPacket4State *tpacket4_new(NetClientState *peer, const char *name,
                                   unsigned int queue, TPacket4State *first)
{
    NetClientState *nc = qemu_new_net_client(&net_tpacket4_info, peer,
                                             "tpacket4", name);
    TPacket4State *s = DO_UPCAST(TPacket4State, nc, nc);

    nc->queue_index = queue;
    s->first = first ?: s;
    s->linear = g_malloc(TPACKET4_GSO_HEADROOM + NET_BUFSIZE);
    s->kick = qemu_bh_new(tpacket4_kick, s);
    s->retry = timer_new_ms(QEMU_CLOCK_REALTIME, tpacket4_writable, s);
    s->look = timer_new_ms(QEMU_CLOCK_REALTIME, tpacket4_look, s);
    return s;
}

/* Creates the socket, or uses one that a manager has created, and binds it. */
static bool tpacket4_open(TPacket4State *s, const char *ifname, int fd,
                          Error **errp)
{
    struct tp4_options opt = {
        .area = &s->area,
        .rx_nr = TPACKET4_RX_NR,
        .tx_nr = TPACKET4_TX_NR,
        .headroom = TPACKET4_HEADROOM,
        .meta = 1,
        .gso = 1,
        .fd = fd,
    };
    struct ifreq ifr = { };
    int e;

    pstrcpy(s->ifname, sizeof(s->ifname), ifname);
    pstrcpy(ifr.ifr_name, sizeof(ifr.ifr_name), ifname);
    e = tp4_area_create(&s->area, TPACKET4_RX_NR + TPACKET4_TX_NR,
                        TPACKET4_FRAME_SIZE);
    if (e) {
        tpacket4_set_error(errp, TP4_IN_AREA, e, ifname);
        return false;
    }
    e = tp4_open(&s->sock, &opt);
    if (e) {
        tpacket4_set_error(errp, s->sock.failed, e, ifname);
        if (fd) {
            close(fd);
        }
        return false;
    }
    /* By the socket: a manager's may be of another network namespace. */
    if (ioctl(s->sock.fd, SIOCGIFINDEX, &ifr) < 0) {
        tpacket4_set_error(errp, TP4_IN_BIND, -errno, ifname);
        return false;
    }
    tp4_ring_fill(&s->sock.rx, 0, TPACKET4_RX_NR);
    tp4_pool_init(&s->tx_free, s->tx_frames, TPACKET4_RX_NR, TPACKET4_TX_NR);
    /* What the host sends on the device is not for the guest. */
    e = tp4_setopt(s->sock.fd, PACKET_IGNORE_OUTGOING, 1);
    e = e ?: tp4_bind(&s->sock, ifr.ifr_ifindex);
    /* The guest has another address than the device. */
    e = e ?: tp4_promisc(&s->sock, ifr.ifr_ifindex);
    if (e) {
        tpacket4_set_error(errp, TP4_IN_BIND, e, ifname);
        return false;
    }
    return true;
}

/* In copy mode, a group of sockets has the packets, each socket some flows. */
static int tpacket4_share(TPacket4State **s, unsigned int queues)
{
    socklen_t len = sizeof(int);
    unsigned int i;
    int e, group;

    e = tp4_fanout(&s[0]->sock, 0,
                   PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_UNIQUEID);
    if (e) {
        return e;
    }
    if (getsockopt(s[0]->sock.fd, SOL_PACKET, PACKET_FANOUT, &group,
                   &len) < 0) {
        return -errno;
    }
    for (i = 1; i < queues && !e; i++) {
        e = tp4_fanout(&s[i]->sock, group, PACKET_FANOUT_HASH);
    }
    return e;
}

/* All queues are in zero-copy mode, or none. */
static int tpacket4_zerocopy(TPacket4State **s, unsigned int queues,
                             unsigned int start)
{
    unsigned int i;
    int e = 0;

    for (i = 0; i < queues && !e; i++) {
        e = tp4_zerocopy(&s[i]->sock, start + i + 1);
        s[i]->zerocopy = !e;
    }
    for (i = 0; i < queues && e; i++) {
        if (s[i]->zerocopy) {
            tp4_zerocopy(&s[i]->sock, 0);
            s[i]->zerocopy = false;
        }
    }
    return e;
}

static bool tpacket4_start(TPacket4State **s, unsigned int queues,
                           const NetdevTPacket4Options *opts, Error **errp)
{
    OnOffAuto zerocopy = opts->has_zerocopy ? opts->zerocopy : ON_OFF_AUTO_OFF;
    unsigned int i, start = opts->has_start_queue ? opts->start_queue : 0;
    const char *why = "";
    int e;

    if (zerocopy != ON_OFF_AUTO_OFF) {
        e = tpacket4_zerocopy(s, queues, start);
        if (e && zerocopy == ON_OFF_AUTO_ON) {
            tpacket4_set_error(errp, TP4_IN_ZEROCOPY, e, opts->ifname);
            return false;
        }
        why = e ? tp4_strerror(TP4_IN_ZEROCOPY, e) : "";
    }
    if (queues > 1 && !s[0]->zerocopy) {
        e = tpacket4_share(s, queues);
        if (e) {
            error_setg_errno(errp, -e, "cannot share the device %s",
                             opts->ifname);
            return false;
        }
    }
    for (i = 0; i < queues; i++) {
        if (s[i]->zerocopy) {
            qemu_set_info_str(&s[i]->nc, "ifname=%s,queue=%u,mode=zero-copy",
                              opts->ifname, start + i);
        } else {
            qemu_set_info_str(&s[i]->nc, "ifname=%s,mode=copy%s%s%s",
                              opts->ifname, *why ? " (" : "", why,
                              *why ? ")" : "");
        }
        tpacket4_read_poll(s[i], true);
    }
    return true;
}

int net_init_tpacket4(const Netdev *netdev, const char *name,
                      NetClientState *peer, Error **errp)
{
    const NetdevTPacket4Options *opts = &netdev->u.tpacket4;
    int64_t queues = opts->has_queues ? opts->queues : 1;
    TPacket4State *s[TPACKET4_MAX_QUEUES];
    g_auto(GStrv) fds = NULL;
    unsigned int n = 0;

    if (queues < 1 || queues > TPACKET4_MAX_QUEUES) {
        error_setg(errp, "queues is a number from 1 to %d",
                   TPACKET4_MAX_QUEUES);
        return -1;
    }
    if (peer && queues > 1) {
        error_setg(errp, "a hub has one queue");
        return -1;
    }
    if (opts->has_fds) {
        fds = g_strsplit(opts->fds, ":", TPACKET4_MAX_QUEUES + 1);
        if (g_strv_length(fds) != queues) {
            error_setg(errp, "fds has a socket for each queue");
            return -1;
        }
    }
    while (n < queues) {
        int fd = fds ? monitor_fd_param(monitor_cur(), fds[n], errp) : 0;

        if (fd < 0) {
            goto fail;
        }
        s[n] = tpacket4_new(peer, name, n, n ? s[0] : NULL);
        n++;
        if (!tpacket4_open(s[n - 1], opts->ifname, fd, errp)) {
            goto fail;
        }
    }
    if (tpacket4_start(s, queues, opts, errp)) {
        return 0;
    }
fail:
    /* Those of one name are deleted together. */
    if (n) {
        qemu_del_net_client(&s[0]->nc);
    }
    return -1;
}
