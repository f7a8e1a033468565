// SPDX-License-Identifier: GPL-2.0
/* tpgen: numbers, rates, addresses and ranges of the command line */
#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>

#include "tpgen.h"

/* Simple IMIX: 7 small, 4 medium and 1 large packet, without CRC */
static const __u16 imix[] = {
	60, 590, 60, 60, 590, 60, 1514, 60, 590, 60, 60, 590,
};

/* Factor of a suffix of @s, which is moved behind it. */
static __u64 suffix(const char **s)
{
	static const char names[] = "kMG";
	__u64 factor = 1;
	const char *name;

	for (name = names; *name; name++) {
		factor *= 1000;
		if ((**s | 0x20) == (*name | 0x20)) {
			(*s)++;
			return factor;
		}
	}
	return 1;
}

/* A decimal or hexadecimal number of which @s is moved to the end. */
static bool number(const char **s, __u64 *n)
{
	char *end;

	if (**s < '0' || **s > '9')
		return false;
	errno = 0;
	*n = strtoull(*s, &end, 0);
	*s = end;
	return !errno;
}

/**
 * parse_number - parse an integer, with a suffix k, M or G
 * @what: name of the option
 * @s: argument
 * @min: lowest value
 * @max: highest value
 *
 * Ends the program if @s is not valid.
 *
 * Return: the number.
 */
__u64 parse_number(const char *what, const char *s, __u64 min, __u64 max)
{
	const char *p = s;
	__u64 n, factor;

	if (!number(&p, &n))
		goto bad;
	factor = suffix(&p);
	if (*p || n > max / factor || n * factor < min)
		goto bad;
	return n * factor;
bad:
	errx(2, "%s: '%s' is not a number from %llu to %llu", what, s, min,
	     max);
}

/**
 * parse_decimal - parse a decimal fraction
 * @what: name of the option
 * @s: argument
 * @min: lowest value
 * @max: highest value
 *
 * Ends the program if @s is not valid.
 *
 * Return: the number.
 */
double parse_decimal(const char *what, const char *s, double min, double max)
{
	char *end;
	double d = strtod(s, &end);

	if (end == s || *end || !(d >= min && d <= max))
		errx(2, "%s: '%s' is not a number from %g to %g", what, s, min,
		     max);
	return d;
}

/**
 * parse_range - parse a number or two with a hyphen between them
 * @what: name of the option
 * @s: argument
 * @min: lowest value
 * @max: highest value
 * @r: set to the range
 *
 * Ends the program if @s is not valid.
 */
void parse_range(const char *what, const char *s, __u64 min, __u64 max,
		 struct range *r)
{
	__u64 from, to;
	const char *p = s;

	if (!number(&p, &from))
		goto bad;
	to = from;
	if (*p == '-') {
		p++;
		if (!number(&p, &to))
			goto bad;
	}
	if (*p || from < min || to > max || from > to)
		goto bad;
	r->min = from;
	r->max = to;
	return;
bad:
	errx(2, "%s: '%s' is not a number or range from %llu to %llu", what, s,
	     min, max);
}

/* Put sizes in turn, so that those of each kind are as far apart as they can. */
static void mix_sizes(struct packet_spec *pkt, const __u64 *size,
		      const __u64 *share, unsigned int nr)
{
	__s64 credit[MAX_SIZES] = { 0 };
	unsigned int i, j, best;

	for (i = 0; i < pkt->nr_sizes; i++) {
		for (j = 0, best = 0; j < nr; j++) {
			credit[j] += share[j];
			if (credit[j] > credit[best])
				best = j;
		}
		credit[best] -= pkt->nr_sizes;
		pkt->sizes[i] = size[best];
	}
}

/* Parse SIZE:SHARE,...; returns false if @s is something else. */
static bool parse_mix(const char *s, struct packet_spec *pkt)
{
	__u64 size[MAX_SIZES], share[MAX_SIZES], sum = 0;
	unsigned int nr = 0;

	pkt->size = (struct range){ UINT32_MAX, 0, false };
	do {
		if (nr == MAX_SIZES || !number(&s, &size[nr]) ||
		    *s++ != ':' || !number(&s, &share[nr]) ||
		    size[nr] < ETH_HLEN || size[nr] > UINT16_MAX ||
		    !share[nr] || share[nr] > MAX_SIZES)
			return false;
		if (size[nr] < pkt->size.min)
			pkt->size.min = size[nr];
		if (size[nr] > pkt->size.max)
			pkt->size.max = size[nr];
		sum += share[nr++];
	} while (*s++ == ',');
	if (s[-1] || sum > MAX_SIZES)
		return false;
	pkt->nr_sizes = sum;
	mix_sizes(pkt, size, share, nr);
	return true;
}

/**
 * parse_lengths - parse a list of sizes, or "rfc2544"
 * @s: argument
 * @lengths: set to the sizes, at most %MAX_LENGTHS
 *
 * Ends the program if @s is not valid.
 *
 * Return: their number.
 */
