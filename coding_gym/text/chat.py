"""Converts a chat to token ids message by message, so that sampled ids are never encoded again.

Contents do not pass through the chat template, and no part of a content becomes a control token:
the template is rendered once for each sequence of roles, with placeholders for the contents, and
the contents replace the placeholders before the encoding. The text between two control tokens is
encoded as a whole; for byte-level vocabularies the ids equal those of encoding the whole chat.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple, TypeVar

from coding_gym.errors import InvalidArgumentError
from coding_gym.process_cache import ProcessCache
from coding_gym.text.families import UNEXPLAINED
from coding_gym.text.neutral import token_starts
from coding_gym.text.tokenizers import DEFAULT_TOKENIZER, Tokenizer

Messages = Sequence[Mapping[str, Any]]
Schemas = Sequence[Mapping[str, Any]]
Memo = dict[str, Sequence[int]]
Reply = TypeVar("Reply")

_OPENING = ("system", "user")
# The roles that can follow a policy's reply.
_ANSWERS = ((), ("tool",), ("tool", "tool"), ("tool", "user"), ("user",))
_MARK = re.compile(r"zq\d+qz")
_PROBE = 'a "probe"\nof two lines'
# Some templates print today's date, which would make seeded episodes differ from day to day.
_FIXED_DATE = "{% macro strftime_now(format) %}2024-01-01{% endmacro %}"
_TOOLS = """

# Tools

These functions can be called; each is described by its JSON schema:
<tools>
{schemas}
</tools>

