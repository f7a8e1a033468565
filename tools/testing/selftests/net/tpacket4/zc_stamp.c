// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: timestamps of packets, those sent by
 * SO_TIMESTAMPING and the error queue, those received by PACKET_TIMESTAMP.
 *
 * Runs on veth, and, as zc_port, on two ports of hardware.
 */
#include "meta.h"
#include "zc_port.h"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>

#define HEADROOM	64
#define BATCH		64
#define PIECE		700

/* What programs ask for */
#define SW		SOF_TIMESTAMPING_TX_SOFTWARE
#define HW		SOF_TIMESTAMPING_TX_HARDWARE
#define SCHED		SOF_TIMESTAMPING_TX_SCHED
#define BOTH		SOF_TIMESTAMPING_OPT_TX_SWHW
#define REPORT		(SOF_TIMESTAMPING_SOFTWARE | \
			 SOF_TIMESTAMPING_RAW_HARDWARE | \
			 SOF_TIMESTAMPING_OPT_ID)
#define TSONLY		SOF_TIMESTAMPING_OPT_TSONLY

static char buf[SIZE], pkt[SIZE], got[SIZE];

static bool on_veth(void)
{
	return !getenv("TPACKET4_PORTS");
}

static void set_up_net(struct __test_metadata *_metadata)
{
	if (on_veth())
		pv4_net_setup(_metadata);
	else
		ports(_metadata);
}

/* ---- the error queue ---- */

struct stamp {
	unsigned int id, type;
	__u64 sw, hw;			/* ns, or 0 */
	int len;			/* bytes in @buf */
};

static __u64 to_ns(const struct timespec *t)
{
	return t->tv_sec * 1000000000ULL + t->tv_nsec;
}

/* Reads a message of the error queue; returns 0 or -errno. */
static int read_stamp(int fd, struct stamp *s, int ms)
{
	char control[512];
	struct iovec iov = { .iov_base = buf, .iov_len = sizeof(buf) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;

	if (poll_for(fd, 0, ms) <= 0)
		return -EAGAIN;
	memset(s, 0, sizeof(*s));
	s->len = recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT);
	if (s->len < 0)
		return -errno;
	s->type = -1;
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		struct scm_timestamping ts;
		struct sock_extended_err err;

		if (c->cmsg_level == SOL_SOCKET &&
		    c->cmsg_type == SO_TIMESTAMPING) {
			memcpy(&ts, CMSG_DATA(c), sizeof(ts));
			s->sw = to_ns(&ts.ts[0]);
			s->hw = to_ns(&ts.ts[2]);
		} else if (c->cmsg_level == SOL_PACKET &&
			   c->cmsg_type == PACKET_TX_TIMESTAMP) {
			memcpy(&err, CMSG_DATA(c), sizeof(err));
			if (err.ee_errno != ENOMSG ||
			    err.ee_origin != SO_EE_ORIGIN_TIMESTAMPING)
				return -EBADMSG;
			s->id = err.ee_data;
			s->type = err.ee_info;
		}
	}
	return 0;
}

static int set_stamps(int fd, int flags)
{
	return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags,
			  sizeof(flags)) ? -errno : 0;
}

/* Reads a message that must have a software timestamp only. */
static void expect_sw(struct __test_metadata *_metadata, int fd,
		      struct stamp *s, unsigned int id, unsigned int type,
		      __u64 since)
{
	ASSERT_EQ(0, read_stamp(fd, s, WAIT_MS)) {
		TH_LOG("no timestamp of packet %u", id);
	}
	EXPECT_EQ(id, s->id);
	EXPECT_EQ(type, s->type);
	EXPECT_LE(since, s->sw);
	EXPECT_GE(real_ns(), s->sw);
	EXPECT_EQ(0ULL, s->hw);
}

static void expect_none(struct __test_metadata *_metadata, int fd)
{
	struct stamp s;

	EXPECT_EQ(-EAGAIN, read_stamp(fd, &s, 0)) {
		TH_LOG("a timestamp of packet %u", s.id);
	}
}

