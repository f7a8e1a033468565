// SPDX-License-Identifier: GPL-2.0
/* Loops: a frame that the switch has sent comes back from the network */

#include <errno.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>

#include "macs.h"

#define ETH_P_EXPERIMENT	0x88b5	/* IEEE 802, local experimental type 1 */

/**
 * struct probe - a frame that each device sends now and then
 * @to: the group of all stations, so that other switches forward it
 * @from: an address of this switch
 * @type: %ETH_P_EXPERIMENT
 * @name: whose it is, for who captures it
 * @token: a random number that only this port sends, and only once
 */
struct probe {
	u8 to[6], from[6];
	u8 type[2];
	char name[8];
	u64 token;
	u8 pad[30];
} __attribute__((__packed__));

static int timer = -1;

/* A port has a new number even if it was given no room for the last frame. */
static void probe_port(struct sw_port *port)
{
	struct probe p = {
		.to = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
		.type = { ETH_P_EXPERIMENT >> 8, ETH_P_EXPERIMENT & 0xff },
		.name = "tpswitch",
	};
	const u64 from = htole64(port->sw->probe_from >> 16);

	if (getrandom(&port->probe, sizeof(port->probe), GRND_NONBLOCK) !=
	    sizeof(port->probe))
		return;
	memcpy(p.from, &from, sizeof(p.from));
	p.token = port->probe;
	sw_send(port, (u8 *)&p, sizeof(p));
}

static void probe_all(struct sw *sw, struct sw_event *ev, u32 events)
{
	unsigned int i;
	u64 expired;

	(void)ev;
	(void)events;
	if (read(timer, &expired, sizeof(expired)) != sizeof(expired))
		return;
	for (i = 0; i < sw->nr_ports; i++)
		/* Trunks without a native VLAN have no frames without tags. */
		if (sw->list[i]->is_dev && sw->list[i]->untagged != SW_NO_VLAN)
			probe_port(sw->list[i]);
}

/**
 * sw_loop_start - look for loops
 * @sw: switch
 * @seconds: time between two frames of a device
 *
 * Return: 0, or -errno.
 */
int sw_loop_start(struct sw *sw, unsigned int seconds)
{
	const struct itimerspec period = {
		.it_interval.tv_sec = seconds, .it_value.tv_sec = seconds,
	};
	static struct sw_event ev = { .fn = probe_all };
	u64 random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	/* Of one station, and local; bits 16 to 23 are the first byte. */
	sw->probe_from = (random & ~0x3ffffull) | 0x20000;
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (timer < 0 || timerfd_settime(timer, 0, &period, NULL))
		return -errno;
	return sw_watch(sw, timer, EPOLLIN, &ev);
}

/**
 * sw_loop_seen - a packet has come from the address of this switch
 * @sw: switch
 * @in: port that it comes from
 * @vid: its VLAN, or 0
 * @data: its first bytes, which may change at any time
 * @len: how many
 *
 * Who has not received a frame of another port cannot know its number, so a program
 * or a station can do this to its own port only.
 */
void sw_loop_seen(struct sw *sw, struct sw_port *in, u16 vid, const u8 *data, u32 len)
{
	unsigned int i, at = offsetof(struct probe, token);
	u64 token;

	/* It may come back with a tag. */
	if (vid && data[12] == ETH_P_8021Q >> 8 && data[13] == (ETH_P_8021Q & 0xff))
		at += 4;
	if (len < at + sizeof(token) || !in->is_dev || in->looped)
		return;
	memcpy(&token, data + at, sizeof(token));
	for (i = 0; i < sw->nr_ports; i++) {
		struct sw_port *out = sw->list[i];

		/* One of the two ends the loop, and the other one stays. */
		if (!token || out->probe != token || out->looped || out->untagged != vid ||
		    (out != in && out->isolated && in->isolated))
			continue;
		fprintf(stderr, "tpswitch: %s: a frame that %s has sent came back: a loop; %s is removed\n",
			in->name, out->name, in->name);
		in->looped = true;
		/* It may not go while its packets are looked at. */
		sw->gone = true;
	}
}

/**
 * sw_loop_end - remove the ports that a frame came back to
 * @sw: switch, between two rounds
 */
void sw_loop_end(struct sw *sw)
{
	unsigned int i;

	/* The last port takes the place of one that is removed. */
	for (i = sw->nr_ports; i--; )
		if (sw->list[i]->looped)
			sw_port_remove(sw->list[i]);
}
