// SPDX-License-Identifier: GPL-2.0
/* The init of lab/run/vm's initrd: loads the modules of the root file system, and runs the init
 * that is there, as the kernel does itself where they are built in.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

static void load(const char *path)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		err(1, "%s", path);
	close(fd);
}

int main(void)
{
	/* The kernel makes these of its arguments. */
	char *init = getenv("vm_init"), *flags = getenv("vm_flags");
	char line[256];
	FILE *list;

	/* In the order in which they must be loaded */
	list = fopen("/modules", "r");
	if (!list || !init || !flags)
		errx(1, "no list of modules, or no arguments");
	while (fgets(line, sizeof(line), list)) {
		line[strcspn(line, "\n")] = 0;
		load(line);
	}
	fclose(list);
	if (mount("root", "/root", "9p", MS_RDONLY, flags) || chdir("/root") ||
	    mount(".", "/", NULL, MS_MOVE, NULL) || chroot("."))
		err(1, "the root file system");
	execl(init, init, NULL);
	err(1, "%s", init);
}
