"""The similarity rewards against difflib: the same scores at nearly the same price, and bounded.

Pairs of diffs are cut out of the standard library's own files and edited; the hard ones are made to
cost difflib minutes. Times are CPU seconds of this process, ours and difflib's by turns.

    python benchmarks/bench_similarity.py
"""

import argparse as argparse_source
import doctest
import inspect
import random
import re
import tarfile
import time
import typing
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from functools import partial

from figures import Figure, at_least, parser, progress, report

from coding_gym.rewards import calibrated_similarity, patch_similarity, swe_rl_similarity
from coding_gym.rewards.similarity import MAX_CHARS

_HEAD = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n"
_SIZES = (100, 500, 2_000, 8_000, 20_000, MAX_CHARS - 100)
_SOURCES = (argparse_source, doctest, inspect, tarfile, typing)
_MAX_S = 4.0
_MAX_DIFFERENCE = 1e-12

Pair = tuple[str, str]


def diff(text: str) -> str:
    """Returns the lines as a new file's diff."""
    lines = text.splitlines(keepends=True)
    return f"{_HEAD}@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}" for line in lines)


def edited(rng: random.Random, text: str, share: float) -> str:
    """Returns the text with a share of its lines dropped, doubled or changed."""
    lines = text.splitlines(keepends=True)
    for at, line in enumerate(lines):
        if rng.random() < share:
            lines[at] = rng.choice(["", line * 2, line.replace("self", "this"), line.upper()])
    return "".join(lines)


def pairs(size: int, number: int) -> Iterator[Pair]:
    """Yields diffs of at most ``size`` characters: near one another, far apart, unrelated."""
    rng = random.Random(size)  # noqa: S311 - pairs, not secrets
    for _ in range(number):
        source, other = (inspect.getsource(rng.choice(_SOURCES)) for _ in range(2))
        start = rng.randrange(max(1, len(source) - size))
        text = source[start:][:size]
        near = edited(rng, text, rng.choice([0.02, 0.3]))
        tried = rng.choice([near, near, other[:size]])
        yield diff(text)[:size].strip(), diff(tried)[:size].strip()


def cpu_s(work: Callable[[], object]) -> float:
    """Returns what one call takes of the processor, in seconds."""
    began = time.process_time()
    work()
    return time.process_time() - began


def by_difflib(gold: str, patch: str) -> float:
    """Returns nano-agent's score of two diffs as it is written down: split, matched, averaged."""
    wanted, found = (
        {re.search(r"a/(.*) b/", part)[1]: part.strip() for part in parts if part}  # type: ignore[index]
        for parts in (re.split(r"(?=^diff --git)", d, flags=re.MULTILINE) for d in (gold, patch))
    )
    matchers = [SequenceMatcher(None, wanted[name], found[name]) for name in wanted]
    return sum(matcher.ratio() for matcher in matchers) / len(matchers)


def compared(size: int, number: int, rounds: int) -> tuple[list[float], float]:
    """Returns ours / difflib's time for each pair, and how far scores are apart at most."""
    ratios, apart = [], 0.0
    for gold, patch in pairs(size, number):
        matcher_s = our_s = float("inf")
        for _ in range(rounds):
            our_s = min(our_s, cpu_s(partial(patch_similarity, gold, patch)))
            matcher_s = min(matcher_s, cpu_s(partial(by_difflib, gold, patch)))
        ratios.append(our_s / matcher_s)
        ours = patch_similarity(gold, patch)
        assert not ours.by_line, "the pair is within the bounds"
        apart = max(apart, abs(ours - by_difflib(gold, patch)))
    return sorted(ratios), apart


def hard_pairs() -> dict[str, Pair]:
    """Pairs that difflib needs seconds to hours for, by what they are."""
    rng = random.Random(0)  # noqa: S311 - pairs, not secrets

    def letters(num_kinds: int, size: int) -> str:
        return "".join(chr(0x4E00 + rng.randrange(num_kinds)) for _ in range(size))

    each = "".join(chr(0x4E00 + number) for number in range(20_000))
    block = letters(400, 490)
    lines = [f"{rng.randrange(120)}\n" for _ in range(100_000)]
    short = [f"{rng.randrange(99)}\n" for _ in range(11_000)]
    most = MAX_CHARS - 200
    return {
        "letters, each as rare as counts": (letters(101, most), letters(101, most)),
        "neighbours swapped": (each, "".join(each[number ^ 1] for number in range(20_000))),
        "a block, repeated and reversed": (block * 100, (block * 100)[::-1]),
        "short lines of few kinds": ("".join(lines), "".join(reversed(lines))),
        "rare letters, then lines": ("".join(short), "".join(reversed(short))),
        "two letters": (letters(2, most), letters(2, most)),
        "sixteen million characters": ("+x\n" * 5_000_000, "+y\n" * 5_000_000),
    }


def main() -> None:
    """Measures, prints the table, and keeps one JSON line."""
    made = parser(__doc__, rounds=5)
    made.add_argument("--pairs", type=at_least(2), default=20, help="pairs of each size")
    options = made.parse_args()
    figures, apart = [], 0.0
    for size in _SIZES:
        progress(f"diffs of {size} characters")
        ratios, distance = compared(size, options.pairs, options.rounds)
        apart = max(apart, distance)
        details = {"median": round(ratios[len(ratios) // 2], 3), "samples": len(ratios)}
        name = f"slowest pair of {size:,} characters, times difflib"
        figures.append(Figure(name=name, value=round(ratios[-1], 3), target=1.5, details=details))
    name = f"largest distance from difflib's score, {options.pairs * len(_SIZES)} pairs"
    figures.append(Figure(name=name, value=apart, target=_MAX_DIFFERENCE))
    for kind, (gold, patch) in hard_pairs().items():
        progress(kind)
        for formula in (patch_similarity, swe_rl_similarity, calibrated_similarity):
            took_s = cpu_s(partial(formula, diff(gold), diff(patch)))
            name = f"{formula.__name__}: {kind}"
            figures.append(Figure(name=name, value=round(took_s, 3), unit="s", target=_MAX_S))
    report("similarity", figures, options, rounds=options.rounds)


if __name__ == "__main__":
    main()