A call is written like this:
{call_form}"""


@dataclass(frozen=True, slots=True)
class Layout:
    """The text around the contents of a chat's messages.

    Attributes:
        render: Returns messages, each with ``role`` and ``content``, as text with control tokens.
            If the second argument is true, the text ends with the generation prompt.
        look_alikes: Texts that have a single id but are not control tokens, such as
            ``<tool_call>``. In contents, these texts are encoded as several ids.
        system_suffix: Text after the content of the system message.
    """

    render: Callable[[Messages, bool], str]
    look_alikes: Sequence[str] = ()
    system_suffix: str = ""


class Part(NamedTuple):
    """The ids that new messages add to a chat.

    Attributes:
        ids: The ids of the messages.
        prompt: The ids of the generation prompt after these messages.
    """

    ids: list[int]
    prompt: list[int]


class _Shape(NamedTuple):
    """The texts before, between and after the contents of messages, and the generation prompt."""

    texts: list[str]
    prompt: str


class Chat:
    """Converts the messages of any number of chats to ids. Threads can share one instance.

    Args:
        tokenizer: The policy's tokenizer.
        layout: The text around contents; see `get_layout`.

    Raises:
        InvalidArgumentError: The layout drops, moves or rewrites contents.
    """

    def __init__(self, tokenizer: Tokenizer, layout: Layout) -> None:
        self.tokenizer = tokenizer
        self._layout = layout
        self._control_ids = tokenizer.special_tokens
        longest_first = sorted(self._control_ids, key=len, reverse=True)
        self._control = re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})")
        self._look_alike = token_starts(layout.look_alikes)
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        for answers in _ANSWERS:
            self._shape((*_OPENING, "assistant", *answers))
        roles = (*_OPENING, "assistant", "tool")
        self._forms = {r: self._find_form(roles, r) for r in roles if r != "assistant"}

    def opening(self, messages: Messages) -> Part:
        """Returns the ids of the messages before the policy's first reply."""
        contents = [self._forms[m["role"]](m["content"]) for m in messages]
        if messages and messages[0]["role"] == "system":
            system = messages[0]["content"] + self._layout.system_suffix
            contents[0] = self._forms["system"](system)
        shape = self._shape(tuple(m["role"] for m in messages))
        return Part(self._encode(shape.texts, contents), self._encode([shape.prompt], []))

    def answers(self, messages: Messages, memo: Memo | None = None) -> Part:
        """Returns the ids after a policy's reply: its closing token, then these messages.

        Args:
            messages: The messages.
            memo: The ids of texts that are already encoded; updated with new texts.
        """
        earlier_roles = (*_OPENING, "assistant")
        shape = self._shape((*earlier_roles, *(m["role"] for m in messages)))
        contents = [self._forms[m["role"]](m["content"]) for m in messages]
        ids = self._encode(shape.texts[len(earlier_roles) :], contents, memo)
        return Part(ids, self._encode([shape.prompt], []))

    def join(self, reply: Sequence[int], answers: Sequence[int]) -> list[int]:
        """Joins a reply and the messages after it, without a second closing token."""
        is_closed = reply and answers and reply[-1] == answers[0]
        if is_closed and self.is_control(answers[:1]):
            answers = answers[1:]
        return [*reply, *answers]

    def is_control(self, ids: Sequence[int]) -> bool:
        """Returns whether ids begin with a control token of the tokenizer."""
        return bool(ids) and ids[0] in self._control_ids.values()

    def check_ids(self, ids: Iterable[int]) -> None:
        """Raises InvalidArgumentError if an id of a reply is not in the vocabulary."""
        size = self.tokenizer.vocab_size
        invalid_id = next((i for i in ids if not 0 <= i < size), None)
        if invalid_id is not None:
            raise InvalidArgumentError(
                f"token_ids must be in the vocabulary {self.tokenizer.name} (0 to "
                f"{size - 1}), got {invalid_id}; create the env with the policy's "
                "tokenizer; for an existing record, use dataclasses.replace(record, tokenizer=...)"
            )

    def _encode(
        self, texts: Sequence[str], contents: Sequence[str], memo: Memo | None = None
    ) -> list[int]:
        """Returns the ids of contents and of the layout's texts around the contents."""
        memo = {} if memo is None else memo
        ids: list[int] = []
        run = [""]
        for text, content in zip_longest(texts, contents, fillvalue=""):
            for part in self._control.split(text):
                if part in self._control_ids:
                    ids += self._encode_run(run, memo)
                    ids.append(self._control_ids[part])
                    run = [""]
                else:
                    run[-1] += part
            first, *rest = self._break_look_alikes(content)
            run[-1] += first
            run += rest
        return ids + self._encode_run(run, memo)

    def _encode_run(self, run: Sequence[str], memo: Memo) -> list[int]:
        """Returns the ids of texts that are encoded separately; adds new ids to ``memo``."""
        for text in run:
            if text not in memo:
                memo[text] = self.tokenizer.encode(text)
        return [i for text in run for i in memo[text]]

    def _break_look_alikes(self, content: str) -> list[str]:
        """Splits a content within each look-alike, so that no look-alike becomes a single id."""
        if not self._layout.look_alikes:  # the search takes as long as the encoding
            return [content]
        cuts = [0, *(match.end() for match in self._look_alike.finditer(content)), None]
        return [content[start:end] for start, end in pairwise(cuts)]

    def _shape(self, roles: tuple[str, ...]) -> _Shape:
        shape = self._shapes.get(roles)
        if shape is None:
            shape = self._shapes[roles] = self._find_shape(roles)
        return shape

    def _find_shape(self, roles: tuple[str, ...]) -> _Shape:
        marks = [f"zq{i}qz" for i in range(len(roles))]
        messages = [_message(*pair) for pair in zip(roles, marks, strict=True)]
        text = self._layout.render(messages, False)
        text_with_prompt = self._layout.render(messages, True)
        if _MARK.findall(text) != marks or not text_with_prompt.startswith(text):
            raise self._layout_error(f"does not keep the messages of {', '.join(roles)} in order")
        return _Shape(_MARK.split(text), text_with_prompt.removeprefix(text))

    def _find_form(self, roles: Sequence[str], probed_role: str) -> Callable[[str], str]:
        """Returns the layout's conversion of a role's contents: `str` or `_json_text`."""
        messages = [_message(role, _PROBE if role == probed_role else "…") for role in roles]
        text = self._layout.render(messages, False)
        for form in (str, _json_text):
            if form(_PROBE) in text:
                return form
        raise self._layout_error(f"rewrites the content of {probed_role} messages")

    def _layout_error(self, problem: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"the chat template of {self.tokenizer.name} {problem}, so chats cannot be extended "
            "token by token; use another tokenizer"
        )


# Cached, because compiling and probing a chat template takes longer than a reset of an env.
_chats = ProcessCache[Chat](64)


def get_chat(tokenizer: Tokenizer, schemas: Schemas, tool_format: str = "auto") -> Chat:
    """Returns the `Chat` of a tokenizer and tools; each process caches the last 64.

    Args:
        tokenizer: The policy's tokenizer.
        schemas: The tools, as OpenAI function schemas.
        tool_format: The format of calls. The layout contains the schemas only for the formats in
            `UNEXPLAINED`; for all others the system prompt explains the tools.

    Raises:
        InvalidArgumentError: The tokenizer has no suitable chat template.
    """
    key = (id(tokenizer), json.dumps(list(schemas), sort_keys=True), tool_format)
    return _chats.get(key, lambda: Chat(tokenizer, get_layout(tokenizer, schemas, tool_format)))


