// SPDX-License-Identifier: GPL-2.0
/* TPACKET_V4 packet buffers
 *
 * A buffer is pinned, charged and mapped when it is registered. Sockets and
 * rings then share it by reference counting.
 */

#include <linux/cacheinfo.h>
#include <linux/file.h>
#include <linux/if_packet.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <net/sock.h>

#include "internal.h"
#include "tp4_area.h"

#define TP4_FRAME_SIZE_MIN	2048
/* The offset in a descriptor has 16 bits. */
#define TP4_FRAME_SIZE_MAX	min_t(u32, PAGE_SIZE, SZ_64K)
#define TP4_HEADROOM_ALIGN	64

/* Size of the first version of struct tpacket_memreg_req */
#define TP4_MEMREG_SIZE_MIN \
	offsetofend(struct tpacket_memreg_req, data_headroom)

/**
 * tp4_copy_option() - copy an option's struct, of any version
 * @to:		where to copy it
 * @size:	size of the struct in this kernel
 * @least:	size of its first version
 * @optval:	the option
 * @optlen:	size of @optval
 *
 * Members that a shorter struct lacks are set to 0.
 *
 * Context: Process context, may sleep.
 * Return: 0, -EINVAL if the struct is too short, -E2BIG if a member that this
 * kernel does not know is not 0 or if the struct is longer than a page, or
 * -EFAULT.
 */
int tp4_copy_option(void *to, size_t size, size_t least, sockptr_t optval,
		    unsigned int optlen)
{
	int ret;

	if (optlen < least)
		return -EINVAL;
	if (optlen > PAGE_SIZE)
		return -E2BIG;
	/* copy_struct_from_sockptr() does not check the rest of user memory. */
	if (optlen > size) {
		ret = check_zeroed_sockptr(optval, size, optlen - size);
		if (ret < 1)
			return ret ? : -E2BIG;
	}
	return copy_struct_from_sockptr(to, size, optval, optlen);
}

static int tp4_area_pin(struct tp4_area *area, unsigned long addr)
{
	unsigned long done = 0;
	int nr;

	area->pages = kvcalloc(area->nr_pages, sizeof(*area->pages),
			       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!area->pages)
		return -ENOMEM;

	while (done < area->nr_pages) {
		unsigned long left = area->nr_pages - done;

		nr = pin_user_pages_fast(addr + (done << PAGE_SHIFT),
					 min_t(unsigned long, left, INT_MAX),
					 FOLL_WRITE | FOLL_LONGTERM,
					 area->pages + done);
		if (nr <= 0)
			goto unpin;
		done += nr;
	}
	return 0;

unpin:
	unpin_user_pages(area->pages, done);
	kvfree(area->pages);
	return nr ? : -EFAULT;
}

static void tp4_area_release(struct tp4_area *area)
{
	vunmap(area->addr);
	unpin_user_pages_dirty_lock(area->pages, area->nr_pages, true);
	kvfree(area->pages);
	mm_unaccount_pinned_pages(&area->mmp);
	if (area->mm)
		mmdrop(area->mm);
	kfree(area);
}

static void tp4_area_release_work(struct work_struct *work)
{
	tp4_area_release(container_of(work, struct tp4_area, work));
}

static int tp4_area_init(struct tp4_area *area,
			 const struct tpacket_memreg_req *req)
{
	u64 end, nr_frames;

	if (!req->len || req->addr > ULONG_MAX ||
	    check_add_overflow(req->addr, req->len, &end) || end > ULONG_MAX)
		return -EINVAL;
	if (!PAGE_ALIGNED(req->addr) || !PAGE_ALIGNED(req->len))
		return -EINVAL;
	if (!is_power_of_2(req->frame_size) ||
	    req->frame_size < TP4_FRAME_SIZE_MIN ||
	    req->frame_size > TP4_FRAME_SIZE_MAX)
		return -EINVAL;
	if (req->data_headroom > req->frame_size - TP4_HEADROOM_ALIGN)
		return -EINVAL;
	if (req->reserved || (req->flags & ~TP4_MEMREG_SHARED))
		return -EINVAL;

	area->frame_size = req->frame_size;
	area->frame_shift = ilog2(req->frame_size);
	area->headroom = ALIGN(req->data_headroom, TP4_HEADROOM_ALIGN);
	area->nr_pages = req->len >> PAGE_SHIFT;

	/* A ring stores frame numbers in 32 bits and needs TP4_NOT_HELD. */
	nr_frames = req->len >> area->frame_shift;
	if (nr_frames > INT_MAX)
		return -EINVAL;
	area->nr_frames = nr_frames;
	refcount_set(&area->users, 1);
	INIT_WORK(&area->work, tp4_area_release_work);
	return 0;
}

