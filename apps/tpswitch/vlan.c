// SPDX-License-Identifier: GPL-2.0
/*
 * VLANs: access ports have one, whose frames have no tag there; trunks have several,
 * with tags, and perhaps a native one without. A port without VLANs exchanges frames,
 * with tags or without, with ports of its kind.
 *
 * A tag that is removed must not uncover another one, which the receiver would take
 * for that of the frame: no station may choose its VLAN.
 */

#include <errno.h>
#include <stdlib.h>

#include "tpswitch.h"

#define TAG		4		/* bytes of a tag */
#define NO_VLAN		0xfff		/* reserved */
#define WORDS		((NO_VLAN + 1) / 64)

static bool is_tag(u16 type)
{
	return type == ETH_P_8021Q || type == ETH_P_8021AD;
}

static u16 get16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static void put16(u8 *p, u16 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

/* Can all that the metadata points to be moved by a tag's length? */
static bool movable(const struct tpacket4_meta *meta, u32 head)
{
	if (!(meta->flags & TP4_META_CSUM))
		return true;
	if (meta->csum_start < head || meta->csum_start > 0xffff - TAG)
		return false;
	return !(meta->flags & TP4_META_TUNNEL) || meta->inner_start >= head;
}

/**
 * sw_vlan_input - find the VLAN of a packet
 * @in: port with VLANs that it comes from
 * @pkt: packet; its vlan is set
 * @vlan: filled in
 *
 * Return: false if it must not come from there, which is counted.
 */
bool sw_vlan_input(struct sw_port *in, struct sw_packet *pkt, struct sw_vlan *vlan)
{
	const struct sw_frag *f = pkt->frag;
	u16 vid = 0;

	/* A program can change it at any time: only this copy counts. */
	memcpy(vlan->head, f->data, ETH_HLEN);
	__asm__ __volatile__("" ::: "memory");
	vlan->tag = 0;
	vlan->tci = 0;
	vlan->type = get16(vlan->head + 12);
	if (vlan->type == ETH_P_8021Q) {
		if (f->len < ETH_HLEN + TAG)
			goto refuse;
		memcpy(vlan->head + ETH_HLEN, f->data + ETH_HLEN, TAG);
		__asm__ __volatile__("" ::: "memory");
		vlan->tag = TAG;
		vlan->tci = get16(vlan->head + 14);
		vlan->type = get16(vlan->head + 16);
		vid = vlan->tci & 0xfff;
	} else if (is_tag(vlan->type)) {
		goto refuse;
	}
	if (vid) {
		if (!in->trunk || !sw_vlan_has(in, vid))
			goto refuse;
	} else {
		/* A tag with a priority only does not count. */
		vid = in->untagged;
		if (vid == SW_NO_VLAN || (vlan->tag && is_tag(vlan->type)))
			goto refuse;
	}
	vlan->vid = vid;
	if (pkt->meta && !movable(pkt->meta, ETH_HLEN + vlan->tag)) {
		in->count.in_errors++;
		return false;
	}
	pkt->vlan = vlan;
	return true;
refuse:
	in->count.in_vlan++;
	return false;
}

/* Change metadata as the tag changes. */
static void change_meta(struct tpacket4_meta *meta, int more, bool tagged, u16 tci)
{
	meta->csum_start += more;
	meta->inner_start += more;
	if (meta->wire_len)
		meta->wire_len += more;
	meta->flags &= ~TP4_META_RX_VLAN;
	if (tagged)
		meta->flags |= TP4_META_RX_VLAN;
	meta->vlan_tci = tagged ? tci : 0;
	meta->vlan_tpid = tagged ? ETH_P_8021Q : 0;
}

/* Write the header of a packet with its new tag, if it has one; return its length. */
static u32 write_head(u8 *to, const struct sw_vlan *vlan, bool tagged, u16 tci)
{
	u32 len = 12;

	memcpy(to, vlan->head, len);
	if (tagged) {
		put16(to + len, ETH_P_8021Q);
		put16(to + len + 2, tci);
		len += TAG;
	}
	put16(to + len, vlan->type);
	return len + 2;
}

/* Change the tag where the packet is, in a frame of the switch; false: no room */
static bool change_frame(struct sw_packet *pkt, int more, bool tagged, u16 tci,
			 struct sw_vlan_packet *p)
{
	struct sw_frag *f = pkt->frag;
	u8 *frame = (u8 *)f->data - f->offset;
	u32 least = f->flags & TP4_META ? sizeof(struct tpacket4_meta) : 0;

	if ((int)f->offset - more < (int)least)
		return false;
	f->data -= more;
	f->offset -= more;
	f->len += more;
	pkt->len += more;
	write_head(frame + f->offset, pkt->vlan, tagged, tci);
	if (pkt->meta) {
		memcpy(frame, &p->meta, sizeof(p->meta));
		pkt->meta = &p->meta;
	}
	return true;
}

/**
 * sw_vlan_output - give a packet the tag that it has at a port
 * @out: port that it is for, which has its VLAN
 * @pkt: packet with a VLAN
 * @p: memory for a packet with another tag
 *
 * Return: @pkt, or the packet in @p, which is to be copied, or NULL: it cannot be sent.
 */
struct sw_packet *sw_vlan_output(const struct sw_port *out, struct sw_packet *pkt,
				 struct sw_vlan_packet *p)
{
	const struct sw_vlan *vlan = pkt->vlan;
	bool tagged = vlan->vid != out->untagged;
	u16 tci = (vlan->tci & 0xf000) | vlan->vid;
	int more = (tagged ? TAG : 0) - vlan->tag;
	struct sw_frag *f = pkt->frag;
	u32 skip;

	if (!tagged && is_tag(vlan->type))
		return NULL;
	/* What is in frames of the switch stays as it was seen. */
	if (pkt->is_dev && !more && (!tagged || tci == vlan->tci))
		return pkt;
	if (pkt->len + more > SW_LEN)
		return NULL;
	if (pkt->meta) {
		p->meta = *pkt->meta;
		change_meta(&p->meta, more, tagged, tci);
	}
	/* A part of a packet with offloads may come later, from the same frames. */
	if (pkt->is_dev && pkt->from && out->is_dev && !sw_needs_offload(out, pkt) &&
	    change_frame(pkt, more, tagged, tci, p))
		return pkt;

	skip = ETH_HLEN + vlan->tag;
	p->frag[0] = (struct sw_frag){ .data = p->head };
	p->frag[0].len = write_head(p->head, vlan, tagged, tci);
	memcpy(p->frag + 1, f, pkt->nr * sizeof(*f));
	p->frag[1].data += skip;
	p->frag[1].len -= skip;
	p->pkt = (struct sw_packet){
		.frag = p->frag, .nr = pkt->nr + 1, .len = pkt->len + more,
		.meta = pkt->meta ? &p->meta : NULL,
	};
	/* Frames are not empty. */
	if (!p->frag[1].len) {
		memmove(p->frag + 1, p->frag + 2,
			(pkt->nr - 1) * sizeof(*f));
		p->pkt.nr--;
	}
	return &p->pkt;
}

/* Parse the number of a VLAN, up to one of @ends; return what is there, or NULL. */
static char *parse_vid(char *text, const char *ends, u16 *vid)
{
	char *end = text + strcspn(text, ends), was = *end;
	u64 n;

	*end = '\0';
	if (!sw_number(text, 1, NO_VLAN - 1, &n))
		return NULL;
	*end = was;
	*vid = n;
	return end;
}

/* Parse N[-M][,N[-M]]...; false: it is wrong. */
static bool parse_list(char *text, u64 *set)
{
	u16 first, last;

	do {
		text = parse_vid(text, ",-", &first);
		if (!text)
			return false;
		last = first;
		if (*text == '-') {
			text = parse_vid(text + 1, ",", &last);
			if (!text || last < first)
				return false;
		}
		for (; first <= last; first++)
			set[first / 64] |= 1ull << first % 64;
	} while (*text++);
	return true;
}

/* Set the VLANs of a port, which becomes the owner of @trunk. */
static void set(struct sw_port *port, u16 untagged, u64 *trunk)
{
	bool same = port->untagged == untagged && !port->trunk == !trunk &&
		    (!trunk || !memcmp(port->trunk, trunk, WORDS * sizeof(*trunk)));

	free(port->trunk);
	port->trunk = trunk;
	port->untagged = untagged;
	sw_port_set_special(port);
	/* They were learned in VLANs that it may not have any more. */
	if (!same)
		sw_forget(port->sw, port, false);
}

/**
 * sw_vlan_access - make a port an access port, or one without VLANs
 * @port: port
 * @text: the number of its VLAN, or off
 *
 * Return: 0, or -EINVAL.
 */
int sw_vlan_access(struct sw_port *port, char *text)
{
	u16 vid = 0;

	if (strcmp(text, "off") && !parse_vid(text, "", &vid))
		return -EINVAL;
	set(port, vid, NULL);
	return 0;
}

/**
 * sw_vlan_trunk - make a port a trunk
 * @port: port
 * @text: its VLANs, as 10,20-29
 * @native: the one without tags, or NULL
 *
 * Return: 0, or -errno: %EINVAL if it is not right.
 */
int sw_vlan_trunk(struct sw_port *port, char *text, char *native)
{
	u64 *trunk = calloc(WORDS, sizeof(*trunk));
	u16 vid = SW_NO_VLAN;

	if (!trunk)
		return -ENOMEM;
	if (!parse_list(text, trunk) || (native && !parse_vid(native, "", &vid))) {
		free(trunk);
		return -EINVAL;
	}
	if (native)
		trunk[vid / 64] |= 1ull << vid % 64;
	set(port, vid, trunk);
	return 0;
}

/**
 * sw_vlan_list - print the VLANs of a trunk, as 10,20-29
 * @port: trunk
 * @file: where to
 */
void sw_vlan_list(const struct sw_port *port, FILE *file)
{
	const char *comma = "";
	u16 vid, last;

	for (vid = 1; vid < NO_VLAN; vid = last + 1) {
		last = vid;
		if (!sw_vlan_has(port, vid))
			continue;
		while (last + 1 < NO_VLAN && sw_vlan_has(port, last + 1))
			last++;
		fprintf(file, "%s%u", comma, vid);
		if (last > vid)
			fprintf(file, "-%u", last);
		comma = ",";
	}
}
