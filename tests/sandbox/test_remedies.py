"""Remedies for machines that this one is not."""

import errno
import os
from pathlib import Path

import pytest

from coding_gym.host.interpreters import default_interpreter
from coding_gym.sandbox.inside.syscalls import SetupError
from coding_gym.sandbox.remedies import apparmor_profile, is_refusal, remedy, unavailable

_UNSHARE = SetupError("create a user namespace", errno.EPERM, "Operation not permitted")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a machine without containers, as an ordinary user sees it."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    return tmp_path


def _set(machine: Path, setting: str, value: str) -> None:
    path = machine / "proc/sys" / setting.replace(".", "/")
    path.parent.mkdir(parents=True)
    path.write_text(f"{value}\n", encoding="ascii")


@pytest.mark.parametrize(
    ("setting", "value", "command"),
    [
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "=0"),
        ("kernel.unprivileged_userns_clone", "0", "=1"),
        ("user.max_user_namespaces", "0", "=65536"),
    ],
)
def test_a_setting_that_forbids_namespaces_is_named_with_its_command(
    machine: Path, setting: str, value: str, command: str
) -> None:
    _set(machine, setting, value)
    assert remedy(_UNSHARE, root=machine) == f"run `sudo sysctl -w {setting}{command}`"


def test_an_unavailable_sandbox_names_the_problem_and_the_remedy() -> None:
    error = unavailable(_UNSHARE)
    assert error.problem == "could not create a user namespace: Operation not permitted"
    assert error.remedy == remedy(_UNSHARE)
    assert str(error) == f"{error.problem}; {error.remedy}"


@pytest.mark.parametrize("mark", [".dockerenv", "run/.containerenv"])
def test_a_container_is_told_its_options(machine: Path, mark: str) -> None:
    (machine / mark).parent.mkdir(exist_ok=True)
    (machine / mark).touch()
    for option in ("seccomp", "systempaths"):
        assert f"--security-opt {option}=unconfined" in remedy(_UNSHARE, root=machine)


def test_an_old_kernel_is_told_the_version(machine: Path) -> None:
    failure = SetupError("mount the overlay", errno.ENODEV, "No such device")
    assert "use Linux 5.12 or later" in remedy(failure, root=machine)


def test_only_what_the_machine_refuses_is_a_refusal() -> None:
    assert is_refusal(_UNSHARE)
    assert not is_refusal(SetupError("mount at /usr/nowhere", errno.EACCES, "denied"))
    assert not is_refusal(SetupError("show /layer", errno.EACCES, "denied"))
    assert not is_refusal(SetupError("mount the overlay", errno.ENOMEM, "no memory"))


def test_a_pod_is_told_its_settings(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    for setting in ("hostUsers: false", "procMount: Unmasked", "Unconfined"):
        assert setting in remedy(_UNSHARE, root=machine)


def test_an_apparmor_profile_is_offered_for_the_file_that_runs(machine: Path) -> None:
    assert apparmor_profile(root=machine) == ""
    _set(machine, "kernel.apparmor_restrict_unprivileged_userns", "1")
    text = apparmor_profile(root=machine)
    executable = default_interpreter().executable
    assert f" {executable} flags=(unconfined) {{\n  userns,\n}}" in text
    assert executable == executable.resolve()
    assert text.splitlines()[-1].startswith("sudo apparmor_parser -r /etc/apparmor.d/coding_gym.")
