"""What a job is, and the order of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from millrace.errors import CycleError, JobFileError


@dataclass(frozen=True)
class Job:
    """One step: an action, the files it reads and writes, and the jobs it waits for.

    Paths are relative to the folder of the job file, with forward slashes.
    """

    name: str
    action: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


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
        before = {*job.needs, *(writers[path] for path in job.inputs if path in writers)}
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
