"""AReno's reward for a coding agent, computed from the grade."""

from collections.abc import Sequence

from coding_gym.grade import Grade
from coding_gym.rewards.reward import Reward, Sample
from coding_gym.trajectory import Turn

SOLVED = "solved"


def areno(grade: Grade, turns: Sequence[Turn]) -> float:
    """Returns 1.0, 0.5, -0.5 or -1.0 for the grade and the submitted status.

    | | submitted as solved | not submitted as solved |
    |---|---|---|
    | the tests pass | 1.0 | 0.5 |
    | the tests do not pass | -0.5 | -1.0 |

    Source: ``reward_fn`` in ``examples/agentic/coding/reward.py`` of AReno. Changed: in AReno the
    tests pass if each command exited with 0 once in the policy's shell, even if the policy weakened
    a test or broke the tree later. Here the tests pass if the grade is resolved. AReno's condition
    that ``apply_patch`` was called always holds then, because a resolved patch changes code.

    Args:
        grade: The grade of the patch.
        turns: The episode's turns; a ``submit`` without a ``status`` counts as solved.

    >>> from coding_gym.calls import ToolCall, ToolResult
    >>> from coding_gym.grade import GradeReason
    >>> def submit(**arguments):
    ...     done = ToolResult("submitted", submitted=True)
    ...     return Turn(action="", calls=(ToolCall("submit", arguments),), results=(done,))
    >>> good = Grade(resolved=True, reason=GradeReason.RESOLVED)
    >>> areno(good, [submit(status="solved")]), areno(good, [submit(status="blocked")])
    (1.0, 0.5)
    >>> bad = Grade(resolved=False, reason=GradeReason.TESTS_FAILED)
    >>> areno(bad, [submit()]), areno(bad, [Turn(action="I give up.")])
    (-0.5, -1.0)
    """
    is_solved = _is_submitted_as_solved(turns)
    if grade.resolved:
        return 1.0 if is_solved else 0.5
    return -0.5 if is_solved else -1.0


def _is_submitted_as_solved(turns: Sequence[Turn]) -> bool:
    last = turns[-1] if turns else Turn(action="")
    for call, result in zip(last.calls, last.results, strict=False):
        if result.submitted:
            return bool(call.arguments.get("status", SOLVED) == SOLVED)
    return False


def _of_sample(sample: Sample) -> float:
    return areno(sample.grade, sample.turns) if sample.grade else 0.0


REWARDS = (Reward(name="areno", score=_of_sample, lowest=-1.0, needs=("resolved",)),)
"""The rewards of this module, by name in `coding_gym.rewards.get_reward`."""
