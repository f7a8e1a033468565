/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_SOCK_H__
#define __PACKET_TP4_SOCK_H__

#include <linux/errno.h>
#include <linux/sockptr.h>
#include <net/sock.h>

struct tp4_area;

#ifdef CONFIG_PACKET_V4
int tp4_setsockopt(struct sock *sk, int optname, sockptr_t optval,
		   unsigned int optlen);
void tp4_sock_release(struct sock *sk);
struct tp4_area *tp4_area_get_by_fd(int fd);
#else
static inline int tp4_setsockopt(struct sock *sk, int optname,
				 sockptr_t optval, unsigned int optlen)
{
	return -ENOPROTOOPT;
}

static inline void tp4_sock_release(struct sock *sk)
{
}
#endif

#endif
