"""Lines to blocks."""

from __future__ import annotations

import re

from inkwell import nodes

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_FENCE = re.compile(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})[ \t]*(.*?)[ \t]*$")
_FENCE_END = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*$")
_QUOTE = re.compile(r" {0,3}> ?")
_ITEM = re.compile(r"( {0,3})([-*+]|(\d{1,9})[.)])(?:( {1,4})(?=\S)|[ \t]*$)")
_REFERENCE = re.compile(
    r" {0,3}\[(?P<label>[^\[\]]+)\]:[ \t]*"
    r"(?:<(?P<bracketed>[^<>]*)>|(?P<href>\S+))"
    r"""(?:[ \t]+(?P<quote>["'])(?P<title>.*)(?P=quote))?[ \t]*$"""
)

_NOTE = re.compile(r" {0,3}\[\^(?P<label>[^\[\]]+)\]:[ \t]*(?P<text>.*)$")


def parse_document(text: str) -> nodes.Document:
    """The blocks of a whole text, and the link references and footnotes it defines."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4).split("\n")
    document = nodes.Document([], {}, {})
    document.blocks.extend(_BlockParser(lines, document).parse())
    return document


class _BlockParser:
    """Reads the lines of one container: the document, a quote, or a list item."""

    def __init__(self, lines: list[str], document: nodes.Document) -> None:
        self.lines = lines
        self.document = document
        self.pos = 0

    def parse(self) -> list[nodes.Block]:
        blocks: list[nodes.Block] = []
        while self.pos < len(self.lines):
            line = self.lines[self.pos]
            if self._note(line):
                continue
            if not line.strip() or self._reference(line):
                self.pos += 1
            else:
                blocks.append(self._block(line))
        return blocks

    def _block(self, line: str) -> nodes.Block:
        if opening := _FENCE.match(line):
            return self._code_block(opening)
        if heading := _HEADING.match(line):
            self.pos += 1
            return nodes.Heading(len(heading[1]), (heading[2] or "").strip())
        if _RULE.match(line):
            self.pos += 1
            return nodes.Rule()
        if _QUOTE.match(line):
            return self._quote()
        if _ITEM.match(line):
            return self._list()
        return self._paragraph()

    def _reference(self, line: str) -> bool:
        """Whether ``line`` defines a reference; the first definition of a label counts."""
        found = _REFERENCE.match(line)
        if found is None or not found["label"].strip():
            return False
        href = found["href"] if found["bracketed"] is None else found["bracketed"]
        label = nodes.normalise_label(found["label"])
        self.document.references.setdefault(label, nodes.Target(href, found["title"]))
        return True

    def _note(self, line: str) -> bool:
        """Steps over a footnote if ``line`` begins one; the first definition of a label counts."""
        found = _NOTE.match(line)
        if found is None or not found["label"].strip():
            return False
        text = [found["text"]]
        self.pos += 1
        while self.pos < len(self.lines):
            line = self.lines[self.pos]
            if not line.strip() or _interrupts(line) or _NOTE.match(line) or _REFERENCE.match(line):
                break
            text.append(line.lstrip())
            self.pos += 1
        label = nodes.normalise_label(found["label"])
        self.document.notes.setdefault(label, "\n".join(text).strip())
        return True

    def _code_block(self, opening: re.Match[str]) -> nodes.CodeBlock:
        indent, fence, info = opening.groups()
        self.pos += 1
        code = []
        while self.pos < len(self.lines):
            line = self.lines[self.pos]
            self.pos += 1
            if _closes(line, fence):
                break
            margin = len(line) - len(line.lstrip(" "))
            code.append(line[min(margin, len(indent)) :])
        language = info.split()[0] if info else ""
        return nodes.CodeBlock(language, "".join(line + "\n" for line in code))

    def _quote(self) -> nodes.Quote:
        inner = []
        while self.pos < len(self.lines):
            line = self.lines[self.pos]
            if marker := _QUOTE.match(line):
                inner.append(line[marker.end() :])
            elif inner[-1].strip() and line.strip() and not _interrupts(line):
                inner.append(line)
            else:
                break
            self.pos += 1
        return nodes.Quote(_BlockParser(inner, self.document).parse())

    def _list(self) -> nodes.ItemList:
        first = _ITEM.match(self.lines[self.pos])
        assert first is not None
        items: list[list[nodes.Block]] = []
        tight = True
        while self.pos < len(self.lines):
            marker = _ITEM.match(self.lines[self.pos])
            if marker is None or marker[2][-1] != first[2][-1] or _RULE.match(marker.string):
                break
            inner, trailing_blanks = self._item_lines(marker)
            items.append(_BlockParser(inner, self.document).parse())
            more = self.pos < len(self.lines) and _ITEM.match(self.lines[self.pos])
            if (trailing_blanks and more) or _is_loose(inner):
                tight = False
        return nodes.ItemList(int(first[3]) if first[3] else None, tight, items)

    def _item_lines(self, marker: re.Match[str]) -> tuple[list[str], int]:
        """The lines of one list item without their margin, and how many blank ones follow it."""
        margin = marker.end() if marker[4] else len(marker[1]) + len(marker[2]) + 1
        inner = [self.lines[self.pos][margin:]]
        blanks = 0
        self.pos += 1
        while self.pos < len(self.lines):
            line = self.lines[self.pos]
            indented = line.startswith(" " * margin)
            if not line.strip():
                blanks += 1
            elif indented or (inner[-1].strip() and not blanks and not _ends_item(line)):
                inner += [""] * blanks
                inner.append(line[margin:] if indented else line.lstrip())
                blanks = 0
            else:
                break
            self.pos += 1
        return inner, blanks

    def _paragraph(self) -> nodes.Paragraph:
        text = [self.lines[self.pos].lstrip()]
        self.pos += 1
        while self.pos < len(self.lines):
            line = self.lines[self.pos]
            if not line.strip() or _interrupts(line):
                break
            text.append(line.lstrip())
            self.pos += 1
        return nodes.Paragraph("\n".join(text).rstrip())


def _closes(line: str, fence: str) -> bool:
    """Whether ``line`` ends the code block that ``fence`` opened."""
    closing = _FENCE_END.match(line)
    return bool(closing and closing[1][0] == fence[0] and len(closing[1]) >= len(fence))


def _interrupts(line: str) -> bool:
    """Whether ``line`` starts a block even where a paragraph could go on.

    Of numbered items only a first one does, so that a sentence may wrap before "1984."
    """
    if any(pattern.match(line) for pattern in (_FENCE, _HEADING, _RULE, _QUOTE)):
        return True
    item = _ITEM.match(line)
    return bool(item and item[4] and item[3] in (None, "1"))


def _ends_item(line: str) -> bool:
    return _interrupts(line) or bool(_ITEM.match(line))


def _is_loose(lines: list[str]) -> bool:
    """Whether blank lines part the blocks of an item, blank lines in its code aside."""
    fence = ""
    for line, following in zip(lines, lines[1:] + [""], strict=True):
        if fence:
            fence = "" if _closes(line, fence) else fence
        elif opening := _FENCE.match(line):
            fence = opening[2]
        elif not line.strip() and following[:1].strip():
            return True
    return False
