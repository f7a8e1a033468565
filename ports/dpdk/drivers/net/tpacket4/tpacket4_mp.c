/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Secondary processes get the sockets from the primary one.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ethdev_vdev.h>
#include <rte_atomic.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "rte_eth_tpacket4.h"

/* Protects the sockets of this process against its thread for messages of others */
static pthread_mutex_t mp_lock = PTHREAD_MUTEX_INITIALIZER;
/* In a secondary process: number of sockets in process_private, by port */
static uint16_t nr_sockets[RTE_MAX_ETHPORTS];

bool tpacket4_has_ipc;

#define MP_NAME	"net_tpacket4"

/*
 * From the primary process: the sockets of some queue pairs, or that the port stops. A
 * secondary one asks for it with the same message.
 */
struct mp_message {
	uint16_t port;
	uint16_t first;		/* queue pair of the first socket */
	uint16_t nr;		/* queue pairs of the port; 0: it is stopped */
};

static struct mp_message *
init_message(struct rte_mp_msg *msg, uint16_t port, unsigned int first)
{
	struct mp_message *m = (void *)msg->param;

	memset(msg, 0, sizeof(*msg));
	strlcpy(msg->name, MP_NAME, sizeof(msg->name));
	msg->len_param = sizeof(*m);
	m->port = port;
	m->first = first;
	return m;
}

/* As many sockets as a message can have, from queue pair @first on */
static void
offer_sockets(struct rte_mp_msg *msg, const struct rte_eth_dev *dev, unsigned int first)
{
	struct mp_message *m = init_message(msg, dev->data->port_id, first);
	const struct tp4_socket *sockets = dev->process_private;

	m->nr = nr_pairs(dev);
	while (first < m->nr && msg->num_fds < RTE_MP_MAX_FD_NUM)
		msg->fds[msg->num_fds++] = sockets[first++].fd;
}

/* In the primary process: sends a message to all others, which have done it on return. */
static void
tell_others(struct rte_mp_msg *msg)
{
	const struct timespec patience = { .tv_sec = 2 };
	struct rte_mp_reply reply = { 0 };

	if (rte_mp_request_sync(msg, &reply, &patience) && rte_errno != ENOTSUP)
		LOG(NOTICE, "a secondary process does not answer: %s", rte_strerror(rte_errno));
	free(reply.msgs);
}

/* In the primary process: a secondary one asks for sockets. */
static int
answer_request(const struct rte_mp_msg *request, const void *peer)
{
	const struct mp_message *m = (const void *)request->param;
	const struct rte_eth_dev *dev = NULL;
	const struct port *port;
	struct rte_mp_msg reply;
	int err;

	init_message(&reply, m->port, m->first);
	/* The sockets must not be closed before they are sent. */
	pthread_mutex_lock(&mp_lock);
	if (rte_eth_dev_is_valid_port(m->port))
		dev = &rte_eth_devices[m->port];
	if (dev && dev->dev_ops == &tpacket4_ops) {
		port = dev->data->dev_private;
		if (port->offered)
			offer_sockets(&reply, dev, m->first);
	}
	err = rte_mp_reply(&reply, peer);
	pthread_mutex_unlock(&mp_lock);
	return err;
}

void
tpacket4_offer_port(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;
	struct rte_mp_msg msg;
	unsigned int i;

	if (!tpacket4_has_ipc)
		return;
	pthread_mutex_lock(&mp_lock);
	port->offered = true;
	pthread_mutex_unlock(&mp_lock);
	for (i = 0; i < nr_pairs(dev); i += RTE_MP_MAX_FD_NUM) {
		offer_sockets(&msg, dev, i);
		tell_others(&msg);
	}
}

void
tpacket4_revoke_port(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;
	struct rte_mp_msg msg;

	if (!port->offered)
		return;
	pthread_mutex_lock(&mp_lock);
	port->offered = false;
	pthread_mutex_unlock(&mp_lock);
	init_message(&msg, dev->data->port_id, 0);
	tell_others(&msg);
}

/* --- in a secondary process --- */

/* The program that polls a port sees other functions at its next call. */
static void
update_functions(struct rte_eth_dev *dev)
{
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[dev - rte_eth_devices];

	ops->rxq.data = dev->data->rx_queues;
	ops->txq.data = dev->data->tx_queues;
	rte_wmb();
	ops->rx_pkt_burst = dev->rx_pkt_burst;
	ops->tx_pkt_burst = dev->tx_pkt_burst;
	ops->tx_pkt_prepare = dev->tx_pkt_prepare;
	ops->rx_queue_count = dev->rx_queue_count;
	ops->rx_descriptor_status = dev->rx_descriptor_status;
	ops->tx_descriptor_status = dev->tx_descriptor_status;
}

/* The primary process may have closed the port: then dev->data is empty. */
static void
unmap_port(struct rte_eth_dev *dev)
{
	struct tp4_socket *sockets = dev->process_private;
	int i;

	dev->rx_pkt_burst = rte_eth_pkt_burst_dummy;
	dev->tx_pkt_burst = rte_eth_pkt_burst_dummy;
	dev->tx_pkt_prepare = rte_eth_pkt_burst_dummy;
	dev->rx_queue_count = NULL;
	dev->rx_descriptor_status = NULL;
	dev->tx_descriptor_status = NULL;
	update_functions(dev);
	tpacket4_remove_interrupts(dev);
	for (i = 0; i < nr_sockets[dev - rte_eth_devices]; i++)
		tp4_close(&sockets[i]);
}

