"""What a policy is told when its budget runs low, or when it goes round in circles."""

import hashlib
import json

from coding_gym.calls import ToolCall
from coding_gym.text.truncate import ends
from coding_gym.text.unicode import well_formed

TOKENS_CRITICAL = 1500
TOKENS_LOW = 3000
CALLS_LOW = 5
_SHOWN_CHARS = 200  # of a repeated command


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


def collapse_warning(call: ToolCall, num_times: int) -> str:
    """Returns the lines to put in front of the reply to a call that was made over and over.

    The wording is NeMo Gym's (its mini-SWE-agent environment); a call that is no lone command is
    shown with its tool's name, and a long one without its middle.
    """
    arguments = dict(call.arguments)
    command = arguments.get("cmd", arguments.get("command"))
    if len(arguments) != 1 or not isinstance(command, str):
        command = f"{call.name} {json.dumps(arguments, sort_keys=True, ensure_ascii=False)}"
    shown = well_formed(ends(command, _SHOWN_CHARS, " … "))
    return (
        f"The last {num_times} commands you generated were identical: '{shown}'. This suggests you "
        "may be stuck in a loop. Please try a different approach or command.\n"
    )


def call_digest(call: ToolCall) -> str:
    """Returns what two calls share only if they ask for the same: name and arguments."""
    parts = [call.name, dict(call.arguments), call.error]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
