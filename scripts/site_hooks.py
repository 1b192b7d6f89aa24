"""What the site adds to the pages in `docs`: the command line, the changelog, linked examples.

mkdocs calls these functions as its hooks.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from typer.cli import get_docs_for_click
from typer.main import get_command

ROOT = Path(__file__).parents[1]
COMMAND_LINE = "reference/command-line.md"
CHANGELOG = "reference/changelog.md"
_OUTSIDE = re.compile(r"\]\(\.\./((?:examples|benchmarks)/[^)#]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that come from the program, and the files outside that pages link to."""
    files.append(File.generated(config, COMMAND_LINE, content=command_line()))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    files.append(File.generated(config, CHANGELOG, content=changelog))
    pages = (Path(page.abs_src_path) for page in files.documentation_pages() if page.abs_src_path)
    texts = [page.read_text(encoding="utf-8") for page in pages]
    for linked in sorted({path for text in texts for path in _OUTSIDE.findall(text)}):
        source = ROOT / linked
        if source.suffix == ".py":
            code = f"# {source.name}\n\n```python\n{source.read_text(encoding='utf-8')}```\n"
            files.append(File.generated(config, page_of(linked), content=code))
        else:
            files.append(File.generated(config, linked, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Lets links to files outside `docs` lead to their pages."""
    return _OUTSIDE.sub(lambda found: f"]({page_of(found[1])})", markdown)


def page_of(linked: str) -> str:
    """Returns the address of a linked file in the site."""
    return re.sub(r"\.py$", ".md", linked)


def command_line() -> str:
    """Returns the help of every command."""
    from coding_gym.cli.app import app

    command = get_command(app)
    with command.make_context("coding-gym", [], resilient_parsing=True) as context:
        return get_docs_for_click(obj=command, ctx=context, name="coding-gym")
