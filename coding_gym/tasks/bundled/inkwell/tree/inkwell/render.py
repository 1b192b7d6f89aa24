"""Nodes to HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from itertools import chain, count

from inkwell import nodes
from inkwell.inlines import InlineParser, plain_text

_NOT_IN_SLUG = re.compile(r"[^\w\- ]+")


class HtmlRenderer:
    """Writes the HTML of one document; ids are unique within it."""

    def __init__(self, inlines: InlineParser) -> None:
        self._inlines = inlines
        self._slugs: set[str] = set()
        # By label, in the order of the numbers: the ids of all places that refer to the note.
        self._places: dict[str, list[str]] = {}

    def render_document(self, document: nodes.Document) -> str:
        return self.render(document.blocks) + self._notes(document.notes)

    def render(self, blocks: list[nodes.Block]) -> str:
        return "".join(self._block(block) + "\n" for block in blocks)

    def _block(self, block: nodes.Block) -> str:
        match block:
            case nodes.Paragraph(text):
                return f"<p>{self._text(text)}</p>"
            case nodes.Heading(level, text):
                slug = self._slug(plain_text(self._inlines.parse(text)))
                return f'<h{level} id="{escape(slug)}">{self._text(text)}</h{level}>'
            case nodes.CodeBlock(language, code):
                name = f' class="language-{escape(language)}"' if language else ""
                return f"<pre><code{name}>{escape(code, quote=False)}</code></pre>"
            case nodes.Rule():
                return "<hr>"
            case nodes.Quote(blocks):
                return f"<blockquote>\n{self.render(blocks)}</blockquote>"
            case nodes.ItemList():
                return self._list(block)

    def _list(self, block: nodes.ItemList) -> str:
        if block.start is None:
            opening, closing = "<ul>", "</ul>"
        else:
            start = "" if block.start == 1 else f' start="{block.start}"'
            opening, closing = f"<ol{start}>", "</ol>"
        items = (f"<li>{self._item(item, block.tight)}</li>\n" for item in block.items)
        return f"{opening}\n{''.join(items)}{closing}"

    def _item(self, blocks: list[nodes.Block], tight: bool) -> str:
        """An item's HTML; the paragraphs of a tight list go without ``<p>``."""
        if not tight:
            return "\n" + self.render(blocks)
        parts = [
            self._text(block.text) if isinstance(block, nodes.Paragraph) else self._block(block)
            for block in blocks
        ]
        html = "\n".join(parts)
        return html if len(parts) < 2 else html + "\n"

    def _slug(self, title: str) -> str:
        slug = "-".join(_NOT_IN_SLUG.sub("", title.lower()).split()) or "section"
        numbered = (f"{slug}-{number}" for number in count(1))
        free = next(name for name in chain([slug], numbered) if name not in self._slugs)
        self._slugs.add(free)
        return free

    def _notes(self, notes: Mapping[str, str]) -> str:
        """The notes that are referred to, by the text or by each other, with links back."""
        texts: list[str] = []
        while len(texts) < len(self._places):
            label = list(self._places)[len(texts)]
            texts.append(self._text(notes[label]))
        items = [
            f'<li id="fn:{number}">{text} {" ".join(map(_link_back, places))}</li>\n'
            for number, (text, places) in enumerate(
                zip(texts, self._places.values(), strict=True), start=1
            )
        ]
        return f'<ol class="notes">\n{"".join(items)}</ol>\n' if items else ""

    def _note_reference(self, label: str) -> str:
        places = self._places.setdefault(label, [])
        number = list(self._places).index(label) + 1
        places.append(f"fnref:{number}-{len(places) + 1}" if places else f"fnref:{number}")
        return f'<sup id="{places[-1]}"><a href="#fn:{number}">{number}</a></sup>'

    def _text(self, text: str) -> str:
        return self._inline(self._inlines.parse(text))

    def _inline(self, inlines: list[nodes.Inline]) -> str:
        return "".join(self._node(node) for node in inlines)

    def _node(self, node: nodes.Inline) -> str:
        match node:
            case nodes.Text(text):
                return escape(text, quote=False)
            case nodes.Code(text):
                return f"<code>{escape(text, quote=False)}</code>"
            case nodes.Break():
                return "<br>\n"
            case nodes.NoteReference(label):
                return self._note_reference(label)
            case nodes.Emphasis(children):
                return f"<em>{self._inline(children)}</em>"
            case nodes.Strong(children):
                return f"<strong>{self._inline(children)}</strong>"
            case nodes.Link(target, children):
                title = "" if target.title is None else f' title="{escape(target.title)}"'
                return f'<a href="{escape(target.href)}"{title}>{self._inline(children)}</a>'


def _link_back(place: str) -> str:
    return f'<a href="#{place}">back</a>'
