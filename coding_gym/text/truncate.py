"""Truncates text, and replaces lone surrogates.

| function | result |
|---|---|
| `head` | the first characters |
| `ends` | the first and the last characters, with a notice between them |
| `first_names` | the first three names of a list, and the number of other names |
"""

from collections.abc import Sequence


def head(text: str, max_chars: int, suffix: str) -> str:
    """Returns the first ``max_chars`` characters, followed by ``suffix`` if the text is longer.

    ``max_chars`` does not include the suffix.

    >>> head("abcdef", 4, "...")
    'abcd...'
    """
    return text if len(text) <= max_chars else text[:max_chars] + suffix


def ends(text: str, max_chars: int, middle: str) -> str:
    """Returns the first and the last characters, ``max_chars`` in total, around ``middle``.

    If ``max_chars`` is odd, the head is one character longer than the tail. ``max_chars`` does not
    include the middle, in which ``{omitted}`` is replaced by the number of omitted characters.
    mini-swe-agent truncates long outputs in the same way.

    >>> ends("abcdefghij", 4, " [{omitted} more] ")
    'ab [6 more] ij'
    >>> ends("abcd", 4, "...")
    'abcd'
    """
    if len(text) <= max_chars:
        return text
    first, last = split_ends(text, max_chars)
    return first + middle.replace("{omitted}", str(len(text) - max_chars)) + last


def first_names(names: Sequence[str]) -> str:
    """Returns the first three names, followed by the number of the other names.

    >>> first_names(["a", "b", "c", "d"])
    'a, b, c and 1 more'
    """
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def split_ends(text: str, max_chars: int) -> tuple[str, str]:
    """Returns the head and the tail of `ends`; ``text`` needs at least ``max_chars`` characters.

    >>> split_ends("abcdefghij", 5)
    ('abc', 'ij')
    """
    num_last = max_chars // 2
    return text[: max_chars - num_last], text[len(text) - num_last :]


def well_formed(text: str) -> str:
    """Returns a text with lone surrogates replaced by U+FFFD, and surrogate pairs by characters.

    JSON escapes and wrong decoding produce surrogates, which UTF-8 cannot encode.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
