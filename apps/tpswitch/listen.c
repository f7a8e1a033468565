// SPDX-License-Identifier: GPL-2.0
/* Programs that want a ring port: one message each way */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "tpacket4_port.h"
#include "tpswitch.h"

/**
 * struct sw_listener - the socket that programs connect to
 * @ev: a program connects
 * @sw: the switch
 * @fd: the socket
 * @waiting: connections, the oldest one first
 * @nr: their number
 * @most: how many there may be
 * @evicted: the one that made room for another last: an event of it may be due
 */
struct sw_listener {
	struct sw_event ev;
	struct sw *sw;
	int fd;
	struct sw_client *waiting[SW_WAITING];
	unsigned int nr, most;
	struct sw_client *evicted;
};

/**
 * struct sw_client - a connection
 * @ev: its message is there, or its end
 * @listener: has a place for it
 * @fd: the connection
 */
struct sw_client {
	struct sw_event ev;
	struct sw_listener *listener;
	int fd;
};

static void client_close(struct sw_client *c)
{
	struct sw_listener *l = c->listener;
	unsigned int i;

	for (i = 0; l->waiting[i] != c; )
		i++;
	l->nr--;
	for (; i < l->nr; i++)
		l->waiting[i] = l->waiting[i + 1];
	/* What it has sent may have files, too: this closes it later. */
	(void)epoll_ctl(l->sw->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	sw_close_foreign(c->fd);
	c->fd = -1;
}

static void client_free(struct sw_client *c)
{
	client_close(c);
	free(c);
}

/* Take the files of a message, up to TP4_PORT_FILES; others are closed. */
static void take_files(struct msghdr *msg, int *files)
{
	struct cmsghdr *c;
	int fd, nr = 0;
	size_t at;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len;
		     at += sizeof(int)) {
			memcpy(&fd, (u8 *)c + at, sizeof(fd));
			if (nr < TP4_PORT_FILES)
				files[nr++] = fd;
			else
				sw_close_foreign(fd);
		}
	}
}

static void reply(int fd, int nr, int *fds)
{
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(TP4_PORT_FDS * sizeof(int))];
	} control = { .buf = "" };
	struct tp4_port_reply r = {
		.magic = TP4_PORT_MAGIC,
		.version = TP4_PORT_VERSION,
		.error = nr < 0 ? -nr : 0,
		.port = nr < 0 ? 0 : nr,
	};
	struct iovec iov = { .iov_base = &r, .iov_len = sizeof(r) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (nr >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(TP4_PORT_FDS * sizeof(int));
		memcpy(CMSG_DATA(c), fds, TP4_PORT_FDS * sizeof(int));
	}
	/* If it is gone, so are its ends of the sockets, and the port. */
	(void)sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void client_event(struct sw *sw, struct sw_event *ev, u32 events)
{
	struct sw_client *client = container_of(ev, struct sw_client, ev);
	int fds[TP4_PORT_FDS] = { -1, -1, -1 }, files[TP4_PORT_FILES] = { -1, -1 };
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int nr, i;
	struct tp4_port_req req;
	union {
		struct cmsghdr hdr;
		/* All that the kernel lets through: it closes others itself. */
		char buf[CMSG_SPACE(SW_MESSAGE_FILES * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = &req, .iov_len = sizeof(req) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	(void)events;
	if (client->fd < 0)
		return;		/* evicted by an event before this one */
	n = recvmsg(client->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n >= 0)
		take_files(&msg, files);
	if (n < 8 || req.magic != TP4_PORT_MAGIC)
		nr = -EPROTO;
	else if (req.version != TP4_PORT_VERSION)
		nr = -EPROTONOSUPPORT;
	else if (n != sizeof(req) || files[TP4_PORT_FILES - 1] < 0)
		nr = -EINVAL;
	else if (getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		nr = -errno;
	else
		nr = sw_ring_new(sw, &req, files, fds, &cred);
	if (n > 0)
		reply(client->fd, nr, fds);
	for (i = 0; i < TP4_PORT_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	for (i = 0; i < TP4_PORT_FILES; i++)
		if (files[i] >= 0)
			sw_close_foreign(files[i]);
	client_free(client);
}

static void accept_client(struct sw *sw, struct sw_listener *l)
{
	struct sw_client *client;
	int fd;

	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	client = calloc(1, sizeof(*client));
	if (!client) {
		sw_close_foreign(fd);
		return;
	}
	client->ev.fn = client_event;
	client->listener = l;
	client->fd = fd;
	/* Those that only connect do not keep others away. */
	if (l->nr == l->most) {
		/* Its event may be behind this one; the next is of another round. */
		free(l->evicted);
		l->evicted = l->waiting[0];
		client_close(l->evicted);
	}
	l->waiting[l->nr++] = client;
	if (sw_watch(sw, fd, EPOLLIN, &client->ev))
		client_free(client);
}

/* Accept one connection an event, if what it sends can be closed. */
static void listener_event(struct sw *sw, struct sw_event *ev, u32 events)
{
	struct sw_listener *l = container_of(ev, struct sw_listener, ev);
	struct epoll_event e = {
		.events = EPOLLIN | EPOLLONESHOT, .data.ptr = ev
	};

	(void)events;
	if (sw_closer_busy())
		return;
	accept_client(sw, l);
	(void)epoll_ctl(sw->epoll, EPOLL_CTL_MOD, l->fd, &e);
}

/**
 * sw_listen - create a socket that listens
 * @path: its path; what is there already is replaced if nobody listens there
 * @mode: its permissions
 *
 * Return: the socket, or -errno.
 */
int sw_listen(const char *path, unsigned int mode)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct sockaddr *addr = (struct sockaddr *)&un;
	struct stat st;
	int fd, err;

	if (strlen(path) >= sizeof(un.sun_path))
		return -ENAMETOOLONG;
	strcpy(un.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, addr, sizeof(un))) {
		close(fd);
		return -EADDRINUSE;
	}
	/* A file that is no socket refuses, too. */
	if (errno == ECONNREFUSED && !lstat(path, &st) && S_ISSOCK(st.st_mode))
		unlink(path);
	umask(0777 & ~mode);
	err = bind(fd, addr, sizeof(un)) || listen(fd, SW_WAITING) ? -errno : 0;
	umask(022);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

static struct sw_listener listener = { .ev.fn = listener_event };

static void listen_again(struct sw *sw)
{
	listener_event(sw, &listener.ev, 0);
}

/**
 * sw_listen_ports - let programs connect
 * @sw: switch
 * @mode: permissions of the socket
 * @group: its group, or -1
 *
 * Return: 0, or -errno.
 */
int sw_listen_ports(struct sw *sw, unsigned int mode, int group)
{
	int most = sw_closer_start(sw, listen_again);

	if (most < 0)
		return most;
	listener.most = most < SW_WAITING ? most : SW_WAITING;
	listener.sw = sw;
	listener.fd = sw_listen(sw->path, mode);
	if (listener.fd < 0)
		return listener.fd;
	if (group >= 0 && chown(sw->path, -1, group))
		return -errno;
	return sw_watch(sw, listener.fd, EPOLLIN | EPOLLONESHOT, &listener.ev);
}
