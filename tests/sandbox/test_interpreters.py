import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from coding_gym.errors import InvalidArgumentError, SandboxUnavailableError
from coding_gym.sandbox import SandboxSpec, default_interpreter, find_interpreter, get_backend
from coding_gym.sandbox.spec import Interpreter

_RUNNING = "{}.{}.{}".format(*sys.version_info[:3])


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    find_interpreter.cache_clear()
    yield
    find_interpreter.cache_clear()


@pytest.fixture
def pyenv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pyenv with two patch releases of a Python that nobody has."""
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    for version in ("9.8.2", "9.8.10"):
        prefix = tmp_path / "versions" / version
        binary = prefix / "bin" / "python9.8"
        binary.parent.mkdir(parents=True)
        facts = [str(binary), str(prefix), version, str(prefix / "site-packages")]
        binary.write_text(f"#!/bin/sh\necho '{json.dumps(facts)}'\n", encoding="utf-8")
        binary.chmod(0o755)
    return tmp_path / "versions"


def test_the_default_is_the_installation_behind_a_virtual_environment() -> None:
    python = default_interpreter()
    assert python.version == _RUNNING
    assert python.prefix == Path(sys.base_prefix).resolve()
    assert python.executable == python.executable.resolve()
    assert not (python.prefix / "pyvenv.cfg").exists()


@pytest.mark.parametrize("version", [_RUNNING, _RUNNING.rpartition(".")[0]])
def test_the_running_interpreter_is_taken_where_it_fits(version: str) -> None:
    assert find_interpreter(version) == default_interpreter()


def test_the_newest_patch_release_is_taken(pyenv: Path) -> None:
    prefix = pyenv / "9.8.10"
    assert find_interpreter("9.8") == Interpreter(
        executable=prefix / "bin" / "python9.8",
        prefix=prefix,
        version="9.8.10",
        site_packages=prefix / "site-packages",
    )
    assert find_interpreter("9.8.2").prefix == pyenv / "9.8.2"


@pytest.mark.parametrize("version", ["9.8.1", "9.9"])
def test_a_missing_version_is_named_with_the_places_and_the_way_out(
    pyenv: Path, version: str
) -> None:
    with pytest.raises(SandboxUnavailableError) as caught:
        find_interpreter(version)
    message = str(caught.value)
    assert message.startswith(f"no Python {version} on this machine")
    assert str(pyenv) in message
    assert f"uv python install {version}" in message


@pytest.mark.parametrize("version", ["3", "three", "3.9; rm", "3.9.1.2", ""])
def test_what_is_not_a_version_is_refused(version: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"looks like 3\.9"):
        find_interpreter(version)


def test_every_other_installation_runs_inside() -> None:
    """Whatever else is at hand: pyenv's, uv's and the system's differ in where they lie."""
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