static int
map_rings(struct tp4_socket *s, const struct queue_pair *pair, int fd)
{
	void *map;

	tp4_close(s);
	map = mmap(pair->map, pair->map_len, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	if (map != pair->map) {
		munmap(map, pair->map_len);
		return -EEXIST;
	}
	s->fd = fd;
	s->map = map;
	s->map_len = pair->map_len;
	s->status = pair->status;
	return 0;
}

/* Takes the sockets of a message. With the last one, the port is ready. */
static void
take_sockets(struct rte_eth_dev *dev, const struct rte_mp_msg *msg)
{
	const struct mp_message *m = (const void *)msg->param;
	const struct port *port = dev->data->dev_private;
	struct tp4_socket *sockets = dev->process_private;
	int i, err = 0;

	if (m->first + msg->num_fds > RTE_MIN(port->nr_queues,
					      nr_sockets[dev - rte_eth_devices]))
		err = -EINVAL;
	for (i = 0; i < msg->num_fds; i++) {
		if (!err)
			err = map_rings(&sockets[m->first + i], &port->pairs[m->first + i],
					msg->fds[i]);
		if (err)
			close(msg->fds[i]);
	}
	if (!err && port->copied)
		err = -ENOTSUP;
	if (err) {
		LOG(ERR, "%s: not usable in this process: %s", port->iface,
		    err == -ENOTSUP ? "the mempool is no area" :
		    err == -EEXIST ? "the address of the rings is in use" : strerror(-err));
		unmap_port(dev);
		return;
	}
	if (!m->nr || m->first + msg->num_fds < m->nr)
		return;
	for (i = 0; i < m->nr; i++)
		if (!sockets[i].map)
			return;
	tpacket4_register_times(dev);
	if (dev->data->dev_conf.intr_conf.rxq && tpacket4_add_interrupts(dev))
		LOG(NOTICE, "%s: no interrupts in this process", port->iface);
	tpacket4_set_functions(dev);
	update_functions(dev);
}

/* The primary process has started or stopped a port. */
static int
handle_message(const struct rte_mp_msg *msg, const void *peer)
{
	const struct mp_message *m = (const void *)msg->param;
	struct rte_eth_dev *dev;
	struct rte_mp_msg reply;
	int i;

	pthread_mutex_lock(&mp_lock);
	dev = rte_eth_dev_is_valid_port(m->port) ? &rte_eth_devices[m->port] : NULL;
	if (!dev || dev->dev_ops != &tpacket4_secondary_ops)	/* it is not attached yet */
		for (i = 0; i < msg->num_fds; i++)
			close(msg->fds[i]);
	else if (m->nr)
		take_sockets(dev, msg);
	else
		unmap_port(dev);
	pthread_mutex_unlock(&mp_lock);
	init_message(&reply, m->port, m->first);
	return rte_mp_reply(&reply, peer);
}

/* Gets the sockets of a port, if it is running. */
static int
request_sockets(struct rte_eth_dev *dev)
{
	const struct timespec patience = { .tv_sec = 5 };
	unsigned int first = 0, nr = 1;
	struct rte_mp_reply reply;
	struct rte_mp_msg msg;

	while (first < nr) {
		const struct rte_mp_msg *answer;

		init_message(&msg, dev->data->port_id, first);
		memset(&reply, 0, sizeof(reply));
		if (rte_mp_request_sync(&msg, &reply, &patience) || reply.nb_received != 1) {
			free(reply.msgs);
			return -EIO;
		}
		answer = reply.msgs;
		nr = ((const struct mp_message *)answer->param)->nr;
		first += answer->num_fds;
		pthread_mutex_lock(&mp_lock);
		if (answer->num_fds)
			take_sockets(dev, answer);
		else
			nr = 0;
		pthread_mutex_unlock(&mp_lock);
		free(reply.msgs);
	}
	return 0;
}

void
tpacket4_detach_secondary(struct rte_eth_dev *dev)
{
	pthread_mutex_lock(&mp_lock);
	if (dev->process_private)
		unmap_port(dev);
	free(dev->process_private);
	dev->process_private = NULL;
	dev->dev_ops = NULL;
	pthread_mutex_unlock(&mp_lock);
}

/* Lets other processes have the sockets, or this one get them. Returns 0 or a negative errno. */
int
tpacket4_register_messages(bool primary)
{
	if (rte_mp_action_register(MP_NAME, primary ? answer_request : handle_message) &&
	    rte_errno != EEXIST)
		return -rte_errno;
	tpacket4_has_ipc = true;
	return 0;
}

int
tpacket4_attach_secondary(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *dev = rte_eth_dev_attach_secondary(rte_vdev_device_name(vdev));
	const struct port *port;
	int err;

	if (!dev)
		return -ENODEV;
	port = dev->data->dev_private;
	dev->device = &vdev->device;
	dev->process_private = calloc(port->nr_queues, sizeof(struct tp4_socket));
	nr_sockets[dev - rte_eth_devices] = dev->process_private ? port->nr_queues : 0;
	err = dev->process_private ? tpacket4_register_messages(false) : -ENOMEM;
	if (!err) {
		pthread_mutex_lock(&mp_lock);
		dev->dev_ops = &tpacket4_secondary_ops;
		unmap_port(dev);
		pthread_mutex_unlock(&mp_lock);
		err = request_sockets(dev);
	}
	if (err) {
		LOG(ERR, "%s: no sockets of the primary process: %s", port->iface,
		    strerror(-err));
		tpacket4_detach_secondary(dev);
		rte_eth_dev_release_port(dev);
		return err;
	}
	rte_eth_dev_probing_finish(dev);
	return 0;
}
