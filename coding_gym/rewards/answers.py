"""Answers in tags: what a reply says in ``<answer>``, and whether that is right."""

_START, _END = "<answer>", "</answer>"


def answer_in(reply: str) -> str | None:
    """Returns what stands in the first ``<answer>``, stripped; None without one.

    Source: ``extract_xml_answer`` in ``src/utils/extract.py`` of CodeRepairRL.

    >>> answer_in("<think>x</think><answer> shapes.py </answer>"), answer_in("shapes.py")
    ('shapes.py', None)
    """
    _, start, rest = reply.partition(_START)
    answer, end, _ = rest.partition(_END)
    return answer.strip() if start and end else None


def categorical_correctness(answers: frozenset[str] | set[str], reply: str) -> float:
    r"""Returns 1 where what stands in ``<answer>`` is one of the right answers, else 0.

    Source: ``categorical_correctness_reward_func`` in ``src/rewards/categorical.py`` of
    CodeRepairRL, which knows one right answer.

    Args:
        answers: The right answers.
        reply: What the policy said.

    >>> categorical_correctness({"CWE-79"}, "<answer>\nCWE-79\n</answer>")
    1.0
    >>> categorical_correctness({"CWE-79"}, "CWE-79"), categorical_correctness({"a"}, "<answer>A")
    (0.0, 0.0)
    """
    return float(answer_in(reply) in answers)
