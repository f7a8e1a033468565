// SPDX-License-Identifier: GPL-2.0
/*
 * Ring ports: the switch does here what the kernel does for a packet socket.
 *
 * The rings and the area are memory that the program writes to at any time. A
 * descriptor is copied once and the copy is checked. Indices, sizes and all else
 * that counts are in memory of the switch alone.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "tpacket4_port.h"
#include "tpswitch.h"

/*
 * Number of slots that may be filled before they are published. With those of
 * one more packet, it is less than the smallest ring has, 256.
 */
#define HELD		128

/**
 * struct sw_ring - a ring port
 * @port: the port
 * @src: its source, the program's Tx ring
 * @area: the program's frames
 * @nr_frames: their number
 * @shift: log2 of their size
 * @frame_size: bytes per frame
 * @headroom: bytes before the data of a packet for the program
 * @rx: the program's Rx ring
 * @rx_mask: number of slots less one; ~0: no ring
 * @rx_next: the next slot of @rx to return
 * @rx_held: the first slot that was returned but is not published, which hides
 *           the ones behind it
 * @rx_word: what is to be written to it
 * @rx_woken: @rx_held when the program was last woken up
 * @tx: the program's Tx ring
 * @tx_mask: number of slots less one; ~0: no ring
 * @tx_next: the next slot of @tx to take
 * @tx_done: slots of @tx were returned since the program was last woken up
 * @refuse: refuse the rest of a packet that has too many frames
 * @page: shared page
 * @kick_fd: eventfd that the program writes to
 * @wake_fd: sockets that the switch writes to
 * @map: the mapping of the rings and @page
 * @map_len: its length
 * @area_len: length of @area in bytes
 * @pid: process that has connected
 * @user: its user
 * @use: what is counted for @user
 * @hup: the program has closed its end of wake_fd[0]
 */
struct sw_ring {
	struct sw_port port;
	struct sw_source src;
	u8 *area;
	u64 nr_frames;
	u32 shift, frame_size, headroom;
	struct tpacket4_desc *rx;
	u32 rx_mask, rx_next, rx_held, rx_woken;
	u64 rx_word;
	struct tpacket4_desc *tx;
	u32 tx_mask, tx_next;
	bool tx_done, refuse;
	struct tp4_port_page *page;
	int kick_fd, wake_fd[2];
	void *map;
	size_t map_len, area_len;
	unsigned int pid;
	struct sw_user *user;
	struct sw_quota use;
	struct sw_event hup;
};

/* What the second half of a descriptor is as one word */
union desc_word {
	u64 word;
	struct {
		u32 len;
		u16 offset;
		u8 error;
		u8 flags;
	};
};

static u64 make_word(u32 len, u16 offset, u8 error, u8 flags)
{
	union desc_word w = {
		.len = len, .offset = offset, .error = error, .flags = flags
	};

	return w.word;
}

