#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests that what README.md tells users to type exists, and means what it says.

test_shell.py runs the lines in make shell; lab/run/check user compiles the program.
"""

import itertools
import re
import subprocess
import unittest
from fnmatch import fnmatchcase
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def readme() -> str:
    return (TOP / "README.md").read_text()


def prose() -> str:
    """All but the program, which has three backticks around it"""
    return re.sub(r"(?ms)^```.*?^```$", "", readme())


def output(*command: str | Path) -> str:
    done = subprocess.run(
        command,
        cwd=TOP,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.returncode}: {done.stdout}"
    return done.stdout


def blocks() -> list[list[str]]:
    """The indented blocks"""
    lines = prose().splitlines()
    kinds = itertools.groupby(lines, lambda line: line.startswith("    "))
    return [[line[4:] for line in lines] for indented, lines in kinds if indented]


def lines_in_shell() -> list[str]:
    """What is typed in make shell"""
    [lines] = [block[1:] for block in blocks() if block[0] == "make shell"]
    return lines


def check_make(words: str) -> None:
    """The target exists, make help names it, and it uses the variables."""
    target, *variables = words.split()
    known = output("make", "help")
    assert target == "help" or re.search(rf"(?m)^  {target} ", known), target
    output("make", "-n", target, *variables)
    for variable in variables:
        name = variable.partition("=")[0]
        assert re.search(rf"(?m)^ .*\b{name}=", known), name


def built_packages() -> list[str]:
    """Those of make deb and make live"""
    controls = [*TOP.glob("*/debian/control"), *TOP.glob("*/*/debian/control")]
    text = "".join(control.read_text() for control in controls)
    return re.findall(r"(?m)^Package: (\S+)$", text)


def check_apt(words: str) -> None:
    for word in output("bash", "-c", f"set -f; printf '%s\n' {words}").split():
        if word.startswith("linux-headers-"):
            continue
        path, _, name = word.rpartition("/")
        assert path == "./out/deb", word
        package = name.removesuffix("_*.deb")
        assert name == "*.deb" or package in built_packages(), word


def check_remove(words: str) -> None:
    pattern = words.strip("'")
    left = [name for name in built_packages() if not fnmatchcase(name, pattern)]
    assert all("pcap" in name for name in left), (words, left)


def check_module(name: str) -> None:
    assert f"obj-m := {name}.o\n" in (TOP / "live/Kbuild").read_text(), name


def check_card(words: str) -> None:
    """It takes two ports, and prints the report to standard output."""
    first, second, redirection = words.split()
    assert re.fullmatch(r"eth\d eth\d >\w+\.txt", words), (first, second, redirection)
    usage = output(TOP / "apps/card/tpacket4-card", "--help")
    assert re.match(r"usage: tpacket4-card .*IF \[IF\]\n", usage), usage


CHECKS = {
    "make ": check_make,
    "sudo apt install ": check_apt,
    "sudo modprobe ": check_module,
    "sudo rmmod ": check_module,
    "sudo tpacket4-card ": check_card,
}


class ReadmeTest(unittest.TestCase):
    def test_commands(self) -> None:
        in_shell = lines_in_shell()
        self.assertTrue(in_shell)
        for line in itertools.chain.from_iterable(blocks()):
            if line in in_shell:
                continue
            for command in line.partition(" #")[0].split(" && "):
                with self.subTest(command):
                    found = [c for c in CHECKS if command.startswith(c)]
                    self.assertEqual(len(found), 1, "no check for this command")
                    CHECKS[found[0]](command.removeprefix(found[0]).strip())

    def test_commands_in_sentences(self) -> None:
        found = 0
        for code in re.findall(r"`([^`\n]+)`", prose()):
            if code.startswith("make "):
                with self.subTest(code):
                    check_make(code.removeprefix("make "))
            elif code.startswith("sudo apt remove "):
                with self.subTest(code):
                    check_remove(code.removeprefix("sudo apt remove "))
            elif code.startswith("lab/") and " " in code:
                with self.subTest(code):
                    output(*code.split())
            else:
                continue
            found += 1
        self.assertGreater(found, 2)

    def test_it_is_short(self) -> None:
        self.assertLessEqual(len(readme().splitlines()), 130)

    def test_files(self) -> None:
        """Links, and the paths of the last table, lead to something."""
        links = re.findall(r"\]\(([^)#]+)", readme())
        table = readme().partition("## Where things are\n")[2]
        paths = re.findall(r"^\| `([^|]*)` \|", table, re.MULTILINE)
        self.assertGreater(min(len(links), len(paths)), 5)
        names = [name for path in paths for name in path.split("`, `")]
        for name in links + names:
            # What is generated need not be there yet.
            if name.startswith(("http", "build/", "out/", "~/")):
                continue
            with self.subTest(name):
                self.assertTrue((TOP / name).exists())


if __name__ == "__main__":
    unittest.main()
