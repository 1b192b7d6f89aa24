"""One small program, its bug, its repair and the tests that tell."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Gold:
    """A program of one file, its repair, and the hidden tests of it.

    Attributes:
        right: The repaired source.
        bug: What stands in the source before, in the place of ``fix``.
        fix: What the repair puts there.
        tests: The hidden test file.
        broken: Names of the tests that the bug breaks.
    """

    right: str
    fix: str
    bug: str
    tests: str
    broken: tuple[str, ...]
