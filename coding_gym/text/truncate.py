"""Truncates text, and replaces lone surrogates.

| name | keeps |
|---|---|
| `head` | the first characters |
| `ends` | the first and the last characters, around a text with the number of missing ones |
"""


def head(text: str, max_chars: int, suffix: str) -> str:
    """Returns the first ``max_chars`` characters, followed by ``suffix`` if any were removed.

    The suffix is not counted, so the result may be ``max_chars + len(suffix)`` characters long.

    >>> head("abcdef", 4, "...")
    'abcd...'
    """
    return text if len(text) <= max_chars else text[:max_chars] + suffix


def ends(text: str, max_chars: int, middle: str) -> str:
    """Returns the first and the last characters, ``max_chars`` in all, around ``middle``.

    If ``max_chars`` is odd, the head is one longer. The middle is not counted; ``{omitted}`` in it
    becomes the number of removed characters. mini-swe-agent truncates long outputs in this way.

    >>> ends("abcdefghij", 4, " [{omitted} more] ")
    'ab [6 more] ij'
    >>> ends("abcd", 4, "...")
    'abcd'
    """
    if len(text) <= max_chars:
        return text
    first, last = split_ends(text, max_chars)
    return first + middle.replace("{omitted}", str(len(text) - max_chars)) + last


def split_ends(text: str, max_chars: int) -> tuple[str, str]:
    """Returns the two pieces that `ends` keeps of a text of ``max_chars`` characters or more.

    >>> split_ends("abcdefghij", 5)
    ('abc', 'ij')
    """
    num_last = max_chars // 2
    return text[: max_chars - num_last], text[len(text) - num_last :]


def well_formed(text: str) -> str:
    """Returns ``text`` with lone surrogates replaced by U+FFFD; pairs become their character.

    JSON escapes and wrong decoding produce surrogates, which UTF-8 cannot encode.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
