"""Rewards of CodeRepairRL for whole patches and for shell commands.

``gold`` is the reference patch, ``patch`` the patch to score.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from coding_gym.rewards.exploration import Command, paths_in, shell_commands
from coding_gym.rewards.similarity import compare_files, file_match
from coding_gym.trajectory import Turn

_LIST = re.compile(r"\bls\b")
_SEARCH = re.compile(r"\b(?:rg|grep|find)\b")
_SLICE = re.compile(r"\b(?:sed|head|tail)\b")
_PRECISE = re.compile(r"\b(?:sed\s+-n\s+'?\d+\s*,\s*\d+\s*p|(?:head|tail)\s+-n\s+\d)")
_SCOPE = re.compile(r"(?:^|\s)(?:-n\b|--type=\w)")
_MAX_CHARS = 10_000  # of a command
_NUM_EARLY = 10  # number of commands at the beginning of an episode
_MAX_PENALTY = 0.20


def patch_similarity_max_files(gold: str, patch: str) -> float:
    r"""Returns CodeRepairRL's similarity of two unified git diffs, from 0 to 1.

    Unlike in `patch_similarity`, the sum over the gold patch's files is divided by the number of
    files of the patch with more files. So additional files lower the score, and two empty patches
    score 0. The reward ``test_patch_similarity`` replaces the gold patch by the hidden tests: it
    rewards tests that the policy writes, although grading drops these tests.

    Source: ``unified_diff_similarity_reward_func`` and ``unified_diff_similarity_reward_func_test``
    in ``src/rewards/diff.py`` of CodeRepairRL.

    Raises:
        PatchError: ``gold`` cannot be read.

    >>> gold = "diff --git a/x.py b/x.py\n@@ -1 +1 @@\n-a + b\n+a * b\n"
    >>> stray = "diff --git a/z.py b/z.py\n@@ -1 +1 @@\n-1\n+2\n"
    >>> patch_similarity_max_files(gold, gold), patch_similarity_max_files(gold, gold + stray)
    (1.0, 0.5)
    >>> patch_similarity_max_files("", ""), patch_similarity_max_files(gold, "")
    (0.0, 0.0)
    """
    total, num_gold_files, num_files = compare_files(gold, patch)
    return total / (max(num_gold_files, num_files) or 1)


def curation_score(gold: str, test_patch: str, patch: str) -> float:
    r"""Returns 0.2 file match + 0.4 code similarity + 0.4 test similarity, from 0 to 1.

    All three terms compare the whole patch, including the policy's tests. So the gold patch scores
    0.6. Hidden tests in the patch lower this score: each term is a mean over the patch's files.

    Source: ``process_one_with_reward`` in ``src/curate_sft_data.py`` of CodeRepairRL.

    Raises:
        PatchError: ``gold`` or ``test_patch`` cannot be read.

    >>> gold = "diff --git a/x.py b/x.py\n@@ -1 +1 @@\n-1\n+2\n"
    >>> tests = "diff --git a/test_x.py b/test_x.py\n@@ -1 +1 @@\n-assert x\n+assert not x\n"
    >>> round(curation_score(gold, tests, gold), 3), curation_score(gold, tests, gold + tests)
    (0.6, 0.5)
    """
    code = patch_similarity_max_files(gold, patch)
    tests = patch_similarity_max_files(test_patch, patch)
    return 0.2 * file_match(gold, patch) + 0.4 * code + 0.4 * tests


def terminal_habits(turns: Sequence[Turn]) -> float:
    """Returns the sum of the scores of three habits in the shell, from 0 to 1.

    A successful ``ls`` among the first two commands scores 0.3. A successful ``rg``, ``grep`` or
    ``find`` among the first ten commands scores 0.4. A successful ``sed``, ``head`` or ``tail``
    from the third command on scores 0.3. The words can be anywhere in a command.

    Source: ``terminal_debugging_habits_reward_func`` in ``src/rewards/terminal.py`` of
    CodeRepairRL.

    >>> from coding_gym.calls import ToolCall, ToolResult
    >>> def run(cmd, output="", ok=True):
    ...     call, result = ToolCall("shell", {"cmd": cmd}), ToolResult(output, ok=ok)
    ...     return Turn(action="", calls=(call,), results=(result,))
    >>> terminal_habits([run("ls"), run("rg -l x"), run("sed -n '1,2p' x.py")])
    1.0
    >>> terminal_habits([run("pwd"), run("grep x y", ok=False), run("ls")])
    0.0
    """
    texts = _successful_texts(shell_commands(turns))
    return (
        0.3 * any(map(_LIST.search, texts[:2]))
        + 0.4 * any(map(_SEARCH.search, texts[:_NUM_EARLY]))
        + 0.3 * any(map(_SLICE.search, texts[2:]))
    )


def exploration_depth(turns: Sequence[Turn]) -> float:
    """Returns a score of the depth of exploration, from 0 to 1.

    The score is a sum. A successful ``sed``, ``head`` or ``tail`` adds 0.25 if it names a path that
    the first successful search (``rg``, ``grep`` or ``find`` among the first ten commands) printed.
    Otherwise a precise read (``sed -n a,bp``, ``head -n``, ``tail -n``) adds 0.20, and a scoped
    search among the first ten commands (``-n``, ``--type=``, a slash, or a path in its output) adds
    0.15. With six or more commands, 0.20 times the success rate of the first six is added. Three
    penalties for the first ten commands are subtracted once, together at most 0.20: 0.07 for a
    repeated command, 0.07 for a command that fails twice in a row, and 0.10 for truncated output
    without a previous precise read. The score is at least 0.

    Source: ``terminal_exploration_depth_reward_func`` in ``src/rewards/terminal.py`` of
    CodeRepairRL. Changed: the reading command must name the whole path, not only the path's end;
    and a precise read prevents the last penalty even if the score has the bonus of 0.25 for a path.

    >>> from coding_gym.calls import ToolCall, ToolResult
    >>> def run(cmd, output="", ok=True):
    ...     call, result = ToolCall("shell", {"cmd": cmd}), ToolResult(output, ok=ok)
    ...     return Turn(action="", calls=(call,), results=(result,))
    >>> exploration_depth([run("rg -l Reader", "src/a.py"), run("sed 5q src/a.py")])
    0.25
    >>> exploration_depth([run("sed -n '10,20p' src/a.py")]), exploration_depth([run("rg x src/")])
    (0.2, 0.15)
    >>> round(exploration_depth([run("rg -n x"), run("cat y", "... output truncated")]), 3)
    0.05
    """
    commands = shell_commands(turns)
    texts = _successful_texts(commands)
    searches = [n for n, text in enumerate(texts[:_NUM_EARLY]) if _SEARCH.search(text)]
    score = 0.20 * sum(command.ok for command in commands[:6]) / 6 if len(commands) >= 6 else 0.0
    if searches and _is_followed_up(commands, searches[0]):
        score += 0.25
    else:
        score += 0.20 * any(map(_PRECISE.search, texts))
        score += 0.15 * any(
            "/" in texts[n] or _SCOPE.search(texts[n]) or paths_in(commands[n].output)
            for n in searches
        )
    return max(0.0, score - min(_penalty(commands[:_NUM_EARLY]), _MAX_PENALTY))


def _successful_texts(commands: Sequence[Command]) -> list[str]:
    """Returns the text of each command; "" for a failed command."""
    return [command.text[:_MAX_CHARS] if command.ok else "" for command in commands]


def _is_followed_up(commands: Sequence[Command], search: int) -> bool:
    paths, later_commands = paths_in(commands[search].output), commands[search + 1 :]
    return any(
        _SLICE.search(text) and not paths.isdisjoint(paths_in(command.text))
        for text, command in zip(_successful_texts(later_commands), later_commands, strict=True)
    )


def _penalty(commands: Sequence[Command]) -> float:
    texts = [command.text for command in commands]
    fails_again = any(not a.ok and not b.ok and a.text == b.text for a, b in pairwise(commands))
    index = next((n for n, c in enumerate(commands) if "truncated" in c.output.lower()), None)
    reads = map(_PRECISE.search, _successful_texts(commands[:index]))
    is_unread = index is not None and not any(reads)
    return 0.07 * (len(set(texts)) < len(texts)) + 0.07 * fails_again + 0.10 * is_unread
