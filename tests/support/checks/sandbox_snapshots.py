"""Checks of snapshots: files come back, wherever and as often as one likes."""

# The names of the checks say what others say in docstrings.

import dataclasses
import pickle

from checks.claims import claim, expect, expect_error, opened, output, tree
from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.protocol import Promise, Sandbox, SandboxBackend
from coding_gym.sandbox.spec import SandboxSpec

_FILES = {"changed": "base", "removed": "base", "folder/a": "a", "folder/b": "b", "kept": "kept"}
# Everything that a policy does to a tree.
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
_SPOIL = "rm -rf * ~/.note; echo spoilt > changed; mkdir folder; echo a > folder/a; echo x > new"


@claim()
def restoring_puts_every_file_back(backend: SandboxBackend) -> None:
    with opened(backend, _FILES) as sandbox:
        output(sandbox, _CHANGE)
        wanted = output(sandbox, _LOOK)
        snapshot = sandbox.snapshot()
        expect("a snapshot changes nothing", output(sandbox, _LOOK), wanted)
        output(sandbox, _SPOIL)
        sandbox.restore(snapshot)
        expect("files", output(sandbox, _LOOK), wanted)
        expect("a linked file", output(sandbox, "echo more >> hard; cat changed"), "new\nmore\n")


@claim()
def a_snapshot_restores_as_often_as_one_likes(backend: SandboxBackend) -> None:
    with opened(backend, _FILES) as sandbox:
        base = sandbox.snapshot()
        untouched = _tree(sandbox)
        output(sandbox, _CHANGE)
        changed, later = _tree(sandbox), sandbox.snapshot()
        for _ in range(2):
            sandbox.restore(base)
            expect("the base", _tree(sandbox), untouched)
            sandbox.restore(later)
            expect("the later state", _tree(sandbox), changed)
            output(sandbox, _SPOIL)


@claim()
def a_snapshot_outlives_its_sandbox_and_opens_others(backend: SandboxBackend) -> None:
    with tree(backend, _FILES) as layer:
        spec = SandboxSpec(layers=(layer,))
        with backend.open(spec) as sandbox:
            output(sandbox, _CHANGE)
            wanted, snapshot = output(sandbox, _LOOK), sandbox.snapshot()
        copied = pickle.loads(pickle.dumps(snapshot))  # noqa: S301 - made on the line
        with backend.open(spec, snapshot=snapshot) as one, backend.open(spec) as other:
            expect("opened with it", output(one, _LOOK), wanted)
            other.restore(copied)
            output(one, _SPOIL)
            expect("restored elsewhere", output(other, _LOOK), wanted)
        with backend.open(spec) as fresh:
            expect("the layers", output(fresh, "cat changed removed folder/a"), "basebasea")


@claim()
def a_restored_sandbox_works_on(backend: SandboxBackend) -> None:
    with opened(backend, _FILES) as sandbox:
        output(sandbox, _CHANGE)
        sandbox.restore(sandbox.snapshot())
        output(sandbox, "mv folder moved; rm -r e; echo x > changed; mkdir e; git init -q .")
        sandbox.write_file("removed", b"again")
        expect("files", output(sandbox, "cat moved/c changed removed"), "c\nx\nagain")
        second = sandbox.snapshot()
        output(sandbox, "rm -rf moved")
        sandbox.restore(second)
        expect("a second time", output(sandbox, "ls -A moved; ls -d folder 2>&- || :"), "c\n")


@claim(Promise.PRIVATE_TMP)
def a_snapshot_holds_temporary_files(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        output(sandbox, "echo t > /tmp/t; echo s > /dev/shm/s")
        snapshot = sandbox.snapshot()
        output(sandbox, "rm /tmp/t /dev/shm/s; echo new > /tmp/new")
        sandbox.restore(snapshot)
        expect("files", output(sandbox, "cat /tmp/t /dev/shm/s; ls -A /tmp"), "t\ns\nt\n")


@claim()
def a_snapshot_of_another_backend_or_spec_is_refused(backend: SandboxBackend) -> None:
    with opened(backend, {"file": "x"}) as sandbox:
        output(sandbox, "echo changed > file")
        own = sandbox.snapshot()
        spec = dataclasses.replace(own.spec, env={"OTHER": "spec"})
        for what, other in (
            ("backend", dataclasses.replace(own, backend="another")),
            ("spec", dataclasses.replace(own, spec=spec)),
        ):
            restoring = lambda other=other: sandbox.restore(other)  # noqa: E731 - as elsewhere
            expect_error(what, InvalidArgumentError, restoring)
            opening = lambda other=other: backend.open(own.spec, snapshot=other)  # noqa: E731 - so
            expect_error(f"{what} at open", InvalidArgumentError, opening)
        expect("nothing has changed", output(sandbox, "cat file"), "changed\n")


@claim(Promise.SMALL_SNAPSHOTS)
def snapshots_are_as_large_as_what_changed(backend: SandboxBackend) -> None:
    large = {f"folder{n}/file": "x" * 100_000 for n in range(20)}
    with opened(backend, large) as sandbox:
        before = len(sandbox.snapshot().data)
        output(sandbox, "echo changed > folder3/file; echo new > new")
        after = len(sandbox.snapshot().data)
        expect(f"grew little ({before} to {after} bytes)", after < 200_000, True)


def _tree(sandbox: Sandbox) -> str:
    return output(sandbox, "find . ~ -printf '%P|%y|%m|%l\\n' | LC_ALL=C sort; cat changed")
