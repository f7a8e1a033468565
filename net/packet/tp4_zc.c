// SPDX-License-Identifier: GPL-2.0
/* Zero-copy mode of TPACKET_V4: binding of sockets to queue pairs
 *
 * A socket enters zero-copy mode under its lock and RTNL, in this order. It
 * leaves it under RTNL alone: a device can go away at any time, and RTNL must
 * not wait for the lock of a socket.
 */

#include <kunit/visibility.h>
#include <linux/capability.h>
#include <linux/export.h>
#include <linux/if_packet.h>
#include <linux/init.h>
#include <linux/netdevice.h>
#include <linux/notifier.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/tpacket4.h>
#include <linux/tpacket4_queue.h>
#include <linux/wait.h>
#include <net/busy_poll.h>
#include <net/net_namespace.h>
#include <net/netdev_rx_queue.h>
#include <net/sock.h>
#include <net/xdp_sock.h>
#include <net/xdp_sock_drv.h>
#include <net/xsk_buff_pool.h>

#include "internal.h"
#include "tp4_area.h"
#include "tp4_array.h"
#include "tp4_queue.h"
#include "tp4_ring.h"
#include "tp4_status.h"
#include "tp4_zc.h"

/* Minimum number of data bytes in a frame */
#define TP4_ZC_ROOM_MIN	64

/* Minimum size of the frames that a driver fills */
#define TP4_ZC_FRAME_MIN	2048

/* Number of descriptors returned at a time when the mode ends */
#define TP4_ZC_DRAIN	32

/**
 * struct tp4_zc - a socket in zero-copy mode
 * @rx:		its Rx ring
 * @tx:		its Tx ring
 * @sk:		the socket
 * @dev:	the device
 * @dev_tracker: tracks the reference to @dev
 * @queue_pair:	queue pair of the device
 * @error:	error that was reported last, as a positive errno
 * @errors:	number of reports
 *
 * Constant, except for @error and @errors, while po->tp4_zc and the tp4 member
 * of the device's Rx queue point to it. Both are set and cleared under RTNL.
 */
struct tp4_zc {
	struct tp4_zc_ring		rx;
	struct tp4_zc_ring		tx;
	struct sock		*sk;
	struct net_device	*dev;
	netdevice_tracker	dev_tracker;
	int			queue_pair;
	int			error;
	atomic_t		errors;
};

static void tp4_zc_error_report(void *opaque, int error)
{
	struct tp4_zc *zc = opaque;
	struct sock *sk = zc->sk;

	WRITE_ONCE(zc->error, error);
	/* Pairs with the acquire in tp4_zc_is_done(). */
	atomic_fetch_inc_release(&zc->errors);
	WRITE_ONCE(sk->sk_err, error);
	if (!sock_flag(sk, SOCK_DEAD))
		sk_error_report(sk);
}

static struct tp4_zc *tp4_zc_of(const struct packet_sock *po)
{
	return rcu_dereference_protected(po->tp4_zc, lockdep_rtnl_is_held());
}

static int tp4_zc_command(struct tp4_zc *zc, enum tp4_netdev_command command)
{
	struct tp4_netdev_parms parms = {
		.command = command,
		.rx_opaque = zc->rx.q ? &zc->rx : NULL,
		.tx_opaque = zc->tx.q ? &zc->tx : NULL,
		.error_report = tp4_zc_error_report,
		.error_report_opaque = zc,
		.queue_pair = zc->queue_pair,
	};

	return tp4_dev_zerocopy(zc->dev, &parms);
}

static bool tp4_zc_is_up(const struct tp4_zc *zc)
{
	return READ_ONCE(zc->dev->flags) & IFF_UP;
}

static int tp4_zc_call_driver(const struct tp4_zc *zc, u32 flags)
{
	return tp4_dev_xmit(zc->dev, zc->queue_pair, flags);
}

