// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: XDP programs that change the head, the tail, or
 * the metadata of a packet
 */
#include "zc_xdp_fixture.h"

FIXTURE_VARIANT_ADD(xdp, plain_to_copy) { .frags = false };

FIXTURE_VARIANT_ADD(xdp, plain_to_zc) { .zc_rx = true };

FIXTURE_VARIANT_ADD(xdp, zc_to_zc) { .zc_tx = true, .zc_rx = true };

FIXTURE_VARIANT_ADD(xdp, frags_plain_to_zc) { .zc_rx = true, .frags = true };

FIXTURE_VARIANT_ADD(xdp, frags_zc_to_zc) {
	.zc_tx = true, .zc_rx = true, .frags = true,
};

enum change { HEAD, TAIL, META };

/* Calls the helper for @change with @delta, and returns @action, or drops the
 * packet if the helper refuses. META also writes 4 bytes there.
 */
static int xdp_change(enum change change, int delta, int action, int flags)
{
	int helper = change == HEAD ? BPF_FUNC_xdp_adjust_head :
		     change == TAIL ? BPF_FUNC_xdp_adjust_tail :
		     BPF_FUNC_xdp_adjust_meta;
	struct bpf_insn prog[] = {
		MOV_X(BPF_REG_6, BPF_REG_1),
		MOV_K(BPF_REG_2, delta),
		CALL(helper),
		JMP_K(BPF_JNE, BPF_REG_0, 0, 9),
		/* without metadata, on to the end */
		JMP_K(change == META ? BPF_JNE : BPF_JEQ, BPF_REG_0, 0, 6),
		LOAD(BPF_W, BPF_REG_2, BPF_REG_6, CTX_DATA_META),
		LOAD(BPF_W, BPF_REG_3, BPF_REG_6, CTX_DATA),
		MOV_X(BPF_REG_4, BPF_REG_2),
		ADD_K(BPF_REG_4, 4),
		JMP_X(BPF_JGT, BPF_REG_4, BPF_REG_3, 3),
		STORE_K(BPF_W, BPF_REG_2, 0, 0x12345678),
		MOV_K(BPF_REG_0, action),
		EXIT,
		MOV_K(BPF_REG_0, XDP_DROP),
		EXIT,
	};

	return xdp_load(prog, ARRAY_SIZE(prog), flags);
}

static void use_change(struct __test_metadata *_metadata, enum change change,
		       int delta, int action, bool frags)
{
	int prog = xdp_change(change, delta, action,
			      frags ? BPF_F_XDP_HAS_FRAGS : 0);

	ASSERT_LE(0, prog);
	ASSERT_EQ(0, xdp_attach_native(if_b, prog));
	close(prog);
}

/* The packet that was sent, without @cut bytes at its start (or with additional
 * ones)
 */
static bool same_from(const char *buf, int len, int cut, int want,
		      uint32_t seq)
{
	char expect[MAX_PKT];

	if (len != want - cut)
		return false;
	fill_packet(expect, want, seq);
	return cut > 0 ? !memcmp(buf, expect + cut, len) :
	       !memcmp(buf - cut, expect, want);
}

TEST_F(xdp, adjust_head)
{
	static const int deltas[] = { 4, 14, 40, -4, -18, -64, -200 };
	int i, len, size = variant->frags ? 5000 : 1000;
	unsigned int k;

	for (k = 0; k < ARRAY_SIZE(deltas); k++) {
		use_change(_metadata, HEAD, deltas[k], XDP_PASS,
			   variant->frags);
		for (i = 0; i < 20; i++) {
			ASSERT_EQ(0, send_it(self, size, i));
			/* the data moves in its frame */
			if (variant->zc_rx && deltas[k] < 0)
				self->rx.min_offset = self->rx.s.offset +
						      XDP_PACKET_HEADROOM +
						      deltas[k];
			len = recv_ring(self, WAIT_MS);
			ASSERT_TRUE(same_from(self->buf, len, deltas[k], size,
					      i)) {
				TH_LOG("by %d: %d bytes", deltas[k], len);
			}
		}
	}
	/* never out of the frame */
	use_change(_metadata, HEAD, -300, XDP_PASS, variant->frags);
	ASSERT_EQ(0, send_it(self, size, 1));
	EXPECT_EQ(-EAGAIN, recv_ring(self, QUIET_MS));
	/* nor is this headroom kept for the next packet */
	use_change(_metadata, HEAD, 0, XDP_PASS, variant->frags);
	ASSERT_EQ(0, send_it(self, size, 2));
	EXPECT_TRUE(packet_ok(self->buf, recv_ring(self, WAIT_MS), size, 2));
	expect_books(_metadata, self);
}

/* Changed, with other verdicts. The next packet in the frame does not see it.
 */
