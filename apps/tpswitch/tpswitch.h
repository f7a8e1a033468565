/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of tpswitch share */
#ifndef __TPSWITCH_H
#define __TPSWITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <tpacket4.h>
#include "tpswitch_lookup.h"

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define SW_PORTS	254		/* ports */
#define SW_BATCH	64		/* packets taken from a port at a time */
#define SW_CHAIN	48		/* most frames of a packet */
#define SW_FRAGS	(SW_BATCH + SW_CHAIN)
#define SW_LEN		(65535 + 18)	/* most bytes of a packet */
#define SW_NAME		24
#define SW_ANSWER	(8 << 20)	/* most bytes of an answer: all addresses */
#define SW_PART		(64 << 10)	/* most bytes of a message with a part of it */
#define SW_WAITING	64	/* connections that have sent no message yet */
#define SW_MESSAGE_FILES 253	/* most files of a message, as SCM_MAX_FD */
#define SW_NO_VLAN	0xffff

/* No errnos: the receiver of the packet has kept the frame; it is refused with %EMSGSIZE,
 * as is the rest of its packet, which is in the next frames
 */
#define SW_KEPT		255
#define SW_MORE		254

/*
 * A source forwards about as many bytes as these until it is the next one's turn, and
 * each copy or segment of a packet counts as SW_COST bytes more. So one source makes
 * others wait for some 100 us, whatever it sends.
 */
#define SW_BUDGET	(256 << 10)
#define SW_COST		256

/* Bits of sw_frag.word that descriptors set, and those that need attention: of the
 * kernel's descriptors, the second
 */
#define SW_WORD_FLAGS	TP4_WORD(0, 0, TP4_PKT_CONT | TP4_META)
#define SW_WORD_ODD	(SW_WORD_FLAGS | TP4_WORD_ERROR)
#define SW_WORD_CHAIN	(TP4_WORD(0, 0, TP4_PKT_CONT) | TP4_WORD_ERROR)
/* The bits of a word from there on have all but the length */
#define SW_WORD_HIGH	(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 32 : 0)
#define SW_WORD_KEEP	(~TP4_WORD(0, 0, 0xff) | SW_WORD_FLAGS)

/* Not values of tpswitch_lookup.h: the packet is looked up on its own; it has the
 * address of another port
 */
#define SW_TO_ODD	0xffff
#define SW_TO_REFUSED	0xfffe

/**
 * struct sw_run - frames of a batch that are for the same port
 * @to: what the lookup has found, or %SW_TO_ODD
 * @end: number of the first frame behind them
 * @bytes: sum of their lengths; 0 for %SW_TO_ODD
 */
struct sw_run {
	u16 to;
	u16 end;
	u32 bytes;
};

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

struct sw;
struct sw_port;
struct sw_source;

/**
 * struct sw_event - a file descriptor that epoll watches
 * @fn: called with the events
 */
struct sw_event {
	void (*fn)(struct sw *sw, struct sw_event *ev, u32 events);
};

/**
 * struct sw_frag - a frame of a packet, as it came in
 * @idx: frame number
 * @word: the next four as in the second half of a descriptor
 * @len: bytes
 * @offset: of the data from the start of the frame
 * @flags: %TP4_PKT_CONT, %TP4_META
 * @error: the frame's packet is refused with this errno, or %SW_KEPT or %SW_MORE
 * @data: the packet's data
 */
struct sw_frag {
	u64 idx;
	union {
		u64 word;
		struct {
			u32 len;
			u16 offset;
			u8 error;
			u8 flags;
		};
	};
	const u8 *data;
};

/**
 * struct sw_vlan - the VLAN of a packet, and how it came in
 * @vid: its number
 * @tci: all of the tag, or 0
 * @type: the type behind it
 * @tag: bytes of the tag, or 0
 * @head: its first bytes
 */
struct sw_vlan {
	u16 vid, tci, type;
	u8 tag;
	u8 head[18];
};

/**
 * struct sw_packet - a packet to deliver
 * @frag: its frames
 * @nr: how many
 * @len: bytes
 * @is_dev: they are frames of a device, which nobody else writes to
 * @vlan: its VLAN, or NULL
 * @meta: checked metadata in memory of the switch, or NULL
 * @from: the source whose frames they are, if the receiver may keep them, or
 *        NULL: it copies them. A receiver that keeps them clears it.
 */
struct sw_packet {
	struct sw_frag *frag;
	unsigned int nr;
	u32 len;
	bool is_dev;
	const struct sw_vlan *vlan;
	const struct tpacket4_meta *meta;
	struct sw_source *from;
};

