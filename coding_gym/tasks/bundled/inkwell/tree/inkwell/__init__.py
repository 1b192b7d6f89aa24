"""A small Markdown to HTML converter."""

from inkwell.blocks import parse_document
from inkwell.inlines import InlineParser
from inkwell.render import HtmlRenderer

__all__ = ["to_html"]


def to_html(text: str) -> str:
    """The HTML of a Markdown document, without ``<html>`` and ``<body>`` around it."""
    document = parse_document(text)
    inlines = InlineParser(document.references, document.notes)
    return HtmlRenderer(inlines).render_document(document)
