"""Checks of reading and writing a sandbox's files."""

# The names of the checks say what others say in docstrings.

import errno

from checks.claims import claim, expect, expect_error, opened, output
from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.protocol import SandboxBackend
from coding_gym.sandbox.spec import HOME


@claim()
def files_are_written_and_read_back(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        data = bytes(range(256)) * 5000
        sandbox.write_file("new/folder/file", data)
        expect("bytes", sandbox.read_file(f"{sandbox.workdir}/new/folder/file"), data)
        sandbox.write_file("empty", b"")
        expect("empty file", sandbox.read_file("empty"), b"")
        output(sandbox, "echo more >> new/folder/file && touch new/folder/other")
        sandbox.write_file(f"{HOME}/note", b"home")
        expect("home", output(sandbox, "cat ~/note"), "home")


@claim()
def a_written_file_keeps_its_mode_and_nothing_of_its_content(backend: SandboxBackend) -> None:
    with opened(backend, {"script": "old, longer content"}) as sandbox:
        output(sandbox, "chmod 750 script")
        sandbox.write_file("script", b"new")
        expect("mode and content", output(sandbox, "stat -c %a script; cat script"), "750\nnew")
        sandbox.write_file("fresh", b"")
        expect("mode of a new file", output(sandbox, "stat -c %a fresh"), "644\n")


@claim()
def files_that_cannot_be_read_raise_as_open_does(backend: SandboxBackend) -> None:
    with opened(backend, {"file": "12345"}) as sandbox:
        output(sandbox, "mkfifo fifo; ln -s loop loop; ln -s nowhere dangling")
        expect_error("missing", FileNotFoundError, lambda: sandbox.read_file("missing"))
        expect_error("dangling", FileNotFoundError, lambda: sandbox.read_file("dangling"))
        expect_error("folder", IsADirectoryError, lambda: sandbox.read_file("."))
        below = lambda: sandbox.read_file("file/below")  # noqa: E731 - reads like its neighbours
        expect_error("below a file", NotADirectoryError, below)
        code = expect_error("fifo", OSError, lambda: sandbox.read_file("fifo"))
        expect("errno", code, errno.EINVAL)
        code = expect_error("loop", OSError, lambda: sandbox.read_file("loop"))
        expect("errno", code, errno.ELOOP)
        expect("the next file", sandbox.read_file("file"), b"12345")


@claim()
def files_that_cannot_be_written_raise_as_open_does(backend: SandboxBackend) -> None:
    with opened(backend, {"file": "12345"}) as sandbox:
        output(sandbox, "mkfifo fifo")
        expect_error("folder", IsADirectoryError, lambda: sandbox.write_file(".", b""))
        below = lambda: sandbox.write_file("file/below", b"")  # noqa: E731 - as above
        expect_error("below a file", NotADirectoryError, below)
        expect_error("fifo", OSError, lambda: sandbox.write_file("fifo", b"x"))
        expect_error("name", OSError, lambda: sandbox.write_file("n" * 300, b"x"))
        expect("the next file", sandbox.read_file("file"), b"12345")


@claim()
def files_above_max_bytes_are_refused(backend: SandboxBackend) -> None:
    with opened(backend, {"file": "12345"}) as sandbox:
        code = expect_error("size", OSError, lambda: sandbox.read_file("file", max_bytes=4))
        expect("errno", code, errno.EFBIG)
        expect("at the limit", sandbox.read_file("file", max_bytes=5), b"12345")
        endless = lambda: sandbox.read_file("/dev/zero", max_bytes=5)  # noqa: E731 - as above
        expect_error("a device", OSError, endless)


@claim()
def a_size_that_no_file_can_have_is_refused(backend: SandboxBackend) -> None:
    with opened(backend, {"empty": "", "file": "1"}) as sandbox:
        negative = lambda: sandbox.read_file("empty", max_bytes=-1)  # noqa: E731 - as above
        expect_error("below zero", InvalidArgumentError, negative)
        expect("nothing", sandbox.read_file("empty", max_bytes=0), b"")
        expect("the next file", sandbox.read_file("file"), b"1")


@claim()
def paths_that_no_system_call_takes_are_refused(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        for path in ("", "a\0b", "\ud800"):
            reading = lambda path=path: sandbox.read_file(path)  # noqa: E731 - as above
            expect_error(repr(path), InvalidArgumentError, reading)
        expect_error("write", InvalidArgumentError, lambda: sandbox.write_file("", b""))


@claim()
def symbolic_links_resolve_inside(backend: SandboxBackend) -> None:
    with opened(backend, {"target": "inside"}) as sandbox:
        output(sandbox, f"ln -s {sandbox.workdir}/target link")
        expect("through a link", sandbox.read_file("link"), b"inside")
        sandbox.write_file("link", b"changed")
        expect("the target", sandbox.read_file("target"), b"changed")
        expect("still a link", output(sandbox, "test -L link && cat link"), "changed")


@claim()
def names_of_files_may_be_any_bytes(backend: SandboxBackend) -> None:
    names = {"é ☂ 🐛": rb"\xc3\xa9 \xe2\x98\x82 \xf0\x9f\x90\x9b", "a\udcff": rb"a\xff"}
    names |= {"new\nline": rb"new\nline", "-rf": b"-rf", "quo'te\"": rb"quo\x27te\x22"}
    with opened(backend) as sandbox:
        for name, escaped in names.items():
            sandbox.write_file(name, b"by us")
            shell = f"$(printf -- '{escaped.decode()}')"
            expect(f"{name!r} by the shell", output(sandbox, f'cat -- "{shell}"'), "by us")
            output(sandbox, f'echo by the shell > ./"{shell}"')
            expect(f"{name!r} by us", sandbox.read_file(name), b"by the shell\n")


@claim()
def long_paths_are_made_or_refused(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        deep = "a/" * 500 + "file"
        sandbox.write_file(deep, b"deep")
        expect("deep", sandbox.read_file(deep), b"deep")
        expect_error("too deep", OSError, lambda: sandbox.write_file("b/" * 3000 + "file", b"x"))
        expect("the next command", output(sandbox, "echo next"), "next\n")


@claim()
def writing_a_large_file_keeps_every_byte(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        data = bytes(range(251)) * 40_000
        sandbox.write_file("large", data)
        expect("size", output(sandbox, "stat -c %s large"), f"{len(data)}\n")
        expect("bytes", sandbox.read_file("large") == data, True)