/**
 * struct sw_vlan_packet - a packet with another tag
 * @pkt: the packet
 * @meta: its metadata
 * @head: its header
 * @frag: the header, and the frames without it
 */
struct sw_vlan_packet {
	struct sw_packet pkt;
	struct tpacket4_meta meta;
	u8 head[18];
	struct sw_frag frag[SW_FRAGS + 1];
};

/**
 * struct sw_source_ops - how packets come from a source
 * @input: fill in frames of whole packets, up to %SW_FRAGS; return their number
 * @done: the @n frames of @input are no longer needed
 * @sleep: the source is not polled any more; return true if there are packets
 */
struct sw_source_ops {
	unsigned int (*input)(struct sw_source *src, struct sw_frag *frag);
	void (*done)(struct sw_source *src, const struct sw_frag *frag,
		     unsigned int n);
	bool (*sleep)(struct sw_source *src);
};

/**
 * struct sw_task - what is to be done with a packet
 * @to: what the lookup has found
 * @next: number of the next port that gets it, if it is for all
 * @at: first byte of the next segment for this port; 0: it has got nothing
 * @id: this port; 0: none has got anything
 */
struct sw_task {
	unsigned int to, next;
	u32 at;
	u64 id;
};

/**
 * struct sw_job - a packet that more is to be done with
 * @nr: number of its frames, which stay in its source's ring; 0: there is none
 * @len: bytes
 * @task: what is left to be done
 * @has_meta: @meta is valid
 * @has_vlan: @vlan is valid
 * @meta: checked metadata
 * @vlan: its VLAN
 * @frag: checked frames
 */
struct sw_job {
	unsigned int nr;
	u32 len;
	struct sw_task task;
	bool has_meta, has_vlan;
	struct tpacket4_meta meta;
	struct sw_vlan vlan;
	struct sw_frag frag[SW_FRAGS];
};

/**
 * struct sw_source - a ring that packets come from
 * @ops: its operations
 * @ev: becomes active by this
 * @port: its port
 * @active: it is polled
 * @is_dev: it is a queue of a device: frames are those of @sw.area, and the kernel
 *          has written their metadata
 * @idle: number of polls without a packet
 * @kept: number of frames of the batch that receivers have kept
 * @job: a packet that took more than @sw.budget
 */
struct sw_source {
	const struct sw_source_ops *ops;
	struct sw_event ev;
	struct sw_port *port;
	bool active;
	bool is_dev;
	unsigned int idle;
	unsigned int kept;
	struct sw_job job;
};

/**
 * struct sw_port_ops - what is different between kinds of ports
 * @type: name of the kind
 * @output: deliver a packet; return false if there is no room
 * @burst: deliver packets of one frame without metadata, with copies; subtract
 *         those that there was no room for from @bytes, and return how many there
 *         was room for. NULL: there is only @output
 * @forward: deliver packets of one frame, with or without metadata, that come from a
 *           device, without copies, in the same way. NULL: there is only @output
 * @flush: publish what has been delivered
 * @wake: wake up a program that waits for what was published, or for what it has
 *        sent, or kick the device; NULL: nobody waits
 * @describe: write the rest of a line of the list of ports
 * @free: remove it from epoll and free it
 */
struct sw_port_ops {
	const char *type;
	bool (*output)(struct sw_port *port, struct sw_packet *pkt);
	unsigned int (*burst)(struct sw_port *port, const struct sw_frag *frag,
			      unsigned int n, u64 *bytes);
	unsigned int (*forward)(struct sw_port *port, struct sw_source *src,
				struct sw_frag *frag, unsigned int n,
				u64 *bytes);
	void (*flush)(struct sw_port *port);
	void (*wake)(struct sw_port *port);
	void (*describe)(struct sw_port *port, FILE *file);
	void (*free)(struct sw_port *port);
};

/**
 * struct sw_bucket - a limit of a port, by a token bucket
 * @rate: tokens a second; 0: no limit
 * @tokens: what is left
 */
struct sw_bucket {
	u64 rate;
	double tokens;
};

/**
 * struct sw_counters - counters of a port
 * @in: packets that came from it
 * @in_bytes: their bytes
 * @out: packets delivered to it
 * @out_bytes: their bytes
 * @out_drops: packets that it had no room for
 * @in_errors: invalid descriptors and packets
 * @in_limited: packets above its limits
 * @in_nowhere: packets for nobody
 * @in_spoofed: packets from an address that is fixed at another port
 * @in_vlan: packets of a VLAN that the port does not have
 * @out_errors: packets that the device has refused
 */
