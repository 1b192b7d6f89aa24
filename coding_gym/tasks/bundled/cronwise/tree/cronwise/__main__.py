"""The command line: ``python -m cronwise EXPRESSION``."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Sequence
from typing import TextIO

from cronwise.errors import CronError
from cronwise.schedule import Schedule


def main(argv: Sequence[str] | None = None, stream: TextIO | None = None) -> int:
    """Prints the next runs of an expression and gives the exit status."""
    stream = sys.stdout if stream is None else stream
    parser = argparse.ArgumentParser(prog="cronwise", description="The next runs of a cron line.")
    parser.add_argument("expression")
    parser.add_argument("--zone", default="UTC")
    parser.add_argument("--after", type=dt.datetime.fromisoformat, help="default: now")
    parser.add_argument("--count", type=int, default=5)
    options = parser.parse_args(argv)
    try:
        schedule = Schedule(options.expression, options.zone)
        after = options.after or dt.datetime.now(dt.UTC)
        if after.tzinfo is None:
            after = after.replace(tzinfo=schedule.zone)
        for run in schedule.upcoming(after, options.count):
            print(run.isoformat(), file=stream)
    except CronError as error:
        print(f"cronwise: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