/* Wake up a program that sleeps until packets are received or sent. */
static void wake(struct sw_ring *r, int which)
{
	u32 *want = &r->page->want[which];

	/* The program sets want, then looks at the ring. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (likely(!__atomic_load_n(want, __ATOMIC_RELAXED)))
		return;
	__atomic_store_n(want, 0, __ATOMIC_RELAXED);
	/*
	 * A socket, since the program cannot make this call wait: its end is
	 * another file, and nobody who reads holds a lock that writing takes, as
	 * in a pipe. If the socket is full, the program is awake.
	 */
	if (send(r->wake_fd[which], "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
}

/* --- from the program: its Tx ring --------------------------------------- */

static unsigned int ring_input(struct sw_source *src, struct sw_frag *frag)
{
	struct sw_ring *r = container_of(src, struct sw_ring, src);
	/* In registers: what is stored in the loop could change them. */
	u32 mask = r->tx_mask, next = r->tx_next, shift = r->shift;
	u64 nr_frames = r->nr_frames, size = r->frame_size;
	struct tpacket4_desc *tx = r->tx;
	const u8 *area = r->area;
	unsigned int n = 0, start = 0;
	bool refuse = r->refuse;

	if (unlikely(!tx))
		return 0;
	/* The last packet may go on beyond the batch. */
	while (n - start < SW_CHAIN && (n < SW_BATCH || n > start)) {
		struct tpacket4_desc *d = &tx[(next + n) & mask];
		struct sw_frag *f = frag + n;
		union desc_word w;
		u64 idx;

		w.word = __atomic_load_n(sw_word_of(d), __ATOMIC_ACQUIRE);
		if (!(w.word & TP4_WORD_KERNEL))
			break;
		idx = __atomic_load_n(&d->idx, __ATOMIC_RELAXED);
		w.word &= SW_WORD_KEEP & ~TP4_WORD_ERROR;
		f->idx = idx;
		f->word = w.word;
		n++;
		if (unlikely(idx >= nr_frames || !w.len ||
			     (u64)w.len + w.offset > size)) {
			f->data = area;
			f->error = EINVAL;
		} else {
			f->data = area + (idx << shift) + w.offset;
			/* For sw_lookup_batch() */
			__builtin_prefetch(f->data);
		}
		if (likely(!(w.flags & (TP4_PKT_CONT | TP4_META)) && !refuse)) {
			start = n;
			continue;
		}
		if ((w.flags & TP4_META) &&
		    (!r->port.meta || n - 1 != start ||
		     w.offset < sizeof(struct tpacket4_meta)))
			f->error = EINVAL;
		if (refuse) {
			/* Not a packet to anyone who looks at the frames */
			refuse = w.flags & TP4_PKT_CONT;
			f->flags = 0;
			f->error = refuse ? SW_MORE : EMSGSIZE;
			start = n;
		} else if (!(w.flags & TP4_PKT_CONT)) {
			start = n;
		}
	}
	if (unlikely(n - start == SW_CHAIN)) {
		/* Too many frames: this part and the rest are refused. */
		for (; start < n; start++) {
			frag[start].flags = 0;
			frag[start].error = SW_MORE;
		}
	}
	return start;
}

/* Return the slots, the last one first. */
static void ring_done(struct sw_source *src, const struct sw_frag *frag,
		      unsigned int n)
{
	struct sw_ring *r = container_of(src, struct sw_ring, src);
	unsigned int i;

	for (i = n; i--; ) {
		const struct sw_frag *f = frag + i;
		struct tpacket4_desc *d = &r->tx[(r->tx_next + i) & r->tx_mask];
		u64 word = f->word;

		if (unlikely(word & TP4_WORD_ERROR)) {
			r->port.count.in_errors++;
			if (f->error == SW_MORE)
				word = make_word(f->len, f->offset, EMSGSIZE, 0);
		}
		__atomic_store_n(sw_word_of(d), word, __ATOMIC_RELEASE);
	}
	r->refuse = n ? frag[n - 1].error == SW_MORE : r->refuse;
	r->tx_next += n;
	r->tx_done = true;
	sw_mark_waking(&r->port);
}

/* Is there a whole packet, or too much of one? */
static bool ring_has_packet(const struct sw_ring *r)
{
	union desc_word w;
	unsigned int i;

	for (i = 0; i < SW_CHAIN; i++) {
		w.word = __atomic_load_n(sw_word_of(&r->tx[(r->tx_next + i) &
							r->tx_mask]),
					 __ATOMIC_ACQUIRE);
		if (!(w.flags & TP4_DESC_KERNEL))
			return false;
		if (!(w.flags & TP4_PKT_CONT) || r->refuse)
			break;
	}
	return true;
}

static bool ring_sleep(struct sw_source *src)
{
	struct sw_ring *r = container_of(src, struct sw_ring, src);
	u32 *need = &r->page->status.tx_need_wakeup;

	__atomic_store_n(need, 1, __ATOMIC_RELAXED);
	/* The program posts, then reads tx_need_wakeup. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!r->tx || !ring_has_packet(r))
		return false;
	__atomic_store_n(need, 0, __ATOMIC_RELAXED);
	return true;
}

static void ring_kicked(struct sw *sw, struct sw_event *ev, u32 events)
{
	struct sw_source *src = container_of(ev, struct sw_source, ev);
	struct sw_ring *r = container_of(src, struct sw_ring, src);

	(void)events;
	/* Edge-triggered: nobody has to read the eventfd. */
	__atomic_store_n(&r->page->status.tx_need_wakeup, 0, __ATOMIC_RELAXED);
	sw_activate(sw, src);
}

static const struct sw_source_ops ring_source_ops = {
	.input = ring_input,
	.done = ring_done,
	.sleep = ring_sleep,
};

/* --- to the program: its Rx ring ----------------------------------------- */

static void ring_flush(struct sw_port *port)
{
	struct sw_ring *r = container_of(port, struct sw_ring, port);

	if (r->rx_next == r->rx_held)
		return;
	__atomic_store_n(sw_word_of(&r->rx[r->rx_held & r->rx_mask]), r->rx_word,
			 __ATOMIC_RELEASE);
	r->rx_held = r->rx_next;
	/* The program needs time to wake up: not when its ring is full already */
	if (unlikely(r->rx_held - r->rx_woken > r->rx_mask / 2)) {
		r->rx_woken = r->rx_held;
		wake(r, 0);
	}
}

static void ring_wake(struct sw_port *port)
{
	struct sw_ring *r = container_of(port, struct sw_ring, port);

	if (r->tx_done) {
		r->tx_done = false;
		wake(r, 1);
	}
	if (r->rx_woken != r->rx_held) {
		r->rx_woken = r->rx_held;
		wake(r, 0);
	}
}

/* Return a slot; the program sees it after ring_flush(). */
static void ring_return(struct sw_ring *r, u64 word)
{
	if (r->rx_next == r->rx_held)
		r->rx_word = word;
	else
		__atomic_store_n(sw_word_of(&r->rx[r->rx_next & r->rx_mask]),
				 word, __ATOMIC_RELAXED);
	r->rx_next++;
}

/* The frame of the i-th slot from rx_next on, or NULL */
static u8 *ring_frame(struct sw_ring *r, u32 i)
{
	struct tpacket4_desc *d = &r->rx[(r->rx_next + i) & r->rx_mask];
	u64 idx;

	if (unlikely(tp4_desc_ready(d)))
		return NULL;
	idx = __atomic_load_n(&d->idx, __ATOMIC_RELAXED);
	if (unlikely(idx >= r->nr_frames)) {
		if (!i) {
			/* One a packet: a ring full of them takes no time. */
			ring_return(r, make_word(0, 0, EINVAL, 0));
			sw_mark_dirty(&r->port);
		}
		return NULL;
	}
	return r->area + (idx << r->shift);
}

/* A packet that takes, or comes in, several frames */
static bool ring_output_long(struct sw_ring *r, const struct sw_packet *pkt)
{
	u32 room = r->frame_size - r->headroom, left = pkt->len, i, nr;
	u32 at = 0, part, n;
	const struct sw_frag *f = pkt->frag;
	u8 *frame[SW_LEN / 512 + 1];
	u8 flags;

	nr = (left + room - 1) / room;
	for (i = 0; i < nr; i++) {
		frame[i] = ring_frame(r, i);
		if (!frame[i])
			return false;
	}
	for (i = 0; i < nr; i++) {
		u8 *to = frame[i] + r->headroom;

		part = left < room ? left : room;
		for (n = 0; n < part; ) {
			u32 m = f->len - at < part - n ? f->len - at : part - n;

			memcpy(to + n, f->data + at, m);
			n += m;
			at += m;
			if (at == f->len) {
				f++;
				at = 0;
			}
		}
		left -= part;
		flags = left ? TP4_PKT_CONT : 0;
		if (!i && pkt->meta && r->port.meta) {
			sw_meta_copy((void *)frame[0], pkt->meta, pkt->len);
			flags |= TP4_META;
		}
		ring_return(r, make_word(part, r->headroom, 0, flags));
	}
	return true;
}

static bool ring_output(struct sw_port *port, struct sw_packet *pkt)
{
	struct sw_ring *r = container_of(port, struct sw_ring, port);
	const struct sw_frag *f = pkt->frag;
	u32 room = r->frame_size - r->headroom;
	u8 *frame;

	if (unlikely(!r->rx))
		return false;
	/* Unpublished slots still look like posted ones. */
	if (unlikely(r->rx_next - r->rx_held >= HELD))
		ring_flush(port);
	if (unlikely(pkt->nr > 1 || pkt->meta || pkt->len > room))
		return ring_output_long(r, pkt);
	frame = ring_frame(r, 0);
	if (unlikely(!frame))
		return false;
	sw_copy(frame + r->headroom, f->data, f->len);
	ring_return(r, make_word(f->len, r->headroom, 0, 0));
	return true;
}

/*
 * Deliver packets that take a frame each, behind a slot that is held back, up to one
 * that is longer, one that there is no frame for, or the end of the ring; return
 * their number.
 */
static unsigned int ring_burst_short(struct sw_ring *r,
				     const struct sw_frag *frag,
				     unsigned int n)
{
	/* In registers: what is stored in the loop could change them. */
	const u32 shift = r->shift, room = r->frame_size - r->headroom;
	const u64 head = TP4_WORD(0, r->headroom, 0), nr_frames = r->nr_frames;
	const u32 first = r->rx_next & r->rx_mask;
	u8 *area = r->area + r->headroom;
	const struct sw_frag *f = frag, *end;
	struct tpacket4_desc *d = r->rx + first;
	u32 most = HELD - (r->rx_next - r->rx_held);

	if (n > most)
		n = most;
	if (n > r->rx_mask + 1 - first)
		n = r->rx_mask + 1 - first;
	for (end = f + n; f < end; f++, d++) {
		u32 len = f->len;
		u64 idx;

		if (unlikely(tp4_desc_ready(d)))
			break;
		idx = __atomic_load_n(&d->idx, __ATOMIC_RELAXED);
		if (unlikely(idx >= nr_frames))
			break;
		/* These fit in any frame. */
		if (likely(sw_is_short(len)))
			sw_copy_short(area + (idx << shift), f->data, len);
		else if (len <= room)
			memcpy(area + (idx << shift), f->data, len);
		else
			break;
		__atomic_store_n(sw_word_of(d), head + TP4_WORD(len, 0, 0),
				 __ATOMIC_RELAXED);
	}
	r->rx_next += f - frag;
	return f - frag;
}

static unsigned int ring_burst(struct sw_port *port, const struct sw_frag *f,
			       unsigned int n, u64 *bytes)
{
	struct sw_ring *r = container_of(port, struct sw_ring, port);
	const struct sw_frag *end = f + n;
	unsigned int out = n;

	while (r->rx && f < end) {
		struct sw_packet pkt = { .nr = 1 };

		/* The first slot is held back, others wait for it to be flushed. */
		if (likely(r->rx_next != r->rx_held)) {
			f += ring_burst_short(r, f, end - f);
			if (f == end)
				return out;
		}
		pkt.frag = (struct sw_frag *)f;
		pkt.len = f->len;
		if (!ring_output(port, &pkt)) {
			if (tp4_desc_ready(&r->rx[r->rx_next & r->rx_mask]))
				break;
			*bytes -= f->len;
			out--;
		}
		f++;
	}
	/* There is no room for the rest. */
	*bytes -= sw_bytes(f, end - f);
	return out - (end - f);
}

static void ring_describe(struct sw_port *port, FILE *file)
{
	const struct sw_ring *r = container_of(port, struct sw_ring, port);

	fprintf(file, "pid %u, user %u, %llu frames of %u bytes%s", r->pid, r->user->uid,
		(unsigned long long)r->nr_frames, r->frame_size,
		port->meta ? ", metadata" : "");
}

/* Return everything that the program has posted. */
static void ring_cancel(struct tpacket4_desc *ring, u32 mask, u32 next)
{
	u32 i;

	for (i = 0; ring && i <= mask; i++) {
		struct tpacket4_desc *d = &ring[(next + i) & mask];

		if (!tp4_desc_ready(d))
			__atomic_store_n(sw_word_of(d),
					 make_word(0, 0, ENETDOWN, 0),
					 __ATOMIC_RELEASE);
	}
}

static void ring_release(struct sw_ring *r)
{
	if (r->user)
		sw_user_uncharge(r->port.sw, r->user, &r->use);
	if (r->map != MAP_FAILED)
		munmap(r->map, r->map_len);
	if (r->area != MAP_FAILED)
		munmap(r->area, r->area_len);
	/* The program's ends of the sockets report this. */
	close(r->kick_fd);
	close(r->wake_fd[0]);
	close(r->wake_fd[1]);
	free(r);
}

static void ring_free(struct sw_port *port)
{
	struct sw_ring *r = container_of(port, struct sw_ring, port);

	ring_flush(port);
	ring_cancel(r->rx, r->rx_mask, r->rx_next);
	ring_cancel(r->tx, r->tx_mask, r->tx_next);
	sw_quit_source(port->sw, &r->src);
	/* The program's duplicate would keep it. */
	(void)epoll_ctl(port->sw->epoll, EPOLL_CTL_DEL, r->kick_fd, NULL);
	ring_release(r);
}

/* The program has closed its end of the socket. */
static void ring_hup(struct sw *sw, struct sw_event *ev, u32 events)
{
	(void)sw;
	if (events & (EPOLLERR | EPOLLHUP))
		sw_port_remove(&container_of(ev, struct sw_ring, hup)->port);
}

static const struct sw_port_ops ring_ops = {
	.type = "ring",
	.output = ring_output,
	.burst = ring_burst,
	.flush = ring_flush,
	.wake = ring_wake,
	.describe = ring_describe,
	.free = ring_free,
};

/* --- a new port ---------------------------------------------------------- */

static bool ring_nr_ok(u32 nr)
{
	return !(nr & (nr - 1)) && nr <= 1u << 20 &&
	       !(nr * sizeof(struct tpacket4_desc) % sysconf(_SC_PAGESIZE));
}

static int check_req(const struct tp4_port_req *req)
{
	u32 size = req->frame_size, page = sysconf(_SC_PAGESIZE);
	u32 least = req->flags & TP4_PORT_META ?
		    sizeof(struct tpacket4_meta) : 0;

	if (!ring_nr_ok(req->rx_nr) || !ring_nr_ok(req->tx_nr) ||
	    (!req->rx_nr && !req->tx_nr) || (req->flags & ~TP4_PORT_META) ||
	    size < 2048 || size > page || (size & (size - 1)) ||
	    !req->nr_frames || req->headroom > size - 1024 - least)
		return -EINVAL;
	return 0;
}

/*
 * Map a memfd of a program. It must be sealed, as to read what was cut off would end
 * in SIGBUS. What the program has not allocated is charged to the switch, which
 * counts all of it for the user.
 */
static void *map_file(int fd, u64 len)
{
	struct stat st;
	void *map;
	int seals;

	seals = fcntl(fd, F_GET_SEALS);
	/* Pages of a memfd with huge pages can be taken away all the same. */
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) ||
	    st.st_blksize != sysconf(_SC_PAGESIZE) || st.st_size < 0 ||
	    (u64)st.st_size < len || len > SIZE_MAX) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	/* To swap the program's memory in would take time that all wait for. */
	if (map != MAP_FAILED)
		(void)mlock2(map, len, MLOCK_ONFAULT);
	return map;
}

