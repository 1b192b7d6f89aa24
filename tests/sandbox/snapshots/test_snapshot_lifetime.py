"""Snapshots, the sandboxes that they are of, and those that they are restored into."""

import dataclasses
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from sandbox_fixtures import (
    BACKEND,
    MakeLayer,
    children,
    helper_pid,
    make_sandbox,
    num_descriptors,
    output,
    wait_gone,
    wait_until,
)

from coding_gym.errors import SandboxError
from coding_gym.sandbox import Mount, SandboxSpec
from coding_gym.sandbox.zygotes import Zygote


@pytest.fixture
def spec(make_layer: MakeLayer) -> SandboxSpec:
    return SandboxSpec(layers=(make_layer({"file": "base\n", "folder/file": "x"}),))


@pytest.mark.parametrize("data", [b"", b"nonsense", None], ids=["empty", "nonsense", "cut"])
def test_a_failed_restore_closes_the_sandbox(spec: SandboxSpec, data: bytes | None) -> None:
    with BACKEND.open(spec) as sandbox:
        good = sandbox.snapshot()
        bad = dataclasses.replace(good, data=good.data[:600] if data is None else data)
        with pytest.raises(SandboxError):
            sandbox.restore(bad)
        with pytest.raises(SandboxError):
            sandbox.run("true")
        with pytest.raises(SandboxError):
            BACKEND.open(spec, snapshot=bad)
        with BACKEND.open(spec, snapshot=good) as other:
            assert other.run("cat file").output == "base\n"


def _server() -> int:
    (server,) = children(helper_pid(BACKEND))
    return server


def _counts() -> tuple[int, int, int]:
    """Returns how many descriptors are open here and in the server, and its mounts."""
    mounts = Path(f"/proc/{_server()}/mountinfo").read_text(encoding="utf-8").splitlines()
    return num_descriptors(), num_descriptors(_server()), len(mounts)


def test_restores_leave_nothing(spec: SandboxSpec) -> None:
    BACKEND.open(spec).close()
    others = {*children(_server())}
    with BACKEND.open(spec) as sandbox:
        sandbox.run("echo x > file; ln file file2; rm -r folder")
        snapshot = sandbox.snapshot()
        bad = dataclasses.replace(snapshot, data=snapshot.data[:600])
        before = _counts()
        for _ in range(5):
            sandbox.restore(snapshot)
            BACKEND.open(spec, snapshot=snapshot).close()
            with pytest.raises(SandboxError):
                BACKEND.open(spec, snapshot=bad)
        wait_until(lambda: _counts() == before)  # the last failed one may still be ending
    assert wait_gone({*children(_server())} - others, 10) == []


def test_a_restored_sandbox_sees_no_more(spec: SandboxSpec) -> None:
    # Of an overlay with changes the kernel no longer says that it made its uuid itself.
    mounts = "grep -v devpts /proc/mounts | sed 's/,uuid=on//' | sort"
    look = f"ls /proc/self/fd; {mounts}; ls -A /; ls /proc/1/fd"
    with BACKEND.open(spec) as sandbox:
        before = sandbox.run(look).output
        sandbox.restore(sandbox.snapshot())
        assert sandbox.run(look).output == before


def test_mounts_stay_in_their_place(make_layer: MakeLayer) -> None:
    tools = Mount(source=make_layer({"tool": "t\n"}), target="/tmp/way/to/tools")
    look = "cat /tmp/way/to/tools/tool; ls /tmp"
    with make_sandbox(mounts=(tools,)) as sandbox:
        for replacement in ("true", "ln -s /sandbox", "ln -s /.old", "touch", "mkfifo"):
            sandbox.run(f"rm -rf /tmp/away; mv /tmp/way /tmp/away; {replacement} /tmp/way")
            sandbox.restore(sandbox.snapshot())
            assert output(sandbox, look) == "t\naway\nway\n"


def test_no_mount_follows_a_symlink_of_the_workspace(make_layer: MakeLayer) -> None:
    layer = make_layer({"file": "x"})
    (layer / "way").symlink_to("/sandbox")
    tools = Mount(source=make_layer({"tool": "t\n"}), target="/workspace/way/tools")
    with pytest.raises(SandboxError, match="/workspace/way"):
        make_sandbox(layers=(layer,), mounts=(tools,))


def test_closing_during_a_restore_holds(spec: SandboxSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = BACKEND.open(spec)
    snapshot = sandbox.snapshot()
    original = Zygote.open

    def open_while_closing(handle: Zygote, *arguments: Any) -> socket.socket:
        closing = threading.Thread(target=sandbox.close)
        closing.start()
        closing.join()
        return original(handle, *arguments)

    monkeypatch.setattr(Zygote, "open", open_while_closing)
    sandbox.restore(snapshot)
    with pytest.raises(SandboxError):
        sandbox.run("true")
    with pytest.raises(SandboxError):
        sandbox.restore(snapshot)