static int tp4_zc_kick(const struct tp4_zc *zc, u32 flags)
{
	if (unlikely(!tp4_zc_is_up(zc)))
		return -ENETDOWN;
	return tp4_zc_call_driver(zc, flags);
}

static void tp4_zc_kick_rx(struct tp4_zc_ring *ring)
{
	const struct tp4_zc *zc = container_of(ring, struct tp4_zc, rx);

	rcu_read_lock();
	/* NAPI may run out of frames before ndo_open has returned, and IFF_UP
	 * has been set.
	 */
	if (netif_running(zc->dev))
		tp4_zc_call_driver(zc, TP4_WAKEUP_RX);
	rcu_read_unlock();
}

/* Return posted descriptors that have not been taken. */
static void tp4_zc_drain(struct tp4_queue *q, int error)
{
	struct tpacket4_desc descs[TP4_ZC_DRAIN];
	u32 nr, max, left;

	if (!q)
		return;
	for (left = q->mask + 1; left; left -= nr) {
		max = min_t(u32, left, TP4_ZC_DRAIN);
		for (nr = 0; nr < max; nr++) {
			if (!tp4q_take_one(q, q->in + nr, &descs[nr]))
				break;
			descs[nr].error = error;
		}
		if (!nr)
			break;
		tp4q_zc_refuse(q, descs, nr);
		cond_resched();
	}
	WRITE_ONCE(q->in_chain, false);
}

static void tp4_zc_put_areas(struct tp4_zc *zc)
{
	tp4_area_put(zc->rx.area);
	tp4_area_put(zc->tx.area);
}

/* Get the area of a ring, or one with spare frames.
 * Return: false if there is no memory.
 */
static bool tp4_zc_get_area(struct tp4_zc_ring *ring, bool spares)
{
	if (!ring->q)
		return true;
	if (!spares) {
		refcount_inc(&ring->q->area->users);
		ring->area = ring->q->area;
		return true;
	}
	ring->area = tp4_area_add_spares(ring->q->area);
	return ring->area;
}

static void tp4_zc_disable(struct tp4_zc *zc, int error)
{
	struct packet_sock *po = pkt_sk(zc->sk);
	struct sock *sk = zc->sk;

	ASSERT_RTNL();

	zc->rx.error = error;
	zc->tx.error = error;
	WARN_ON_ONCE(tp4_zc_command(zc, TP4_DISABLE));
	tp4_queue_set_owner(zc->dev, zc->queue_pair, NULL);

	tp4_zc_drain(zc->rx.q, error);
	tp4_zc_drain(zc->tx.q, error);
	tp4_zc_put_areas(zc);
	tp4_status_need_wakeup(sk, true, true);
	tp4_status_need_wakeup(sk, false, false);
	if (zc->tx.q) {
		/* Pairs with the acquire in tp4_snd(). */
		smp_store_release(&zc->tx.q->zerocopy, false);
	}
	WRITE_ONCE(po->tp4_zc_pair, 0);
	sock_hold(sk);
	/* Pairs with the acquire in tp4_zc_is_on(). From here on the rings may
	 * be removed, and close() need not wait.
	 */
	smp_store_release(&po->tp4_zc, (struct tp4_zc __rcu *)NULL);

	sk->sk_data_ready(sk);
	tp4_wake_sender(sk);
	sock_put(sk);
	synchronize_net();
	netdev_put(zc->dev, &zc->dev_tracker);
	kfree(zc);
}

VISIBLE_IF_KUNIT bool tp4_zc_is_taken(struct net_device *dev, int queue_pair)
{
	const struct xsk_buff_pool *pool;

	pool = xsk_get_pool_from_qid(dev, queue_pair);
	return tp4_queue_is_bound(dev, queue_pair) ||
	       (pool && pool->umem->zc) ||
	       __netif_get_rx_queue(dev, queue_pair)->mp_params.mp_priv;
}
EXPORT_SYMBOL_IF_KUNIT(tp4_zc_is_taken);

/* Hand the Tx ring over to the driver unless copy mode has packets in flight.
 */
