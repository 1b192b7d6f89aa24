"""Conformance checks that anyone's sandbox backend can run.

    import pytest
    from coding_gym.testing import sandbox_checks

    @pytest.mark.parametrize("check", sandbox_checks(), ids=lambda check: check.__name__)
    def test_my_backend_conforms(check):
        check(MyBackend())

A check is a function of a backend whose name is what it claims. It raises ``AssertionError`` where
the claim does not hold. Needs nothing but bash, the usual small programs, and this package.
"""

# The names of the checks say what others say in docstrings.
# ruff: noqa: D103

import errno
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox.interpreters import default_interpreter
from coding_gym.sandbox.protocol import Sandbox, SandboxBackend
from coding_gym.sandbox.spec import Mount, SandboxSpec

SandboxCheck = Callable[[SandboxBackend], None]
_CHECKS: list[SandboxCheck] = []


def sandbox_checks() -> tuple[SandboxCheck, ...]:
    """Returns the checks of the contract in `coding_gym.sandbox.protocol`."""
    return tuple(_CHECKS)


def _check(function: SandboxCheck) -> SandboxCheck:
    _CHECKS.append(function)
    return function


def _expect(what: str, got: object, wanted: object) -> None:
    if got != wanted:
        raise AssertionError(f"{what}: wanted {wanted!r}, got {got!r}")


def _expect_error(what: str, kind: type[BaseException], action: Callable[[], object]) -> int:
    """Returns the errno of the error that ``action`` must raise, 0 where it has none."""
    try:
        result = action()
    except kind as error:
        return getattr(error, "errno", 0) or 0
    raise AssertionError(f"{what}: wanted {kind.__name__}, got {result!r}")


@contextmanager
def _tree(backend: SandboxBackend, files: Mapping[str, str]) -> Iterator[Path]:
    """Gives a temporary folder with files, owned as layers must be."""
    with tempfile.TemporaryDirectory(prefix="coding_gym-check-") as temporary:
        folder = Path(temporary)
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        folder.chmod(0o755)
        for path in (folder, *folder.rglob("*")):
            if os.geteuid() == 0:
                os.chown(path, *backend.owner(), follow_symlinks=False)
        yield folder


@contextmanager
def _opened(backend: SandboxBackend, files: Mapping[str, str] | None = None) -> Iterator[Sandbox]:
    with _tree(backend, files or {}) as layer, backend.open(SandboxSpec(layers=(layer,))) as opened:
        yield opened


def _output(sandbox: Sandbox, command: str) -> str:
    result = sandbox.run(command)
    _expect(f"exit code of {command!r} ({result.output!r})", result.exit_code, 0)
    return result.output


@_check
def no_layers_give_an_empty_workspace(backend: SandboxBackend) -> None:
    with backend.open(SandboxSpec()) as sandbox:
        _expect("listing", _output(sandbox, "ls -A"), "")
        _expect("working folder", _output(sandbox, "pwd"), f"{sandbox.workdir}\n")


@_check
def layers_are_united_and_the_first_wins(backend: SandboxBackend) -> None:
    upper, lower = {"both": "upper", "folder/u": "u"}, {"both": "lower", "folder/l": "l"}
    with _tree(backend, upper) as top, _tree(backend, lower) as bottom:
        spec = SandboxSpec(layers=(top, bottom))
        with backend.open(spec) as sandbox:
            _expect("files", _output(sandbox, "cat both folder/u folder/l"), "upperul")


@_check
def layers_are_never_written(backend: SandboxBackend) -> None:
    with _tree(backend, {"a": "a", "folder/b": "b"}) as layer:
        spec = SandboxSpec(layers=(layer,))
        with backend.open(spec) as sandbox:
            _output(sandbox, "echo changed > a; rm -r folder; mkdir folder; echo new > folder/c")
            _expect("folder", _output(sandbox, "ls folder; cat a"), "c\nchanged\n")
        files = sorted(str(p.relative_to(layer)) for p in layer.rglob("*") if p.is_file())
        _expect("files of the layer", files, ["a", "folder/b"])
        _expect("content", (layer / "a").read_text(encoding="utf-8"), "a")
        with backend.open(spec) as again:
            _expect("a second sandbox", _output(again, "cat a folder/b"), "ab")


