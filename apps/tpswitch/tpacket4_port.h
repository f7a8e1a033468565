/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Ring ports: V4 rings that tpswitch serves instead of the kernel.
 *
 *	tp4_area_create(&area, 1024, 2048);
 *	opt.area = &area; opt.rx_nr = opt.tx_nr = 256;
 *	tp4_connect(&s, "/run/tpswitch/port", &opt);
 *
 * takes the place of tp4_open() and tp4_bind(). Posting, peeking, sending,
 * recycling, forwarding, tp4_kick(), tp4_wait() and tp4_close() are the same
 * calls as for a packet socket. Options of packet sockets, tp4_zerocopy() and
 * tp4_stats() fail.
 *
 * This header is not a part of tpacket4.h, since the format of the messages and
 * of the shared page belongs to the switch.
 */
#ifndef __TPACKET4_PORT_H
#define __TPACKET4_PORT_H

#include <fcntl.h>
#include <sys/un.h>
#include <tpacket4.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef F_ADD_SEALS
#define F_ADD_SEALS		1033
#define F_GET_SEALS		1034
#define F_SEAL_SHRINK		0x0002
#endif

#define TP4_PORT_MAGIC		0x54503450u
#define TP4_PORT_VERSION	2u

/* Flags of a request */
#define TP4_PORT_META		0x1u	/* packets have metadata */

/* Files that a program sends: memfds, sealed with F_SEAL_SHRINK */
enum {
	TP4_PORT_FD_AREA,
	TP4_PORT_FD_RINGS,	/* Rx ring, Tx ring, tp4_port_page; zeroed */
	TP4_PORT_FILES
};

/**
 * struct tp4_port_req - the message that a program sends, with its files
 * @magic: %TP4_PORT_MAGIC
 * @version: %TP4_PORT_VERSION
 * @rx_nr: number of Rx descriptors
 * @tx_nr: number of Tx descriptors
 * @nr_frames: number of frames of the area
 * @frame_size: bytes per frame
 * @headroom: bytes before the data of a received packet
 * @flags: TP4_PORT_*
 */
struct tp4_port_req {
	__u32 magic;
	__u32 version;
	__u32 rx_nr;
	__u32 tx_nr;
	__u32 nr_frames;
	__u32 frame_size;
	__u32 headroom;
	__u32 flags;
};

/* File descriptors that come with the reply */
enum {
	TP4_PORT_FD_KICK,	/* eventfd that the program writes to */
	TP4_PORT_FD_RX,		/* a byte wakes up who waits for Rx, */
	TP4_PORT_FD_TX,		/* and for Tx */
	TP4_PORT_FDS
};

/**
 * struct tp4_port_reply - the answer
 * @magic: %TP4_PORT_MAGIC
 * @version: the version of the switch
 * @error: 0, with the file descriptors, or an errno
 * @port: number of the port
 */
struct tp4_port_reply {
	__u32 magic;
	__u32 version;
	__u32 error;
	__u32 port;
};

/**
 * struct tp4_port_page - the page behind the rings
 * @status: written by the switch, see tp4_need_kick()
 * @want: not 0: the program sleeps until packets have been received ([0]) or
 *        sent ([1]); the switch clears it when it wakes the program up
 */
struct tp4_port_page {
	struct tpacket4_status status;
	__u32 want[2];
};

/* What the backend keeps, in memory of the program behind the rings */
struct __tp4_port {
	int kick_fd;
	int tx_fd;
};

/* The page of the switch is followed by one of the program. */
static inline struct tp4_port_page *__tp4_port_page(const struct tp4_socket *s)
{
	return (struct tp4_port_page *)(uintptr_t)s->status;
}

static inline struct __tp4_port *__tp4_port(const struct tp4_socket *s)
{
	return (struct __tp4_port *)((__u8 *)s->map + s->map_len -
				     sysconf(_SC_PAGESIZE));
}

/* The events of tp4_wait() that are there */
static inline short __tp4_port_ready(struct tp4_socket *s, short events)
{
	short ready = 0;

	if ((events & POLLIN) && tp4_ring_peek(&s->rx, 1))
		ready |= POLLIN;
	if ((events & POLLOUT) &&
	    (tp4_ring_free(&s->tx) || tp4_ring_peek(&s->tx, 1)))
		ready |= POLLOUT;
	return ready;
}

static inline int __tp4_port_kick(const struct tp4_socket *s, int flags)
{
	const __u64 one = 1;

	(void)flags;
	/* It never blocks: that would take 2^64 kicks. */
	if (write(__tp4_port(s)->kick_fd, &one, sizeof(one)) < 0)
		return -errno;
	return 0;
}

/**
 * tp4_port_arm - ask the switch to wake this program up, before poll()
 * @s: socket of tp4_connect()
 * @events: POLLIN and/or POLLOUT
 *
 * For programs that wait for several file descriptors: if this returns 0, wait
 * for POLLIN of s->fd for packets, then call tp4_port_disarm().
 *
 * Return: the events that are there already.
 */
