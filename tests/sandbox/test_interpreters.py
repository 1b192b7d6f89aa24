import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from coding_gym.errors import InvalidArgumentError, SandboxUnavailableError
from coding_gym.host.toolchains import Toolchain, find_toolchain
from coding_gym.sandbox import SandboxSpec, default_interpreter, find_interpreter, get_backend
from coding_gym.sandbox.spec import Interpreter

_RUNNING = "{}.{}.{}".format(*sys.version_info[:3])


@pytest.fixture(autouse=True)
def empty_caches() -> Iterator[None]:
    for find in (find_interpreter, find_toolchain):
        find.cache_clear()
    yield
    for find in (find_interpreter, find_toolchain):
        find.cache_clear()  # later tests want the machine's own


def install(prefix: Path, version: str, kind: str = "cpython", *, name: str = "") -> Path:
    """Writes what looks like a Python's binary and answers as one; returns it."""
    binary = prefix / "bin" / (name or "python{}.{}".format(*version.split(".")))
    binary.parent.mkdir(parents=True, exist_ok=True)
    facts = [str(binary), str(prefix), version, str(prefix / "site-packages"), kind]
    binary.write_text(f"#!/bin/sh\necho '{json.dumps(facts)}'\n", encoding="utf-8")
    binary.chmod(0o755)
    return binary


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for installations of Pythons that nobody has, the home of a user with none."""
    for name in ("PYENV_ROOT", "UV_PYTHON_INSTALL_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def pyenv(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pyenv with two patch releases."""
    monkeypatch.setenv("PYENV_ROOT", str(machine / "pyenv"))
    for version in ("9.8.2", "9.8.10"):
        install(machine / "pyenv" / "versions" / version, version)
    return machine / "pyenv" / "versions"


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


def test_pythons_of_uv_are_found_the_newest_first(machine: Path) -> None:
    folder = machine / ".local" / "share" / "uv" / "python"
    for version in ("9.8.4", "9.8.11"):
        install(folder / f"cpython-{version}-linux-x86_64-gnu", version)
    (folder / "cpython-9.8-linux-x86_64-gnu").symlink_to("cpython-9.8.4-linux-x86_64-gnu")
    assert find_interpreter("9.8").version == "9.8.11"
    assert find_interpreter("9.8.4").version == "9.8.4"


def test_settings_of_uv_are_followed(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(machine / "elsewhere" / "cpython-9.8.1-linux-x86_64-gnu", "9.8.1")
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(machine / "elsewhere"))
    assert find_interpreter("9.8").version == "9.8.1"
    find_interpreter.cache_clear()
    monkeypatch.delenv("UV_PYTHON_INSTALL_DIR")
    install(machine / "data" / "uv" / "python" / "cpython-9.8.3-linux-x86_64-gnu", "9.8.3")
    monkeypatch.setenv("XDG_DATA_HOME", str(machine / "data"))
    assert find_interpreter("9.8").version == "9.8.3"


def test_pythons_in_path_are_found(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = install(machine / "usr", "9.8.6")
    monkeypatch.setenv("PATH", f"/nonexistent:{binary.parent}")
    assert find_interpreter("9.8").executable == binary


def test_a_shim_of_pyenv_is_no_python(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim = install(machine, "9.8.6")
    shims = machine / "shims"
    shims.mkdir()
    shim.rename(shims / "python9.8")
    monkeypatch.setenv("PATH", str(shims))
    with pytest.raises(SandboxUnavailableError, match=r"no Python 9\.8 "):
        find_interpreter("9.8")


@pytest.mark.parametrize("kind", ["pypy", "cpythont"], ids=["PyPy", "without the lock"])
def test_only_the_usual_python_counts(pyenv: Path, kind: str) -> None:
    install(pyenv / "9.8.99", "9.8.99", kind)
    assert find_interpreter("9.8").version == "9.8.10"


def test_a_binary_that_does_not_run_is_passed_over(pyenv: Path) -> None:
    for patch, content in enumerate(["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho hello\n", "\x7fELF"]):
        install(pyenv / f"9.8.9{patch}", f"9.8.9{patch}").write_text(content)
    assert find_interpreter("9.8").version == "9.8.10"


@pytest.mark.parametrize("version", ["9.8.1", "9.9"])
def test_a_missing_version_is_named_with_the_ways_out(pyenv: Path, version: str) -> None:
    with pytest.raises(SandboxUnavailableError) as caught:
        find_interpreter(version)
    message = str(caught.value)
    assert message.startswith(f"no Python {version} on this machine: there are ")
    assert f"{_RUNNING}, " in message
    assert "9.8.2, 9.8.10 (looked in " in message
    assert str(pyenv) in message
    assert f"`uv python install {version}`, `pyenv install {version}`" in message
    minor = ".".join(version.split(".")[:2])
    assert f"`apt-get install python{minor} python{minor}-venv`" in message


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


def test_a_language_that_is_not_known_needs_nothing() -> None:
    assert find_toolchain("python") == find_toolchain("cobol") == Toolchain()


def test_a_missing_program_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    said = find_toolchain("go").missing
    assert "go needs 'go', which this machine does not have" in said
    assert said.endswith("`apt-get install golang-go`")


def test_another_installation_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "go1" / "bin" / "go"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    found = find_toolchain("go", visible_path=str(tmp_path / "none"))
    assert found.folders == {"/opt/go": tmp_path / "go1"}
    assert (found.path, found.missing) == (("/opt/go/bin",), "")


def test_rustup_shows_its_toolchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "rustup-home"
    real = home / "toolchains" / "stable" / "bin"
    proxies = tmp_path / "cargo" / "bin"
    for folder, names in ((real, ("cargo", "rustc")), (proxies, ("rustup", "cc"))):
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
    for name in ("cargo", "rustc"):
        (proxies / name).symlink_to("rustup")
    (home / "settings.toml").write_text('default_toolchain = "stable"\n')
    monkeypatch.setenv("PATH", str(proxies))
    monkeypatch.setenv("RUSTUP_HOME", str(home))
    found = find_toolchain("rust", visible_path=str(tmp_path / "none"))
    assert [*found.folders.values()] == [real.parent, proxies.parent]
    assert found.path == ("/opt/rust/bin", "/opt/rust1/bin")