@_check
def files_of_a_layer_can_be_moved_linked_and_made_executable(backend: SandboxBackend) -> None:
    with _opened(backend, {"a": "echo ran\n", "folder/b": "b"}) as sandbox:
        _output(sandbox, "chmod +x a; mv a c; ln -s c d; ln c e; mv folder renamed")
        _expect("result", _output(sandbox, "bash ./d; ./e; cat renamed/b"), "ran\nran\nb")


@_check
def exit_codes_come_through(backend: SandboxBackend) -> None:
    with _opened(backend) as sandbox:
        _expect("exit", sandbox.run("exit 7").exit_code, 7)
        _expect("signal", sandbox.run("kill -TERM $$").exit_code, 128 + 15)
        _expect("unknown command", sandbox.run("no-such-command").exit_code, 127)
        _expect("syntax error", sandbox.run("if").exit_code, 2)
        _expect("empty command", sandbox.run("").exit_code, 0)


@_check
def output_and_errors_are_merged_in_order(backend: SandboxBackend) -> None:
    with _opened(backend) as sandbox:
        _expect("output", _output(sandbox, "echo 1; echo 2 >&2; echo 3"), "1\n2\n3\n")


@_check
def bytes_that_are_not_utf8_are_replaced(backend: SandboxBackend) -> None:
    with _opened(backend) as sandbox:
        _expect("output", _output(sandbox, r"printf 'a\xffb\xc3\xa9'"), "a\ufffdbé")


@_check
def long_output_keeps_its_head_and_its_tail(backend: SandboxBackend) -> None:
    with _opened(backend) as sandbox:
        result = sandbox.run("echo first; seq 100000; echo last", max_output_bytes=1000)
        lines = result.output.splitlines()
        _expect("truncated", result.truncated, True)
        _expect("head and tail", (lines[0], lines[-1]), ("first", "last"))
        _expect("says how much is missing", "bytes left out" in result.output, True)
        _expect("bounded", len(result.output) < 1100, True)


@_check
def output_at_the_limit_is_whole(backend: SandboxBackend) -> None:
    with _opened(backend) as sandbox:
        result = sandbox.run("printf 0123456789", max_output_bytes=10)
        _expect("output", (result.output, result.truncated), ("0123456789", False))


@_check
def a_timeout_kills_everything_and_the_sandbox_goes_on(backend: SandboxBackend) -> None:
    with _opened(backend) as sandbox:
        result = sandbox.run("echo begun; trap '' TERM; sleep 60 & sleep 60", timeout_s=0.5)
        _expect("result", (result.timed_out, result.exit_code), (True, 124))
        _expect("output so far", result.output, "begun\n")
        _expect("bounded", result.duration_s < 30, True)
        _expect("the next command", _output(sandbox, "echo next"), "next\n")


@_check
def a_timeout_holds_when_the_output_is_closed(backend: SandboxBackend) -> None:
    with _opened(backend) as sandbox:
        result = sandbox.run("exec >&- 2>&-; sleep 60", timeout_s=0.5)
        _expect("result", (result.timed_out, result.exit_code), (True, 124))


@_check
def what_is_left_running_is_killed_and_counted(backend: SandboxBackend) -> None:
    with _opened(backend) as sandbox:
        result = sandbox.run("sleep 300 & echo $!")
        _expect("leftovers", (result.num_leftovers, result.exit_code), (1, 0))
        running = sandbox.run(f"grep '^State:.[^ZX]' /proc/{int(result.output)}/status 2>/dev/null")
        _expect("what is running", running.output, "")
        _expect("none are left by a plain command", sandbox.run("true | true").num_leftovers, 0)


@_check
def output_of_a_process_substitution_arrives(backend: SandboxBackend) -> None:
    with _opened(backend) as sandbox:
        _expect("output", _output(sandbox, "echo abc > >(tr a-c A-C)"), "ABC\n")


