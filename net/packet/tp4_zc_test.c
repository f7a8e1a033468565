// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of conflicts about a queue pair, which need a driver with
 * zero-copy mode for both AF_XDP and TPACKET_V4
 */

#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <net/netdev_rx_queue.h>
#include <net/xdp_sock.h>
#include <net/xsk_buff_pool.h>

#include "tp4_zc.h"

#define QUEUES	2

static void free_dev(void *dev)
{
	free_netdev(dev);
}

static int tp4_zc_test_init(struct kunit *test)
{
	struct net_device *dev;

	dev = alloc_netdev_mqs(0, "tp4test%d", NET_NAME_UNKNOWN, ether_setup,
			       QUEUES, QUEUES);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, free_dev, dev));
	test->priv = dev;
	return 0;
}

static void expect_taken(struct kunit *test, bool first)
{
	KUNIT_EXPECT_EQ(test, first, tp4_zc_is_taken(test->priv, 0));
	KUNIT_EXPECT_FALSE(test, tp4_zc_is_taken(test->priv, 1));
}

#ifdef CONFIG_XDP_SOCKETS
static void taken_by_af_xdp(struct kunit *test)
{
	struct net_device *dev = test->priv;
	struct xsk_buff_pool *pool;

	pool = kunit_kzalloc(test, sizeof(*pool), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pool);
	pool->umem = kunit_kzalloc(test, sizeof(*pool->umem), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pool->umem);

	expect_taken(test, false);
	/* a socket in copy mode can share the queue */
	dev->_rx[0].pool = pool;
	expect_taken(test, false);
	pool->umem->zc = true;
	expect_taken(test, true);
	dev->_rx[0].pool = NULL;
	expect_taken(test, false);
}
#endif

static void taken_by_memory_provider(struct kunit *test)
{
	struct net_device *dev = test->priv;

	expect_taken(test, false);
	dev->_rx[0].mp_params.mp_priv = dev;
	expect_taken(test, true);
}

static void taken_by_v4(struct kunit *test)
{
	struct net_device *dev = test->priv;

	expect_taken(test, false);
	/* whose it is does not matter */
	dev->_rx[0].tp4 = (struct tp4_zc *)dev;
	expect_taken(test, true);
}

static struct kunit_case tp4_zc_cases[] = {
#ifdef CONFIG_XDP_SOCKETS
	KUNIT_CASE(taken_by_af_xdp),
#endif
	KUNIT_CASE(taken_by_memory_provider),
	KUNIT_CASE(taken_by_v4),
	{}
};

static struct kunit_suite tp4_zc_suite = {
	.name = "tp4_zc",
	.init = tp4_zc_test_init,
	.test_cases = tp4_zc_cases,
};

kunit_test_suite(tp4_zc_suite);

MODULE_IMPORT_NS(EXPORTED_FOR_KUNIT_TESTING);
MODULE_DESCRIPTION("KUnit tests of TPACKET_V4 zero-copy mode");
MODULE_LICENSE("GPL");
