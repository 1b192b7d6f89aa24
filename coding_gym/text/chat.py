"""A chat as token ids, piece by piece, so that what was sampled is never tokenized again.

Contents never go through a chat template, and no text of theirs becomes a control token: the
template is rendered once for each sequence of roles, with marks in place of the contents, and the
contents are put in when ids are made. Between two control tokens, template and contents are
encoded together, which for byte-level vocabularies gives the ids of encoding the whole text.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple

from coding_gym.errors import InvalidArgumentError
from coding_gym.text.chat_layout import Layout
from coding_gym.text.neutral import neutralise
from coding_gym.text.tokenizers import Tokenizer

_OPENING = ("system", "user")
_ANSWERS = ((), ("tool",), ("tool", "tool"), ("user",))  # what may follow a policy's reply
_MARK = re.compile(r"zq\d+qz")
_PROBE = 'a "probe"\nof two lines'


class Part(NamedTuple):
    """What some messages add to a chat.

    Attributes:
        ids: The messages.
        prompt: What asks for the policy's reply after them.
    """

    ids: list[int]
    prompt: list[int]


class PartText(NamedTuple):
    """What some messages add to a chat, as text; the fields are those of `Part`."""

    text: str
    prompt: str


class _Shape(NamedTuple):
    """The layout's text around the contents of messages: one more than there are contents."""

    texts: list[str]
    prompt: str


