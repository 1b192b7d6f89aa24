"""A policy that learns to repair bugs, in about five minutes on a CPU.

    pip install -e '.[sb3,plot]'
    python examples/learn_quickly.py

A small network (MaskablePPO) chooses from a menu: find the fault, try one of twelve edits, run
the visible tests, submit. It trains on bugs of one edit in twelve of the bundled programs, and is
then played on bugs of three others. `benchmarks/learning/learn.py` does the same on 40 programs,
with intervals, and with a language model.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the network is too small for more threads
sys.path.append(str(Path(__file__).parents[1] / "benchmarks" / "learning"))

from coding_gym.errors import MissingDependencyError

try:
    import menu_sb3
except (ImportError, MissingDependencyError):
    raise SystemExit("it needs Stable-Baselines3; run: pip install -e '.[sb3]'") from None

import learn
import menu_episodes
import programs

_NUM_CANDIDATES = 12  # benchmarks/learning offers 48, and takes longer to explore and to learn


def resolved(tasks: Path, choose: menu_episodes.Choose) -> str:
    """Returns what a policy resolves, in percent."""
    played = menu_episodes.play(tasks, choose, seed=0, num_candidates=_NUM_CANDIDATES)
    return f"{100 * sum(one.resolved for one in played) / len(played):.0f} %"


def main() -> None:
    """Trains, and prints what is learned."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=8_000, help="to train (default 8000)")
    parser.add_argument("--each", type=int, default=4, help="bugs of a program (default 4)")
    parser.add_argument("--plot", type=Path, help="draw the learning curve into this file")
    options = parser.parse_args()
    began = time.perf_counter()
    with TemporaryDirectory() as folder:
        bench = Path(folder)
        programs.build(bench, 2, is_offline=True)
        train, test = (learn.subset(bench, split, options.each) for split in learn.SPLITS)
        # Training then waits for no test.
        menu_episodes.explore(train, num_candidates=_NUM_CANDIDATES)
        print("\non programs that it will not train on:")
        print(f"  a random policy resolves {resolved(test, menu_episodes.random_choice)}")
        print(f"  the likeliest edit, untested, {resolved(test, menu_episodes.first_entry)}")
        learner = menu_sb3.Learner(train, 0, _NUM_CANDIDATES)
        curve = learner.learn(options.steps)
        print("in training, by tenths:", *(f"{part['resolved']:.0%}" for part in curve))
        print(f"after training it resolves {resolved(test, learner.choose(is_greedy=True))}")
        learner.close()
    print(f"{(time.perf_counter() - began) / 60:.1f} minutes")
    if options.plot:
        _draw(curve, options.plot)


def _draw(curve: list[dict[str, float]], path: Path) -> None:
    from matplotlib import pyplot

    steps, shares = zip(*((part["until"], 100 * part["resolved"]) for part in curve), strict=True)
    pyplot.plot(steps, shares, marker=".")
    pyplot.xlabel("steps")
    pyplot.ylabel("resolved in training, %")
    pyplot.savefig(path, dpi=120)
    print(f"drawn: {path}")


if __name__ == "__main__":
    main()