static int map_rings(struct sw_ring *r, const struct tp4_port_req *req, int fd)
{
	size_t rings = ((size_t)req->rx_nr + req->tx_nr) *
		       sizeof(struct tpacket4_desc);

	r->map_len = rings + sysconf(_SC_PAGESIZE);
	r->map = map_file(fd, r->map_len);
	if (r->map == MAP_FAILED)
		return -errno;
	r->rx_mask = req->rx_nr - 1;
	r->tx_mask = req->tx_nr - 1;
	if (req->rx_nr)
		r->rx = r->map;
	if (req->tx_nr)
		r->tx = (struct tpacket4_desc *)r->map + req->rx_nr;
	r->page = (void *)((u8 *)r->map + rings);
	r->page->status.tx_need_wakeup = 1;
	return 0;
}

static int map_area(struct sw_ring *r, const struct tp4_port_req *req, int fd)
{
	r->area_len = (u64)req->nr_frames * req->frame_size;
	r->area = map_file(fd, r->area_len);
	if (r->area == MAP_FAILED)
		return -errno;
	r->nr_frames = req->nr_frames;
	r->frame_size = req->frame_size;
	r->shift = __builtin_ctz(req->frame_size);
	r->headroom = req->headroom;
	if ((req->flags & TP4_PORT_META) &&
	    r->headroom < sizeof(struct tpacket4_meta))
		r->headroom = sizeof(struct tpacket4_meta);
	/* As the kernel does, and copies start at a cache line. */
	r->headroom = (r->headroom + 63) & ~63u;
	return 0;
}