class Chat:
    """Turns messages into ids. It has no state of any one chat, and threads may share it.

    Args:
        tokenizer: The policy's.
        layout: What stands around the contents; see `coding_gym.text.chat_layout.get_layout`.

    Raises:
        InvalidArgumentError: The layout leaves out, moves or rewrites contents.
    """

    def __init__(self, tokenizer: Tokenizer, layout: Layout) -> None:
        self.tokenizer = tokenizer
        self.vocab_size = layout.vocab_size
        self._layout = layout
        self._control_ids = dict(layout.control_ids)
        self._control = _any_of(layout.control_ids, "({})")
        self._look_alike = _any_of(layout.look_alikes, "(?={})")
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        for answers in _ANSWERS:
            self._shape((*_OPENING, "assistant", *answers))
        roles = (*_OPENING, "assistant", "tool")
        self._forms = {r: self._find_form(roles, r) for r in roles if r != "assistant"}

    def opening(self, messages: Sequence[Mapping[str, Any]]) -> Part:
        """Returns the messages before the policy's first reply."""
        return self._part(*self._at_opening(messages))

    def answers(self, messages: Sequence[Mapping[str, Any]]) -> Part:
        """Returns what follows a policy's reply: its closing, then these messages."""
        return self._part(*self._after_reply(messages))

    def opening_text(self, messages: Sequence[Mapping[str, Any]]) -> PartText:
        """Returns `opening` as text; in contents, what looks like one of its tokens is broken."""
        return self._text(*self._at_opening(messages))

    def answers_text(self, messages: Sequence[Mapping[str, Any]]) -> PartText:
        """Returns `answers` as text; see `opening_text`."""
        return self._text(*self._after_reply(messages))

    def neutral(self, content: str) -> str:
        """Returns a content in which nothing spells a token of the layout."""
        tokens = (*self._control_ids, *self._layout.look_alikes)
        return neutralise(content, [token for token in tokens if len(token) > 1])

    def join(self, reply: Sequence[int], answers: Sequence[int]) -> list[int]:
        """Returns a reply and what follows it; a closing that the policy sampled counts once."""
        is_closed = reply and answers and reply[-1] == answers[0]
        if is_closed and answers[0] in self._control_ids.values():
            answers = answers[1:]
        return [*reply, *answers]

    def _at_opening(
        self, messages: Sequence[Mapping[str, Any]]
    ) -> tuple[_Shape, list[tuple[str, str]]]:
        contents = [(message["role"], message["content"]) for message in messages]
        if contents and contents[0][0] == "system":
            contents[0] = ("system", contents[0][1] + self._layout.system_suffix)
        return self._shape(tuple(role for role, _ in contents)), contents

    def _after_reply(
        self, messages: Sequence[Mapping[str, Any]]
    ) -> tuple[_Shape, list[tuple[str, str]]]:
        contents = [(message["role"], message["content"]) for message in messages]
        before = (*_OPENING, "assistant")
        shape = self._shape((*before, *(role for role, _ in contents)))
        return _Shape(shape.texts[len(before) :], shape.prompt), contents

    def _text(self, shape: _Shape, contents: Sequence[tuple[str, str]]) -> PartText:
        put = [self.neutral(self._forms[role](content)) for role, content in contents]
        pairs = zip_longest(shape.texts, put, fillvalue="")
        return PartText("".join(text + content for text, content in pairs), shape.prompt)

    def _part(self, shape: _Shape, contents: Sequence[tuple[str, str]]) -> Part:
        put = [self._forms[role](content) for role, content in contents]
        return Part(self._encode(shape.texts, put), self._encode([shape.prompt], []))

    def _encode(self, texts: Sequence[str], contents: Sequence[str]) -> list[int]:
        """Returns the ids of texts of the layout, in which control tokens count, and contents."""
        ids: list[int] = []
        run = [""]
        for text, content in zip_longest(texts, contents, fillvalue=""):
            for part in self._control.split(text):
                if part in self._control_ids:
                    ids += self._encode_run(run)
                    ids.append(self._control_ids[part])
                    run = [""]
                else:
                    run[-1] += part
            first, *rest = self._break_look_alikes(content)
            run[-1] += first
            run += rest
        return ids + self._encode_run(run)

    def _encode_run(self, run: Sequence[str]) -> list[int]:
        return [i for text in run for i in self.tokenizer.encode(text)]

    def _break_look_alikes(self, content: str) -> list[str]:
        """Splits a content inside all that would become one of the layout's own tokens."""
        if not self._layout.look_alikes:  # the search would take as long as the encoding
            return [content]
        cuts = [0, *(match.start() + 1 for match in self._look_alike.finditer(content)), None]
        return [content[start:end] for start, end in pairwise(cuts)]

    def _shape(self, roles: tuple[str, ...]) -> _Shape:
        shape = self._shapes.get(roles)
        if shape is None:
            shape = self._shapes[roles] = self._find_shape(roles)
        return shape

    def _find_shape(self, roles: tuple[str, ...]) -> _Shape:
        marks = [f"zq{i}qz" for i in range(len(roles))]
        messages = [_message(*pair) for pair in zip(roles, marks, strict=True)]
        text = self._layout.render(messages, asks=False)
        asking = self._layout.render(messages, asks=True)
        if _MARK.findall(text) != marks or not asking.startswith(text):
            raise self._misfit(f"does not keep a chat of {', '.join(roles)} in its order")
        return _Shape(_MARK.split(text), asking.removeprefix(text))

    def _find_form(self, roles: Sequence[str], probed: str) -> Callable[[str], str]:
        """Returns what the layout does to the contents of one role."""
        messages = [_message(role, _PROBE if role == probed else "…") for role in roles]
        text = self._layout.render(messages, asks=False)
        for form in (str, _json_text):
            if form(_PROBE) in text:
                return form
        raise self._misfit(f"rewrites the content of {probed} messages")

    def _misfit(self, problem: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"the chat template of {self.tokenizer.name} {problem}, so that chats cannot be kept "
            "token by token; use another tokenizer"
        )


def _any_of(tokens: Sequence[str] | Mapping[str, int], form: str) -> re.Pattern[str]:
    longest_first = sorted(tokens, key=len, reverse=True)
    return re.compile(form.format("|".join(map(re.escape, longest_first)) or "(?!)"))


def _message(role: str, content: str) -> dict[str, str]:
    message = {"role": role, "content": content}
    return message | {"tool_call_id": "call_0", "name": "tool"} if role == "tool" else message


def _json_text(text: str) -> str:
    """Returns a text as it stands inside a JSON string, as some templates write tool results."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
