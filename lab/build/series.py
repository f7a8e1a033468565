#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The patch series, as files here and as commits in build/linux.

series.py tree    assemble build/linux: the base, then one commit per patch
series.py import  write the commits of build/linux back as files
series.py format  write the mails of each set to out/series/NUMBER-SET

As files, a patch called SLUG is: its place and its new files in series/series,
its message in series/SLUG.msg, the new files themselves, whole, at their place
in the kernel tree, and for each FILE that it changes FILE.d/SLUG.patch.

CONTRIBUTING.md describes edits for one base only (SLUG@7.3.patch). Another kernel takes
those of the base whose version is nearest.

In series/series, [SET TREE] begins a set: the patches that are one mail thread, for
the maintainers of TREE. Its cover letter is series/SET.cover, the subject in the
first line; a set of one patch needs none. It names the sets that it needs, by lines
that start with Depends-on: "SUBJECT". A set with a cover letter is written if the base
has all of its patches.

With FORCE=1, tree and import overwrite changes of the other side.

Commits have fixed dates, and authors from the first Signed-off-by line: the
same files give the same hashes everywhere. A note (refs/notes/slug) ties a
commit to its slug; git keeps it in --amend, rebase and autosquash.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.hunks import find_ambiguous
from lab.build.place import BASES, BUILD, TOP

LINUX = BUILD / "linux"
WHERE = LINUX.relative_to(TOP)
OUT = TOP / "out" / "series"
FORCE = bool(os.getenv("FORCE"))  # overwrite changes of the other side
MANIFEST = Path("series/series")
MAX_SET = 15  # the limit of netdev
# The message of a patch with more lines gives the reason, after "800 lines".
MAX_PATCH = 800
# Directories without files of the series
NOT_MAILED = ("apps", "bindings", "build", "lab", "live", "out", "ports", "series")
NOT_MAILED += (".ci", ".git")
# What V4 relies on in a file of the base, without an edit there that would not apply
NEEDS = {
    "net/packet/af_packet.c": (
        "packet_free_tx_ring",
        "a closing socket's Tx ring is freed while a device still sends from it",
    )
}
EPOCH = 946684800  # 2000-01-01, the base commit's date; each patch is a minute later
# The commit of build/linux that was last assembled or imported
SYNCED = "refs/tpacket4/synced"
# In build/linux's configuration: a hash of what went into it, and its last commit
MADE = "tpacket4.made"
MADE_REF = "refs/tpacket4/made"
NOTES = "refs/notes/slug"


class Error(Exception):
    """User error; the message explains it."""


@dataclass
class Patch:
    """One patch of the series. Paths are relative to the kernel's top.

    Edits are a diff for each path, for each base that has its own; "" stands for the
    other bases.
    """

    slug: str
    set: str = ""  # as in series/series: SET TREE
    message: str = ""
    new: dict[str, tuple[str, bytes]] = field(default_factory=dict)  # mode, text
    edits: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def plain(self) -> dict[str, bytes]:
        return self.edits.get("", {})

    def edits_on(self, base: str) -> dict[str, bytes]:
        return self.plain() | self.edits.get(base, {})

    def is_on(self, base: str) -> bool:
        return bool(self.new or self.edits_on(base))


# --- git ---------------------------------------------------------------------


def date(number: int) -> str:
    """The date of the patch with this number."""
    return f"{EPOCH + 60 * number} +0000"


def ident(name: str, email: str, number: int) -> dict[str, str]:
    """The author and committer of a cover letter."""
    env = {}
    for role in "AUTHOR", "COMMITTER":
        env[f"GIT_{role}_NAME"] = name
        env[f"GIT_{role}_EMAIL"] = email
        env[f"GIT_{role}_DATE"] = date(number)
    return env


Env = dict[str, str]
ENV = os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}


def git(*args: str, stdin: bytes | None = None, env: Env | None = None) -> bytes:
    """Run git in build/linux, without the user's configuration."""
    run = subprocess.run(
        ["git", "-C", str(LINUX), *args],
        check=False,
        input=stdin,
        capture_output=True,
        env=ENV | (env or {}),
    )
    if run.returncode:
        raise Error(run.stderr.decode(errors="replace").strip() or f"git {args[0]}")
    return run.stdout


def text(*args: str, stdin: bytes | None = None, env: Env | None = None) -> str:
    return git(*args, stdin=stdin, env=env).decode().strip()


