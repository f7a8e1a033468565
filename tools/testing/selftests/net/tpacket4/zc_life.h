/* SPDX-License-Identifier: GPL-2.0 */
/* The fixture of tests in which one of two ends under load comes or goes */
#ifndef _TPACKET4_ZC_LIFE_H
#define _TPACKET4_ZC_LIFE_H

#include "zc_load.h"

FIXTURE(life) {
	struct pair p;
};

FIXTURE_SETUP(life)
{
	pair_open(_metadata, &self->p);
}

FIXTURE_TEARDOWN(life)
{
	pair_close(&self->p);
}

#endif
