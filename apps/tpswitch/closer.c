// SPDX-License-Identifier: GPL-2.0
/* A thread that closes the files of strangers */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "tpswitch.h"

/* Room for files when sw_closer_busy(), and for as many that may still come */
#define FILES		32768
#define CONNECTION	(SW_MESSAGE_FILES + 1)

/**
 * struct sw_closer - files that are to be closed
 * @ev: there is room again
 * @fn: is called then
 * @event_fd: the eventfd of @ev
 * @lock: protects what follows; nobody waits who has it
 * @more: there are files
 * @first: the first of them
 * @nr: their number
 * @most: so many make it busy
 * @waited_for: somebody waits for room
 * @fd: the files
 */
static struct sw_closer {
	struct sw_event ev;
	void (*fn)(struct sw *sw);
	int event_fd;
	pthread_mutex_t lock;
	pthread_cond_t more;
	unsigned int first, nr, most;
	bool waited_for;
	int fd[FILES];
} closer = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.more = PTHREAD_COND_INITIALIZER,
};

static void *close_files(void *arg)
{
	struct sw_closer *c = arg;
	const u64 one = 1;
	int fd;

	pthread_mutex_lock(&c->lock);
	while (1) {
		while (!c->nr)
			pthread_cond_wait(&c->more, &c->lock);
		fd = c->fd[c->first];
		pthread_mutex_unlock(&c->lock);
		close(fd);
		pthread_mutex_lock(&c->lock);
		c->first = (c->first + 1) % FILES;
		c->nr--;
		/* Writing to an eventfd does not block. */
		if (c->waited_for && c->nr <= c->most / 2 &&
		    write(c->event_fd, &one, sizeof(one)) == sizeof(one))
			c->waited_for = false;
	}
	return NULL;
}

static void has_room(struct sw *sw, struct sw_event *ev, u32 events)
{
	struct sw_closer *c = container_of(ev, struct sw_closer, ev);
	u64 n;

	(void)events;
	if (read(c->event_fd, &n, sizeof(n)) == sizeof(n))
		c->fn(sw);
}

/**
 * sw_closer_start - start the thread
 * @sw: switch
 * @fn: is called in the switch's thread when sw_closer_busy() has become false
 *
 * Return: how many connections may wait to be read, or -errno.
 */
int sw_closer_start(struct sw *sw, void (*fn)(struct sw *sw))
{
	unsigned int waiting;
	struct rlimit files;
	pthread_t thread;
	int err;

	/*
	 * The kernel itself closes files above the limit, and the switch would wait. A
	 * third of it is for the queue, one for connections, and one for ports.
	 */
	closer.most = FILES / 2;
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur / 3 < closer.most)
		closer.most = files.rlim_cur / 3;
	waiting = closer.most / CONNECTION;
	closer.ev.fn = has_room;
	closer.fn = fn;
	closer.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (closer.event_fd < 0)
		return -errno;
	err = sw_watch(sw, closer.event_fd, EPOLLIN, &closer.ev);
	if (!err)
		err = -pthread_create(&thread, NULL, close_files, &closer);
	if (!err)
		pthread_detach(thread);
	return err ? err : waiting ? (int)waiting : 1;
}

/**
 * sw_close_foreign - close a file of a stranger
 * @fd: file
 *
 * To close a memfd does not block, but to close a file of FUSE, for one, waits for the
 * program that serves it.
 */
void sw_close_foreign(int fd)
{
	struct sw_closer *c = &closer;

	if (fcntl(fd, F_GET_SEALS) >= 0) {
		close(fd);
		return;
	}
	pthread_mutex_lock(&c->lock);
	c->fd[(c->first + c->nr++) % FILES] = fd;
	pthread_cond_signal(&c->more);
	pthread_mutex_unlock(&c->lock);
}

/**
 * sw_closer_busy - is there no room for the files of one more connection?
 *
 * Then the function of sw_closer_start() is called when there is.
 *
 * Return: true if no connection must be accepted.
 */
bool sw_closer_busy(void)
{
	struct sw_closer *c = &closer;
	bool busy;

	pthread_mutex_lock(&c->lock);
	busy = c->nr > c->most;
	c->waited_for |= busy;
	pthread_mutex_unlock(&c->lock);
	return busy;
}
