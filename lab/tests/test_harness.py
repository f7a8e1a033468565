#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests the test runner and .ci/run, with stand-ins for slow programs.

The stand-ins read FAKE, a list of words: with `hang:NAME`, NAME reports that it runs
and sleeps, with `fail:NAME` it fails, and with `skip:NAME` it is skipped. NAME is a
script and its argument, or qemu.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import uuid
from itertools import cycle, product
from pathlib import Path

LAB = Path(__file__).resolve().parent.parent
FAKED = ("build/base", "build/deps", "build/series.py", "stress/run")
FAKED += ("release/deb", "release/test-deb", "run/live.py")
PATIENCE = 120  # seconds; stand-ins hang for longer
FAKE = """\
#!/bin/bash
top=%s name=%s
case " $FAKE " in
*" hang:$name "*) touch "$top/hangs"; sleep 1000 ;;
*" fail:$name "*) echo "$name is broken"; exit 1 ;;
*" skip:$name "*) echo "$name: skipped: no network: a reason"; exit 4 ;;
esac
"""
KERNEL = """
mkdir -p "$top/build/${BASE:-}/kernel-$1"
touch "$top/build/${BASE:-}/kernel-$1/vmlinux"
"""
PROGS = """
dir=$top/build/${BASE:-}/${ARCH:-}/selftests
mkdir -p "$dir/net/tpacket4" "$dir/net32/tpacket4"
if [ "$1" = selftests ]; then
	echo abi | tee "$dir/programs32" >"$dir/programs"
	echo cap.sh >"$dir/scripts"
	touch "$dir/net/tpacket4/abi" "$dir/net32/tpacket4/abi"
fi
"""
# Does what the guest's init does, but for the tests themselves
QEMU = """
for arg; do
	case $arg in *,id=job,path=*) job=${arg##*,path=} ;; esac
done
. "$job/job"
if [ "${command[1]}" = suite ]; then
	while IFS=$'\\t' read -r name _; do
		printf '@@ begin %s\\nok 1 %s\\n@@ end %s 0\\n' "$name" "$name" "$name"
	done <"${command[2]}"
fi
echo 0 >"$job/exit"
"""


