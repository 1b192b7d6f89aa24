"""How a chat is laid out for a model: ChatML, or the template of a Hugging Face tokenizer."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from coding_gym.errors import InvalidArgumentError, MissingDependencyError
from coding_gym.text.huggingface import HuggingFaceTokenizer
from coding_gym.text.tokenizers import Tokenizer

Schemas = Sequence[Mapping[str, Any]]

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


class Layout(Protocol):
    """What stands around the contents of a chat's messages."""

    @property
    def control_ids(self) -> Mapping[str, int]:
        """The control tokens that `render` may write, with their ids."""
        ...

    @property
    def vocab_size(self) -> int:
        """One more than the largest id of a chat."""
        ...

    @property
    def look_alikes(self) -> Sequence[str]:
        """Other texts with an id of their own that `render` may write and contents may not."""
        ...

    @property
    def system_suffix(self) -> str:
        """What the system message says after its content."""
        ...

    def render(self, messages: Sequence[Mapping[str, str]], *, asks: bool) -> str:
        """Returns messages of ``role`` and ``content`` as text, control tokens spelled out.

        Args:
            messages: The chat.
            asks: Whether the generation prompt follows, which asks for the policy's reply.
        """
        ...


@dataclass(frozen=True, slots=True)
class ChatMLLayout:
    """``<|im_start|>role``, a line end, the content, ``<|im_end|>`` and a line end.

    Every message has its role, also each result of a tool (``tool``). The tools' schemas stand in
    the system message, one on each line between ``<tools>`` and ``</tools>``, as models of the
    Hermes and Qwen families are shown them.
    """

    control_ids: Mapping[str, int]
    vocab_size: int
    system_suffix: str
    look_alikes: Sequence[str] = ()

    def render(self, messages: Sequence[Mapping[str, str]], *, asks: bool) -> str:
        """Returns the chat as text."""
        texts = [f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages]
        return "".join([*texts, "<|im_start|>assistant\n"] if asks else texts)


@dataclass(frozen=True, slots=True)
class TemplateLayout:
    """The chat template that comes with a Hugging Face tokenizer."""

    tokenizer: HuggingFaceTokenizer
    source: str
    schemas: Schemas
    look_alikes: Sequence[str]
    system_suffix: str = ""

    @property
    def control_ids(self) -> Mapping[str, int]:
        """The tokenizer's control tokens and their ids."""
        return self.tokenizer.special_tokens

    @property
    def vocab_size(self) -> int:
        """The tokenizer's."""
        return self.tokenizer.vocab_size

    def render(self, messages: Sequence[Mapping[str, str]], *, asks: bool) -> str:
        """Returns the chat as text.

        Raises:
            InvalidArgumentError: The template refuses such a chat.
        """
        try:
            text: str = self.tokenizer.backend.apply_chat_template(
                [dict(message) for message in messages],
                tools=[dict(schema) for schema in self.schemas],
                add_generation_prompt=asks,
                chat_template=self.source,
                tokenize=False,
            )
        except ImportError as error:
            raise MissingDependencyError(
                "chat templates need jinja2; run: pip install 'coding-gym[hf]' 'jinja2>=3.1.6'"
            ) from error
        except Exception as error:  # a template is a program, and raises what it likes
            roles = ", ".join(message["role"] for message in messages)
            raise InvalidArgumentError(
                f"the chat template of {self.tokenizer.name} refuses a chat of {roles} ({error}); "
                "use a tokenizer whose template takes system prompts, tools and their results"
            ) from error
        return text


def get_layout(tokenizer: Tokenizer, schemas: Schemas, call_form: str) -> Layout:
    """Returns the layout for a tokenizer: its own chat template, or ChatML.

    A vocabulary without ``<|im_start|>`` and ``<|im_end|>`` is extended by them: they get the ids
    that follow its last one, as if they had been added to a model's embedding. Spelling them out
    instead would let any file of a repository open a turn.

    Args:
        tokenizer: The policy's.
        schemas: The tools, as OpenAI function schemas.
        call_form: How a call is written, for ChatML to show; templates show their own way.

    Raises:
        InvalidArgumentError: There is a template but none that fits, or no template at all.
    """
    if isinstance(tokenizer, HuggingFaceTokenizer):
        return _template_layout(tokenizer, schemas)
    size = tokenizer.vocab_size
    control_ids = {}
    for token in ("<|im_start|>", "<|im_end|>"):
        control_ids[token] = tokenizer.special_tokens.get(token, size)
        size = max(size, control_ids[token] + 1)
    lines = "\n".join(json.dumps(schema, ensure_ascii=False) for schema in schemas)
    return ChatMLLayout(control_ids, size, _TOOLS.format(schemas=lines, call_form=call_form))


def _template_layout(tokenizer: HuggingFaceTokenizer, schemas: Schemas) -> TemplateLayout:
    backend = tokenizer.backend
    if not backend.chat_template:
        raise InvalidArgumentError(
            f"the tokenizer {tokenizer.name} has no chat template; use one of a chat model, or "
            "save the tokenizer with a template (tokenizer.chat_template = ...)"
        )
    try:
        source = backend.get_chat_template(tools=list(schemas))
    except ValueError as error:  # several templates and none called default
        raise InvalidArgumentError(
            f"the tokenizer {tokenizer.name} has no chat template for tools: {error}"
        ) from error
    added = (str(token) for token in backend.added_tokens_decoder.values() if not token.special)
    marks = tuple(token for token in added if len(token.strip()) > 1 and token in source)
    dated = "strftime_now" in source
    layout = TemplateLayout(tokenizer, _FIXED_DATE + source if dated else source, schemas, marks)
    _check_tools(layout)
    return layout


def _check_tools(layout: TemplateLayout) -> None:
    """Refuses templates that do not show tools, and tools that spell control tokens."""
    name = layout.tokenizer.name
    chat = [{"role": role, "content": "…"} for role in ("system", "user")]
    shown = layout.render(chat, asks=False)
    tools = [schema["function"]["name"] for schema in layout.schemas]
    missing = [tool for tool in tools if not re.search(rf"\b{re.escape(tool)}\b", shown)]
    if missing:
        raise InvalidArgumentError(
            f"the chat template of {name} does not show the tools ({', '.join(missing)}); use a "
            "tokenizer whose template takes tools"
        )
    spelled = json.dumps(list(layout.schemas), ensure_ascii=False)
    forged = next((token for token in layout.control_ids if token in spelled), None)
    if forged is not None:
        raise InvalidArgumentError(
            f"a tool's schema spells {forged}, a control token of {name}; name it differently"
        )
