"""Text cut to a length, and without lone surrogates.

| name | keeps |
|---|---|
| `head` | the first characters |
| `ends` | the first and the last ones, with a text between them that says how many are missing |
| `cut` | the first, the last or both, within a bound that includes the notice |
"""

KEEPS = ("head", "tail", "ends")
"""What `cut` can keep of a text."""

_LEFT_OUT = "[… {left_out} characters left out …]"


def head(text: str, max_chars: int, suffix: str) -> str:
    """Returns the first ``max_chars`` characters, followed by ``suffix`` where that left any out.

    The suffix comes on top, so the result may be ``max_chars + len(suffix)`` characters long.

    >>> head("abcdef", 4, "...")
    'abcd...'
    """
    return text if len(text) <= max_chars else text[:max_chars] + suffix


def ends(text: str, max_chars: int, middle: str) -> str:
    """Returns the first and the last characters, ``max_chars`` in all, around ``middle``.

    Where ``max_chars`` is odd the head has one more. The middle comes on top; ``{left_out}`` in it
    becomes the number of characters that are missing. mini-swe-agent shows long outputs so.

    >>> ends("abcdefghij", 4, " [{left_out} more] ")
    'ab [6 more] ij'
    >>> ends("abcd", 4, "...")
    'abcd'
    """
    if len(text) <= max_chars:
        return text
    first, last = split_ends(text, max_chars)
    return first + middle.replace("{left_out}", str(len(text) - max_chars)) + last


def split_ends(text: str, max_chars: int) -> tuple[str, str]:
    """Returns the two pieces that `ends` leaves of a text of ``max_chars`` characters or more.

    >>> split_ends("abcdefghij", 5)
    ('abc', 'ij')
    """
    num_last = max_chars // 2
    return text[: max_chars - num_last], text[len(text) - num_last :]


def cut(text: str, max_chars: int, keep: str) -> str:
    r"""Returns a text of at most ``max_chars`` characters that says where it is not all of it.

    The notice has a line of its own, and is left out where it would not fit.

    >>> cut("a" * 99 + "b" * 99, 60, "ends")
    'aaaaaaaaaaaaaaa\n[… 169 characters left out …]\nbbbbbbbbbbbbbb'
    >>> cut("a" * 99 + "b" * 99, 5, "tail")
    'bbbbb'

    Args:
        text: Any text.
        max_chars: The most characters that are returned.
        keep: One of `KEEPS`.
    """
    if len(text) <= max_chars:
        return text
    notice = "\n" * (keep != "tail") + _LEFT_OUT + "\n" * (keep != "head")
    num_kept = max_chars - len(notice.format(left_out=len(text)))
    if num_kept < 1:
        num_kept, notice = max_chars, ""
    notice = notice.format(left_out=len(text) - num_kept)
    if keep == "tail":
        return notice + text[len(text) - num_kept :]
    return (head if keep == "head" else ends)(text, num_kept, notice)


def well_formed(text: str) -> str:
    """Returns ``text`` with lone surrogates replaced by U+FFFD; pairs become their character.

    JSON escapes and careless decoding produce surrogates, and UTF-8 has no form for them.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
