// SPDX-License-Identifier: GPL-2.0
/* The fuzzer's rounds and workers, see fuzz.h. */

#define _GNU_SOURCE
#include "fuzz.h"
#include "kmsg.h"

#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUDGE_MS	300	/* a step that takes longer gets a signal */
#define STUCK_MS	180000	/* and is stuck in the kernel after this, */
#define STARVED_MS	900000	/* or, if it could run, after this */

struct round rd;

static struct {
	uint64_t seed;
	unsigned int seconds;
	unsigned int rounds;		/* 0: until the time is over */
	unsigned int steps;		/* of a worker in a round */
	bool one_thread;
	bool need_all;			/* each call must have succeeded */
	const char *ports[2];
} opt = {
	.seed = 1,
	.seconds = 60,
	.steps = 1500,
};

/* A worker and its current step */
struct worker {
	const struct step_kind *kind;
	unsigned int nr;
	unsigned int step;		/* the current one, for the watchdog */
	const char *doing;
	pthread_t thread;
	int tid;
	bool done;
};

static struct worker workers[] = {
	{ &sock_kind }, { &sock_kind }, { &sock_kind }, { &ring_kind },
	{ &dev_kind }, { &traffic_kind }, { &proc_kind },
};

#define NR_WORKERS	ARRAY_SIZE(workers)

static bool stop;			/* the round is over */

/* ---- steps ---- */

const struct step *step_choose(const struct step_kind *kind, struct rnd *r)
{
	unsigned int i, sum = 0, n;

	for (i = 0; i < kind->nr_steps; i++)
		sum += kind->steps[i].weight;
	n = rnd(r, sum);
	for (i = 0; n >= kind->steps[i].weight; i++)
		n -= kind->steps[i].weight;
	return &kind->steps[i];
}

static void fail_nth(unsigned int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	write_file("/proc/thread-self/fail-nth", text);
}

