"""What a policy is told when its budget runs low."""

TOKENS_CRITICAL = 1500
TOKENS_LOW = 3000
CALLS_LOW = 5


def budget_warning(tokens_left: int | None, calls_left: int | None) -> str:
    """Returns the line to put in front of a tool's reply, or ""; tokens go before calls.

    Wording, order and thresholds are nano-agent 5.0.0's (``agent.py``, ``Agent._tool_reply``).

    Args:
        tokens_left: Tokens left before the reply is counted, None where nothing is to be said of
            them.
        calls_left: Tool calls left, the one that is being answered included; None likewise.
    """
    if tokens_left is not None and tokens_left < TOKENS_CRITICAL:
        return "Token limit critical! Apply your best fix now.\n"
    if tokens_left is not None and tokens_left < TOKENS_LOW:
        return "Tokens low. Focus on the main issue only.\n"
    if calls_left is not None and 1 < calls_left < CALLS_LOW:
        return f"{calls_left} tools left. Prioritize essential changes.\n"
    if calls_left == 1:
        return "Last tool call! Make it count.\n"
    return ""
