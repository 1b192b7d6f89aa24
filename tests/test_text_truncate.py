import doctest
import re

import pytest

from coding_gym.text import truncate
from coding_gym.text.truncate import KEEPS, cut


@pytest.mark.parametrize("keep", KEEPS)
def test_a_cut_text_keeps_its_bound_and_counts_the_rest(keep: str) -> None:
    for length in (0, 1, 40, 99, 100, 101, 1000, 1035, 12_345):
        text = "".join(chr(0x4E00 + i) for i in range(length))
        for max_chars in (0, 1, 30, 60, 100, 1000):
            kept = cut(text, max_chars, keep)
            assert len(kept) <= max_chars
            notice = re.search(r"\n?\[… (\d+) characters left out …\]\n?", kept)
            if len(text) <= max_chars:
                assert kept == text
            elif notice:
                first, last = kept.split(notice[0])
                assert text.startswith(first)
                assert text.endswith(last)
                assert len(first) + len(last) + int(notice[1]) == length
                assert (first != "", last != "") == (keep != "tail", keep != "head")
            else:
                assert len(kept) == max_chars < 40


def test_the_documented_examples_are_true() -> None:
    result = doctest.testmod(truncate)
    assert (result.failed, result.attempted > 4) == (0, True)
