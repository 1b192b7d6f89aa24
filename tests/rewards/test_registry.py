"""Rewards by name: ranges, changes that do not count, and refused arguments."""

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coding_gym import Grade, GradeReason, TestStatus
from coding_gym.calls import ToolCall, ToolResult
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.patch import Patch
from coding_gym.rewards import Reward, Sample, get_reward, register_reward, reward_names
from coding_gym.task import FilesTree, Task
from coding_gym.trajectory import Turn

BASE = {"x.py": "def f(a, b):\n    return a + b\n"}
GOLD = Patch.between(BASE, {"x.py": "def f(a, b):\n    return a * b\n"})
WRONG = Patch.between(BASE, {"x.py": "def f(a, b):\n    return a - b\n"})
TESTS = Patch.between({}, {"test_x.py": "def test_f():\n    assert f(2, 3) == 6\n"})
TASK = Task(
    task_id="t",
    tree=FilesTree(BASE),
    problem_statement="",
    gold_patch=GOLD.text,
    test_patch=TESTS.text,
    fail_to_pass=("test_x.py::test_f",),
)
OF_PATCH = ["patch_similarity", "patch_similarity_max_files", "curation_score"]
OF_PATCH += ["file_match", "exact_match"]
OF_PATCH += ["test_patch_similarity", "line_similarity"]
OF_PATCH += ["function_match", "net_fraction_fixed", "fraction_passed"]


def submit(text: str = "") -> Turn:
    done = ToolResult("submitted", submitted=True)
    return Turn(action=text, calls=(ToolCall("submit"),), results=(done,))


def sample(
    patch: Patch, reason: GradeReason, *turns: Turn, dropped: tuple[str, ...] = ()
) -> Sample:
    resolved = reason is GradeReason.RESOLVED
    status = TestStatus.PASSED if resolved else TestStatus.FAILED
    grade = Grade(
        resolved=resolved,
        reason=reason,
        fail_to_pass={"test_x.py::test_f": status},
        dropped_paths=dropped,
    )
    return Sample(TASK, grade, patch, turns or (submit(),))


def test_an_unchanged_tree_scores_nothing() -> None:
    unchanged = sample(Patch(), GradeReason.EMPTY_PATCH)
    values = {name: get_reward(name).value(unchanged) for name in OF_PATCH}
    assert values == dict.fromkeys(OF_PATCH, 0)


def test_a_tampered_episode_scores_nothing_above_zero() -> None:
    ls = Turn(action="", calls=(ToolCall("shell", {"cmd": "ls"}),), results=(ToolResult(""),))
    for name in reward_names():
        for patch in (GOLD, WRONG, Patch()):
            tampered = sample(patch, GradeReason.TAMPERED, ls, submit())
            assert get_reward(name).value(tampered) <= 0, name


COMMANDS = ["ls", "rg -n x", "sed -n 1,2p x.py"]
PATCHES = [Patch(), GOLD, WRONG, TESTS, Patch(GOLD.text + TESTS.text), Patch("diff --git a/x")]


def test_values_stay_within_their_range() -> None:
    for name in reward_names():
        reward, rng = get_reward(name), random.Random(name)
        for _ in range(150):
            turns = [
                Turn(
                    action="",
                    calls=(ToolCall("shell", {"cmd": rng.choice(COMMANDS)}),),
                    results=(ToolResult("x.py", ok=rng.random() < 0.7),),
                )
                for _ in range(rng.randint(0, 8))
            ]
            patch = rng.choice([*PATCHES, Patch("?")])
            value = reward.value(sample(patch, rng.choice(list(GradeReason)), *turns))
            assert reward.lowest <= value <= reward.highest, name


def test_dropped_files_count_only_in_rewards_for_tests() -> None:
    patch = Patch(GOLD.text + TESTS.text)
    graded = sample(patch, GradeReason.RESOLVED, dropped=("test_x.py",))
    assert get_reward("file_match").value(graded) == 1
    assert get_reward("test_patch_similarity").value(graded) == 0.5
    ungraded = sample(TESTS, GradeReason.EMPTY_PATCH, dropped=("test_x.py",))
    assert get_reward("patch_similarity_max_files").value(ungraded) == 0
    assert get_reward("test_patch_similarity").value(ungraded) == 1


