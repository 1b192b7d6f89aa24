"""How tool calls are written in a policy's text.

| format | a call is written as |
|---|---|
| ``openai`` | an assistant message with ``tool_calls``, or a bare list of tool calls |
| ``json`` | ``{"name": …, "arguments": {…}}``, several or a list of them, or in a fenced block |
| ``hermes`` | the same between ``<tool_call>`` and ``</tool_call>``, any number of times |
| ``nanoagent`` | a list of the same between these tags |
| ``qwen3_coder`` | ``<function=…>`` with a ``<parameter=…>`` per argument, between these tags |
| ``llama3`` | ``{"name": …, "parameters": {…}}``, several separated by ``;`` |
| ``mistral`` | ``[TOOL_CALLS]`` and a list, or ``[TOOL_CALLS]name[ARGS]{…}`` |
| ``bash_block`` | exactly one fenced block of bash, the command of the toolset's shell |
| ``swe_agent`` | ``<function=…>`` as above, without the tags around it |
| ``apply_patch`` | Codex's ``*** Begin Patch`` … ``*** End Patch``, for the toolset's patch tool |
| ``auto`` | any of these but ``bash_block`` and ``apply_patch`` |

``auto`` reads text that begins as JSON does as ``openai``, ``llama3``, then ``json``. Where that
holds no call, and in all other text, the mark that stands first decides: ``<tool_call>`` with JSON
behind it is ``hermes`` (``nanoagent`` too), with ``<function=`` behind it ``qwen3_coder``;
``<function=`` alone is ``swe_agent``; ``[TOOL_CALLS]`` is ``mistral``; ``<|python_tag|>`` is
``llama3``. Without any, calls of ``json`` are looked for in fenced blocks, and last comes what a
toolset names in its ``text_formats``: so a block of bash in the prose of a policy that calls tools
otherwise stays prose. Behind JSON that breaks off nothing is looked for.

A ``<think>`` block in front is not searched for calls. Each group of formats is read strictly
before anything is forgiven or repaired; with ``[strict]`` behind a name nothing is.
"""

from coding_gym.tools.formats.format import ParsedAction
from coding_gym.tools.formats.parsing import TOOL_FORMATS, parse_action
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
    "render_calls",
    "tells_format",
    "with_instructions",
]
