"""Snapshots, the sandboxes that they come from, and the sandboxes that restore them."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from episodes import in_another_process
from image_fixtures import entry, members_of, tar_of
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

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox import Mount, SandboxLimits, SandboxSpec, Snapshot
from coding_gym.sandbox.namespace import NamespaceBackend


@pytest.fixture
def spec(make_layer: MakeLayer) -> SandboxSpec:
    return SandboxSpec(layers=(make_layer({"file": "base\n", "folder/file": "x"}),))


@pytest.mark.parametrize("data", [b"", b"nonsense", None], ids=["empty", "nonsense", "cut"])
def test_a_failed_restore_closes_the_sandbox(spec: SandboxSpec, data: bytes | None) -> None:
    with BACKEND.open(spec) as sandbox:
        good = sandbox.snapshot()
        bad = dataclasses.replace(good, data=good.data[:-1] if data is None else data)
        with pytest.raises(SandboxError):
            sandbox.restore(bad)
        with pytest.raises(SandboxError):
            sandbox.run("true")
        with pytest.raises(SandboxError):
            BACKEND.open(spec, snapshot=bad)
        with BACKEND.open(spec, snapshot=good) as other:
            assert other.run("cat file").output == "base\n"


def test_a_restore_fails_without_the_source_of_a_mount(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    with make_sandbox(mounts=(Mount(source=source, target="/opt/mount"),)) as sandbox:
        snapshot = sandbox.snapshot()
        source.rmdir()
        with pytest.raises(SandboxError):
            sandbox.restore(snapshot)


def _server() -> int:
    (server,) = children(helper_pid(BACKEND))
    return server


def _counts() -> tuple[int, int, int]:
    """Returns the numbers of open descriptors here and in the server, and of its mounts."""
    mounts = Path(f"/proc/{_server()}/mountinfo").read_text(encoding="utf-8").splitlines()
    return num_descriptors(), num_descriptors(_server()), len(mounts)


def test_restores_leak_no_process_or_descriptor(spec: SandboxSpec) -> None:
    BACKEND.open(spec).close()
    others = {*children(_server())}
    with BACKEND.open(spec) as sandbox:
        sandbox.run("echo x > file; ln file file2; rm -r folder")
        snapshot = sandbox.snapshot()
        bad = dataclasses.replace(snapshot, data=snapshot.data[:-1])
        before = _counts()
        for _ in range(5):
            sandbox.restore(snapshot)
            BACKEND.open(spec, snapshot=snapshot).close()
            with pytest.raises(SandboxError):
                BACKEND.open(spec, snapshot=bad)
        wait_until(lambda: _counts() == before)  # the last failed sandbox may still be ending
    assert wait_gone({*children(_server())} - others, 10) == []


def test_mounts_may_cover_all_writable_folders(make_layer: MakeLayer) -> None:
    targets = ("/tmp", "/home/agent")
    mounts = tuple(Mount(source=make_layer({"name": t}), target=t) for t in targets)
    with make_sandbox(mounts=mounts) as sandbox:
        sandbox.write_file("kept", b"1")
        sandbox.restore(sandbox.snapshot())
        assert output(sandbox, "cat kept /tmp/name ~/name") == "1/tmp/home/agent"


_FILES = {"file": "base", "folder/other": "base"}
_CHANGE = "echo changed >file; rm -r folder; mkdir folder; ln -s ../file folder/link"
_LOOK = "cat file; ls folder; cat folder/link"


@pytest.fixture
def saved(make_layer: MakeLayer, tmp_path: Path) -> tuple[Path, SandboxSpec]:
    """A snapshot's file, and the spec of its sandbox."""
    spec = SandboxSpec(layers=(make_layer(_FILES),))
    with BACKEND.open(spec) as sandbox:
        assert sandbox.run(_CHANGE).ok
        sandbox.snapshot().save(tmp_path / "saved")
    return tmp_path / "saved", spec


def _look_at(path: Path, layer: Path) -> str:
    spec = SandboxSpec(layers=(layer,))
    with NamespaceBackend().open(spec, snapshot=Snapshot.load(path, spec)) as sandbox:
        return sandbox.run(_LOOK).output


@pytest.mark.slow
def test_another_process_loads_a_snapshot_with_equal_layers(
    saved: tuple[Path, SandboxSpec], tmp_path: Path
) -> None:
    path, spec = saved
    copy = shutil.copytree(spec.layers[0], tmp_path / "copy", copy_function=shutil.copy2)
    assert in_another_process(_look_at, path, copy).split() == ["changed", "link", "changed"]


def test_snapshot_of_another_spec_is_refused(
    saved: tuple[Path, SandboxSpec], make_layer: MakeLayer
) -> None:
    path, spec = saved
    others = (
        replace(spec, limits=SandboxLimits(num_processes=50)),
        replace(spec, layers=(make_layer(_FILES | {"file": "Base"}),)),
        replace(spec, layers=(make_layer(_FILES | {"more": ""}),)),
    )
    for other in others:
        with pytest.raises(InvalidArgumentError):
            Snapshot.load(path, other)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20_000])


def _write_other_format(path: Path) -> None:
    header = json.dumps({"format": 2, "backend": "namespace", "spec": ""}).encode()
    path.write_bytes(tar_of([entry("snapshot.json", header), entry("data", header)]))


def _add_holes(path: Path) -> None:
    header, data = members_of(path).values()
    size = str(len(data) + 1)
    holes = {"GNU.sparse.size": size, "GNU.sparse.map": f"0,{len(data)}"}
    damaged = [entry("snapshot.json", header), entry("data", data, pax_headers=holes)]
    path.write_bytes(tar_of(damaged))


def _pad_header(path: Path) -> None:
    header, data = members_of(path).values()
    padded = header + b" " * (1 << 20)
    path.write_bytes(tar_of([entry("snapshot.json", padded), entry("data", data)]))


@pytest.mark.parametrize(
    "damage",
    [_cut, _write_other_format, _add_holes, _pad_header, Path.unlink],
)
def test_a_damaged_file_is_refused(
    saved: tuple[Path, SandboxSpec], damage: Callable[[Path], None]
) -> None:
    path, spec = saved
    damage(path)
    with pytest.raises(InvalidArgumentError):
        Snapshot.load(path, spec)


@pytest.mark.parametrize("link", ["/sandbox", "/.old/allowed"])
def test_a_mount_below_a_symlink_of_the_workspace_stays_inside(
    make_layer: MakeLayer, link: str
) -> None:
    layer = make_layer({"file": "x"})
    (layer / "way").symlink_to(link)
    tools = Mount(source=make_layer({"tool": "t\n"}), target="/workspace/way/tools")
    with make_sandbox(layers=(layer,), mounts=(tools,)) as sandbox:
        assert output(sandbox, f"cat {link}/tools/tool; ls {link}") in {
            "t\nbin\ntools\n",
            "t\ntools\n",
        }
