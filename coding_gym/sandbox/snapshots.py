"""Checks of a snapshot, made by every backend before it restores one."""

import sys
from dataclasses import fields

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.protocol import Snapshot
from coding_gym.sandbox.spec import SandboxLimits, SandboxSpec

# Of one entry beside its data: two headers, its path, its attributes.
_ENTRY_BYTES = 4 << 10
_SLACK_BYTES = 1 << 20


def check_snapshot(snapshot: Snapshot, *, backend: str, spec: SandboxSpec) -> None:
    """Raises InvalidArgumentError, naming what differs, for one of another backend or spec."""
    if snapshot.backend != backend:
        raise InvalidArgumentError(
            f"a snapshot of a {snapshot.backend!r} sandbox cannot be restored into a "
            f"{backend!r} one"
        )
    names = (field.name for field in fields(spec))
    if others := [n for n in names if getattr(snapshot.spec, n) != getattr(spec, n)]:
        raise InvalidArgumentError(
            f"the snapshot is of a sandbox whose spec differs in {', '.join(others)}; "
            "open one with the spec of the snapshot"
        )


def check_fits(snapshot: Snapshot) -> None:
    """Raises InvalidArgumentError for more data than a bounded sandbox of its spec holds."""
    if len(snapshot.data) > max_snapshot_bytes(snapshot.spec.limits, backend=snapshot.backend):
        raise InvalidArgumentError(
            f"the snapshot's {len(snapshot.data)} bytes are more than a sandbox may hold"
        )


def max_snapshot_bytes(limits: SandboxLimits, *, backend: str) -> int:
    """Returns the size limit of a snapshot: twice the disk, as files on disk are counted apart.

    A ``process`` sandbox has no limit, nor has its snapshot.
    """
    if backend == "process":
        return sys.maxsize
    return 2 * limits.disk_bytes + limits.num_inodes * _ENTRY_BYTES + _SLACK_BYTES
