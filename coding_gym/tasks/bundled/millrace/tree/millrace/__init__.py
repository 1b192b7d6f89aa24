"""A small task runner that reruns only what changed."""

from millrace.errors import CycleError, JobFailed, JobFileError, MillraceError
from millrace.jobs import Job
from millrace.loader import load_jobs
from millrace.runner import Runner

__all__ = [
    "CycleError",
    "Job",
    "JobFailed",
    "JobFileError",
    "MillraceError",
    "Runner",
    "load_jobs",
]
