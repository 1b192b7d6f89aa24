"""What of the host a ``landlock`` sandbox may read, as rules that add up.

Landlock has no "all of this but that": where something below a folder is to stay out of sight, the
folder's entries are named one by one.
"""

import os
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from coding_gym.sandbox.zygote.host_folders import THIRD_PARTY

Grant = tuple[str, str]

_PACKAGE = Path(__file__).parents[2]
_TOP_FOLDERS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_ETC = (
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "debian_version",
    "group",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki",
    "protocols",
    "services",
    "ssl",
)
# They tell of the machine, and nothing of what runs on it.
_PROC = ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version")
_CPUS = ("online", "possible", "present")


@cache
def system_grants() -> tuple[Grant, ...]:
    """Returns the rules for what every sandbox sees: programs, libraries, devices."""
    grants = [("device", f"/dev/{name}") for name in _DEVICES]
    grants += [("read", f"/etc/{name}") for name in _ETC]
    grants += [("read", str(path)) for path in sorted(Path("/etc").glob("java-*-openjdk"))]
    grants += [("read", f"/proc/{name}") for name in _PROC]
    grants += [("read", f"/sys/devices/system/cpu/{name}") for name in _CPUS]
    for name in _TOP_FOLDERS:
        folder = Path("/") / name
        if folder.is_dir() and not folder.is_symlink():
            grants += tree_grants(folder)
    return tuple(grants)


@cache
def tree_grants(folder: Path) -> tuple[Grant, ...]:
    """Returns the rules for a folder with programs, less its third-party Python packages.

    Args:
        folder: Such as ``/usr`` or the prefix of an interpreter.
    """
    found = {path for pattern in THIRD_PARTY for path in folder.glob(pattern)}
    hidden = {str(path.resolve()) for path in (*found, _PACKAGE)}
    return tuple(_allow(str(folder), hidden))


def is_system(path: Path) -> bool:
    """Whether a path is part of what every sandbox sees."""
    return any(path.is_relative_to(f"/{name}") for name in _TOP_FOLDERS)


def _allow(path: str, hidden: Collection[str]) -> Iterator[Grant]:
    if path in hidden:
        return
    if not any(other.startswith(f"{path}/") for other in hidden):
        yield "read", path
        return
    # Strings: there may be thousands of entries.
    with os.scandir(path) as entries:
        for entry in entries:
            if not entry.is_symlink():
                yield from _allow(entry.path, hidden)
