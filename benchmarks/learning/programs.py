"""A bench for learning: bugs of one edit in many programs, and no program on both sides.

    python benchmarks/learning/programs.py --out bench             # makes tasks; goes on if stopped
    python benchmarks/learning/programs.py --out bench --report    # prints what is there

Programs come with the package, or are source distributions that bring their tests. Each is broken
by `coding-gym tasks synthesize --show-failing`: the agent sees half of the test functions that
fail, and the hidden other half decides. ``train.jsonl`` and ``test.jsonl`` hold the tasks of three
quarters and of one quarter of the programs, chosen by a digest of their names.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coding_gym.mutation.catalogue import BUG_KINDS
from coding_gym.tasks.bundled_tasks import bundled_folder

# Pure Python, their tests within seconds; tried with `synthesize` before they came to this list.
DISTRIBUTIONS = (
    "addict==2.4.0",
    "boolean.py==5.0",
    "cachetools==8.0.1",
    "deepmerge==4.0.0",
    "flatten-dict==0.5.0",
    "funcy==2.1",
    "glom==25.12.0",
    "hashids==1.3.1",
    "inflection==0.5.1",
    "itsdangerous==2.2.0",
    "money==1.3.0",
    "munch==4.0.0",
    "ordered-set==4.1.0",
    "python-slugify==9.2.0",
    "schema==0.7.8",
    "shortuuid==1.0.13",
    "simpleeval==1.0.8",
    "tabulate==0.10.0",
    "tinydb==4.9.0",
    "toolz==1.2.0",
    "uritemplate==4.2.0",
    "validators==0.36.0",
    "voluptuous==0.16.0",
    "w3lib==2.5.0",
    "webcolors==25.10.0",
)
SPLITS = ("train", "test")
_TEST_SHARE = 4  # one program in so many
_TIMEOUT_S = 3600.0
_GRADING_TIMEOUT_S = 10.0  # an episode with a patch that never ends waits so long for its grade
_PROGRAM = Path(sys.executable).with_name("coding-gym")


def programs() -> Iterator[tuple[str, list[str]]]:
    """Yields the name of each program, and the options of `synthesize` that choose it."""
    for folder in sorted(bundled_folder().iterdir()):
        if list(folder.glob("tree/**/test_*.py")):
            yield folder.name, ["--repo", str(folder / "tree")]
    for requirement in DISTRIBUTIONS:
        yield requirement.partition("==")[0], ["--pypi", requirement]


def split_of(name: str) -> str:
    """Returns the split of a program: always the same, whatever other programs there are."""
    digest = hashlib.sha256(name.encode()).digest()
    return SPLITS[digest[0] % _TEST_SHARE == 0]


def make(out: Path, each: int, seed: int, workers: int) -> None:
    """Makes the tasks of every program that has none yet, and writes the splits."""
    operators = [word for kind in BUG_KINDS for word in ("--operator", kind)]  # one edit each
    for name, source in programs():
        file = out / f"{name}.jsonl"
        if file.exists():
            continue
        command = [str(_PROGRAM), "tasks", "synthesize", *source, "--show-failing", *operators]
        command += ["--n", str(each), "--seed", str(seed), "--workers", str(workers)]
        print(f"{name} …", flush=True)
        ended = subprocess.run([*command, "--out", str(file)], timeout=_TIMEOUT_S, check=False)
        if ended.returncode:
            print(f"{name}: no tasks (exit code {ended.returncode})", file=sys.stderr)
    for split in SPLITS:
        names = [name for name, _ in programs() if split_of(name) == split]
        rows = [
            row | {"repo": name, "grading_timeout_s": _GRADING_TIMEOUT_S}
            for name in names
            if _is_made(out, name)
            for row in _rows(out, name)
        ]
        lines = [json.dumps(row) + "\n" for row in rows]
        (out / f"{split}.jsonl").write_text("".join(lines))


def report(out: Path) -> None:
    """Prints how many tasks there are, by split, program and difficulty."""
    for split in SPLITS:
        names = [name for name, _ in programs() if split_of(name) == split and _is_made(out, name)]
        total: Counter[str] = Counter()
        for name in names:
            found = Counter(row["difficulty"] for row in _rows(out, name))
            print(f"{split:<6}{name:<24}{found.total():>5}  {dict(sorted(found.items()))}")
            total += found
        print(f"{split}: {total.total()} tasks of {len(names)} programs\n")


def _is_made(out: Path, name: str) -> bool:
    return (out / f"{name}.jsonl").exists()


def _rows(out: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / f"{name}.jsonl").read_text().splitlines()]


def main() -> None:
    """Makes the bench, or prints what is there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="the folder of the bench")
    parser.add_argument("--each", type=int, default=70, help="most tasks of a program (default 70)")
    parser.add_argument("--seed", type=int, default=0, help="decides which (default 0)")
    parser.add_argument("--workers", type=int, default=2, help="sandboxes at a time (default 2)")
    parser.add_argument("--report", action="store_true", help="print what is there")
    options = parser.parse_args()
    if not options.report:
        options.out.mkdir(parents=True, exist_ok=True)
        make(options.out, options.each, options.seed, options.workers)
    report(options.out)


if __name__ == "__main__":
    main()
