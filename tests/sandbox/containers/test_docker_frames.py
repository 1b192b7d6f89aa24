"""Frames of a daemon's streams, and errors where no daemon answers."""

import os
import socket
from pathlib import Path

import pytest

from coding_gym.errors import SandboxUnavailableError
from coding_gym.sandbox import SandboxSpec
from coding_gym.sandbox.containers import DockerBackend
from coding_gym.sandbox.containers.docker_backend import take_payloads
from coding_gym.sandbox.containers.loop_protocol import Answer
from coding_gym.sandbox.inside.output import BoundedOutput

pytestmark = pytest.mark.slow

_NONCE = b"0123456789abcdef"


def _framed(*payloads: bytes) -> bytes:
    return b"".join(b"\x01\0\0\0" + len(p).to_bytes(4, "big") + p for p in payloads)


@pytest.mark.parametrize("size", [1, 3, 8, 11, 1000])
def test_payloads_come_out_however_the_stream_is_cut(size: int) -> None:
    payloads = [b"a", b"", b"bc" * 20, b"\0\1\2"]
    stream = _framed(*payloads)
    come, found = bytearray(), []
    for start in range(0, len(stream), size):
        come += stream[start : start + size]
        found += take_payloads(come)
    assert (found, come) == (payloads, b"")


@pytest.mark.parametrize("size", [1, 5, 17, 1000])
def test_output_is_what_lies_between_the_marks(size: int) -> None:
    # The end's mark begins like much of the output.
    text = b"output " + _NONCE[:10] + _NONCE[:-1] + b"\n"
    stream = b"junk of before\n%b begin\n%b%b end 7 2 1\n" % (_NONCE, text, _NONCE)
    output = BoundedOutput(1000)
    answer = Answer(_NONCE, output)
    for start in range(0, len(stream), size):
        assert answer.numbers == ()
        answer.add(stream[start : start + size])
    assert answer.numbers == (7, 2, 1)
    assert b"".join(output.parts()) == text


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
