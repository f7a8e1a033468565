// SPDX-License-Identifier: GPL-2.0
/* Copies of a port's packets in a pcap file, which a thread writes */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tpswitch.h"

#define BUFFER		(1u << 19)

/* How long to wait after an error, and most at the end of the switch, in ms */
#define RETRY		50
#define LAST		5000

/**
 * struct sw_mirror - a pcap file
 * @fd: the file, which may be a FIFO
 * @dev: its device
 * @ino: its inode
 * @lost: packets for which there was no room; of the switch's thread
 * @waiter: closed when all is written; -1: nobody waits
 * @lock: protects what follows; nobody waits who has it
 * @more: there is something in @buf, or @stop is set
 * @stop: write what is there and end
 * @buf: packets that the thread will write
 * @end: end of what is in @buf
 * @written: packets that the thread writes: it exchanges both
 */
struct sw_mirror {
	int fd;
	dev_t dev;
	ino_t ino;
	u64 lost;
	int waiter;
	pthread_mutex_t lock;
	pthread_cond_t more;
	bool stop;
	u32 end;
	u8 *buf, *written;
	u8 memory[2][BUFFER];
};

/* The mirrors whose files are not written yet */
static pthread_mutex_t running_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static unsigned int running;

/* With the lock */
static void put(struct sw_mirror *m, const void *data, u32 len)
{
	memcpy(m->buf + m->end, data, len);
	m->end += len;
}

/* Write all; at the end of the mirror, not what nobody takes. */
static void write_all(struct sw_mirror *m, u32 len)
{
	struct pollfd p = { .fd = m->fd, .events = POLLOUT };
	u32 at = 0;

	while (at < len) {
		ssize_t n = write(m->fd, m->written + at, len - at);

		if (n > 0) {
			at += n;
			continue;
		}
		if (__atomic_load_n(&m->stop, __ATOMIC_RELAXED))
			break;
		/* A FIFO has room again, or somebody has made some on a disk. */
		if (n < 0 && errno == EAGAIN)
			poll(&p, 1, RETRY);
		else
			poll(NULL, 0, RETRY);
	}
}

static void *run_mirror(void *arg)
{
	struct sw_mirror *m = arg;
	u32 len;
	u8 *buf;

	/* Not if it is a FIFO */
	(void)!ftruncate(m->fd, 0);
	pthread_mutex_lock(&m->lock);
	while (1) {
		while (!m->end && !m->stop)
			pthread_cond_wait(&m->more, &m->lock);
		len = m->end;
		if (!len)
			break;
		buf = m->buf;
		m->buf = m->written;
		m->written = buf;
		m->end = 0;
		pthread_mutex_unlock(&m->lock);
		write_all(m, len);
		pthread_mutex_lock(&m->lock);
	}
	pthread_mutex_unlock(&m->lock);
	close(m->fd);
	if (m->waiter >= 0)
		close(m->waiter);
	free(m);
	pthread_mutex_lock(&running_lock);
	running--;
	pthread_cond_signal(&ended);
	pthread_mutex_unlock(&running_lock);
	return NULL;
}

/**
 * sw_mirror_open - open a file for a mirror
 * @path: its path; a link is not followed
 *
 * Return: the file, which is not truncated yet, or -errno.
 */
int sw_mirror_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK |
		      O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/**
 * sw_mirror_stop - end the mirror of a port, if there is one
 * @port: port
 * @waiter: closed when all is written, or -1
 */
void sw_mirror_stop(struct sw_port *port, int waiter)
{
	struct sw_mirror *m = port->mirror;

	if (!m) {
		if (waiter >= 0)
			close(waiter);
		return;
	}
	port->mirror = NULL;
	sw_port_set_special(port);
	pthread_mutex_lock(&m->lock);
	m->waiter = waiter;
	__atomic_store_n(&m->stop, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&m->more);
	pthread_mutex_unlock(&m->lock);
}

