"""Parsed templates, which may put blocks in the place of those of another template."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from slate.errors import RenderError
from slate.expressions import Context, Render


@dataclass(frozen=True, slots=True)
class Template:
    """One template.

    Attributes:
        body: prints it, as far as it does not extend another one.
        blocks: its version of each block that it has, by name.
        parent: the name of the template that it extends.
        find: gives a template by name.
    """

    body: Render
    blocks: Mapping[str, Render]
    parent: str | None
    find: Callable[[str], Template]

    def render(self, context: Context, out: list[str]) -> None:
        """Adds what the template prints to ``out``.

        Raises:
            RenderError: if templates extend each other.
        """
        lineage = self._lineage()
        versions: dict[str, list[Render]] = {}
        for template in lineage:
            for name, block in template.blocks.items():
                versions.setdefault(name, []).append(block)
        with context.page(versions):
            lineage[-1].body(context, out)

    def _lineage(self) -> list[Template]:
        """This template, the one it extends, and so on."""
        lineage = [self]
        while (name := lineage[-1].parent) is not None:
            parent = self.find(name)
            if any(parent is template for template in lineage):
                raise RenderError(f"{name} extends itself")
            lineage.append(parent)
        return lineage
