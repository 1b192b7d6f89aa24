"""A scripted model that applies a task's gold patch by the shell tool of any harness."""

import json
from typing import Any

from model_server import Answer, Body, ChatServer, message

from coding_gym.task import Task

_SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"  # mini-swe-agent's only end


def shell_call(body: Body, command: str) -> Body:
    """Returns a reply with a call of the shell tool that a request offers."""
    for tool in body["tools"]:
        function = tool["function"]
        properties: dict[str, Any] = function.get("parameters", {}).get("properties", {})
        name = next((one for one in ("cmd", "command") if one in properties), None)
        if name is None or "write" in function["name"]:
            continue
        is_list = properties[name].get("type") == "array"
        arguments: Body = {name: ["bash", "-c", command] if is_list else command}
        required = function["parameters"].get("required", ())
        fillers = {"boolean": False, "string": "repair", "number": 60, "integer": 60}
        for each in required:
            arguments.setdefault(each, fillers.get(properties[each].get("type"), "repair"))
        return message(calls={function["name"]: arguments})
    raise AssertionError(json.dumps(body["tools"]))


def gold_model(task: Task) -> ChatServer:
    """Serves a model that repairs a task in its first call, then ends."""
    apply = f"git apply - <<'EOF'\n{task.gold_patch}\nEOF\n"
    num_calls = 0

    def answer(body: Body) -> Answer:
        nonlocal num_calls
        if not body.get("tools"):
            return Answer(message("A repair"))
        num_calls += 1
        if num_calls == 1:
            return Answer(shell_call(body, apply))
        is_mini = [one["function"]["name"] for one in body["tools"]] == ["bash"]
        return Answer(shell_call(body, _SUBMIT) if is_mini else message("Done."))

    return ChatServer(answer)
