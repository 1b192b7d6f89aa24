"""A hostile script, the words that it may use, and assertions about its report."""

import json
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from system_calls import NUMBERS_HERE

from coding_gym.sandbox import SandboxLimits

# Small enough that an attack on them is over soon.
TIGHT = SandboxLimits(
    disk_bytes=16 << 20,
    num_inodes=2000,
    num_processes=40,
    file_bytes=4 << 20,
    num_open_files=128,
    memory_bytes=128 << 20,
)
# Everything that a script is given. An attempt prints one line: its name, then DONE and what it
# got, or "nothing" where it got nothing, or the name of the error that stopped it.
IMPORTS = """
import ctypes, errno, fcntl, glob, json, mmap, os, pty, re, resource, select, signal, socket
import stat, struct, subprocess, sys, termios, threading, time
from contextlib import suppress
"""
_WORDS = """
NUMBERS, FACTS = json.loads({numbers!r}), json.loads({facts!r})
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(name, *arguments):
    number = NUMBERS.get(name, name)
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    answer = libc.syscall(ctypes.c_long(number), *words)
    if answer < 0:
        raise OSError(ctypes.get_errno(), str(name))
    return answer
def attempt(name, action):
    try:
        got = action()
    except OSError as error:
        print(name, errno.errorcode.get(error.errno, type(error).__name__), flush=True)
    except Exception as error:  # a refusal of any kind is what is to be told
        print(name, type(error).__name__, flush=True)
    else:
        empty = got is False or got in ("", b"", [], 0.5)
        print(name, "nothing" if empty else "DONE " + ascii(got)[:2000], flush=True)
def read(path, size=1 << 20):
    with open(path, "rb") as file:
        return file.read(size)
def write(path, data=b"x"):
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
def texts(pattern):
    for path in glob.glob(pattern):
        with suppress(OSError):
            yield read(path)
def walk(*skipped):
    for folder, folders, files in os.walk("/"):
        folders[:] = [f for f in folders if os.path.join(folder, f) not in skipped]
        yield from (os.path.join(folder, name) for name in (*folders, *files))
def holds(path, text):
    with suppress(OSError):
        return text in path.encode() or stat.S_ISREG(os.lstat(path).st_mode) and text in read(path)
def needle():
    return FACTS["marker"][::-1].encode()
def child(action):
    "Runs an action in a forked process and returns how it ended: its exit code or minus a signal."
    pid = os.fork()
    if pid == 0:
        try:
            action()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
        finally:
            os._exit(255)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def count(take, most=5000):
    "What can be had, as often as it can be; not more than most."
    got = []
    with suppress(OSError):
        while len(got) < most:
            got.append(take())
    return got
def hold():
    "Tells the test that the attack is at its height, and waits until it has looked around."
    os.write(HERE, b"x")
    os.read(GO, 1)
with suppress(OSError):
    HERE, GO = (os.open("/opt/gate/" + n, os.O_RDWR) for n in ("here", "go"))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """A script, the report that a sandbox allows, and an ablation under which it succeeds.

    Attributes:
        name: What is attempted.
        script: Python, in the words above.
        report: What it must print, attempts with commas between them: the name of each and the
            errors that may have stopped it, with ``|`` between those.
        ablation: The protection without which the same script succeeds, as `Arena.without` names
            it; "" where that would harm the machine or needs a machine of another kind.
        succeeds: The attempts that succeed then, all of them when ""; "dies" where the sandbox
            itself does not survive.
        lasts: Whether the script calls ``hold`` at its height.
        words: More functions for the script.
        meanwhile: Asserts something while an attack that lasts is at its height.
        limits: Those of the attacker; None for the default ones.
    """

    name: str
    script: str
    report: str
    ablation: str = ""
    succeeds: str = ""
    lasts: bool = False
    words: str = ""
    meanwhile: Callable[[], None] = lambda: None
    limits: SandboxLimits | None = None

    def __str__(self) -> str:
        return self.name.replace(" ", "-")

    def source(self, facts: Mapping[str, object]) -> str:
        """Returns the whole script but for `IMPORTS`, by what the attacker knows of the host."""
        known = {"numbers": json.dumps(NUMBERS_HERE), "facts": json.dumps(dict(facts))}
        return _WORDS.format(**known) + self.words + textwrap.dedent(self.script)

    def assert_blocked(self, report: str) -> None:
        """Asserts that every attempt was made, and stopped by an expected error."""
        wanted = self._wanted()
        got = [line.split(maxsplit=1) for line in report.splitlines()]
        assert [line[0] for line in got] == [name for name, _ in wanted], report
        for (name, answer), (_, allowed) in zip(got, wanted, strict=True):
            first = answer.split()[0]
            assert first in allowed.split("|"), f"{name}: {answer}"

    def assert_succeeded(self, report: str) -> None:
        """Asserts that the attempts that should succeed under the ablation did."""
        done = {line.split()[0] for line in report.splitlines() if " DONE" in line}
        assert done >= set(self.succeeds.split() or [name for name, _ in self._wanted()]), report

    def _wanted(self) -> list[tuple[str, str]]:
        """Returns the attempts and what may have stopped each, in order."""
        return [(name, errors) for name, errors in map(str.split, self.report.split(","))]
