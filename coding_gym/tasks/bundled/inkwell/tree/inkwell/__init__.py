"""A small Markdown to HTML converter."""

from inkwell.blocks import parse_document
from inkwell.inlines import InlineParser
from inkwell.render import HtmlRenderer

__all__ = ["to_html"]


def to_html(text: str) -> str:
    """The HTML of a Markdown document, without ``<html>`` and ``<body>`` around it."""
    document = parse_document(text)
    return HtmlRenderer(InlineParser(document.references)).render(document.blocks)
