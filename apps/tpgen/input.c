// SPDX-License-Identifier: GPL-2.0
/*
 * tpgen: reading a file of any kind as a whole
 *
 * The content is copied, as another program may cut the file meanwhile, and a
 * pipe has no other way. Compressed files pass through the program that is made
 * for them.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "input.h"
#include "tpgen.h"

#define CHUNK		(1 << 16)

extern char **environ;

/* What compressed files start with */
static const struct format {
	const char *program;
	unsigned int len;
	__u8 magic[6];
} formats[] = {
	{ "gzip", 2, { 0x1f, 0x8b } },
	{ "zstd", 4, { 0x28, 0xb5, 0x2f, 0xfd } },
	{ "xz", 6, { 0xfd, '7', 'z', 'X', 'Z', 0 } },
	{ "bzip2", 3, { 'B', 'Z', 'h' } },
	{ "lz4", 4, { 0x04, 0x22, 0x4d, 0x18 } },
};

static void read_all(struct input *in, int fd, const char *name)
{
	size_t room = 0;
	ssize_t n;

	in->data = NULL;
	in->len = 0;
	for (;;) {
		if (room - in->len < CHUNK) {
			room = room ? 2 * room : 4 * CHUNK;
			in->data = realloc(in->data, room);
			if (!in->data)
				err(1, "%s", name);
		}
		n = read(fd, in->data + in->len, room - in->len);
		if (!n)
			return;
		if (n > 0)
			in->len += n;
		else if (errno != EINTR)
			err(1, "%s", name);
	}
}

static const struct format *find_format(const struct input *in)
{
	const struct format *f = formats;
	unsigned int i;

	for (i = 0; i < sizeof(formats) / sizeof(*formats); i++, f++)
		if (in->len >= f->len && !memcmp(in->data, f->magic, f->len))
			return f;
	return NULL;
}

/* A file in memory, from which another program can read the content */
static int memory_file(const struct input *in, const char *name)
{
	int fd = memfd_create("tpgen", MFD_CLOEXEC);
	size_t at = 0;
	ssize_t n;

	while (fd >= 0 && at < in->len) {
		n = write(fd, in->data + at, in->len - at);
		if (n < 0)
			err(1, "%s", name);
		at += n;
	}
	if (fd < 0 || lseek(fd, 0, SEEK_SET))
		err(1, "%s", name);
	return fd;
}

static void decompress(struct input *in, const char *program, const char *name)
{
	char *const argv[] = { (char *)program, "-dc", NULL };
	int from = memory_file(in, name), to[2], status;
	posix_spawn_file_actions_t actions;
	pid_t pid;

	if (pipe2(to, O_CLOEXEC))
		err(1, "pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, from, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, to[1], STDOUT_FILENO);
	errno = posix_spawnp(&pid, program, &actions, NULL, argv, environ);
	if (errno)
		err(1, "%s is compressed: %s", name, program);
	posix_spawn_file_actions_destroy(&actions);
	close(to[1]);
	close(from);
	free(in->data);
	read_all(in, to[0], name);
	close(to[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		warnx("%s: %s has failed, so that the end may be missing", name,
		      program);
}

/**
 * input_read - read all of a file
 * @in: set to the content, decompressed if it is compressed; free it with
 *      input_free()
 * @name: name of the file, or "-": standard input
 *
 * Ends the program if it fails.
 */
void input_read(struct input *in, const char *name)
{
	const bool standard = !strcmp(name, "-");
	const struct format *f;
	int fd = STDIN_FILENO;

	if (standard) {
		name = "standard input";
		if (isatty(fd))
			errx(1, "%s is a terminal", name);
	} else {
		fd = open(name, O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0)
		err(1, "%s", name);
	read_all(in, fd, name);
	if (!standard)
		close(fd);
	f = find_format(in);
	if (f)
		decompress(in, f->program, name);
}

/**
 * input_free - free the content of a file
 * @in: content, or nothing
 */
void input_free(struct input *in)
{
	free(in->data);
	in->data = NULL;
	in->len = 0;
}