static bool tp4_zc_take_tx(struct packet_sock *po)
{
	struct tp4_queue *q = po->tp4_queue[TP4_TX];
	int left = HZ / 20 + 1;

	if (!q)
		return true;
	/* Nobody sleeps for long with it, but there may be many senders of full
	 * rings, and RTNL is held here.
	 */
	while (!mutex_trylock(&po->pg_vec_lock)) {
		if (!left--)
			return false;
		schedule_timeout_uninterruptible(1);
	}

	if (tp4q_is_idle(q))
		q->zerocopy = true;
	mutex_unlock(&po->pg_vec_lock);
	return q->zerocopy;
}

/* Check whether a driver can fill the frames of an Rx ring. */
static bool tp4_zc_has_room(const struct tp4_queue *rx)
{
	return !rx->packed && rx->area->frame_size >= TP4_ZC_FRAME_MIN &&
	       rx->room >= XDP_PACKET_HEADROOM + TP4_ZC_ROOM_MIN;
}

/* Check whether the host needs packets for a ring, whatever the program does. */
static bool tp4_zc_keeps(const struct tp4_zc *zc)
{
	return zc->rx.q &&
	       zc->rx.q->flags & (TP4_RING_TO_STACK | TP4_RING_KEEP);
}

/* Check whether packets for a ring do not reach the stack. */
static bool tp4_zc_hides(const struct tp4_queue *rx)
{
	return rx && !(rx->flags & TP4_RING_TO_STACK);
}

/* Stop copy mode, for queue pair @n - 1. */
static void tp4_zc_unhook(struct packet_sock *po, int n)
{
	WRITE_ONCE(po->tp4_zc_pair, n);
	/* tp4_zc_pair is set, so the hook stays unregistered. If NETDEV_DOWN
	 * did it before, nobody has waited for the packets that are being
	 * received.
	 */
	packet_set_hook(&po->sk, false);
	synchronize_net();
}

/* Copy mode goes on until all that can be checked before has been checked, so
 * that a refusal loses no packets. @unhook is false if the hook is already
 * unregistered.
 */
static int tp4_zc_enable(struct packet_sock *po, int n, bool unhook)
{
	struct tp4_queue *rx = po->tp4_queue[TP4_RX];
	struct tp4_queue *tx = po->tp4_queue[TP4_TX];
	struct sock *sk = &po->sk;
	struct net_device *dev;
	struct tp4_zc *zc;
	int err;

	ASSERT_RTNL();

	if (!ns_capable(sock_net(sk)->user_ns, CAP_NET_ADMIN))
		return -EPERM;
	if (!packet_is_v4(po) || !(rx || tx) || po->fanout ||
	    sk->sk_type != SOCK_RAW ||
	    (po->num && po->num != htons(ETH_P_ALL)) ||
	    (rx && !tp4_zc_has_room(rx)))
		return -EINVAL;
	dev = __dev_get_by_index(sock_net(sk), po->ifindex);
	if (!dev)
		return -EINVAL;
	if (!tp4_dev_has_ops(dev))
		return -EOPNOTSUPP;
	if (n > min(dev->real_num_rx_queues, dev->real_num_tx_queues))
		return -ENXIO;
	if (tp4_zc_is_taken(dev, n - 1))
		return -EBUSY;
	/* The packets would bypass the program. */
	if (tp4_zc_hides(rx) && rcu_access_pointer(dev->xdp_prog))
		return -EBUSY;

	zc = kzalloc_obj(*zc, GFP_KERNEL_ACCOUNT);
	if (!zc)
		return -ENOMEM;
	zc->rx.q = rx;
	zc->rx.error = ECANCELED;
	zc->rx.dev = dev;
	zc->rx.seen = dev;
	zc->rx.queue_pair = n - 1;
	zc->rx.kick = tp4_zc_kick_rx;
	zc->tx.q = tx;
	zc->tx.error = ECANCELED;
	zc->tx.dev = dev;
	zc->tx.queue_pair = n - 1;
	zc->sk = sk;
	zc->dev = dev;
	zc->queue_pair = n - 1;

	err = -ENOMEM;
	tp4_zc_get_area(&zc->tx, false);
	if (!tp4_zc_get_area(&zc->rx, tp4_zc_keeps(zc)))
		goto free;
	err = -EBUSY;
	if (!tp4_zc_take_tx(po))
		goto free;
	if (unhook)
		tp4_zc_unhook(po, n);
	/* The socket may have joined a fanout group since the check. */
	err = po->fanout ? -EINVAL : tp4_zc_command(zc, TP4_ENABLE);
	if (err)
		goto give_tx;
	/* Most drivers have refused it before. */
	if (!tp4_can_stamp(&zc->tx, READ_ONCE(sk->sk_tsflags))) {
		WARN_ON_ONCE(tp4_zc_command(zc, TP4_DISABLE));
		err = -EOPNOTSUPP;
		goto give_tx;
	}

	netdev_hold(dev, &zc->dev_tracker, GFP_KERNEL);
	tp4_queue_set_owner(dev, n - 1, zc);
	rcu_assign_pointer(po->tp4_zc, zc);
	return 0;

give_tx:
	if (tx) {
		/* Pairs with the acquire in tp4_snd(). */
		smp_store_release(&tx->zerocopy, false);
	}
free:
	tp4_zc_put_areas(zc);
	kfree(zc);
	return err;
}