static inline short tp4_port_arm(struct tp4_socket *s, short events)
{
	struct tp4_port_page *page = __tp4_port_page(s);
	short ready;

	if (events & POLLIN) {
		tp4_ring_flush(&s->rx);
		__atomic_store_n(&page->want[0], 1, __ATOMIC_RELAXED);
	}
	if (events & POLLOUT)
		__atomic_store_n(&page->want[1], 1, __ATOMIC_RELAXED);
	/* The switch publishes, then reads want; here it is the reverse. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (tp4_ring_pending(&s->tx) && tp4_need_kick(s))
		(void)__tp4_port_kick(s, 0);
	ready = __tp4_port_ready(s, events);
	if (ready && (events & POLLIN))
		__atomic_store_n(&page->want[0], 0, __ATOMIC_RELAXED);
	if (ready && (events & POLLOUT))
		__atomic_store_n(&page->want[1], 0, __ATOMIC_RELAXED);
	return ready;
}

/**
 * tp4_port_disarm - clear the wake-ups of the switch, after poll()
 * @s: socket of tp4_connect()
 * @events: as for tp4_port_arm()
 */
static inline void tp4_port_disarm(struct tp4_socket *s, short events)
{
	char bytes[64];
	ssize_t n = 0;

	/* Nonblocking, and nobody depends on how much this reads. */
	if (events & POLLIN)
		n = read(s->fd, bytes, sizeof(bytes));
	if (events & POLLOUT)
		n = read(__tp4_port(s)->tx_fd, bytes, sizeof(bytes));
	(void)n;
}

static inline int __tp4_port_wait(struct tp4_socket *s, short events,
				  int timeout)
{
	short ready = tp4_port_arm(s, events);
	struct pollfd pfd[2];
	int n, hup;

	while (!ready) {
		pfd[0].fd = events & POLLIN ? s->fd : -1;
		pfd[1].fd = events & POLLOUT ? __tp4_port(s)->tx_fd : -1;
		pfd[0].events = pfd[1].events = POLLIN;
		pfd[0].revents = pfd[1].revents = 0;
		n = poll(pfd, 2, timeout);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n <= 0)
			return 0;
		hup = (pfd[0].revents | pfd[1].revents) & POLLHUP;
		tp4_port_disarm(s, events);
		/* A byte can be late, from a wait that needed none: wait on. */
		ready = tp4_port_arm(s, events);
		if (!ready && hup)
			return -ENETDOWN;
	}
	return ready;
}

static inline void __tp4_port_close(struct tp4_socket *s)
{
	close(__tp4_port(s)->kick_fd);
	close(__tp4_port(s)->tx_fd);
}

/* Exchange the messages. */
static inline int __tp4_port_hello(int fd, const struct tp4_port_req *req,
				   const int *files, int *fds)
{
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(TP4_PORT_FDS * sizeof(int))];
	} control;
	struct tp4_port_reply reply;
	struct cmsghdr *c;
	struct msghdr msg;
	struct iovec iov;
	size_t nr = 0;
	int err = 0;
	ssize_t n;

	memset(&msg, 0, sizeof(msg));
	memset(&control, 0, sizeof(control));
	iov.iov_base = (void *)(uintptr_t)req;
	iov.iov_len = sizeof(*req);
	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	msg.msg_control = &control;
	msg.msg_controllen = CMSG_SPACE(TP4_PORT_FILES * sizeof(int));
	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(TP4_PORT_FILES * sizeof(int));
	memcpy(CMSG_DATA(c), files, TP4_PORT_FILES * sizeof(int));
	if (sendmsg(fd, &msg, MSG_NOSIGNAL) < 0)
		return -errno;

	iov.iov_base = &reply;
	iov.iov_len = sizeof(reply);
	msg.msg_controllen = sizeof(control);
	n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		nr = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	if (nr)
		memcpy(fds, CMSG_DATA(c), nr * sizeof(int));
	if (n < (ssize_t)sizeof(reply) || reply.magic != TP4_PORT_MAGIC)
		err = -EPROTO;
	else if (reply.error)
		err = -(int)(reply.error & 0xfff);
	else if (msg.msg_flags & MSG_CTRUNC)	/* this process has too many */
		err = -EMFILE;
	else if (nr != TP4_PORT_FDS)
		err = -EPROTO;
	if (!err)
		return (int)(reply.port & 0xffff);
	while (nr)
		close(fds[--nr]);
	return err;
}

/*
 * Write to each page of a mapping, without a change: memory is charged to who is
 * the first to use it, and this is not to be the switch.
 */
static inline void __tp4_port_touch(__u8 *addr, size_t len)
{
	size_t at, page = sysconf(_SC_PAGESIZE);

	for (at = 0; at < len; at += page)
		__atomic_fetch_or(addr + at, 0, __ATOMIC_RELAXED);
}

