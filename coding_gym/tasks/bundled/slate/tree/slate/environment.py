"""Templates by name, with their filters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slate.errors import TemplateNotFoundError
from slate.expressions import Context, Filter
from slate.filters import FILTERS
from slate.parser import TemplateParser
from slate.templates import Template


class Environment:
    """A set of templates that can include each other.

    Args:
        templates: their sources by name.
        filters: filters beside the built-in ones.
    """

    def __init__(
        self, templates: Mapping[str, str], *, filters: Mapping[str, Filter] | None = None
    ) -> None:
        self._templates = templates
        self._filters = {**FILTERS, **(filters or {})}
        self._parsed: dict[str, Template] = {}

    def render(self, name: str, /, **variables: Any) -> str:
        """Renders the template of that name.

        Raises:
            TemplateNotFoundError: if there is none, or one that it needs is not there.
            TemplateSyntaxError: if it is malformed.
            RenderError: if a value does not fit.
        """
        return _rendered(self._find(name), variables)

    def render_text(self, source: str, /, **variables: Any) -> str:
        """Renders a template that is given as text."""
        return _rendered(TemplateParser(source, self._filters, self._find).parse(), variables)

    def _find(self, name: str) -> Template:
        if name not in self._templates:
            raise TemplateNotFoundError(f"no template {name!r}")
        if name not in self._parsed:
            parser = TemplateParser(self._templates[name], self._filters, self._find)
            self._parsed[name] = parser.parse()
        return self._parsed[name]


def _rendered(template: Template, variables: Mapping[str, Any]) -> str:
    out: list[str] = []
    template.render(Context(variables), out)
    return "".join(out)
