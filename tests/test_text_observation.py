import numpy as np

from coding_gym.text.observation import observed_ids, pad
from coding_gym.text.tokenizers import get_tokenizer

LONG = " ".join(str(i) for i in range(200))


def test_short_text_is_padded_on_the_right() -> None:
    tokenizer = get_tokenizer()
    ids = list(tokenizer.encode("one failing test"))
    assert observed_ids("one failing test", tokenizer, len(ids)) == (ids, False)
    observation = pad(ids, tokenizer.pad_id, 16)
    assert observation["input_ids"].dtype == np.int32
    assert observation["attention_mask"].dtype == np.int8
    assert observation["input_ids"].tolist() == ids + [tokenizer.pad_id] * (16 - len(ids))
    assert observation["attention_mask"].tolist() == [1] * len(ids) + [0] * (16 - len(ids))
    assert pad([], tokenizer.pad_id, 2)["attention_mask"].tolist() == [0, 0]


def test_long_text_keeps_its_tail() -> None:
    tokenizer = get_tokenizer()
    assert observed_ids(LONG, tokenizer, 8) == (list(tokenizer.encode(LONG))[-8:], True)


def test_a_long_task_keeps_its_beginning_with_a_mark() -> None:
    tokenizer = get_tokenizer()
    ids, is_cut = observed_ids(LONG, tokenizer, 100, keep="head")
    assert (len(ids), is_cut) == (100, True)
    text = tokenizer.decode(ids)
    assert text.startswith("0 1 2 3 4 5")
    assert text.endswith("\n[… the rest of the text is cut off here …]")
    assert observed_ids(LONG, tokenizer, 3, keep="head")[0] == list(tokenizer.encode(LONG))[:3]
