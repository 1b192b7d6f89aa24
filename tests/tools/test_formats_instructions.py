"""What a system prompt tells of a format."""

import json
from typing import Any

import pytest

from coding_gym.envs import CodingRepairEnv
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.tools.formats import (
    TOOL_FORMATS,
    format_instructions,
    parse_action,
    tells_format,
    with_instructions,
)
from coding_gym.tools.schemas import boolean, function, integer

PATCHER = function("apply_patch", "Applies a patch.", patch="The patch")
SCHEMAS = (
    function("bash", "Runs a command.", command="The command"),
    function("view", "Shows.", how={"type": "string", "enum": ["up", "down"]}, n=integer("How")),
    function("undo", "Takes back.", optional=("all",), all=boolean("Everything")),
    PATCHER,
)


@pytest.mark.parametrize("tool_format", TOOL_FORMATS)
def test_the_example_calls_a_listed_tool_in_the_format(tool_format: str) -> None:
    for schemas in ([*SCHEMAS], [SCHEMAS[1], SCHEMAS[0], PATCHER], [SCHEMAS[0], PATCHER]):
        told = format_instructions(tool_format, schemas)
        shown = told.split("<tools>\n")[1].split("\n</tools>")[0].splitlines()
        names = [json.loads(line)["function"]["name"] for line in shown]
        example = told.split("For example:\n")[1]
        (call,) = parse_action(example, f"{tool_format}[strict]", schemas).calls
        assert call.name == names[0]
        properties = json.loads(shown[0])["function"]["parameters"]["required"]
        assert sorted(call.arguments) == sorted(properties)


def test_only_tools_that_the_format_can_call_are_shown() -> None:
    shown = {
        name: [s["function"]["name"] for s in SCHEMAS if json.dumps(s) in told]
        for name in TOOL_FORMATS
        for told in [format_instructions(name, SCHEMAS)]
    }
    assert shown.pop("bash_block") == ["bash", "undo"]
    assert shown.pop("apply_patch") == ["apply_patch"]
    assert all(names == ["bash", "view", "undo", "apply_patch"] for names in shown.values())


def test_auto_and_openai_add_nothing_to_the_prompt() -> None:
    for name in ("auto", "openai", "auto[strict]"):
        assert not tells_format(name)
        assert with_instructions("Work.\n", name, SCHEMAS) == "Work.\n"
    assert with_instructions("Work.\n", "hermes[strict]", SCHEMAS) == (
        f"Work.\n\n{format_instructions('hermes', SCHEMAS)}\n"
    )


def test_an_env_refuses_a_format_that_can_call_no_tool(tiny_row: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="apply_patch"):
        CodingRepairEnv(tasks=[tiny_row], tool_format="apply_patch")
    with pytest.raises(UnknownNameError, match="qwen3_code"):
        CodingRepairEnv(tasks=[tiny_row], tool_format="qwen3_code")


def test_the_system_prompt_explains_only_a_format_chosen_by_name(tiny_row: dict[str, Any]) -> None:
    for tool_format in ("auto", "openai", "qwen3_coder"):
        env = CodingRepairEnv(tasks=[tiny_row], tool_format=tool_format)
        _, info = env.reset()
        plain = env.toolset.prompt(keeps_shell=False)
        prompt = info["messages"][0]["content"]
        assert prompt == with_instructions(plain, tool_format, env.toolset.schemas)
        assert (prompt == plain) == (tool_format != "qwen3_coder")
        env.close()