/* ---- packets that are sent ---- */

FIXTURE(stamp) {
	struct zc a;			/* sends */
	struct zc b;			/* receives, or no fd */
	int fd;				/* else this */
};

FIXTURE_VARIANT(stamp) {
	bool to_ring, shared;
};

FIXTURE_VARIANT_ADD(stamp, to_stack) { };

FIXTURE_VARIANT_ADD(stamp, to_ring) { .to_ring = true };

/* Frames are swapped on veth, so the sender loses those of the packet. */
FIXTURE_VARIANT_ADD(stamp, swapped) { .to_ring = true, .shared = true };

FIXTURE_SETUP(stamp)
{
	struct zc_cfg cfg = {
		.ifname = if_a, .n = 1, .headroom = HEADROOM, .meta = true,
		.frame_size = 4096,
		.sharers = variant->shared,
	};

	self->b.s.fd = -1;
	self->fd = -1;
	set_up_net(_metadata);
	ASSERT_EQ(0, port_open(&self->a, &cfg));
	cfg.ifname = if_b;
	if (variant->shared) {
		cfg.sharers = 0;
		cfg.area = &self->a;
		cfg.part = 1;
	}
	if (!variant->to_ring) {
		self->fd = plain_listener(_metadata, if_b);
		return;
	}
	ASSERT_EQ(0, port_open(&self->b, &cfg));
}

FIXTURE_TEARDOWN(stamp)
{
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(&self->a,
				     variant->shared ? &self->b : NULL));
	zc_close(&self->b);
	zc_close(&self->a);
	if (self->fd >= 0)
		close(self->fd);
}

/* Posts a packet with or without metadata. With a headroom before its data, veth
 * can swap frames.
 */
static int put(struct _test_data_stamp *self, const struct tpacket4_meta *m,
	       size_t len, unsigned int piece)
{
	unsigned int offset = HEADROOM + XDP_PACKET_HEADROOM;
	int err;

	zc_reap(&self->a);
	self->a.s.put = m;
	err = zc_put(&self->a, pkt, len, piece, offset);
	self->a.s.put = NULL;
	return err;
}

static int put_seq(struct _test_data_stamp *self, size_t len, uint32_t seq)
{
	fill_packet(pkt, len, seq);
	return put(self, NULL, len, 1700);
}

static int recv_any(struct _test_data_stamp *self, int ms)
{
	if (self->b.s.fd >= 0)
		return zc_recv(&self->b, got, sizeof(got), ms);
	return plain_recv(self->fd, got, sizeof(got), ms);
}

/* Packets of all kinds have a software timestamp each, and are looped back with
 * it unless the socket wants no data.
 */
TEST_F_TIMEOUT(stamp, software, 120)
{
	static const unsigned int lens[] = { 60, 1000, 1514 };
	struct tpacket4_meta m = { };
	struct stamp s = { };
	unsigned int i, id = 0, len, piece;
	bool af_xdp = by_af_xdp();
	int tsonly;
	__u64 last;

	/* the checksum only where there has to be that offload */
	if (af_xdp || on_veth() || !is_virtio())
		m = csum_meta(IPPROTO_UDP);
	/* perhaps no packets of several frames */
	piece = af_xdp ? 1700 : PIECE;
	for (tsonly = 0; tsonly < 2; tsonly++) {
		ASSERT_EQ(0, set_stamps(self->a.s.fd, SW | REPORT |
					(tsonly ? TSONLY : 0)));
		/* one frame, several, and those with metadata */
		for (i = 0; i < 3 * ARRAY_SIZE(lens); i++) {
			bool meta = i % 3 == 2;

			len = lens[i / 3];
			if (meta)
				fill_ip4(pkt, IPPROTO_UDP, len - L4 - 8, i);
			else
				fill_packet(pkt, len, i);
			last = real_ns();
			ASSERT_EQ(0, put(self, meta ? &m : NULL, len,
					 i % 3 ? piece : 1700)) {
				TH_LOG("packet %u", i);
			}
			ASSERT_EQ(0, zc_kick(&self->a));
			expect_sw(_metadata, self->a.s.fd, &s, id++,
				  SCM_TSTAMP_SND, last);
			ASSERT_EQ(tsonly ? 0 : (int)len, s.len);
			/* by AF_XDP's interface with the checksum */
			if (!meta || !af_xdp)
				EXPECT_EQ(0, memcmp(buf, pkt, s.len));
			ASSERT_EQ((int)len, recv_any(self, WAIT_MS));
			if (af_xdp)
				EXPECT_EQ(0, memcmp(buf, got, s.len));
			EXPECT_TRUE(meta || packet_ok(got, len, len, i));
		}
	}
	expect_none(_metadata, self->a.s.fd);
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	EXPECT_EQ(0U, self->a.s.errors[EINVAL] + self->a.s.errors[EOPNOTSUPP]);
}

