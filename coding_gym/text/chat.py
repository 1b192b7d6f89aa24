"""A chat as token ids, piece by piece, so that what was sampled is never tokenized again.

Contents never go through a chat template, and no text of theirs becomes a control token: the
template is rendered once for each sequence of roles, with marks in place of the contents, and the
contents are put in when ids are made. Between two control tokens, template and contents are
encoded together, which for byte-level vocabularies gives the ids of encoding the whole text.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple, TypeVar

from coding_gym.errors import InvalidArgumentError, MissingDependencyError
from coding_gym.optional import requirement
from coding_gym.process_cache import ProcessCache
from coding_gym.text.neutral import token_starts
from coding_gym.text.tokenizers import HuggingFaceTokenizer, Tokenizer

Messages = Sequence[Mapping[str, Any]]
Schemas = Sequence[Mapping[str, Any]]
Memo = dict[str, Sequence[int]]
Reply = TypeVar("Reply")

_OPENING = ("system", "user")
# The roles that may follow a policy's reply.
_ANSWERS = ((), ("tool",), ("tool", "tool"), ("tool", "user"), ("user",))
_MARK = re.compile(r"zq\d+qz")
_PROBE = 'a "probe"\nof two lines'
# Some templates print today's date, which would change a seeded episode from day to day.
_FIXED_DATE = "{% macro strftime_now(format) %}2024-01-01{% endmacro %}"
_TOOLS = """

# Tools

These functions can be called; each is described by its JSON schema:
<tools>
{schemas}
</tools>

A call is written like this:
{call_form}"""
_CALL = '{"name": "<name>", "arguments": {"<argument>": "<value>"}}'
_CALL_FORMS = {
    "auto": f"<tool_call>{_CALL}</tool_call>",
    "openai": '{"role": "assistant", "content": "", "tool_calls": [{"id": "call_0", "type": '
    '"function", "function": {"name": "<name>", "arguments": "{\\"<argument>\\": \\"<value>\\"}"}}'
    "]}",
}
# The system prompt does not explain these formats, so a chat template must show the tools.
_UNEXPLAINED = ("auto", "openai", "template")


@dataclass(frozen=True, slots=True)
class Layout:
    """The text around the contents of a chat's messages.

    Attributes:
        render: Writes messages of ``role`` and ``content`` as text, control tokens spelled out;
            the second argument says whether the generation prompt, which asks for the policy's
            reply, follows.
        control_ids: The control tokens that ``render`` may write, with their ids.
        vocab_size: One more than the largest id of a chat.
        look_alikes: Other texts with an id of their own that ``render`` may write and contents may
            not.
        system_suffix: Text behind the content of the system message.
    """

    render: Callable[[Messages, bool], str]
    control_ids: Mapping[str, int]
    vocab_size: int
    look_alikes: Sequence[str] = ()
    system_suffix: str = ""


class Part(NamedTuple):
    """The ids that some messages add to a chat.

    Attributes:
        ids: The messages.
        prompt: The generation prompt after them.
    """

    ids: list[int]
    prompt: list[int]


class _Shape(NamedTuple):
    """The layout's text around the contents of messages: one more than there are contents."""

    texts: list[str]
    prompt: str


