"""How tool calls are written in a policy's text.

| format | a call is written as |
|---|---|
| ``openai``, ``anthropic``, ``responses`` | the message or output of a server |
| ``json``, ``llama3`` | ``{"name": …, "arguments": {…}}``, or ``"parameters"``, several or a list |
| ``hermes``, ``nanoagent`` | the same, or a list, between ``<tool_call>`` and ``</tool_call>`` |
| ``mistral``, ``mistral_v11``, ``mistral_v13`` | ``[TOOL_CALLS]``, a list or ``name[ARGS]{…}`` |
| ``harmony`` | a message on a channel ``to=functions.name`` (gpt-oss) |
| ``deepseek_v3``, ``deepseek_v31``, ``kimi_k2`` | a name, then JSON, between special tokens |
| ``deepseek_v32``, ``deepseek_v4``, ``deepseek_v41`` | ``invoke`` and ``parameter`` tags of DSML |
| ``minimax_m2``, ``minimax_m3``, ``muse_glimmer``, ``kimi_k3`` | tags with marks of their own |
| ``glm45``, ``glm47`` | ``<arg_key>`` and ``<arg_value>`` between ``<tool_call>`` tags |
| ``qwen3_coder``, ``swe_agent`` | ``<function=…>`` with a ``<parameter=…>`` per argument |
| ``pythonic``, ``lfm2``, ``smollm3_python``, ``nanoagent_python`` | ``name(key='value')`` |
| ``gemma4``, ``functiongemma`` | ``call:name{key:…}`` between special tokens |
| ``bash_block`` | exactly one fenced block of bash, the command of the toolset's shell |
| ``apply_patch`` | Codex's ``*** Begin Patch`` … ``*** End Patch``, for the toolset's patch tool |
| ``auto`` | any of these but ``bash_block`` and ``apply_patch`` |

``auto`` reads text that begins as JSON does in any of the JSON shapes; in all other text the mark
that stands first decides. Without any, ``json`` is looked for in fenced blocks and behind prose,
and last comes what a toolset names in its ``text_formats``. A mark without a readable call is a
format error, never a reply without a call.

A ``<think>`` block in front is not searched for calls. Each format is read strictly before
anything is forgiven or repaired; with ``[strict]`` behind a name nothing is.
"""

from coding_gym.tools.formats.format import ParsedAction
from coding_gym.tools.formats.parsing import TOOL_FORMATS, parse_action, parsed_calls
from coding_gym.tools.formats.writing import (
    check_format,
    format_instructions,
    render_calls,
    tells_format,
    with_instructions,
)

__all__ = [
    "TOOL_FORMATS",
    "ParsedAction",
    "check_format",
    "format_instructions",
    "parse_action",
    "parsed_calls",
    "render_calls",
    "tells_format",
    "with_instructions",
]
