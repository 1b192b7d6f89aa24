"""Making the owner's own calls do harm: paths, links, races, files of the first process."""

import contextlib
from dataclasses import replace

import pytest
from arena import Arena

_OF_THE_FIRST_PROCESS = (
    *("environ", "mem", "pagemap", "stack", "io", "fd/0", "fd/3", "fd/4", "fd/5", "fdinfo"),
    *("root/proc/kcore", "cwd", "ns/net", "map_files", "task/1/environ", "task/1/mem"),
)


@pytest.mark.parametrize("name", _OF_THE_FIRST_PROCESS)
@pytest.mark.parametrize("folder", ["/proc/self", "/proc/1", "/proc/thread-self"])
def test_no_file_of_the_first_process_tells_or_takes_a_thing(
    arena: Arena, folder: str, name: str
) -> None:
    with arena.open() as attacker:
        with pytest.raises(OSError, match=r"."):
            attacker.read_file(f"{folder}/{name}", max_bytes=1 << 20)
        with pytest.raises(OSError, match=r"."):
            attacker.write_file(f"{folder}/{name}", b"1")


@pytest.mark.parametrize(
    "name", ["oom_score_adj", "comm", "timerslack_ns", "clear_refs", "uid_map", "attr/current"]
)
def test_no_setting_of_the_first_process_can_be_written(arena: Arena, name: str) -> None:
    with arena.open() as attacker, pytest.raises(OSError, match=r"."):
        attacker.write_file(f"/proc/self/{name}", b"1")


def test_what_the_first_process_shows_of_itself_names_no_host_secret(arena: Arena) -> None:
    with arena.open() as attacker:
        for name in ("status", "maps", "mountinfo", "cgroup", "limits", "cmdline"):
            text = attacker.read_file(f"/proc/self/{name}")
            assert arena.host.marker.encode() not in text
            assert f"{arena.host.facts()['folder']}/layer".encode() not in text


# What the first process holds, as its own links to it: folders below those that are mounted.
_LINKS_OF_PROC = [f"/proc/{who}/fd/{n}" for who in ("self", "1") for n in range(3, 12)]
_LINKS_OF_PROC += ["/proc/self/cwd", "/proc/self/root", "/proc/1/root/workspace", "/dev/fd/4"]


@pytest.mark.parametrize("folder", _LINKS_OF_PROC)
def test_nothing_below_the_mounts_is_reached_through_the_first_process(
    arena: Arena, folder: str
) -> None:
    with arena.open() as attacker:
        attacker.run(f"ln -s {folder} link")
        for place in (folder, "link"):
            result = attacker.run("touch x ../x", cwd=place)
            assert (result.exit_code, result.output[:9]) == (1, "bash: cd:")
            for path in (f"{place}/../work", f"{place}/shared.txt", f"{place}/new/file"):
                with pytest.raises(OSError, match=r"."):
                    attacker.read_file(path)
                with pytest.raises(OSError, match=r"."):
                    attacker.write_file(path, b"x")
        assert attacker.run("find /workspace /tmp -name x -o -name new").output == ""


_LINKS = {
    "to an account file": "ln -s /etc/shadow x",
    "through the first process": "ln -s /proc/1/root/etc/shadow x",
    "to itself": "ln -s x x",
    "in a circle": "ln -s y x; ln -s x y",
    "to a device": "ln -s /dev/zero x",
    "to a terminal": "ln -s /dev/ptmx x",
    "to a pipe": "mkfifo x",
    "to a folder": "mkdir x",
    "to a host folder": "ln -s {folder}/secrets/key x",
    "up and away": "ln -s ../../../../../../../../{folder}/secrets/key x",
}


@pytest.mark.parametrize("link", _LINKS.values(), ids=_LINKS.keys())
def test_no_link_leads_the_owner_anywhere(arena: Arena, link: str) -> None:
    with arena.open() as attacker:
        assert attacker.run(link.format(**arena.host.facts())).ok
        with pytest.raises(OSError, match=r"."):
            attacker.read_file("x")
        with contextlib.suppress(OSError):  # a dangling link to /tmp, say, may become a file
            attacker.write_file("x", b"x")


def test_a_link_to_a_read_only_file_is_not_written_through(arena: Arena) -> None:
    with arena.open() as attacker:
        attacker.run("ln -s /opt/shown/file x; ln -s /opt/shown new")
        for path in ("x", "new/file", "new/other", "new/deep/er/file"):
            with pytest.raises(OSError, match="Read-only"):
                attacker.write_file(path, b"x")


_SWAPS = """
swap() {
  while :; do
    ln -sfn /opt/shown/file x; ln -sfn /etc/passwd x; ln -sfn /proc/1/environ x
    rm -rf x; mkdir x; rmdir x; mkfifo x; rm x; printf own > x; ln -f shared.txt x
  done
}
swap 2>/dev/null &
"""
# A write reserves its room first: where two meet in one file, zeros follow the shorter text.
_LETTERS = set(b"own shared shown written\0")


def test_races_of_links_with_reads_and_writes_change_nothing_outside(arena: Arena) -> None:
    spec = replace(arena.spec, shell="persistent")
    with arena.backend.open(spec) as attacker:
        assert attacker.run(_SWAPS).ok
        passwd = attacker.read_file("/etc/passwd")
        num_read = 0
        for _ in range(300):
            with contextlib.suppress(OSError):
                attacker.write_file("x", b"written")
            with contextlib.suppress(OSError):
                data = attacker.read_file("x")
                assert data == passwd or set(data) <= _LETTERS
                num_read += 1
        assert num_read
        assert attacker.read_file("/etc/passwd") == passwd
        assert attacker.run("echo alive").output == "alive\n"
    arena.assert_unharmed()


def test_a_locked_workspace_is_an_error_and_not_the_end(arena: Arena) -> None:
    with arena.open() as attacker:
        attacker.run("chmod 000 .")
        with pytest.raises(PermissionError):
            attacker.read_file("file")
        with pytest.raises(PermissionError):
            attacker.write_file("file", b"x")
        assert attacker.run("chmod 755 /workspace", cwd="/").ok
        attacker.write_file("file", b"x")
        assert attacker.read_file("file") == b"x"


@pytest.mark.parametrize("path", ["a/" * 1500 + "file", "a/" * 3000 + "file", "new/../../up/file"])
def test_no_path_ends_the_sandbox(arena: Arena, path: str) -> None:
    with arena.open() as attacker, contextlib.suppress(OSError):
        attacker.write_file(path, b"x")
        assert attacker.read_file(path) == b"x"


@pytest.mark.parametrize("folder", ["gone", "link", "fifo", "/etc/passwd", "x" * 300])
def test_no_folder_to_run_in_ends_the_sandbox(arena: Arena, folder: str) -> None:
    with arena.open() as attacker:
        attacker.run("ln -s link link; mkfifo fifo")
        result = attacker.run("pwd", cwd=folder)
        assert result.exit_code == 1
        assert result.output.startswith("bash: cd: ")
