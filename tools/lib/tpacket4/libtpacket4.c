// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * libtpacket4.so: the functions of tpacket4.h and tpacket4_device.h for
 * languages that cannot call inline functions of C.
 */
#define TP4_API __attribute__((__visibility__("default")))

#include <tpacket4_device.h>
