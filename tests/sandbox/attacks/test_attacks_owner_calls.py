"""Attacks on the owner's calls, by paths, links, races and files of the first process."""

import errno

import pytest
from arena import Arena

from coding_gym.sandbox import Sandbox

# Files of the first process that only a process with the right to trace it may open.
_READABLE = ("environ", "mem", "pagemap", "io", "auxv", "personality", "syscall")
_READS = [
    f"{folder}/{name}"
    for folder in ("/proc/self", "/proc/1", "/proc/thread-self", "/proc/self/task/1")
    for name in _READABLE
]
_WRITABLE = ("mem", "oom_score_adj", "comm", "clear_refs", "uid_map", "coredump_filter")
_WRITES = [f"{folder}/{name}" for folder in ("/proc/self", "/proc/1") for name in _WRITABLE]
# Its links to open folders, over which others are mounted.
_LINKS = [f"/proc/{who}/fd/{number}" for who in ("self", "1") for number in range(3, 12)]
_LINKS += ["/proc/self/cwd", "/proc/self/root", "/proc/1/root/workspace", "/dev/fd/4"]


def _read_error(attacker: Sandbox, path: str) -> type[OSError] | None:
    try:
        attacker.read_file(path, max_bytes=1 << 20)
    except OSError as error:
        return type(error)
    return None


def _write_error(attacker: Sandbox, path: str) -> type[OSError] | None:
    try:
        attacker.write_file(path, b"1")
    except OSError as error:
        return type(error)
    return None


def test_proc_files_of_the_first_process_cannot_be_opened(arena: Arena) -> None:
    with arena.open() as attacker:
        for path in _READS:
            assert _read_error(attacker, path) is PermissionError, path
        for path in _WRITES:
            assert _write_error(attacker, path) is PermissionError, path


def _is_entered(attacker: Sandbox, link: str) -> bool:
    """Tries to enter a folder by the owner's calls, also through a link to it."""
    attacker.run(f"ln -sfn {link} link")
    entered = []
    for place in (link, "link"):
        entered.append(attacker.run("touch x ../x", cwd=place).output[:9] != "bash: cd:")
        for path in (f"{place}/../work", f"{place}/shared.txt"):
            entered.append(_read_error(attacker, path) in {None, IsADirectoryError})
            entered.append(_write_error(attacker, path) in {None, IsADirectoryError})
        entered.append(_write_error(attacker, f"{place}/new/file") is None)
    return any(entered)


def test_folder_links_of_the_first_process_cannot_be_used(arena: Arena) -> None:
    with arena.open() as attacker:
        for link in _LINKS:
            assert not _is_entered(attacker, link), link
        assert attacker.run("find /workspace /tmp -name x -o -name new").output == ""


_TRAPS = {
    "to an account file": "ln -s /etc/shadow x",
    "through the first process": "ln -s /proc/1/root/etc/shadow x",
    "to a device": "ln -s /dev/zero x",
    "to the kernel's log": "ln -s /proc/kmsg x",
    "to the own terminal": "ln -s /dev/tty x",
    "to a terminal": "ln -s /dev/ptmx x",
    "to a host folder": "ln -s {folder}/secrets/key x",
    "by a relative path": "ln -s ../../../../../../../../{folder}/secrets/key x",
}


def test_links_do_not_lead_the_owner_to_other_files(arena: Arena) -> None:
    with arena.open() as attacker:
        for name, trap in _TRAPS.items():
            assert attacker.run("rm -f x; " + trap.format(**arena.host.facts())).ok
            assert _read_error(attacker, "x") is not None, name
            assert _write_error(attacker, "x") is not None, name
        assert attacker.run("rm x; ln -s shared.txt x").ok
        assert attacker.read_file("x") == b"shared"


def test_standard_input_cannot_grow_or_change(arena: Arena) -> None:
    script = "(for file in /dev/stdin /dev/fd/0; do echo more 1<> $file; : > $file; done; cat) 2>&-"
    with arena.open() as attacker:
        assert attacker.run(script, stdin=b"as it was").output == "as it was"


def test_links_to_read_only_files_are_not_written_through(arena: Arena) -> None:
    with arena.open() as attacker:
        attacker.run("ln -s /opt/shown/file x; ln -s /opt/shown new")
        for path in ("x", "new/file", "new/other", "new/deep/er/file"):
            with pytest.raises(OSError) as caught:
                attacker.write_file(path, b"x")
            assert caught.value.errno == errno.EROFS, path
