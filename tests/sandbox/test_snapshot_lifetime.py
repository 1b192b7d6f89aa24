"""Snapshots, the sandboxes that they are of, and those that they are restored into."""

import dataclasses
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from checks.debug import helper_pid
from processes import children, num_descriptors, wait_gone
from sandbox_scene import BACKEND, MakeLayer, make_sandbox
from snapshot_scenes import BACKENDS

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox import Mount, SandboxBackend, SandboxLimits, SandboxSpec
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.zygotes import Zygote

pytestmark = pytest.mark.filterwarnings("ignore::coding_gym.sandbox.process.NoIsolationWarning")
_NAMESPACES = ["namespace", "namespace-on-disk"]


@pytest.fixture
def spec(make_layer: MakeLayer) -> SandboxSpec:
    return SandboxSpec(layers=(make_layer({"file": "base\n", "folder/file": "x"}),))


def test_a_snapshot_of_another_spec_is_refused_with_what_differs(spec: SandboxSpec) -> None:
    fewer = dataclasses.replace(spec, limits=SandboxLimits(num_processes=9))
    with BACKEND.open(spec) as sandbox:
        good = sandbox.snapshot()
        for changes, difference in (
            ({"backend": "other"}, "'other'"),
            ({"spec": SandboxSpec(env={"A": "b"})}, "layers, env"),
            ({"spec": fewer}, "limits"),
        ):
            with pytest.raises(InvalidArgumentError, match=difference):
                sandbox.restore(dataclasses.replace(good, **changes))


@pytest.mark.parametrize("data", [b"", b"nonsense", None])
def test_a_failed_restore_closes_the_sandbox(
    any_backend: SandboxBackend, spec: SandboxSpec, data: bytes | None
) -> None:
    with any_backend.open(spec) as sandbox:
        good = sandbox.snapshot()
        data = good.data[:-1] if data is None else data
        with pytest.raises(SandboxError, match="could not restore the snapshot"):
            sandbox.restore(dataclasses.replace(good, data=data))
        with pytest.raises(SandboxError, match="closed"):
            sandbox.run("true")
        with pytest.raises(SandboxError, match="could not restore the snapshot"):
            any_backend.open(spec, snapshot=dataclasses.replace(good, data=data))
        with any_backend.open(spec, snapshot=good) as other:
            assert other.run("cat file").output == "base\n"


@pytest.mark.parametrize("kind", _NAMESPACES)
def test_a_snapshot_fits_wherever_the_changes_are_kept(kind: str, spec: SandboxSpec) -> None:
    other = BACKENDS[_NAMESPACES[1 - _NAMESPACES.index(kind)]]
    with BACKENDS[kind].open(spec) as sandbox:
        sandbox.run("rm -r folder; mkdir folder; echo moved > file")
        snapshot = sandbox.snapshot()
    with other.open(spec, snapshot=snapshot) as sandbox:
        assert sandbox.run("ls -A folder; cat file").output == "moved\n"


def _counts(backend: SandboxBackend) -> tuple[int, int, int]:
    """Returns how many descriptors are open here and in the server, and its mounts."""
    (server,) = children(helper_pid(BACKEND))
    mounts = Path(f"/proc/{server}/mountinfo").read_text(encoding="utf-8").splitlines()
    return num_descriptors(), num_descriptors(server), len(mounts)


def _first_pids(backend: SandboxBackend) -> set[int]:
    (server,) = children(helper_pid(BACKEND))
    return set(children(server))


@pytest.mark.parametrize("kind", _NAMESPACES)
def test_restores_leave_nothing(any_backend: SandboxBackend, spec: SandboxSpec, kind: str) -> None:
    any_backend.open(spec).close()
    others = _first_pids(any_backend)
    with any_backend.open(spec) as sandbox:
        sandbox.run("echo x > file; ln file file2; rm -r folder")
        snapshot = sandbox.snapshot()
        bad = dataclasses.replace(snapshot, data=snapshot.data[:-9])
        before = _counts(any_backend)
        for _ in range(5):
            sandbox.restore(snapshot)
            any_backend.open(spec, snapshot=snapshot).close()
            with pytest.raises(SandboxError):
                any_backend.open(spec, snapshot=bad)
        assert _counts(any_backend) == before
    assert wait_gone(_first_pids(any_backend) - others, 10) == []
    assert _first_pids(any_backend) <= others


@pytest.mark.parametrize("kind", _NAMESPACES)
def test_a_restore_shows_no_more(any_backend: SandboxBackend, spec: SandboxSpec, kind: str) -> None:
    # Of an overlay with changes the kernel no longer says that it made its uuid itself; folders on
    # disk have numbers.
    mounts = (
        "cat /proc/mounts | grep -v devpts | sed 's/,uuid=on//; s:shown/[0-9]*/:shown/:g' | sort"
    )
    look = f"ls /proc/self/fd; {mounts}; ls -A /; ls /proc/1/fd"
    with any_backend.open(spec) as sandbox:
        before = sandbox.run(look).output
        sandbox.restore(sandbox.snapshot())
        assert sandbox.run(look).output == before


