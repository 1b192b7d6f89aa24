"""Compilers and runtimes of the machine, as sandboxes show them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from coding_gym.sandbox.toolchains import Toolchain, find_toolchain


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    find_toolchain.cache_clear()
    yield
    find_toolchain.cache_clear()  # later tests want the machine's own


def test_a_language_that_is_not_known_needs_nothing() -> None:
    assert find_toolchain("python") == find_toolchain("cobol") == Toolchain()


def test_what_is_missing_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    said = find_toolchain("go").missing
    assert "go needs 'go', which this machine does not have" in said
    assert said.endswith("`apt-get install golang-go`")


def test_an_installation_outside_the_system_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "go1" / "bin" / "go"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    found = find_toolchain("go", shown_path=str(tmp_path / "none"))
    assert [(mount.source, mount.target) for mount in found.mounts] == [
        (tmp_path / "go1", "/opt/go")
    ]
    assert (found.path, found.missing) == (("/opt/go/bin",), "")


def test_rustup_stands_for_its_default_toolchain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    found = find_toolchain("rust", shown_path=str(tmp_path / "none"))
    assert [mount.source for mount in found.mounts] == [real.parent, proxies.parent]
    assert found.path == ("/opt/rust/bin", "/opt/rust1/bin")