/* Create and map the rings, and map a page of this program's own. */
static inline int __tp4_port_rings(struct tp4_socket *s,
				   const struct tp4_options *opt)
{
	size_t rings = ((size_t)opt->rx_nr + opt->tx_nr) *
		       sizeof(struct tpacket4_desc);
	size_t page = sysconf(_SC_PAGESIZE);
	int fd, err = 0;
	__u8 *map;

	fd = (int)syscall(SYS_memfd_create, "tp4_port",
			  TP4_MFD_CLOEXEC | TP4_MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	map = (__u8 *)mmap(NULL, rings + 2 * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED) {
		err = -errno;
		close(fd);
		return err;
	}
	if (ftruncate(fd, rings + page) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) ||
	    mmap(map, rings + page, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		err = -errno;
	if (err) {
		munmap(map, rings + 2 * page);
		close(fd);
		return err;
	}
	__tp4_port_touch(map, rings + page);
	s->map = map;
	s->map_len = rings + 2 * page;
	s->status = (const struct tpacket4_status *)(map + rings);
	if (opt->rx_nr)
		tp4_ring_init(&s->rx, (struct tpacket4_desc *)map, opt->rx_nr);
	if (opt->tx_nr)
		tp4_ring_init(&s->tx, (struct tpacket4_desc *)map + opt->rx_nr,
			      opt->tx_nr);
	return fd;
}

/* Connect, and get a port for files. */
static inline int __tp4_port_get(const char *path, const struct tp4_port_req *req,
				 const int *files, int *fds)
{
	struct sockaddr_un un;
	int fd, port;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	memset(&un, 0, sizeof(un));
	un.sun_family = AF_UNIX;
	strcpy(un.sun_path, path);
	if (connect(fd, (struct sockaddr *)&un, sizeof(un)))
		port = -errno;
	else
		port = __tp4_port_hello(fd, req, files, fds);
	close(fd);
	return port;
}

/**
 * tp4_connect - get a port of a switch
 * @s: socket, which is overwritten
 * @path: socket of the switch
 * @opt: options, as for tp4_open(). @opt->area is needed and must have been
 *       created by tp4_area_create(); it is sealed against shrinking, and all
 *       of its memory is allocated. @opt->fd, @opt->mr_fd and @opt->to_stack
 *       must be 0. Several ports of one program can have the same area
 *
 * Packets arrive as soon as frames are posted. When the switch ends or removes
 * the port, posted slots are returned with %ENETDOWN, and tp4_wait() returns
 * -ENETDOWN when it would sleep, now and in the future.
 *
 * Return: the number of the port, or -errno: %EINVAL for wrong options;
 * %EPROTONOSUPPORT if the switch has another version; %ENOSPC if it has no free
 * port; %EDQUOT if the user has as many ports, slots or bytes as the switch lets
 * one have; else an error of socket(), connect(), fcntl(F_ADD_SEALS)
 * or mmap(). After an error, @s is not open.
 */
static inline int tp4_connect(struct tp4_socket *s, const char *path,
			      const struct tp4_options *opt)
{
	static const struct tp4_backend backend = {
		__tp4_port_wait, __tp4_port_kick, __tp4_port_close
	};
	int files[TP4_PORT_FILES], fds[TP4_PORT_FDS];
	struct tp4_port_req req;
	int port;

	memset(s, 0, sizeof(*s));
	s->fd = -1;
	if (!opt->area || opt->area->frame_unit || opt->mr_fd || opt->fd ||
	    opt->to_stack || opt->rx_nr > 1u << 20 || opt->tx_nr > 1u << 20 ||
	    strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return -EINVAL;
	memset(&req, 0, sizeof(req));
	req.magic = TP4_PORT_MAGIC;
	req.version = TP4_PORT_VERSION;
	req.rx_nr = opt->rx_nr;
	req.tx_nr = opt->tx_nr;
	req.nr_frames = opt->area->nr_frames;
	req.frame_size = opt->area->frame_size;
	req.headroom = opt->headroom;
	req.flags = opt->meta ? TP4_PORT_META : 0;
	files[TP4_PORT_FD_AREA] = opt->area->memfd;
	if (fcntl(opt->area->memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		return -errno;
	__tp4_port_touch(opt->area->addr, opt->area->len);
	files[TP4_PORT_FD_RINGS] = __tp4_port_rings(s, opt);
	if (files[TP4_PORT_FD_RINGS] < 0)
		return files[TP4_PORT_FD_RINGS];
	port = __tp4_port_get(path, &req, files, fds);
	close(files[TP4_PORT_FD_RINGS]);
	if (port < 0) {
		munmap(s->map, s->map_len);
		memset(s, 0, sizeof(*s));
		s->fd = -1;
		return port;
	}
	s->fd = fds[TP4_PORT_FD_RX];
	s->backend = &backend;
	__tp4_port(s)->kick_fd = fds[TP4_PORT_FD_KICK];
	__tp4_port(s)->tx_fd = fds[TP4_PORT_FD_TX];
	return port;
}

#ifdef __cplusplus
}
#endif

#endif /* __TPACKET4_PORT_H */