@pytest.mark.parametrize("kind", _NAMESPACES)
def test_mounts_stay_there(any_backend: SandboxBackend, make_layer: MakeLayer, kind: str) -> None:
    tools = Mount(source=make_layer({"tool": "t\n"}), target="/tmp/way/to/tools")
    spec = SandboxSpec(layers=(make_layer({"file": "x"}),), mounts=(tools,))
    with any_backend.open(spec) as sandbox:
        snapshot = sandbox.snapshot()
        sandbox.restore(snapshot)
        assert sandbox.run("cat /tmp/way/to/tools/tool").output == "t\n"
        assert sandbox.run("mv /tmp/way /tmp/away; ls /tmp").output == "away\n"
        sandbox.restore(sandbox.snapshot())
        assert sandbox.run("cat /tmp/way/to/tools/tool; ls /tmp").output == "t\naway\nway\n"
        for what in ("ln -s /sandbox", "ln -s /.old", "touch", "mkfifo"):
            sandbox.run(f"rm -rf /tmp/away*; mv /tmp/way /tmp/away2; {what} /tmp/way")
            sandbox.restore(sandbox.snapshot())
            assert sandbox.run("cat /tmp/way/to/tools/tool; ls /tmp").output == "t\naway2\nway\n"


def test_no_mount_follows_a_symlink_of_the_workspace(make_layer: MakeLayer) -> None:
    layer = make_layer({"file": "x"})
    (layer / "way").symlink_to("/sandbox")
    tools = Mount(source=make_layer({"tool": "t\n"}), target="/workspace/way/tools")
    with pytest.raises(SandboxError, match=r"symbolic links \(openat2 /workspace/way\)"):
        make_sandbox(layers=(layer,), mounts=(tools,))


def test_closing_during_a_restore_holds(spec: SandboxSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = NamespaceBackend().open(spec)
    snapshot = sandbox.snapshot()
    open_as_ever = Zygote.open

    def open_while_closing(handle: Zygote, *arguments: Any) -> socket.socket:
        closing = threading.Thread(target=sandbox.close)
        closing.start()
        closing.join()
        return open_as_ever(handle, *arguments)

    monkeypatch.setattr(Zygote, "open", open_while_closing)
    sandbox.restore(snapshot)
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run("true")
    with pytest.raises(SandboxError, match="closed"):
        sandbox.restore(snapshot)


def test_background_processes_pause_for_a_snapshot_and_end_with_a_restore() -> None:
    count = "i=0; while :; do i=$((i+1)); echo $i > one; echo $i > two; done"
    others = "sleep 99 & asleep=$!; sleep 99 & stopped=$!; kill -STOP $stopped"
    spec = SandboxSpec(shell="persistent")
    with BACKEND.open(spec) as sandbox:
        sandbox.run(f"cd /tmp; {others}; ({count}) & counter=$!; until [ -s two ]; do :; done")
        snapshot = sandbox.snapshot()
        first = int(sandbox.read_file("/tmp/one") or 0)
        wait = f"until [ $(cat one two | sort -n | tail -1) -gt {first} ] 2> /dev/null; do :; done"
        assert sandbox.run(f"{wait}; kill -0 $counter && echo counts on").output == "counts on\n"
        look = "cut -d ' ' -f 3 /proc/$asleep/stat /proc/$stopped/stat"
        assert sandbox.run(look).output == "S\nT\n"
        sandbox.restore(snapshot)
        # pid 1 is out of sight, so bash is alone.
        seen = sandbox.run("jobs; set -- /proc/[0-9]*; echo $#; pwd; echo [$counter]").output
        assert seen == "1\n/workspace\n[]\n"
    with BACKEND.open(snapshot.spec, snapshot=snapshot) as fork:
        numbers = [int(text) for text in fork.run("cat /tmp/one /tmp/two").output.split()]
        assert max(numbers) - min(numbers) <= 1


def test_restores_of_many_sandboxes_at_once_do_not_mix(spec: SandboxSpec) -> None:
    def live(number: int) -> list[str]:
        outputs = []
        with BACKEND.open(spec) as sandbox:
            sandbox.run(f"echo {number} > file; head -c 300000 /dev/zero > z")
            snapshot = sandbox.snapshot()
            for _ in range(3):
                sandbox.run("echo lost > file")
                sandbox.restore(snapshot)
                outputs.append(sandbox.run("cat file").output)
        return outputs

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(live, range(6))) == [[f"{number}\n"] * 3 for number in range(6)]
