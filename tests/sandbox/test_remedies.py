"""Remedies for machines that this one is not."""

import errno
import os

import pytest

from coding_gym.sandbox import remedies
from coding_gym.sandbox.remedies import SetupFailure, describe, remedy

_UNSHARE = SetupFailure("create a user namespace", errno.EPERM, "Operation not permitted")


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Kernel settings as an ordinary user of a machine without containers sees them."""
    values: dict[str, str] = {}
    monkeypatch.setattr(remedies, "_sysctl", lambda name: values.get(name, ""))
    monkeypatch.setattr(remedies, "_in_container", lambda: False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return values


@pytest.mark.parametrize(
    ("setting", "value", "command"),
    [
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "=0"),
        ("kernel.unprivileged_userns_clone", "0", "=1"),
        ("user.max_user_namespaces", "0", "=65536"),
    ],
)
def test_a_setting_that_forbids_namespaces_is_named_with_its_command(
    settings: dict[str, str], setting: str, value: str, command: str
) -> None:
    settings[setting] = value
    assert remedy(_UNSHARE) == f"sudo sysctl -w {setting}{command}"
    assert describe(_UNSHARE) == (
        "could not create a user namespace: Operation not permitted; "
        f"run: sudo sysctl -w {setting}{command}"
    )


def test_a_container_is_told_its_options(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remedies, "_in_container", lambda: True)
    assert "--security-opt seccomp=unconfined" in remedy(_UNSHARE)
    assert "--security-opt systempaths=unconfined" in remedy(_UNSHARE)


def test_an_old_kernel_is_told_the_version(settings: dict[str, str]) -> None:
    failure = SetupFailure("mount the overlay", errno.ENODEV, "No such device")
    assert "use Linux 5.12 or later" in remedy(failure)


def test_only_what_the_machine_refuses_is_a_refusal() -> None:
    assert _UNSHARE.is_refusal
    assert not SetupFailure("mount at /usr/nowhere", errno.EACCES, "denied").is_refusal
    assert not SetupFailure("show /layer", errno.EACCES, "denied").is_refusal
    assert not SetupFailure("mount the overlay", errno.ENOMEM, "no memory").is_refusal


def test_a_failure_survives_the_way_through_json() -> None:
    data = {"step": "mount /proc", "errno": 1, "reason": "no"}
    failure = SetupFailure.from_json(data)
    assert (failure.step, failure.errno) == ("mount /proc", 1)
    assert str(failure) == "could not mount /proc: no"