/* Whether the requested failure has happened */
static bool has_failed(void)
{
	int fd = open("/proc/thread-self/fail-nth", O_RDONLY | O_CLOEXEC);
	char text[16] = "1";

	if (fd >= 0 && read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '1';
	close(fd);
	return !atoi(text);
}

static void do_step(struct worker *w, unsigned int nr)
{
	struct rnd r = rnd_stream(rd.seed, w->nr, nr);
	const struct step *step = step_choose(w->kind, &r);
	bool fault = rd.faults && w->kind->faults && one_in(&r, 24);
	unsigned int nth = 1 + rnd(&r, 30);

	__atomic_store_n(&w->doing, step->name, __ATOMIC_RELAXED);
	__atomic_store_n(&w->step, nr + 1, __ATOMIC_RELAXED);
	if (fault)
		fail_nth(nth);
	step->fn(&r);
	if (fault) {
		did(C_FAULT, has_failed() ? 0 : -EAGAIN);
		fail_nth(0);
	}
}

static unsigned int steps_of(const struct worker *w)
{
	return opt.steps * w->kind->percent / 100;
}

static bool is_over(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	unsigned int i;

	w->tid = gettid();
	for (i = 0; i < steps_of(w) && !is_over(); i++)
		do_step(w, i);
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* All of them in one thread, in an order given by the seed */
static void *only_main(void *arg)
{
	struct rnd r = rnd_stream(rd.seed, 1000, 0);
	unsigned int i, k, left = 0, todo[NR_WORKERS];

	for (i = 0; i < NR_WORKERS; i++) {
		workers[i].tid = gettid();
		todo[i] = steps_of(&workers[i]);
		left += todo[i];
	}
	for (; left; left--) {
		unsigned int n = rnd(&r, left);

		for (k = 0; n >= todo[k]; k++)
			n -= todo[k];
		/* The watchdog checks the first worker. */
		do_step(&workers[k], steps_of(&workers[k]) - todo[k]--);
		workers[0].doing = workers[k].doing;
		workers[0].step++;
	}
	__atomic_store_n(&workers[0].done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- the watchdog ---- */

static void nudge(int sig)
{
}

static void print_file(const char *path)
{
	char buf[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof(buf) - 1);

	if (n > 0)
		printf("%.*s", (int)n, buf);
	close(fd);
}

static void print_stuck(const struct worker *w)
{
	char path[64];

	printf("stuck in the kernel: step %u of worker %u (%s: %s)\n",
	       w->step - 1, w->nr, w->kind->name, w->doing);
	snprintf(path, sizeof(path), "/proc/self/task/%d/stack", w->tid);
	print_file(path);
}

/* On a debug kernel, packets that XDP sends in a loop may leave it no CPU for
 * minutes.
 */
static bool could_run(const struct worker *w)
{
	char path[64], state;
	FILE *stat;
	bool could;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", w->tid);
	stat = fopen(path, "re");
	if (!stat)
		return false;
	could = fscanf(stat, "%*d (%*[^)]) %c", &state) == 1 && state == 'R';
	fclose(stat);
	return could;
}

static bool nobody_stuck(unsigned int nr)
{
	static unsigned int seen[NR_WORKERS];
	static uint64_t since[NR_WORKERS];
	uint64_t now = now_ms();
	unsigned int i;
	bool ok = true;

	for (i = 0; i < nr; i++) {
		struct worker *w = &workers[i];
		unsigned int step = __atomic_load_n(&w->step, __ATOMIC_RELAXED);

		if (__atomic_load_n(&w->done, __ATOMIC_ACQUIRE))
			continue;
		if (step != seen[i] || !since[i]) {
			seen[i] = step;
			since[i] = now;
		} else if (now - since[i] > STARVED_MS ||
			   (now - since[i] > STUCK_MS && !could_run(w))) {
			print_stuck(w);
			ok = false;
		} else if (now - since[i] > NUDGE_MS) {
			pthread_kill(w->thread, SIGUSR1);
		}
	}
	return ok;
}

static bool all_done(unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (!__atomic_load_n(&workers[i].done, __ATOMIC_ACQUIRE))
			return false;
	return true;
}

static unsigned int steps_done(unsigned int nr)
{
	unsigned int i, sum = 0;

	for (i = 0; i < nr; i++)
		sum += __atomic_load_n(&workers[i].step, __ATOMIC_RELAXED);
	return sum;
}

/* ---- a round ---- */

static void add_prog(int fd)
{
	if (fd >= 0 && rd.nr_progs < NR_PROGS)
		rd.progs[rd.nr_progs++] = fd;
}

static void load_progs(void)
{
	static const int actions[] = { XDP_PASS, XDP_DROP, XDP_ABORTED,
		XDP_PASS_TO_KERNEL, 77 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(actions); i++)
		add_prog(xdp_return(actions[i], i % 2));
	add_prog(xdp_return(XDP_PASS, true));
	add_prog(xdp_send_back(false));
	add_prog(xdp_send_back(true));
	add_prog(xdp_redirect(dev_index("fz1a"), true));
	add_prog(xdp_redirect(dev_index("fz0a"), false));
	add_prog(xdp_adjust(BPF_FUNC_xdp_adjust_head, 14, true));
	add_prog(xdp_adjust(BPF_FUNC_xdp_adjust_head, -64, false));
	/* Not for fragments: if a program removes all of one, generic XDP and
	 * veth return its page as if it were not from a page pool.
	 */
	add_prog(xdp_adjust(BPF_FUNC_xdp_adjust_tail, -20, false));
	add_prog(xdp_adjust(BPF_FUNC_xdp_adjust_tail, 200, true));
	add_prog(xdp_adjust(BPF_FUNC_xdp_adjust_meta, -16, true));
	rd.filter = filter_return(200);
}

/* Moves hardware to the namespace of the round; it returns when that ends. */
static void take_ports(void)
{
	char name[] = "fzp0";
	unsigned int i;

	for (i = 0; i < 2; i++) {
		name[3] = '0' + i;
		if (!opt.ports[i])
			return;
		if (!link_set_netns(name, rd.home))
			rd.ports = true;
	}
}

static int round_init(uint64_t seed)
{
	/* Less than most areas need */
	const struct rlimit lock = { 600 << 10, 600 << 10 };

	rd.seed = seed;
	rd.home = new_netns();
	rd.away = new_netns();
	rd.tun = dup(STDIN_FILENO);
	rd.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (rd.home < 0 || rd.away < 0 || mem_init() ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, rd.unix_fds))
		return -errno;
	take_ports();
	if (setns(rd.home, CLONE_NEWNET))
		return -errno;
	devs_make();
	load_progs();
	setrlimit(RLIMIT_MEMLOCK, &lock);
	return rd.nr_progs ? 0 : -EINVAL;
}

/* Returns the exit code of the round's process: 0, or 2 if it is stuck. */
static int round_main(uint64_t seed)
{
	unsigned int i, nr = opt.one_thread ? 1 : NR_WORKERS;
	struct rnd r = rnd_stream(seed, 1001, 0);
	bool killed = one_in(&r, 3), closes = one_in(&r, 2);
	unsigned int last = rnd(&r, opt.steps * 4);
	struct sigaction action = { .sa_handler = nudge };
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	sigaction(SIGUSR1, &action, NULL);
	err = round_init(seed);
	if (err) {
		printf("a round cannot start: %s\n", strerror(-err));
		return 3;
	}
	for (i = 0; i < NR_WORKERS; i++)
		workers[i].nr = i;
	for (i = 0; i < nr; i++)
		if (pthread_create(&workers[i].thread, NULL,
				   opt.one_thread ? only_main : worker_main,
				   &workers[i]))
			return 3;
	while (!all_done(nr)) {
		usleep(20000);
		if (!nobody_stuck(nr)) {
			fflush(stdout);
			return 2;
		}
		/* With all that is going on */
		if (killed && steps_done(nr) > last)
			kill(getpid(), SIGKILL);
		/* The others are only for the sockets. */
		if (!opt.one_thread && workers[0].done && workers[1].done &&
		    workers[2].done)
			__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	}
	for (i = 0; closes && i < NR_SLOTS; i++)
		sys(C_CLOSE, close(slot_fd(i)));
	return 0;
}

/* ---- all rounds ---- */

/* Pages that stay pinned are leaked. */
static int64_t pinned(void)
{
	return read_number("/proc/vmstat", "nr_foll_pin_acquired") -
	       read_number("/proc/vmstat", "nr_foll_pin_released");
}

static bool nothing_pinned(int64_t before)
{
	uint64_t end = now_ms() + 60000;

	while (pinned() != before) {
		if (now_ms() > end) {
			printf("%lld pages stay pinned\n",
			       (long long)(pinned() - before));
			return false;
		}
		usleep(20000);
	}
	return true;
}

static bool ports_are_home(void)
{
	uint64_t end = now_ms() + 60000;

	while (opt.ports[0] && !(dev_index("fzp0") && dev_index("fzp1"))) {
		if (now_ms() > end) {
			printf("a port has not come back\n");
			return false;
		}
		usleep(20000);
	}
	return true;
}

static void find_ports(void)
{
	char name[] = "fzp0";
	unsigned int i;
	glob_t paths;

	if (glob("/sys/class/net/*/device", 0, NULL, &paths))
		return;
	for (i = 0; i < paths.gl_pathc && i < 2; i++) {
		char *dev = paths.gl_pathv[i] + strlen("/sys/class/net/");

		dev[strcspn(dev, "/")] = 0;
		name[3] = '0' + i;
		link_set_up(dev, false);
		if (link_rename(dev, name))
			return;
		opt.ports[i] = dev;
	}
}

static unsigned int rounds_cut_short;

static bool good_round(uint64_t seed)
{
	int64_t before = pinned();
	int status = 0;
	pid_t pid, child;
	bool ok = true;

	kmsg_note("<6>fuzz: round %llu\n", (unsigned long long)seed);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		status = round_main(seed);
		fflush(stdout);
		_exit(status);
	}
	do {
		child = waitpid(pid, &status, WNOHANG);
		ok = !kmsg_complains();
		usleep(20000);
	} while (ok && !child);
	if (!child)
		return false;
	if (ok && WIFEXITED(status) && WEXITSTATUS(status))
		return false;
	if (rd.faults && WIFSIGNALED(status) &&
	    (WTERMSIG(status) == SIGSEGV || kmsg_bad_frame())) {
		/* The failed allocation was for a signal: the kernel ends
		 * the process then.
		 */
		rounds_cut_short++;
	} else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
		printf("the round's process has died: %s\n",
		       strsignal(WTERMSIG(status)));
		return false;
	}
	/* Its remaining children, if any */
	kill(-pid, SIGKILL);
	while (waitpid(-1, &status, 0) > 0)
		;
	return ok && nothing_pinned(before) && ports_are_home() &&
	       !kmsg_complains();
}

static void set_faults(void)
{
	static const char * const files[][2] = {
		{ "fail*/ignore-gfp-wait", "N" },
		{ "fail*/ignore-gfp-highmem", "N" },
		{ "fail*/min-order", "0" },
		{ "failslab/cache-filter", "N" },
		{ "fail*/verbose", "0" },
	};
	char pattern[128];
	size_t i, k;
	glob_t paths;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(pattern, sizeof(pattern), "/sys/kernel/debug/%s",
			 files[i][0]);
		if (glob(pattern, 0, NULL, &paths))
			continue;
		for (k = 0; k < paths.gl_pathc; k++)
			write_file(paths.gl_pathv[k], files[i][1]);
	}
}

