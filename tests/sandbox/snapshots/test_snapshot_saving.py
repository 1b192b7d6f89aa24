"""Snapshots saved to files and loaded by another process, or refused."""

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_fixtures import BACKEND, MakeLayer, stripped_output

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import SandboxLimits, SandboxSpec, Snapshot

_FILES = {"file": "base", "folder/other": "base"}
_CHANGE = "echo changed >file; rm -r folder; mkdir folder; ln -s ../file folder/link"
_LOOK = "cat file; ls folder; cat folder/link"
_LOAD = f"""
import sys
from pathlib import Path
from coding_gym.sandbox import SandboxSpec, Snapshot
from coding_gym.sandbox.namespace import NamespaceBackend
spec = SandboxSpec(layers=(Path(sys.argv[2]),))
with NamespaceBackend().open(spec, snapshot=Snapshot.load(Path(sys.argv[1]), spec)) as sandbox:
    print(sandbox.run({_LOOK!r}).output)
"""


@pytest.fixture
def saved(make_layer: MakeLayer, tmp_path: Path) -> tuple[Path, SandboxSpec]:
    """A snapshot's file, and the spec of its sandbox."""
    spec = SandboxSpec(layers=(make_layer(_FILES),))
    with BACKEND.open(spec) as sandbox:
        assert sandbox.run(_CHANGE).ok
        sandbox.snapshot().save(tmp_path / "saved")
    return tmp_path / "saved", spec


@pytest.mark.slow
def test_another_process_loads_it_with_equal_layers_elsewhere(
    saved: tuple[Path, SandboxSpec], tmp_path: Path
) -> None:
    path, spec = saved
    copy = shutil.copytree(spec.layers[0], tmp_path / "copy", copy_function=shutil.copy2)
    command = [sys.executable, "-c", _LOAD, str(path), str(copy)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert output.split() == ["changed", "link", "changed"]


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


def test_snapshot_of_another_backend_is_refused(saved: tuple[Path, SandboxSpec]) -> None:
    path, spec = saved
    foreign = replace(Snapshot.load(path, spec), backend="docker")
    foreign.save(path)
    with BACKEND.open(spec) as sandbox:
        with pytest.raises(InvalidArgumentError):
            sandbox.restore(Snapshot.load(path, spec))
        assert stripped_output(sandbox, "cat file") == "base"


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20_000])


def _write_text(path: Path) -> None:
    path.write_text("no snapshot", encoding="utf-8")


def _write_other_format(path: Path) -> None:
    header = path.with_name("snapshot.json")
    header.write_text(json.dumps({"format": 2, "backend": "namespace", "spec": ""}), "utf-8")
    with tarfile.open(path, "w") as tar:
        for name in ("snapshot.json", "data"):
            tar.add(header, name)


@pytest.mark.parametrize("damage", [_cut, _write_text, _write_other_format])
def test_damaged_file_is_refused(
    saved: tuple[Path, SandboxSpec], damage: Callable[[Path], None]
) -> None:
    path, spec = saved
    damage(path)
    with pytest.raises(InvalidArgumentError):
        Snapshot.load(path, spec)


def test_file_that_cannot_be_written_leaves_the_old_one(saved: tuple[Path, SandboxSpec]) -> None:
    path, spec = saved
    before = path.read_bytes()
    snapshot = replace(Snapshot.load(path, spec), spec=replace(spec, layers=(Path("/missing"),)))
    with pytest.raises(Exception, match="layer"):
        snapshot.save(path)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir() if one.name.startswith("saved")] == ["saved"]