static int tp4_zc_change(struct packet_sock *po, int n)
{
	struct tp4_zc *zc = tp4_zc_of(po);
	struct sock *sk = &po->sk;
	int err = 0;

	if (n && zc)
		return zc->queue_pair == n - 1 ? 0 : -EBUSY;
	/* A socket bound to all devices has no queue pair. */
	if (n && (!packet_is_v4(po) ||
		  (!po->ifindex && packet_sock_flag(po, PACKET_SOCK_TP4_BOUND))))
		return -EINVAL;
	/* It was bound to a device that is gone. */
	if (n && po->ifindex < 0)
		return -ENODEV;
	if (!n && !po->tp4_zc_pair)
		return 0;

	if (zc)
		tp4_zc_disable(zc, ECANCELED);
	if (n && po->ifindex > 0) {
		err = tp4_zc_enable(po, n, true);
	} else if (n) {
		/* bind() does the rest. */
		tp4_zc_unhook(po, n);
		err = po->fanout ? -EINVAL : 0;
	}
	if (!n || err) {
		WRITE_ONCE(po->tp4_zc_pair, 0);
		packet_set_hook(sk, true);
	}
	return err;
}

/**
 * tp4_zc_setsockopt() - set PACKET_ZEROCOPY
 * @sk:		the packet socket
 * @optval:	an int: n > 0 enters zero-copy mode on queue pair n - 1, 0
 *		leaves it
 * @optlen:	size of @optval
 *
 * Context: Process context, may sleep; takes the socket lock, then RTNL.
 * Return: 0 or an error, see tpacket4(7).
 */
int tp4_zc_setsockopt(struct sock *sk, sockptr_t optval, unsigned int optlen)
{
	int n, err;

	if (optlen < sizeof(n))
		return -EINVAL;
	if (copy_from_sockptr(&n, optval, sizeof(n)))
		return -EFAULT;
	if (n < 0)
		return -EINVAL;
	if (n && !ns_capable(sock_net(sk)->user_ns, CAP_NET_ADMIN))
		return -EPERM;

	lock_sock(sk);
	/* For tp4_zc_sol_socket() */
	if (n)
		set_bit(SOCK_CUSTOM_SOCKOPT, &sk->sk_socket->flags);
	rtnl_lock();
	err = tp4_zc_change(pkt_sk(sk), n);
	rtnl_unlock();
	release_sock(sk);
	return err;
}