@_check
def standard_input_is_what_was_given(backend: SandboxBackend) -> None:
    with _opened(backend) as sandbox:
        data = bytes(range(256)) * 1000
        _expect("bytes", sandbox.run("wc -c", stdin=data).output.strip(), str(len(data)))
        _expect("nothing by default", sandbox.run("read line").exit_code, 1)


@_check
def commands_run_where_they_are_told(backend: SandboxBackend) -> None:
    with _opened(backend, {"folder/file": ""}) as sandbox:
        _expect("relative", sandbox.run("ls", cwd="folder").output, "file\n")
        absolute = f"{sandbox.workdir}/folder"
        _expect("absolute", sandbox.run("ls", cwd=absolute).output, "file\n")
        missing = sandbox.run("ls", cwd="nowhere")
        _expect("missing", (missing.exit_code, "nowhere" in missing.output), (1, True))
        _expect("no memory of it", _output(sandbox, "pwd"), f"{sandbox.workdir}\n")


@_check
def no_state_of_the_shell_is_kept(backend: SandboxBackend) -> None:
    with _opened(backend) as sandbox:
        _output(sandbox, "cd /; export KEPT=1; umask 777")
        _expect("state", _output(sandbox, 'echo "$KEPT"; pwd'), f"\n{sandbox.workdir}\n")


@_check
def variables_come_from_the_spec_and_the_call(backend: SandboxBackend) -> None:
    with backend.open(SandboxSpec(env={"A": "spec", "B": "spec"}, path=("/x/bin",))) as sandbox:
        result = sandbox.run('echo "$A $B"; echo "${PATH%%:*}"', env={"B": "call"})
        _expect("variables", result.output, "spec call\n/x/bin\n")
        _expect("only that call", _output(sandbox, 'echo "$B"'), "spec\n")


@_check
def the_environment_is_fixed_and_holds_nothing_of_the_host(backend: SandboxBackend) -> None:
    name = "CODING_GYM_CHECK_SECRET"
    os.environ[name] = "x"
    try:
        with _opened(backend) as sandbox:
            names = _output(sandbox, "env -0 | tr '\\n\\0' ' \\n' | cut -d= -f1").split()
            _expect("the host's variable", name in names, False)
            fixed = _output(sandbox, 'echo "$TZ $PYTHONHASHSEED $TERM $PAGER $COLUMNS"')
            _expect("fixed variables", fixed, "UTC 0 dumb cat 80\n")
    finally:
        del os.environ[name]


@_check
def commands_longer_than_one_argument_run(backend: SandboxBackend) -> None:
    with _opened(backend) as sandbox:
        text = "x" * (300 << 10)
        _expect(
            "length",
            _output(sandbox, f"echo {text} | wc -c; read || echo eof"),
            f"{len(text) + 1}\neof\n",
        )


@_check
def arguments_out_of_range_are_refused(backend: SandboxBackend) -> None:
    with _opened(backend) as sandbox:
        kind = InvalidArgumentError
        _expect_error("NUL", kind, lambda: sandbox.run("echo \0"))
        _expect_error("no time", kind, lambda: sandbox.run("true", timeout_s=0))
        _expect_error("endless time", kind, lambda: sandbox.run("true", timeout_s=float("inf")))
        _expect_error("no output", kind, lambda: sandbox.run("true", max_output_bytes=0))
        _expect_error("variable", kind, lambda: sandbox.run("true", env={"A=B": ""}))
        _expect("a lone surrogate is data", sandbox.run("true '\ud800'").exit_code, 0)
        _expect("the next command", _output(sandbox, "echo next"), "next\n")


@_check
def files_are_written_and_read_back(backend: SandboxBackend) -> None:
    with _opened(backend, {"script": "old, longer content"}) as sandbox:
        data = bytes(range(256)) * 5000
        sandbox.write_file("new/folder/file", data)
        _expect("bytes", sandbox.read_file(f"{sandbox.workdir}/new/folder/file"), data)
        _output(sandbox, "chmod 750 script")
        sandbox.write_file("script", b"new")
        _expect("mode and content", _output(sandbox, "stat -c %a script; cat script"), "750\nnew")
        sandbox.write_file("empty", b"")
        _expect("empty file", sandbox.read_file("empty"), b"")
        _output(sandbox, "echo more >> new/folder/file")


