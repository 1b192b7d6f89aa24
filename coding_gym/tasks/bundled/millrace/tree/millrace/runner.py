"""Running what has to run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from millrace.actions import ACTIONS
from millrace.errors import JobFailed
from millrace.jobs import Job, order_jobs
from millrace.state import State


class Runner:
    """Brings the outputs of jobs up to date.

    ``folder`` is what the paths of the jobs are relative to; ``on_start`` hears of each job that is
    about to run.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        folder: Path,
        *,
        on_start: Callable[[Job], None] | None = None,
    ) -> None:
        self._jobs = jobs
        self._folder = folder
        self._on_start = on_start
        self._state = State(folder)

    def plan(self, targets: Iterable[str] = (), *, force: bool = False) -> list[Job]:
        """The jobs that may run, in order: the stale ones, and those that read what they write."""
        planned: list[Job] = []
        written: set[str] = set()
        for job in order_jobs(self._jobs, targets):
            if force or self._state.is_stale(job) or any(map(job.reads, written)):
                planned.append(job)
                written.update(job.outputs)
        return planned

    def run(self, targets: Iterable[str] = (), *, force: bool = False) -> list[Job]:
        """Run what has to run and return it; a failing job ends the run with ``JobFailed``."""
        done: list[Job] = []
        for job in order_jobs(self._jobs, targets):
            if force or self._state.is_stale(job):
                self._run(job)
                done.append(job)
        return done

    def _run(self, job: Job) -> None:
        if self._on_start is not None:
            self._on_start(job)
        self._state.forget(job)
        inputs = [self._folder / path for path in job.files_read(self._folder)]
        outputs = [self._folder / path for path in job.outputs]
        try:
            ACTIONS[job.action](inputs, outputs, job.options)
        except (OSError, ValueError) as error:
            raise JobFailed(f"{job.name}: {error}") from error
        self._state.record(job)
