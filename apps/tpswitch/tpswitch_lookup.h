/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The interface of tpswitch --lookup FILE.so. The shared object defines
 *
 *	unsigned int tpswitch_lookup(const void *data, unsigned int len,
 *				     unsigned int port);
 *
 * which is called for each packet. data are its first len bytes, at least 14;
 * port is the number of the port that it comes from. It returns the number of
 * the port that gets the packet, or one of the values below. A port that does
 * not exist, or the packet's own, drops the packet.
 */
#ifndef __TPSWITCH_LOOKUP_H
#define __TPSWITCH_LOOKUP_H

#define TPSWITCH_FLOOD	256u	/* all ports but the one that it comes from */
#define TPSWITCH_DROP	257u

unsigned int tpswitch_lookup(const void *data, unsigned int len,
			     unsigned int port);

#endif /* __TPSWITCH_LOOKUP_H */
