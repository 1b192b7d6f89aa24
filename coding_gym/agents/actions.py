"""Actions as an agent writes them: bare JSON tool calls."""

import json


def call(name: str, **arguments: str) -> str:
    """Returns a tool call as the text of an action."""
    return json.dumps({"name": name, "arguments": arguments})


def submit() -> str:
    """Returns the action that submits the tree as it is."""
    return call("submit")
