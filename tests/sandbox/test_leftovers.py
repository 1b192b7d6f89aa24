"""Folders of sandboxes are removed with them and after dead owners, and kept for all others.

Changes are on disk, as on kernels whose tmpfs lacks user extended attributes.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sandbox_fixtures import (
    MakeLayer,
    repeat_once_only_actions,
    tree,
)

from coding_gym.sandbox import SandboxSpec
from coding_gym.sandbox.landlock import LandlockBackend
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.ownership import remove_folder, uppers_folder
from coding_gym.sandbox.protocol import SandboxBackend

pytestmark = pytest.mark.slow

_IN_NEW_PID_NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc"]
BACKENDS: dict[str, SandboxBackend] = {
    "namespace": NamespaceBackend(changes="disk"),
    "landlock": LandlockBackend(),
}
# Opens a sandbox; for each line of input sweeps, and prints what this and a new sandbox hold.
_OWNER = """
import sys
from pathlib import Path
from test_leftovers import BACKENDS
from coding_gym.sandbox import SandboxSpec
from sandbox_fixtures import repeat_once_only_actions
backend, spec = BACKENDS[sys.argv[1]], SandboxSpec(layers=(Path(sys.argv[2]),))
with backend.open(spec) as sandbox:
    print("open", flush=True)
    for _ in sys.stdin:
        repeat_once_only_actions()
        with backend.open(spec) as new:
            names = new.run("echo *").output.strip()
        print(names, sandbox.run("echo -n + >> new; cat file new").output, flush=True)
"""


@contextmanager
def container(kind: str, layer: Path, shared: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process in a new pid namespace that has opened a sandbox."""
    env = os.environ | {"TMPDIR": str(shared), "XDG_CACHE_HOME": str(shared / "cache")}
    env |= {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [*_IN_NEW_PID_NAMESPACE, sys.executable, "-W", "ignore", "-c", _OWNER, kind, layer],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=env,
        text=True,
    ) as owner:
        assert owner.stdout
        assert owner.stdout.readline() == "open\n"
        yield owner


def sweep(owner: "subprocess.Popen[str]") -> str:
    assert owner.stdin
    assert owner.stdout
    owner.stdin.write("\n")
    owner.stdin.flush()
    return owner.stdout.readline()


@pytest.mark.parametrize("kind", BACKENDS)
def test_containers_that_share_folders_keep_their_sandboxes(kind: str) -> None:
    if subprocess.run([*_IN_NEW_PID_NAMESPACE, "true"], check=False).returncode:
        pytest.skip("no pid namespace can be made")
    backend = BACKENDS[kind]
    if not backend.probe().available:
        pytest.skip(f"this machine has no {kind} sandboxes")
    with tree(backend, {"file": "base"}) as layer, tree(backend, {}) as shared:
        with container(kind, layer, shared) as first, container(kind, layer, shared) as second:
            seen = [sweep(owner) for owner in (first, second, first, second)]
        assert seen == ["file base+\n", "file base+\n", "file base++\n", "file base++\n"]
        left = [path.name for path in shared.rglob("*") if path.name.startswith("coding_gym-")]
        assert (left, list(shared.rglob("upper"))) == ([], [])


def test_removal_continues_after_a_file_that_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a/stays", "a/x", "b/stays", "b/x", "c/stays", "c/d/x"):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).touch()

    def refuse(name: str, *, dir_fd: int) -> None:
        if name == "stays":
            raise PermissionError
        unlink(name, dir_fd=dir_fd)

    unlink = os.unlink
    monkeypatch.setattr(os, "unlink", refuse)
    remove_folder(tmp_path / "tree")
    monkeypatch.undo()
    names = [path.name for path in sorted(tmp_path.rglob("*"))]
    assert names == ["tree", "a", "stays", "b", "stays", "c", "stays"]
    remove_folder(tmp_path / "tree")
    assert not any(tmp_path.iterdir())


def test_removing_a_link_keeps_the_mode_of_its_target(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(tmp_path / "target")
    remove_folder(tmp_path / "link")
    assert (tmp_path / "target").stat().st_mode & 0o777 == 0o755


def test_only_folders_of_dead_owners_are_removed(
    make_layer: MakeLayer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    repeat_once_only_actions()
    on_disk, spec = BACKENDS["namespace"], SandboxSpec(layers=(make_layer({"file": "x"}),))
    with on_disk.open(spec) as sandbox:
        base = tmp_path / "cache" / "coding_gym" / "uppers"
        ours = uppers_folder().name
        place, pid, _ = ours.split("-")
        elsewhere = f"{'0' * len(place)}-{pid}-1"
        for name in (f"{place}-999999999-1", f"{place}-{pid}-1", elsewhere):
            (base / name / "sandbox" / "upper" / "deep").mkdir(parents=True)
            (base / name / "sandbox" / "upper").chmod(0)
        repeat_once_only_actions()
        with on_disk.open(spec) as other:
            assert {path.name for path in base.iterdir()} == {ours, elsewhere}
            assert other.run("cat file").output == sandbox.run("cat file").output == "x"
