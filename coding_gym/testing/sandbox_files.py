"""Checks of a sandbox's files: layers, mounts, reading and writing."""

# The names of the checks say what others say in docstrings.
# ruff: noqa: D103

import errno
from pathlib import Path

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.interpreters import default_interpreter
from coding_gym.sandbox.protocol import SandboxBackend
from coding_gym.sandbox.spec import Mount, SandboxSpec
from coding_gym.testing.claims import claim, expect, expect_error, opened, output, tree


@claim
def no_layers_give_an_empty_workspace(backend: SandboxBackend) -> None:
    with backend.open(SandboxSpec()) as sandbox:
        expect("listing", output(sandbox, "ls -A"), "")
        expect("working folder", output(sandbox, "pwd"), f"{sandbox.workdir}\n")


@claim
def layers_are_united_and_the_first_wins(backend: SandboxBackend) -> None:
    upper, lower = {"both": "upper", "folder/u": "u"}, {"both": "lower", "folder/l": "l"}
    with tree(backend, upper) as top, tree(backend, lower) as bottom:
        spec = SandboxSpec(layers=(top, bottom))
        with backend.open(spec) as sandbox:
            expect("files", output(sandbox, "cat both folder/u folder/l"), "upperul")


@claim
def layers_are_never_written(backend: SandboxBackend) -> None:
    with tree(backend, {"a": "a", "folder/b": "b"}) as layer:
        spec = SandboxSpec(layers=(layer,))
        with backend.open(spec) as sandbox:
            output(sandbox, "echo changed > a; rm -r folder; mkdir folder; echo new > folder/c")
            expect("folder", output(sandbox, "ls folder; cat a"), "c\nchanged\n")
        files = sorted(str(p.relative_to(layer)) for p in layer.rglob("*") if p.is_file())
        expect("files of the layer", files, ["a", "folder/b"])
        expect("content", (layer / "a").read_text(encoding="utf-8"), "a")
        with backend.open(spec) as again:
            expect("a second sandbox", output(again, "cat a folder/b"), "ab")


@claim
def files_of_a_layer_can_be_moved_linked_and_made_executable(backend: SandboxBackend) -> None:
    with opened(backend, {"a": "echo ran\n", "folder/b": "b"}) as sandbox:
        output(sandbox, "chmod +x a; mv a c; ln -s c d; ln c e; mv folder renamed")
        expect("result", output(sandbox, "bash ./d; ./e; cat renamed/b"), "ran\nran\nb")


@claim
def files_are_written_and_read_back(backend: SandboxBackend) -> None:
    with opened(backend, {"script": "old, longer content"}) as sandbox:
        data = bytes(range(256)) * 5000
        sandbox.write_file("new/folder/file", data)
        expect("bytes", sandbox.read_file(f"{sandbox.workdir}/new/folder/file"), data)
        output(sandbox, "chmod 750 script")
        sandbox.write_file("script", b"new")
        expect("mode and content", output(sandbox, "stat -c %a script; cat script"), "750\nnew")
        sandbox.write_file("empty", b"")
        expect("empty file", sandbox.read_file("empty"), b"")
        output(sandbox, "echo more >> new/folder/file")


@claim
def files_that_cannot_be_read_raise_as_open_does(backend: SandboxBackend) -> None:
    with opened(backend, {"file": "12345"}) as sandbox:
        output(sandbox, "mkfifo fifo; ln -s loop loop")
        expect_error("missing", FileNotFoundError, lambda: sandbox.read_file("missing"))
        expect_error("folder", IsADirectoryError, lambda: sandbox.read_file("."))
        below = lambda: sandbox.read_file("file/below")  # noqa: E731 - reads like its neighbours
        expect_error("below a file", NotADirectoryError, below)
        code = expect_error("size", OSError, lambda: sandbox.read_file("file", max_bytes=4))
        expect("errno", code, errno.EFBIG)
        code = expect_error("fifo", OSError, lambda: sandbox.read_file("fifo"))
        expect("errno", code, errno.EINVAL)
        code = expect_error("loop", OSError, lambda: sandbox.read_file("loop"))
        expect("errno", code, errno.ELOOP)
        expect_error("write", IsADirectoryError, lambda: sandbox.write_file(".", b""))
        expect("at the limit", sandbox.read_file("file", max_bytes=5), b"12345")


@claim
def a_size_that_no_file_can_have_is_refused(backend: SandboxBackend) -> None:
    with opened(backend, {"empty": "", "file": "1"}) as sandbox:
        negative = lambda: sandbox.read_file("empty", max_bytes=-1)  # noqa: E731 - as above
        expect_error("below zero", InvalidArgumentError, negative)
        expect("nothing", sandbox.read_file("empty", max_bytes=0), b"")
        expect("the next file", sandbox.read_file("file"), b"1")


@claim
def symbolic_links_resolve_inside(backend: SandboxBackend) -> None:
    with opened(backend, {"target": "inside"}) as sandbox:
        output(sandbox, f"ln -s {sandbox.workdir}/target link")
        expect("through a link", sandbox.read_file("link"), b"inside")
        sandbox.write_file("link", b"changed")
        expect("the target", sandbox.read_file("target"), b"changed")


@claim
def python_names_the_interpreter_of_the_spec(backend: SandboxBackend) -> None:
    python = default_interpreter()
    with backend.open(SandboxSpec(python=python)) as sandbox:
        for name in ("python", "python3"):
            script = "import platform; print(platform.python_version())"
            version = output(sandbox, f"{name} -c '{script}'").strip()
            expect(name, version, python.version)


@claim
def mounts_are_found_through_path(backend: SandboxBackend) -> None:
    with tree(backend, {"file": "mounted"}) as source:
        mount = Mount(source=source, target="/opt/tools/one")
        with backend.open(SandboxSpec(mounts=(mount,))) as sandbox:
            path = sandbox.path("/opt/tools/one")
            expect("content", output(sandbox, f"cat {path}/file"), "mounted")


@claim
def folders_that_do_not_exist_are_refused(backend: SandboxBackend) -> None:
    missing = Path("/no/such/folder")
    mount = Mount(source=missing, target="/opt/x")
    for spec in (SandboxSpec(layers=(missing,)), SandboxSpec(mounts=(mount,))):
        expect_error("missing", InvalidArgumentError, lambda spec=spec: backend.open(spec))  # type: ignore[misc]


@claim
def sandboxes_do_not_share_their_workspaces(backend: SandboxBackend) -> None:
    with opened(backend) as one, opened(backend) as other:
        one.write_file("secret", b"1")
        expect("the other's files", output(other, "ls -A"), "")
