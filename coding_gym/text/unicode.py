"""Text that every encoder accepts."""


def well_formed(text: str) -> str:
    """Returns ``text`` with lone surrogates replaced by U+FFFD; pairs become their character.

    JSON escapes and careless decoding produce surrogates, and UTF-8 has no form for them.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