def turns_of(
    messages: Messages, replies: Iterable[Reply]
) -> Iterator[tuple[Messages, Reply | None]]:
    """Yields the messages before the first reply, with None; then each turn, with its reply.

    Args:
        messages: Any part of a chat.
        replies: Values to yield with the policy's messages; surplus values are ignored.
    """
    starts = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    bounds = [*starts, len(messages)]
    if bounds[0]:
        yield messages[: bounds[0]], None
    for start, end, reply in zip(starts, bounds[1:], replies, strict=False):
        yield messages[start:end], reply


def get_layout(tokenizer: Tokenizer, schemas: Schemas, tool_format: str = "auto") -> Layout:
    """Returns the tokenizer's chat template as a layout; for the bundled tokenizer, ChatML.

    In ChatML the role of tool results is ``tool``. The schemas are in the system message, one per
    line between ``<tools>`` and ``</tools>``, as in the Hermes and Qwen families.

    Args: As for `get_chat`.

    Raises:
        InvalidArgumentError: The tokenizer has no suitable chat template.
    """
    if tokenizer.name != DEFAULT_TOKENIZER:
        return _template_layout(tokenizer, schemas if tool_format in UNEXPLAINED else ())
    lines = "\n".join(json.dumps(schema, ensure_ascii=False) for schema in schemas)
    form = UNEXPLAINED.get(tool_format)
    suffix = _TOOLS.format(schemas=lines, call_form=form) if form else ""
    return Layout(_chatml, system_suffix=suffix)


def _chatml(messages: Messages, with_prompt: bool) -> str:
    texts = [f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages]
    return "".join([*texts, "<|im_start|>assistant\n"] if with_prompt else texts)


def _template_layout(tokenizer: Tokenizer, schemas: Schemas) -> Layout:
    backend, tools = tokenizer.backend, [dict(schema) for schema in schemas] or None
    if not backend.chat_template:
        raise InvalidArgumentError(
            f"the tokenizer {tokenizer.name} has no chat template; use the tokenizer of a chat "
            "model, or save this tokenizer with a template (tokenizer.chat_template = ...)"
        )
    try:
        source = backend.get_chat_template(tools=tools)
    except ValueError as error:  # several templates without a default
        raise InvalidArgumentError(
            f"the chat templates of {tokenizer.name} must include one named 'default': {error}"
        ) from error
    tokens = (str(token) for token in backend.added_tokens_decoder.values() if not token.special)
    look_alikes = tuple(token for token in tokens if len(token.strip()) > 1 and token in source)
    if "strftime_now" in source:
        source = _FIXED_DATE + source

    def render(messages: Messages, with_prompt: bool) -> str:
        try:
            text: str = backend.apply_chat_template(
                [dict(message) for message in messages],
                tools=tools,
                add_generation_prompt=with_prompt,
                chat_template=source,
                tokenize=False,
            )
        except Exception as error:  # a template is a program and can raise any exception
            roles = ", ".join(message["role"] for message in messages)
            raise InvalidArgumentError(
                f"the chat template of {tokenizer.name} fails for a chat of {roles} ({error}); "
                "use a tokenizer whose template supports system prompts, tools and their results"
            ) from error
        return text

    layout = Layout(render, look_alikes)
    _check_tools(tokenizer.name, layout, schemas)
    return layout


def _check_tools(name: str, layout: Layout, schemas: Schemas) -> None:
    """Raises InvalidArgumentError if the chat template omits a tool."""
    rendered = layout.render([{"role": role, "content": "…"} for role in _OPENING], False)
    tools = [schema["function"]["name"] for schema in schemas]
    absent = [tool for tool in tools if not re.search(rf"\b{re.escape(tool)}\b", rendered)]
    if absent:
        raise InvalidArgumentError(
            f"the chat template of {name} omits the tools {', '.join(absent)}; use a tokenizer "
            "whose template supports tools, or a tool_format that the system prompt explains, such "
            "as 'hermes'"
        )


def _message(role: str, content: str) -> dict[str, str]:
    message = {"role": role, "content": content}
    return message | {"tool_call_id": "call_0", "name": "tool"} if role == "tool" else message


def _json_text(text: str) -> str:
    """Returns a text as part of a JSON string, as some templates write tool results."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