static void usage(void)
{
	printf("usage: fuzz [-s SEED] [-t SECONDS] [-r ROUNDS] [-n STEPS] [-1] [-a]\n"
	       "  -s  seed of the first round; the next has the next number\n"
	       "  -t  as long (default 60), -r  or so many rounds\n"
	       "  -n  steps of a worker in a round (default 1500)\n"
	       "  -1  one thread: a round repeats step by step\n"
	       "  -a  each call must have succeeded at least once\n");
}

static int parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "s:t:r:n:1ah")) != -1) {
		switch (c) {
		case 's':
			opt.seed = strtoull(optarg, NULL, 0);
			break;
		case 't':
			opt.seconds = atoi(optarg);
			break;
		case 'r':
			opt.rounds = atoi(optarg);
			break;
		case 'n':
			opt.steps = atoi(optarg);
			break;
		case '1':
			opt.one_thread = true;
			break;
		case 'a':
			opt.need_all = true;
			break;
		default:
			usage();
			return c == 'h' ? 0 : 2;
		}
	}
	return -1;
}

static int run(void)
{
	uint64_t start = now_ms(), told = start;
	unsigned int n = 0;
	int code;

	counts_init();
	set_faults();
	rd.faults = !access("/proc/thread-self/fail-nth", W_OK);
	/* Many steps wait for RCU with RTNL held. */
	write_file("/sys/kernel/rcu_expedited", "1");
	find_ports();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (kmsg_open())
		printf("no /dev/kmsg: splats will not be noticed here\n");
	if (rd.faults)
		kmsg_expect_no_memory();
	while (opt.rounds ? n < opt.rounds :
	       now_ms() - start < opt.seconds * 1000ULL) {
		uint64_t seed = opt.seed + n++;

		if (!good_round(seed)) {
			printf("not ok: fuzz: round %llu failed; again with SEED=%llu ROUNDS=1 STEPS=%u%s\n",
			       (unsigned long long)seed,
			       (unsigned long long)seed, opt.steps,
			       opt.one_thread ? " THREADS=1" : "");
			counts_report(false);
			return 1;
		}
		if (now_ms() - told > 10000) {
			told = now_ms();
			printf("fuzz: %u rounds, %lu calls, %llu s\n", n,
			       counts_total(),
			       (unsigned long long)(told - start) / 1000);
			fflush(stdout);
		}
	}
	code = counts_report(opt.need_all);
	printf("fuzz: %u rounds, %u of them cut short, %lu calls, seeds %llu to %llu, %llu s\n",
	       n, rounds_cut_short, counts_total(),
	       (unsigned long long)opt.seed,
	       (unsigned long long)opt.seed + n - 1,
	       (unsigned long long)(now_ms() - start) / 1000);
	return code ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const char helper[] = "/proc/sys/kernel/modprobe";
	char modprobe[256] = "";
	int code = parse(argc, argv);
	FILE *f;

	if (code >= 0)
		return code;
	/* For an unknown device name, some ioctl()s search a module of that name,
	 * which takes seconds here. All modules needed are loaded by now.
	 */
	if (system("modprobe -q af_packet_diag"))
		printf("modprobe: af_packet_diag is built in, or missing\n");
	f = fopen(helper, "r");
	if (f) {
		if (fgets(modprobe, sizeof(modprobe), f))
			write_file(helper, "\n");
		fclose(f);
	}
	code = run();
	if (modprobe[0])
		write_file(helper, modprobe);
	return code;
}
