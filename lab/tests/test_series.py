#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests series.py and base with a small tree instead of a kernel."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

LAB = Path(__file__).resolve().parent.parent
MAKEFILE = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\n"
CODE = "".join(f"int function_{n}(void)\n{{\n\treturn {n};\n}}\n\n" for n in range(9))
MESSAGE = "{}\n\nIt has its reasons.\n\nSigned-off-by: Jöe Doe <joe@example.org>\n"
MANIFEST = """# A comment that stays.
[first net-next]
one
\tnet/new.c
\tnet/run.sh
two
[second iwl-next]
three
"""
# Whom it names: by how many mails it is asked about
MAINTAINERS = r"""
print "Jane O\'Hara <jane\@example.org> (maintainer:NET (ALL OF IT))\n";
print "\"Al B. Cee\" <al\@example.org> (reviewer:NET)\n";
print "list-", scalar(grep { /\.patch$/ } @ARGV), "\@example.org (open list)\n";
"""


def edit(name: str, number: int, by: int) -> str:
    """A diff that adds `by` to the result of function_<number> in CODE."""
    line = number * 5 + 3
    context = CODE.splitlines(keepends=True)[line - 4 : line + 3]
    context[3:4] = ["-" + context[3], f"+\treturn {number} + {by};\n"]
    body = "".join(c if c[0] in "-+" else " " + c for c in context)
    return f"--- a/{name}\n+++ b/{name}\n@@ -{line - 3},7 +{line - 3},7 @@\n{body}"


class SeriesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="tpacket4-series."))
        self.addCleanup(shutil.rmtree, self.top)
        shutil.copytree(LAB / "build", self.top / "lab/build")
        shutil.copy(LAB / "lib.sh", self.top / "lab")
        self.linux = self.top / "build/linux"
        self.kernel = self.top / "kernel"
        self.env = os.environ | {
            "KERNEL": str(self.kernel),
            "XDG_CACHE_HOME": str(self.top / "cache"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_SEQUENCE_EDITOR": "true",
            "GIT_EDITOR": "true",
        }
        for name in "FORCE", "BASE":
            self.env.pop(name, None)
        for role in "AUTHOR", "COMMITTER":
            self.env[f"GIT_{role}_NAME"] = "Tester"
            self.env[f"GIT_{role}_EMAIL"] = "tester@example.org"
        self.write("kernel/Makefile", MAKEFILE)
        self.write("kernel/net/old.c", CODE)
        self.write("kernel/net/other.c", CODE)

        self.write("series/series", MANIFEST)
        for slug in "one", "two", "three":
            self.write(f"series/{slug}.msg", MESSAGE.format(f"net: do {slug}"))
        self.write("series/first.cover", "net: a series\n\nWhy it is.\n")
        self.write("kernel/scripts/get_maintainer.pl", MAINTAINERS)
        self.write("net/new.c", CODE)
        self.write("net/run.sh", "#!/bin/sh\n")
        (self.top / "net/run.sh").chmod(0o755)
        self.write("net/old.c.d/one.patch", edit("net/old.c", 2, 1))
        self.write("net/old.c.d/two.patch", edit("net/old.c", 4, 2))
        self.write("net/new.c.d/three.patch", edit("net/new.c", 6, 3))

    def write(self, name: str, data: str) -> None:
        (self.top / name).parent.mkdir(parents=True, exist_ok=True)
        (self.top / name).write_text(data)

    def files(self) -> dict[str, bytes]:
        """All files of the series."""
        return {
            str(p.relative_to(self.top)): p.read_bytes()
            for where in ("series", "net")
            for p in sorted((self.top / where).rglob("*"))
            if p.is_file()
        }

    def run_in(self, cwd: Path, *args: str, fail: bool = False) -> str:
        run = subprocess.run(
            args,
            check=False,
            cwd=cwd,
            env=self.env,
            capture_output=True,
            text=True,
        )
        said = run.stdout + run.stderr
        self.assertEqual(run.returncode != 0, fail, f"{args}: {said}")
        return said.strip()

    def series(self, *args: str, fail: bool = False) -> str:
        return self.run_in(self.top, "lab/build/series.py", *args, fail=fail)

    def git(self, *args: str) -> str:
        return self.run_in(self.linux, "git", *args)

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.linux / name).read_text()
        self.assertIn(old, text)
        (self.linux / name).write_text(text.replace(old, new))

    def fix(self, commit: str) -> None:
        """Put what was replaced into this commit."""
        self.git("commit", "-qa", "--fixup", commit)
        self.git("rebase", "-q", "-i", "--autosquash", "base")

    def commit(self, subject: str, name: str) -> None:
        """Commit everything, with a new file of this name."""
        (self.linux / name).write_text("int more;\n")
        self.git("add", "-A")
        self.git("commit", "-qm", MESSAGE.format(subject))

    def test_round_trip(self) -> None:
        self.series("tree")
        self.assertEqual(
            self.git("log", "--reverse", "--format=%s|%an"),
            "Linux 6.12.1|base\nnet: do one|Jöe Doe\n"
            "net: do two|Jöe Doe\nnet: do three|Jöe Doe",
        )
        self.assertEqual((self.linux / "net/new.c").read_text().count("+ 3"), 1)
        self.assertTrue(os.access(self.linux / "net/run.sh", os.X_OK))
        self.series("import")  # hunk headers take git's form, once
        files, head = self.files(), self.git("rev-parse", "HEAD")
        self.assertEqual(self.series("import"), "nothing changed")
        self.assertEqual(self.files(), files)
        shutil.rmtree(self.linux)
        shutil.rmtree(self.top / "cache")
        self.series("tree")
        self.assertEqual(self.git("rev-parse", "HEAD"), head)
        self.assertEqual(self.series("import"), "nothing changed")
        self.assertEqual(self.files(), files)

    def mails(self) -> list[Path]:
        return sorted((self.top / "out/series").glob("*/*.patch"))

    def test_am_gives_the_same_tree(self) -> None:
        self.series("tree")
        said = self.series("format")
        self.assertEqual(said, "out/series: 2 sets, 3 patches")
        patches = self.mails()
        names = ["/".join(patch.parts[-2:]) for patch in patches]
        self.assertEqual(
            names,
            [
                "01-first/0000-cover-letter.patch",
                "01-first/0001-net-do-one.patch",
                "01-first/0002-net-do-two.patch",
                "02-second/0001-net-do-three.patch",
            ],
        )
        cover = patches.pop(0).read_text()
        self.assertIn("[PATCH net-next 0/2] net: a series\n", cover)
        self.assertIn("\n\nWhy it is.\n\nJöe Doe (2):\n", cover)
        self.assertIn("3 files changed, 48 insertions", cover)
        self.assertIn("[PATCH net-next 2/2] net: do two\n", patches[1].read_text())
        self.assertIn("[PATCH iwl-next] net: do three\n", patches[2].read_text())
        self.run_in(self.kernel, "git", "init", "-q")
        self.run_in(self.kernel, "git", "add", "-A")
        self.run_in(self.kernel, "git", "commit", "-qm", "base")
        self.run_in(self.kernel, "git", "am", "-q", *map(str, patches))
        self.assertEqual(
            self.run_in(self.kernel, "git", "rev-parse", "HEAD^{tree}"),
            self.git("rev-parse", "HEAD^{tree}"),
        )

    def test_send_names_who_maintains_it(self) -> None:
        self.series("tree")
        self.series("format")
        # in the place of git send-email: one argument a line
        git = self.top / "bin/git"
        self.write("bin/git", '#!/bin/sh\nprintf "%s\\n" "$@"\n')
        git.chmod(0o755)
        self.env["PATH"] = f"{git.parent}:{self.env['PATH']}"
        for name, mails in ("01-first", 3), ("02-second", 1):
            send = self.top / "out/series" / name / "send"
            said = self.run_in(self.top, str(send), "--dry-run").splitlines()
            self.assertEqual(
                said[:6],
                [
                    "send-email",
                    "--8bit-encoding=UTF-8",
                    "--to=Jane O'Hara <jane@example.org>",
                    '--cc="Al B. Cee" <al@example.org>',
                    f"--cc=list-{mails}@example.org",
                    "--dry-run",
                ],
            )
            self.assertEqual(len(said[6:]), mails)
            self.assertTrue(all((send.parent / mail).exists() for mail in said[6:]))

    def test_a_set_has_a_cover_letter_and_an_end(self) -> None:
        self.series("tree")
        (self.top / "series/first.cover").unlink()
        said = self.series("format", fail=True)
        self.assertIn("the set first has no cover letter", said)
        self.write("series/frist.cover", "net: a series\n\nWhy it is.\n")
        said = self.series("format", fail=True)
        self.assertIn("frist.cover: series/series has no set frist", said)
        (self.top / "series/frist.cover").unlink()
        for number in range(16):
            self.commit(f"net: add {number}", f"net/{number}.c")
        self.assertIn("import first", self.series("format", fail=True))
        self.series("import")
        self.write("series/first.cover", "net: a series\n\nWhy it is.\n")
        self.write("series/second.cover", "net: a series\n\nWhy it is.\n")
        said = self.series("format", fail=True)
        self.assertIn("the set second has 17 patches: netdev accepts 15", said)

    def test_long_patch_says_why(self) -> None:
        self.write("net/new.c", CODE + 801 * "\n")
        self.series("tree")
        said = self.series("format", fail=True)
        self.assertRegex(said, r"series/one.msg: the patch has 8\d\d lines: split it")
        why = "This is more than 800 lines, all of them empty."
        message = MESSAGE.format(f"net: do one\n\n{why}")
        self.write("series/one.msg", message)
        self.series("tree")
        self.assertEqual(self.series("format"), "out/series: 2 sets, 3 patches")

    def test_patches_stay_in_their_sets(self) -> None:
        self.series("tree")
        self.series("import")
        self.assertEqual((self.top / "series/series").read_text(), MANIFEST)
        # a new one joins the one before it, wherever it is put
        self.commit("net: more", "net/more.c")
        self.git("tag", "more")
        self.git("reset", "-q", "--hard", "more~2")
        self.git("cherry-pick", "more", "more~1")
        self.series("import")
        want = MANIFEST.replace("[second", "net-more\n\tnet/more.c\n[second")
        self.assertEqual((self.top / "series/series").read_text(), want)
        # one that is put behind another set is not taken for that set's
        self.git("tag", "-f", "all")
        self.git("reset", "-q", "--hard", "all~2")
        self.git("cherry-pick", "all", "all~1")
        before = self.files()
        said = self.series("import", fail=True)
        self.assertIn("net-more is of [first net-next], but stands behind", said)
        self.assertEqual(self.files(), before)

    def test_fixup_lands_in_its_patch(self) -> None:
        self.series("tree")
        self.series("import")
        before = self.files()
        self.replace("net/old.c", "return 4 + 2", "return 4 + 7")
        self.git("commit", "-qa", "--fixup", "HEAD^")
        self.assertIn("autosquash", self.series("import", fail=True))
        self.git("rebase", "-q", "-i", "--autosquash", "base")
        said = self.series("import")
        self.assertEqual(said, "wrote net/old.c.d/two.patch")
        after = self.files()
        self.assertIn(b"+\treturn 4 + 7;", after["net/old.c.d/two.patch"])
        changed = {name for name in after if after[name] != before.get(name)}
        self.assertEqual(changed, {"net/old.c.d/two.patch"})
        self.assertEqual(after.keys(), before.keys())

    def test_amended_message_keeps_its_slug(self) -> None:
        self.series("tree")
        self.git("commit", "-q", "--amend", "-m", MESSAGE.format("net: another name"))
        self.series("import")
        self.assertTrue(self.files()["series/three.msg"].startswith(b"net: another"))

    def test_new_commit_is_a_new_patch(self) -> None:
        self.series("tree")
        self.replace("net/other.c", "return 5", "return 50")
        self.commit("net: Do MORE, now", "net/more.c")
        self.series("import")
        files = self.files()
        slug = "net-do-more-now"
        self.assertIn(f"{slug}\n\tnet/more.c\n".encode(), files["series/series"])
        self.assertEqual(files["net/more.c"], b"int more;\n")
        self.assertIn(f"net/other.c.d/{slug}.patch", files)
        self.assertIn(f"series/{slug}.msg", files)
        # and a dropped commit takes its files along
        self.git("reset", "-q", "--hard", "HEAD^")
        self.series("import")
        gone = {"net/more.c", f"net/other.c.d/{slug}.patch", f"series/{slug}.msg"}
        self.assertEqual(self.files().keys(), files.keys() - gone)

    def test_failing_hunk_is_named(self) -> None:
        bad = edit("net/old.c", 4, 2).replace("return 4;", "return 44;")
        self.write("net/old.c.d/two.patch", bad)
        said = self.series("tree", fail=True)
        self.assertIn("net/old.c.d/two.patch does not apply", said)
        self.assertIn("\n\treturn 44;\n", said)
        self.assertIn("net/old.c:20", said)
        self.assertIn("The base is Linux ", said)

    def test_base_without_a_needed_fix_is_refused(self) -> None:
        self.write("kernel/net/packet/af_packet.c", "int packet_set_ring;\n")
        said = self.series("tree", fail=True)
        self.assertIn("too old", said)
        self.assertIn("packet_free_tx_ring()", said)
        self.assertIn("The base is Linux ", said)
        self.write("kernel/net/packet/af_packet.c", "int packet_free_tx_ring;\n")
        self.series("tree")

    def test_nothing_unimported_is_lost(self) -> None:
        self.series("tree")
        self.replace("net/old.c", "return 8", "return 88")
        self.assertIn("uncommitted edits", self.series("tree", fail=True))
        self.assertIn("uncommitted edits", self.series("import", fail=True))
        self.assertIn("used as it is", self.series("tree", "--keep"))
        self.assertIn("return 88", (self.linux / "net/old.c").read_text())
        self.git("commit", "-qam", MESSAGE.format("net: more"))
        self.assertIn("not imported", self.series("tree", fail=True))
        # the other way round: files changed here since make tree
        self.write("net/new.c", CODE + "int there;\n")
        self.assertIn("changed since", self.series("import", fail=True))
        self.assertTrue((self.top / "net/new.c").read_text().endswith("there;\n"))
        self.env["FORCE"] = "1"
        self.series("tree")
        self.assertIn("net: do three", self.git("log", "-1", "--format=%s"))

    def test_only_what_differs_is_written(self) -> None:
        self.series("tree")
        for path in (self.linux / "net").iterdir():
            os.utime(path, (1, 1))
        self.write("net/new.c", CODE + "int there;\n")
        self.series("tree")
        written = [
            p.name for p in (self.linux / "net").iterdir() if p.stat().st_mtime > 1
        ]
        self.assertEqual(written, ["new.c"])

    def test_foreign_files_are_safe(self) -> None:
        self.series("tree")
        self.write("net/ours.txt", "not of the series\n")
        self.commit("net: clash", "net/ours.txt")
        before = self.files()
        self.assertIn("not a file of the series", self.series("import", fail=True))
        self.assertEqual(self.files(), before)

    def test_kernel_is_only_read(self) -> None:
        def stats() -> dict[Path, tuple[int, ...]]:
            found = {p: p.stat() for p in self.kernel.rglob("*")}
            # all but when it was read last
            return {
                p: (s.st_ino, s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
                for p, s in found.items()
            }

        before = stats()
        self.series("tree")
        self.assertEqual(stats(), before)
        # a changed tree is a new base
        self.write("kernel/net/third.c", CODE)
        self.series("tree")
        self.assertTrue((self.linux / "net/third.c").exists())

    def test_less_context_is_reported(self) -> None:
        self.write("kernel/net/old.c", CODE.replace("function_4", "renamed_4"))
        said = self.series("tree")
        self.assertIn("net/old.c.d/two.patch: applied with less context", said)

    def test_less_context_at_several_places_is_refused(self) -> None:
        code = CODE.replace("function_4", "renamed_4").replace("return 5;", "return 4;")
        self.write("kernel/net/old.c", code)
        said = self.series("tree", fail=True)
        self.assertIn("net/old.c.d/two.patch does not apply", said)
        self.assertIn("With less context, it fits several places: @@ -20,7", said)

    def release(self, number: int, code: str, deb: bool = True) -> None:
        """From now on, apt lists 6.12.<number> and, with deb, has it."""
        self.write("kernel/Makefile", MAKEFILE.replace("= 1\n", f"= {number}\n"))
        self.write("kernel/net/old.c", code)
        self.write("kernel/.gitignore", "*.o\n/*\n!/debian/\n")  # as Debian's
        self.write("bin/apt-cache", f"#!/bin/sh\necho Version: 6.12.{number}-1\n")
        sources = self.top / "deb/usr/src"
        sources.mkdir(parents=True, exist_ok=True)
        tar = sources / "linux-source-6.12.tar.xz"
        shutil.make_archive(str(tar)[:-7], "xztar", self.top, "kernel")
        self.write(
            "deb/DEBIAN/control",
            f"Package: linux-source-6.12\nVersion: 6.12.{number}-1\n"
            "Architecture: all\nMaintainer: Tester\nDescription: kernel\n",
        )
        self.run_in(self.top, "dpkg-deb", "-b", "deb", "apt.deb")
        get = f"cp {self.top}/apt.deb ." if deb else "echo no such file; exit 100"
        self.write("bin/apt-get", f"#!/bin/sh\n{get}\n")
        for path in (self.top / "bin").iterdir():
            path.chmod(0o755)

    def test_point_releases(self) -> None:
        del self.env["KERNEL"]
        self.env["PATH"] = f"{self.top}/bin:{self.env['PATH']}"
        self.release(1, CODE)
        self.series("tree")
        cache = self.top / "cache/tpacket4"

        def cached() -> list[str]:
            return sorted(path.name for path in cache.glob("base-*.git"))

        self.assertEqual(cached(), ["base-6.12.1-1.git"])
        # one that the series applies to is taken
        self.release(2, CODE + "\n")
        self.assertIn("on Linux 6.12.2,", self.series("tree"))
        self.assertEqual(cached(), ["base-6.12.2-1.git"])
        # one that cannot be downloaded does not keep anybody from work
        self.release(3, CODE, deb=False)
        said = self.series("tree")
        self.assertIn("6.12.3-1 cannot be had; 6.12.2-1 is used", said)
        self.assertIn("on Linux 6.12.2,", said)
        # nor do two that the series does not apply to
        for number in 3, 4:
            self.release(number, CODE.replace("return 2;", f"return 2{number};"))
            said = self.series("tree")
            self.assertIn("does not apply", said)
            self.assertIn(f"The base is Linux 6.12.{number}.", said)
            self.assertRegex(said, "rebase --onto [0-9a-f]{12} base; make import")
            self.assertIn("on Linux 6.12.2,", said)
        self.release(5, CODE)
        self.assertIn("on Linux 6.12.5,", self.series("tree"))
        self.assertEqual(cached(), ["base-6.12.5-1.git"])

    def use_7_3(self, old: str = "function_8", new: str = "renamed_8") -> None:
        """The next make tree is on Linux 7.3, in which net/old.c differs."""
        self.env["BASE"] = "7.3"
        self.linux = self.top / "build/7.3/linux"
        makefile = "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\n"
        self.write("kernel/Makefile", makefile)
        self.write("kernel/net/old.c", CODE.replace(old, new))

    def test_nearest_base(self) -> None:
        for version, base in ("5.10", "6.12"), ("6.15", "6.12"), ("7.1", "7.3"):
            number = "VERSION = {}\nPATCHLEVEL = {}\n".format(*version.split("."))
            self.write("kernel/Makefile", number)
            self.assertIn(f"the edits for {base}", self.series("tree"))

    def test_edit_for_one_base(self) -> None:
        self.series("tree")
        self.series("import")
        old = self.top / "net/old.c.d"
        (old / "two.patch").rename(old / "two@6.12.patch")
        plain = self.files()
        self.use_7_3("return 2;", "return 22;")
        self.assertIn("one.patch does not apply", self.series("tree", fail=True))
        own = edit("net/old.c", 2, 1).replace("return 2;", "return 22;")
        self.write("net/old.c.d/one@7.3.patch", own)
        self.write("net/new.c.d/one@7.3.patch", edit("net/new.c", 1, 9))
        self.series("tree")
        code = (self.linux / "net/old.c").read_text()
        self.assertIn("return 2 + 1;", code)
        self.assertIn("return 4;", code)
        code = (self.linux / "net/new.c").read_text()
        self.assertIn("return 1 + 9;", code)
        self.assertIn("return 6 + 3;", code)
        self.series("import")
        both = self.files()
        self.assertEqual(self.series("import"), "nothing changed")
        self.assertEqual({n: both[n] for n in plain}, plain)
        # and the other base sees nothing of them, and loses none
        self.env["KERNEL"] = str(self.top / "kernel-6.12")
        self.env["BASE"] = "6.12"
        self.linux = self.top / "build/linux"
        self.write("kernel-6.12/Makefile", MAKEFILE)
        self.write("kernel-6.12/net/old.c", CODE)
        self.write("kernel-6.12/net/other.c", CODE)
        self.series("tree")
        self.assertEqual(self.series("import"), "nothing changed")
        self.assertIn("return 4 + 2", (self.linux / "net/old.c").read_text())
        self.replace("net/old.c", "return 4 + 2", "return 4 + 7")
        self.fix("HEAD^")
        self.assertEqual(self.series("import"), "wrote net/old.c.d/two@6.12.patch")
        # a patch that goes takes them all along
        self.git("rebase", "-q", "--onto", "HEAD~2", "HEAD~1")
        self.series("import")
        self.assertFalse((old / "two@6.12.patch").exists())
        self.assertTrue((old / "one@7.3.patch").exists())

    def test_patch_for_one_base(self) -> None:
        manifest = MANIFEST.replace("[second", "[newer net-next]\nnewer\n[second")
        self.write("series/series", manifest)
        self.write("series/newer.msg", MESSAGE.format("net: do newer"))
        self.write("series/newer.cover", "net: newer\n\nWhy it is.\n")
        self.write("net/other.c.d/newer@7.3.patch", edit("net/other.c", 1, 9))
        self.series("tree")
        self.series("import")
        files = self.files()
        self.assertIn("net/other.c.d/newer@7.3.patch", files)
        said = self.series("format")
        self.assertEqual(said, "out/series: 2 sets, 3 patches")
        self.assertNotIn("net: do newer", self.git("log", "--format=%s"))
        self.use_7_3()
        said = self.series("tree")
        self.assertIn("build/7.3/linux: 4 patches on Linux 7.3.4", said)
        self.assertTrue((self.top / "build/linux/net/new.c").exists())
        self.series("import")
        self.assertEqual(self.series("import"), "nothing changed")
        self.assertEqual(self.files().keys(), files.keys())
        said = self.series("format")
        self.assertEqual(said, "out/series: 3 sets, 4 patches")
        code = (self.linux / "net/other.c").read_text()
        self.assertIn("return 1 + 9;", code)

    def test_import_writes_what_differs_on_a_base(self) -> None:
        self.use_7_3()
        self.series("tree")
        self.series("import")
        plain = self.files()
        self.assertFalse([name for name in plain if "@" in name])
        for name, was in ("old.c", "return 2 + 1"), ("new.c", "return 3"):
            self.replace(f"net/{name}", was, f"{was}00")
        self.fix("HEAD~2")
        said = self.series("import")
        names = "net/new.c.d/one@7.3.patch", "net/old.c.d/one@7.3.patch"
        self.assertEqual(said, "\n".join(f"added {name}" for name in names))
        self.assertEqual(self.series("import"), "nothing changed")
        files = self.files()
        self.assertEqual({n: files[n] for n in plain}, plain)
        self.assertIn(b"\n+\treturn 300;", files[names[0]])
        self.assertIn(b"\n+\treturn 2 + 100;", files[names[1]])
        for name, was in ("old.c", "return 2 + 1"), ("new.c", "return 3"):
            self.replace(f"net/{name}", f"{was}00", was)
        self.fix("HEAD~2")
        said = self.series("import")
        self.assertEqual(said, "\n".join(f"removed {name}" for name in names))
        self.assertEqual(self.files(), plain)

    def test_edit_that_a_base_lacks_is_for_the_other(self) -> None:
        self.use_7_3()
        self.series("tree")
        self.series("import")
        self.replace("net/old.c", "return 2 + 1", "return 2")
        self.fix("HEAD~2")
        said = self.series("import").splitlines()
        here = "net/old.c.d/one"
        self.assertEqual(said, [f"removed {here}.patch", f"added {here}@6.12.patch"])
        self.assertEqual(self.series("import"), "nothing changed")

    def test_mistakes_are_reported(self) -> None:
        self.write("net/old.c.d/two@8.1.patch", edit("net/old.c", 1, 1))
        self.assertIn("the bases are 6.12 and 7.3", self.series("tree", fail=True))
        (self.top / "net/old.c.d/two@8.1.patch").unlink()
        self.write("net/old.c.d/four.patch", edit("net/old.c", 1, 1))
        self.assertIn("no patch four", self.series("tree", fail=True))
        (self.top / "net/old.c.d/four.patch").unlink()
        self.write("series/series", MANIFEST + "\tnet/new.c\n")
        self.assertIn("net/new.c is listed twice", self.series("tree", fail=True))
        self.write("series/series", MANIFEST + "\tnet/other.c\n")
        self.write("net/other.c", CODE)
        self.assertIn("exists before it", self.series("tree", fail=True))
        self.write("series/series", "one\n" + MANIFEST)
        self.assertIn("before the first [SET TREE]", self.series("tree", fail=True))
        self.write("series/series", MANIFEST + "[first net]\n")
        self.assertIn("set first is listed twice", self.series("tree", fail=True))
        self.write("series/series", MANIFEST)
        self.run_in(self.top, "git", "init", "-q")
        self.run_in(self.top, "git", "add", "net")
        said = self.series("tree", fail=True)
        self.assertIn("net/other.c belongs to no patch", said)
        self.run_in(self.top, "git", "rm", "-qf", "net/other.c")
        self.write("series/two.msg", "net: no sign\n")
        self.assertIn("Signed-off-by", self.series("tree", fail=True))


if __name__ == "__main__":
    unittest.main()