class Chat:
    """Turns messages into ids. It has no state of any one chat, and threads may share it.

    Args:
        tokenizer: The policy's.
        layout: The text around contents; see `get_layout`.

    Raises:
        InvalidArgumentError: The layout drops, moves or rewrites contents.
    """

    def __init__(self, tokenizer: Tokenizer, layout: Layout) -> None:
        self.tokenizer = tokenizer
        self.vocab_size = layout.vocab_size
        self._layout = layout
        self._control_ids = dict(layout.control_ids)
        longest_first = sorted(layout.control_ids, key=len, reverse=True)
        self._control = re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})")
        self._look_alike = token_starts(layout.look_alikes)
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        for answers in _ANSWERS:
            self._shape((*_OPENING, "assistant", *answers))
        roles = (*_OPENING, "assistant", "tool")
        self._forms = {r: self._find_form(roles, r) for r in roles if r != "assistant"}

    def opening(self, messages: Messages) -> Part:
        """Returns the ids of the messages before the policy's first reply."""
        shape, contents = self._at_opening(messages)
        return Part(self._encode(shape.texts, contents), self._encode([shape.prompt], []))

    def answers(self, messages: Messages, memo: Memo | None = None) -> Part:
        """Returns the ids after a policy's reply: its closing token, then these messages.

        Args:
            messages: The messages.
            memo: The ids of texts that were encoded before; those that are encoded here are added.
        """
        shape, contents = self._after_reply(messages)
        ids = self._encode(shape.texts, contents, memo)
        return Part(ids, self._encode([shape.prompt], []))

    def join(self, reply: Sequence[int], answers: Sequence[int]) -> list[int]:
        """Joins a reply and the messages after it; drops the closing token if it was sampled."""
        is_closed = reply and answers and reply[-1] == answers[0]
        if is_closed and self.is_control(answers[:1]):
            answers = answers[1:]
        return [*reply, *answers]

    def is_control(self, ids: Sequence[int]) -> bool:
        """Whether some ids begin with a control token of the layout."""
        return bool(ids) and ids[0] in self._control_ids.values()

    def _at_opening(self, messages: Messages) -> tuple[_Shape, list[str]]:
        contents = [self._forms[m["role"]](m["content"]) for m in messages]
        if messages and messages[0]["role"] == "system":
            system = messages[0]["content"] + self._layout.system_suffix
            contents[0] = self._forms["system"](system)
        return self._shape(tuple(m["role"] for m in messages)), contents

    def _after_reply(self, messages: Messages) -> tuple[_Shape, list[str]]:
        before = (*_OPENING, "assistant")
        shape = self._shape((*before, *(m["role"] for m in messages)))
        contents = [self._forms[m["role"]](m["content"]) for m in messages]
        return _Shape(shape.texts[len(before) :], shape.prompt), contents

    def _encode(
        self, texts: Sequence[str], contents: Sequence[str], memo: Memo | None = None
    ) -> list[int]:
        """Returns the ids of texts of the layout, in which control tokens count, and contents."""
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
        for text in run:
            if text not in memo:
                memo[text] = self.tokenizer.encode(text)
        return [i for text in run for i in memo[text]]

    def _break_look_alikes(self, content: str) -> list[str]:
        """Splits a content inside all that would become one of the layout's own tokens."""
        if not self._layout.look_alikes:  # the search would take as long as the encoding
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
        asking = self._layout.render(messages, True)
        if _MARK.findall(text) != marks or not asking.startswith(text):
            raise self._misfit(f"does not keep a chat of {', '.join(roles)} in its order")
        return _Shape(_MARK.split(text), asking.removeprefix(text))

    def _find_form(self, roles: Sequence[str], probed: str) -> Callable[[str], str]:
        """Returns what the layout does to the contents of one role."""
        messages = [_message(role, _PROBE if role == probed else "…") for role in roles]
        text = self._layout.render(messages, False)
        for form in (str, _json_text):
            if form(_PROBE) in text:
                return form
        raise self._misfit(f"rewrites the content of {probed} messages")

    def _misfit(self, problem: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"the chat template of {self.tokenizer.name} {problem}, so that chats cannot be kept "
            "token by token; use another tokenizer"
        )


# Compiling and trying out a template takes longer than a reset. Harnesses choose their own tools.
_chats = ProcessCache[Chat](64)


def get_chat(tokenizer: Tokenizer, schemas: Schemas, tool_format: str = "auto") -> Chat:
    """Returns the chat of a tokenizer and some tools; a process keeps the last 64.

    Args:
        tokenizer: The policy's.
        schemas: The tools, as OpenAI function schemas.
        tool_format: How calls are written; see `coding_gym.tools.formats`. Formats that the
            system prompt already explains with their tools are not explained a second time.

    Raises:
        InvalidArgumentError: The tokenizer has no chat template, or one that does not fit.
    """
    key = (id(tokenizer), json.dumps(list(schemas), sort_keys=True), tool_format)
    return _chats.get(key, lambda: Chat(tokenizer, get_layout(tokenizer, schemas, tool_format)))


def turns_of(
    messages: Messages, replies: Iterable[Reply]
) -> Iterator[tuple[Messages, Reply | None]]:
    """Yields the messages before the first reply with None, and then each reply's turn with it.

    Args:
        messages: Any part of a chat.
        replies: What to yield with each of the policy's messages; more than these are ignored.
    """
    starts = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    bounds = [*starts, len(messages)]
    if bounds[0]:
        yield messages[: bounds[0]], None
    for start, end, reply in zip(starts, bounds[1:], replies, strict=False):
        yield messages[start:end], reply


