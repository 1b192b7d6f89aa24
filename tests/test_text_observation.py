from coding_gym.text.observation import observed_ids
from coding_gym.text.tokenizers import get_tokenizer

LONG = " ".join(str(i) for i in range(200))


def test_a_long_task_keeps_its_beginning_with_a_mark() -> None:
    tokenizer = get_tokenizer()
    ids, is_cut = observed_ids(LONG, tokenizer, 100, keep="head")
    assert (len(ids), is_cut) == (100, True)
    text = tokenizer.decode(ids)
    assert text.startswith("0 1 2 3 4 5")
    assert text.endswith("\n[… the rest of the text is cut off here …]")
    assert observed_ids(LONG, tokenizer, 3, keep="head")[0] == list(tokenizer.encode(LONG))[:3]
