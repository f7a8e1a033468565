// SPDX-License-Identifier: GPL-2.0
/* tpswitch: a switch between network devices and programs */

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tpswitch.h"

#define DEFAULT_PATH	"/run/tpswitch/port"

static struct sw sw = {
	.path = DEFAULT_PATH,
	.age = 300,
	.frames = 32768,
	.frame_size = 4096,
	.area_fd = -1,
	.ctl = -1,
	.file = -1,
	.each = { .ports = 16, .slots = 4096, .bytes = 64 << 20 },
	/* The rest of the ports is for devices. */
	.all = { .ports = 192, .slots = 1 << 20, .bytes = 1 << 30 },
};

static const struct option options[] = {
	{ "socket", required_argument, NULL, 'S' },
	{ "mode", required_argument, NULL, 'm' },
	{ "group", required_argument, NULL, 'g' },
	{ "config", required_argument, NULL, 'c' },
	{ "lookup", required_argument, NULL, 'l' },
	{ "age", required_argument, NULL, 'a' },
	{ "frames", required_argument, NULL, 'f' },
	{ "loop", required_argument, NULL, 'L' },
	{ "spin", required_argument, NULL, 's' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ }
};

static void usage(FILE *file)
{
	fprintf(file,
"usage: tpswitch [OPTION...] [PORT...]\n"
"       tpswitch ctl [-S PATH] [-j] COMMAND ...\n"
"A PORT is a network device, NAME, or zc:NAME[:FIRST[-LAST]] in zero-copy mode.\n"
"  -S, --socket PATH   programs connect there (" DEFAULT_PATH ")\n"
"  -m, --mode MODE     permissions of that socket, octal (0600)\n"
"  -g, --group GROUP   the group of that socket, whose mode is 0660 then\n"
"  -c, --config FILE   a file with commands of tpswitch ctl; SIGHUP reads it again\n"
"  -l, --lookup WHAT   learn (default), hub, hash or FILE.so\n"
"  -a, --age SECONDS   how long an address is known (300)\n"
"  -f, --frames N      frames of 4096 bytes for devices (32768)\n"
"  -L, --loop SECONDS  look for loops so often (0: not)\n"
"  -s, --spin N        polls without a packet before a port sleeps (200; 0 on one CPU)\n"
"  -h, --help          this text\n"
"  -V, --version       the version\n"
"See tpswitch(8) for more.\n");
}

static int signals = -1;

static void on_signal(struct sw *sw, struct sw_event *ev, u32 events)
{
	struct signalfd_siginfo info;

	(void)ev;
	(void)events;
	while (read(signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP && sw->config)
			sw->gone = sw->reload = true;
		else
			sw->stop = true;
	}
}

/*
 * Signals come as events, since a handler could run just before
 * epoll_wait() sleeps.
 */
static int watch_signals(void)
{
	static struct sw_event ev = { .fn = on_signal };
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return signals < 0 ? -errno : sw_watch(&sw, signals, EPOLLIN, &ev);
}

static unsigned long number(const char *text, const char *what, u64 least, u64 most)
{
	u64 n;

	if (!sw_number(text, least, most, &n)) {
		fprintf(stderr, "tpswitch: %s: %s is no number from %llu to %llu\n",
			what, text, (unsigned long long)least,
			(unsigned long long)most);
		exit(2);
	}
	return n;
}

static int parse_mode(const char *text)
{
	size_t len = strlen(text);

	if (!len || len > 4 || strspn(text, "01234567") != len ||
	    strtoul(text, NULL, 8) > 0777) {
		fprintf(stderr, "tpswitch: --mode: %s is no mode such as 0660\n",
			text);
		exit(2);
	}
	return strtoul(text, NULL, 8);
}

static int parse_group(const char *text)
{
	const struct group *group = getgrnam(text);

	if (!group) {
		fprintf(stderr, "tpswitch: --group: no group %s\n", text);
		exit(2);
	}
	return group->gr_gid;
}

/* The directory of the sockets, but not those above it, is made if it is not there. */
static void make_directory(const char *path)
{
	char dir[256];
	char *end;

	snprintf(dir, sizeof(dir), "%s", path);
	end = strrchr(dir, '/');
	if (!end || end == dir)
		return;
	*end = '\0';
	/* If this fails, so does sw_listen(), which reports it. */
	(void)!mkdir(dir, 0755);
}