/* Check whether a socket can have the Tx timestamps of SO_TIMESTAMPING. */
static bool tp4_zc_can_stamp(const struct packet_sock *po, u32 tsflags)
{
	const struct tp4_zc *zc;
	bool can;

	rcu_read_lock();
	zc = rcu_dereference(po->tp4_zc);
	can = !zc || tp4_can_stamp(&zc->tx, tsflags);
	rcu_read_unlock();
	return can;
}

/**
 * tp4_zc_sol_socket() - set an option at the level of all sockets
 * @sock:	a packet socket that zero-copy mode was requested for
 * @optname:	the option
 * @optval:	its value
 * @optlen:	size of @optval
 *
 * Refuses Tx timestamps that the driver does not support. If the socket enters
 * zero-copy mode at the same time, its packets get others.
 *
 * Context: Process context, may sleep; takes the socket lock.
 * Return: 0, -EOPNOTSUPP, or as sock_setsockopt().
 */
int tp4_zc_sol_socket(struct socket *sock, int optname, sockptr_t optval,
		      unsigned int optlen)
{
	struct so_timestamping stamps = {};

	if (optname == SO_TIMESTAMPING_OLD || optname == SO_TIMESTAMPING_NEW) {
		if (optlen < sizeof(int))
			return -EINVAL;
		/* The value is read once. */
		optlen = optlen == sizeof(stamps) ? optlen : sizeof(int);
		if (copy_from_sockptr(&stamps, optval, optlen))
			return -EFAULT;
		if (!tp4_zc_can_stamp(pkt_sk(sock->sk), stamps.flags))
			return -EOPNOTSUPP;
		optval = KERNEL_SOCKPTR(&stamps);
	}
	return sock_setsockopt(sock, SOL_SOCKET, optname, optval, optlen);
}

/**
 * tp4_zc_bind() - enter zero-copy mode if it was requested before bind()
 * @sk:	the packet socket, bound
 *
 * Context: Process context, may sleep; takes the socket lock, then RTNL.
 * Return: as tp4_zc_setsockopt().
 */
int tp4_zc_bind(struct sock *sk)
{
	struct packet_sock *po = pkt_sk(sk);
	int err = 0;

	lock_sock(sk);
	rtnl_lock();
	if (po->tp4_zc_pair && !tp4_zc_of(po))
		err = tp4_zc_enable(po, po->tp4_zc_pair, false);
	rtnl_unlock();
	release_sock(sk);
	return err;
}

/**
 * tp4_zc_release() - take a closing socket out of zero-copy mode
 * @sk:	the packet socket, which no file refers to any more
 *
 * Context: Process context, may sleep; takes RTNL.
 */
void tp4_zc_release(struct sock *sk)
{
	struct packet_sock *po = pkt_sk(sk);

	if (!tp4_zc_is_on(po))
		return;
	rtnl_lock();
	if (tp4_zc_of(po))
		tp4_zc_disable(tp4_zc_of(po), ECANCELED);
	rtnl_unlock();
}

/**
 * tp4_zc_queue_pair() - get the queue pair of a socket
 * @po:	the packet socket
 *
 * Context: Any.
 * Return: the number of the queue pair plus one, or 0 in copy mode.
 */
int tp4_zc_queue_pair(const struct packet_sock *po)
{
	const struct tp4_zc *zc;
	int n;

	rcu_read_lock();
	zc = rcu_dereference(po->tp4_zc);
	n = zc ? zc->queue_pair + 1 : 0;
	rcu_read_unlock();
	return n;
}
EXPORT_SYMBOL_GPL(tp4_zc_queue_pair);

/**
 * tp4_queue_inode() - get the inode number of a queue pair's socket
 * @dev:	the device
 * @queue_pair:	the queue pair
 *
 * Context: Under RTNL.
 * Return: the inode number, or 0 if no socket is bound to the queue pair.
 */
unsigned long tp4_queue_inode(const struct net_device *dev,
			      unsigned int queue_pair)
{
	if (!tp4_queue_is_bound(dev, queue_pair))
		return 0;
	return sock_i_ino(tp4_queue_owner(dev, queue_pair)->sk);
}

