"""What is kept of a chat that is too long: its tail, or its two ends."""

import re
from typing import Any

import pytest

from coding_gym.text.chat import Chat, get_layout
from coding_gym.text.chat_history import ChatIds
from coding_gym.text.tokenizers import get_tokenizer

TOKENIZER = get_tokenizer()
OPENING = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Mend it."},
]
PROMPT = "<|im_start|>assistant\n"
NOTICE = re.compile(r"Mend it\.\n\n\[(\d+) messages of this chat are left out here\.\]<\|im_end\|>")


@pytest.fixture
def chat() -> Chat:
    return Chat(TOKENIZER, get_layout(TOKENIZER, []))


def turn(number: int, num_tools: int = 1, size: int = 1) -> list[dict[str, str]]:
    tools = [{"role": "tool", "content": f"out {number} " * size} for _ in range(num_tools)]
    return [{"role": "assistant", "content": f"call {number}"}, *tools]


def growing(chat: Chat, max_tokens: int, turns: list[Any], overflow: str = "ends") -> list[Any]:
    """Returns the ids after the opening and after every turn."""
    ids = ChatIds(chat, max_tokens, overflow)
    ids.extend(OPENING, [])
    seen = [ids.ids(asks=True)]
    for messages in turns:
        ids.extend(messages, [TOKENIZER.encode(messages[0]["content"])])
        seen.append(ids.ids(asks=True))
    return seen


def test_a_chat_that_fits_is_the_same_either_way(chat: Chat) -> None:
    turns = [turn(i) for i in range(5)]
    ends, tail = (growing(chat, 5000, turns, overflow) for overflow in ("ends", "tail"))
    assert [ids.tolist() for ids in ends] == [ids.tolist() for ids in tail]


@pytest.mark.parametrize("max_tokens", [200, 233, 300])
def test_the_prompt_and_the_newest_whole_turns_are_kept(chat: Chat, max_tokens: int) -> None:
    turns = [turn(i, num_tools=1 + i % 3, size=1 + i % 4) for i in range(30)]
    for number, ids in enumerate(growing(chat, max_tokens, turns)):
        text = TOKENIZER.decode(ids.tolist())
        assert len(ids) <= max_tokens
        assert text.startswith("<|im_start|>system\nBe brief.")
        assert text.endswith(PROMPT)
        notice = NOTICE.search(text)
        first = int(text.partition(f"{PROMPT}call ")[2].partition("<")[0]) if number else 0
        left_out = sum(map(len, turns[:first]))
        assert (int(notice[1]) if notice else 0) == left_out
        behind = text.partition("Mend it.")[2].partition("<|im_end|>\n")[2]
        assert behind == "".join(map(spelled, turns[first:number])) + PROMPT
        if first:  # one turn more would not have fitted
            assert len(ids) + len(TOKENIZER.encode(spelled(turns[first - 1]))) > max_tokens - 20


def spelled(messages: list[dict[str, str]]) -> str:
    return "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)


def test_kept_ids_are_those_of_the_whole_chat(chat: Chat) -> None:
    turns = [turn(i, size=3) for i in range(12)]
    *_, whole = growing(chat, 50_000, turns)
    *_, ends = growing(chat, 250, turns)
    start = TOKENIZER.special_tokens["<|im_start|>"]
    behind = [i for i, token in enumerate(ends.tolist()) if token == start][2]
    assert ends.tolist()[behind:] == whole.tolist()[behind - len(ends) :]


def test_a_newest_turn_too_long_is_cut_at_its_start(chat: Chat) -> None:
    turns = [turn(0), turn(1), turn(2, size=400)]
    *_, ids = growing(chat, 200, turns)
    text = TOKENIZER.decode(ids.tolist())
    assert len(ids) == 200
    assert NOTICE.search(text)
    assert text.endswith(f"out 2 <|im_end|>\n{PROMPT}")