static int start_thread(struct sw_mirror *m)
{
	pthread_t thread;
	int err;

	pthread_mutex_lock(&running_lock);
	err = -pthread_create(&thread, NULL, run_mirror, m);
	if (!err) {
		pthread_detach(thread);
		running++;
	}
	pthread_mutex_unlock(&running_lock);
	return err;
}

/**
 * sw_mirror_start - start a mirror, or go on in another file
 * @port: port, whose mirror goes on if this fails
 * @fd: file, of which this becomes the owner; it loses what is in it
 * @waiter: as for sw_mirror_stop()
 *
 * Return: 0, or -errno: %EBUSY if a mirror writes to this file.
 */
int sw_mirror_start(struct sw_port *port, int fd, int waiter)
{
	/* Nanoseconds, Ethernet; the reader sees the byte order. */
	static const u32 header[] = {
		0xa1b23c4d, 2 | 4 << 16, 0, 0, 262144, 1
	};
	const u16 version[] = { 2, 4 };
	struct sw_mirror *m = NULL;
	struct stat st;
	unsigned int i;
	int err;

	err = fstat(fd, &st) ? -errno : 0;
	for (i = 0; !err && S_ISREG(st.st_mode) && i < port->sw->nr_ports; i++) {
		m = port->sw->list[i]->mirror;
		if (m && m->dev == st.st_dev && m->ino == st.st_ino)
			err = -EBUSY;
	}
	m = err ? NULL : malloc(sizeof(*m));
	if (!err && !m)
		err = -ENOMEM;
	if (!err) {
		memset(m, 0, offsetof(struct sw_mirror, memory));
		m->fd = fd;
		m->dev = st.st_dev;
		m->ino = st.st_ino;
		m->waiter = -1;
		pthread_mutex_init(&m->lock, NULL);
		pthread_cond_init(&m->more, NULL);
		m->buf = m->memory[0];
		m->written = m->memory[1];
		put(m, header, sizeof(header));
		memcpy(m->buf + 4, version, sizeof(version));
		err = start_thread(m);
	}
	if (err) {
		free(m);
		close(fd);
		if (waiter >= 0)
			close(waiter);
		return err;
	}
	sw_mirror_stop(port, waiter);
	port->mirror = m;
	sw_port_set_special(port);
	return 0;
}

/**
 * sw_mirror_finish - wait for a while until the files of mirrors are written
 *
 * All mirrors have been stopped.
 */
void sw_mirror_finish(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LAST / 1000;
	pthread_mutex_lock(&running_lock);
	while (running &&
	       !pthread_cond_timedwait(&ended, &running_lock, &until))
		;
	pthread_mutex_unlock(&running_lock);
}

/**
 * sw_mirror_packet - copy a packet to the mirror of a port
 * @port: port with a mirror
 * @pkt: packet
 */
void sw_mirror_packet(struct sw_port *port, const struct sw_packet *pkt)
{
	struct sw_mirror *m = port->mirror;
	struct timespec t;
	u32 head[4], i;

	clock_gettime(CLOCK_REALTIME, &t);
	head[0] = t.tv_sec;
	head[1] = t.tv_nsec;
	head[2] = head[3] = pkt->len;
	pthread_mutex_lock(&m->lock);
	if (m->end + sizeof(head) + pkt->len > BUFFER) {
		m->lost++;
	} else {
		put(m, head, sizeof(head));
		for (i = 0; i < pkt->nr; i++)
			put(m, pkt->frag[i].data, pkt->frag[i].len);
	}
	pthread_mutex_unlock(&m->lock);
}

/**
 * sw_mirror_flush - have the thread write what was copied
 * @m: mirror
 */
void sw_mirror_flush(struct sw_mirror *m)
{
	pthread_cond_signal(&m->more);
}

/**
 * sw_mirror_lost - count the packets that a mirror has left out
 * @m: mirror
 *
 * Return: their number.
 */
u64 sw_mirror_lost(const struct sw_mirror *m)
{
	return m->lost;
}