/**
 * tp4_hides_packets() - check whether generic XDP would miss packets of a device
 * @dev:	the device
 *
 * Context: Under RTNL.
 * Return: true if a queue pair gives packets to a socket and not to the stack.
 */
bool tp4_hides_packets(const struct net_device *dev)
{
	unsigned int i;

	for (i = 0; i < dev->num_rx_queues; i++) {
		const struct tp4_zc *zc = tp4_queue_owner(dev, i);

		if (zc && tp4_zc_hides(zc->rx.q))
			return true;
	}
	return false;
}

/* Check whether the driver needs a kick for posted Rx frames. */
static u32 tp4_zc_rx_wakeup(const struct tp4_zc *zc)
{
	/* Pairs with the barrier in tp4a_need_wakeup(). */
	smp_mb();
	return READ_ONCE(zc->rx.need_wakeup) && tp4q_is_posted(zc->rx.q) ?
	       TP4_WAKEUP_RX : 0;
}

/* Check whether all posted packets have been returned. A driver that is working
 * on the ring wakes the socket when it has returned what it takes now. An
 * incomplete packet does not count, as it cannot be sent.
 */
static bool tp4_zc_is_sent(const struct tp4_queue *q)
{
	unsigned long in = READ_ONCE(q->in);

	/* Descriptors are posted, taken, then returned: check in this order. */
	smp_rmb();
	if (tp4q_tx_ready(q, TP4_TX_DESCS))
		return false;
	/* Returned descriptors are published before they are counted. */
	smp_rmb();
	/* Pairs with the release in tp4q_zc_returned(). */
	if (atomic_long_read_acquire(&q->out) != in)
		return false;
	/* If it has changed, the checks above are out of date. */
	return READ_ONCE(q->in) == in;
}

/* Check whether the socket's packets are done, or will not be: then @err is set.
 * Another thread may take sk_err first, so that says nothing here.
 */
static bool tp4_zc_is_done(const struct packet_sock *po, int errors, int *err)
{
	const struct tp4_zc *zc;
	bool done;

	/* A ring can only be removed a grace period after this is NULL. */
	rcu_read_lock();
	zc = rcu_dereference(po->tp4_zc);
	done = !zc || !zc->tx.q || tp4_zc_is_sent(zc->tx.q);
	if (!done && !tp4_zc_is_up(zc))
		*err = -ENETDOWN;
	else if (!done && atomic_read_acquire(&zc->errors) != errors)
		*err = -READ_ONCE(zc->error);
	rcu_read_unlock();
	return done || *err;
}

/* Sleep until all posted packets have been returned, the device goes down, or
 * the driver reports an error after the first @errors.
 */
static int tp4_zc_wait(struct packet_sock *po, int errors)
{
	long left = sock_sndtimeo(&po->sk, false);
	int err = 0;

	left = wait_event_interruptible_timeout(*sk_sleep(&po->sk),
						tp4_zc_is_done(po, errors,
							       &err), left);
	if (left < 0)
		return left;
	if (err)
		return err;
	return left ? 0 : -ETIMEDOUT;
}

/* Packets do not belong to a call, so it cannot ask for timestamps of them. */
static int tp4_zc_check_cmsg(struct sock *sk, struct msghdr *msg)
{
	struct sockcm_cookie sockc;
	u32 tsflags;
	int err;

	sockcm_init(&sockc, sk);
	tsflags = sockc.tsflags;
	err = sock_cmsg_send(sk, msg, &sockc);
	if (!err && sockc.tsflags != tsflags)
		err = -EOPNOTSUPP;
	return err;
}

