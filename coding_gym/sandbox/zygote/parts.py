"""The pieces of a sandbox's root that are the same for all: an allow-list, prepared once.

What is not named here does not exist inside. Host folders are shown read-only; the files of
``/etc`` are copies or written here; folders with third-party Python packages are covered by an
empty one, and so is every folder that the owner says to hide.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from glob import glob

from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.steps import step

PARTS = "/parts"
EMPTY = "/parts/empty"
NOTHING = "/parts/nothing"  # an empty file
UID = GID = 1000
# The date of everything that is made for a sandbox, so that listings repeat: 2000-01-01, UTC.
TIMES = (946684800, 946684800)

_TOP_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
_COPIED = (
    "debian_version",
    "ld.so.cache",
    "ld.so.conf",
    "mime.types",
    "os-release",
    "protocols",
    "services",
)
_SHOWN_ETC_FOLDERS = ("alternatives", "ca-certificates", "crypto-policies", "pki", "ssl")
# Where Debian keeps the settings of its JDKs, without which they do not start.
_SHOWN_ETC_PATTERN = "java-*-openjdk"
# The keys among the certificates, which a group of the host's user may be allowed to read.
_PRIVATE_KEYS = ("ssl/private", "pki/*/private", "pki/consumer", "pki/entitlement")
# A sandbox with the host's network has the host's hosts, pip.conf and resolv.conf over these.
_WRITTEN = {
    "passwd": (
        "root:x:0:0:root:/root:/bin/sh\n"
        f"agent:x:{UID}:{GID}:agent:/home/agent:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/:/bin/false\n"
    ),
    "group": f"root:x:0:\nagent:x:{GID}:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "hostname": "sandbox\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "pip.conf": "",
    "resolv.conf": "",
}
THIRD_PARTY = (
    "lib*/py*/site-packages",
    "lib*/py*/dist-packages",
    "local/lib*/py*/site-packages",
    "local/lib*/py*/dist-packages",
    "envs",
    "pkgs",
    "src",
)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a sandbox's root is put together from.

    Attributes:
        binds: Prepared folders and their paths inside.
        links: Symbolic links of the root, path inside to target.
    """

    binds: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)


def prepare(host: str, hidden: Iterable[str]) -> Parts:
    """Builds the parts below `PARTS` from the host's root, which is mounted at ``host``."""
    parts = Parts()
    os.makedirs(EMPTY, mode=0o755)
    with step("prepare an empty file"):
        sc.write_text(NOTHING, "")
        sc.bind(NOTHING, NOTHING, recursive=False)
        sc.restrict(NOTHING, sc.NOSUID | sc.NODEV | sc.NOEXEC | sc.READ_ONLY)
    _show(f"{host}/usr", "/usr", parts, hidden)
    for name in _TOP_FOLDERS:
        source = f"{host}/{name}"
        if os.path.islink(source):
            parts.links[f"/{name}"] = os.readlink(source)
        elif os.path.isdir(source):
            _show(source, f"/{name}", parts, hidden)
    with step("prepare /etc"):
        _prepare_etc(host, parts)
    with step("prepare /dev"):
        _prepare_dev(host, parts)
    return parts


def cover(folder: str, host_path: str, hidden: Iterable[str]) -> None:
    """Puts an empty read-only folder over each third-party or hidden folder below ``folder``.

    Args:
        folder: Where a host folder is shown here.
        host_path: The path of that folder on the host.
        hidden: Host folders that no sandbox may see.
    """
    found = [path for pattern in THIRD_PARTY for path in glob(f"{folder}/{pattern}")]
    inside = (os.path.relpath(path, host_path) for path in hidden)
    found += [f"{folder}/{path}" for path in inside if path.split("/")[0] != ".."]
    seen = set()
    for path in filter(os.path.isdir, found):
        facts = os.stat(path)
        if (facts.st_dev, facts.st_ino) not in seen:
            seen.add((facts.st_dev, facts.st_ino))
            sc.bind(EMPTY, path, recursive=False)


def _show(source: str, inside: str, parts: Parts, hidden: Iterable[str]) -> None:
    target = PARTS + inside
    with step(f"show {inside}"):
        os.makedirs(target)
        sc.bind(source, target)
        cover(target, inside, hidden)
        sc.restrict(target, sc.NOSUID | sc.NODEV | sc.READ_ONLY)
    parts.binds[target] = inside


def _prepare_etc(host: str, parts: Parts) -> None:
    etc = f"{PARTS}/etc"
    os.makedirs(etc)
    for name in _COPIED:
        if os.path.isfile(f"{host}/etc/{name}"):
            with open(f"{host}/etc/{name}", "rb") as source, open(f"{etc}/{name}", "wb") as copy:
                copy.write(source.read())
    for name, text in _WRITTEN.items():
        with open(f"{etc}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    os.symlink("/proc/self/mounts", f"{etc}/mtab")
    names = (*_SHOWN_ETC_FOLDERS, *sorted(glob(_SHOWN_ETC_PATTERN, root_dir=f"{host}/etc")))
    shown = [name for name in names if os.path.isdir(f"{host}/etc/{name}")]
    for name in shown:
        os.mkdir(f"{etc}/{name}")
    _date(etc)
    sc.bind(etc, etc, recursive=False)
    for name in shown:
        sc.bind(f"{host}/etc/{name}", f"{etc}/{name}")
    for path in filter(os.path.isdir, (p for k in _PRIVATE_KEYS for p in glob(f"{etc}/{k}"))):
        sc.bind(EMPTY, path, recursive=False)
    sc.restrict(etc, sc.NOSUID | sc.NODEV | sc.NOEXEC | sc.READ_ONLY)
    parts.binds[etc] = "/etc"


def _prepare_dev(host: str, parts: Parts) -> None:
    dev = f"{PARTS}/dev"
    os.makedirs(dev)
    for name in _DEVICES:
        with open(f"{dev}/{name}", "wb"):
            pass
    for name, target in _DEVICE_LINKS.items():
        os.symlink(target, f"{dev}/{name}")
    for name in ("pts", "shm"):
        os.mkdir(f"{dev}/{name}")
    _date(dev)
    sc.bind(dev, dev, recursive=False)
    for name in _DEVICES:
        sc.bind(f"{host}/dev/{name}", f"{dev}/{name}", recursive=False)
    # Not nodev, which would make the nodes useless. Read-only, for the nodes are the host's own:
    # they can still be written to, but not dated.
    sc.restrict(dev, sc.NOSUID | sc.NOEXEC | sc.READ_ONLY)
    parts.binds[dev] = "/dev"


def _date(folder: str) -> None:
    """Gives a folder of ours, on which nothing is mounted yet, and what is in it a fixed time."""
    for entry in os.scandir(folder):
        os.utime(entry.path, TIMES, follow_symlinks=False)
    os.utime(folder, TIMES)
