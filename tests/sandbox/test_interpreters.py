import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from coding_gym.errors import InvalidArgumentError, SandboxUnavailableError
from coding_gym.host.toolchains import find_toolchain
from coding_gym.sandbox import SandboxSpec, default_interpreter, find_interpreter, get_backend

_RUNNING = "{}.{}.{}".format(*sys.version_info[:3])


@pytest.fixture(autouse=True)
def empty_caches() -> Iterator[None]:
    for find in (find_interpreter, find_toolchain):
        find.cache_clear()
    yield
    for find in (find_interpreter, find_toolchain):
        find.cache_clear()  # later tests want the machine's own


def test_the_default_is_no_virtual_environment() -> None:
    python = default_interpreter()
    assert python.version == _RUNNING
    assert python.prefix == Path(sys.base_prefix).resolve()
    assert python.executable == python.executable.resolve()
    assert not (python.prefix / "pyvenv.cfg").exists()


@pytest.mark.parametrize("version", [_RUNNING, _RUNNING.rpartition(".")[0]])
def test_the_running_interpreter_is_taken_where_it_fits(version: str) -> None:
    assert find_interpreter(version) == default_interpreter()


def test_a_missing_version_is_named() -> None:
    with pytest.raises(SandboxUnavailableError, match=r"9\.9"):
        find_interpreter("9.9")
    for text in ("3", "three", "3.9; rm", "3.9.1.2", ""):
        with pytest.raises(InvalidArgumentError):
            find_interpreter(text)


def test_every_other_installation_runs_inside() -> None:
    found = {}
    for minor in range(8, 15):
        try:
            found[minor] = find_interpreter(f"3.{minor}")
        except SandboxUnavailableError:
            continue
    assert sys.version_info.minor in found
    script = "import sys, json; print(sys.prefix, '%d.%d.%d' % sys.version_info[:3])"
    for python in found.values():
        with get_backend("namespace").open(SandboxSpec(python=python)) as sandbox:
            result = sandbox.run(f'python -c "{script}"')
            assert result.output == f"{python.prefix} {python.version}\n"


def test_a_toolchain_of_rustup_is_mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tmp_path / "toolchains" / "stable" / "bin"
    proxies = tmp_path / "cargo" / "bin"
    program = f'#!/bin/sh\necho "{real}/$2"\n'
    for folder, names in ((real, ("cargo", "rustc")), (proxies, ("rustup", "cc"))):
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_text(program)
            (folder / name).chmod(0o755)
    for name in ("cargo", "rustc"):
        (proxies / name).symlink_to("rustup")
    monkeypatch.setenv("PATH", str(proxies))
    found = find_toolchain("rust", visible_path=str(tmp_path / "none"))
    assert [*found.folders.values()] == [real.parent, proxies.parent]
    assert found.path == ("/opt/rust/bin", "/opt/rust1/bin")
