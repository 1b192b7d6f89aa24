"""Adds the help of every command to the site's page on the command line.

mkdocs-click does not see the options: typer contains a separate copy of click.
"""

from typing import Any

from typer.cli import get_docs_for_click
from typer.main import get_command

MARK = "<!-- commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replaces the mark by the help of every command."""
    if MARK not in markdown:
        return markdown
    from coding_gym.cli.app import app

    command = get_command(app)
    with command.make_context("coding-gym", [], resilient_parsing=True) as context:
        help_text = get_docs_for_click(obj=command, ctx=context, name="coding-gym")
    return markdown.replace(MARK, help_text.partition("\n")[2])  # the page has a title
