"""Snapshots restore files in any sandbox of an equal spec, as often as needed."""

import dataclasses
import pickle

import pytest
from sandbox_fixtures import opened, output, tree

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox.protocol import Promise, Sandbox, SandboxBackend
from coding_gym.sandbox.spec import SandboxSpec

_FILES = {"changed": "base", "removed": "base", "folder/a": "a", "folder/b": "b", "kept": "kept"}
# Every kind of change that a policy makes to a tree.
_CHANGE = (
    "echo new > changed; rm removed; rm -r folder; mkdir folder; echo c > folder/c; mkdir -p e/f;"
    " ln -s changed link; ln changed hard; chmod 751 changed; printf 'a\\xff\\0b' > binary;"
    " echo é > $'name \\xff\\n'; echo home > ~/.note; touch -d 2001-02-03T04:05:06 kept;"
    " mkfifo pipe"
)
_LOOK = (
    "find . ~ -mindepth 1 -printf '%P|%y|%m|%l|%n\\n' | LC_ALL=C sort; cat changed folder/c binary"
    " ~/.note; cat name*; stat -c %Y kept"
)
_LOOK_AT_BASE = "find . ~ -printf '%P|%y|%m|%l\\n' | LC_ALL=C sort; cat changed folder/a"
_SPOIL = "rm -rf * ~/.note; echo spoilt > changed; mkdir folder; echo a > folder/a; echo x > new"


def test_a_snapshot_restores_many_times(backend: SandboxBackend) -> None:
    with opened(backend, _FILES) as sandbox:
        base = sandbox.snapshot()
        untouched = output(sandbox, _LOOK_AT_BASE)
        output(sandbox, _CHANGE)
        changed, later = output(sandbox, _LOOK), sandbox.snapshot()
        assert output(sandbox, _LOOK) == changed
        for _ in range(2):
            sandbox.restore(base)
            assert output(sandbox, _LOOK_AT_BASE) == untouched
            sandbox.restore(later)
            assert output(sandbox, _LOOK) == changed
            output(sandbox, _SPOIL)


def test_a_snapshot_outlives_its_sandbox_and_opens_others(backend: SandboxBackend) -> None:
    with tree(backend, _FILES) as layer:
        spec = SandboxSpec(layers=(layer,))
        with backend.open(spec) as sandbox:
            output(sandbox, _CHANGE)
            wanted, snapshot = output(sandbox, _LOOK), sandbox.snapshot()
        copied = pickle.loads(pickle.dumps(snapshot))  # noqa: S301 - made on the line
        with backend.open(spec, snapshot=snapshot) as one, backend.open(spec) as other:
            assert output(one, _LOOK) == wanted
            other.restore(copied)
            output(one, _SPOIL)
            assert output(other, _LOOK) == wanted
        with backend.open(spec) as fresh:
            assert output(fresh, "cat changed removed folder/a") == "basebasea"


def test_a_snapshot_holds_the_state_of_the_shell(backend: SandboxBackend) -> None:
    with opened(backend, _FILES, shell="persistent") as sandbox:
        output(sandbox, "cd folder; kept=1")
        snapshot = sandbox.snapshot()
        output(sandbox, "cd /; kept=2")
        sandbox.restore(snapshot)
        assert output(sandbox, "ls; echo $kept") == "a\nb\n1\n"


def test_a_path_above_the_kernel_limit_prevents_a_snapshot(backend: SandboxBackend) -> None:
    name = "n" * 200
    dig = f"import os\nfor _ in range(30):\n    os.mkdir('{name}')\n    os.chdir('{name}')\n"
    with opened(backend, {"dig.py": dig}, python=True) as sandbox:
        output(sandbox, "python dig.py")
        with pytest.raises(SandboxError, match="File name too long"):
            sandbox.snapshot()
        output(sandbox, "rm -r n*")
        assert sandbox.snapshot().data


def test_a_workspace_without_permissions_has_a_snapshot(backend: SandboxBackend) -> None:
    with opened(backend, {"file": "kept"}) as sandbox:
        output(sandbox, "chmod 000 .")
        for _ in range(2):
            sandbox.restore(sandbox.snapshot())
        assert output(sandbox, f"chmod 755 {sandbox.workdir}; cat {sandbox.workdir}/file", cwd="/")


@pytest.mark.promise(Promise.PRIVATE_ROOT)
def test_a_snapshot_holds_temporary_files(sandbox: Sandbox) -> None:
    output(sandbox, "echo t > /tmp/t; echo s > /dev/shm/s")
    snapshot = sandbox.snapshot()
    output(sandbox, "rm /tmp/t /dev/shm/s; echo new > /tmp/new")
    sandbox.restore(snapshot)
    assert output(sandbox, "cat /tmp/t /dev/shm/s; ls -A /tmp") == "t\ns\nt\n"


def test_a_snapshot_of_another_backend_or_spec_is_refused(backend: SandboxBackend) -> None:
    with opened(backend, {"file": "x"}) as sandbox:
        output(sandbox, "echo changed > file")
        snapshot = sandbox.snapshot()
        spec = dataclasses.replace(snapshot.spec, env={"OTHER": "spec"})
        for other in (
            dataclasses.replace(snapshot, backend="another"),
            dataclasses.replace(snapshot, spec=spec),
        ):
            with pytest.raises(InvalidArgumentError):
                sandbox.restore(other)
            with pytest.raises(InvalidArgumentError):
                backend.open(snapshot.spec, snapshot=other)
        assert output(sandbox, "cat file") == "changed\n"


@pytest.mark.promise(Promise.PRIVATE_ROOT)
def test_the_size_of_a_snapshot_depends_on_the_changes(backend: SandboxBackend) -> None:
    large = {f"folder{n}/file": "x" * 100_000 for n in range(20)}
    with opened(backend, large) as sandbox:
        output(sandbox, "echo changed > folder3/file; echo new > new")
        assert len(sandbox.snapshot().data) < 200_000
