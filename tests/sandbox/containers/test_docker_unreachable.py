"""What is said where there is no daemon; needs none."""

import os
import socket
from pathlib import Path

import pytest

from coding_gym.errors import InvalidArgumentError, SandboxUnavailableError
from coding_gym.sandbox import SandboxSpec
from coding_gym.sandbox.containers import DockerBackend


def test_a_missing_daemon_is_named_with_the_command_that_starts_it(tmp_path: Path) -> None:
    backend = DockerBackend(host=f"unix://{tmp_path}/no.sock")
    with pytest.raises(SandboxUnavailableError, match="systemctl start docker"):
        backend.open(SandboxSpec())
    probe = backend.probe()
    assert not probe.available
    assert "no Docker daemon is running" in probe.detail
    assert "systemctl start docker" in probe.remedy


def test_a_socket_without_a_daemon_is_the_same(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(f"{tmp_path}/left.sock")
    probe = DockerBackend(host=f"unix://{tmp_path}/left.sock").probe()
    assert "no Docker daemon is running" in probe.detail


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every socket")
def test_a_socket_of_others_is_named_with_the_group_to_join(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(f"{tmp_path}/other.sock")
        other.listen()
        (tmp_path / "other.sock").chmod(0)
        probe = DockerBackend(host=f"unix://{tmp_path}/other.sock").probe()
    assert "usermod -aG docker" in probe.remedy


def test_arguments_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="num_warm"):
        DockerBackend(num_warm=-1)
    with pytest.raises(InvalidArgumentError, match="root must be one of"):
        DockerBackend(root="yes")  # type: ignore[arg-type]