/* Packets that are posted together have their own all the same, in order. */
TEST_F_TIMEOUT(stamp, batch, 120)
{
	unsigned int i, k, n = pv4_fast() ? 4 : 20;
	__u64 start, last;
	struct stamp s;

	ASSERT_EQ(0, set_stamps(self->a.s.fd, SW | REPORT));
	for (k = 0; k < n; k++) {
		start = real_ns();
		for (i = 0; i < BATCH; i++)
			ASSERT_EQ(0, put_seq(self, 100, k * BATCH + i));
		ASSERT_EQ(0, zc_kick(&self->a));
		for (last = start, i = 0; i < BATCH; i++) {
			expect_sw(_metadata, self->a.s.fd, &s, k * BATCH + i,
				  SCM_TSTAMP_SND, last);
			EXPECT_TRUE(packet_ok(buf, s.len, 100, k * BATCH + i));
			last = s.sw;
		}
		for (i = 0; i < BATCH; i++)
			ASSERT_EQ(100, recv_any(self, WAIT_MS));
	}
	expect_none(_metadata, self->a.s.fd);
}

/* There is no packet scheduler that a packet could wait for. */
TEST_F(stamp, sched)
{
	struct stamp s;
	unsigned int i;
	__u64 start;

	ASSERT_EQ(0, set_stamps(self->a.s.fd, SCHED | SW | REPORT | TSONLY));
	for (i = 0; i < 10; i++) {
		start = real_ns();
		ASSERT_EQ(0, put_seq(self, 100, i));
		ASSERT_EQ(0, zc_kick(&self->a));
		expect_sw(_metadata, self->a.s.fd, &s, i, SCM_TSTAMP_SCHED,
			  start);
		expect_sw(_metadata, self->a.s.fd, &s, i, SCM_TSTAMP_SND, s.sw);
	}
	ASSERT_EQ(0, set_stamps(self->a.s.fd, SCHED | REPORT | TSONLY));
	ASSERT_EQ(0, put_seq(self, 100, i));
	ASSERT_EQ(0, zc_kick(&self->a));
	expect_sw(_metadata, self->a.s.fd, &s, i, SCM_TSTAMP_SCHED, s.sw);
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	expect_none(_metadata, self->a.s.fd);
}