@_check
def files_that_cannot_be_read_raise_as_open_does(backend: SandboxBackend) -> None:
    with _opened(backend, {"file": "12345"}) as sandbox:
        _output(sandbox, "mkfifo fifo; ln -s loop loop")
        _expect_error("missing", FileNotFoundError, lambda: sandbox.read_file("missing"))
        _expect_error("folder", IsADirectoryError, lambda: sandbox.read_file("."))
        below = lambda: sandbox.read_file("file/below")  # noqa: E731 - reads like its neighbours
        _expect_error("below a file", NotADirectoryError, below)
        code = _expect_error("size", OSError, lambda: sandbox.read_file("file", max_bytes=4))
        _expect("errno", code, errno.EFBIG)
        code = _expect_error("fifo", OSError, lambda: sandbox.read_file("fifo"))
        _expect("errno", code, errno.EINVAL)
        code = _expect_error("loop", OSError, lambda: sandbox.read_file("loop"))
        _expect("errno", code, errno.ELOOP)
        _expect_error("write", IsADirectoryError, lambda: sandbox.write_file(".", b""))
        _expect("at the limit", sandbox.read_file("file", max_bytes=5), b"12345")


@_check
def symbolic_links_resolve_inside(backend: SandboxBackend) -> None:
    with _opened(backend, {"target": "inside"}) as sandbox:
        _output(sandbox, f"ln -s {sandbox.workdir}/target link")
        _expect("through a link", sandbox.read_file("link"), b"inside")
        sandbox.write_file("link", b"changed")
        _expect("the target", sandbox.read_file("target"), b"changed")


@_check
def python_names_the_interpreter_of_the_spec(backend: SandboxBackend) -> None:
    python = default_interpreter()
    with backend.open(SandboxSpec(python=python)) as sandbox:
        for name in ("python", "python3"):
            script = "import platform; print(platform.python_version())"
            version = _output(sandbox, f"{name} -c '{script}'").strip()
            _expect(name, version, python.version)


@_check
def mounts_are_found_through_path(backend: SandboxBackend) -> None:
    with _tree(backend, {"file": "mounted"}) as source:
        mount = Mount(source=source, target="/opt/tools/one")
        with backend.open(SandboxSpec(mounts=(mount,))) as sandbox:
            path = sandbox.path("/opt/tools/one")
            _expect("content", _output(sandbox, f"cat {path}/file"), "mounted")


@_check
def folders_that_do_not_exist_are_refused(backend: SandboxBackend) -> None:
    missing = Path("/no/such/folder")
    mount = Mount(source=missing, target="/opt/x")
    for spec in (SandboxSpec(layers=(missing,)), SandboxSpec(mounts=(mount,))):
        _expect_error("missing", InvalidArgumentError, lambda spec=spec: backend.open(spec))  # type: ignore[misc]


@_check
def sandboxes_do_not_share_their_workspaces(backend: SandboxBackend) -> None:
    with _opened(backend) as one, _opened(backend) as other:
        one.write_file("secret", b"1")
        _expect("the other's files", _output(other, "ls -A"), "")


@_check
def calls_may_come_from_any_thread(backend: SandboxBackend) -> None:
    outputs: list[str] = []
    with _opened(backend) as sandbox:
        thread = threading.Thread(target=lambda: outputs.append(_output(sandbox, "echo thread")))
        thread.start()
        thread.join()
    _expect("output", outputs, ["thread\n"])


@_check
def a_closed_sandbox_says_so_and_closes_twice(backend: SandboxBackend) -> None:
    with _opened(backend) as sandbox:
        sandbox.close()
        sandbox.close()
        _expect_error("run", SandboxError, lambda: sandbox.run("true"))
        _expect_error("read", SandboxError, lambda: sandbox.read_file("file"))
        _expect_error("write", SandboxError, lambda: sandbox.write_file("file", b""))