/* Pin and map the pages, and charge them to RLIMIT_MEMLOCK of the current user
 * unless the task has CAP_IPC_LOCK.
 * Return: the area with one reference, or an ERR_PTR, see tp4_memreg().
 */
static struct tp4_area *tp4_area_register(sockptr_t optval,
					  unsigned int optlen)
{
	struct tpacket_memreg_req req;
	struct tp4_area *area;
	int err;

	err = tp4_copy_option(&req, sizeof(req), TP4_MEMREG_SIZE_MIN, optval,
			      optlen);
	if (err)
		return ERR_PTR(err);
	if (cpu_dcache_is_aliasing())
		return ERR_PTR(-EOPNOTSUPP);

	area = kzalloc_obj(*area, GFP_KERNEL_ACCOUNT);
	if (!area)
		return ERR_PTR(-ENOMEM);

	err = tp4_area_init(area, &req);
	if (err)
		goto free_area;
	err = mm_account_pinned_pages(&area->mmp, req.len);
	if (err)
		goto free_area;
	err = tp4_area_pin(area, req.addr);
	if (err)
		goto unaccount;

	err = -ENOMEM;
	area->addr = vmap(area->pages, area->nr_pages, VM_MAP, PAGE_KERNEL);
	if (!area->addr)
		goto unpin;
	if (!(req.flags & TP4_MEMREG_SHARED)) {
		mmgrab(current->mm);
		area->mm = current->mm;
	}
	return area;

unpin:
	unpin_user_pages(area->pages, area->nr_pages);
	kvfree(area->pages);
unaccount:
	mm_unaccount_pinned_pages(&area->mmp);
free_area:
	kfree(area);
	return ERR_PTR(err);
}

/**
 * tp4_area_is_allowed() - check whether the current process may use an area
 * @area:	the area
 *
 * The owner of a ring can read and write all of the area. A process that was
 * only passed a socket must not be able to.
 *
 * Context: Process context.
 * Return: true if it may.
 */
bool tp4_area_is_allowed(const struct tp4_area *area)
{
	return !area->mm || area->mm == current->mm;
}

/**
 * tp4_area_put() - drop a reference to an area
 * @area:	the area, or NULL
 *
 * The last reference unpins and uncharges the pages. An skb has its own
 * references to the pages that it uses.
 *
 * Context: Process context, may sleep.
 */
void tp4_area_put(struct tp4_area *area)
{
	if (area && refcount_dec_and_test(&area->users))
		tp4_area_release(area);
}

/**
 * tp4_area_put_atomic() - drop a reference to an area in atomic context
 * @area:	the area, or NULL
 *
 * The release is left to a workqueue, as it can take long.
 *
 * Context: Any except hard interrupt.
 */
void tp4_area_put_atomic(struct tp4_area *area)
{
	if (area && refcount_dec_and_test(&area->users))
		queue_work(system_long_wq, &area->work);
}

/**
 * tp4_memreg() - register a socket's packet buffer: PACKET_MEMREG
 * @sk:		the packet socket
 * @optval:	a struct tpacket_memreg_req
 * @optlen:	size of @optval
 *
 * Context: Process context, may sleep; takes the socket lock.
 * Return: 0, -EBUSY if the socket has an area, -EINVAL or -E2BIG for a
 * malformed request, -EFAULT if the range is not mapped writable, -ENOBUFS
 * above RLIMIT_MEMLOCK, -ENOMEM, or -EOPNOTSUPP on a machine whose data cache
 * has aliases.
 */
int tp4_memreg(struct sock *sk, sockptr_t optval, unsigned int optlen)
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
 * tp4_memreg_release() - drop a closing socket's packet buffer
 * @sk:	the packet socket; no other task can access it any more
 *
 * Context: Process context, may sleep.
 */
void tp4_memreg_release(struct sock *sk)
{
	tp4_area_put(pkt_sk(sk)->tp4_area);
	pkt_sk(sk)->tp4_area = NULL;
}

/**
 * tp4_area_get_by_fd() - take a reference to the area of a socket
 * @fd:	file descriptor of the socket, in the current task
 *
 * Does not take the socket's lock. The caller may hold the lock of another
 * packet socket, and a second task may use the two sockets in reverse order.
 *
 * Context: Process context.
 * Return: the area, or an ERR_PTR: -EBADF, -ENOTSOCK, -EINVAL if @fd is not a
 * packet socket or has no area, or -EACCES if another process has registered it
 * without TP4_MEMREG_SHARED.
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
	if (!area)
		area = ERR_PTR(-EINVAL);
	else if (!tp4_area_is_allowed(area))
		area = ERR_PTR(-EACCES);
	else
		refcount_inc(&area->users);
out:
	sockfd_put(sock);
	return area;
}
