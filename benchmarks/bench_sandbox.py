"""Every promise about the speed of sandboxes, measured in one run, beside its target.

Run it by ``python benchmarks/bench_sandbox.py``, on a machine that does nothing else. It prints a
table (``--json``: one JSON line), appends the line to ``.bench/sandbox.jsonl``
and draws ``sandbox.png`` beside it. What is compared is measured in turn, round by round, so
that noise hits all alike, or, where the one disturbs the other, block by block; figures are
medians. Docker is used where an engine answers, bubblewrap where ``bwrap`` is installed; what is
missing is reported as absent.

The exit code is 1 where a figure missed its target.
"""

import sandbox_docker
import sandbox_fleet
import sandbox_resets
import sandbox_steps
from figures import Bench, measure, parser, report

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


def main() -> None:
    """Measures what was asked for."""
    options = parser(__doc__, BENCHES).parse_args()
    report("sandbox", measure(BENCHES, options), options, rounds=options.rounds)


if __name__ == "__main__":
    main()
