"""Choices of a backend, sandbox options, an interpreter and toolchains."""

import errno
import json
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from episodes import raising
from sandbox_fixtures import NO_LANDLOCK, NO_MOUNT, NO_UNSHARE, NO_USER_NAMESPACES, run_on

from coding_gym.errors import (
    InvalidArgumentError,
    SandboxError,
    SandboxUnavailableError,
    UnknownNameError,
)
from coding_gym.host import interpreters, network, toolchains
from coding_gym.host.toolchains import find_toolchain
from coding_gym.sandbox import (
    SandboxLimits,
    SandboxSpec,
    default_interpreter,
    find_interpreter,
    get_backend,
)
from coding_gym.sandbox.inside import landlock_rules
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.sandbox.select import _automatic
from coding_gym.sandbox.zygotes import stop_zygotes

_CHOOSE = """
import logging, sys
logging.basicConfig(stream=sys.stdout, format="%(levelname)s")
from coding_gym.errors import SandboxUnavailableError
from coding_gym.sandbox import SandboxSpec, get_backend, open_sandbox
try:
    with open_sandbox(SandboxSpec()) as sandbox:
        print(get_backend().name, sandbox.run("echo ran").output, end="")
except SandboxUnavailableError as error:
    print(error.problem and error.remedy and "unavailable")
"""


@pytest.mark.slow
@pytest.mark.skipif(landlock_rules.abi() == 0, reason="the kernel does not enforce Landlock")
@pytest.mark.parametrize(
    ("machine", "has_landlock"),
    [
        (NO_UNSHARE, True),
        (NO_MOUNT, True),
        (NO_USER_NAMESPACES, True),
        (NO_UNSHARE + NO_LANDLOCK, False),
    ],
)
def test_landlock_replaces_namespaces_for_root_with_a_warning(
    machine: str, has_landlock: bool
) -> None:
    process = run_on(machine, _CHOOSE)
    works = has_landlock and os.geteuid() == 0
    expected = "WARNING\nlandlock ran\n" if works else "unavailable\n"
    assert (process.stdout, process.stderr) == (expected, "")


# Without them, only the start of the zygote can fail.
@pytest.mark.parametrize("interpreter_caches", [(), (default_interpreter, interpreters._describe)])
def test_a_failed_process_start_does_not_change_the_automatic_choice(
    monkeypatch: pytest.MonkeyPatch, interpreter_caches: tuple[Any, ...]
) -> None:
    default_interpreter()
    failure = BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
    stop_zygotes()
    for function in (_automatic, *interpreter_caches):
        function.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", raising(failure))
        with pytest.raises(SandboxError) as raised:
            get_backend("auto")
    assert not isinstance(raised.value, SandboxUnavailableError)
    assert get_backend("auto").name == "namespace"


def test_options_change_only_the_named_fields() -> None:
    limits = SandboxLimits(num_processes=70, num_open_files=99)
    spec = SandboxSpec(limits=limits, image="theirs", path=("/opt/bin",))
    arguments = {"limits": {"num_processes": 64}, "shell": "persistent"}
    changed = SandboxOptions.parse(arguments).applied(spec)
    assert changed == SandboxSpec(
        shell="persistent",
        limits=SandboxLimits(num_processes=64, num_open_files=99),
        image="theirs",
        path=("/opt/bin",),
    )
    assert SandboxOptions.parse({"image": "ours"}).applied(spec).image == "ours"
    assert SandboxOptions().applied(spec) == spec


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (3, "sandbox"),
        ({"nmae": "auto"}, "nmae"),
        ({"name": "lxc"}, "lxc"),
        ({"shell": "persistant"}, "persistent"),
        ({"limits": 5}, "limits"),
        ({"limits": {"memory": 1}}, "memory_bytes"),
        ({"limits": {"memory_bytes": 1 << 20}}, "33554432"),
        ({"limits": {"num_processes": True}}, "num_processes"),
        ({"limits": {"num_processes": 1}}, "16"),
    ],
)
def test_a_malformed_option_is_named(value: Any, field: str) -> None:
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=field):
        SandboxOptions.parse(value)


@pytest.mark.parametrize("name", [field.name for field in fields(SandboxLimits)])
def test_limits_too_small_or_large_for_a_sandbox_are_refused(name: str) -> None:
    for value in (-1, 0, 1, True, 1e9, 1 << 50):
        if (name, value) != ("file_bytes", 1):
            with pytest.raises(InvalidArgumentError, match=f"{name} must .* got {value!r}"):
                SandboxLimits(**{name: value})


_RUNNING = "{}.{}.{}".format(*sys.version_info[:3])


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    find_interpreter.cache_clear()
    yield
    find_interpreter.cache_clear()  # later tests use the machine's interpreters


def test_a_missing_version_is_named() -> None:
    with pytest.raises(SandboxUnavailableError, match=r"9\.9"):
        find_interpreter("9.9")
    for text in ("3", "three", "3.9; rm", "3.9.1.2", ""):
        with pytest.raises(InvalidArgumentError):
            find_interpreter(text)


