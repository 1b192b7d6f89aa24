"""What the site adds to the pages in `docs`: command line, messages, changelog, linked examples.

mkdocs calls these functions as its hooks.
"""

import ast
import inspect
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from typer.cli import get_docs_for_click
from typer.main import get_command

ROOT = Path(__file__).parents[1]
COMMAND_LINE = "reference/command-line.md"
MESSAGES = "reference/messages.md"
CHANGELOG = "reference/changelog.md"
_OUTSIDE = re.compile(r"\]\(\.\./((?:\.\./)*((?:examples|benchmarks)/[^)#]+))\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that come from the program, and the files outside that pages link to."""
    files.append(File.generated(config, COMMAND_LINE, content=command_line()))
    files.append(File.generated(config, MESSAGES, content=messages()))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    files.append(File.generated(config, CHANGELOG, content=changelog))
    pages = (Path(page.abs_src_path) for page in files.documentation_pages() if page.abs_src_path)
    texts = [page.read_text(encoding="utf-8") for page in pages]
    for linked in sorted({path for text in texts for _, path in _OUTSIDE.findall(text)}):
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


def messages() -> str:
    """Returns every message of the package's errors, by class and file; ``…`` stands for values."""
    from coding_gym import errors

    classes = {
        name: kind
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, errors.CodingGymError)
    }
    by_class: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted((ROOT / "coding_gym").rglob("*.py")):
        if "bundled" in path.parts or "testing" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=name), args=[said, *_]):
                    text = _text(said)
                    if name in classes and len(text.replace("…", "")) > 12:  # more than values
                        by_class[name][str(path.relative_to(ROOT))].append(text)
    lines = ["# Error messages", "", _ABOUT_MESSAGES, ""]
    for name, by_file in by_class.items():
        lines += [f"## {name}", "", (classes[name].__doc__ or "").splitlines()[0], ""]
        lines += [f"- ``{text}`` ({file})" for file, texts in by_file.items() for text in texts]
        lines.append("")
    return "\n".join(lines)


_ABOUT_MESSAGES = """\
The messages of this package's errors, as the program has them; `…` stands for a value. A few are
put together while the program runs, and are not here. [Troubleshooting](../troubleshooting.md)
says what the classes mean, and what to do about a grade."""


def _text(node: ast.expr) -> str:
    """Returns a message with ``…`` in the place of its values."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part) for part in parts)
        case ast.BinOp(left=left, right=right):
            return _text(left) + _text(right)
    return "…"
