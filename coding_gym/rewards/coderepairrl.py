"""CodeRepairRL's further rewards: of whole patches, of replies, and of shell commands.

In all of them ``gold`` is the reference patch, ``patch`` the one to score, and ``reply`` the
policy's last action. `coding_gym.rewards.get_reward` has each by name.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from coding_gym.patch import Patch
from coding_gym.rewards.exploration import Command, gold_files, paths_in, shell_commands
from coding_gym.rewards.reward import Reward
from coding_gym.rewards.similarity import (
    Similarity,
    WorkBudget,
    compare_files,
    file_match,
    matching_blocks,
)
from coding_gym.trajectory import Turn

Blocks = list[tuple[str, str]]

_ANSWER_START, _ANSWER_END = "<answer>", "</answer>"
_STRICT = re.compile(r"<think>\n[\s\S]+?\n</think>\n<answer>\n[^\n]+\n</answer>\s*")
_TAG_WORTH = 0.25
_CHARACTER_COST = 0.001
_MAX_COMPARISONS = 12_000_000
_FENCE = "```"
_MARKER = re.compile(
    r"(?P<SEARCH><{2,}[ \t]*SEARCH\b.*)|(?P<REPLACE>>{2,}[ \t]*REPLACE\b.*)"
    r"|(?P<DIVIDER>={4,}[ \t]*)"
)
_EXACT = {"SEARCH": "<<<<<<< SEARCH", "REPLACE": ">>>>>>> REPLACE"}
_MISSING = {"SEARCH": 0.4, "REPLACE": 0.4, "DIVIDER": 0.2}
_MIN_COMPLETE = 0.5
_LIST = re.compile(r"\bls\b")
_SEARCH = re.compile(r"\b(?:rg|grep|find)\b")
_SLICE = re.compile(r"\b(?:sed|head|tail)\b")
_PRECISE = re.compile(r"\b(?:sed\s+-n\s+'?\d+\s*,\s*\d+\s*p|(?:head|tail)\s+-n\s+\d)")
_SCOPE = re.compile(r"(?:^|\s)(?:-n\b|--type=\w)")
_MAX_CHARS = 10_000
_EARLY = 10
_MAX_PENALTY = 0.20


def patch_similarity_max_files(gold: str, patch: str) -> Similarity:
    r"""Returns how alike two unified git diffs are by CodeRepairRL's score, from 0 to 1.

    As `patch_similarity`, but the sum over the gold's files is divided by the number of files of
    whichever patch has more, so that stray files cost; and two empty patches score 0. The reward
    ``test_patch_similarity`` has the hidden tests in the gold's place: it pays a policy that writes
    the tests itself, which grading leaves out.

    Source: ``unified_diff_similarity_reward_func`` and ``unified_diff_similarity_reward_func_test``
    in ``src/rewards/diff.py`` of CodeRepairRL.

    >>> gold = "diff --git a/x.py b/x.py\n@@ -1 +1 @@\n-a + b\n+a * b\n"
    >>> stray = "diff --git a/z.py b/z.py\n@@ -1 +1 @@\n-1\n+2\n"
    >>> patch_similarity_max_files(gold, gold), patch_similarity_max_files(gold, gold + stray)
    (1.0, 0.5)
    >>> patch_similarity_max_files("", ""), patch_similarity_max_files(gold, "")
    (0.0, 0.0)
    """
    total, wanted, found, comparer = compare_files(gold, patch)
    return comparer.similarity(total / (max(wanted, found) or 1))


def curation_score(gold: str, test_patch: str, patch: str) -> Similarity:
    r"""Returns 0.2 file match + 0.4 code similarity + 0.4 test similarity, from 0 to 1.

    All three are of the whole patch, the policy's tests included. So the gold patch scores 0.6, and
    with the hidden tests beside it, if both are of one file, less: either is a stray file for the
    other.

    Source: ``process_one_with_reward`` in ``src/curate_sft_data.py`` of CodeRepairRL.

    >>> gold = "diff --git a/x.py b/x.py\n@@ -1 +1 @@\n-1\n+2\n"
    >>> tests = "diff --git a/test_x.py b/test_x.py\n@@ -1 +1 @@\n-assert x\n+assert not x\n"
    >>> round(curation_score(gold, tests, gold), 3), curation_score(gold, tests, gold + tests)
    (0.6, 0.5)
    """
    code = patch_similarity_max_files(gold, patch)
    tests = patch_similarity_max_files(test_patch, patch)
    score = 0.2 * file_match(gold, patch) + 0.4 * code + 0.4 * tests
    return Similarity(score, by_line=code.by_line or tests.by_line)


def answer_in(reply: str) -> str | None:
    """Returns the content of the first ``<answer>``, stripped; None without one.

    Source: ``extract_xml_answer`` in ``src/utils/extract.py`` of CodeRepairRL.

    >>> answer_in("<think>x</think><answer> shapes.py </answer>"), answer_in("shapes.py")
    ('shapes.py', None)
    """
    _, start, rest = reply.partition(_ANSWER_START)
    answer, end, _ = rest.partition(_ANSWER_END)
    return answer.strip() if start and end else None


def categorical_correctness(answers: frozenset[str] | set[str], reply: str) -> float:
    r"""Returns 1 where the content of ``<answer>`` is one of the right answers, else 0.

    Source: ``categorical_correctness_reward_func`` in ``src/rewards/categorical.py`` of
    CodeRepairRL, which knows one right answer.

    >>> categorical_correctness({"CWE-79"}, "<answer>\nCWE-79\n</answer>")
    1.0
    >>> categorical_correctness({"CWE-79"}, "CWE-79"), categorical_correctness({"a"}, "<answer>A")
    (0.0, 0.0)
    """
    return float(answer_in(reply) in answers)


def reasoning_format(reply: str) -> float:
    r"""Returns 1 where a reply is a thought and an answer of one line in their tags, else 0.

    Every tag stands in a line of its own, and nothing before or after but white space at the end.

    Source: ``strict_reasoning_format_reward_func`` in ``src/rewards/reasoning.py`` of CodeRepairRL.

    >>> reasoning_format("<think>\nIt adds.\n</think>\n<answer>\nshapes.py\n</answer>\n")
    1.0
    >>> reasoning_format("<think>It adds.</think>\n<answer>\nshapes.py\n</answer>")
    0.0
    """
    return float(_STRICT.fullmatch(reply) is not None)


def partial_reasoning_format(reply: str) -> float:
    r"""Returns how many of the four tags a reply has, 0.25 each, less what stands outside of them.

    A tag counts if it is there once, in a line of its own; their order does not. Each character
    before ``<think>`` and behind ``</answer>`` costs 0.001, and the least is 0.

    Source: ``partial_reasoning_format_reward_func`` in ``src/rewards/reasoning.py`` of
    CodeRepairRL.

    >>> partial_reasoning_format("<think>\nIt adds.\n</think>\n<answer>\nshapes.py\n</answer>")
    1.0
    >>> partial_reasoning_format("Well: <think>\nIt adds.\n</think>\nshapes.py")
    0.494
    """
    score = 0.0
    before, found, _ = reply.partition("<think>\n")
    if found and reply.count("<think>\n") == 1:
        score += _TAG_WORTH - len(before) * _CHARACTER_COST
    score += sum(_TAG_WORTH for tag in ("\n</think>\n", "\n<answer>\n") if reply.count(tag) == 1)
    if reply.count("\n</answer>") == 1:
        score += _TAG_WORTH - len(reply.partition("\n</answer>")[2]) * _CHARACTER_COST
    return max(0.0, score)


def search_replace_format(reply: str) -> float:
    r"""Returns how well the search/replace blocks of a reply are written, from 0 to 1.

    It is 1 less a penalty for each fault: 0.4 where no SEARCH marker is there, 0.4 for no
    REPLACE, 0.2 for no divider (below 0.5 nothing else is looked at); 0.1 where none of the SEARCH
    markers, or of the REPLACE markers, has its seven signs; 0.05 each for text behind a SEARCH or a
    REPLACE marker, and for white space behind a divider; 0.15 each where there are not as many
    SEARCH, or REPLACE, markers as dividers; 0.3 where REPLACE only comes before SEARCH; and 0.2
    where no block can be read. It judges the first fenced block, if there is one, of the content of
    ``<answer>``, or else of the whole reply.

    Source: ``SearchReplaceDiff.validate_quality`` in ``src/utils/diff.py`` of CodeRepairRL. Fixed:
    two perfect blocks score 1 rather than 0.9, since a marker's own line end is no text behind it.

    >>> block = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n"
    >>> search_replace_format(block), search_replace_format(block + block)
    (1.0, 1.0)
    >>> round(search_replace_format(block.replace("<<<<<<<", "<<<")), 3)
    0.9
    >>> round(search_replace_format("<<<<<<< SEARCH\nold\n"), 3), search_replace_format("Done.")
    (0.4, 0.0)
    """
    blocks, markers = _read(_judged(reply))
    kinds = [kind for kind, _ in markers]
    score = 1.0 - sum(cost for kind, cost in _MISSING.items() if kind not in kinds)
    if score < _MIN_COMPLETE:
        return max(0.0, score)
    for kind, exact in _EXACT.items():
        lines = [line for each, line in markers if each == kind]
        score -= 0.1 * (not any(line.startswith(exact) for line in lines))
        score -= 0.05 * any(line.partition(kind)[2].strip() for line in lines)
        score -= 0.15 * (len(lines) != kinds.count("DIVIDER"))
    score -= 0.05 * any(line.endswith((" ", "\t")) for kind, line in markers if kind == "DIVIDER")
    if not blocks:
        is_reversed = "REPLACE" in kinds and "SEARCH" not in kinds[: kinds.index("REPLACE")]
        score -= 0.3 * is_reversed
        score -= 0.2
    return max(0.0, score)


def search_replace_similarity(gold: str, reply: str) -> float:
    r"""Returns how alike the search/replace blocks of a reply are to the gold's hunks, from 0 to 1.

    Each hunk of the gold is a block of the lines it expects and those it leaves. Blocks are paired
    in their order, and a pair scores the mean of ``difflib.SequenceMatcher.ratio`` over the lines
    of its search and of its replace part; one without a partner scores 0, and the mean is the
    score. It is 1 where neither has blocks, 0 where one has none.

    Source: ``SearchReplaceDiff.similarity`` and ``from_unified_diff`` in ``src/utils/diff.py`` of
    CodeRepairRL. Changed: there a block without a partner is compared with an empty one, so that a
    thousand empty blocks score 0.999. Blocks that take too much work are compared as a whole.

    Raises:
        PatchError: The gold patch cannot be read.

    >>> gold = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n"
    >>> block = "<<<<<<< SEARCH\nsame\nold\n=======\nsame\nnew\n>>>>>>> REPLACE\n"
    >>> search_replace_similarity(gold, block), search_replace_similarity(gold, block * 2)
    (1.0, 0.5)
    >>> search_replace_similarity(gold, block.replace("new", "newer"))
    0.75
    >>> search_replace_similarity(gold, "")
    0.0
    >>> search_replace_similarity(gold, "<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n" * 1000)
    0.0
    """
    wanted, found = _gold_blocks(gold), _read(_judged(reply))[0]
    if not wanted or not found:
        return float(not wanted and not found)
    budget = WorkBudget(_MAX_COMPARISONS)
    scores = [
        _ratio(a, b, budget) / 2
        for ours, golds in zip(found, wanted, strict=False)
        for a, b in zip(ours, golds, strict=True)
    ]
    return sum(scores) / max(len(wanted), len(found))


def _read(text: str) -> tuple[Blocks, list[tuple[str, str]]]:
    """Returns the blocks of a text, and all its markers: their kinds and lines.

    A block whose parts are not in order is none.
    """
    blocks: Blocks = []
    markers: list[tuple[str, str]] = []
    search: list[str] = []
    replace: list[str] = []
    part: list[str] | None = None
    for line in text.splitlines():
        marker = _MARKER.fullmatch(line)
        kind = marker.lastgroup if marker else None
        if kind:
            markers.append((kind, line))
        if kind == "SEARCH":
            search, replace = [], []
            part = search
        elif kind == "DIVIDER" and part is search:
            part = replace
        elif kind == "REPLACE":
            if part is replace:
                blocks.append(("\n".join(search), "\n".join(replace)))
            part = None
        elif part is not None:
            part.append(line)
    return blocks, markers


def _judged(reply: str) -> str:
    """The first fenced block of the answer, if it has one, else all of it."""
    answer = answer_in(reply)
    text = reply if answer is None else answer
    _, fence, rest = text.partition(_FENCE)
    _, line_end, body = rest.partition("\n")
    inside, fence_end, _ = body.partition(_FENCE)
    return inside if fence and line_end and fence_end else text


def _gold_blocks(gold: str) -> Blocks:
    sides = (hunk.sides() for change in Patch(gold).files for hunk in change.hunks())
    return [("".join(old), "".join(new)) for old, new in sides]


def _ratio(a: str, b: str, budget: WorkBudget) -> float:
    if a == b:
        return 1.0
    ours, golds = a.splitlines(), b.splitlines()
    blocks = matching_blocks(ours, golds, budget) or ()
    matched = sum(size for _, _, size in blocks)
    return 2.0 * matched / ((len(ours) + len(golds)) or 1)


def terminal_habits(turns: Sequence[Turn]) -> float:
    """Returns the score of three habits, from 0 to 1.

    0.3 for a successful ``ls`` among the first two shell commands, 0.4 for a successful ``rg``,
    ``grep`` or ``find`` among the first ten, and 0.3 for a successful ``sed``, ``head`` or ``tail``
    from the third on.

    Source: ``terminal_debugging_habits_reward_func`` in ``src/rewards/terminal.py`` of
    CodeRepairRL. There as here the words may stand anywhere in a command.

    >>> from coding_gym.calls import ToolCall, ToolResult
    >>> def run(cmd, output="", ok=True):
    ...     call, result = ToolCall("shell", {"cmd": cmd}), ToolResult(output, ok=ok)
    ...     return Turn(action="", calls=(call,), results=(result,))
    >>> terminal_habits([run("ls"), run("rg -l x"), run("sed -n '1,2p' x.py")])
    1.0
    >>> terminal_habits([run("pwd"), run("grep x y", ok=False), run("ls")])
    0.0
    """
    texts = _texts_of_succeeded(shell_commands(turns))
    return (
        0.3 * any(map(_LIST.search, texts[:2]))
        + 0.4 * any(map(_SEARCH.search, texts[:_EARLY]))
        + 0.3 * any(map(_SLICE.search, texts[2:]))
    )


def exploration_depth(turns: Sequence[Turn]) -> float:
    """Returns the score of exploration with a purpose, from 0 to 1.

    0.25 where a path that the first successful search (``rg``, ``grep``, ``find``, among the first
    ten commands) lists is in a successful ``sed``, ``head`` or ``tail`` later. 0.20 times the share
    of the first six commands that succeeded, if there are six. Without the first: 0.20 for a
    precise read (``sed -n a,bp``, ``head -n``, ``tail -n``), and 0.15 for a scoped search among the
    first ten (``-n``, ``--type=``, a slash, or a path in its output). Less, at most 0.20 in all
    and each once, within the first ten commands: 0.07 for a command that was run before, 0.07 for
    one that fails twice running, and 0.10 where output was cut off and no precise read came before.
    The sum is never below 0.

    Source: ``terminal_exploration_depth_reward_func`` in ``src/rewards/terminal.py`` of
    CodeRepairRL. Changed: a path must be in the later command as a whole (there its ending is
    enough), and a precise read spares the last penalty too where the first bonus takes its place.

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
    texts = _texts_of_succeeded(commands)
    searches = [n for n, text in enumerate(texts[:_EARLY]) if _SEARCH.search(text)]
    score = 0.20 * sum(command.ok for command in commands[:6]) / 6 if len(commands) >= 6 else 0.0
    if searches and _is_followed_up(commands, searches[0]):
        score += 0.25
    else:
        score += 0.20 * any(map(_PRECISE.search, texts))
        score += 0.15 * any(
            "/" in texts[n] or _SCOPE.search(texts[n]) or paths_in(commands[n].output)
            for n in searches
        )
    return max(0.0, score - min(_penalty(commands[:_EARLY]), _MAX_PENALTY))


