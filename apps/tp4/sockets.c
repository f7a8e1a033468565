// SPDX-License-Identifier: GPL-2.0
/* The V4 sockets of this network namespace, and the processes that have them */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/packet_diag.h>
#include <linux/sock_diag.h>

#include "tp4.h"

static void *grow(void *array, int nr, size_t size)
{
	/* A power of two is full. */
	if (nr & (nr - 1))
		return array;
	array = realloc(array, (nr ? 2 * nr : 1) * size);
	if (!array) {
		fprintf(stderr, "tp4: out of memory\n");
		exit(1);
	}
	return array;
}

static uint32_t ring_nr(const struct nlattr *attr)
{
	struct packet_diag_ring ring;

	if (attr->nla_len < NLA_HDRLEN + sizeof(ring))
		return 0;
	memcpy(&ring, (const char *)attr + NLA_HDRLEN, sizeof(ring));
	return ring.pdr_frame_nr;
}

/* Read a message of the answer. Return true if its socket uses V4. */
static bool read_socket(const struct nlmsghdr *nlh, struct v4_socket *s)
{
	const struct packet_diag_msg *msg = NLMSG_DATA(nlh);
	size_t pos = NLMSG_LENGTH(sizeof(*msg));
	struct packet_diag_info info;
	bool v4 = false;

	memset(s, 0, sizeof(*s));
	if (nlh->nlmsg_len < pos)
		return false;
	s->ino = msg->pdiag_ino;
	while (pos + NLA_HDRLEN <= nlh->nlmsg_len) {
		const struct nlattr *attr = (void *)((const char *)nlh + pos);

		if (attr->nla_len < NLA_HDRLEN ||
		    attr->nla_len > nlh->nlmsg_len - pos)
			return false;
		switch (attr->nla_type) {
		case PACKET_DIAG_INFO:
			if (attr->nla_len < NLA_HDRLEN + sizeof(info))
				return false;
			memcpy(&info, (const char *)attr + NLA_HDRLEN,
			       sizeof(info));
			v4 = info.pdi_version == TPACKET_V4;
			s->ifindex = info.pdi_index;
			break;
		case PACKET_DIAG_RX_RING:
			s->rx_nr = ring_nr(attr);
			break;
		case PACKET_DIAG_TX_RING:
			s->tx_nr = ring_nr(attr);
			break;
		case PACKET_DIAG_ZEROCOPY:
			if (attr->nla_len != NLA_HDRLEN + sizeof(s->queue))
				return false;
			s->zerocopy = true;
			memcpy(&s->queue, (const char *)attr + NLA_HDRLEN,
			       sizeof(s->queue));
			/* As with PACKET_ZEROCOPY, 0 would be none. */
			s->queue--;
			break;
		case PACKET_DIAG_STATS:
			if (attr->nla_len < NLA_HDRLEN + sizeof(s->stats))
				return false;
			s->has_stats = true;
			memcpy(&s->stats, (const char *)attr + NLA_HDRLEN,
			       sizeof(s->stats));
			break;
		}
		pos += NLA_ALIGN(attr->nla_len);
	}
	return v4;
}

static int by_place(const void *a, const void *b)
{
	const struct v4_socket *x = a, *y = b;

	if (x->ifindex != y->ifindex)
		return x->ifindex < y->ifindex ? -1 : 1;
	if (x->zerocopy != y->zerocopy)
		return x->zerocopy ? -1 : 1;
	if (x->queue != y->queue)
		return x->queue < y->queue ? -1 : 1;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

/* Ask the kernel for the sockets that use TPACKET_V4, sorted by device and queue.
 * Return their number, or -errno.
 */
static int find_sockets(struct v4_socket **sockets)
{
	struct {
		struct nlmsghdr nlh;
		struct packet_diag_req req;
	} ask = {
		.nlh = {
			.nlmsg_len = sizeof(ask),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
		.req = {
			.sdiag_family = AF_PACKET,
			.pdiag_show = PACKET_SHOW_INFO | PACKET_SHOW_RING_CFG |
				      PACKET_SHOW_STATS,
		},
	};
	union {
		struct nlmsghdr nlh;
		char buf[32768];
	} answer;
	struct v4_socket s;
	int fd, err = 0, nr = 0;
	bool done = false;

	*sockets = NULL;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd < 0)
		return -errno;
	if (send(fd, &ask, sizeof(ask), 0) < 0)
		err = -errno;
	while (!err && !done) {
		ssize_t len = recv(fd, &answer, sizeof(answer), 0);
		struct nlmsghdr *nlh = &answer.nlh;

		if (len < 0 && errno == EINTR)
			continue;
		if (len <= 0) {
			err = len ? -errno : -EBADMSG;
			break;
		}
		for (; NLMSG_OK(nlh, (size_t)len); nlh = NLMSG_NEXT(nlh, len)) {
			done = nlh->nlmsg_type == NLMSG_DONE;
			if (nlh->nlmsg_type == NLMSG_ERROR)
				err = ((struct nlmsgerr *)NLMSG_DATA(nlh))->error;
			if (done || err)
				break;
			if (!read_socket(nlh, &s))
				continue;
			*sockets = grow(*sockets, nr, sizeof(s));
			(*sockets)[nr++] = s;
		}
	}
	close(fd);
	if (err) {
		free(*sockets);
		*sockets = NULL;
		return err;
	}
	if (nr)
		qsort(*sockets, nr, sizeof(s), by_place);
	return nr;
}

/* The inode of the socket that a file descriptor is, or 0 */
static uint32_t socket_of(int dir, const char *fd)
{
	char link[64];
	unsigned int ino;
	ssize_t len = readlinkat(dir, fd, link, sizeof(link) - 1);

	if (len < 0)
		return 0;
	link[len] = '\0';
	return sscanf(link, "socket:[%u]", &ino) == 1 ? ino : 0;
}

static void read_name(pid_t pid, char *name, size_t len)
{
	char path[32];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	snprintf(name, len, "?");
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(name, len, file))
		name[strcspn(name, "\n")] = '\0';
	fclose(file);
}