/* Refused packets have no timestamp and no number. */
TEST_F(stamp, refused_packets)
{
	struct tpacket4_desc bad = { .idx = 1 << 20, .len = 60 };
	struct tpacket4_meta launch = {
		.flags = TP4_META_TX_LAUNCH, .tstamp = 1,
	};
	struct stamp s;
	unsigned int i;
	__u64 start;

	ASSERT_EQ(0, set_stamps(self->a.s.fd, SW | REPORT));
	start = real_ns();
	for (i = 0; i < 8; i++) {
		fill_packet(pkt, MTU + 100, i);
		zc_post(&self->a, &self->a.s.tx, &bad, 1);
		ASSERT_EQ(0, put(self, &launch, 100, 1700));
		ASSERT_EQ(0, put(self, NULL, 10, 1700));
		ASSERT_EQ(0, put(self, NULL, MTU + 100, 1700));
		ASSERT_EQ(0, put_seq(self, 200, i));
	}
	ASSERT_EQ(0, zc_kick(&self->a));
	for (i = 0; i < 8; i++) {
		expect_sw(_metadata, self->a.s.fd, &s, i, SCM_TSTAMP_SND,
			  start);
		EXPECT_TRUE(packet_ok(buf, s.len, 200, i));
	}
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	expect_none(_metadata, self->a.s.fd);
	EXPECT_EQ(8U, self->a.s.errors[0]);
	EXPECT_EQ(8U, self->a.s.errors[EOPNOTSUPP]);
	EXPECT_EQ(16U, self->a.s.errors[EINVAL]);
	EXPECT_EQ(8 * 6U, self->a.s.errors[EMSGSIZE]);
}

/* Only packets taken from the ring while the option is set; the option starts to
 * count anew.
 */
TEST_F(stamp, on_and_off)
{
	unsigned int i, k;
	struct stamp s;

	for (k = 0; k < 3; k++) {
		for (i = 0; i < 5; i++)
			ASSERT_EQ(0, put_seq(self, 100, i));
		ASSERT_EQ(0, zc_kick(&self->a));
		ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
		expect_none(_metadata, self->a.s.fd);
		ASSERT_EQ(0, set_stamps(self->a.s.fd, SW | REPORT | TSONLY));
		for (i = 0; i < 5; i++) {
			ASSERT_EQ(0, put_seq(self, 100, i));
			ASSERT_EQ(0, zc_kick(&self->a));
			expect_sw(_metadata, self->a.s.fd, &s, i,
				  SCM_TSTAMP_SND, 0);
		}
		ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
		ASSERT_EQ(0, set_stamps(self->a.s.fd, 0));
	}
}

/* A program that does not read them fills its receive buffer, and nothing else. */
TEST_F_TIMEOUT(stamp, unread, 120)
{
	unsigned int i, k, n, sent = 0;
	int small = 1;
	struct stamp s;

	/* sets it to the least that is possible */
	ASSERT_EQ(0, setsockopt(self->a.s.fd, SOL_SOCKET, SO_RCVBUF, &small,
				sizeof(small)));
	ASSERT_EQ(0, set_stamps(self->a.s.fd, SW | REPORT | TSONLY));
	for (k = 0; k < 3; k++) {
		for (i = 0; i < 100; i++) {
			ASSERT_EQ(0, put_seq(self, 60, i));
			ASSERT_EQ(0, zc_kick(&self->a));
			ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
		}
		for (n = 0; !read_stamp(self->a.s.fd, &s, 0); n++)
			EXPECT_EQ(sent + n, s.id);
		EXPECT_LT(0U, n);
		EXPECT_GT(50U, n);
		sent += 100;
	}
}

/* Those that are left when the socket is closed are freed. */
TEST_F(stamp, left_behind)
{
	unsigned int i;

	ASSERT_EQ(0, set_stamps(self->a.s.fd, SW | REPORT));
	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, put_seq(self, 1000, i));
	ASSERT_EQ(0, zc_kick(&self->a));
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
}

/* ---- the options ---- */

FIXTURE(stamp_option) {
};

FIXTURE_SETUP(stamp_option)
{
	set_up_net(_metadata);
}

FIXTURE_TEARDOWN(stamp_option)
{
}

/* Whether the device stamps packets, while a socket is in zero-copy mode */
static bool stamps_in_hardware(void)
{
	struct ethtool_ts_info info = { .cmd = ETHTOOL_GET_TS_INFO };

	return !ethtool_ioctl(if_a, &info) && info.so_timestamping & HW &&
	       !by_af_xdp();
}

