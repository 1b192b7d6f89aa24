"""Whole episodes through the chat templates of real models, as TRL ships them.

The templates of Mistral and SmolLM are in no package; SmolLM's do not support calls.
"""

import json
from importlib.resources import files
from typing import Any

import pytest
from episodes import FIX, SUBMIT, MakeEnv

from coding_gym import chat_request
from coding_gym.envs.coding_repair import CodingRepairEnv

pytestmark = pytest.mark.trainer

chat_templates = pytest.importorskip("transformers.utils.chat_template_utils")
pytest.importorskip("trl")

TEMPLATES = [
    *("qwen2_5", "qwen3", "qwen3_instruct_2507", "qwen3_5_think", "llama3_1", "llama3_2"),
    *("gptoss", "glm4moe", "lfm2_v2", "nemotron_3_nano", "gemma4"),
]
CONTROL = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"}


def call(number: int, **arguments: str) -> dict[str, Any]:
    function = {"name": "shell", "arguments": json.dumps(arguments)}
    return {"id": f"given_{number}", "type": "function", "function": function}


def message(**fields: Any) -> str:
    return json.dumps({"role": "assistant", **fields})


# Each reply has its marker "only-N" once in a call; "said-2" occurs once, outside a call.
EPISODE = [
    message(content=None, reasoning_content="why-0", tool_calls=[call(0, cmd="echo only-0")]),
    '<tool_call>\n{"name": "shell", "arguments": {"cmd": "echo only-1"}}\n</tool_call>',
    'said-2\n<tool_call>{"name": "shell", "arguments": {"cmd": "echo only-2"}}</tool_call>',
    '[TOOL_CALLS][{"name": "shell", "arguments": {"cmd": "echo only-3"}}]',
    FIX,
    message(content="", tool_calls=[call(5, cmd="echo only-5")]),
    SUBMIT,
]


def rendered(env: CodingRepairEnv, name: str) -> str:
    source = files("trl").joinpath("chat_templates", f"{name}.jinja").read_text(encoding="utf-8")
    request = chat_request(env, api="transformers")
    texts, _ = chat_templates.render_jinja_template(
        conversations=[request["conversation"]],
        tools=request["tools"],
        chat_template=source,
        add_generation_prompt=False,
        **CONTROL,
    )
    return str(texts[0])


def test_templates_render_each_call_of_an_episode_once(make_env: MakeEnv) -> None:
    env = make_env()
    env.reset()
    before = {name: rendered(env, name) for name in TEMPLATES}
    for action in EPISODE:
        env.step(action)
        for name in TEMPLATES:
            text = rendered(env, name)
            assert text.startswith(before[name].removesuffix("<eos>")), name
            before[name] = text
    for name, text in before.items():
        for number in (0, 1, 2, 3, 5):
            assert text.count(f"echo only-{number}") == 1, name
            assert text.count(f"only-{number}") == 2, name  # in the call and in the result
        assert text.count("said-2") == (not name.startswith("llama3")), name  # renders only calls
        assert text.count("width * height") == 1, name
        assert not [raw for raw in ("[TOOL_CALLS]", "tool_calls", "given_0") if raw in text], name
