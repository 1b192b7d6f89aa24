"""The command line: ``python -m millrace [-f FILE] [--dry-run] [--force] [JOB ...]``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from millrace.errors import MillraceError
from millrace.jobs import Job
from millrace.loader import load_jobs
from millrace.runner import Runner


def main(argv: Sequence[str] | None = None) -> int:
    """Run the jobs of a file and return the exit status."""
    parser = argparse.ArgumentParser(prog="millrace", description="Rerun what changed.")
    parser.add_argument("targets", nargs="*", metavar="JOB", help="jobs to bring up to date")
    parser.add_argument("-f", "--file", type=Path, default=Path("jobs.toml"), help="the job file")
    parser.add_argument("--dry-run", action="store_true", help="list what may run")
    parser.add_argument("--force", action="store_true", help="run even what is up to date")
    options = parser.parse_args(argv)
    try:
        runner = Runner(load_jobs(options.file), options.file.parent, on_start=_announce)
        if options.dry_run:
            for job in runner.plan(options.targets, force=options.force):
                print(f"would run {job.name}")
        elif not runner.run(options.targets, force=options.force):
            print("up to date")
    except MillraceError as error:
        print(f"millrace: {error}", file=sys.stderr)
        return 1
    return 0


def _announce(job: Job) -> None:
    print(f"running {job.name}")


if __name__ == "__main__":
    sys.exit(main())