/* What the driver does not support is refused, whatever comes first. */
TEST_F_TIMEOUT(stamp_option, refused, 120)
{
	static const struct {
		int flags;
		bool software;		/* is enough */
	} to[] = {
		{ HW, false }, { HW | REPORT, false }, { HW | SW, true },
		{ HW | SCHED | REPORT, true }, { SW, true }, { SCHED, true },
		{ SOF_TIMESTAMPING_TX_ACK, true }, { REPORT, true }, { 0, true },
	};
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	unsigned int i;
	struct zc z;
	bool hw;
	int err;

	/* while it is in zero-copy mode */
	ASSERT_EQ(0, port_open(&z, &cfg));
	hw = stamps_in_hardware();
	for (i = 0; i < ARRAY_SIZE(to); i++) {
		err = hw || to[i].software ? 0 : -EOPNOTSUPP;
		ASSERT_EQ(0, set_stamps(z.s.fd, 0));
		ASSERT_EQ(err, set_stamps(z.s.fd, to[i].flags)) {
			TH_LOG("flags %#x", to[i].flags);
		}
	}
	/* before and after it */
	ASSERT_EQ(0, zc_set(&z, 0));
	for (i = 0; i < ARRAY_SIZE(to); i++) {
		if (hw && i > 1)
			break;		/* each takes a second */
		err = hw || to[i].software ? 0 : -EOPNOTSUPP;
		ASSERT_EQ(0, set_stamps(z.s.fd, to[i].flags));
		ASSERT_EQ(err, zc_set(&z, 1)) {
			TH_LOG("flags %#x", to[i].flags);
		}
		EXPECT_EQ(!err, zc_get(&z));
		ASSERT_EQ(0, zc_set(&z, 0));
	}
	zc_close(&z);

	/* and if bind() enters the mode */
	cfg.ifname = NULL;
	ASSERT_EQ(0, port_open(&z, &cfg));
	ASSERT_EQ(0, set_stamps(z.s.fd, HW));
	EXPECT_EQ(hw ? 0 : -EOPNOTSUPP, pv4_bind(z.s.fd, if_a, ETH_P_ALL));
	zc_close(&z);
}

/* A socket that does not send by the queue asks for them as ever. */
TEST_F_TIMEOUT(stamp_option, without_tx_ring, 120)
{
	struct pv4_cfg cfg = { .rx_nr = pv4_min_descs() };
	struct pv4 s;

	ASSERT_EQ(0, pv4_open(&s, &cfg));
	ASSERT_EQ(0, set_stamps(s.fd, HW | REPORT));
	ASSERT_EQ(0, pv4_setint(s.fd, PACKET_ZEROCOPY, 1));
	/* A driver may not have the mode for an Rx ring alone. */
	ASSERT_EQ(0, pv4_bind(s.fd, if_a, ETH_P_ALL));
	EXPECT_EQ(0, set_stamps(s.fd, 0));
	EXPECT_EQ(0, set_stamps(s.fd, HW | REPORT));
	pv4_close(&s);
}

