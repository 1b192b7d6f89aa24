"""Machines that this one is not: what makes a process believe that it runs on one of them."""

import os
import subprocess
import sys

# Defines `refuse`, by which a process and all it starts are refused system calls by number.
_REFUSE = """
import ctypes, os, platform, struct
from pathlib import Path

def refuse(*numbers, error=1):
    code = [(0x20, 0, 0, 0)]
    for number in numbers:
        code += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | error)]
    code.append((0x06, 0, 0, 0x7FFF0000))
    from coding_gym.sandbox.inside import syscalls
    syscalls.prctl(38, 1)
    syscalls.install_filter(b"".join(struct.pack("HBBI", *one) for one in code))

IS_ARM = platform.machine() == "aarch64"
"""

NO_UNSHARE = "refuse(97 if IS_ARM else 272)\n"
NO_PIVOT = "refuse(41 if IS_ARM else 155)\n"
NO_MOUNT = "refuse(40 if IS_ARM else 165)\n"
NO_LANDLOCK = "refuse(444, 445, 446, error=38)\n"

# Enters a user namespace in which no other can be made.
NO_USER_NAMESPACES = """
uid, gid, this = os.geteuid(), os.getegid(), f"/proc/{os.getpid()}"
begin_read, begin = os.pipe()
helper = os.fork() if uid == 0 else 1
if helper == 0:
    os.read(begin_read, 1)
    for kind in ("uid_map", "gid_map"):
        Path(f"{this}/{kind}").write_text("0 0 100000")
    os._exit(0)
assert ctypes.CDLL(None).unshare(0x10000000) == 0  # before a library starts threads
if uid == 0:
    os.write(begin, b"x")
    os.waitpid(helper, 0)
else:
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
Path("/proc/sys/user/max_user_namespaces").write_text("0")
"""


def run_on(machine: str, script: str) -> "subprocess.CompletedProcess[str]":
    """Runs a script on such a machine, some of these texts joined, with no Docker daemon."""
    return subprocess.run(
        [sys.executable, "-c", f"{_REFUSE}{machine}{script}"],
        env={**os.environ, "DOCKER_HOST": "unix:///nonexistent/docker.sock"},
        capture_output=True,
        text=True,
        timeout=120,
    )
