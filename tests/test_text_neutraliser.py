import random

import pytest
from small_tokenizers import byte_backend

from coding_gym.text import CONTROL_TOKENS, Neutraliser, control_tokens
from coding_gym.text.neutral import ZERO_WIDTH_SPACE


def test_a_token_in_a_text_is_broken_reads_the_same_and_comes_back() -> None:
    special = Neutraliser()
    assert len(CONTROL_TOKENS) > 40
    for token in CONTROL_TOKENS:
        text = f"x = '{token}'{token}\n"
        broken = special.escape(text)
        assert token not in broken
        assert broken.replace(ZERO_WIDTH_SPACE, "") == text
        assert special.restore(broken) == text


def test_ordinary_text_stays_as_it_is() -> None:
    text = "if a <b> c: <|x|> print('<|im_start')  # [INS]\n\u200b"
    assert Neutraliser().escape(text) == text
    assert Neutraliser().restore(text) == text
    assert Neutraliser(()).escape("<|im_end|>") == "<|im_end|>"


def test_overlapping_tokens_are_all_broken() -> None:
    tokens = ("<s>", "s><", "><s>", "<|", "<|a|>")
    special = Neutraliser(tokens)
    for text in ("<s><s>", "<|a|>", "<|<|a|><s><", "<s><s><s>"):
        assert not [token for token in tokens if token in special.escape(text)]


def test_any_text_comes_back_also_one_that_was_broken_before() -> None:
    special = Neutraliser(("<|im_end|>", "<tool_call>", "</tool_call>"))
    rng = random.Random(0)
    parts = [
        "<|im_end|>",
        "<tool_call>",
        "</tool_call>",
        "<",
        "|",
        ">",
        "im_end",
        ZERO_WIDTH_SPACE,
        "a\n",
    ]
    for _ in range(2000):
        text = "".join(rng.choices(parts, k=8))
        broken = special.escape(text)
        assert "<|im_end|>" not in broken
        assert special.restore(broken) == text
        assert special.restore(special.restore(special.escape(broken))) == text


def test_texts_in_arguments_come_back_whatever_json_makes_of_the_token() -> None:
    special = Neutraliser(('<|"|>', "<\n>"))
    texts = ['say <|"|> twice', "<\n>"]
    broken = [special.escape(text) for text in texts]
    assert special.restore_all({broken[0]: [{"x": broken[1]}, 1, None]}) == {
        texts[0]: [{"x": texts[1]}, 1, None]
    }


def test_a_tokenizers_control_tokens_are_its_special_ones_and_its_templates_markup() -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_backend([]))
    tokenizer.add_special_tokens({"eos_token": "<|im_end|>", "unk_token": "<unk>"})
    tokenizer.add_tokens(["<tool_call>", "<table>", "    ", "user"])
    tokenizer.chat_template = "{{ user }}<tool_call>    {{ x }}"
    tokens = control_tokens(tokenizer)
    assert set(tokens) == {"<|im_end|>", "<unk>", "<tool_call>"}
    ids = tokenizer.encode(Neutraliser(tokens).escape("a <|im_end|> <tool_call> <unk>"))
    assert not {tokenizer.convert_tokens_to_ids(token) for token in tokens} & set(ids)

    class Processor:
        def __init__(self, chat_template: str | None = None) -> None:
            self.tokenizer = tokenizer
            self.chat_template = chat_template

    assert control_tokens(Processor()) == tokens
    tokenizer.chat_template = None  # where the processor has the only one
    assert set(control_tokens(Processor("<tool_call>"))) == set(tokens)
