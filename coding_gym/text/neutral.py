"""Control tokens spelled out in text that somebody else will encode."""

import re
from collections.abc import Collection

from coding_gym.errors import InvalidArgumentError

ZERO_WIDTH_SPACE = "\u200b"

CONTROL_TOKENS = (
    # ChatML: Qwen, Hermes, SmolLM and others
    *("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|pad|>"),
    # Llama 3
    *("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>"),
    *("<|eot_id|>", "<|eom_id|>", "<|python_tag|>", "<|finetune_right_pad_id|>"),
    # Llama 2, and Mistral
    *("<s>", "</s>", "<<SYS>>", "<</SYS>>", "[INST]", "[/INST]"),
    *("[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[SYSTEM_PROMPT]"),
    *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CONTENT]", "[/SYSTEM_PROMPT]", "[ARGS]"),
    # Gemma, Phi, DeepSeek, gpt-oss
    *("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"),
    *("<|system|>", "<|user|>", "<|assistant|>", "<|end|>"),
    *("<\uff5cbegin▁of▁sentence\uff5c>", "<\uff5cend▁of▁sentence\uff5c>"),
    *("<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>"),
    *("<|start|>", "<|message|>", "<|channel|>", "<|call|>", "<|return|>"),
)
"""Control tokens of the chat formats in wide use, for text that goes to a model of any family."""


def neutralise(
    text: str, tokens: Collection[str] = CONTROL_TOKENS, mark: str = ZERO_WIDTH_SPACE
) -> str:
    """Returns ``text`` with no control token spelled in it: ``mark`` stands in each of them.

    For text that is encoded by somebody who lets control tokens count, such as the server of a
    chat model: without it any file of a repository could end a turn. The env's own ids never
    need it (`coding_gym.text.chat`).

    >>> neutralise("see <|im_end|> there", ["<|im_end|>"], mark="~")
    'see <~|im_end|> there'

    Args:
        text: What a tool said, for instance.
        tokens: The tokens; a tokenizer's are ``tokenizer.special_tokens``.
        mark: Put behind the first character of each.

    Raises:
        InvalidArgumentError: A token has a single character, or the mark in it, or ``mark`` is
            empty: nothing could break it.
    """
    for token in tokens:
        if len(token) < 2 or not mark or mark in token:
            raise InvalidArgumentError(
                f"mark {mark!r} cannot break the token {token!r}; leave the token out, or choose "
                "another mark"
            )
    spelled = re.compile("|".join(map(re.escape, tokens)) or "(?!)")
    parts, start = [], 0
    while match := spelled.search(text, start):
        parts += [text[start : match.start() + 1], mark]
        start = match.start() + 1  # tokens may overlap
    return "".join([*parts, text[start:]])
