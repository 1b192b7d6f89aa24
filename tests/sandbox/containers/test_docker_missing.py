"""Errors and remedies where no daemon answers."""

import os
import socket
from pathlib import Path

import pytest

from coding_gym.errors import SandboxUnavailableError
from coding_gym.sandbox import SandboxSpec
from coding_gym.sandbox.containers import DockerBackend


def test_a_missing_daemon_has_a_remedy(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(f"{tmp_path}/left.sock")
    for name in ("no.sock", "left.sock"):
        backend = DockerBackend(host=f"unix://{tmp_path}/{name}")
        with pytest.raises(SandboxUnavailableError, match="docker"):
            backend.open(SandboxSpec())
        probe = backend.probe()
        assert not probe.available
        assert probe.remedy


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every socket")
def test_a_socket_of_others_has_a_remedy(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(f"{tmp_path}/other.sock")
        other.listen()
        (tmp_path / "other.sock").chmod(0)
        probe = DockerBackend(host=f"unix://{tmp_path}/other.sock").probe()
    assert "usermod" in probe.remedy