def test_an_unresolved_episode_earns_less_than_a_resolved_one() -> None:
    rng = random.Random(1)
    good = [sample(p, GradeReason.RESOLVED, *t) for p in (GOLD, WRONG) for t in ((), (submit(),))]
    bad = [
        sample(patch, reason)
        for patch in (GOLD, WRONG, Patch())
        for reason in set(GradeReason) - {GradeReason.RESOLVED}
    ]
    for _ in range(40):
        rewards = [get_reward(name) for name in rng.sample(reward_names(), 4)]
        weights = [rng.choice([-1, 1]) * rng.random() for _ in rewards]
        bound = sum(abs(w) * r.span for r, w in zip(rewards, weights, strict=True))
        scale = min(1, 0.999 / bound)  # as `ShapedReward` requires
        shaped = [
            [
                sum(w * scale * r.value(each) for r, w in zip(rewards, weights, strict=True))
                for each in episodes
            ]
            for episodes in (good, bad)
        ]
        assert max(shaped[1]) < 1 + min(shaped[0])


def test_a_task_without_the_compared_fields_is_a_problem() -> None:
    reward = get_reward("curation_score")
    assert reward.why_not_computable(TASK) == ""
    assert "'test_patch'" in reward.why_not_computable(replace(TASK, test_patch=""))
    malformed = replace(TASK, gold_patch=GOLD.text.replace("+1,2", "+1,7"))
    assert "x.py" in reward.why_not_computable(malformed)
    unreadable = get_reward("test_patch_similarity").why_not_computable
    assert "'test_patch'" in unreadable(replace(TASK, test_patch="no diff"))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"runner": "swebench", "fail_to_pass": ("test_f",)}, "'test_f'"),  # as SymPy's rows
        ({"gold_patch": ""}, "gold patch"),
        ({"gold_patch": "", "runner": "junit"}, ""),
        ({"gold_patch": "", "language": "go"}, "no gold patch"),
        ({"gold_patch": "", "runner": "swebench", "language": "go"}, ""),
    ],
)
def test_task_whose_tests_are_never_verified_is_a_problem(changes: Any, problem: str) -> None:
    for name in ("net_fraction_fixed", "fraction_passed"):
        reason = get_reward(name).why_not_computable(replace(TASK, **changes))
        assert bool(reason) == bool(problem)
        assert problem in reason


def test_documented_needs_are_those_of_the_registry() -> None:
    page = Path(__file__).parents[2] / "docs" / "wrappers.md"
    rows = re.findall(
        r"^\| (`[a-z_`, ]+) \| ([^|]*) \|.*\|.*\|$", page.read_text("utf-8"), re.MULTILINE
    )
    texts = {"grade": '`challenge="passed"`', "gold_patch": "a gold patch"}
    documented = {name: needs for names, needs in rows for name in re.findall(r"\w+", names)}
    assert documented.keys() >= {"net_fraction_fixed", "file_match", "tool_call_validity"}
    for name, needs in documented.items():
        assert needs == ", ".join(texts[need] for need in get_reward(name).needs), name


def test_scores_by_similarity_need_no_grade() -> None:
    ungraded = Sample(TASK, None, GOLD)
    for name in ("patch_similarity", "line_similarity", "exact_match", "function_match"):
        assert get_reward(name).value(ungraded) == 1, name


def test_a_registered_reward_stays_within_its_range() -> None:
    reward = Reward(name="few_turns", score=lambda s: 2.0 / len(s.turns))
    graded = sample(WRONG, GradeReason.TESTS_FAILED)
    with pytest.raises(InvalidArgumentError, match="few_turns"):
        reward.value(graded)
    with pytest.raises(InvalidArgumentError, match="file_match"):
        register_reward(replace(reward, name="file_match"))
    with pytest.raises(InvalidArgumentError, match="flat"):
        register_reward(replace(reward, name="flat", lowest=1.0))
    with pytest.raises(UnknownNameError, match="gold_ptach"):
        register_reward(replace(reward, name="typo", needs=("gold_ptach",)))
