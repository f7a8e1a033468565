/* SPDX-License-Identifier: GPL-2.0 */
/* tpgen: reading a file of any kind as a whole */
#ifndef TPGEN_INPUT_H
#define TPGEN_INPUT_H

#include <stddef.h>
#include <linux/types.h>

/**
 * struct input - content of a file
 * @data: the bytes, or NULL
 * @len: number of bytes
 */
struct input {
	__u8 *data;
	size_t len;
};

void input_read(struct input *in, const char *name);
void input_free(struct input *in);

#endif /* TPGEN_INPUT_H */