static int send_cmsg(int fd, int type, __u32 value)
{
	union {
		char room[CMSG_SPACE(sizeof(value))];
		struct cmsghdr c;
	} u = {
		.c.cmsg_level = SOL_SOCKET,
		.c.cmsg_type = type,
		.c.cmsg_len = CMSG_LEN(sizeof(value)),
	};
	struct msghdr msg = {
		.msg_control = &u, .msg_controllen = sizeof(u),
	};

	memcpy(CMSG_DATA(&u.c), &value, sizeof(value));
	return sendmsg(fd, &msg, MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Calls do not send packets, so they cannot ask for their timestamps. */
TEST_F_TIMEOUT(stamp_option, control_messages, 120)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	struct zc z;

	ASSERT_EQ(0, port_open(&z, &cfg));
	EXPECT_EQ(-EOPNOTSUPP, send_cmsg(z.s.fd, SO_TIMESTAMPING, SW));
	EXPECT_EQ(0, send_cmsg(z.s.fd, SO_TIMESTAMPING, 0));
	EXPECT_EQ(-EINVAL, send_cmsg(z.s.fd, SO_TIMESTAMPING, 1 << 3));
	EXPECT_EQ(0, send_cmsg(z.s.fd, SO_MARK, 1));
	EXPECT_EQ(-EINVAL, send_cmsg(z.s.fd, SO_RCVBUF, 1));
	zc_close(&z);
}

/* All other options, and values that are wrong, are as for all sockets. */
TEST_F_TIMEOUT(stamp_option, others, 120)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	struct so_timestamping ts = { .flags = SW };
	struct timeval tv = { .tv_sec = 5 }, read;
	socklen_t len = sizeof(read);
	int val = 1 << 16, flags;
	struct zc z;

	ASSERT_EQ(0, port_open(&z, &cfg));
	EXPECT_EQ(0, setsockopt(z.s.fd, SOL_SOCKET, SO_RCVTIMEO, &tv,
				sizeof(tv)));
	EXPECT_EQ(0, getsockopt(z.s.fd, SOL_SOCKET, SO_RCVTIMEO, &read, &len));
	EXPECT_EQ(5, read.tv_sec);
	EXPECT_EQ(0, setsockopt(z.s.fd, SOL_SOCKET, SO_RCVBUF, &val,
				sizeof(val)));
	EXPECT_EQ(-1, setsockopt(z.s.fd, SOL_SOCKET, 9999, &val, sizeof(val)));
	EXPECT_EQ(ENOPROTOOPT, errno);
	EXPECT_EQ(-1, setsockopt(z.s.fd, SOL_SOCKET, SO_TIMESTAMPING, &val, 3));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, setsockopt(z.s.fd, SOL_SOCKET, SO_TIMESTAMPING, NULL, 4));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-EINVAL, set_stamps(z.s.fd, 1 << 30));
	EXPECT_EQ(0, setsockopt(z.s.fd, SOL_SOCKET, SO_TIMESTAMPING, &ts,
				sizeof(ts)));
	len = sizeof(ts);
	EXPECT_EQ(0, getsockopt(z.s.fd, SOL_SOCKET, SO_TIMESTAMPING, &ts, &len));
	EXPECT_EQ(SW, ts.flags);
	flags = SW | REPORT;
	EXPECT_EQ(0, setsockopt(z.s.fd, SOL_SOCKET, SO_TIMESTAMPING_NEW, &flags,
				sizeof(flags)));
	/* still so after the mode has ended */
	ASSERT_EQ(0, zc_set(&z, 0));
	EXPECT_EQ(0, set_stamps(z.s.fd, HW));
	zc_close(&z);
}

/* ---- the device's timestamps ---- */

static int set_hwtstamp(const char *ifname, int tx_type)
{
	struct hwtstamp_config cfg = { .tx_type = tx_type };
	struct ifreq ifr = { .ifr_data = (void *)&cfg };

	return dev_ioctl(ifname, SIOCSHWTSTAMP, &ifr);
}

FIXTURE(hw_stamp) {
	struct zc a;
	int fd;
};

FIXTURE_SETUP(hw_stamp)
{
	struct zc_cfg cfg = {
		.ifname = if_a, .n = 1, .headroom = HEADROOM, .meta = true,
		.frame_size = 4096,
	};

	self->a.s.fd = -1;
	self->fd = -1;
	if (on_veth())
		SKIP(return, "veth has no hardware");
	ports(_metadata);
	ASSERT_EQ(0, port_open(&self->a, &cfg));
	self->fd = plain_listener(_metadata, if_b);
	if (!stamps_in_hardware())
		SKIP(return, "no hardware timestamps");
	ASSERT_EQ(0, set_hwtstamp(if_a, HWTSTAMP_TX_ON));
}

FIXTURE_TEARDOWN(hw_stamp)
{
	if (self->fd < 0)
		return;
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(&self->a, NULL));
	zc_close(&self->a);
	close(self->fd);
	set_hwtstamp(if_a, HWTSTAMP_TX_OFF);
}

