"""A run of many episodes against a server that only waits.

    python benchmarks/bench_evaluate.py --concurrency 256 --latency 2 --turns 80

``of_server_bound`` is the rate of turns as a fraction of the rate at which the server replies where
nothing else takes time: concurrency / latency. It is counted while all slots are busy: from the
start of the last episode of the first ones (``from_start_…``: from the start of the run) to the end
of the episode that leaves none waiting. ``rss_mb`` is the largest resident size
of the process; ``sandboxes_mb`` is the proportional size of its child processes together, once a
quarter of the episodes has ended. With ``--sleep S`` one episode runs a command that sleeps S
seconds; ``p95_s`` is the 95th percentile of the durations of episodes.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import Figure, parser, report
from fixtures import pss_bytes, tree

from coding_gym.agents.chat import ChatAgent
from coding_gym.agents.model_client import OpenAIClient
from coding_gym.evaluation.evaluate import evaluate
from coding_gym.tasks import load_tasks
from coding_gym.trajectory import Trajectory


def main() -> None:
    """Measures, shows and keeps the figures."""
    made = parser(__doc__, rounds=None)
    made.add_argument("--concurrency", type=int, default=256)
    made.add_argument("--latency", type=float, default=2.0)
    made.add_argument("--turns", type=int, default=80)
    made.add_argument("--per-slot", type=float, default=1.5, help="episodes per slot")
    made.add_argument("--sleep", type=float, default=0.0)
    options = made.parse_args()
    command = [sys.executable, "-m", "model_server"]
    command += ["--latency", str(options.latency), "--turns", str(options.turns)]
    command += ["--sleep-once", str(options.sleep)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            found = measure(server.stdout.readline().strip(), options)
        finally:
            server.terminate()
    figures = [Figure(name=name, value=round(value, 3)) for name, value in found.items()]
    report("evaluate", figures, options)


def measure(base_url: str, options: argparse.Namespace) -> dict[str, float]:
    """Returns the figures of one run."""
    num_episodes = int(options.concurrency * options.per_slot)
    ends: list[tuple[float, Trajectory]] = []
    memory: list[float] = []
    num_tasks = 16
    attempts = -(-num_episodes // num_tasks)

    def note(trajectory: Trajectory) -> None:
        ends.append((time.perf_counter(), trajectory))
        if len(ends) == num_episodes // 4:
            memory.append(pss_bytes([*tree(os.getpid())][1:]) / 2**20)

    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        evaluate(
            ChatAgent(OpenAIClient(base_url), "waiting"),
            Path(folder) / "run",
            tasks=load_tasks(limit=num_tasks),
            attempts=attempts,
            episode={"max_turns": options.turns + 1},
            concurrency=options.concurrency,
            on_done=note,
        )
        wall_s = time.perf_counter() - began
    # While all slots were busy: up to the end of the episode that left none waiting.
    last = ends[max(0, len(ends) - options.concurrency)][0]
    begins = sorted(end - trajectory.duration_s for end, trajectory in ends)
    full = begins[options.concurrency - 1]
    turns = [one for end, trajectory in ends for one in turn_ends(end, trajectory)]
    from_start = sum(end <= last for end, _ in turns) / (last - began)
    while_full = sum(full < end <= last for end, _ in turns) / (last - full)
    bound = options.concurrency / options.latency
    durations = sorted(trajectory.duration_s for _, trajectory in ends)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "concurrency": options.concurrency,
        "latency_s": options.latency,
        "turns": options.turns,
        "episodes": len(ends),
        "turns_per_s": while_full,
        "of_server_bound": while_full / bound,
        "from_start_of_server_bound": from_start / bound,
        "reply_median_s": statistics.median(call_s for _, call_s in turns),
        "p95_s": durations[int(0.95 * len(durations))],
        "wall_s": wall_s,
        "rss_mb": usage.ru_maxrss / 1024,
        "sandboxes_mb": memory[0] if memory else 0.0,
    }


def turn_ends(end: float, trajectory: Trajectory) -> list[tuple[float, float]]:
    """Returns when each turn ended, on the clock of the run, and how long its reply took."""
    found = []
    for turn in reversed(trajectory.turns):
        call_s = turn.model_call.duration_s if turn.model_call else 0.0
        found.append((end, call_s))
        end -= turn.duration_s + call_s
    return found


if __name__ == "__main__":
    main()