def _texts_of_succeeded(commands: Sequence[Command]) -> list[str]:
    """Returns the texts of commands, "" for each that failed."""
    return [command.text[:_MAX_CHARS] if command.ok else "" for command in commands]


def _is_followed_up(commands: Sequence[Command], search: int) -> bool:
    found, later = paths_in(commands[search].output), commands[search + 1 :]
    return any(
        _SLICE.search(text) and not found.isdisjoint(paths_in(command.text))
        for text, command in zip(_texts_of_succeeded(later), later, strict=True)
    )


def _penalty(early: Sequence[Command]) -> float:
    texts = [command.text for command in early]
    fails_again = any(not a.ok and not b.ok and a.text == b.text for a, b in pairwise(early))
    cut = next((n for n, c in enumerate(early) if "truncated" in c.output.lower()), None)
    is_unread = cut is not None and not any(map(_PRECISE.search, _texts_of_succeeded(early[:cut])))
    return 0.07 * (len(set(texts)) < len(texts)) + 0.07 * fails_again + 0.10 * is_unread


_GOLD, _TESTS = ("gold_patch",), ("test_patch",)

REWARDS = (
    Reward.of_change("patch_similarity_max_files", patch_similarity_max_files),
    Reward(
        name="test_patch_similarity",
        score=lambda s: patch_similarity_max_files(s.task.test_patch, s.patch),
        needs=_TESTS,
    ),
    Reward(
        name="curation_score",
        score=lambda s: (
            curation_score(s.task.gold_patch, s.task.test_patch, s.patch)
            if s.patch.strip()
            else 0.0
        ),
        needs=_GOLD + _TESTS,
    ),
    Reward(name="search_replace_format", score=lambda s: search_replace_format(s.last_reply)),
    Reward(
        name="search_replace_similarity",
        score=lambda s: search_replace_similarity(s.task.gold_patch, s.last_reply),
        needs=_GOLD,
    ),
    Reward(name="reasoning_format", score=lambda s: reasoning_format(s.last_reply)),
    Reward(name="partial_reasoning_format", score=lambda s: partial_reasoning_format(s.last_reply)),
    Reward(
        name="named_file",
        score=lambda s: categorical_correctness(gold_files(s.task.gold_patch), s.last_reply),
        needs=_GOLD,
    ),
    Reward(name="terminal_habits", score=lambda s: terminal_habits(s.turns)),
    Reward(name="exploration_depth", score=lambda s: exploration_depth(s.turns)),
)
"""The rewards of this module, by name in `coding_gym.rewards.get_reward`."""