struct sw_counters {
	u64 in, in_bytes, out, out_bytes;
	u64 out_drops, in_errors, in_limited, in_nowhere, in_spoofed, in_vlan, out_errors;
};

/**
 * struct sw_port - a port
 * @ops: its operations
 * @sw: its switch
 * @name: its name
 * @nr: its number, 1 to %SW_PORTS
 * @id: a number that no other port ever had
 * @meta: it takes metadata
 * @dirty: it is in sw->dirty
 * @waking: it is in sw->waking
 * @special: it has a limit, a mirror or VLANs
 * @gone: it is removed at the end of the round
 * @is_dev: it is a device
 * @looped: a frame that was sent came back to it, so it is to be removed
 * @probe: a random number that it has sent last, or 0
 * @count: counters
 * @learning: addresses are learned from it
 * @isolated: it exchanges no packets with other isolated ports
 * @untagged: VLAN of packets without a tag; %SW_NO_VLAN: they are refused; 0: it has no
 *            VLANs, if it is no trunk
 * @trunk: a bit for each VLAN of a trunk, or NULL
 * @from: the entry of the address that its last packet came from
 * @to: that of the one that its last packet was for
 * @macs: number of addresses that were learned from it
 * @fixed: number of addresses that are fixed at it
 * @max_macs: how many may be learned
 * @unlearned: number of packets whose address was one too many
 * @pps: limit of packets
 * @bps: limit of bits
 * @refilled: time of the last refill of @pps and @bps
 * @mirror: copies of its packets go there, or NULL
 * @spec: the words that have added it, or NULL
 * @listed: which reading of the configuration file has last found it there; 0: none
 */
struct sw_port {
	const struct sw_port_ops *ops;
	struct sw *sw;
	unsigned int nr;
	u64 id;
	bool meta, dirty, waking, special, gone, learning, isolated, is_dev, looped;
	u16 untagged;
	u64 *trunk;
	u64 probe;
	struct sw_counters count;
	struct sw_mac *from, *to;
	u32 macs, fixed, max_macs;
	u64 unlearned;
	struct sw_bucket pps, bps;
	u64 refilled;
	struct sw_mirror *mirror;
	char *spec;
	u32 listed;
	char name[SW_NAME];
};

/**
 * struct sw_quota - limits of what programs may have, or what they have
 * @ports: ring ports
 * @slots: descriptors of their rings
 * @bytes: memory of their packets and rings
 */
struct sw_quota {
	u64 ports, slots, bytes;
};

/**
 * struct sw_user - a user of ring ports
 * @next: the next one of @sw.users
 * @uid: number of the user
 * @own: the administrator has given @max
 * @max: limits, if @own
 * @used: what there is
 */
struct sw_user {
	struct sw_user *next;
	u32 uid;
	bool own;
	struct sw_quota max, used;
};

enum sw_lookup { SW_LEARN, SW_HUB, SW_HASH, SW_FILE };

/**
 * struct sw - the switch
 * @ports: the ports by number, or NULL
 * @list: the ports
 * @nr_ports: their number
 * @last_port: the highest number that a port has
 * @ids: number of ports that there ever were
 * @ctl: the connection of the command that runs, or -1
 * @file: the file that came with it, or -1
 * @budget: how many bytes the current source may still forward
 * @active: the sources that are polled
 * @nr_active: their number
 * @dirty: ports with packets that are not published
 * @nr_dirty: their number
 * @waking: ports whose programs may have to be woken up
 * @nr_waking: their number
 * @deferred: batches since the last time that they were
 * @lookup: how the receiver of a packet is found
 * @file_lookup: the function of a shared object, for %SW_FILE
 * @macs: table of addresses
 * @now: the time, in ns of CLOCK_MONOTONIC, once a round
 * @seconds: the same in seconds
 * @age: how long an address is known, in seconds
 * @spin: number of polls without a packet before a source sleeps
 * @epoll: what it sleeps in
 * @path: path of the socket for ring ports
 * @frames: number of frames for devices
 * @frame_size: bytes per frame
 * @area: the frames of all devices
 * @area_fd: packet socket that has registered @area, or -1
 * @pool: frames that nobody has
 * @pool_spare: number of frames that no device has reserved
 * @links: a device has changed
 * @links_fd: netlink socket that reports it, if there is an area
 * @stop: end
 * @users: users of ring ports, and those with limits of their own
 * @each: limits of a user without own ones
 * @all: limits of all users together
 * @all_used: what there is
 * @stalled: ports with packets that a device has not taken yet
 * @gone: ports are to be removed at the end of the round, or @reload is set
 * @reload: the configuration file is to be read again then
 * @config: its path, or NULL
 * @readings: how often it was read
 * @in_file: the command that runs is in it
 * @json: the command that runs prints JSON
 * @probe_from: address that frames which look for loops come from, or 0: there are none
 */
