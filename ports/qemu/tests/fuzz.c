// SPDX-License-Identifier: GPL-2.0
/* Fuzzes what -netdev tpacket4 does with packets, without QEMU and a kernel with V4.
 *
 *	fuzz [--seconds N] [--seed N]
 *
 * The backend is compiled with sanitizers. This program is the guest, whose packets and
 * virtio headers are random, the kernel, which serves the rings, and the functions of QEMU
 * that the backend calls. It checks each packet that comes out by code of its own. A failure
 * prints the seed that repeats it at once.
 */
#include "net/tpacket4_gso.c"
#include "net/tpacket4.c"

#include <getopt.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

#define FRAMES		(TPACKET4_RX_NR + TPACKET4_TX_NR)
#define POOL		(1 << 18)
#define MAX_IOV		64
#define MPLS		0x8847
#define PROTO_IPIP	4

#define check(cond) do { \
	if (!(cond)) \
		fail(__LINE__, #cond); \
} while (0)

struct packet {
	uint8_t data[NET_BUFSIZE + 64];
	size_t len;
	struct tpacket4_meta meta;
};

/* Where the headers of a packet are that can be segmented */
struct layout {
	size_t outer, inner, transport, payload;
	bool tcp;
};

enum kind { TCP4, TCP6, UDP4, UDP6, VLAN, OPTIONS, VXLAN4, VXLAN6, VXLAN_CSUM, GRE, GRE_SUM,
	IPIP, LABELS, KINDS };

static const char *const kinds[KINDS] = {
	"TCP over IPv4", "TCP over IPv6", "UDP over IPv4", "UDP over IPv6", "VLAN tags",
	"IP options", "VXLAN over IPv4", "VXLAN over IPv6", "VXLAN with a checksum", "GRE",
	"GRE with a checksum", "IP in IP", "MPLS",
};

/* The packets that came out, one behind the other */
static struct {
	uint8_t data[1 << 26];
	struct tpacket4_meta meta[1 << 17];
	size_t end[1 << 17], nr;
} out;

static uint64_t seed, state, reached[KINDS], packets, segments;
static uint8_t pool[POOL], area[FRAMES * TPACKET4_FRAME_SIZE] __attribute__((aligned(4096)));
static struct tpacket4_desc rx_ring[TPACKET4_RX_NR], tx_ring[TPACKET4_TX_NR];
static struct tpacket4_status status;
static unsigned int rx_next, tx_next;
static bool flushed, tries_again, slow;
static TPacket4State *s;
static struct packet p;

static void say_seed(void)
{
	fprintf(stderr, "fuzz: --seed %" PRIu64 " repeats it\n", seed);
}

static void fail(int line, const char *what)
{
	fprintf(stderr, "fuzz.c:%d: %s\n", line, what);
	say_seed();
	exit(1);
}