static int hw_put(struct _test_data_hw_stamp *self,
		  const struct tpacket4_meta *m, size_t len, unsigned int piece)
{
	int err;

	zc_reap(&self->a);
	self->a.s.put = m;
	err = zc_put(&self->a, pkt, len, piece, HEADROOM);
	self->a.s.put = NULL;
	return err;
}

/* Each packet has the device's timestamp, if it is sent when the one before has
 * got its own.
 */
TEST_F_TIMEOUT(hw_stamp, one_by_one, 120)
{
	struct tpacket4_meta m = csum_meta(IPPROTO_UDP);
	unsigned int i, len;
	__u64 last = 0;
	struct stamp s;

	ASSERT_EQ(0, set_stamps(self->a.s.fd, HW | REPORT));
	for (i = 0; i < 30; i++) {
		len = 100 + 40 * i;
		if (i % 3 == 2)
			fill_ip4(pkt, IPPROTO_UDP, len - L4 - 8, i);
		else
			fill_packet(pkt, len, i);
		ASSERT_EQ(0, hw_put(self, i % 3 == 2 ? &m : NULL, len,
				    i % 3 ? PIECE : 1700));
		ASSERT_EQ(0, zc_kick(&self->a));
		ASSERT_EQ(0, read_stamp(self->a.s.fd, &s, WAIT_MS)) {
			TH_LOG("packet %u", i);
		}
		EXPECT_EQ(i, s.id);
		EXPECT_EQ(SCM_TSTAMP_SND, s.type);
		EXPECT_EQ(0ULL, s.sw);
		EXPECT_LT(last, s.hw);
		ASSERT_EQ((int)len, s.len);
		EXPECT_EQ(0, memcmp(buf, pkt, len));
		last = s.hw;
		ASSERT_EQ((int)len, plain_recv(self->fd, got, sizeof(got),
					       WAIT_MS));
		EXPECT_TRUE(i % 3 == 2 || packet_ok(got, len, len, i));
	}
	expect_none(_metadata, self->a.s.fd);
}

/* Both are there if the program asks for both. */
TEST_F_TIMEOUT(hw_stamp, software_too, 120)
{
	unsigned int i, k, seen;
	struct stamp s;
	__u64 start;

	ASSERT_EQ(0, set_stamps(self->a.s.fd, HW | SW | BOTH | REPORT |
				TSONLY));
	for (i = 0; i < 10; i++) {
		start = real_ns();
		fill_packet(pkt, 200, i);
		ASSERT_EQ(0, hw_put(self, NULL, 200, 1700));
		ASSERT_EQ(0, zc_kick(&self->a));
		for (seen = 0, k = 0; k < 2; k++) {
			ASSERT_EQ(0, read_stamp(self->a.s.fd, &s, WAIT_MS));
			EXPECT_EQ(i, s.id);
			if (s.hw)
				seen |= 1;
			else if (s.sw >= start)
				seen |= 2;
		}
		EXPECT_EQ(3U, seen);
	}
	expect_none(_metadata, self->a.s.fd);
	/* without OPT_TX_SWHW, the better one */
	ASSERT_EQ(0, set_stamps(self->a.s.fd, HW | SW | REPORT | TSONLY));
	ASSERT_EQ(0, hw_put(self, NULL, 200, 1700));
	ASSERT_EQ(0, zc_kick(&self->a));
	ASSERT_EQ(0, read_stamp(self->a.s.fd, &s, WAIT_MS));
	EXPECT_NE(0ULL, s.hw);
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	expect_none(_metadata, self->a.s.fd);
}

/* The device stamps one packet at a time, and no segments. All others have a
 * software timestamp, so a program does not wait for ever.
 */