struct sw {
	struct sw_port *ports[SW_PORTS + 1];
	struct sw_port *list[SW_PORTS];
	unsigned int nr_ports, last_port;
	u64 ids;
	int ctl, file;
	long budget;
	struct sw_source **active;
	unsigned int nr_active, max_active;
	struct sw_port *dirty[SW_PORTS];
	unsigned int nr_dirty;
	struct sw_port *waking[SW_PORTS];
	unsigned int nr_waking, deferred;
	enum sw_lookup lookup;
	unsigned int (*file_lookup)(const void *data, unsigned int len,
				    unsigned int port);
	struct sw_macs *macs;
	u64 now;
	u32 seconds;
	u32 age;
	unsigned int spin;
	int epoll;
	const char *path;
	u32 frames, frame_size;
	struct tp4_area area;
	int area_fd;
	struct tp4_pool pool;
	u32 pool_spare;
	struct sw_event links;
	int links_fd;
	bool stop;
	struct sw_user *users;
	struct sw_quota each, all, all_used;
	unsigned int stalled;
	bool gone, reload;
	const char *config;
	u32 readings;
	bool in_file, json;
	u64 probe_from;
};

/* switch.c */
int sw_watch(struct sw *sw, int fd, u32 events, struct sw_event *ev);
void sw_activate(struct sw *sw, struct sw_source *src);
void sw_quit_source(struct sw *sw, struct sw_source *src);
void sw_read_clock(struct sw *sw);
void sw_run(struct sw *sw);

/* port.c */
int sw_port_add(struct sw *sw, struct sw_port *port, const char *name);
void sw_port_remove(struct sw_port *port);
void sw_port_reap(struct sw *sw);
struct sw_port *sw_port_find(struct sw *sw, const char *name);
bool sw_port_limited(struct sw_port *port, const struct sw_packet *pkt);
void sw_port_set_special(struct sw_port *port);

/* forward.c */
void sw_forward(struct sw_source *src, struct sw_frag *frag, unsigned int n);
void sw_resume(struct sw_source *src);
void sw_send(struct sw_port *out, const u8 *data, u32 len);
void sw_wake(struct sw *sw);

/* lookup.c */
int sw_lookup_set(struct sw *sw, const char *name, char *why, size_t len);
unsigned int sw_lookup(struct sw *sw, struct sw_port *in, u16 vid, const u8 *data,
		       u32 len);
unsigned int sw_lookup_batch(struct sw *sw, const struct sw_source *src,
			     const struct sw_frag *frag, unsigned int n,
			     struct sw_run *run);

/* loop.c */
int sw_loop_start(struct sw *sw, unsigned int seconds);
void sw_loop_seen(struct sw *sw, struct sw_port *in, u16 vid, const u8 *data, u32 len);
void sw_loop_end(struct sw *sw);

/* macs.c */
int sw_macs_init(struct sw *sw);
void sw_macs_expire(struct sw *sw);
int sw_mac_fix(struct sw *sw, struct sw_port *port, u64 key);
void sw_forget(struct sw *sw, struct sw_port *port, bool fixed);

/* vlan.c */
bool sw_vlan_input(struct sw_port *in, struct sw_packet *pkt, struct sw_vlan *vlan);
struct sw_packet *sw_vlan_output(const struct sw_port *out, struct sw_packet *pkt,
				 struct sw_vlan_packet *p);
int sw_vlan_access(struct sw_port *port, char *text);
int sw_vlan_trunk(struct sw_port *port, char *text, char *native);
void sw_vlan_list(const struct sw_port *port, FILE *file);

/* number.c */
bool sw_number(const char *text, u64 least, u64 most, u64 *n);

/* user.c */
struct sw_user *sw_user_get(struct sw *sw, u32 uid);
int sw_user_charge(struct sw *sw, u32 uid, const struct sw_quota *more,
		   struct sw_user **user);
void sw_user_uncharge(struct sw *sw, struct sw_user *user,
		      const struct sw_quota *less);

/* ring.c */
struct tp4_port_req;
struct ucred;
int sw_ring_new(struct sw *sw, const struct tp4_port_req *req, const int *files,
		int *fds, const struct ucred *cred);

/* closer.c */
int sw_closer_start(struct sw *sw, void (*fn)(struct sw *sw));
void sw_close_foreign(int fd);
bool sw_closer_busy(void);

/* listen.c */
int sw_listen(const char *path, unsigned int mode);
int sw_listen_ports(struct sw *sw, unsigned int mode, int group);

