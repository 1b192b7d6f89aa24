"""How the chat of an episode is laid out for its policy."""

import json
from dataclasses import replace

from coding_gym.calls import ToolCall
from coding_gym.text.chat import Chat
from coding_gym.text.chat_layout import ChatMLLayout, Layout, get_layout
from coding_gym.text.tokenizers import Tokenizer
from coding_gym.tools import Toolset
from coding_gym.tools.formats import render_calls, tells_format

# Compiling and trying out a template takes longer than a reset.
_chats: dict[tuple[str, str, str], tuple[Tokenizer, Chat]] = {}


def chat_of(tokenizer: Tokenizer, toolset: Toolset, tool_format: str) -> Chat:
    """Returns the chat of a tokenizer and a toolset, made once per process.

    Args:
        tokenizer: The policy's.
        toolset: Its schemas stand in the system message, where the system prompt does not already
            tell them.
        tool_format: How calls are written; see `coding_gym.tools.formats`.

    Raises:
        InvalidArgumentError: The tokenizer has no chat template, or one that does not fit.
    """
    schemas = json.dumps(list(toolset.schemas), sort_keys=True)
    key = (tokenizer.name, schemas, tool_format)
    known, chat = _chats.get(key, (None, None))
    if chat is None or known is not tokenizer:
        layout = _layout(tokenizer, toolset, tool_format)
        chat = Chat(tokenizer, layout)
        _chats[key] = (tokenizer, chat)
    return chat


def _layout(tokenizer: Tokenizer, toolset: Toolset, tool_format: str) -> Layout:
    call_format = "openai" if tool_format.startswith("openai") else "hermes"
    example = ToolCall("<name>", {"<argument>": "<value>"})
    layout = get_layout(tokenizer, toolset.schemas, render_calls([example], call_format))
    if tells_format(tool_format) and isinstance(layout, ChatMLLayout):
        return replace(layout, system_suffix="")  # the system prompt has it
    return layout
