/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: what a test may set while the machine runs
 *
 * Each knob is a property of the device, for -device and qom-set, and a
 * register at XL710_KNOB() that the hardware does not have, for a test inside
 * the guest. It is beyond what i40e maps, but not beyond resource0 of sysfs.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "trace.h"
#include "xl710.h"

static const struct {
    const char *name;
    int64_t value;
    int64_t min;
} knobs[XL710_KNOBS] = {
    /* ns from the tail's move to the first packets, and to each burst after */
    [KNOB_TX_DELAY] = { "tx-delay", 1000, 0 },
    /* packets in a burst: with the delay, 32 million packets a second */
    [KNOB_TX_BURST] = { "tx-burst", 32, 1 },
    /* 1: a packet without RS brings no interrupt about */
    [KNOB_RS_ONLY] = { "rs-only", 0, 0 },
    /* ns a queue takes to stop; i40e waits for 100000 at least */
    [KNOB_STOP_DELAY] = { "stop-delay", 20000, 0 },
    /* ns a PF reset takes; i40e waits for 200 ms at least */
    [KNOB_RESET_DELAY] = { "reset-delay", 10 * SCALE_MS, 0 },
    /* this queue does not stop, and goes on as if it were not asked to */
    [KNOB_STUCK_TX] = { "stuck-tx", -1, -1 },
    [KNOB_STUCK_RX] = { "stuck-rx", -1, -1 },
};

static void set(XL710State *s, unsigned knob, int64_t val)
{
    trace_xl710_knob(knobs[knob].name, val);
    s->knob[knob] = val;
    if (knob == KNOB_STUCK_TX && s->txq) {
        xl710_tx_unstick(s);
    } else if (knob == KNOB_STUCK_RX && s->rxq) {
        xl710_rx_unstick(s);
    }
}

uint32_t xl710_knob_read(XL710State *s, unsigned knob)
{
    return s->knob[knob];
}

/* A value that makes no sense changes nothing; -1 has 32 bits here */
void xl710_knob_write(XL710State *s, unsigned knob, uint32_t val)
{
    if (knobs[knob].min < 0 && val == UINT32_MAX) {
        set(s, knob, -1);
    } else if (val >= knobs[knob].min) {
        set(s, knob, val);
    }
}

static void get_prop(Object *obj, Visitor *v, const char *name, void *opaque,
                     Error **errp)
{
    visit_type_int64(v, name, &XL710(obj)->knob[(uintptr_t)opaque], errp);
}

static void set_prop(Object *obj, Visitor *v, const char *name, void *opaque,
                     Error **errp)
{
    uintptr_t knob = (uintptr_t)opaque;
    int64_t val;

    if (!visit_type_int64(v, name, &val, errp)) {
        return;
    }
    if (val < knobs[knob].min || val > UINT32_MAX) {
        error_setg(errp, "%s must be %" PRId64 " to %u", name,
                   knobs[knob].min, UINT32_MAX);
        return;
    }
    set(XL710(obj), knob, val);
}

void xl710_knobs_init(XL710State *s)
{
    uintptr_t i;

    for (i = 0; i < XL710_KNOBS; i++) {
        s->knob[i] = knobs[i].value;
        object_property_add(OBJECT(s), knobs[i].name, "int", get_prop, set_prop,
                            NULL, (void *)i);
    }
}
