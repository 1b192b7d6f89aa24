"""Bounded output, its rendering, and the messages that carry it."""

import random
import socket
import struct
import time

import pytest

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.backend_checks import command_bytes, render_output
from coding_gym.sandbox.inside import wire
from coding_gym.sandbox.inside.output import BoundedOutput


@pytest.mark.parametrize("seed", range(100))
def test_head_and_tail_do_not_depend_on_chunks(seed: int) -> None:
    chance = random.Random(seed)
    max_bytes = chance.randint(1, 50)
    whole = bytes(chance.randrange(256) for _ in range(chance.randint(0, 200)))
    output = BoundedOutput(max_bytes)
    rest = whole
    while rest:
        size = chance.randint(1, 60)
        output.add(rest[:size])
        rest = rest[size:]
    head, tail = output.parts()
    assert output.num_bytes == len(whole)
    if len(whole) <= max_bytes:
        assert head + tail == whole
    else:
        assert len(head) + len(tail) == max_bytes
        assert whole.startswith(head)
        assert whole.endswith(tail)
        assert len(head) - len(tail) in {0, 1}


def test_whole_output_is_unchanged() -> None:
    assert render_output("é".encode(), b"", 2) == ("é", False)
    assert render_output("é".encode()[:1], "é".encode()[1:], 2) == ("é", False)


def test_a_cut_character_is_removed_whole() -> None:
    whole = ("é" * 100).encode()
    text, truncated = render_output(whole[:5], whole[-5:], len(whole))
    assert truncated
    assert text == "éé\n[... 192 bytes left out ...]\néé"
    assert "\ufffd" not in text


def test_commands_are_encoded_or_refused() -> None:
    assert command_bytes("é\ud800") == "é".encode() + b"\xed\xa0\x80"
    with pytest.raises(InvalidArgumentError):
        command_bytes("a\0b")
    with pytest.raises(InvalidArgumentError, match="1048577"):
        command_bytes("x" * ((1 << 20) + 1))


def test_messages_come_through_whole() -> None:
    one, other = socket.socketpair()
    with one, other:
        one.sendall(wire.pack({"a": "é\udc80"}, b"\0\1") + wire.pack({}))
        assert wire.receive(other, max_body_bytes=2) == ({"a": "é\udc80"}, b"\0\1")
        assert wire.receive(other, max_body_bytes=0) == ({}, b"")


@pytest.mark.parametrize(
    "data",
    [
        wire.pack({}, b"too long"),
        struct.pack("<II", 0xFFFFFFFF, 0),
        struct.pack("<II", 2, 0) + b"[]",
        struct.pack("<II", 3, 0) + b"\xff{}",
        struct.pack("<II", 100_000, 0) + b"[" * 100_000,
    ],
)
def test_malformed_messages_are_refused(data: bytes) -> None:
    one, other = socket.socketpair()
    with one, other:
        one.sendall(data)
        with pytest.raises(wire.ProtocolError):
            wire.receive(other, max_body_bytes=4)


def test_a_peer_that_stops_halfway_is_noticed() -> None:
    one, other = socket.socketpair()
    with one, other:
        one.sendall(wire.pack({}, b"body")[:-1])
        with pytest.raises(TimeoutError):
            wire.receive(other, max_body_bytes=4, deadline=time.monotonic() + 0.05)
        one.close()
        with pytest.raises(EOFError):
            wire.receive(other, max_body_bytes=4)
