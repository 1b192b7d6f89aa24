"""Chats as token ids: ChatML, and chat templates of local Hugging Face tokenizers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from model_server import TEMPLATE, save_tokenizer

from coding_gym.errors import InvalidArgumentError
from coding_gym.text.chat import Chat, get_chat, get_layout
from coding_gym.text.chat_history import ChatIds
from coding_gym.text.tokenizers import Tokenizer, get_tokenizer

Messages = list[dict[str, str]]

SCHEMAS = [
    {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {}}}
]
OPENING: Messages = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "It is broken.\n"},
]
REPLY = {"role": "assistant", "content": '{"name": "look", "arguments": {}}'}
ANSWERS: Messages = [
    {"role": "tool", "content": "  x = (1)", "tool_call_id": "call_0"},
    {"role": "tool", "content": "", "tool_call_id": "call_1"},
]


def chat_of(tokenizer: Tokenizer) -> Chat:
    return Chat(tokenizer, get_layout(tokenizer, SCHEMAS))


def transcript(
    chat: Chat,
    messages: Sequence[dict[str, str]],
    sampled: Sequence[Sequence[int]],
    with_prompt: bool = True,
    max_tokens: int = 10_000,
) -> list[int]:
    ids = ChatIds(chat)
    ids.extend(messages, sampled)
    return [int(i) for i in ids.ids(max_tokens, with_prompt=with_prompt)]


@pytest.fixture
def chat() -> Chat:
    return chat_of(get_tokenizer())


@pytest.fixture
def saved(tmp_path: Path) -> Any:
    """A function that saves a tokenizer with a chat template, and loads the tokenizer."""
    return lambda template: get_tokenizer(
        save_tokenizer(tmp_path, template, eos_token="<|im_end|>")  # noqa: S106 - no password
    )


def test_a_reply_keeps_its_sampled_ids_and_is_closed_once(chat: Chat) -> None:
    end = chat.tokenizer.special_tokens["<|im_end|>"]
    sampled = [5, 5, 5, 9]
    for ids in (sampled, [*sampled, end]):
        opening = transcript(chat, OPENING, [])
        after = transcript(chat, [*OPENING, REPLY, *ANSWERS], [ids])
        assert after[: len(opening) + len(sampled) + 1] == [*opening, *sampled, end]
        assert after[len(opening) + len(sampled) + 1] != end
    assert transcript(chat, [*OPENING, REPLY], [[]], with_prompt=False)[len(opening)] == end


def test_an_observed_chat_only_grows(chat: Chat) -> None:
    growing = ChatIds(chat)
    growing.extend(OPENING, [])
    for _ in range(3):
        before = growing.ids(10_000).tolist()
        growing.extend([REPLY, *ANSWERS], [[7, 8]])
        assert growing.ids(10_000).tolist()[: len(before) + 2] == [*before, 7, 8]
    at_once = transcript(chat, [*OPENING, *[REPLY, *ANSWERS] * 3], [[7, 8]] * 3)
    assert growing.ids(10_000).tolist() == at_once


@pytest.mark.parametrize("start", [OPENING, [*OPENING, REPLY, *ANSWERS]])
def test_a_notice_after_the_last_reply_is_added(chat: Chat, start: list[dict[str, str]]) -> None:
    growing, notice = ChatIds(chat), {"role": "user", "content": "Excluded: .venv"}
    sampled = [[7, 8]] * (REPLY in start)
    growing.extend(start, sampled)
    growing.extend([notice], [])
    assert growing.ids(10_000).tolist() == transcript(chat, [*start, notice], sampled)


def test_a_long_chat_keeps_its_newest_ids(chat: Chat) -> None:
    messages = [*OPENING, REPLY, *ANSWERS]
    whole = transcript(chat, messages, [[7, 8]])
    for max_tokens in (1, 2, 10, len(whole)):
        assert transcript(chat, messages, [[7, 8]], max_tokens=max_tokens) == whole[-max_tokens:]


@pytest.mark.slow
def test_ids_of_a_template_equal_those_of_its_whole_text(saved: Any) -> None:
    tokenizer = saved(TEMPLATE)
    chat = chat_of(tokenizer)
    for messages in (OPENING, [*OPENING, REPLY, *ANSWERS], [*OPENING, REPLY, OPENING[1]]):
        for with_prompt in (True, False):
            expected = tokenizer.backend.apply_chat_template(
                messages, tools=SCHEMAS, add_generation_prompt=with_prompt, return_dict=False
            )
            sampled = [tokenizer.encode(REPLY["content"])] * (REPLY in messages)
            assert transcript(chat, messages, sampled, with_prompt=with_prompt) == expected


@pytest.mark.slow
def test_a_template_that_prints_the_date_prints_a_fixed_one(saved: Any) -> None:
    tokenizer = saved('{{- strftime_now("%d %b %Y") }}' + TEMPLATE)
    text = tokenizer.decode(transcript(chat_of(tokenizer), OPENING, []))
    assert text.startswith("2024-01-01<|im_start|>system")


def test_a_template_without_tools_is_refused_for_auto(saved: Any) -> None:
    tokenizer = saved(TEMPLATE.replace("tools | tojson", "''"))
    with pytest.raises(InvalidArgumentError):
        get_chat(tokenizer, SCHEMAS)
    assert get_chat(tokenizer, SCHEMAS, "hermes").opening(OPENING).ids


def test_a_template_omits_the_tools_of_an_explained_format(saved: Any) -> None:
    tokenizer = saved(TEMPLATE)
    explained = get_chat(tokenizer, SCHEMAS, "pythonic").opening(OPENING)
    expected = tokenizer.backend.apply_chat_template(OPENING, return_dict=False)
    assert explained.ids == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "template",
    [
        None,
        TEMPLATE.replace("+ message.content", "+ message.content.replace('a', 'b')"),
        TEMPLATE.replace('message.role == "tool"', 'message.role == "tool" and false').replace(
            "{%- else %}", '{%- elif message.role != "tool" %}'
        ),
        "{{ tools | tojson }}{% if messages[0].role == 'system' %}"
        "{{ raise_exception('no system prompts') }}{% endif %}",
    ],
    ids=["none", "rewrites", "drops results", "raises"],
)
def test_a_template_that_does_not_fit_is_refused(saved: Any, template: str | None) -> None:
    with pytest.raises(InvalidArgumentError):
        chat_of(saved(template))