/* Tell the service manager that the ports are there. */
static void notify_ready(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	int fd;

	if (!path || strlen(path) >= sizeof(un.sun_path))
		return;
	strcpy(un.sun_path, path);
	if (*path == '@')
		un.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	(void)sendto(fd, "READY=1", 7, MSG_NOSIGNAL, (struct sockaddr *)&un,
		     offsetof(struct sockaddr_un, sun_path) + strlen(path));
	close(fd);
}

/* A CPU that the other side needs must not be spent on polling. */
static unsigned int default_spin(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 0;
	return CPU_COUNT(&set) > 1 ? 200 : 0;
}

/* Four files a program, and those that programs send */
static void raise_file_limit(void)
{
	struct rlimit files = { 1 << 17, 1 << 17 }, old;

	if (getrlimit(RLIMIT_NOFILE, &old) || old.rlim_cur >= files.rlim_cur)
		return;
	if (old.rlim_max > files.rlim_max)
		files.rlim_max = old.rlim_max;
	if (!setrlimit(RLIMIT_NOFILE, &files))
		return;
	/* To raise this one needs a capability. */
	files.rlim_cur = files.rlim_max = old.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

int main(int argc, char **argv)
{
	const char *lookup = "learn";
	int c, err, mode = -1, group = -1;
	char why[256], path[256];
	unsigned int loop = 0;

	if (argc > 1 && !strcmp(argv[1], "ctl"))
		return sw_ctl_main(argc - 1, argv + 1);
	sw.spin = default_spin();
	while ((c = getopt_long(argc, argv, "S:m:g:c:l:a:f:L:s:hV", options,
				NULL)) != -1) {
		switch (c) {
		case 'S':
			sw.path = optarg;
			break;
		case 'm':
			mode = parse_mode(optarg);
			break;
		case 'g':
			group = parse_group(optarg);
			break;
		case 'c':
			sw.config = optarg;
			break;
		case 'l':
			lookup = optarg;
			break;
		case 'a':
			sw.age = number(optarg, "--age", 1, 1u << 30);
			break;
		case 'f':
			sw.frames = number(optarg, "--frames", 1,
					   1u << 24);
			break;
		case 'L':
			loop = number(optarg, "--loop", 0, 86400);
			break;
		case 's':
			sw.spin = number(optarg, "--spin", 0, 1u << 30);
			break;
		case 'h':
			usage(stdout);
			return 0;
		case 'V':
			printf("tpswitch %d.%d\n", TP4_VERSION_MAJOR,
			       TP4_VERSION_MINOR);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	raise_file_limit();
	sw.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (sw.epoll < 0 || watch_signals()) {
		perror("tpswitch: epoll");
		return 1;
	}
	err = sw_macs_init(&sw);
	if (err) {
		fprintf(stderr, "tpswitch: %s\n", strerror(-err));
		return 1;
	}
	sw_read_clock(&sw);
	if (sw_lookup_set(&sw, lookup, why, sizeof(why))) {
		fprintf(stderr, "tpswitch: --lookup %s: %s\n", lookup, why);
		return 2;
	}
	snprintf(path, sizeof(path), "%s.ctl", sw.path);
	make_directory(sw.path);
	if (mode < 0)
		mode = group < 0 ? 0600 : 0660;
	err = sw_listen_ports(&sw, mode, group);
	if (err) {
		fprintf(stderr, "tpswitch: %s: %s\n", sw.path, strerror(-err));
		return 1;
	}
	for (; optind < argc && !err; optind++) {
		err = sw_dev_add(&sw, argv[optind], why, sizeof(why)) < 0;
		if (err)
			fprintf(stderr, "tpswitch: %s\n", why);
	}
	if (!err && sw.config)
		err = sw_config_read(&sw);
	if (!err) {
		err = sw_listen_ctl(&sw, path);
		if (err)
			fprintf(stderr, "tpswitch: %s: %s\n", path,
				strerror(-err));
	}
	if (!err && loop) {
		err = sw_loop_start(&sw, loop);
		if (err)
			fprintf(stderr, "tpswitch: --loop: %s\n", strerror(-err));
	}
	if (!err) {
		notify_ready();
		sw_run(&sw);
	}
	while (sw.nr_ports)
		sw_port_remove(sw.list[0]);
	sw_port_reap(&sw);
	sw_mirror_finish();
	unlink(sw.path);
	unlink(path);
	return !!err;
}
