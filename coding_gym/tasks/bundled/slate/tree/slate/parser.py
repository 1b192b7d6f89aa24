"""Template source into functions that render it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from slate.errors import RenderError, TemplateSyntaxError
from slate.escaping import escape
from slate.expressions import Context, Expression, ExpressionParser, Filter, Render
from slate.lexer import Piece, split, tokenize
from slate.templates import Template

_NO_PIECE = Piece("tag", "", 0)


class TemplateParser:
    """Reads one template.

    Args:
        source: the template.
        filters: the filters that may be used.
        find: gives another template, for ``include`` and ``extends``.
    """

    def __init__(
        self, source: str, filters: Mapping[str, Filter], find: Callable[[str], Template]
    ) -> None:
        self._pieces: Iterator[Piece] = split(source)
        self._filters = filters
        self._find = find
        self._parent: str | None = None
        self._blocks: dict[str, Render] = {}
        self._open_blocks: list[str] = []

    def parse(self) -> Template:
        """The whole template.

        Raises:
            TemplateSyntaxError: naming the line.
        """
        body, _ = self._body()
        return Template(body, self._blocks, self._parent, self._find)

    def _body(self, *closing: str, opened: Piece = _NO_PIECE) -> tuple[Render, Piece]:
        """What comes up to a tag that starts with one of ``closing``, and that tag."""
        parts: list[Render] = []
        for piece in self._pieces:
            if piece.kind == "text":
                parts.append(_text(piece.content))
            elif piece.kind == "output":
                reader = self._reader(piece)
                parts.append(_output(reader.finish(reader.expression())))
            elif piece.kind == "tag":
                word = piece.content.partition(" ")[0]
                if word in closing:
                    return _sequence(parts), piece
                parts.append(self._tag(word, piece))
        if closing:
            raise TemplateSyntaxError(f"{opened.content} is not ended", opened.line)
        return _sequence(parts), _NO_PIECE

    def _tag(self, word: str, piece: Piece) -> Render:
        if word == "if":
            return self._if(piece)
        if word == "for":
            return self._for(piece)
        if word == "include":
            reader = self._reader(piece, "include")
            name = reader.finish(reader.expression())
            return lambda context, out: self._find(str(name(context))).render(context, out)
        if word == "extends":
            return self._extends(piece)
        if word == "block":
            return self._block(piece)
        if word == "super" and self._open_blocks:
            self._reader(piece, "super").end()
            return lambda context, out: context.print_super(out)
        raise TemplateSyntaxError(f"unexpected tag {word or '(empty)'}", piece.line)

    def _extends(self, piece: Piece) -> Render:
        if self._parent is not None:
            raise TemplateSyntaxError("a template extends one other at most", piece.line)
        reader = self._reader(piece, "extends")
        self._parent = reader.take("string")[1:-1]
        reader.end()
        return _text("")

    def _block(self, opened: Piece) -> Render:
        reader = self._reader(opened, "block")
        name = reader.take("name")
        reader.end()
        if name in self._blocks or name in self._open_blocks:
            raise TemplateSyntaxError(f"there are two blocks {name}", opened.line)
        self._open_blocks.append(name)
        self._blocks[name], _ = self._body("endblock", opened=opened)
        self._open_blocks.pop()
        return lambda context, out: context.print_block(name, out)

    def _if(self, opened: Piece) -> Render:
        branches: list[tuple[Expression, Render]] = []
        tag = opened
        while tag.content not in ("else", "endif"):
            reader = self._reader(tag, "if", "elif")
            condition = reader.finish(reader.expression())
            body, tag = self._body("elif", "else", "endif", opened=opened)
            branches.append((condition, body))
        if tag.content == "else":
            otherwise, _ = self._body("endif", opened=opened)
            branches.append((lambda context: True, otherwise))
        return _branches(branches)

    def _for(self, opened: Piece) -> Render:
        reader = self._reader(opened, "for")
        name = reader.take("name")
        reader.expect("in")
        items = reader.finish(reader.expression())
        body, _ = self._body("endfor", opened=opened)
        return _loop(name, items, body)

    def _reader(self, piece: Piece, *words: str) -> ExpressionParser:
        """A parser for what follows the first word of a tag, which must be one of ``words``."""
        reader = ExpressionParser(tokenize(piece.content, piece.line), self._filters, piece.line)
        if words:
            reader.expect(*words)
        return reader


def _sequence(parts: list[Render]) -> Render:
    def render(context: Context, out: list[str]) -> None:
        for part in parts:
            part(context, out)

    return render


def _text(text: str) -> Render:
    return lambda context, out: out.append(text)


def _output(value: Expression) -> Render:
    return lambda context, out: out.append(escape(value(context)))


def _branches(branches: list[tuple[Expression, Render]]) -> Render:
    def render(context: Context, out: list[str]) -> None:
        for condition, body in branches:
            if condition(context):
                body(context, out)
                break

    return render


def _loop(name: str, items: Expression, body: Render) -> Render:
    def render(context: Context, out: list[str]) -> None:
        value = items(context)
        try:
            found = [] if value is None else list(value)
        except TypeError as error:
            raise RenderError(f"cannot loop over {value!r}") from error
        for index, item in enumerate(found, start=1):
            loop = {"index": index, "first": index == 1, "last": index == len(found)}
            with context.scope({name: item, "loop": loop}):
                body(context, out)

    return render