def resolve(name: str) -> str | None:
    try:
        return text("rev-parse", "--verify", "-q", name)
    except Error:
        return None


def status() -> list[str]:
    """The differences from HEAD, as git status --porcelain prints them: `XY path`."""
    return git("status", "--porcelain", "-uall").decode().splitlines()


@contextlib.contextmanager
def scratch_index() -> Iterator[Env]:
    with tempfile.TemporaryDirectory(prefix="tpacket4-index.") as scratch:
        yield {"GIT_INDEX_FILE": f"{scratch}/index"}


# --- the series as files -----------------------------------------------------


def edit_path(path: str, slug: str, base: str) -> Path:
    at = f"@{base}" if base else ""
    return Path(f"{path}.d") / f"{slug}{at}.patch"


def find_edits() -> Iterator[tuple[str, str, str]]:
    """All (path, slug, base) for which a path.d/slug[@base].patch exists."""
    tops = [top for top in TOP.iterdir() if top.name not in NOT_MAILED]
    for file in sorted(file for top in tops for file in top.rglob("*.patch")):
        path, suffix = os.path.splitext(file.parent.relative_to(TOP))
        if suffix == ".d":
            slug, _, base = file.stem.partition("@")
            yield path, slug, base


def check_unique(what: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise Error(f"{MANIFEST}: the {what} {name} is listed twice")


def read_manifest() -> tuple[str, list[tuple[str, str, list[str]]]]:
    """The comment at the start of the manifest, and its (slug, set, new files)."""
    set_name = r"^\[([\w.-]+ [\w.-]+)\]$"
    manifest = (TOP / MANIFEST).read_text()
    head, *sets = re.split(set_name, manifest, flags=re.MULTILINE)
    if re.search(r"^[^#\n]", head, re.MULTILINE):
        raise Error(f"{MANIFEST}: a patch stands before the first [SET TREE]")
    entries: list[tuple[str, str, list[str]]] = []
    for name, lines in zip(sets[0::2], sets[1::2], strict=True):
        for line in lines.splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            if not line[0].isspace():
                entries.append((line.strip(), name, []))
            elif entries:
                entries[-1][2].append(line.strip())
            else:
                raise Error(f"{MANIFEST}: {line.strip()} stands before the first slug")
    check_unique("set", [name.split()[0] for name in sets[0::2]])
    check_unique("patch", [slug for slug, _, _ in entries])
    check_unique("file", [name for _, _, names in entries for name in names])
    for slug, _, _ in entries:
        if not re.fullmatch(r"[\w.-]+", slug):
            raise Error(f"{MANIFEST}: `{slug}` is not a slug")
    return head, entries


def check_strays(owned: set[str]) -> None:
    """Raise if the kernel's directories have a file that belongs to no patch."""
    others = [f":!{name}" for name in NOT_MAILED]
    listed = subprocess.run(
        ["git", "-C", str(TOP), "ls-files", "*/*", *others],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # TOP may be no git tree
        text=True,
    )
    for name in sorted(set(listed.stdout.splitlines()) - owned):
        raise Error(f"{name} belongs to no patch of {MANIFEST}")


def read_series() -> list[Patch]:
    _, entries = read_manifest()
    series: dict[str, Patch] = {}
    owned = set()
    for slug, name_of_set, names in entries:
        patch = series[slug] = Patch(slug, name_of_set)
        try:
            patch.message = (TOP / f"series/{slug}.msg").read_text().strip() + "\n"
            for name in names:
                executable = os.access(TOP / name, os.X_OK)
                mode = "100755" if executable else "100644"
                patch.new[name] = mode, (TOP / name).read_bytes()
        except OSError as err:
            where = f"{err.filename}: {err.strerror}"
            raise Error(f"patch {slug} in {MANIFEST}: {where}") from None
        owned |= patch.new.keys()
    for path, slug, base in find_edits():
        file = edit_path(path, slug, base)
        if slug not in series:
            raise Error(f"{file}: {MANIFEST} has no patch {slug}")
        if base and base not in BASES:
            raise Error(f"{file}: the bases are {' and '.join(BASES)}")
        series[slug].edits.setdefault(base, {})[path] = (TOP / file).read_bytes()
        owned.add(str(file))
    check_strays(owned)
    return list(series.values())


def write_series(series: list[Patch]) -> list[str]:
    """Write the files that differ from those here; return the changes."""
    head, old = read_manifest()
    owned = {name for _, _, names in old for name in names}
    owned |= {f"series/{slug}.msg" for slug, _, _ in old}
    owned |= {str(edit_path(*edit)) for edit in find_edits()}
    want: dict[str, tuple[str, bytes]] = {}
    manifest = head
    last = ""
    for patch in series:
        if patch.set != last:
            manifest += f"[{patch.set}]\n"
            last = patch.set
        manifest += f"{patch.slug}\n" + "".join(f"\t{n}\n" for n in sorted(patch.new))
        want[f"series/{patch.slug}.msg"] = "100644", patch.message.encode()
        want |= patch.new
        for base, edits in patch.edits.items():
            for path, diff in edits.items():
                want[str(edit_path(path, patch.slug, base))] = "100644", diff
    # Check before writing, so that an error changes nothing.
    for name, (_, data) in want.items():
        file = TOP / name
        if name not in owned and file.exists() and file.read_bytes() != data:
            raise Error(f"{name} exists already, and is not a file of the series")
    changed = []
    for name in sorted(owned - want.keys()):
        (TOP / name).unlink(missing_ok=True)
        changed.append(f"removed {name}")
        with contextlib.suppress(OSError):  # it is not empty
            os.removedirs((TOP / name).parent)
    want[str(MANIFEST)] = "100644", manifest.encode()
    for name, (mode, data) in sorted(want.items()):
        file = TOP / name
        if not file.exists() or file.read_bytes() != data:
            changed.append(f"{'wrote' if file.exists() else 'added'} {name}")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        file.chmod(int(mode[-3:], 8))
    return changed


# --- from files to commits ---------------------------------------------------


def author(patch: Patch) -> tuple[str, str]:
    match = re.search(r"^Signed-off-by: (.+) <(.+)>$", patch.message, re.MULTILINE)
    if not match:
        raise Error(f"series/{patch.slug}.msg has no Signed-off-by: NAME <EMAIL>")
    return match[1], match[2]


def apply_diff(path: str, diff: bytes, env: Env) -> bool:
    """Apply it to the index; return whether all of its context matched."""
    # Another base can differ in the lines around it. If one line of context still
    # matches, at one place only, report it: builds and tests show whether it is right.
    apply = ["apply", "--cached", "--whitespace=nowarn", "--verbose"]
    try:
        git(*apply, "-", stdin=diff, env=env)
    except Error as err:
        try:
            before = git("cat-file", "blob", f":{path}", env=env)
            hunk = find_ambiguous(diff, before)
            if not hunk:
                git(*apply, "-C1", "-", stdin=diff, env=env)
        except Error:
            raise err from None
        if hunk:
            more = f"With less context, it fits several places: {hunk}"
            raise Error(f"{err}\n{more}") from None
        return False
    return True


def apply_edit(name: Path, path: str, diff: bytes, env: Env) -> None:
    if re.findall(rb"^\+\+\+ (.*?)(?:\t.*)?$", diff, re.MULTILINE) != [
        f"b/{path}".encode()
    ]:
        raise Error(f"{name} must be a diff of {path} only")
    try:
        if not apply_diff(path, diff, env):
            print(f"{name}: applied with less context: check it", file=sys.stderr)
    except Error as err:
        raise Error(f"{name} does not apply:\n\n{err}\n") from None


def rank(version: str) -> int:
    major, minor = version.split(".")
    return 20 * int(major) + int(minor)  # 5.19 was followed by 6.0


def nearest(commit: str) -> str:
    """The one of BASES that is nearest to the kernel in this commit."""
    makefile = text("cat-file", "blob", f"{commit}:Makefile")
    numbers = re.findall(r"^(?:VERSION|PATCHLEVEL) = (\d+)$", makefile, re.MULTILINE)
    if len(numbers) != 2:
        raise Error("the base's Makefile has no version")
    version = rank(".".join(numbers))
    return min(BASES, key=lambda base: abs(rank(base) - version))


def store(data: bytes) -> str:
    return text("hash-object", "-w", "--stdin", stdin=data)


def without_at(patch: Patch, path: str, parent: str) -> str | None:
    """The blob that results from a patch of a file without @ in its name."""
    diff = patch.plain().get(path)
    new = patch.new.get(path)
    blob = store(new[1]) if new else resolve(f"{parent}:{path}")
    if not diff or not blob:
        return blob
    with scratch_index() as env:
        entry = f"100644,{blob},{path}"
        git("update-index", "--add", "--cacheinfo", entry, env=env)
        try:
            apply_diff(path, diff, env)
        except Error:
            return None
        return text("rev-parse", f":{path}", env=env)


def check_needs(commit: str) -> None:
    """Raise if the base lacks a fix that the series relies on."""
    for path, (needle, fault) in NEEDS.items():
        blob = resolve(f"{commit}:{path}")
        if blob and needle not in text("cat-file", "blob", blob):
            raise Error(
                f"this kernel is too old: {fault}, as {path} has no {needle}().\n"
                "Take a later release of its branch, or apply that fix first."
            )


def read_index(env: Env) -> dict[str, str]:
    """Mode and blob of each path."""
    entries = {}
    for line in git("ls-files", "-sz", env=env).decode().split("\0")[:-1]:
        entry, path = line.split("\t")
        entries[path] = entry.removesuffix(" 0")
    return entries


def data(what: str) -> str:
    return f"data {len(what.encode())}\n{what}\n"


def make_commits(commit: str, patches: list[Patch], base: str) -> Iterator[str]:
    """The commits as git fast-import reads them."""
    paths = {path for patch in patches for path in (*patch.new, *patch.edits_on(base))}
    notes = f"commit {NOTES}\ncommitter series <series@localhost> {date(0)}\n"
    notes += data("")
    if resolve(NOTES):
        notes += f"from {NOTES}^0\n"
    yield f"reset {MADE_REF}\nfrom {commit}\n\n"
    # The index has these files only. Git would read and write that of the whole kernel
    # some 500 times, which takes half a minute.
    with scratch_index() as env:
        there = git("ls-tree", "-rz", commit, "--", *sorted(paths))
        git("update-index", "-z", "--index-info", stdin=there, env=env)
        before = read_index(env)
        for number, patch in enumerate(patches, 1):
            lines = b""
            for name, (mode, text_) in patch.new.items():
                if name in before:
                    raise Error(f"{name}, new in {patch.slug}, exists before it")
                lines += f"{mode} {store(text_)}\t{name}\n".encode()
            git("update-index", "--add", "--index-info", stdin=lines, env=env)
            for path, diff in patch.edits_on(base).items():
                own = base if path in patch.edits.get(base, {}) else ""
                apply_edit(edit_path(path, patch.slug, own), path, diff, env)
            after = read_index(env)
            who = "{} <{}> ".format(*author(patch)) + date(number)
            yield f"commit {MADE_REF}\nmark :{number}\nauthor {who}\ncommitter {who}\n"
            yield data(patch.message)
            for path, entry in after.items():
                if before.get(path) != entry:
                    yield f"M {entry} {path}\n"
            notes += f"N inline :{number}\n" + data(f"{patch.slug}\n")
            before = after
    yield notes


def build_commits(commit: str, series: list[Patch]) -> str:
    """Make the commits without changing the work tree or a branch."""
    # Many commands start with this, and it takes seconds.
    what = repr([BASES, commit, series]).encode()
    key = hashlib.sha256(Path(__file__).read_bytes() + what).hexdigest()
    made = text("config", "--default", "", "--get", MADE).split()
    if made[:1] == [key]:
        return made[1]
    base = nearest(commit)
    check_needs(commit)
    patches = [patch for patch in series if patch.is_on(base)]
    stream = "".join(make_commits(commit, patches, base)).encode()
    # loose objects: a pack for each edit of the series would never be collected
    config = ["-c", "fastimport.unpackLimit=100000"]
    git(*config, "fast-import", "--quiet", "--force", stdin=stream)
    head = text("rev-parse", MADE_REF)
    git("config", MADE, f"{key} {head}")
    return head


def create_linux(repo: str) -> None:
    """Clone the cached base. Its pack is hard-linked, or copied if that is impossible,
    so that build/linux does not need the cache."""
    new = LINUX.with_name("linux.new")
    shutil.rmtree(new, ignore_errors=True)
    clone = ["git", "clone", "-q", "--no-checkout", "-b", "base"]
    clone += ["-c", f"notes.rewriteRef={NOTES}", "-c", f"notes.displayRef={NOTES}"]
    if subprocess.run([*clone, repo, str(new)], check=False).returncode:
        raise Error("cannot clone the base")
    new.rename(LINUX)
    git("remote", "remove", "origin")
    # The kernels' objects live in the tree, see lab/build/kernel.
    (LINUX / ".git/info/exclude").write_text("/build-*/\n")
    git("symbolic-ref", "HEAD", "refs/heads/series")


def check_untouched(series: list[Patch]) -> None:
    """Raise if build/linux has changes that the files here lack."""
    hint = "`make import` brings it home, FORCE=1 drops it"
    head = resolve("HEAD")
    if head and head != resolve(SYNCED):
        raise Error(f"{WHERE} has commits that were not imported: {hint}")
    new = {name for patch in series for name in patch.new}
    for line in status() if head else []:
        if not line.startswith("??") or line[3:] in new:
            raise Error(f"{WHERE} has uncommitted edits ({line[3:]}): {hint}")


def build_on_first(repos: list[str], series: list[Patch]) -> tuple[str, str]:
    """Make the commits on the first of these bases that the series applies to.

    They begin with the newest. Those behind the one that is taken are deleted from
    the cache: their users have copies."""
    newest, *older = repos
    git("fetch", "-q", newest, "+base:refs/tpacket4/base")
    new = text("rev-parse", "refs/tpacket4/base")
    try:
        head = build_commits(new, series)
    except Error as err:
        title = text("log", "-1", "--format=%s", new)
        report = f"{err}\nThe base is {title}."
        if resolve("HEAD") and new != resolve("base"):
            port = f"git -C {WHERE} rebase --onto {new[:12]} base"
            report += f"\nTo port the series: {port}; make import"
        if not older:
            raise Error(report) from None
        print(f"{report}\nUntil then, the previous release is used.", file=sys.stderr)
        return build_on_first(older, series)
    for old in older:
        shutil.rmtree(old, ignore_errors=True)  # another clone may do the same
    return new, head


def tree(keep: bool) -> str:
    series = read_series()
    base = subprocess.run([TOP / "lab/build/base"], check=False, stdout=subprocess.PIPE)
    if base.returncode:  # it has printed why
        sys.exit(base.returncode)
    repos = base.stdout.decode().splitlines()
    if not (LINUX / ".git").exists():
        if LINUX.exists():
            raise Error(f"{WHERE} is not a git tree: remove it")
        create_linux(repos[0])
    if not FORCE:
        try:
            check_untouched(series)
        except Error as err:
            if not keep:
                raise
            return f"{err}\n{WHERE} is used as it is"
    new, head = build_on_first(repos, series)
    title = text("log", "-1", "--format=%s", new)
    before = resolve("HEAD")
    if FORCE and before and before != resolve(SYNCED):
        print(f"{WHERE} was {before[:12]} (see git reflog)", file=sys.stderr)
    git("update-ref", "refs/heads/base", new)
    # Only files that differ are written: kernel builds stay incremental.
    git("symbolic-ref", "HEAD", "refs/heads/series")
    git("reset", "-q", "--hard", head)
    git("update-ref", SYNCED, head)
    count = text("rev-list", "--count", f"{new}..{head}")
    return f"{WHERE}: {count} patches on {title}, with the edits for {nearest(new)}"


# --- from commits to files ---------------------------------------------------


def choose_slug(commit: str, subject: str, known: dict[str, str], used: set) -> str:
    """From the commit's note, else its subject, else a new one from the subject."""
    try:
        note = text("notes", f"--ref={NOTES}", "show", commit).split()[0]
    except (Error, IndexError):
        note = ""
    plain = re.sub(r"[^a-z0-9]+", "-", subject.lower()).strip("-")[:40].rstrip("-")
    tries = [note, known.get(subject, ""), plain]
    tries += [f"{plain}-{n}" for n in range(2, 1000)]
    return next(slug for slug in tries if slug and slug not in used)


def read_commit(commit: str, slug: str) -> Patch:
    patch = Patch(slug, message=text("log", "-1", "--format=%B", commit) + "\n")
    author(patch)
    raw = git("diff-tree", "-r", "-z", "--no-commit-id", commit)
    fields = raw.decode().split("\0")
    for meta, path in zip(fields[0::2], fields[1::2], strict=False):
        old_mode, mode, _, blob, status = meta.lstrip(":").split()
        if status == "A" and mode in ("100644", "100755"):
            patch.new[path] = mode, git("cat-file", "blob", blob)
        elif status == "M" and mode == old_mode:
            diff = git("diff-tree", "-p", "--no-commit-id", commit, "--", path)
            start = diff.find(b"--- a/")
            if start < 0:
                raise Error(f"{slug}: {path} is binary")
            patch.edits.setdefault("", {})[path] = diff[start:]
        else:
            what = f"{old_mode} -> {mode}, {status}"
            raise Error(f"{slug}: cannot store its change of {path} ({what})")
    return patch


def assign_sets(series: list[Patch], old: list[Patch]) -> None:
    """A patch stays in its set; a new one joins the set of the previous patch."""
    known = {patch.slug: patch.set for patch in old}
    last = next((known[p.slug] for p in series if p.slug in known), "series net-next")
    done = set()
    for patch in series:
        patch.set = known.get(patch.slug, last)
        if patch.set != last:
            done.add(last)
            last = patch.set
        if patch.set in done:
            raise Error(
                f"{patch.slug} is of [{patch.set}], but stands behind another set: "
                f"move it in {MANIFEST} first, and make tree"
            )


def put_back(series: list[Patch], old: list[Patch], base: str) -> None:
    """Add the patches that are for another base only, at their old places."""
    before: str | None = None
    for patch in old:
        if not patch.is_on(base):
            slugs = [p.slug for p in series]
            after = slugs.index(before) + 1 if before in slugs else 0
            series.insert(after, patch)
        before = patch.slug


def keep_apart(patch: Patch, old: Patch, base: str, commit: str) -> None:
    """Turn the content of a commit on a base into edits for that base.

    On the first base, only the files stay with it that were its own. On another one,
    all edits are its own that differ from the result of the files without @. Those, and
    the edits for other bases, stay as they are, but an edit that this base lacks becomes
    one of the first base.
    """
    own: dict[str, bytes] = {}
    if base == BASES[0]:
        plain = patch.plain()
        for path in old.edits.get(base, {}).keys() & plain.keys():
            own[path] = plain.pop(path)
        patch.edits = old.edits | {"": plain, base: own}
        return
    plain = dict(old.plain())
    first = dict(old.edits.get(BASES[0], {}))
    for path in sorted({*patch.new, *patch.plain(), *old.plain()}):
        blob = resolve(f"{commit}:{path}")
        if path in old.new:
            if path in patch.new:
                patch.new[path] = patch.new[path][0], old.new[path][1]
        elif path in patch.new:
            continue
        if blob == without_at(old, path, f"{commit}^"):
            continue
        if path in old.new and blob:
            diff = git("diff", store(old.new[path][1]), blob)
            hunks = diff[diff.find(b"@@ ") :]
            own[path] = f"--- a/{path}\n+++ b/{path}\n".encode() + hunks
        elif path in patch.plain():
            own[path] = patch.plain()[path]
        elif path in plain:
            first.setdefault(path, plain.pop(path))
    patch.edits = old.edits | {"": plain, BASES[0]: first, base: own}


def import_() -> str:
    head = resolve("HEAD")
    if not head:
        raise Error(f"no {WHERE} to import from: make tree first")
    for state in "rebase-merge", "rebase-apply":
        if (LINUX / ".git" / state).exists():
            raise Error(f"finish the rebase in {WHERE} first")
    for line in status():
        if not line.startswith("??"):
            raise Error(f"{WHERE} has uncommitted edits ({line[3:]})")
        print(f"not in a commit, not imported: {line[3:]}", file=sys.stderr)
    old = read_series()
    if not FORCE:
        check_files_synced(old)

    base, *commits = text("rev-list", "--reverse", "HEAD").split()
    known = {patch.message.splitlines()[0]: patch.slug for patch in old}
    by_slug = {patch.slug: patch for patch in old}
    series: list[Patch] = []
    for commit in commits:
        if len(text("log", "-1", "--format=%P", commit).split()) != 1:
            raise Error(f"{commit[:12]} is a merge: the series must be linear")
        subject = text("log", "-1", "--format=%s", commit)
        if re.match(r"(fixup|squash|amend)! ", subject):
            raise Error(f"`{subject}`: git rebase -i --autosquash it first")
        slug = choose_slug(commit, subject, known, {p.slug for p in series})
        patch = read_commit(commit, slug)
        if slug in by_slug:
            keep_apart(patch, by_slug[slug], nearest(base), commit)
        if not patch.new and not any(patch.edits.values()):
            raise Error(f"{slug}: the commit is empty")
        series.append(patch)
    assign_sets(series, old)
    put_back(series, old, nearest(base))

    # The written files must give exactly the same tree back.
    again = build_commits(base, series)
    if text("rev-parse", f"{again}^{{tree}}") != text("rev-parse", "HEAD^{tree}"):
        raise Error("the files would not give the same tree: nothing was written")
    changed = write_series(series)
    git("reset", "-q", "--hard", again)
    git("update-ref", SYNCED, again)
    git("update-ref", "refs/heads/base", base)
    return "\n".join(changed) or "nothing changed"


def check_files_synced(series: list[Patch]) -> None:
    """Raise if the files here changed since build/linux was assembled."""
    synced = resolve(SYNCED)
    if synced is None:
        raise Error(f"{WHERE} was not made by make tree")
    base = text("rev-list", "--max-parents=0", synced)
    try:
        same = build_commits(base, series) == synced
    except Error:
        same = False
    if not same:
        raise Error(
            "the files of the series changed since make tree: importing would "
            "lose that. Commit or stash them; FORCE=1 imports over them"
        )


# --- from commits to mails ---------------------------------------------------


def recipients(mails: list[Path]) -> tuple[list[str], list[str]]:
    """To and Cc from MAINTAINERS: maintainers, and reviewers and lists."""
    command = ["perl", "scripts/get_maintainer.pl", "--no-git", "--no-git-fallback"]
    command += ["--roles", "--no-rolestats", *map(str, mails)]
    env = os.environ | {"PERL_HASH_SEED": "0"}  # the same order each time
    run = subprocess.run(
        command, check=False, cwd=LINUX, capture_output=True, text=True, env=env
    )
    if run.returncode:
        raise Error(f"get_maintainer.pl: {run.stderr.strip()}")
    to, cc = [], []
    for line in run.stdout.splitlines():
        match = re.fullmatch(r"(.*?\S+@\S+) \((.*)\)", line)
        if not match:
            raise Error(f"get_maintainer.pl: {line}")
        (cc if re.match(r"reviewer|.* list\b", match[2]) else to).append(match[1])
    return to, cc


def write_send(where: Path, mails: list[Path]) -> None:
    """Write a script that sends the mails to the list of get_maintainer.pl."""
    to, cc = recipients(mails)
    lines = ["#!/bin/sh", "# SPDX-License-Identifier: GPL-2.0"]
    lines += ["# Options are those of git send-email, such as --dry-run."]
    lines += ['cd "$(dirname "$0")" && exec git send-email \\']
    lines += ["\t--8bit-encoding=UTF-8 \\"]  # cover letters have no header for it
    lines += [f"\t--to={shlex.quote(who)} \\" for who in to]
    lines += [f"\t--cc={shlex.quote(who)} \\" for who in cc]
    lines += ['\t"$@" ./*.patch']
    (where / "send").write_text("\n".join(lines) + "\n")
    (where / "send").chmod(0o755)


def find_needs(series: list[Patch]) -> dict[str, list[str]]:
    """For each set, those that it is to be applied to, in order, by its cover letter.

    Those of the set that the letter names first come first, so that most sets with the
    same needs begin alike.
    """
    titles: dict[str, str] = {}
    needs: dict[str, list[str]] = {}
    for patch in series:
        name = patch.set.split()[0]
        if name in needs:
            continue
        cover = TOP / f"series/{name}.cover"
        letter = cover.read_text() if cover.exists() else patch.message
        titles[letter.partition("\n")[0].strip()] = name
        found: list[str] = []
        for title in re.findall(r'^Depends-on: "(.*)"', letter, re.MULTILINE):
            if title not in titles or titles[title] == name:
                raise Error(f"{name}: no set before it is called `{title}`")
            found += [*needs[titles[title]], titles[title]]
        needs[name] = list(dict.fromkeys(found))
    return needs


def check_length(patch: Patch, commit: str) -> None:
    """Raise if it is long and its message does not say why."""
    stat = text("show", "--format=", "--numstat", commit)
    lines = sum(int(n) for line in stat.splitlines() for n in line.split()[:2])
    if lines > MAX_PATCH and f"{MAX_PATCH} lines" not in patch.message:
        raise Error(
            f"series/{patch.slug}.msg: the patch has {lines} lines: split it, or say "
            f'why it is one patch ("This is more than {MAX_PATCH} lines. ...")'
        )


def format_set(number: int, name: str, start: str, end: str) -> None:
    """Write the mails of the commits in start..end."""
    name, tree_name = name.split()
    cover = TOP / f"series/{name}.cover"
    count = int(text("rev-list", "--count", f"{start}..{end}"))
    if count > MAX_SET:
        raise Error(f"the set {name} has {count} patches: netdev accepts {MAX_SET}")
    if count > 1 and not cover.exists():
        raise Error(f"the set {name} has no cover letter, series/{name}.cover")
    where = OUT / f"{number:02}-{name}"
    args = ["format-patch", "-q", "--no-signature", "--no-notes", "-o", str(where)]
    args += [f"--subject-prefix=PATCH {tree_name}"]
    if cover.exists():
        args += ["--cover-letter", "--numbered", "--cover-from-description=none"]
    who, email = text("log", "-1", "--format=%an%n%ae", end).split("\n")
    git(*args, f"{start}..{end}", env=ident(who, email, count + 1))
    if cover.exists():
        subject, _, body = cover.read_text().partition("\n")
        mail = where / "0000-cover-letter.patch"
        letter = mail.read_text()
        letter = letter.replace("*** SUBJECT HERE ***", subject.strip(), 1)
        letter = letter.replace("*** BLURB HERE ***", body.strip(), 1)
        mail.write_text(letter)
    mails = sorted(where.glob("*.patch"))
    for mail in mails:
        with mail.open("a") as file:
            file.write(f"\nbase-commit: {text('rev-parse', 'base')}\n")
    write_send(where, mails)


def format_() -> str:
    if not resolve("HEAD"):
        raise Error("no build/linux: make tree first")
    commits = text("rev-list", "--reverse", "base..HEAD").split()
    base = nearest("base")
    all_patches = read_series()
    series = [patch for patch in all_patches if patch.is_on(base)]
    if resolve("HEAD") != resolve(SYNCED) or len(commits) != len(series):
        raise Error("build/linux has other patches than the files: make import first")
    if not commits:
        raise Error("the series has no patches")
    for patch, commit in zip(series, commits, strict=True):
        check_length(patch, commit)
    # The last commit of each set, in order
    sets = {patch.set: commit for patch, commit in zip(series, commits, strict=True)}
    # The cover letter of these is about patches that this base does not have.
    for_others = {patch.set for patch in all_patches if not patch.is_on(base)}
    names = {patch.set.split()[0] for patch in all_patches}
    for cover in (TOP / "series").glob("*.cover"):
        if cover.stem not in names:
            raise Error(f"series/{cover.name}: {MANIFEST} has no set {cover.stem}")
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    needs = find_needs(all_patches)
    start = "base"
    folders: dict[str, str] = {}
    last = start
    for number, (name, end) in enumerate(sets.items(), 1):
        start, last_of_previous = end, start
        if name in for_others and (TOP / f"series/{name.split()[0]}.cover").exists():
            continue
        format_set(number, name, last_of_previous, end)
        last = end
        short = name.split()[0]
        folders[short] = f"{number:02}-{short}"
        lines = [f"{folders[n]}\n" for n in needs[short] if n in folders]
        (OUT / folders[short] / "needs").write_text("".join(lines))
    # What all mails together give
    (OUT / "last").write_text(last + "\n")
    count = sum(not mail.name.startswith("0000") for mail in OUT.glob("*/*.patch"))
    return f"{OUT.relative_to(TOP)}: {len(folders)} sets, {count} patches"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["tree", "import", "format"])
    keep = "tree: keep a build/linux that has changes"
    parser.add_argument("--keep", action="store_true", help=keep)
    args = parser.parse_args()
    # Remove temporary files on SIGTERM, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # .ci/run runs make check and make test at the same time; git does not wait for locks.
    BUILD.mkdir(parents=True, exist_ok=True)
    fcntl.flock(os.open(BUILD, os.O_RDONLY), fcntl.LOCK_EX)
    try:
        if args.command == "tree":
            print(tree(args.keep))
        elif args.command == "import":
            print(import_())
        else:
            print(format_())
    except Error as err:
        print(f"series.py: {err}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
