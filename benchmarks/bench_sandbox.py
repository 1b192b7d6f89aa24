"""Every promise about the speed of sandboxes, measured in one run, beside its target.

Run it by ``python benchmarks/bench_sandbox.py``, on a machine that does nothing else. It prints a
table (``--json``: one JSON line), appends the line to ``benchmarks/results/bench_sandbox.jsonl``
and draws ``bench_sandbox.png`` beside it. What is compared is measured in turn, round by round, so
that noise hits all alike, or, where the one disturbs the other, block by block; figures are
medians. Docker is used where an engine answers, bubblewrap where ``bwrap`` is installed; what is
missing is reported as absent.

The exit code is 1 where a figure missed its target.
"""

import argparse
import json
import logging
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import sandbox_docker
import sandbox_fleet
import sandbox_resets
import sandbox_steps
from figures import RESULTS, Figure, at_least, keep, progress, show

Bench = Callable[[int], list[Figure]]

BENCHES: dict[str, Bench] = {
    "idle": sandbox_fleet.idle,  # first, while this process is small
    "steps": sandbox_steps.steps,
    "resets": sandbox_resets.resets,
    "docker-clone": sandbox_resets.docker_clone,
    "docker": sandbox_docker.docker,
    "preloaded": sandbox_steps.preloaded,
    "bubblewrap": sandbox_steps.bubblewrap,
    "throughput": sandbox_steps.throughput,
    "snapshots": sandbox_resets.snapshots,
    "images": sandbox_resets.images,
    "killed-owner": sandbox_fleet.killed_owner,
}


def parser(about: str | None, names: Mapping[str, object]) -> argparse.ArgumentParser:
    """Returns the options that the benchmarks share."""
    made = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument(
        "--rounds", type=at_least(1), default=200, help="samples of each (default 200)"
    )
    made.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    made.add_argument("--json", action="store_true", help="print one JSON line, not the table")
    made.add_argument("--results", type=Path, default=RESULTS, help="where results are kept")
    return made


def measure(benches: Mapping[str, Bench], rounds: int, only: list[str] | None) -> list[Figure]:
    """Runs the benchmarks that were asked for and returns their figures."""
    figures: list[Figure] = []
    for name, bench in benches.items():
        if only is None or name in only:
            progress(name)
            figures += bench(rounds)
    return figures


def report(title: str, figures: list[Figure], options: argparse.Namespace, **facts: Any) -> None:
    """Shows and keeps the figures, and ends with 1 where one missed its target."""
    row = keep(title, figures, options.results, rounds=options.rounds, **facts)
    if options.json:
        print(json.dumps(row))
    else:
        show(figures)
    sys.exit(any(figure.met is False for figure in figures))


def main() -> None:
    """Measures what was asked for."""
    options = parser(__doc__, BENCHES).parse_args()
    logging.getLogger("coding_gym").setLevel(logging.ERROR)  # resets drop episodes on purpose
    report("bench_sandbox", measure(BENCHES, options.rounds, options.only), options)


if __name__ == "__main__":
    main()
