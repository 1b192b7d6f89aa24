"""What a job is, and the order of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from millrace.errors import CycleError, JobFileError
from millrace.patterns import is_pattern, matches, matching_files


@dataclass(frozen=True)
class Job:
    """One step: an action, the files it reads and writes, and the jobs it waits for.

    Paths are relative to the folder of the job file, with forward slashes. An input may be a
    pattern.
    """

    name: str
    action: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    def reads(self, file: str) -> bool:
        """Whether ``file`` is one of the inputs, or matches one that is a pattern."""
        return file in self.inputs or (
            file not in self.outputs and any(matches(path, file) for path in self.inputs)
        )

    def files_read(self, folder: Path) -> tuple[str, ...]:
        """The inputs, with the files that match now in the place of patterns."""
        files: list[str] = []
        for path in self.inputs:
            files += matching_files(path, folder, self.outputs) if is_pattern(path) else [path]
        return tuple(files)


def order_jobs(jobs: Sequence[Job], targets: Iterable[str] = ()) -> list[Job]:
    """The jobs that ``targets`` depend on (all by default), each after those it waits for.

    The order of ``jobs`` is kept where dependencies leave it open.
    """
    by_name = {job.name: job for job in jobs}
    writers = {path: job.name for job in jobs for path in job.outputs}
    ordered: dict[str, Job] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if name in ordered:
            return
        if name in trail:
            loop = (*trail[trail.index(name) :], name)
            raise CycleError("jobs wait for each other: " + " -> ".join(loop))
        if name not in by_name:
            raise JobFileError(f"{trail[-1]} needs {name}, which is not a job")
        job = by_name[name]
        before = {*job.needs, *(writer for path, writer in writers.items() if job.reads(path))}
        for other in sorted(before, key=lambda other: _position(jobs, other)):
            visit(other, (*trail, name))
        ordered[name] = job

    for target in targets or by_name:
        if target not in by_name:
            raise JobFileError(f"there is no job called {target}")
        visit(target, ())
    return list(ordered.values())


def _position(jobs: Sequence[Job], name: str) -> int:
    names = [job.name for job in jobs]
    return names.index(name) if name in names else len(names)