/**
 * tp4_zc_snd() - let the driver send the packets posted on a Tx ring
 * @po:		the packet socket
 * @msg:	message of sendmsg(), of which the flags are used, and control
 *		messages are checked
 *
 * With SO_BUSY_POLL, polls the queue pair. Without MSG_DONTWAIT, returns when
 * all posted packets have been returned.
 *
 * Context: Process context, may sleep.
 * Return: 0, -EBUSY if the socket is no longer in zero-copy mode, -EOPNOTSUPP if
 * a control message asks for timestamps, -EINVAL if one is invalid, -ENETDOWN or
 * another error that the driver reported, -ETIMEDOUT, or -ERESTARTSYS.
 */
int tp4_zc_snd(struct packet_sock *po, struct msghdr *msg)
{
	bool looked = sk_can_busy_loop(&po->sk);
	const struct tp4_zc *zc;
	int err = -EBUSY, errors = 0;

	if (unlikely(msg->msg_controllen)) {
		int bad = tp4_zc_check_cmsg(&po->sk, msg);

		if (bad)
			return bad;
	}
	if (looked)
		sk_busy_loop(&po->sk, 1);

	rcu_read_lock();
	zc = rcu_dereference(po->tp4_zc);
	if (likely(zc)) {
		u32 rx = tp4_zc_rx_wakeup(zc);

		errors = atomic_read(&zc->errors);
		/* Busy polling may have taken all packets already. It may also
		 * not have polled, because NAPI is running.
		 */
		if (looked && netif_running(zc->dev) && !rx &&
		    !(zc->tx.q && tp4q_is_posted(zc->tx.q)))
			err = 0;
		else
			err = tp4_zc_kick(zc, TP4_WAKEUP_TX | rx);
	}
	rcu_read_unlock();

	if (!err && !(msg->msg_flags & MSG_DONTWAIT))
		err = tp4_zc_wait(po, errors);
	return err;
}

/**
 * tp4_zc_poll() - kick the driver before poll() sleeps, if necessary
 * @po:	the packet socket
 *
 * Context: Process context.
 */
void tp4_zc_poll(struct packet_sock *po)
{
	const struct tp4_zc *zc;
	u32 flags = 0;

	rcu_read_lock();
	zc = rcu_dereference(po->tp4_zc);
	if (zc)
		flags = tp4_zc_rx_wakeup(zc);
	/* The barrier in tp4_zc_rx_wakeup() also orders this. */
	if (zc && zc->tx.q && tp4q_tx_ready(zc->tx.q, TP4_TX_DESCS))
		flags |= TP4_WAKEUP_TX;
	if (flags)
		tp4_zc_kick(zc, flags);
	rcu_read_unlock();
}

/**
 * tp4_zc_unmapped() - let the driver check the Rx ring after an unmapping
 * @po:	the packet socket
 *
 * If it was the status page that was unmapped, the program no longer knows of a
 * kick that the driver waits for. The driver then uses a timer.
 *
 * Context: Process context, under mmap_lock.
 */
void tp4_zc_unmapped(struct packet_sock *po)
{
	const struct tp4_zc *zc;

	rcu_read_lock();
	zc = rcu_dereference(po->tp4_zc);
	if (zc && zc->rx.q)
		tp4_zc_kick(zc, TP4_WAKEUP_RX);
	rcu_read_unlock();
}

static int tp4_zc_notify(struct notifier_block *nb, unsigned long event,
			 void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	unsigned int i;

	if (event != NETDEV_UNREGISTER && event != NETDEV_DOWN)
		return NOTIFY_DONE;

	for (i = 0; i < dev->num_rx_queues; i++) {
		struct tp4_zc *zc = tp4_queue_owner(dev, i);

		if (!zc)
			continue;
		tp4_zc_error_report(zc, ENETDOWN);
		if (event == NETDEV_UNREGISTER)
			tp4_zc_disable(zc, ENETDOWN);
	}
	return NOTIFY_DONE;
}

static struct notifier_block tp4_zc_notifier = {
	.notifier_call = tp4_zc_notify,
};

static int __init tp4_zc_init(void)
{
	return register_netdevice_notifier(&tp4_zc_notifier);
}
device_initcall(tp4_zc_init);
