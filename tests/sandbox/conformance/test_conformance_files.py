"""Reading and writing a sandbox's files."""

import errno
from functools import partial

import pytest
from sandbox_fixtures import opened, output

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.protocol import Sandbox, SandboxBackend
from coding_gym.sandbox.spec import HOME, WORKDIR


def test_files_are_written_and_read_back(sandbox: Sandbox) -> None:
    data = bytes(range(256)) * 5000
    sandbox.write_file("new/folder/file", data)
    assert sandbox.read_file(f"{sandbox.workdir}/new/folder/file") == data
    sandbox.write_file("empty", b"")
    assert sandbox.read_file("empty") == b""
    output(sandbox, "echo more >> new/folder/file && touch new/folder/other")
    sandbox.write_file(f"{HOME}/note", b"home")
    assert output(sandbox, "cat ~/note") == "home"


def test_a_written_file_keeps_only_its_mode(backend: SandboxBackend) -> None:
    with opened(backend, {"script": "old, longer content"}) as sandbox:
        output(sandbox, "chmod 750 script")
        sandbox.write_file("script", b"new")
        assert output(sandbox, "stat -c %a script; cat script") == "750\nnew"
        sandbox.write_file("fresh", b"")
        assert output(sandbox, "stat -c %a fresh") == "644\n"


def test_files_that_cannot_be_read_raise_as_open_does(backend: SandboxBackend) -> None:
    with opened(backend, {"file": "12345"}, python=True) as sandbox:
        output(sandbox, "mkfifo fifo; ln -s loop loop; ln -s nowhere dangling")
        bind = "import socket; socket.socket(socket.AF_UNIX).bind('socket')"
        has_sockets = sandbox.run_python(bind).ok  # landlock refuses them
        for name, number in (
            ("missing", errno.ENOENT),
            ("dangling", errno.ENOENT),
            (".", errno.EISDIR),
            ("file/below", errno.ENOTDIR),
            ("fifo", errno.EINVAL),
            ("socket", errno.EINVAL if has_sockets else errno.ENOENT),
            ("loop", errno.ELOOP),
        ):
            with pytest.raises(OSError) as caught:
                sandbox.read_file(name)
            assert caught.value.errno == number
        assert sandbox.read_file("file") == b"12345"


def test_files_that_cannot_be_written_raise_as_open_does(backend: SandboxBackend) -> None:
    with opened(backend, {"file": "12345"}) as sandbox:
        output(sandbox, "mkfifo fifo")
        for name, kind in (
            *((".", IsADirectoryError), ("file/below", NotADirectoryError)),
            *(("fifo", OSError), ("n" * 300, OSError)),
        ):
            with pytest.raises(kind):
                sandbox.write_file(name, b"x")
        assert sandbox.read_file("file") == b"12345"


def test_large_files_and_invalid_arguments_are_refused(backend: SandboxBackend) -> None:
    with opened(backend, {"file": "12345"}) as sandbox:
        with pytest.raises(OSError) as caught:
            sandbox.read_file("file", max_bytes=4)
        assert caught.value.errno == errno.EFBIG
        assert sandbox.read_file("file", max_bytes=5) == b"12345"
        with pytest.raises(OSError):
            sandbox.read_file("/dev/zero", max_bytes=5)
        for path, options in (("", {}), ("a\0b", {}), ("\ud800", {}), ("file", {"max_bytes": -1})):
            with pytest.raises(InvalidArgumentError):
                sandbox.read_file(path, **options)


def test_symbolic_links_resolve_inside(backend: SandboxBackend) -> None:
    with opened(backend, {"target": "inside"}) as sandbox:
        output(sandbox, f"ln -s {sandbox.workdir}/target link")
        assert sandbox.read_file("link") == b"inside"
        sandbox.write_file("link", b"changed")
        assert sandbox.read_file("target") == b"changed"
        assert output(sandbox, "test -L link && cat link") == "changed"


def test_file_names_can_be_any_bytes(backend: SandboxBackend) -> None:
    names = {"é ☂ 🐛": rb"\xc3\xa9 \xe2\x98\x82 \xf0\x9f\x90\x9b", "a\udcff": rb"a\xff"}
    names |= {"new\nline": rb"new\nline", "-rf": b"-rf", "quo'te\"": rb"quo\x27te\x22"}
    with opened(backend) as sandbox:
        for name, escaped in names.items():
            sandbox.write_file(name, b"by us")
            shell = f"$(printf -- '{escaped.decode()}')"
            assert output(sandbox, f'cat -- "{shell}"') == "by us"
            output(sandbox, f'echo by the shell > ./"{shell}"')
            assert sandbox.read_file(name) == b"by the shell\n"


def test_a_path_may_have_redundant_parts(sandbox: Sandbox) -> None:
    sandbox.write_file("folder/file", b"text")
    for path in (
        *("./folder//file", f"/.{sandbox.workdir}/folder/file", f"{WORKDIR}/folder/file"),
        *(f"/{WORKDIR}//folder/file", f"/./{WORKDIR}/./folder/../folder/file"),
    ):
        assert sandbox.read_file(path) == b"text"


def test_long_paths_are_written_or_refused(sandbox: Sandbox) -> None:
    deep = "a/" * 500 + "file"
    sandbox.write_file(deep, b"deep")
    assert sandbox.read_file(deep) == b"deep"
    for path in ("b/" * 3000 + "file", "é" * 3_000_000):
        for access in (partial(sandbox.write_file, data=b"x"), sandbox.read_file):
            with pytest.raises(OSError) as caught:
                access(path)
            assert caught.value.errno == errno.ENAMETOOLONG
    assert output(sandbox, "echo next") == "next\n"


def test_absolute_paths_work_without_access_to_the_workspace(sandbox: Sandbox) -> None:
    output(sandbox, "chmod 000 .")
    assert sandbox.read_file("/etc/passwd")
    sandbox.write_file(f"{HOME}/note", b"home")
    assert sandbox.read_file(f"{HOME}/note") == b"home"
