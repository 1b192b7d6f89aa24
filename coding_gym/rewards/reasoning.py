"""Whether a reply thinks first and answers then, in ``<think>`` and ``<answer>``."""

import re

_STRICT = re.compile(r"<think>\n[\s\S]+?\n</think>\n<answer>\n[^\n]+\n</answer>\s*")
_TAG_WORTH = 0.25
_CHARACTER_COST = 0.001


def reasoning_format(reply: str) -> float:
    r"""Returns 1 where a reply is a thought and an answer of one line in their tags, else 0.

    Every tag stands in a line of its own, and nothing before or after but white space at the end.

    Source: ``strict_reasoning_format_reward_func`` in ``src/rewards/reasoning.py`` of CodeRepairRL.

    Args:
        reply: What the policy said.

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

    Args:
        reply: What the policy said.

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
