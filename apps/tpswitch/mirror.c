// SPDX-License-Identifier: GPL-2.0
/* Copies of a port's packets in a pcap file */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "tpswitch.h"

#define BUFFER		(1u << 20)

/**
 * struct sw_mirror - a pcap file
 * @fd: the file, which may be a FIFO
 * @lost: packets for which there was no room
 * @at: first byte of @buf that was not written
 * @end: end of what is in @buf
 * @buf: packets
 */
struct sw_mirror {
	int fd;
	u64 lost;
	u32 at, end;
	u8 buf[BUFFER];
};

static void put(struct sw_mirror *m, const void *data, u32 len)
{
	memcpy(m->buf + m->end, data, len);
	m->end += len;
}

/**
 * sw_mirror_set - start or end a mirror
 * @port: port
 * @file: path of the file, or NULL to end it
 *
 * Return: 0, or -errno.
 */
int sw_mirror_set(struct sw_port *port, const char *file)
{
	/* Nanoseconds, Ethernet; the reader sees the byte order. */
	static const u32 header[] = {
		0xa1b23c4d, 2 | 4 << 16, 0, 0, 262144, 1
	};
	const u16 version[] = { 2, 4 };
	struct sw_mirror *m;

	if (port->mirror) {
		sw_mirror_flush(port->mirror);
		close(port->mirror->fd);
		free(port->mirror);
		port->mirror = NULL;
		sw_port_set_special(port);
	}
	if (!file)
		return 0;
	m = malloc(sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK |
		     O_CLOEXEC, 0600);
	if (m->fd < 0) {
		int err = -errno;

		free(m);
		return err;
	}
	m->lost = 0;
	m->at = m->end = 0;
	put(m, header, sizeof(header));
	memcpy(m->buf + 4, version, sizeof(version));
	port->mirror = m;
	sw_port_set_special(port);
	sw_mirror_flush(m);
	return 0;
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
	u32 head[4];
	u32 i;

	if (m->end + sizeof(head) + pkt->len > BUFFER) {
		sw_mirror_flush(m);
		if (m->end + sizeof(head) + pkt->len > BUFFER) {
			m->lost++;
			return;
		}
	}
	clock_gettime(CLOCK_REALTIME, &t);
	head[0] = t.tv_sec;
	head[1] = t.tv_nsec;
	head[2] = head[3] = pkt->len;
	put(m, head, sizeof(head));
	for (i = 0; i < pkt->nr; i++)
		put(m, pkt->frag[i].data, pkt->frag[i].len);
}

/**
 * sw_mirror_flush - write what is in the buffer, without waiting for a reader
 * @m: mirror
 */
void sw_mirror_flush(struct sw_mirror *m)
{
	ssize_t n;

	while (m->at < m->end) {
		n = write(m->fd, m->buf + m->at, m->end - m->at);
		if (n < 0)
			break;
		m->at += n;
	}
	if (m->at == m->end) {
		m->at = m->end = 0;
	} else if (m->at > BUFFER / 2) {
		memmove(m->buf, m->buf + m->at, m->end - m->at);
		m->end -= m->at;
		m->at = 0;
	}
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