/* Create the eventfd and the sockets; fds gets the program's ends. */
static int make_fds(struct sw_ring *r, int *fds)
{
	int i, ends[2], least = 0;

	r->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->kick_fd < 0)
		return -errno;
	fds[TP4_PORT_FD_KICK] = fcntl(r->kick_fd, F_DUPFD_CLOEXEC, 0);
	if (fds[TP4_PORT_FD_KICK] < 0)
		return -errno;
	for (i = 0; i < 2; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC |
			       SOCK_NONBLOCK, 0, ends))
			return -errno;
		/* Nothing, above all no file, comes from the program. */
		(void)shutdown(ends[1], SHUT_RD);
		/* A program that reads nothing is sent no more than a few bytes. */
		(void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &least,
				 sizeof(least));
		fds[TP4_PORT_FD_RX + i] = ends[0];
		r->wake_fd[i] = ends[1];
	}
	return 0;
}

/**
 * sw_ring_new - make a ring port
 * @sw: switch
 * @req: what the program wants, in memory of the switch
 * @files: the program's files, which stay the caller's
 * @fds: set to the files for the program, which the caller closes also after
 *       an error, if they are not -1
 * @cred: who the program is
 *
 * Return: the number of the port, or -errno.
 */
int sw_ring_new(struct sw *sw, const struct tp4_port_req *req, const int *files,
		int *fds, const struct ucred *cred)
{
	struct sw_ring *r;
	int i, err, nr;

	for (i = 0; i < TP4_PORT_FDS; i++)
		fds[i] = -1;
	err = check_req(req);
	if (err)
		return err;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->kick_fd = r->wake_fd[0] = r->wake_fd[1] = -1;
	r->map = r->area = MAP_FAILED;
	r->port.ops = &ring_ops;
	r->port.sw = sw;
	r->port.meta = req->flags & TP4_PORT_META;
	r->port.max_macs = 256;
	r->src.ops = &ring_source_ops;
	r->src.port = &r->port;
	r->src.ev.fn = ring_kicked;
	r->hup.fn = ring_hup;
	r->pid = cred->pid;

	r->use.ports = 1;
	r->use.slots = (u64)req->rx_nr + req->tx_nr;
	r->use.bytes = (u64)req->nr_frames * req->frame_size +
		       r->use.slots * sizeof(struct tpacket4_desc) +
		       sysconf(_SC_PAGESIZE);
	err = sw_user_charge(sw, cred->uid, &r->use, &r->user);
	if (!err)
		err = map_area(r, req, files[TP4_PORT_FD_AREA]);
	if (!err)
		err = map_rings(r, req, files[TP4_PORT_FD_RINGS]);
	if (!err)
		err = make_fds(r, fds);
	if (!err)
		err = sw_watch(sw, r->kick_fd, EPOLLIN | EPOLLET, &r->src.ev);
	if (!err)
		err = sw_watch(sw, r->wake_fd[0], 0, &r->hup);
	nr = err ? err : sw_port_add(sw, &r->port, NULL);
	if (nr < 0)
		ring_release(r);
	return nr;
}