TEST_F_TIMEOUT(hw_stamp, instead, 120)
{
	struct tpacket4_meta m = gso_meta(IPPROTO_TCP,
					  VIRTIO_NET_HDR_GSO_TCPV4, 500);
	unsigned int i, hw = 0, sw = 0;
	bool seen[BATCH] = { };
	struct stamp s;

	ASSERT_EQ(0, set_stamps(self->a.s.fd, HW | REPORT | TSONLY));
	for (i = 0; i < BATCH; i++) {
		fill_packet(pkt, 100, i);
		ASSERT_EQ(0, hw_put(self, NULL, 100, 1700));
	}
	ASSERT_EQ(0, zc_kick(&self->a));
	for (i = 0; i < BATCH; i++) {
		ASSERT_EQ(0, read_stamp(self->a.s.fd, &s, WAIT_MS));
		ASSERT_GT(BATCH, s.id);
		EXPECT_FALSE(seen[s.id]);
		seen[s.id] = true;
		EXPECT_TRUE(!s.hw != !s.sw);
		hw += !!s.hw;
		sw += !!s.sw;
	}
	EXPECT_LE(1U, hw);
	EXPECT_LE(1U, sw);

	fill_ip4(pkt, IPPROTO_TCP, 1400, 1);
	ASSERT_EQ(0, hw_put(self, &m, L4 + 20 + 1400, 1700));
	ASSERT_EQ(0, zc_kick(&self->a));
	expect_sw(_metadata, self->a.s.fd, &s, BATCH, SCM_TSTAMP_SND, 0);

	/* and if nobody has asked the device to */
	ASSERT_EQ(0, set_hwtstamp(if_a, HWTSTAMP_TX_OFF));
	ASSERT_EQ(0, hw_put(self, NULL, 100, 1700));
	ASSERT_EQ(0, zc_kick(&self->a));
	expect_sw(_metadata, self->a.s.fd, &s, BATCH + 1, SCM_TSTAMP_SND, 0);
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	expect_none(_metadata, self->a.s.fd);
}

/* ---- packets that are received ---- */

/* With PACKET_TIMESTAMP, each packet has a timestamp of its own. Without, packets
 * that are published together may share one.
 */
TEST_F_TIMEOUT(stamp_option, received, 120)
{
	struct zc_cfg cfg = {
		.ifname = if_b, .n = 1, .headroom = HEADROOM, .meta = true,
		.frame_size = 4096,
	};
	unsigned int i, k, distinct;
	const struct tpacket4_meta *m;
	__u64 start, last;
	struct zc a, b;

	ASSERT_EQ(0, port_open(&b, &cfg));
	cfg.ifname = if_a;
	ASSERT_EQ(0, port_open(&a, &cfg));
	m = &b.s.got;
	for (k = 0; k < 4; k++) {
		bool own = k & 1;

		ASSERT_EQ(0, pv4_setint(b.s.fd, PACKET_TIMESTAMP, own ?
					SOF_TIMESTAMPING_SOFTWARE : 0));
		start = real_ns();
		for (i = 0; i < BATCH; i++)
			ASSERT_EQ(0, zc_put_seq(&a, 60 + i, i));
		ASSERT_EQ(0, zc_kick(&a));
		distinct = 0;
		for (last = start, i = 0; i < BATCH; i++) {
			ASSERT_EQ(60 + (int)i, zc_recv(&b, buf, sizeof(buf),
						       WAIT_MS));
			EXPECT_LE(last, m->tstamp);
			EXPECT_GE(real_ns(), m->tstamp);
			EXPECT_EQ(own ? TP4_META_RX_TS_SOFTWARE : 0,
				  m->flags & TP4_META_RX_TS_SOFTWARE);
			distinct += m->tstamp != last;
			last = m->tstamp;
		}
		/* the clock may not tick for each packet */
		if (own)
			EXPECT_LE(BATCH * 3 / 4U, distinct);
		EXPECT_TRUE(zc_reap_all(&a, WAIT_MS));
	}
	EXPECT_TRUE(zc_books_balance(&a, NULL));
	EXPECT_TRUE(zc_books_balance(&b, NULL));
	zc_close(&a);
	zc_close(&b);
}

TEST_HARNESS_MAIN