/* dev.c */
int sw_dev_add(struct sw *sw, const char *spec, char *why, size_t len);
void sw_dev_retry(struct sw *sw);

/* offload.c */
bool sw_meta_ok(const struct tpacket4_meta *meta, u32 len);
void sw_meta_copy(struct tpacket4_meta *to, const struct tpacket4_meta *from,
		  u32 len);
bool sw_offload(struct sw_port *out, const struct sw_packet *pkt, u32 *at);
u32 sw_segments(const struct sw_packet *pkt);

/* mirror.c */
int sw_mirror_open(const char *path);
int sw_mirror_start(struct sw_port *port, int fd, int waiter);
void sw_mirror_stop(struct sw_port *port, int waiter);
void sw_mirror_finish(void);
void sw_mirror_packet(struct sw_port *port, const struct sw_packet *pkt);
void sw_mirror_flush(struct sw_mirror *mirror);
u64 sw_mirror_lost(const struct sw_mirror *mirror);

/* show.c */
void sw_show_ports(struct sw *sw, FILE *reply);
void sw_show_counters(struct sw *sw, struct sw_port *port, FILE *reply);
void sw_show_macs(struct sw *sw, FILE *reply);
void sw_show_quotas(struct sw *sw, FILE *reply);

/* config.c */
struct sw_port *sw_config_port(struct sw *sw, const char *spec);
int sw_config_read(struct sw *sw);
void sw_config_reload(struct sw *sw);

/* ctl.c */
void sw_commands_print(FILE *file);
int sw_listen_ctl(struct sw *sw, const char *path);
int sw_command(struct sw *sw, char *line, FILE *reply);

/* client.c */
int sw_ctl_main(int argc, char **argv);

/* The limits of a user */
static inline const struct sw_quota *sw_user_quota(const struct sw *sw,
						   const struct sw_user *user)
{
	return user->own ? &user->max : &sw->each;
}

/* The second half of a descriptor as one word */
typedef u64 __attribute__((__may_alias__)) sw_word;

static inline sw_word *sw_word_of(const struct tpacket4_desc *d)
{
	return (sw_word *)(uintptr_t)&d->len;
}

/* Does a port have a VLAN? 0 is that of the ports that have none. */
static inline bool sw_vlan_has(const struct sw_port *port, u16 vid)
{
	return likely(port->untagged == vid) ||
	       (port->trunk && port->trunk[vid / 64] >> vid % 64 & 1);
}

/* Is a packet one that the receiver cannot take as it is? */
static inline bool sw_needs_offload(const struct sw_port *out,
				    const struct sw_packet *pkt)
{
	return unlikely(pkt->meta) && !out->meta &&
	       (pkt->meta->flags & (TP4_META_CSUM | TP4_META_GSO));
}

/* Does the metadata of a packet from a device ask for more than to send it? */
static inline bool sw_asks_offload(const struct sw_frag *f)
{
	const struct tpacket4_meta *meta = (const void *)(f->data - f->offset);

	return (f->flags & TP4_META) &&
	       (meta->flags & (TP4_META_CSUM | TP4_META_GSO));
}

/* Put a port on the list of those to flush. */
static inline void sw_mark_dirty(struct sw_port *port)
{
	if (!port->dirty) {
		port->dirty = true;
		port->sw->dirty[port->sw->nr_dirty++] = port;
	}
}

/* Put a port on the list of those whose program is to be woken up. */
static inline void sw_mark_waking(struct sw_port *port)
{
	if (!port->waking) {
		port->waking = true;
		port->sw->waking[port->sw->nr_waking++] = port;
	}
}

/* The bytes of frames */
static inline u64 sw_bytes(const struct sw_frag *frag, unsigned int n)
{
	u64 bytes = 0;

	while (n--)
		bytes += frag++->len;
	return bytes;
}

/* Does sw_copy_short() copy a frame of this length? */
static inline bool sw_is_short(u32 len)
{
	return len - 32 <= 32;
}

/* Copy a short frame in two halves that overlap, which takes no loop. */
static inline void sw_copy_short(u8 *to, const u8 *from, u32 len)
{
	memcpy(to, from, 32);
	to += len;
	from += len;
	memcpy(to - 32, from - 32, 32);
}

/* Copy a frame, and not a byte more: what is behind it is not the receiver's. */
static inline void sw_copy(u8 *to, const u8 *from, u32 len)
{
	if (likely(sw_is_short(len)))
		sw_copy_short(to, from, len);
	else
		memcpy(to, from, len);
}

#endif /* __TPSWITCH_H */
