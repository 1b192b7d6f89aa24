"""A grading sandbox: what it has more of than an episode's, and what lies in it."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from coding_gym.sandbox.protocol import Sandbox
from coding_gym.sandbox.spec import SandboxSpec

_MIN_DISK_BYTES = 1 << 30
_MIN_PROCESSES = 512
_MIN_MEMORY_BYTES = 1 << 30
_MIN_OPEN_FILES = 1280  # the reports of tests go through one with a high number


def roomier(spec: SandboxSpec) -> SandboxSpec:
    """Tests may need more than the repair did, and no shell that outlives its command."""
    limits = replace(
        spec.limits,
        disk_bytes=max(spec.limits.disk_bytes, _MIN_DISK_BYTES),
        num_processes=max(spec.limits.num_processes, _MIN_PROCESSES),
        memory_bytes=max(spec.limits.memory_bytes, _MIN_MEMORY_BYTES),
        num_open_files=max(spec.limits.num_open_files, _MIN_OPEN_FILES),
    )
    return replace(spec, limits=limits, shell="fresh")


def read_files(sandbox: Sandbox, paths: Iterable[str]) -> dict[str, bytes]:
    """Returns the content, by path, of those files that are there."""
    contents = {}
    for path in paths:
        with suppress(OSError):
            contents[path] = sandbox.read_file(path)
    return contents
