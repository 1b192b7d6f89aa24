"""Draws near misses of a number that are as probable in a test as the number itself.

The probability of a number comes from Benford's law and from the number of its uses in the file.
Such a near miss does not let a reader of both numbers infer which number is the original.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log10
from random import Random

_WORDS = re.compile(r"[^\W\d_]+|\d+")
_MAX_DIGITS = 9
_WEIGHT = 6.0  # Benford's law counts as much as this many uses of a number in the file


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

    def drawn(self, original: str, others: Sequence[str], rng: Random) -> tuple[str, bool]:
        """Draws one of ``others`` to replace a literal.

        Args:
            original: Source of a literal that contains a number.
            others: Sources of the same literal with another number.
            rng: Source of random choices.

        Returns:
            The drawn source, and whether the pair can be a bit: a reader of both sources cannot
            infer which source is the original.
        """
        similar = [other for other in others if self._are_similar(original, other)]
        if not similar:
            return rng.choice(others), False
        weights = [self._weight(original, similar[0])]
        weights += [self._weight(other, original) for other in similar]
        shares = [weight / sum(weights) for weight in weights]
        # Rejection sampling makes the pair (original, replacement) as probable as the pair with the
        # two numbers exchanged, so a reader of both cannot infer which number is the original.
        is_as_probable = rng.random() * (1 - min(shares)) < 1 - shares[0]
        return rng.choices(similar, weights[1:])[0], is_as_probable

    def _weight(self, text: str, other: str) -> float:
        (number,) = _integers(new_words(text, other)) or [0]
        benford = log10(1 + 1 / int(str(number)[0])) if number else 0.0
        return _WEIGHT * benford + self._uses[1][str(number)]

    def _are_similar(self, left: str, right: str) -> bool:
        lefts, rights = new_words(left, right), new_words(right, left)
        if len(lefts) != 1 or len(rights) != 1 or not (lefts[0] + rights[0]).isdecimal():
            return False
        if len(left) != len(right) or _WORDS.sub("", left) != _WORDS.sub("", right):
            return False  # one has another sign, or more digits
        return self._features(lefts[0]) == self._features(rights[0])

    def _features(self, word: str) -> tuple[object, ...]:
        """Returns facts from which a reader could infer whether a number is the original."""
        function, _, outputs = self._uses
        number = int(word) if len(word) <= _MAX_DIGITS else 0
        return (
            bool(outputs[word]),
            bool(function[word]),
            number in self._sums[0],
            number in self._sums[1],
            number == 0,
            word.startswith("0"),  # padded with zeros
        )

    @cached_property
    def _uses(self) -> list[Counter[str]]:
        texts = self.function, self.file, self.outputs
        return [Counter(_WORDS.findall(text)) for text in texts]

    @cached_property
    def _sums(self) -> list[set[int]]:
        groups = _integers(self._uses[0]), _integers(_WORDS.findall(self.line))
        return [{a + s * b for a in group for b in group for s in (1, -1)} for group in groups]


def new_words(text: str, other: str) -> list[str]:
    """Returns the words of ``text`` that ``other`` does not have, or has less often."""
    return [*(Counter(_WORDS.findall(text)) - Counter(_WORDS.findall(other))).elements()]


def _integers(words: Iterable[str]) -> list[int]:
    return [int(word) for word in words if word.isdecimal() and len(word) <= _MAX_DIGITS]
