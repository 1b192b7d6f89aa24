"""`patch_similarity` and `tool_usage` against nano-agent 5.0.0's own functions."""

import random
import string
from collections.abc import Callable

import diff_pairs
import pytest
from diff_pairs import PATHS
from nano_model import similarity_of_nano

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.evaluation.metrics import MONITORED_COMMANDS, tool_usage
from coding_gym.rewards import patch_similarity
from coding_gym.trajectory import Turn

pytestmark = pytest.mark.trainer

tools = pytest.importorskip("nano.tools", reason="needs the extra `peers`")

SEEDS = range(1, 100)  # the pair 0 is a large one


@pytest.fixture(scope="module")
def nanos_similarity() -> Callable[[str, str], float]:
    return similarity_of_nano()


def renamed(rng: random.Random, path: str) -> str:
    new = f"{path}.{rng.choice(string.ascii_lowercase)}"
    header = f"diff --git a/{path} b/{new}\nsimilarity index 100%\n"
    return f"{header}rename from {path}\nrename to {new}\n"


def spoilt(rng: random.Random, text: str) -> str:
    """A diff as careless programs hand it on, or the diff itself."""
    return rng.choice(
        [
            *[text] * 12,
            "",
            " \n\t\n",
            text.strip(),
            f"\n\n{text}\n\n\n",
            f"I changed this:\n{text}",
            text.replace("\n", "\r\n"),
            text.replace("diff --git ", "Index: "),
            text.replace("diff --git a/", "diff --git "),
            text + text[: len(text) // 2],
            text[rng.randrange(len(text) + 1) :],
        ]
    )


def pair(seed: int) -> tuple[str, str]:
    """A gold patch and another one of the same tree, with renames, and spoilt now and then."""
    rng = random.Random(seed)
    gold, patch = (
        text + "".join(renamed(rng, path) for path in rng.sample(PATHS[:3], rng.choice([0, 0, 1])))
        for text in diff_pairs.pair(seed)
    )
    return spoilt(rng, gold), spoilt(rng, patch)


def test_scores_are_nano_agents(nanos_similarity: Callable[[str, str], float]) -> None:
    for seed in SEEDS:
        gold, patch = pair(seed)
        theirs = pytest.approx(nanos_similarity(gold, patch), rel=0, abs=1e-12)
        assert patch_similarity(gold, patch) == theirs, seed


def test_the_pairs_cover_the_formula(nanos_similarity: Callable[[str, str], float]) -> None:
    scores = [nanos_similarity(*pair(seed)) for seed in SEEDS]
    assert sum(score == 0 for score in scores) >= 5
    assert sum(score == 1 for score in scores) >= 5
    assert sum(0 < score < 1 for score in scores) >= 40
    assert sum(len(gold) > 2_000 for gold, _ in map(pair, SEEDS)) >= 5


WORDS = [
    *MONITORED_COMMANDS,
    "/bin/ls",
    "python3.11",
    "x/cat",
    "foo",
    "",
    "ls;",
    "sed\n-n",
    "/",
    "2",
]


def test_counts_are_those_of_nano_agent() -> None:
    rng = random.Random(0)
    for _ in range(300):
        stats, turns = tools.ToolStats(), []
        for _ in range(rng.randrange(6)):
            call, ok = ToolCall("apply_patch", {"file": "x"}), rng.random() < 0.5
            if rng.random() < 0.6:
                call = ToolCall("shell", {"cmd": " ".join(rng.choices(WORDS, k=rng.randrange(14)))})
                stats.record_shell(call.arguments["cmd"], success=ok)
            else:
                stats.record_patch(success=ok)
            turns.append(Turn(action="", calls=(call,), results=(ToolResult("", ok=ok),)))
        assert tool_usage(turns, ["shell", "apply_patch"]) == stats.report()
