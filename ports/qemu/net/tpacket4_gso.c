/*
 * AF_PACKET V4 network backend: segmentation
 *
 * For guests and devices that do not segment themselves.
 *
 * This work is licensed under the terms of the GNU GPL, version 2 or later.
 * See the COPYING file in the top-level directory.
 */

#include "qemu/osdep.h"

#include "net/net.h"
#include "net/checksum.h"
#include "net/eth.h"
#include "standard-headers/linux/virtio_net.h"
#include "tpacket4_gso.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

#define IP_HEADER_LEN  sizeof(struct ip_header)
#define IP6_HEADER_LEN sizeof(struct ip6_header)
#define IP_PROTO_GRE   47
#define GRE_CSUM       0x80

/* Offsets of the headers of a packet */
typedef struct Headers {
    size_t outer_ip;    /* that of the tunnel, or as ip */
    size_t ip;
    size_t transport;
    size_t len;
    bool tcp;
} Headers;

static bool is_ip4(const uint8_t *ip)
{
    return *ip >> 4 == IP_HEADER_VERSION_4;
}

static size_t ip_header_len(const uint8_t *ip)
{
    return is_ip4(ip) ? IP_HDR_GET_LEN(ip) : IP6_HEADER_LEN;
}

/* Whether a whole IP header is between two offsets */
static bool has_ip(const uint8_t *data, size_t from, size_t to)
{
    size_t len;

    if (from >= to) {
        return false;
    }
    len = ip_header_len(data + from);
    return len >= IP_HEADER_LEN && len <= to - from;
}

/* MPLS labels, for example, are none. */
static bool is_outer_ip(const uint8_t *data, const Headers *h)
{
    uint16_t ethertype = lduw_be_p(data + h->outer_ip - 2);

    return ethertype == ETH_P_IP || ethertype == ETH_P_IPV6;
}

/* Each header is whole, and they do not overlap: all of them are written to. */
static bool find_headers(const uint8_t *data, size_t len,
                         const struct tpacket4_meta *meta, Headers *h)
{
    if (len <= ETH_MAX_L2_HDR_LEN || !meta->gso_size) {
        return false;
    }
    h->outer_ip = eth_get_l2_hdr_length(data);
    h->ip = meta->flags & TP4_META_TUNNEL ? meta->inner_start : h->outer_ip;
    if (h->ip < h->outer_ip || h->ip >= len ||
        (h->ip != h->outer_ip && is_outer_ip(data, h) &&
         !has_ip(data, h->outer_ip, h->ip))) {
        return false;
    }
    h->transport = meta->flags & TP4_META_CSUM ? meta->csum_start
                   : h->ip + ip_header_len(data + h->ip);
    if (!has_ip(data, h->ip, h->transport)) {
        return false;
    }
    switch (meta->gso_type & ~VIRTIO_NET_HDR_GSO_ECN) {
    case VIRTIO_NET_HDR_GSO_TCPV4:
    case VIRTIO_NET_HDR_GSO_TCPV6:
        if (h->transport + sizeof(struct tcp_hdr) > len ||
            data[h->transport + 12] >> 4 < sizeof(struct tcp_hdr) / 4) {
            return false;
        }
        h->tcp = true;
        h->len = h->transport + (data[h->transport + 12] >> 4) * 4;
        break;
    case VIRTIO_NET_HDR_GSO_UDP_L4:
        h->tcp = false;
        h->len = h->transport + sizeof(struct udp_hdr);
        break;
    default:
        return false;
    }
    return h->len <= len && h->len <= TPACKET4_GSO_HEADERS &&
           h->len - h->outer_ip + meta->gso_size <= UINT16_MAX;
}

size_t tpacket4_hdr_len(const uint8_t *data, size_t len,
                        const struct tpacket4_meta *meta)
{
    Headers h;

    return find_headers(data, len, meta, &h) ? h.len : 0;
}

size_t tpacket4_segments(const uint8_t *data, size_t len,
                         const struct tpacket4_meta *meta)
{
    Headers h;

    if (!find_headers(data, len, meta, &h)) {
        return 0;
    }
    return MAX(DIV_ROUND_UP(len - h.len, meta->gso_size), 1);
}

/* Length, identification and checksum of an IP header */
static void fix_ip(uint8_t *ip, size_t len, unsigned int nr)
{
    if (is_ip4(ip)) {
        stw_be_p(ip + offsetof(struct ip_header, ip_len), len);
        stw_be_p(ip + offsetof(struct ip_header, ip_id),
                 lduw_be_p(ip + offsetof(struct ip_header, ip_id)) + nr);
        stw_be_p(ip + offsetof(struct ip_header, ip_sum), 0);
        stw_be_p(ip + offsetof(struct ip_header, ip_sum),
                 net_raw_checksum(ip, ip_header_len(ip)));
    } else {
        stw_be_p(ip + offsetof(struct ip6_header, ip6_plen),
                 len - IP6_HEADER_LEN);
    }
}