def test_the_running_python_is_found_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    python = default_interpreter()
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "run", raising(AssertionError("started a Python")))
        assert find_interpreter(_RUNNING) == python
    find_interpreter.cache_clear()
    other = replace(python, implementation="pypy", prefix=Path("/opt/pypy"))
    monkeypatch.setattr(interpreters, "default_interpreter", lambda: other)
    with suppress(SandboxUnavailableError):
        assert find_interpreter(_RUNNING).implementation == "cpython"


def test_an_interpreter_is_found_without_a_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", raising(KeyError("uid not found")))
    monkeypatch.setenv("PIP_FIND_LINKS", "~/wheels")
    assert find_interpreter(_RUNNING) == default_interpreter()
    assert network.settings()[0]["PIP_FIND_LINKS"] == "~/wheels"


def test_package_sources_are_read_as_pip_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    (tmp_path / "pip").mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    user_file, named_file = tmp_path / "pip" / "pip.conf", tmp_path / "pip.conf"
    user_file.write_text("[global]\nIndex_URL = http://one/simple\n", encoding="utf-8")
    named_file.write_text("[install]\ndefault_timeout = 5\n", encoding="utf-8")
    assert network.settings()[0]["PIP_INDEX_URL"] == "http://one/simple"
    user_file.write_bytes(b"[global]\nindex-url = \xff\n")  # not text, so it is skipped
    assert "PIP_INDEX_URL" not in network.settings()[0]
    user_file.write_text("[global]\nretries = 2\n", encoding="utf-8")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(named_file))  # in place of the user's file
    variables = network.settings()[0]
    assert (variables["PIP_DEFAULT_TIMEOUT"], "PIP_RETRIES" in variables) == ("5", False)
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "60")
    assert network.settings()[0]["PIP_DEFAULT_TIMEOUT"] == "60"


def test_a_temporary_failure_of_an_interpreter_is_not_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = tmp_path / "python9.8"
    binary.write_text("#!/bin/sh\nexit 1\n", encoding="ascii")
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailableError):
        find_interpreter("9.8")
    reply = json.dumps(["/opt/python9.8", "/opt", "9.8.7", "/opt/site-packages", "cpython"])
    binary.write_text(f"#!/bin/sh\necho '{reply}'\n", encoding="ascii")
    assert find_interpreter("9.8").version == "9.8.7"


def test_the_newest_patch_release_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("9.8.9", "9.8.18", "9.8.2"):
        binary = tmp_path / "versions" / version / "bin" / "python9.8"
        binary.parent.mkdir(parents=True)
        reply = json.dumps([str(binary), str(tmp_path), version, str(tmp_path), "cpython"])
        binary.write_text(f"#!/bin/sh\necho '{reply}'\n", encoding="ascii")
        binary.chmod(0o755)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert find_interpreter("9.8").version == "9.8.18"


def test_every_installed_python_runs_in_a_sandbox() -> None:
    pythons = {}
    for minor in range(8, 15):
        try:
            pythons[minor] = find_interpreter(f"3.{minor}")
        except SandboxUnavailableError:
            continue
    assert sys.version_info.minor in pythons
    script = "import sys, json; print(sys.prefix, '%d.%d.%d' % sys.version_info[:3])"
    for python in pythons.values():
        with get_backend("namespace").open(SandboxSpec(python=python)) as sandbox:
            result = sandbox.run(f'python -c "{script}"')
            assert result.output == f"{python.prefix} {python.version}\n"


def test_programs_of_the_home_folder_do_not_mount_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path, *(tmp_path / name for name in (".local", ".config", ".ssh"))]
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(toolchains, "SYSTEM_PATH", str(tmp_path / "none"))
    for folder in folders:
        (folder / "bin").mkdir(parents=True)
        shutil.copy("/bin/true", folder / "bin" / "node")
        monkeypatch.setenv("PATH", str(folder / "bin"))
        assert find_toolchain("javascript").missing
        python = replace(default_interpreter(), prefix=folder)
        with pytest.raises(InvalidArgumentError, match="private"):
            get_backend("namespace").open(SandboxSpec(python=python))


def test_toolchains_in_path_are_mounted_except_rustup_proxies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, proxies = tmp_path / "stable" / "bin", tmp_path / "cargo" / "bin"
    for folder, names in ((real, ("cargo", "rustc")), (proxies, ("rustup", "cc"))):
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_text("#!/bin/sh")
            (folder / name).chmod(0o755)
    for name in ("cargo", "rustc"):
        (proxies / name).symlink_to("rustup")
    monkeypatch.setattr(toolchains, "SYSTEM_PATH", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(proxies))
    assert find_toolchain("rust").missing
    monkeypatch.setenv("PATH", f"{real}:{proxies}")
    toolchain = find_toolchain("rust")
    assert toolchain.folders == {"/opt/rust": real.parent, "/opt/rust1": proxies.parent}
