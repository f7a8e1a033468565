// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET with V4, next to the kernel's
 *
 * This is af_packet.c of the kernel that the module is built for, with the
 * series. The kernel's own stays: its sockets from before the module was
 * loaded, its notifier, /proc/net/packet, packet_diag and what it does for
 * namespaces. They see the module's sockets as they see their own, since the
 * structures have the same layout.
 */

#include <linux/init.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "../net/packet/tp4_zc.h"
#include "live.h"
#include "live_layout.h"

/* packet_diag takes the kernel's, which is exported. */
#undef DEFINE_MUTEX
#define DEFINE_MUTEX(name)	extern struct mutex name

/* main.c has the module's. */
#undef module_init
#define module_init(function)
#undef module_exit
#define module_exit(function)
#undef MODULE_ALIAS_NETPROTO
#define MODULE_ALIAS_NETPROTO(family)
#undef MODULE_DESCRIPTION
#define MODULE_DESCRIPTION(text)
#undef MODULE_LICENSE
#define MODULE_LICENSE(license)

static struct proto packet_proto;

/* The kernel's sockets have no members of V4. */
static bool live_is_ours(const struct sock *sk)
{
	return sk->sk_prot == &packet_proto;
}

static bool live_zc_is_wanted(const struct packet_sock *po)
{
	return live_is_ours(&po->sk) && tp4_zc_is_wanted(po);
}
#define tp4_zc_is_wanted	live_zc_is_wanted

/* What the kernel does itself is not used. */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"

#undef pr_fmt
#include "../net/packet/af_packet.c"

LIVE_LAYOUT_netns_packet
LIVE_LAYOUT_packet_fanout
LIVE_LAYOUT_packet_mclist
LIVE_LAYOUT_packet_ring_buffer
LIVE_LAYOUT_packet_rollover
LIVE_LAYOUT_packet_sock
LIVE_LAYOUT_packet_type
LIVE_LAYOUT_pgv
LIVE_LAYOUT_proto
LIVE_LAYOUT_proto_ops
LIVE_LAYOUT_tpacket_kbdq_core

/**
 * struct live_sock - a socket of the module, and who opened it
 * @po:		the packet socket
 * @tgid:	ID of the process
 * @comm:	its name
 */
struct live_sock {
	struct packet_sock	po;
	pid_t			tgid;
	char			comm[TASK_COMM_LEN];
};

static struct proto_ops live_ops;

/* Check whether a fanout group in the socket's namespace has sockets of the
 * kernel's own. They are in another group of the same number, and each of the
 * two would get all packets.
 */
static bool live_group_is_old(struct sock *sk, u16 id)
{
	struct packet_fanout *group;
	bool found = false;
	struct sock *other;

	mutex_lock(&fanout_mutex);
	rcu_read_lock();
	sk_for_each_rcu(other, &sock_net(sk)->packet.sklist) {
		group = pkt_sk(other)->fanout;
		if (!live_is_ours(other) && group && group->id == id)
			found = true;
	}
	rcu_read_unlock();
	mutex_unlock(&fanout_mutex);
	return found;
}

static int live_setsockopt(struct socket *sock, int level, int optname,
			   sockptr_t optval, unsigned int optlen)
{
	struct fanout_args args = {};

	if (level == SOL_PACKET && optname == PACKET_FANOUT &&
	    optlen >= sizeof(int) &&
	    !copy_from_sockptr(&args, optval,
			       min_t(size_t, optlen, sizeof(args))) &&
	    !(args.type_flags & PACKET_FANOUT_FLAG_UNIQUEID) &&
	    live_group_is_old(sock->sk, args.id)) {
		pr_warn_ratelimited("%s (%d): fanout group %u has sockets from before the module was loaded; start all of its programs again\n",
				    current->comm, task_tgid_nr(current),
				    args.id);
		return -EBUSY;
	}
	return packet_setsockopt(sock, level, optname, optval, optlen);
}

int live_packet_create(struct net *net, struct socket *sock, int protocol,
		       int kern)
{
	struct live_sock *ls;
	int err;

	err = packet_create(net, sock, protocol, kern);
	if (!err) {
		ls = container_of(pkt_sk(sock->sk), struct live_sock, po);
		ls->tgid = task_tgid_nr(current);
		get_task_comm(ls->comm, current);
		if (sock->ops == &packet_ops)
			sock->ops = &live_ops;
	}
	module_put(THIS_MODULE);
	return err;
}
LIVE_SAME(live_packet_create, packet_create);

/* The kernel's notifier would receive for a socket in zero-copy mode when its
 * device comes up.
 */
int live_packet_notifier(struct notifier_block *nb, unsigned long event,
			 void *ptr)
{
	const struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	int ret = packet_notifier(nb, event, ptr);
	bool before = event == NETDEV_PRECHANGEMTU;

	if (before || event == NETDEV_CHANGEMTU)
		ret = notifier_from_errno(live_check_mtu(dev, before));
	module_put(THIS_MODULE);
	return ret;
}
LIVE_SAME(live_packet_notifier, packet_notifier);

/**
 * live_packet_report() - log who opened the sockets that keep the module loaded
 */
void live_packet_report(void)
{
	const struct live_sock *ls;
	struct sock *sk;
	struct net *net;

	down_read(&net_rwsem);
	for_each_net(net) {
		rcu_read_lock();
		sk_for_each_rcu(sk, &net->packet.sklist) {
			if (!live_is_ours(sk))
				continue;
			ls = container_of(pkt_sk(sk), struct live_sock, po);
			pr_info("in use by a packet socket of %s (%d)\n",
				ls->comm, ls->tgid);
		}
		rcu_read_unlock();
	}
	up_read(&net_rwsem);
}

int live_packet_init(void)
{
	packet_proto.obj_size = sizeof(struct live_sock);
	live_ops = packet_ops;
	live_ops.setsockopt = live_setsockopt;
	return proto_register(&packet_proto, 0);
}

void live_packet_exit(void)
{
	proto_unregister(&packet_proto);
}
