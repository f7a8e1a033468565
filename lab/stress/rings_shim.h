/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel interfaces that net/packet/tp4_queue.[ch] use, for user space.
 * Included before them; the headers that they include are empty files, except
 * for those of the user-space ABI.
 */
#ifndef RINGS_SHIM_H
#define RINGS_SHIM_H

#include <errno.h>
#include <linux/types.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define CONFIG_64BIT		1
#define U8_MAX			UINT8_MAX
#define U32_MAX			UINT32_MAX
#define BITS_PER_LONG		64
#define MAX_SKB_FRAGS		17
#define SMP_CACHE_BYTES		64
#define L1_CACHE_BYTES		64
#define PAGE_SHIFT		12
#define PAGE_SIZE		4096UL
#define EXPORT_SYMBOL_GPL(x)
#define EXPORT_SYMBOL_IF_KUNIT(x)
#define VISIBLE_IF_KUNIT	static
#define __user
#define __rcu
#define __aligned(n)		__attribute__((__aligned__(n)))
#define ____cacheline_aligned_in_smp	__aligned(64)
#define ____cacheline_aligned	__aligned(64)
#define __must_check
#ifndef __always_inline
#define __always_inline		inline
#endif
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#define fallthrough		__attribute__((__fallthrough__))
#define BIT(n)			(1UL << (n))
#define offset_in_page(p)	((unsigned long)(p) & (PAGE_SIZE - 1))
#define ENOTSUPP		524
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define noinline		__attribute__((noinline))
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define IS_ENABLED(x)		1
#define BUILD_BUG_ON(x)		_Static_assert(!(x), #x)
#define static_assert		_Static_assert
#define WARN_ON_ONCE(x)		({ bool __w = (x); if (__w) __builtin_trap(); __w; })
#define lockdep_assert_held(x)

#define min_t(t, a, b)	({ t __a = (a); t __b = (b); __a < __b ? __a : __b; })
#define max_t(t, a, b)	({ t __a = (a); t __b = (b); __a > __b ? __a : __b; })
#define min(a, b)	min_t(__typeof__(a), a, b)
#define max(a, b)	max_t(__typeof__(a), a, b)
#define swap(a, b) \
	do { __typeof__(a) __t = (a); (a) = (b); (b) = __t; } while (0)

/* A descriptor's halves are read and written as words. */
#define READ_ONCE(x) \
	__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, v) \
	__atomic_store_n(&(x), (__typeof__(x))(v), __ATOMIC_RELAXED)
#define smp_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, v) \
	__atomic_store_n(p, (__typeof__(*(p)))(v), __ATOMIC_RELEASE)
#define smp_mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_rmb()		__atomic_thread_fence(__ATOMIC_ACQUIRE)
#define smp_wmb()		__atomic_thread_fence(__ATOMIC_RELEASE)
#define data_race(x)		(x)

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	long counter;
} atomic_long_t;

typedef struct {
	int refs;
} refcount_t;

#define atomic_long_read(a)	__atomic_load_n(&(a)->counter, __ATOMIC_RELAXED)
#define atomic_long_read_acquire(a) \
	__atomic_load_n(&(a)->counter, __ATOMIC_ACQUIRE)
#define atomic_long_set(a, v) \
	__atomic_store_n(&(a)->counter, v, __ATOMIC_RELAXED)
#define atomic_long_set_release(a, v) \
	__atomic_store_n(&(a)->counter, v, __ATOMIC_RELEASE)
#define atomic_long_fetch_add(n, a) \
	__atomic_fetch_add(&(a)->counter, n, __ATOMIC_SEQ_CST)
#define atomic_long_add(n, a)	((void)atomic_long_fetch_add(n, a))
#define atomic_long_inc(a)	atomic_long_add(1, a)

static inline void memset32(u32 *p, u32 v, size_t n)
{
	while (n--)
		*p++ = v;
}

/* Members that are not used here */
typedef struct {
	void *p;
} sockptr_t;

struct mmpin {
	void *user;
};

struct work_struct {
	void *func;
};

struct page;
struct sk_buff;

/* The queues here have no socket to wake. */
struct socket_wq {
	int wait;
};

struct sock {
	struct socket_wq *sk_wq;
	int sk_rcvlowat;
	void (*sk_data_ready)(struct sock *sk);
};

struct timer_list {
	void *function;
};

#define jiffies			0UL

#define EPOLLOUT		0
#define EPOLLWRNORM		0
#define EPOLLWRBAND		0
#define SOCK_WAKE_SPACE		0
#define rcu_read_lock()
#define rcu_read_unlock()
#define rcu_dereference(p)	(p)
#define skwq_has_sleeper(wq)	(wq)
#define wake_up_interruptible_poll(wq, events)	((void)(wq))
#define sk_wake_async_rcu(sk, how, band)	((void)(sk))

#endif