static bool is_listed(const struct v4_socket *sockets, int nr, uint32_t ino)
{
	int i;

	for (i = 0; i < nr; i++)
		if (sockets[i].ino == ino)
			return true;
	return false;
}

/* Add the sockets that a process has, each once. */
static int find_of_process(const struct v4_socket *sockets, int nr_sockets,
			   pid_t pid, struct holder **holders, int nr)
{
	int i, start = nr;
	struct dirent *e;
	char path[32];
	uint32_t ino;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return nr;
	while ((e = readdir(dir))) {
		ino = socket_of(dirfd(dir), e->d_name);
		if (!ino || !is_listed(sockets, nr_sockets, ino))
			continue;
		for (i = start; i < nr && (*holders)[i].ino != ino; i++)
			;
		if (i < nr)
			continue;
		*holders = grow(*holders, nr, sizeof(**holders));
		(*holders)[nr].ino = ino;
		(*holders)[nr].pid = pid;
		read_name(pid, (*holders)[nr].name, sizeof((*holders)[nr].name));
		nr++;
	}
	closedir(dir);
	return nr;
}

/* Find the processes that have sockets open. Return their number, or -errno if
 * there is no /proc.
 */
static int find_holders(const struct v4_socket *sockets, int nr_sockets,
			struct holder **holders)
{
	struct dirent *e;
	int nr = 0;
	DIR *proc;

	*holders = NULL;
	proc = opendir("/proc");
	if (!proc)
		return -errno;
	while ((e = readdir(proc)))
		if (isdigit((unsigned char)*e->d_name))
			nr = find_of_process(sockets, nr_sockets,
					     atoi(e->d_name), holders, nr);
	closedir(proc);
	return nr;
}

/**
 * find_all - find the V4 sockets of this network namespace, and who has them
 * @l: set to what is found, which forget_all() frees
 *
 * Without packet_diag, there are no sockets. A user other than root sees only
 * processes of its own. What fails is printed.
 *
 * Return: 0, or -errno.
 */
int find_all(struct listing *l)
{
	int err;

	memset(l, 0, sizeof(*l));
	l->nr_sockets = find_sockets(&l->sockets);
	if (l->nr_sockets == -ENOENT) {
		/* packet_diag may be a module that is not there. */
		fprintf(stderr, "tp4: sockets are not listed: the kernel has no CONFIG_PACKET_DIAG\n");
		l->nr_sockets = 0;
	}
	if (l->nr_sockets < 0) {
		fprintf(stderr, "tp4: list of sockets: %s\n",
			strerror(-l->nr_sockets));
		return l->nr_sockets;
	}
	l->nr_holders = find_holders(l->sockets, l->nr_sockets, &l->holders);
	if (l->nr_holders < 0) {
		err = l->nr_holders;
		fprintf(stderr, "tp4: /proc: %s\n", strerror(-err));
		forget_all(l);
		return err;
	}
	return 0;
}

/**
 * forget_all - free what find_all() has found
 * @l: what it has found
 */
void forget_all(struct listing *l)
{
	free(l->sockets);
	free(l->holders);
	memset(l, 0, sizeof(*l));
}