unsigned int parse_lengths(const char *s, __u16 *lengths)
{
	/* RFC 2544, section 9.1, without CRC */
	static const __u16 rfc2544[] = { 60, 124, 252, 508, 1020, 1276, 1514 };
	const char *p = s;
	unsigned int nr = 0;
	__u64 size;

	if (!strcmp(s, "rfc2544")) {
		memcpy(lengths, rfc2544, sizeof(rfc2544));
		return sizeof(rfc2544) / sizeof(*rfc2544);
	}
	do {
		if (nr == MAX_LENGTHS || !number(&p, &size) ||
		    size < ETH_HLEN || size > UINT16_MAX)
			goto bad;
		lengths[nr++] = size;
	} while (*p++ == ',');
	if (!p[-1])
		return nr;
bad:
	errx(2, "length: '%s' is not rfc2544, or a list of sizes from %d to %d",
	     s, ETH_HLEN, UINT16_MAX);
}

/**
 * parse_sizes - parse a number, a range, a mix of sizes or "imix"
 * @s: argument
 * @pkt: its sizes are set
 *
 * Ends the program if @s is not valid.
 */
void parse_sizes(const char *s, struct packet_spec *pkt)
{
	pkt->nr_sizes = 0;
	pkt->imix = !strcmp(s, "imix");
	if (pkt->imix) {
		pkt->size = (struct range){ MIN_FRAME, 1514, false };
		pkt->nr_sizes = sizeof(imix) / sizeof(*imix);
		memcpy(pkt->sizes, imix, sizeof(imix));
	} else if (!strchr(s, ':')) {
		parse_range("length", s, ETH_HLEN, UINT16_MAX, &pkt->size);
	} else if (!parse_mix(s, pkt)) {
		errx(2, "length: '%s' is not a list of SIZE:SHARE, with sizes from %d to %d and shares of %d together",
		     s, ETH_HLEN, UINT16_MAX, MAX_SIZES);
	}
}

/* Parse 0xHEX; returns the number of bytes, or 0 if @s is something else. */
static size_t parse_pattern(const char *s, __u8 *bytes)
{
	size_t len = strlen(s), i;
	unsigned int byte;

	if (strncmp(s, "0x", 2) || s[2 + strspn(s + 2, "0123456789abcdefABCDEF")] ||
	    len & 1 || len > 2 * UINT16_MAX)
		return 0;
	for (i = 0; i < len / 2 - 1; i++) {
		if (sscanf(s + 2 + 2 * i, "%2x", &byte) != 1)
			return 0;
		bytes[i] = byte;
	}
	return i;
}

static size_t read_payload(const char *name, __u8 *bytes)
{
	FILE *f = fopen(name, "re");
	size_t n;

	if (!f)
		err(2, "payload: %s", name);
	n = fread(bytes, 1, UINT16_MAX, f);
	if (ferror(f))
		err(2, "payload: %s", name);
	fclose(f);
	return n;
}

/**
 * parse_payload - parse 0xHEX, or read a file
 * @s: argument
 * @pkt: its payload is set to these bytes, again and again
 *
 * Ends the program if @s is not valid.
 */
