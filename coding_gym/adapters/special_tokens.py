"""Keeps control tokens out of texts that a trainer will encode.

Trainers encode a chat template's output as a whole, so a file that holds ``<|im_end|>`` would end
the message it is quoted in. An invisible character after the first one of each such token takes its
meaning away and leaves it readable; it is taken out again where a policy writes the token as
it read it.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

BREAK = "\u200b"  # ZERO WIDTH SPACE

WELL_KNOWN_TOKENS = (
    *("<|im_start|>", "<|im_end|>", "<|endoftext|>"),
    *("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
    *("<think>", "</think>", "<tools>", "</tools>"),
    *("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>"),
    *("<|eot_id|>", "<|eom_id|>", "<|python_tag|>"),
    *("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|call|>", "<|return|>"),
    *("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"),
    *("<｜User｜>", "<｜Assistant｜>", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),  # noqa: RUF001
    *("<bos>", "<eos>", "<pad>", "<start_of_turn>", "<end_of_turn>", "<s>", "</s>", "<unk>"),
    *("[INST]", "[/INST]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
    *("[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
)


def control_tokens(processing_class: Any) -> tuple[str, ...]:
    """Returns the texts that a tokenizer would read as more than text.

    These are its special tokens, and those added tokens that its chat template is written with,
    such as ``<tool_call>``. Other added tokens (runs of spaces, say) only make text shorter.

    Args:
        processing_class: A Hugging Face tokenizer, or a processor that has one.
    """
    tokenizer = getattr(processing_class, "tokenizer", processing_class)
    holders = (tokenizer, processing_class)  # a processor has a template of its own
    template = " ".join(str(getattr(holder, "chat_template", None) or "") for holder in holders)
    return tuple(
        token.content
        for token in tokenizer.added_tokens_decoder.values()
        if token.special or (token.content in template and _is_markup(token.content))
    )


def _is_markup(token: str) -> bool:
    return not token.isspace() and not token.isidentifier()


class SpecialTokens:
    """Takes the meaning of control tokens in texts away, and gives it back.

    A token of one character cannot be broken and is left alone.

    Args:
        tokens: The texts that must not reach the trainer's tokenizer.
    """

    def __init__(self, tokens: Collection[str] = WELL_KNOWN_TOKENS) -> None:
        breakable = [token for token in tokens if len(token) > 1]
        self._whole = _at_each(breakable, f"{BREAK}*")
        self._broken = _at_each(breakable, f"{BREAK}+", BREAK)

    def escape(self, text: str) -> str:
        """Returns ``text`` with every control token broken; a broken one is broken once more."""
        return self._whole.sub(rf"\1{BREAK}", text)

    def restore(self, text: str) -> str:
        """Returns the text that `escape` was given, if no two tokens in it overlap."""
        return self._broken.sub(r"\1", text)

    def restore_all(self, value: Any) -> Any:
        """Returns JSON's lists and dicts with every text in them restored, keys included."""
        if isinstance(value, str):
            return self.restore(value)
        if isinstance(value, Mapping):
            return {self.restore_all(key): self.restore_all(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.restore_all(item) for item in value]
        return value


def _at_each(tokens: Collection[str], between: str, removed: str = "") -> re.Pattern[str]:
    """Returns what matches the first character of every token, also of overlapping ones."""
    spellings = "|".join(re.escape(t[0]) + between + re.escape(t[1:]) for t in tokens)
    return re.compile(f"(?=(?:{spellings}))(.){removed}" if tokens else "(?!)()", re.DOTALL)
