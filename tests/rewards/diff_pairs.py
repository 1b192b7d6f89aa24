"""Pairs of patches of one tree, from small to as large as is compared by characters."""

import argparse
import doctest
import inspect
import random
import tarfile
import typing

from coding_gym.patch import Patch

WORDS = ["self", "return", "value", "for", "in", "items", "not", "(x)", "= 0", "[key]", "if"]
WORDS += ["für", "日本語", "\t", "  ", "{'a': 1}", "# TODO", "None", "raise", "lambda x: x + 1"]
PATHS = ["src/app.py", "src/core/model.py", "docs/a b/c.md", "x", "naïve.py"]


def program(rng: random.Random, num_chars: int) -> str:
    lines: list[str] = []
    while sum(map(len, lines)) < num_chars:
        indent = " " * rng.randrange(0, 12, 4)
        lines.append(f"{indent}{' '.join(rng.choices(WORDS, k=rng.randint(0, 9)))}\n")
    return "".join(lines)


def edited(rng: random.Random, text: str, share: float) -> str:
    lines = text.splitlines(keepends=True)
    for at in range(len(lines)):
        if rng.random() < share:
            lines[at] = rng.choice(["", program(rng, 20), lines[at] * 2, lines[at].upper()])
    return "".join(lines)


def large(rng: random.Random) -> tuple[str, str]:
    """Two versions of a new file, each nearly as large as may be."""
    text = inspect.getsource(rng.choice([argparse, doctest, inspect, tarfile, typing]))[:46_000]
    tried = edited(rng, text, rng.choice([0.02, 0.3]))[:46_000]
    gold, patch = (Patch.between({}, {"new.py": each}).text for each in (text, tried))
    return gold, patch


def pair(seed: int) -> tuple[str, str]:
    """A gold patch and another of the same tree; every 100th is large."""
    rng = random.Random(seed)
    if seed % 100 == 0:
        return large(rng)
    sizes = [0, 40, 200, 400, 1_000, 1_000, 2_000] + [6_000] * (seed % 25 == 0)
    paths = rng.sample(PATHS, rng.randint(1, 3))
    before = {path: program(rng, rng.choice(sizes)) for path in paths}
    share = rng.choice([0.02, 0.1, 0.5])
    gold = {path: edited(rng, text, share) for path, text in before.items()}
    tried = {path: edited(rng, rng.choice([gold, before])[path], share) for path in before}
    if rng.random() < 0.3:
        tried["stray.py"] = program(rng, 200)
    if rng.random() < 0.2:
        tried |= {path: before[path] for path in rng.sample(sorted(before), 1)}
    return Patch.between(before, gold).text, Patch.between(before, tried).text