/* The checksum of @len bytes behind an IP header, which belongs at @sum */
static void fix_csum(uint8_t *ip, uint8_t proto, uint8_t *data, size_t len,
                     uint8_t *sum)
{
    uint32_t add;

    stw_be_p(sum, 0);
    if (is_ip4(ip)) {
        add = net_checksum_add(2 * sizeof(uint32_t),
                               ip + offsetof(struct ip_header, ip_src));
    } else {
        add = net_checksum_add(2 * sizeof(struct in6_address),
                               ip + offsetof(struct ip6_header, ip6_src));
    }
    add += proto + len + net_checksum_add(len, data);
    stw_be_p(sum, net_checksum_finish_nozero(add));
}

/* The headers of a tunnel, after those of the packet in it */
static void fix_tunnel(uint8_t *data, size_t len, const Headers *h,
                       unsigned int nr)
{
    uint8_t *ip = data + h->outer_ip, *next;
    uint8_t proto;

    if (!is_outer_ip(data, h)) {
        return;
    }
    next = ip + ip_header_len(ip);
    if (next + sizeof(struct udp_hdr) > data + h->ip) {
        fix_ip(ip, len - h->outer_ip, nr);
        return;
    }
    proto = is_ip4(ip) ? ip[offsetof(struct ip_header, ip_p)]
            : ip[offsetof(struct ip6_header, ip6_nxt)];
    fix_ip(ip, len - h->outer_ip, nr);
    len -= next - data;
    if (proto == IP_PROTO_UDP) {
        uint8_t *sum = next + offsetof(struct udp_hdr, uh_sum);

        stw_be_p(next + offsetof(struct udp_hdr, uh_ulen), len);
        if (lduw_be_p(sum)) {
            fix_csum(ip, proto, next, len, sum);
        }
    } else if (proto == IP_PROTO_GRE && *next & GRE_CSUM) {
        stw_be_p(next + 4, 0);
        stw_be_p(next + 4, net_raw_checksum(next, len));
    }
}

static void fix_segment(uint8_t *data, size_t len, const Headers *h,
                        const struct tpacket4_meta *meta, unsigned int nr,
                        bool last)
{
    uint8_t *transport = data + h->transport, *ip = data + h->ip, *sum;

    fix_ip(ip, len - h->ip, nr);
    if (h->tcp) {
        uint8_t *seq = transport + offsetof(struct tcp_hdr, th_seq);
        uint8_t *flags = transport + offsetof(struct tcp_hdr, th_flags);

        stl_be_p(seq, ldl_be_p(seq) + nr * meta->gso_size);
        if (!last) {
            *flags &= ~(TH_FIN | TH_PUSH);
        }
        if (nr) {
            *flags &= ~TH_CWR;
        }
        sum = transport + offsetof(struct tcp_hdr, th_sum);
    } else {
        stw_be_p(transport + offsetof(struct udp_hdr, uh_ulen),
                 len - h->transport);
        sum = transport + offsetof(struct udp_hdr, uh_sum);
    }
    fix_csum(ip, h->tcp ? IP_PROTO_TCP : IP_PROTO_UDP, transport,
             len - h->transport, sum);
    if (h->ip != h->outer_ip) {
        fix_tunnel(data, len, h, nr);
    }
}

ssize_t tpacket4_segment(uint8_t *data, size_t len,
                         const struct tpacket4_meta *meta, TPacket4Emit *emit,
                         void *opaque)
{
    uint8_t headers[TPACKET4_GSO_HEADERS];
    size_t done, n, count, i;
    ssize_t ret = len;
    Headers h;

    if (!find_headers(data, len, meta, &h)) {
        return len;
    }
    memcpy(headers, data, h.len);
    count = tpacket4_segments(data, len, meta);
    for (i = 0, done = h.len; i < count; i++, done += n) {
        uint8_t *segment = data + done - h.len;

        n = MIN(meta->gso_size, len - done);
        /* It overwrites the end of the segment before, which was emitted. */
        memcpy(segment, headers, h.len);
        fix_segment(segment, h.len + n, &h, meta, i, i + 1 == count);
        if (emit(opaque, segment, h.len + n) == 0) {
            ret = 0;
        }
    }
    return ret;
}
