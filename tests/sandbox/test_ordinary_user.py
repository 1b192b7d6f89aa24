"""Sandboxes without root's help."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import as_user
import pytest
from repositories import write_files

import coding_gym.sandbox.inside
from coding_gym.sandbox import default_interpreter
from coding_gym.sandbox.inside import landlock_rules

pytestmark = pytest.mark.slow

_UID = 61234  # in no distribution's range of accounts
_IS_RECENT = "import ctypes, sys; sys.exit(sys.version_info < (3, 11))"


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that everybody may use, with a copy of the zygote in it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        source = Path(coding_gym.sandbox.inside.__path__[0])
        shutil.copytree(source, folder / "inside", ignore=shutil.ignore_patterns("__pycache__"))
        yield folder


def _public_interpreter() -> str:
    """Returns a Python that any user may run; skips where there is none."""
    places = ("/usr/bin/python3", "/usr/local/bin/python3", "/bin/python3")
    for python in (str(default_interpreter().executable), *places):
        command = [python, "-I", "-S", "-c", _IS_RECENT]
        try:
            ended = subprocess.run(command, user=_UID, group=_UID, extra_groups=[], cwd="/")
        except OSError:
            continue
        if ended.returncode == 0:
            return python
    pytest.skip("no Python 3.11 or later on this machine may be run by an ordinary user")


@pytest.fixture
def run_as_user(public_folder: Path) -> Callable[[str], dict[str, Any]]:
    """Returns a function that gives what `as_user` reports of a kind of claims."""

    def run(what: str) -> dict[str, Any]:
        ended = subprocess.run(
            [
                sys.executable,
                as_user.__file__,
                what,
                _public_interpreter(),
                public_folder,
                str(_UID),
            ],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert ended.stdout, ended.stderr
        report: dict[str, Any] = json.loads(ended.stdout)
        assert report.pop("owner") == [_UID, _UID]
        return report

    return run


@pytest.mark.parametrize("backend", ["namespace", "landlock"])
@pytest.mark.skipif(os.geteuid() != 0, reason="the conformance tests run as this user already")
def test_an_ordinary_user_keeps_the_contract(
    run_as_user: Callable[[str], dict[str, Any]], backend: str
) -> None:
    if backend == "landlock" and landlock_rules.abi() < 6:
        pytest.skip("the kernel has no Landlock with scopes")
    report = run_as_user(backend)
    assert report["failures"] == {}
    assert report["num_checks"] >= 30


@pytest.mark.skipif(os.geteuid() != 0, reason="nothing here belongs to another user then")
def test_landlock_copies_an_interpreter_that_is_another_users(
    run_as_user: Callable[[str], dict[str, Any]], public_folder: Path
) -> None:
    files = {"os.py": "", "json/__init__.py": "", "site-packages/seen.py": ""}
    write_files(public_folder / "python" / "lib" / "python3.11", files)
    (public_folder / "python" / "lib" / "libpython.so").symlink_to("libpython.so.1")
    names = ["lib/libpython.so", "lib/python3.11/json/__init__.py", "lib/python3.11/os.py"]
    assert run_as_user("python") == {"files": names}


@pytest.mark.skipif(os.geteuid() != 0, reason="the tests of snapshots run as this user already")
def test_an_ordinary_user_snapshots_all_kinds(run_as_user: Callable[[str], dict[str, Any]]) -> None:
    nothing: dict[str, list[str]] = {"namespace": [], "namespace-on-disk": [], "process": []}
    assert run_as_user("snapshots") == {"differences": nothing}


# Becomes root of a user namespace that has no other user.
_LONELY_ROOT = """
import ctypes, os
from pathlib import Path

uid, gid = os.geteuid(), os.getegid()
assert ctypes.CDLL(None).unshare(0x10000000) == 0  # before a library starts threads
Path("/proc/self/setgroups").write_text("deny")
Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
Path("/proc/self/gid_map").write_text(f"0 {gid} 1")

from coding_gym.errors import SandboxUnavailableError
from coding_gym.sandbox import SandboxSpec, open_sandbox
try:
    with open_sandbox(SandboxSpec()) as sandbox:
        print(sandbox.run("id -u").output.strip())
except SandboxUnavailableError as error:
    print(error)
"""


def test_no_sandbox_runs_as_the_hosts_root_in_disguise() -> None:
    ended = subprocess.run([sys.executable, "-c", _LONELY_ROOT], capture_output=True, text=True)
    assert ended.stderr == ""
    if os.geteuid() == 0:
        assert "sandboxes would run as root" in ended.stdout
    else:
        assert ended.stdout == "1000\n"