TEST_F(xdp, adjust_head_other_verdicts)
{
	static const int acts[] = { XDP_TX, XDP_PASS_TO_KERNEL };
	static const int deltas[] = { 4, -18 };
	int i, len, size = variant->frags ? 5000 : 1000;
	unsigned int k, n;

	for (n = 0; n < 4; n++) {
		k = n / 2;
		use_change(_metadata, HEAD, deltas[n & 1], acts[k],
			   variant->frags);
		for (i = 0; i < 20; i++) {
			ASSERT_EQ(0, send_it(self, size, i));
			len = acts[k] == XDP_TX ? recv_a(self, WAIT_MS) :
			      plain_recv(self->plain_b, self->buf, BUF_SIZE,
					 WAIT_MS);
			ASSERT_TRUE(same_from(self->buf, len, deltas[n & 1],
					      size, i)) {
				TH_LOG("action %d: %d bytes", acts[k], len);
			}
		}
	}
	use_change(_metadata, HEAD, 0, XDP_PASS, variant->frags);
	/* copy mode also receives other packets */
	while (recv_ring(self, QUIET_MS) != -EAGAIN)
		;
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, send_it(self, size, i));
		ASSERT_TRUE(packet_ok(self->buf, recv_ring(self, WAIT_MS),
				      size, i));
	}
	expect_books(_metadata, self);
}

TEST_F(xdp, adjust_tail)
{
	static const int deltas[] = { -1, -20, -800, 1, 20, 64, 700 };
	int i, len, want, size = variant->frags ? 5000 : 900;
	unsigned int k;

	for (k = 0; k < ARRAY_SIZE(deltas); k++) {
		/* veth's own buffers have little room, and with frags none */
		if (deltas[k] > 0 && variant->frags)
			continue;
		if (deltas[k] > 20 && !variant->zc_rx)
			continue;
		use_change(_metadata, TAIL, deltas[k], XDP_PASS,
			   variant->frags);
		want = size + deltas[k];
		for (i = 0; i < 20; i++) {
			ASSERT_EQ(0, send_it(self, size, i));
			memset(self->buf, 0x77, size + 1000);
			len = recv_ring(self, WAIT_MS);
			ASSERT_EQ(want, len) {
				TH_LOG("by %d", deltas[k]);
			}
			if (len > size)
				len = size;
			ASSERT_TRUE(same_from(self->buf, len, 0, len, i));
			/* new bytes are zero, not old data */
			while (len < want)
				ASSERT_EQ(0, self->buf[len++]);
		}
	}
	expect_books(_metadata, self);
}

/* All frames of a long packet but the first are removed, and not lost. */
TEST_F(xdp, remove_frames)
{
	int i, len;

	if (!variant->frags)
		SKIP(return, "packets of one frame only");
	if (!variant->zc_rx)
		SKIP(return, "veth frees removed fragments of its skbs wrongly");
	use_change(_metadata, TAIL, -7000, XDP_PASS, true);
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, send_it(self, 9000, i));
		len = recv_ring(self, WAIT_MS);
		ASSERT_TRUE(same_from(self->buf, len, 0, 2000, i)) {
			TH_LOG("packet %d: %d bytes", i, len);
		}
	}
	expect_books(_metadata, self);
}

/* Packets that V4 or the program has dropped. If a copy is in one page, the
 * helper returns an error.
 */
static __s64 all_drops(const char *ifname)
{
	return ethtool_stat(ifname, "rx_queue_0_drops") +
	       ethtool_stat(ifname, "rx_queue_0_xdp_drops");
}

/* A packet that fills its frames and then grows has no room: it is dropped, and
 * its frames are not lost.
 */
TEST_F(xdp, grow_beyond_frames)
{
	int i, room = 2048 - XDP_PACKET_HEADROOM;
	__s64 drops;

	if (!variant->frags || !variant->zc_rx)
		SKIP(return, "only packets that are copied can grow");
	use_change(_metadata, TAIL, 1, XDP_PASS, true);
	drops = all_drops(if_b);
	ASSERT_LE(0, drops);
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, send_it(self, 2 * room, i));
		ASSERT_EQ(0, send_it(self, 2 * room - 1, i));
		ASSERT_EQ(2 * room, recv_ring(self, WAIT_MS));
		ASSERT_TRUE(same_from(self->buf, 2 * room - 1, 0, 2 * room - 1,
				      i));
	}
	EXPECT_EQ(-EAGAIN, recv_ring(self, QUIET_MS));
	EXPECT_EQ(drops + 300, all_drops(if_b));
	expect_books(_metadata, self);
}

/* Metadata that XDP leaves in front of the data is received in zero-copy mode.
 * In copy mode it is in the skb and not for packet sockets.
 */
TEST_F(xdp, metadata)
{
	int i, len, size = variant->frags ? 5000 : 1000;
	struct zc *rx = &self->rx;
	struct tpacket4_desc d;
	__u32 meta;
	char *f;

	use_change(_metadata, META, -4, XDP_PASS, variant->frags);
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, send_it(self, size, i));
		if (!variant->zc_rx) {
			ASSERT_TRUE(packet_ok(self->buf,
					      recv_ring(self, WAIT_MS), size,
					      i));
			continue;
		}
		len = 0;
		do {
			ASSERT_TRUE(zc_take_wait(rx, &rx->s.rx, &d, WAIT_MS));
			f = pv4_frame(&rx->s, d.idx) + d.offset;
			/* the first frame has it */
			ASSERT_LE(rx->min_offset, d.offset);
			memcpy(&meta, f - sizeof(meta), sizeof(meta));
			if (!len)
				ASSERT_EQ(0x12345678U, meta);
			memcpy(self->buf + len, f, d.len);
			len += d.len;
			zc_rx_post(rx, d.idx);
		} while (d.flags & TP4_PKT_CONT);
		ASSERT_TRUE(packet_ok(self->buf, len, size, i));
	}
	expect_books(_metadata, self);
}

TEST_HARNESS_MAIN
