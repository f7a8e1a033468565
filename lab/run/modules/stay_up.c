// SPDX-License-Identifier: GPL-2.0
/* The virtual machine's root directory and shares are on virtio-9p devices, whose driver
 * cannot resume them. This module excludes them from suspend.
 */
#include <linux/device.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/virtio_ids.h>

#define LEGACY_9P	0x1009
#define MODERN_9P	(0x1040 + VIRTIO_ID_9P)

static void set_stay_up(bool stay)
{
	struct pci_dev *pci = NULL;

	for_each_pci_dev(pci) {
		if (pci->vendor == PCI_VENDOR_ID_REDHAT_QUMRANET &&
		    (pci->device == LEGACY_9P || pci->device == MODERN_9P))
			dev_pm_syscore_device(&pci->dev, stay);
	}
}

static int __init stay_up_init(void)
{
	set_stay_up(true);
	return 0;
}
module_init(stay_up_init);

static void __exit stay_up_exit(void)
{
	set_stay_up(false);
}
module_exit(stay_up_exit);

MODULE_DESCRIPTION("Exclude the root directory's devices from suspend");
MODULE_LICENSE("GPL");