def clean_environ(**more: str) -> dict[str, str]:
    """The environment, without the variables of a make that runs this test."""
    drop = ("MAKE", "MFLAGS", "ARCH", "TESTS", "KERNELS", "KERNEL", "BASE", "PIP_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
    return env | more


def output(script: Path, *arguments: str, **env: str) -> tuple[int, str]:
    run = subprocess.run(
        [script, *arguments],
        env=clean_environ(**env),
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return run.returncode, run.stdout


class HarnessTest(unittest.TestCase):
    def setUp(self) -> None:
        self.top = self.clone()
        self.arch = self.tests = ""

    def clone(self) -> Path:
        top = Path(tempfile.mkdtemp(prefix="tpacket4-harness."))
        self.addCleanup(shutil.rmtree, top)
        ignore = shutil.ignore_patterns("tests", "xl710", "__pycache__")
        shutil.copytree(LAB, top / "lab", ignore=ignore)
        shutil.copy(LAB.parent / "Makefile", top)
        shutil.copytree(LAB.parent / ".ci", top / ".ci")
        (top / "tmp").mkdir()
        for path in FAKED:
            self.fake(top, f"lab/{path}", Path(path).name)
        self.fake(top, "lab/build/kernel", "kernel:$1", KERNEL)
        self.fake(top, "lab/build/progs", "progs:$1", PROGS)
        qemu = f'[ "$1" != --print ] || echo {top}/bin/qemu-system-x86_64\n'
        self.fake(top, "lab/build/qemu", "qemu.sh", qemu)
        qemu = f"echo {top}/bin/qemu-system-x86_64\n"
        self.fake(top, "lab/build/qemu-igb", "qemu-igb", qemu)
        self.fake(top, "bin/qemu-system-x86_64", "qemu", QEMU)
        self.fake(top, "bin/shellcheck", "shellcheck")
        check = (top / "lab/run/check").read_text()
        ruff = re.findall(r"(?m)^RUFF=(.*)", check)[0]
        self.fake(top, f"cache/tpacket4/ruff-{ruff}/bin/ruff", "ruff")
        # The other checks need build/linux.
        check = re.sub(r"(?m)^all=\([^)]*", "all=(shellcheck ruff", check)
        (top / "lab/run/check").write_text(check)
        xl710 = "lab/xl710"
        for name in "lib", "probe", "tp4", "xskxceiver":
            self.fake(top, f"{xl710}/tests/{name}.sh", name)
        self.fake(top, f"{xl710}/run-qtest.sh", "qtest")
        self.fake(top, "apps/tpgen/tests/unit.sh", "tpgen-unit")
        return top

    def fake(self, top: Path, name: str, says: str, then: str = "") -> None:
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FAKE % (top, says) + then)
        path.chmod(0o755)

    def start(self, top: Path, target: str, fake: str = "") -> "subprocess.Popen[str]":
        self.mark = uuid.uuid4().hex
        self.addCleanup(self.end, self.mark)
        env = clean_environ(
            FAKE=fake,
            MARK=self.mark,
            PATH=f"{top}/bin:{os.environ['PATH']}",
            TMPDIR=str(top / "tmp"),
            XDG_CACHE_HOME=str(top / "cache"),
            ACCEL="tcg",
            ARCH=self.arch,
            TESTS=self.tests,
        )
        return subprocess.Popen(
            [target] if "/" in target else ["make", target],
            cwd=top,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )

    def run_make(self, top: Path, target: str, fake: str = "") -> tuple[int, str]:
        process = self.start(top, target, fake)
        out, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, out

    def wait_until_it_hangs(self, top: Path, process: "subprocess.Popen[str]") -> None:
        end = time.monotonic() + PATIENCE
        while not (top / "hangs").exists():
            if process.poll() is not None or time.monotonic() > end:
                self.fail(f"nothing hangs: {process.communicate()[0]}")
            time.sleep(0.05)

    def left(self, mark: str = "") -> dict[int, str]:
        """The running processes that this test's make has started."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                environ = (path / "environ").read_bytes()
                command = (path / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            if f"MARK={mark or self.mark}".encode() in environ:
                found[int(path.name)] = command
        return found

    def end(self, mark: str) -> None:
        for pid in self.left(mark):
            os.kill(pid, signal.SIGKILL)

    def stop(self, target: str, fake: str, number: int, group: bool) -> None:
        process = self.start(self.top, target, fake)
        self.wait_until_it_hangs(self.top, process)
        self.assertTrue(self.left())
        (os.killpg if group else os.kill)(process.pid, number)
        out, _ = process.communicate(timeout=PATIENCE)
        self.assertNotEqual(process.returncode, 0)
        # On a busy machine, what has been killed may not have gone yet.
        end = time.monotonic() + 5
        while self.left() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(self.left(), {}, out)
        self.assertEqual(list((self.top / "tmp").iterdir()), [], out)
        self.assertNotRegex(out, r"\d+ passed.*\n\Z")  # it does not go on to its end

    # --- Ctrl-C and SIGTERM ---------------------------------------------------

    def stop_both_ways(self, target: str, *hangs: str) -> None:
        """Where several things hang, each is stopped in one of both ways, in turns."""
        ways = [(signal.SIGINT, True), (signal.SIGTERM, False)]
        pairs = zip(hangs, cycle(ways)) if len(hangs) > 1 else product(hangs, ways)
        for name, (number, group) in pairs:
            with self.subTest(target=target, hangs=name, number=number):
                (self.top / "hangs").unlink(missing_ok=True)
                self.stop(target, f"hang:{name}", number, group)

    def test_a_signal_ends_make_test(self) -> None:
        self.stop_both_ways("test", "qemu", "kernel:debug", "run")

    def test_a_signal_ends_make_check(self) -> None:
        self.stop_both_ways("check", "shellcheck")

    def test_a_signal_ends_make_demo(self) -> None:
        self.stop_both_ways("demo", "qemu", "kernel:umdemo")

    def test_a_signal_ends_ci_run_and_its_background_jobs(self) -> None:
        self.stop_both_ways(".ci/run", "qemu", "ruff")

    def test_a_signal_as_the_exit_trap_begins_does_not_end_it(self) -> None:
        script = """. lab/lib.sh; on_exit echo tidied
            body=$(trap -p EXIT); body=${body#"trap -- '"}
            eval "trap -- 'kill -TERM \\$\\$; $body\""""
        command = ["bash", "-euc", script, "test"]
        ran = subprocess.run(command, check=False, cwd=self.top, capture_output=True)
        self.assertEqual((ran.returncode, ran.stdout), (143, b"tidied\n"))

    # --- .ci/run ----------------------------------------------------------------

    def test_ci_run_counts_its_background_jobs(self) -> None:
        def run(fake: str) -> list[int]:
            code, out = self.run_make(self.top, ".ci/run", fake)
            numbers = re.findall(r"\d+", out.splitlines()[-1])
            return [code, *map(int, numbers)]

        code, passed, failed, skipped = run("")
        self.assertEqual((code, failed), (0, 0))
        counts = run("fail:ruff skip:deb")
        self.assertEqual(counts, [1, passed - 1, 1, skipped + 1])
        self.assertEqual(run("fail:deb"), [1, passed, 1, skipped])

    # --- what cannot be built -------------------------------------------------

    def run_test(self, fake: str) -> tuple[int, str, list[str]]:
        """Exit code, last line, and the tests that ran."""
        code, out = self.run_make(self.top, "test", fake)
        ran = [line[:31].split() for line in out.splitlines() if " ok " in line]
        last = re.findall(r"(?m)^\d+ passed.*", out)
        self.assertTrue(last, out)
        return code, last[0], [" ".join(words[:2]) for words in ran]

    def test_all_is_run_if_all_is_built(self) -> None:
        code, last, ran = self.run_test("")
        self.assertEqual(code, 0)
        self.assertIn(" 0 failed", last)
        for name in (
            *("plain tpacket4_abi", "plain tpacket4_abi-32", "umdebug tpacket4_abi"),
            *("plain xl710-tp4", "debug xl710-tp4", "um lib-cxx", "debug fuzz"),
            *("host rings", "debug kmemleak"),
        ):
            self.assertIn(name, ran)

    def check_failure(self, fake: str, runs: str, not_run: str) -> None:
        code, last, ran = self.run_test(fake)
        self.assertNotEqual(code, 0)
        self.assertIn(" 1 failed", last)
        self.assertIn(runs, ran)
        self.assertNotIn(not_run, ran)

    def test_a_kernel_that_cannot_be_built_hides_no_other(self) -> None:
        for bad, good in ("umdebug", "plain"), ("plain", "umdebug"):
            runs, not_run = f"{good} tpacket4_abi", f"{bad} tpacket4_abi"
            self.check_failure(f"fail:kernel:{bad}", runs, not_run)

    def test_qemu_that_cannot_be_built_hides_no_other_test(self) -> None:
        self.check_failure("fail:qemu.sh", "umdebug tpacket4_abi", "plain xl710-tp4")

    def test_xskxceiver_that_cannot_be_built_hides_no_other_test(self) -> None:
        self.tests = "xl710-tp4 xl710-xskxceiver"
        self.check_failure(
            "fail:progs:xskxceiver", "plain xl710-tp4", "plain xl710-xskxceiver"
        )

    def test_a_wrong_name_is_refused_before_anything_is_installed(self) -> None:
        self.tests = "xl710-tp4 xl710-tq4 @7,3 rings*"
        for target in "test", "quick", "long", "kcsan", "coverage":
            code, out = self.run_make(self.top, target, "fail:deps")
            self.assertNotEqual(code, 0)
            self.assertRegex(out, r"no test matches xl710-tq4: .*\bxl710-tp4\b.*\?")
            self.assertIn("no test matches @7,3", out)
            self.assertNotIn("rings", out)
            self.assertNotIn("deps is broken", out)

    def test_a_wrong_name_of_a_kernel_is_refused(self) -> None:
        code, out = output(self.top / "lab/run/test.py", "--check", KERNELS="plian um")
        self.assertEqual(code, 1)
        self.assertIn("no such kernel: plian; there are plain debug um", out)

    def test_a_wrong_name_of_a_habit_is_refused(self) -> None:
        code, out = output(LAB / "run/modules/habits.sh", "nosuch", BUILD="/none")
        self.assertEqual(code, 2)
        self.assertIn("no line above has the habits nosuch", out)

    def test_a_wrong_name_of_a_check_is_refused_with_those_there_are(self) -> None:
        code, out = output(self.top / "lab/run/check", "ruff", "rufff")
        self.assertEqual(code, 2)
        self.assertEqual(out, "check: no check is named rufff: shellcheck ruff\n")

    def test_without_network_tests_are_skipped(self) -> None:
        for fake in "skip:qemu.sh", "skip:progs:xskxceiver", "skip:series.py":
            code, last, _ = self.run_test(fake)
            self.assertEqual(code, 0)
            self.assertIn(" 0 failed", last)

    def test_the_shell_does_not_wait_for_the_selftests(self) -> None:
        # It ends since there is no terminal.
        _, out = self.run_make(self.top, str(self.top / "lab/run/shell"))
        self.assertRegex(out, r"(?m)^building tpgen \.\.\. .*done$")
        self.assertNotIn("selftests", out)

    # --- other machines ---------------------------------------------------------

    def run_arm64(self, fake: str) -> tuple[int, str]:
        self.arch = "arm64"
        self.fake(self.top, "lab/build/foreign", "foreign")
        self.fake(self.top, "bin/qemu-system-aarch64", "qemu", QEMU)
        return self.run_make(self.top, "test", fake)

    def test_for_another_machine_only_its_own_is_run(self) -> None:
        code, out = self.run_arm64("fail:kernel:plain fail:qemu.sh fail:qtest")
        self.assertEqual(code, 0, out)
        for name in "tpacket4_abi", "lib", "lib-byte-order":
            self.assertRegex(out, rf"(?m)^arm64  {name} +ok ")
        self.assertIn("\n3 passed, 0 failed, 0 skipped", out)

    def test_another_machine_that_cannot_be_had_is_skipped(self) -> None:
        code, out = self.run_arm64("skip:kernel:arm64")
        self.assertEqual(code, 0, out)
        self.assertIn("skipped: no network", out)
        self.assertIn("\n0 passed, 0 failed, 1 skipped", out)

    # --- side by side -----------------------------------------------------------

    def test_a_second_run_in_one_clone_is_refused_and_another_clone_is_not(
        self,
    ) -> None:
        first = self.start(self.top, "test", "hang:qemu")
        self.wait_until_it_hangs(self.top, first)
        try:
            for target in "test", "check", "demo", "tree", "clean":
                code, out = self.run_make(self.top, target)
                self.assertNotEqual(code, 0, out)
                self.assertIn("runs in this clone already", out)
                self.assertIn("lab/run/test.py", out)
            code, out = self.run_make(self.clone(), "test")
            self.assertEqual(code, 0, out)
        finally:
            os.killpg(first.pid, signal.SIGINT)
            first.communicate(timeout=PATIENCE)
        code, out = self.run_make(self.top, "test")
        self.assertEqual(code, 0, out)


class DepsTest(unittest.TestCase):
    """lab/build/deps without apt and without a network"""

    def setUp(self) -> None:
        self.bin = Path(tempfile.mkdtemp(prefix="tpacket4-deps."))
        self.addCleanup(shutil.rmtree, self.bin)

    def fake(self, name: str, script: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def deps(self, path: str, script: Path) -> tuple[int, str]:
        return output(script, "demo", PATH=path)

    def without_apt(self, *more: str) -> tuple[int, str]:
        """A PATH with all commands except those of apt and dpkg, and `more`."""
        for directory in "/sbin", "/usr/sbin", "/bin", "/usr/bin":
            for path in Path(directory).iterdir():
                link = self.bin / path.name
                hidden = path.name.startswith(("apt", "dpkg", *more))
                if not hidden and not link.is_symlink():
                    link.symlink_to(path)
        (self.bin / "lab/build").mkdir(parents=True)
        # The script looks in the usual places, too.
        text = (LAB / "build/deps").read_text()
        text = text.replace("local PATH=", "local UNUSED=")
        (self.bin / "lab/build/deps").write_text(text)
        (self.bin / "lab/build/deps").chmod(0o755)
        shutil.copy(LAB / "lib.sh", self.bin / "lab")
        return self.deps(str(self.bin), self.bin / "lab/build/deps")

    def test_without_apt_it_goes_on_if_nothing_is_missing(self) -> None:
        self.assertEqual(self.without_apt(), (0, ""))

    def test_without_apt_it_lists_missing_files(self) -> None:
        code, out = self.without_apt("ccache", "flex")
        self.assertEqual(code, 1)
        self.assertRegex(out, r"missing: ccache +makes the second")
        self.assertRegex(out, r"missing: flex ")
        self.assertNotIn("bison", out)
        self.assertIn("no apt", out)

    def failed_install(self, complaint: str) -> tuple[int, str]:
        self.fake("dpkg-query", "exit 1")
        self.fake("sudo", 'exec "$@"')
        self.fake("apt-get", f"echo 'E: {complaint}' >&2; exit 100")
        return self.deps(f"{self.bin}:{os.environ['PATH']}", LAB / "build/deps")

    def test_without_a_network_it_skips(self) -> None:
        code, out = self.failed_install("Temporary failure resolving")
        self.assertEqual(code, 4, out)
        self.assertIn("skipped: no network: cannot install", out)

    def test_an_error_of_apt_is_none_of_the_network(self) -> None:
        code, out = self.failed_install("Unable to locate package")
        self.assertEqual(code, 1, out)


class RuffTest(unittest.TestCase):
    def test_without_a_network_ruff_is_skipped(self) -> None:
        with tempfile.TemporaryDirectory(prefix="tpacket4-ruff.") as cache:
            (Path(cache) / "tpacket4").mkdir()
            code, out = output(
                LAB / "run/check",
                *("--one", "ruff"),
                XDG_CACHE_HOME=cache,
                PIP_INDEX_URL="http://127.0.0.1:9/",
                PIP_RETRIES="0",
                PIP_CONFIG_FILE="/dev/null",
            )
            self.assertEqual(code, 4, out)
            self.assertIn("no network", out)
            self.assertEqual(list((Path(cache) / "tpacket4").iterdir()), [])


if __name__ == "__main__":
    unittest.main()
