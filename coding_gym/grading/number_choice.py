"""Chooses near misses of a number that are as probable in a test as the number itself.

The probability of a number follows from Benford's law and from how often the file contains it. A
reader of a number and of such a near miss cannot infer which of them is the original.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from math import log10
from random import Random

_WORDS = re.compile(r"[^\W\d_]+|\d+")
_MAX_DIGITS = 9
_WEIGHT = 6.0  # Benford's law has the same weight as this many occurrences in the file


@dataclass(frozen=True)
class Surroundings:
    """The code around an expected number, from which a reader may guess the number.

    Attributes:
        function: Source of the test, without the number.
        file: Source of the test file, without the number.
        line: The line of the number, without the number.
        outputs: Values that the base compares, as text.
    """

    function: str
    file: str
    line: str
    outputs: str

    def choose(self, original: str, others: Sequence[str], rng: Random) -> tuple[str, bool]:
        """Chooses a near miss of a literal at random.

        Args:
            original: Source of a literal that contains a number.
            others: Sources of the same literal with another number.
            rng: Source of random choices.

        Returns:
            One of ``others``, and whether it can be a bit: a reader of this source and of the
            original cannot infer which of them is the original.
        """
        similar_sources = [other for other in others if self._are_similar(original, other)]
        if not similar_sources:
            return rng.choice(others), False
        weights = [self._weight(other, original) for other in similar_sources]
        original_weight = self._weight(original, similar_sources[0])
        total = sum([original_weight, *weights])
        smallest_share = min(original_weight, *weights) / total
        # Rejection sampling makes a bit of these two numbers as probable as a bit of the same two
        # numbers in exchanged roles.
        is_as_probable = rng.random() * (1 - smallest_share) < 1 - original_weight / total
        return rng.choices(similar_sources, weights)[0], is_as_probable

    def _weight(self, text: str, other: str) -> float:
        """Returns the relative probability of the number in ``text`` that differs in ``other``."""
        (number,) = map(str, _integers(new_words(text, other)))
        return _WEIGHT * log10(1 + 1 / int(number[0])) + self._words["file"][number]

    def _are_similar(self, left: str, right: str) -> bool:
        """Returns whether two sources differ only in a short number with the same features."""
        words, other_words = new_words(left, right), new_words(right, left)
        if len(left) != len(right) or _WORDS.sub("", left) != _WORDS.sub("", right):
            return False  # the signs or the numbers of digits differ
        if (len(words), len(_integers(words + other_words))) != (1, 2):
            return False
        return self._features(words[0]) == self._features(other_words[0])

    def _features(self, word: str) -> tuple[int, ...]:
        """Returns facts from which a reader could infer whether a number is the original."""
        number = int(word)
        return (
            word in self._words["outputs"],
            word in self._words["function"],
            number in self._sums["function"],
            number in self._sums["line"],
            number == 0,
            word.startswith("0"),  # padded with zeros
            len(word) - len(word.rstrip("0")),  # round
        )

    @cached_property
    def _words(self) -> dict[str, Counter[str]]:
        """The number of occurrences of each word in an attribute, by attribute."""
        return {name: Counter(_WORDS.findall(text)) for name, text in asdict(self).items()}

    @cached_property
    def _sums(self) -> dict[str, set[int]]:
        """The sums and differences of every two numbers in an attribute, by attribute."""
        sums: dict[str, set[int]] = {}
        for name in ("function", "line"):
            pairs = [*product(_integers(self._words[name]), repeat=2)]
            sums[name] = {a + b for a, b in pairs} | {a - b for a, b in pairs}
        return sums


def new_words(text: str, other: str) -> list[str]:
    """Returns the words of ``text`` that ``other`` does not have, or has less often."""
    num_missing = Counter(_WORDS.findall(text)) - Counter(_WORDS.findall(other))
    return [*num_missing.elements()]


def _integers(words: Iterable[str]) -> list[int]:
    return [int(word) for word in words if word.isdecimal() and len(word) <= _MAX_DIGITS]
