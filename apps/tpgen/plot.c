// SPDX-License-Identifier: GPL-2.0
/* tpgen: rate and latency over time as SVG */
#include <math.h>

#include "tpgen.h"

#define WIDTH		720
#define HEIGHT		220		/* of one panel */
#define LEFT		80
#define RIGHT		120
#define TOP		30
#define BOTTOM		40

/**
 * struct panel - one diagram
 * @f: file
 * @r: run
 * @y: its upper edge
 * @top: value at the upper end of the axis
 */
struct panel {
	FILE *f;
	const struct run *r;
	unsigned int y;
	double top;
};

/* The next number of the form 1, 2 or 5 times a power of ten */
static double round_up(double value)
{
	static const double steps[] = { 1, 2, 5, 10 };
	double power;
	unsigned int i;

	if (!(value > 0))
		return 1;
	power = pow(10, floor(log10(value)));
	for (i = 0; steps[i] * power < value && i < 3; i++)
		;
	return steps[i] * power;
}

static double x_of(const struct panel *p, double seconds)
{
	double end = p->r->sample[p->r->nr_samples - 1].at;

	return LEFT + seconds / end * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct panel *p, double value)
{
	double h = HEIGHT - TOP - BOTTOM;

	return p->y + TOP + h - value / p->top * h;
}

static void axes(const struct panel *p, const char *title, double unit)
{
	const double end = p->r->sample[p->r->nr_samples - 1].at;
	unsigned int i;

	fprintf(p->f, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">%s</text>\n",
		LEFT, p->y + TOP - 12, title);
	for (i = 0; i <= 4; i++) {
		double value = p->top * i / 4, y = y_of(p, value);

		fprintf(p->f, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n",
			LEFT, y, WIDTH - RIGHT);
		fprintf(p->f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
			LEFT - 6, y + 4, value / unit);
	}
	for (i = 0; i <= 4; i++)
		fprintf(p->f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.3g s</text>\n",
			x_of(p, end * i / 4), y_of(p, 0) + 18, end * i / 4);
}

/* One line, of the double or __u64 that each sample has at an offset */
static void line(const struct panel *p, size_t offset, bool whole,
		 const char *name, const char *style, unsigned int nr)
{
	const struct run *r = p->r;
	unsigned int i;

	fprintf(p->f, "<polyline fill=\"none\" stroke=\"black\" %s points=\"",
		style);
	for (i = 0; i < r->nr_samples; i++) {
		const char *at = (const char *)&r->sample[i] + offset;
		double value = whole ? *(const __u64 *)at :
				       *(const double *)at;

		fprintf(p->f, "%.1f,%.1f ", x_of(p, r->sample[i].at),
			y_of(p, value));
	}
	fprintf(p->f, "\"/>\n<path d=\"M%d %dh24\" stroke=\"black\" %s/>\n",
		WIDTH - RIGHT + 10, p->y + TOP + 8 + nr * 18, style);
	fprintf(p->f, "<text x=\"%d\" y=\"%d\">%s</text>\n", WIDTH - RIGHT + 40,
		p->y + TOP + 12 + nr * 18, name);
}

static void rate_panel(struct panel *p)
{
	const struct run *r = p->r;
	double max = 0, unit = 1;
	const char *title = "packets per second";
	unsigned int i, nr = 0;

	for (i = 0; i < r->nr_samples; i++) {
		max = fmax(max, r->sample[i].tx_pps);
		max = fmax(max, r->sample[i].rx_pps);
	}
	p->top = round_up(max);
	if (p->top >= 1e6) {
		unit = 1e6;
		title = "million packets per second";
	} else if (p->top >= 1e3) {
		unit = 1e3;
		title = "thousand packets per second";
	}
	axes(p, title, unit);
	if (r->cfg->mode != MODE_RX)
		line(p, offsetof(struct sample, tx_pps), false, "sent", "",
		     nr++);
	if (r->cfg->mode != MODE_TX && r->cfg->mode != MODE_REPLAY)
		line(p, offsetof(struct sample, rx_pps), false, "received",
		     "stroke-dasharray=\"5 3\"", nr);
}

static bool has_latency(const struct run *r)
{
	unsigned int i;

	for (i = 0; i < r->nr_samples; i++)
		if (r->sample[i].latencies)
			return true;
	return false;
}

static void latency_panel(struct panel *p)
{
	double max = 0;
	unsigned int i;

	for (i = 0; i < p->r->nr_samples; i++)
		max = fmax(max, p->r->sample[i].max);
	p->top = round_up(max);
	axes(p, p->r->cfg->mode == MODE_PING ? "round trip, microseconds" :
	     "latency, microseconds", 1e3);
	line(p, offsetof(struct sample, p50), true, "median", "", 0);
	line(p, offsetof(struct sample, p99), true, "99 %",
	     "stroke-dasharray=\"5 3\"", 1);
	line(p, offsetof(struct sample, max), true, "highest",
	     "stroke-dasharray=\"1 3\"", 2);
}

/**
 * plot_write - write the plot
 * @r: run that has ended
 * @f: file
 */
void plot_write(struct run *r, FILE *f)
{
	struct panel p = { .f = f, .r = r };
	const bool latency = has_latency(r);

	fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n",
		WIDTH, HEIGHT * (latency ? 2 : 1));
	fprintf(f, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
	if (r->nr_samples) {
		rate_panel(&p);
		p.y = HEIGHT;
		if (latency)
			latency_panel(&p);
	} else {
		fprintf(f, "<text x=\"%d\" y=\"%d\">The run was shorter than an interval.</text>\n",
			LEFT, TOP);
	}
	fprintf(f, "</svg>\n");
}