void parse_payload(const char *s, struct packet_spec *pkt)
{
	static struct fill fill;
	size_t i, n = parse_pattern(s, fill.bytes);
	__u32 sum = 0, odd;

	if (!n && !strncmp(s, "0x", 2))
		errx(2, "payload: '%s' is not 0x and pairs of digits", s);
	if (!n)
		n = read_payload(s, fill.bytes);
	if (!n)
		errx(2, "payload: %s is empty", s);
	for (i = n; i < sizeof(fill.bytes); i++)
		fill.bytes[i] = fill.bytes[i - n];
	for (i = 0; i < sizeof(fill.bytes); i++) {
		/* Of the bytes before this one */
		fill.sum[i] = sum;
		odd = i & 1;
		sum += odd ? fill.bytes[i] : fill.bytes[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	pkt->fill = &fill;
}

/* Set the range of the low 32 bits, of which the first @len bytes are not. */
static bool set_low(struct address *a, const __u8 *to, unsigned int len)
{
	__be32 low;

	if (memcmp(a->bytes, to, len))
		return false;
	memcpy(&low, a->bytes + len, sizeof(low));
	a->low.min = be32toh(low);
	memcpy(&low, to + len, sizeof(low));
	a->low.max = be32toh(low);
	return a->low.min <= a->low.max;
}

static bool one_mac(const char *s, __u8 *mac)
{
	unsigned int b[6], i;
	int end = 0;

	if (sscanf(s, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3],
		   &b[4], &b[5], &end) != 6 || s[end])
		return false;
	for (i = 0; i < 6; i++)
		mac[i] = b[i];
	return true;
}

/**
 * parse_mac - parse a MAC address, or two with a hyphen between them
 * @what: name of the option
 * @s: argument
 * @a: set to the addresses
 *
 * Ends the program if @s is not valid, or if the addresses differ in their
 * first two bytes.
 */
void parse_mac(const char *what, const char *s, struct address *a)
{
	char first[24] = "";
	const char *hyphen = strchr(s, '-');
	size_t len = hyphen ? (size_t)(hyphen - s) : strlen(s);
	__u8 to[6];

	if (len >= sizeof(first))
		goto bad;
	memcpy(first, s, len);
	if (!one_mac(first, a->bytes) ||
	    !one_mac(hyphen ? hyphen + 1 : first, to) || !set_low(a, to, 2))
		goto bad;
	return;
bad:
	errx(2, "%s: '%s' is not a MAC address or a range of them that differ in the last four bytes",
	     what, s);
}

/* Split off what is behind a separator; returns it, or NULL. */
static char *split(char *s, char separator)
{
	char *p = strchr(s, separator);

	if (p)
		*p++ = 0;
	return p;
}

/**
 * parse_ip - parse ADDRESS[-ADDRESS][:PORT[-PORT]]
 * @what: name of the option
 * @s: argument, which is overwritten; an IPv6 address with a port is in
 *     brackets: [ADDRESS[-ADDRESS]]:PORT
 * @a: set to the addresses
 * @port: set to the ports, if there are any
 *
 * Ends the program if @s is not valid, or if IPv6 addresses differ in more than
 * the last four bytes.
 *
 * Return: %AF_INET or %AF_INET6.
 */
int parse_ip(const char *what, char *s, struct address *a, struct range *port)
{
	char *ports = NULL, *last;
	int family = AF_INET;
	__u8 to[16];

	if (*s == '[') {
		family = AF_INET6;
		ports = split(++s, ']');
		if (!ports || (*ports && *ports++ != ':'))
			errx(2, "%s: '[%s' is not [ADDRESS]:PORT", what, s);
		if (!*ports)
			ports = NULL;
	} else if (strchr(s, ':') && strchr(s, ':') != strrchr(s, ':')) {
		family = AF_INET6;
	} else {
		ports = split(s, ':');
	}
	last = split(s, '-');
	if (inet_pton(family, s, a->bytes) != 1)
		errx(2, "%s: '%s' is not an address", what, s);
	memcpy(to, a->bytes, sizeof(to));
	if (last && inet_pton(family, last, to) != 1)
		errx(2, "%s: '%s' is not an address of the same kind", what,
		     last);
	if (!set_low(a, to, family == AF_INET ? 0 : 12))
		errx(2, "%s: not a range of addresses that differ in the last four bytes",
		     what);
	if (ports)
		parse_range(what, ports, 0, 65535, port);
	return family;
}

/**
 * parse_rate - parse a rate
 * @s: a number with a suffix k, M or G, and: nothing or pps (packets), bps
 *     (bits of the frames), bpsl1 (bits on the wire), or % (of the link)
 * @rate: set to the rate
 *
 * Ends the program if @s is not valid.
 */
void parse_rate(const char *s, struct rate *rate)
{
	static const struct {
		const char *name;
		enum rate_unit unit;
	} units[] = {
		{ "", RATE_PACKETS }, { "pps", RATE_PACKETS },
		{ "bps", RATE_BITS }, { "bit", RATE_BITS },
		{ "bpsl1", RATE_WIRE_BITS }, { "%", RATE_PERCENT },
	};
	const char *p;
	unsigned int i;
	char *end;

	rate->given = true;
	if (!strcmp(s, "max")) {
		rate->unit = RATE_MAX;
		return;
	}
	rate->value = strtod(s, &end);
	p = end;
	if (p == s || !(rate->value > 0) || rate->value > 1e15)
		goto bad;
	rate->value *= suffix(&p);
	for (i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (!strcmp(p, units[i].name)) {
			rate->unit = units[i].unit;
			return;
		}
	}
bad:
	errx(2, "rate: '%s' is not a rate such as 10k, 1.5Mpps, 500Mbps, 1Gbpsl1 or 10%%",
	     s);
}

/**
 * parse_list - parse numbers and ranges with commas between them
 * @what: name of the option
 * @s: argument, such as 0,2-3
 * @list: set to the numbers
 * @max: room in the list
 *
 * Ends the program if @s is not valid.
 *
 * Return: how many numbers there are.
 */
unsigned int parse_list(const char *what, const char *s, unsigned int *list,
			unsigned int max)
{
	unsigned int n = 0;
	struct range r;
	char item[32];

	for (;;) {
		size_t len = strcspn(s, ",");

		if (len >= sizeof(item))
			errx(2, "%s: '%s' is not a list of numbers", what, s);
		memcpy(item, s, len);
		item[len] = 0;
		parse_range(what, item, 0, 65534, &r);
		for (; r.min <= r.max; r.min++) {
			if (n == max)
				errx(2, "%s: more than %u", what, max);
			list[n++] = r.min;
		}
		if (!s[len])
			return n;
		s += len + 1;
	}
}
