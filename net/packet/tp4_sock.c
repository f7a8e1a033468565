// SPDX-License-Identifier: GPL-2.0
/* Socket options of TPACKET_V4, and the packet buffer of a socket */

#include <linux/file.h>
#include <linux/if_packet.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/uaccess.h>
#include <net/sock.h>

#include "internal.h"
#include "tp4_area.h"
#include "tp4_sock.h"

static int tp4_memreg(struct sock *sk, sockptr_t optval, unsigned int optlen)
{
	struct packet_sock *po = pkt_sk(sk);
	struct tp4_area *area;
	int err = 0;

	lock_sock(sk);
	if (po->tp4_area) {
		err = -EBUSY;
		goto out;
	}

	area = tp4_area_register(optval, optlen);
	if (IS_ERR(area)) {
		err = PTR_ERR(area);
		goto out;
	}
	/* Pairs with the acquire in tp4_area_get_by_fd(). */
	smp_store_release(&po->tp4_area, area);
out:
	release_sock(sk);
	return err;
}

/**
 * tp4_setsockopt() - set a socket option of TPACKET_V4
 * @sk:		the packet socket
 * @optname:	the option
 * @optval:	its value
 * @optlen:	size of @optval
 *
 * Context: Process context, may sleep; takes the socket lock.
 * Return: 0 or an error, see the table in
 * Documentation/networking/tpacket4.rst.
 */
int tp4_setsockopt(struct sock *sk, int optname, sockptr_t optval,
		   unsigned int optlen)
{
	switch (optname) {
	case PACKET_MEMREG:
		return tp4_memreg(sk, optval, optlen);
	default:
		return -ENOPROTOOPT;
	}
}
EXPORT_SYMBOL_GPL(tp4_setsockopt);

/**
 * tp4_sock_release() - drop a closing socket's packet buffer
 * @sk:	the packet socket; no other task can access it any more
 *
 * Context: Process context, may sleep.
 */
void tp4_sock_release(struct sock *sk)
{
	tp4_area_put(pkt_sk(sk)->tp4_area);
	pkt_sk(sk)->tp4_area = NULL;
}
EXPORT_SYMBOL_GPL(tp4_sock_release);

/**
 * tp4_area_get_by_fd() - take a reference to the area of a socket
 * @fd:	file descriptor of the socket, in the current task
 *
 * Does not take the socket's lock. The caller may hold the lock of another
 * packet socket, and a second task may use the two sockets in reverse order.
 *
 * Context: Process context.
 * Return: the area, or an ERR_PTR: -EBADF, -ENOTSOCK, or -EINVAL if @fd is not
 * a packet socket or has no area.
 */
struct tp4_area *tp4_area_get_by_fd(int fd)
{
	struct tp4_area *area;
	struct socket *sock;
	int err;

	sock = sockfd_lookup(fd, &err);
	if (!sock)
		return ERR_PTR(err);

	area = ERR_PTR(-EINVAL);
	if (sock->sk->sk_family != PF_PACKET)
		goto out;
	/* Pairs with the release in tp4_memreg(). The file holds the socket,
	 * and the socket holds its area.
	 */
	area = smp_load_acquire(&pkt_sk(sock->sk)->tp4_area);
	if (area)
		refcount_inc(&area->users);
	else
		area = ERR_PTR(-EINVAL);
out:
	sockfd_put(sock);
	return area;
}
