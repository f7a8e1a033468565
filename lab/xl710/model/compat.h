/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: one interface for QEMU 7.2 (Debian 12) and 10.0 (Debian 13)
 *
 * The names are those of 10.0.
 */
#ifndef XL710_COMPAT_H
#define XL710_COMPAT_H

#include "hw/pci/pci.h"
#include "hw/qdev-properties.h"

#if QEMU_VERSION_MAJOR >= 10
#include "hw/pci/pci_device.h"

#define XL710_PROPERTIES_END
#else
#define XL710_PROPERTIES_END    DEFINE_PROP_END_OF_LIST()
/* Only newer ones know that it does not change them */
#define device_class_set_props(dc, props) \
    device_class_set_props(dc, (Property *)(props))

static inline void device_class_set_legacy_reset(DeviceClass *dc,
                                                 DeviceReset reset)
{
    dc->reset = reset;
}
#endif

#endif