static uint64_t random64(void)
{
	uint64_t x = state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static size_t below(size_t n)
{
	return random64() % n;
}

static bool one_in(size_t n)
{
	return below(n) == 0;
}

/* QEMU ------------------------------------------------------------------------ */

static ssize_t take(const struct iovec *iov, int iovcnt)
{
	size_t len = iov_size(iov, iovcnt), at = out.nr ? out.end[out.nr - 1] : 0;

	check(out.nr < ARRAY_SIZE(out.end) && at + len <= sizeof(out.data));
	iov_to_buf(iov, iovcnt, 0, out.data + at, len);
	out.end[out.nr++] = at + len;
	/* The peer may have no buffer: its queue has a copy. */
	return one_in(8) ? 0 : len;
}

ssize_t qemu_sendv_packet_async(NetClientState *nc, const struct iovec *iov, int iovcnt,
				NetPacketSent *sent)
{
	return take(iov, iovcnt);
}

ssize_t qemu_send_packet_async(NetClientState *nc, const uint8_t *buf, int size,
			       NetPacketSent *sent)
{
	struct iovec iov = { (void *)buf, size };

	return take(&iov, 1);
}

int qemu_find_net_clients_except(const char *id, NetClientState **clients,
				 NetClientDriver type, int max)
{
	clients[0] = &s->nc;
	return 1;
}

void qemu_flush_queued_packets(NetClientState *nc)
{
	flushed = true;
}

bool eth_pad_short_frame(uint8_t *padded, size_t *padded_len, const void *pkt, size_t len)
{
	return false;
}

char *pstrcat(char *buf, int size, const char *text)
{
	return buf;
}

int64_t qemu_clock_get_ns(QEMUClockType type)
{
	return 0;
}

void timer_mod(QEMUTimer *timer, int64_t when)
{
	tries_again = true;
}

void qemu_purge_queued_packets(NetClientState *nc) { }
void qemu_set_fd_handler(int fd, IOHandler *rd, IOHandler *wr, void *opaque) { }
void qemu_bh_schedule(QEMUBH *bh) { }
void qemu_bh_delete(QEMUBH *bh) { }
void timer_del(QEMUTimer *timer) { }
void qmp_set_link(const char *name, bool up, Error **errp) { }
void error_report_err(Error *err) { }
void error_report(const char *text, ...) { }
void warn_report(const char *text, ...) { }
void qemu_set_info_str(NetClientState *nc, const char *text, ...) { }

/* The kernel ------------------------------------------------------------------ */

/* Sends some of the packets, and returns their slots. */
static int kick(const struct tp4_socket *sock, int flags)
{
	static const int errors[] = { EINVAL, EMSGSIZE, EOPNOTSUPP, ENOBUFS };
	static const int results[] = { ENOBUFS, EAGAIN, ENETDOWN };
	unsigned int n = sock->tx.q.avail_idx - tx_next;

	for (n = slow ? MIN(n, below(24)) : n; n; n--, tx_next++) {
		struct tpacket4_desc *d = &tx_ring[tx_next % TPACKET4_TX_NR];

		check(d->flags & TP4_DESC_KERNEL);
		d->error = one_in(16) ? errors[below(ARRAY_SIZE(errors))] : 0;
		d->flags &= ~TP4_DESC_KERNEL;
	}
	return one_in(8) ? -results[below(ARRAY_SIZE(results))] : 0;
}

static int wait_for(struct tp4_socket *sock, short events, int timeout)
{
	return 0;
}

static const struct tp4_backend backend = { .kick = kick, .wait = wait_for };

/* Reads the packets in the slots that were posted since @at. */
static void read_tx(unsigned int at)
{
	bool first = true;
	size_t end = 0;

	for (out.nr = 0; at != s->sock.tx.q.avail_idx; at++) {
		const struct tpacket4_desc *d = &tx_ring[at % TPACKET4_TX_NR];

		check(d->idx >= TPACKET4_RX_NR && d->idx < FRAMES);
		check(d->len && d->offset + d->len <= TPACKET4_FRAME_SIZE);
		if (first) {
			check(d->offset == TP4_ZC_HEADROOM);
			memset(&out.meta[out.nr], 0, sizeof(out.meta[0]));
			if (d->flags & TP4_META)
				out.meta[out.nr] = *tp4_meta(&s->area, d);
		}
		memcpy(out.data + end, tp4_data(&s->area, d), d->len);
		end += d->len;
		first = !(d->flags & TP4_PKT_CONT);
		if (first)
			out.end[out.nr++] = end;
	}
	check(first);
}

/* Puts the packet into slots of the Rx ring, behind one with an error, perhaps. Returns in how
 * many pieces it is in memory.
 */
static size_t write_rx(void)
{
	/* Full frames, as the kernel has them, or around as many as the backend takes */
	size_t limit = one_in(4) ? p.len / (40 + below(40)) + 1 : TPACKET4_FRAME_SIZE;
	uint8_t *data, *end = NULL;
	struct tpacket4_desc *d;
	size_t done, n, pieces;

	if (one_in(16)) {
		d = &rx_ring[rx_next++ % TPACKET4_RX_NR];
		d->error = ECANCELED;
		d->flags = 0;
	}
	for (done = pieces = 0; done < p.len; done += n, rx_next++) {
		d = &rx_ring[rx_next % TPACKET4_RX_NR];
		check(d->flags & TP4_DESC_KERNEL && d->idx < TPACKET4_RX_NR);
		d->offset = done ? 0 : TPACKET4_HEADROOM;
		n = MIN(MIN(p.len - done, TPACKET4_FRAME_SIZE - d->offset), limit);
		data = tp4_data(&s->area, d);
		memcpy(data, p.data + done, n);
		pieces += data != end;
		end = data + n;
		d->len = n;
		d->error = 0;
		d->flags = done ? 0 : TP4_META;
		if (!done)
			*tp4_meta(&s->area, d) = p.meta;
		if (done + n < p.len)
			d->flags |= TP4_PKT_CONT;
	}
	return pieces;
}

/* The packets ------------------------------------------------------------------ */

static void add(size_t n)
{
	memcpy(p.data + p.len, pool + below(POOL - n), n);
	p.len += n;
}

static void add16(uint16_t value)
{
	stw_be_p(p.data + p.len, value);
	p.len += 2;
}

static void add_ip(bool six, uint8_t proto, size_t options)
{
	uint8_t *ip = p.data + p.len;

	add((six ? 40 : 20) + options);
	ip[0] = six ? 0x60 : 0x40 | (5 + options / 4);
	ip[six ? 6 : 9] = proto;
}

static void add_tunnel(bool six)
{
	bool sum = one_in(2);

	switch (below(4)) {
	case 0:
		add16(MPLS);
		add(4);
		return;
	case 1:
		add16(six ? ETH_P_IPV6 : ETH_P_IP);
		add_ip(six, PROTO_IPIP, 0);
		return;
	case 2:
		add16(six ? ETH_P_IPV6 : ETH_P_IP);
		add_ip(six, IP_PROTO_GRE, 0);
		add16(sum ? GRE_CSUM << 8 : 0);
		add(sum ? 6 : 2);
		return;
	case 3:
		add16(six ? ETH_P_IPV6 : ETH_P_IP);
		add_ip(six, IP_PROTO_UDP, one_in(4) && !six ? 8 : 0);
		add(6);
		add16(sum);
		add(8 + ETH_HLEN);
	}
}

/* A number at or around a limit */
static size_t edge(void)
{
	switch (below(6)) {
	case 0:
		return below(4);
	case 1:
		return UINT16_MAX - below(4);
	case 2:
		return p.len + below(5) - 2;
	case 3:
		return p.meta.csum_start + below(45) - 22;
	case 4:
		return below(p.len + 1);
	default:
		return below(UINT16_MAX + 1);
	}
}

/* A packet that can be segmented, but for its size, perhaps */
static void make_packet(void)
{
	static const uint16_t sizes[] = { 1, 7, 48, 536, 1448, 8948, UINT16_MAX - 200 };
	bool six = one_in(2), tcp = one_in(2);
	size_t options, headers;

	memset(&p.meta, 0, sizeof(p.meta));
	p.len = 0;
	add(12);
	for (; one_in(4) && p.len < 20; add(2))
		add16(p.len == 12 && one_in(2) ? ETH_P_DVLAN : ETH_P_VLAN);
	if (one_in(3)) {
		add_tunnel(six);
		p.meta.flags |= TP4_META_TUNNEL;
		p.meta.inner_start = p.len;
		six = one_in(2);
	} else {
		add16(six ? ETH_P_IPV6 : ETH_P_IP);
	}
	options = one_in(4) ? 4 * below(11) : 0;
	add_ip(six, tcp ? IP_PROTO_TCP : IP_PROTO_UDP, six ? 2 * options : options);
	p.meta.csum_start = p.len;
	p.meta.csum_offset = tcp ? 16 : 6;
	options = tcp && one_in(2) ? 4 * below(11) : 0;
	add((tcp ? 20 : 8) + options);
	if (tcp)
		p.data[p.meta.csum_start + 12] = (5 + options / 4) << 4;
	if (!one_in(8))
		p.meta.flags |= TP4_META_CSUM;
	if (!one_in(4)) {
		p.meta.flags |= TP4_META_GSO;
		p.meta.gso_type = !tcp ? VIRTIO_NET_HDR_GSO_UDP_L4 :
				  six ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
		p.meta.gso_type |= tcp && one_in(8) ? VIRTIO_NET_HDR_GSO_ECN : 0;
		p.meta.gso_size = one_in(2) ? sizes[below(ARRAY_SIZE(sizes))] : 1 + below(9000);
	}
	headers = p.len;
	switch (below(8)) {
	case 0:
		add(below(UINT16_MAX - p.len));
		break;
	case 1:
		add(NET_BUFSIZE - p.len - below(24));
		break;
	case 2:
		add(below(12));
		break;
	default:
		add(below(8 * MAX(p.meta.gso_size, 200) % 20000 + 1));
	}
	/* Thousands of segments take their time. */
	if (p.meta.flags & TP4_META_GSO && p.len > 400 * p.meta.gso_size && !one_in(100))
		p.len = headers + below(400 * p.meta.gso_size);
}

/* Makes something about it wrong. */
static void spoil(void)
{
	static const uint16_t flags[] = {
		TP4_META_CSUM, TP4_META_GSO, TP4_META_CSUM_CRC32C, TP4_META_TUNNEL,
		TP4_META_RX_CSUM_VALID,
	};
	size_t len;

	switch (below(9)) {
	case 0:
		p.data[below(MIN(p.len, 120))] = random64();
		break;
	case 1:
		p.data[(p.meta.flags & TP4_META_TUNNEL ? 14 : p.meta.csum_start + 12) %
		       sizeof(p.data)] = random64();
		break;
	case 2:
		p.meta.gso_size = edge();
		break;
	case 3:
		p.meta.csum_start = edge();
		break;
	case 4:
		p.meta.csum_offset = edge();
		break;
	case 5:
		p.meta.inner_start = edge();
		break;
	case 6:
		p.meta.gso_type = one_in(2) ? below(8) : random64();
		break;
	case 7:
		p.meta.flags ^= flags[below(ARRAY_SIZE(flags))];
		break;
	default:
		len = MIN(edge() & 0x1ffff, sizeof(p.data));
		if (len > p.len)
			add(len - p.len);
		p.len = MAX(len, 1);
	}
}

static void make(void)
{
	make_packet();
	while (one_in(2))
		spoil();
	if (one_in(50))
		memcpy(p.data, pool + below(POOL - p.len), p.len);
	packets++;
}

/* The checks ------------------------------------------------------------------- */

static size_t ip_len(const uint8_t *ip)
{
	return *ip >> 4 == 4 ? (*ip & 15) * 4 : 40;
}

/* Whether there is a whole IP header between two offsets */
static bool ip_fits(size_t from, size_t to)
{
	return from < to && ip_len(p.data + from) >= 20 && from + ip_len(p.data + from) <= to;
}

static bool outer_is_ip(size_t at)
{
	return lduw_be_p(p.data + at - 2) == ETH_P_IP ||
	       lduw_be_p(p.data + at - 2) == ETH_P_IPV6;
}

/* Whether the packet can be segmented, and where its headers are */
static bool can_segment(struct layout *l)
{
	const struct tpacket4_meta *m = &p.meta;
	uint16_t type = lduw_be_p(p.data + 12);

	if (p.len <= 22 || !m->gso_size)
		return false;
	l->outer = type == ETH_P_VLAN ? 18 : type != ETH_P_DVLAN ? 14 :
		   lduw_be_p(p.data + 16) == ETH_P_VLAN ? 22 : 18;
	l->inner = m->flags & TP4_META_TUNNEL ? m->inner_start : l->outer;
	if (l->inner < l->outer || l->inner >= p.len)
		return false;
	if (l->inner != l->outer && outer_is_ip(l->outer) && !ip_fits(l->outer, l->inner))
		return false;
	l->transport = m->flags & TP4_META_CSUM ? m->csum_start :
		       l->inner + ip_len(p.data + l->inner);
	if (l->transport >= p.len || !ip_fits(l->inner, l->transport))
		return false;
	switch (m->gso_type & ~VIRTIO_NET_HDR_GSO_ECN) {
	case VIRTIO_NET_HDR_GSO_TCPV4:
	case VIRTIO_NET_HDR_GSO_TCPV6:
		if (l->transport + 20 > p.len || p.data[l->transport + 12] >> 4 < 5)
			return false;
		l->tcp = true;
		l->payload = l->transport + (p.data[l->transport + 12] >> 4) * 4;
		break;
	case VIRTIO_NET_HDR_GSO_UDP_L4:
		l->tcp = false;
		l->payload = l->transport + 8;
		break;
	default:
		return false;
	}
	return l->payload <= p.len && l->payload <= TPACKET4_GSO_HEADERS &&
	       l->payload - l->outer + m->gso_size <= UINT16_MAX;
}

/* The sum of 16-bit words, as a checksum has it */
static uint16_t sum16(uint64_t sum, const uint8_t *data, size_t len)
{
	for (; len > 1; data += 2, len -= 2)
		sum += data[0] << 8 | data[1];
	if (len)
		sum += data[0] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* With the checksum, that of what is behind an IP header is right. */
static bool is_sum_right(const uint8_t *ip, uint8_t proto, const uint8_t *data, size_t len)
{
	size_t addresses = *ip >> 4 == 4 ? 12 : 8;

	return sum16(sum16(proto + len, ip + addresses, *ip >> 4 == 4 ? 8 : 32), data, len) ==
	       0xffff;
}

/* Checks what differs in an IP header, and sets it in that of the packet. */
static void check_ip(uint8_t *want, const uint8_t *got, size_t len, unsigned int nr)
{
	if (*got >> 4 != 4) {
		stw_be_p(want + 4, len - 40);
		return;
	}
	check(sum16(0, got, ip_len(got)) == 0xffff);
	stw_be_p(want + 2, len);
	stw_be_p(want + 4, lduw_be_p(want + 4) + nr);
	memcpy(want + 10, got + 10, 2);
}

static void check_tunnel(const struct layout *l, uint8_t *want, const uint8_t *got, size_t len,
			 unsigned int nr)
{
	size_t at = l->outer + ip_len(got + l->outer);
	uint8_t proto = got[l->outer + (got[l->outer] >> 4 == 4 ? 9 : 6)];

	if (!outer_is_ip(l->outer)) {
		reached[LABELS]++;
		return;
	}
	check_ip(want + l->outer, got + l->outer, len - l->outer, nr);
	if (at == l->inner)
		reached[IPIP]++;
	if (proto == IP_PROTO_UDP && at + 8 <= l->inner) {
		stw_be_p(want + at + 4, len - at);
		reached[got[l->outer] >> 4 == 4 ? VXLAN4 : VXLAN6]++;
		if (!lduw_be_p(want + at + 6))
			return;
		check(is_sum_right(got + l->outer, proto, got + at, len - at));
		memcpy(want + at + 6, got + at + 6, 2);
		reached[VXLAN_CSUM]++;
	} else if (proto == IP_PROTO_GRE) {
		reached[GRE]++;
		if (!(got[at] & 0x80) || at + 8 > l->inner)
			return;
		check(sum16(0, got + at, len - at) == 0xffff);
		memcpy(want + at + 4, got + at + 4, 2);
		reached[GRE_SUM]++;
	}
}

static void check_segment(const struct layout *l, const uint8_t *got, size_t len,
			  unsigned int nr, bool last)
{
	uint8_t want[TPACKET4_GSO_HEADERS], *transport = want + l->transport;
	bool six = *(got + l->inner) >> 4 != 4;
	uint8_t sum = l->tcp ? 16 : 6;

	memcpy(want, p.data, l->payload);
	check_ip(want + l->inner, got + l->inner, len - l->inner, nr);
	if (l->tcp) {
		stl_be_p(transport + 4, ldl_be_p(transport + 4) + nr * p.meta.gso_size);
		/* FIN and PSH are the last one's, CWR the first one's. */
		if (!last)
			transport[13] &= ~0x09;
		if (nr)
			transport[13] &= ~0x80;
	} else {
		stw_be_p(transport + 4, len - l->transport);
	}
	check(is_sum_right(got + l->inner, l->tcp ? IP_PROTO_TCP : IP_PROTO_UDP,
			   got + l->transport, len - l->transport));
	memcpy(transport + sum, got + l->transport + sum, 2);
	if (l->inner != l->outer)
		check_tunnel(l, want, got, len, nr);
	check(!memcmp(want, got, l->payload));
	reached[l->tcp ? (six ? TCP6 : TCP4) : six ? UDP6 : UDP4]++;
	reached[VLAN] += l->outer > 14;
	reached[OPTIONS] += ip_len(got + l->inner) > 20 && !six;
	segments++;
}

/* The packets that came out, each behind a header of zeros, are its segments. */
static void check_segments(const struct layout *l, size_t header)
{
	static const uint8_t zeros[sizeof(struct virtio_net_hdr_v1_hash)];
	size_t i, n, at = 0, payload = l->payload;

	check(out.nr);
	for (i = 0; i < out.nr; i++, at += n) {
		n = out.end[i] - at;
		check(n >= header + l->payload && !memcmp(out.data + at, zeros, header));
		n -= header;
		at += header;
		/* All but the last one are full. */
		check(n - l->payload <= p.meta.gso_size);
		check(n - l->payload == p.meta.gso_size || i + 1 == out.nr);
		check(n - l->payload || out.nr == 1);
		check(payload + n - l->payload <= p.len);
		check(!memcmp(p.data + payload, out.data + at + l->payload, n - l->payload));
		payload += n - l->payload;
		check_segment(l, out.data + at, n, i, i + 1 == out.nr);
	}
	check(payload == p.len);
}

static uint32_t crc32c_of(const uint8_t *data, size_t len)
{
	uint32_t crc = ~0u;
	int bit;

	while (len--) {
		crc ^= *data++;
		for (bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
	}
	return ~crc;
}

/* One packet came out, with the checksum that it lacked; or none, as it has no room. */
static void check_csum(size_t header)
{
	size_t from = p.meta.csum_start, at = from + p.meta.csum_offset;
	bool crc = p.meta.flags & TP4_META_CSUM_CRC32C;
	uint8_t *got = out.data + header;
	uint16_t sum;

	if (at + (crc ? 4 : 2) > p.len) {
		check(!out.nr);
		return;
	}
	check(out.nr == 1 && out.end[0] == header + p.len);
	if (crc) {
		stl_le_p(p.data + at, 0);
		stl_le_p(p.data + at, crc32c_of(p.data + from, p.len - from));
	} else {
		sum = ~sum16(0, p.data + from, p.len - from);
		stw_be_p(p.data + at, sum ?: 0xffff);
	}
	check(!memcmp(p.data, got, p.len));
}

/* The directions ---------------------------------------------------------------- */

/* The backend segments in memory of its own, of which the packet is to be the end. */
static void limit_memory(size_t len)
{
	size_t end = TPACKET4_GSO_HEADROOM + NET_BUFSIZE;

	ASAN_UNPOISON_MEMORY_REGION(s->linear, end);
	if (TPACKET4_GSO_HEADROOM + len < end)
		ASAN_POISON_MEMORY_REGION(s->linear + TPACKET4_GSO_HEADROOM + len,
					  end - TPACKET4_GSO_HEADROOM - len);
}

/* Splits the guest's header and the packet into memory of their own. */
static int split(struct iovec *iov, const struct virtio_net_hdr_v1_hash *hdr, size_t header)
{
	size_t len = header + p.len, nr = one_in(3) ? 1 : 1 + below(MAX_IOV), done, n, i;

	for (i = done = 0; i < nr; i++, done += n) {
		n = below(MIN(len - done, one_in(4) ? 40 : 2 * len / nr) + 1);
		if (i + 1 == nr)
			n = len - done;
		iov[i].iov_base = g_malloc(n);
		iov[i].iov_len = n;
	}
	iov_from_buf(iov, nr, 0, hdr, header);
	iov_from_buf(iov, nr, header, p.data, p.len);
	return nr;
}

/* Gives the backend a packet of the guest until it takes it. */
static bool give(const struct iovec *iov, int nr)
{
	size_t len = iov_size(iov, nr);
	unsigned int at, tries;
	bool software;
	ssize_t took;

	for (tries = 0; tries < 1000; tries++) {
		software = s->tx_software;
		at = s->sock.tx.q.avail_idx;
		check(s->tx_free.nr + tp4_ring_pending(&s->sock.tx) == TPACKET4_TX_NR);
		tries_again = false;
		if (nr == 1 && one_in(2))
			took = net_tpacket4_info.receive(&s->nc, iov->iov_base, len);
		else
			took = net_tpacket4_info.receive_iov(&s->nc, iov, nr);
		if (took) {
			check((size_t)took == len);
			read_tx(at);
			return software;
		}
		check(s->sock.tx.q.avail_idx == at);
		check(s->write_poll || tries_again);
		flushed = false;
		tpacket4_writable(s);
		check(flushed);
	}
	fail(__LINE__, "the packet is taken");
	return false;
}

static void check_whole(const struct virtio_net_hdr *hdr)
{
	const struct tpacket4_meta *m = out.meta;

	check(out.nr == 1 && out.end[0] == p.len && !memcmp(out.data, p.data, p.len));
	check(!(m->flags & ~(TP4_META_CSUM | TP4_META_GSO)));
	check(!(m->flags & TP4_META_CSUM) == !(hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM));
	check(!(m->flags & TP4_META_GSO) == !hdr->gso_type);
	if (m->flags & TP4_META_CSUM)
		check(m->csum_start == hdr->csum_start && m->csum_offset == hdr->csum_offset);
	if (m->flags & TP4_META_GSO)
		check(m->gso_type == hdr->gso_type && m->gso_size == hdr->gso_size);
}

static void from_guest(void)
{
	struct virtio_net_hdr_v1_hash header = { };
	struct virtio_net_hdr *hdr = (void *)&header;
	size_t hdr_len = s->vnet_hdr_len, frames;
	struct iovec iov[MAX_IOV];
	struct layout l;
	bool software;
	int i, nr;

	/* Virtio's header has neither. */
	p.meta.flags &= ~(TP4_META_TUNNEL | TP4_META_CSUM_CRC32C);
	memset(&header, random64(), sizeof(header));
	hdr->flags &= ~VIRTIO_NET_HDR_F_NEEDS_CSUM;
	if (p.meta.flags & TP4_META_CSUM)
		hdr->flags |= VIRTIO_NET_HDR_F_NEEDS_CSUM;
	hdr->gso_type = p.meta.flags & TP4_META_GSO ? p.meta.gso_type : 0;
	hdr->gso_size = p.meta.gso_size;
	hdr->csum_start = p.meta.csum_start;
	hdr->csum_offset = p.meta.csum_offset;
	if (!hdr_len)
		hdr->flags = hdr->gso_type = 0;
	nr = split(iov, &header, hdr_len);
	limit_memory(MIN(p.len, NET_BUFSIZE));
	software = give(iov, nr);
	for (i = 0; i < nr; i++)
		g_free(iov[i].iov_base);

	if (p.len < ETH_HLEN || hdr_len + p.len > NET_BUFSIZE) {
		check(!out.nr);
		return;
	}
	if (!software || !(hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM || hdr->gso_type)) {
		check_whole(hdr);
		return;
	}
	for (i = 0; i < (int)out.nr; i++)
		check(!out.meta[i].flags);
	if (!hdr->gso_type) {
		check_csum(0);
		return;
	}
	if (!can_segment(&l)) {
		check(!out.nr);
		return;
	}
	frames = MAX(DIV_ROUND_UP(p.len - l.payload, p.meta.gso_size), 1) *
		 DIV_ROUND_UP(TP4_ZC_HEADROOM + TPACKET4_GSO_HEADERS + p.meta.gso_size,
			      TPACKET4_FRAME_SIZE);
	if (frames > TPACKET4_TX_NR)
		check(!out.nr);
	else
		check_segments(&l, 0);
}

static bool guest_takes_gso(uint8_t type)
{
	if (type & VIRTIO_NET_HDR_GSO_ECN && !s->guest_ecn)
		return false;
	type &= ~VIRTIO_NET_HDR_GSO_ECN;
	return (type == VIRTIO_NET_HDR_GSO_TCPV4 && s->guest_tso4) ||
	       (type == VIRTIO_NET_HDR_GSO_TCPV6 && s->guest_tso6) ||
	       (type == VIRTIO_NET_HDR_GSO_UDP && s->guest_ufo);
}

static void to_guest(void)
{
	const struct tpacket4_meta *m = &p.meta;
	size_t hdr_len = s->vnet_hdr_len, pieces;
	struct virtio_net_hdr hdr;
	struct layout l;

	pieces = write_rx();
	limit_memory(MIN(p.len, NET_BUFSIZE));
	out.nr = 0;
	tpacket4_send(s);
	check(!tp4_ring_peek(&s->sock.rx, 1));
	if (!s->read_poll)
		tpacket4_send_completed(&s->nc, 0);
	check(s->read_poll);

	if (p.len < ETH_HLEN || hdr_len + p.len > NET_BUFSIZE || pieces > TPACKET4_RX_PIECES) {
		check(!out.nr);
		return;
	}
	if (m->flags & TP4_META_GSO &&
	    (m->flags & TP4_META_TUNNEL || !hdr_len || !guest_takes_gso(m->gso_type))) {
		if (can_segment(&l))
			check_segments(&l, hdr_len);
		else
			check(!out.nr);
		return;
	}
	memset(&hdr, 0, sizeof(hdr));
	if (m->flags & TP4_META_CSUM && (!s->guest_csum || m->flags & TP4_META_CSUM_CRC32C)) {
		check_csum(hdr_len);
	} else {
		check(out.nr == 1 && out.end[0] == hdr_len + p.len);
		check(!memcmp(out.data + hdr_len, p.data, p.len));
	}
	if (!out.nr || !hdr_len)
		return;
	memcpy(&hdr, out.data, sizeof(hdr));
	check(hdr.gso_type == (m->flags & TP4_META_GSO ? m->gso_type : 0));
	if (hdr.gso_type)
		check(hdr.gso_size == m->gso_size);
	if (hdr.hdr_len && can_segment(&l))
		check(hdr.hdr_len == l.payload);
	if (m->flags & TP4_META_CSUM && s->guest_csum && !(m->flags & TP4_META_CSUM_CRC32C))
		check(hdr.flags == VIRTIO_NET_HDR_F_NEEDS_CSUM &&
		      hdr.csum_start == m->csum_start && hdr.csum_offset == m->csum_offset);
	else
		check(!(hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM));
}

/* Each frame is in one place. */
static void check_frames(void)
{
	bool seen[FRAMES] = { };
	unsigned int i;

	for (i = 0; i < TPACKET4_RX_NR; i++) {
		check(!seen[rx_ring[i].idx]);
		seen[rx_ring[i].idx] = true;
	}
	tp4_kick(&s->sock, 0);
	tpacket4_reap(s);
	for (i = 0; i < tp4_ring_pending(&s->sock.tx); i++)
		seen[tp4_ring_at(&s->sock.tx, i)->idx] ^= true;
	for (i = 0; i < s->tx_free.nr; i++)
		seen[s->tx_free.frames[i]] ^= true;
	for (i = 0; i < FRAMES; i++)
		check(seen[i]);
}

static void run(void)
{
	static const int headers[] = { 0, 10, 12, 20 };
	unsigned int i;

	state = seed;
	rx_next = tx_next = 0;
	s = g_malloc0(sizeof(*s));
	s->first = s;
	s->nc.info = &net_tpacket4_info;
	s->linear = g_malloc(TPACKET4_GSO_HEADROOM + NET_BUFSIZE);
	s->area.addr = area;
	s->area.frame_size = TPACKET4_FRAME_SIZE;
	s->area.nr_frames = FRAMES;
	s->area.len = sizeof(area);
	s->sock.backend = &backend;
	s->sock.status = &status;
	status.tx_need_wakeup = 1;
	tp4_ring_init(&s->sock.rx, rx_ring, TPACKET4_RX_NR);
	tp4_ring_init(&s->sock.tx, tx_ring, TPACKET4_TX_NR);
	tp4_ring_fill(&s->sock.rx, 0, TPACKET4_RX_NR);
	tp4_pool_init(&s->tx_free, s->tx_frames, TPACKET4_RX_NR, TPACKET4_TX_NR);
	slow = one_in(2);
	s->vnet_hdr_len = headers[below(ARRAY_SIZE(headers))];
	s->zerocopy = one_in(2);
	s->tx_software = one_in(2);
	s->read_poll = true;
	s->guest_csum = one_in(2);
	s->guest_tso4 = one_in(2);
	s->guest_tso6 = one_in(2);
	s->guest_ecn = one_in(2);
	s->guest_ufo = one_in(2);
	for (i = 0; i < 64; i++) {
		make();
		if (one_in(2))
			to_guest();
		else
			from_guest();
		if (one_in(8))
			tpacket4_kick(s);
	}
	check_frames();
	ASAN_UNPOISON_MEMORY_REGION(s->linear, TPACKET4_GSO_HEADROOM + NET_BUFSIZE);
	g_free(s->linear);
	g_free(s);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, 'r' },
		{ }
	};
	time_t start = time(NULL), shown = start, now = start;
	long seconds = 5;
	uint64_t i;
	int opt;

	seed = (uint64_t)start << 20;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 's')
			seconds = strtol(optarg, NULL, 0);
		else if (opt == 'r')
			seed = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	printf("# seed %" PRIu64 "\n", seed);
	fflush(stdout);
	__sanitizer_set_death_callback(say_seed);
	for (i = 0; i < POOL / 8; i++)
		stq_le_p(pool + 8 * i, random64());
	for (; now - start < seconds || seconds == 0; seed++, now = time(NULL)) {
		run();
		if (now - shown < 10)
			continue;
		shown = now;
		printf("# %ld s, %" PRIu64 " packets, %" PRIu64 " segments, seed %" PRIu64 "\n",
		       (long)(now - start), packets, segments, seed);
		fflush(stdout);
	}
	for (i = 0; i < KINDS; i++) {
		printf("# %s: %" PRIu64 " segments\n", kinds[i], reached[i]);
		check(reached[i]);
	}
	printf("# %" PRIu64 " packets, %" PRIu64 " segments\n", packets, segments);
	return 0;
}