def get_layout(tokenizer: Tokenizer, schemas: Schemas, tool_format: str = "auto") -> Layout:
    """Returns the layout for a tokenizer: its own chat template, or ChatML.

    ChatML has a role for every message, also for each result of a tool (``tool``). The tools'
    schemas stand in the system message, one on each line between ``<tools>`` and ``</tools>``, as
    models of the Hermes and Qwen families are shown them. A vocabulary without ``<|im_start|>``
    and ``<|im_end|>`` is extended by them: they get the ids that follow its last one, as if they
    had been added to a model's embedding. Spelling them out instead would let any file of a
    repository open a turn.

    Args: As for `get_chat`.

    Raises:
        InvalidArgumentError: There is a template but none that fits, or no template at all.
    """
    if isinstance(tokenizer, HuggingFaceTokenizer):
        return _template_layout(tokenizer, schemas, must_show=tool_format in _UNEXPLAINED)
    size = tokenizer.vocab_size
    control_ids = {}
    for token in ("<|im_start|>", "<|im_end|>"):
        control_ids[token] = tokenizer.special_tokens.get(token, size)
        size = max(size, control_ids[token] + 1)
    lines = "\n".join(json.dumps(schema, ensure_ascii=False) for schema in schemas)
    form = _CALL_FORMS.get(tool_format)
    suffix = _TOOLS.format(schemas=lines, call_form=form) if form else ""
    return Layout(_chatml, control_ids, size, system_suffix=suffix)


def _chatml(messages: Messages, asks: bool) -> str:
    texts = [f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages]
    return "".join([*texts, "<|im_start|>assistant\n"] if asks else texts)


def _template_layout(
    tokenizer: HuggingFaceTokenizer, schemas: Schemas, *, must_show: bool
) -> Layout:
    backend, tools = tokenizer.backend, [dict(schema) for schema in schemas]
    if not backend.chat_template:
        raise InvalidArgumentError(
            f"the tokenizer {tokenizer.name} has no chat template; use one of a chat model, or "
            "save the tokenizer with a template (tokenizer.chat_template = ...)"
        )
    try:
        source = backend.get_chat_template(tools=tools)
    except ValueError as error:  # several templates and none called default
        raise InvalidArgumentError(
            f"the tokenizer {tokenizer.name} has no chat template for tools: {error}"
        ) from error
    added = (str(token) for token in backend.added_tokens_decoder.values() if not token.special)
    marks = tuple(token for token in added if len(token.strip()) > 1 and token in source)
    if "strftime_now" in source:
        source = _FIXED_DATE + source

    def render(messages: Messages, asks: bool) -> str:
        try:
            text: str = backend.apply_chat_template(
                [dict(message) for message in messages],
                tools=tools,
                add_generation_prompt=asks,
                chat_template=source,
                tokenize=False,
            )
        except ImportError as error:
            raise MissingDependencyError(
                f"chat templates need jinja2; run: pip install {requirement('hf')} 'jinja2>=3.1.6'"
            ) from error
        except Exception as error:  # a template is a program, and raises what it likes
            roles = ", ".join(message["role"] for message in messages)
            raise InvalidArgumentError(
                f"the chat template of {tokenizer.name} refuses a chat of {roles} ({error}); "
                "use a tokenizer whose template takes system prompts, tools and their results"
            ) from error
        return text

    layout = Layout(render, tokenizer.special_tokens, tokenizer.vocab_size, marks)
    _check_tools(tokenizer.name, layout, tools, must_show=must_show)
    return layout


def _check_tools(name: str, layout: Layout, schemas: Schemas, *, must_show: bool) -> None:
    """Refuses templates that do not show tools, and tools that spell control tokens."""
    rendered = layout.render([{"role": role, "content": "…"} for role in _OPENING], False)
    tools = [schema["function"]["name"] for schema in schemas]
    missing = [tool for tool in tools if not re.search(rf"\b{re.escape(tool)}\b", rendered)]
    if missing and must_show:
        raise InvalidArgumentError(
            f"the chat template of {name} does not show the tools ({', '.join(missing)}); use a "
            "tokenizer whose template takes tools, or a tool_format that the system prompt "
            "explains, such as 'hermes'"
        )
    spelled = json.dumps(list(schemas), ensure_ascii=False)
    forged = next((token for token in layout.control_ids if token in spelled), None)
    if forged is not None:
        raise InvalidArgumentError(
            f"a tool's schema spells {forged}, a control token of {name}; name it differently"
        )


def _message(role: str, content: str) -> dict[str, str]:
    message = {"role": role, "content": content}
    return message | {"tool_call_id": "call_0", "name": "tool"} if role == "tool" else message


def _json_text(text: str) -> str:
    """Returns a text as it stands inside a JSON string, as some templates write tool results."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
