"""A checkout of Defects4J (github.com/rjust/defects4j): real bugs of Java projects.

Only its metadata is used, and clones of the projects in its ``project_repos`` folder, where its own
``init.sh`` puts them; neither its Perl nor Ant or Maven. Projects without a clone are left out.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coding_gym.errors import InvalidTaskError
from coding_gym.task import Task
from coding_gym.tasks.sources.defects4j_bug import bug_task
from coding_gym.tasks.sources.defects4j_tests import Bug
from coding_gym.tasks.sources.file_text import read_text
from coding_gym.tasks.sources.kinds import Checkout

_BUGS = "active-bugs.csv"
_SHA = re.compile(r"[0-9a-f]{40}")
_NAME = re.compile(r"""\$name\s*=\s*["']([\w.-]+)["']""")


@dataclass(frozen=True, slots=True)
class _Project:
    """A project of the checkout.

    Attributes:
        folder: Its metadata.
        name: The name of its repository.
        repository: Its clone, or where that would be.
    """

    folder: Path
    name: str
    repository: Path


def is_checkout(folder: Path) -> bool:
    """Returns whether a folder has Defects4J's layout."""
    return (folder / "framework" / "projects").is_dir() and (folder / "framework" / "core").is_dir()


def read_checkout(folder: Path) -> Iterator[tuple[str, Task]]:
    """Yields (where, task) for each bug of each project that has a clone, in Defects4J's order.

    Bugs whose own tests need a library that is not known here, or an old JDK, are left out.

    Raises:
        InvalidTaskError: A file is missing or is not what it must be, a clone lacks a commit, or
            there is no clone at all.
    """
    projects = list(_projects(folder))
    cloned = [project for project in projects if project.repository.is_dir()]
    if not cloned:
        first = projects[0] if projects else None
        raise InvalidTaskError(
            f"{folder}: has no clones of the projects in project_repos; run its init.sh, or clone "
            "those that you want, such as: git clone --bare "
            f"https://github.com/apache/{first.name if first else 'commons-csv'} "
            f"{first.repository if first else folder / 'project_repos' / 'commons-csv.git'}"
        )
    for project in cloned:
        yield from _bugs(project)


def _projects(folder: Path) -> Iterator[_Project]:
    for bugs in sorted((folder / "framework" / "projects").glob(f"*/{_BUGS}")):
        project = bugs.parent
        module = folder / "framework" / "core" / "Project" / f"{project.name}.pm"
        found = _NAME.search(_text(module)) if module.is_file() else None
        if found is None:
            raise InvalidTaskError(f"{module}: does not say the name of the project's repository")
        repositories = folder / "project_repos"
        places = [repositories / f"{found[1]}.git", repositories / found[1]]
        repository = next((place for place in places if place.is_dir()), places[0])
        yield _Project(project, found[1], repository)


def _bugs(project: _Project) -> Iterator[tuple[str, Task]]:
    from coding_gym.workspace.commit_files import open_repository

    layouts = _layouts(project.folder / "dir-layout.csv")
    path = project.folder / _BUGS
    with open_repository(project.repository) as reader:
        for number, row in enumerate(csv.DictReader(_text(path).splitlines()), 2):
            where = f"{path} line {number}"
            bug = _bug(project, row, layouts, where)
            try:
                task = bug_task(bug, reader)
            except OSError as error:
                raise InvalidTaskError(
                    f"{where}: bug {bug.number}: {error.filename} cannot be read: {error.strerror}"
                ) from error
            if task is not None:
                yield where, task


def _bug(
    project: _Project, row: dict[str, str], layouts: dict[str, tuple[str, str]], where: str
) -> Bug:
    number = _field(row, "bug.id", where)
    if not number.isdecimal():
        raise InvalidTaskError(f"{where}: field 'bug.id' must be a number, got {number!r}")
    buggy, fixed = (_sha(row, f"revision.id.{state}", where) for state in ("buggy", "fixed"))
    if fixed not in layouts:
        raise InvalidTaskError(
            f"{where}: field 'revision.id.fixed' is {fixed}, which is not in dir-layout.csv"
        )
    source_root, test_root = layouts[fixed]
    return Bug(
        folder=project.folder,
        project=project.name,
        number=number,
        buggy=buggy,
        fixed=fixed,
        report=_field(row, "report.id", where),
        url=_field(row, "report.url", where),
        source_root=source_root,
        test_root=test_root,
    )


def _layouts(path: Path) -> dict[str, tuple[str, str]]:
    """Returns the folders of sources and of tests, by commit."""
    layouts = {}
    for number, row in enumerate(csv.reader(_text(path).splitlines()), 1):
        if len(row) != 3:
            raise InvalidTaskError(f"{path} line {number}: must have three fields, got {row!r}")
        layouts[row[0]] = (row[1].strip("/"), row[2].strip("/"))
    return layouts


def _field(row: dict[str, str], column: str, where: str) -> str:
    value = row.get(column)
    if not value:
        raise InvalidTaskError(f"{where}: field {column!r} is missing")
    return value


def _sha(row: dict[str, str], column: str, where: str) -> str:
    value = _field(row, column, where)
    if not _SHA.fullmatch(value):
        raise InvalidTaskError(
            f"{where}: field {column!r} must be a commit of 40 hexadecimal digits, got {value!r}"
        )
    return value


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except OSError as error:
        raise InvalidTaskError(f"{path}: cannot be read: {error.strerror}") from None


DEFECTS4J = Checkout(name="defects4j", reads=is_checkout, read=read_checkout)
