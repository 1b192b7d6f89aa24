"""A checkout of Defects4J (github.com/rjust/defects4j): real bugs of Java projects.

Only its metadata is used, and clones of the projects in its ``project_repos`` folder, where its own
``init.sh`` puts them; neither its Perl nor Ant or Maven. Projects without a clone are left out.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from coding_gym.errors import InvalidTaskError, PatchError
from coding_gym.patch import Patch
from coding_gym.task import FilesTree, Task
from coding_gym.tasks.sources.defects4j_unreliable import is_unreliable
from coding_gym.tasks.sources.file_text import read_text
from coding_gym.tasks.sources.java_tests import JavaTree, jars_of, method_text
from coding_gym.tasks.sources.kinds import Checkout

if TYPE_CHECKING:
    from coding_gym.workspace.commit_files import CommitReader

_BUGS = "active-bugs.csv"
_SHA = re.compile(r"[0-9a-f]{40}")
_NAME = re.compile(r"""\$name\s*=\s*["']([\w.-]+)["']""")
_TEST = re.compile(r"^---\s+([\w.$]+)(?:::(\w+))?", re.MULTILINE)
_FAILURE = re.compile(r"^---\s+([\w.$]+)::(\w+)\s*$")
# Frames of the machinery under which the tests ran.
_MACHINERY = re.compile(r"^\s*at (?:sun\.|java\.|jdk\.|junit\.|org\.junit\.|org\.apache\.tools\.)")
_MAX_FILE_BYTES = 200_000  # larger ones are data of benchmarks, which no test here needs
_JARS = "/usr/share/java"
_MAX_FAILURES, _MAX_FRAMES = 3, 8


def is_checkout(folder: Path) -> bool:
    """Returns whether a folder has Defects4J's layout."""
    return (folder / "framework" / "projects").is_dir() and (folder / "framework" / "core").is_dir()


def read_checkout(folder: Path) -> Iterator[tuple[str, Task]]:
    """Yields (where, task) for each bug of each project that has a clone, in Defects4J's order.

    As in Defects4J the sources are those of the fixed commit with the minimised patch of the bug
    applied. All else, visible tests too, is as the buggy commit has it; the hidden tests are the
    changes that the fixed commit makes to the tests. Bugs whose own tests need a library that is
    not known here, or an old JDK, are left out.

    Raises:
        InvalidTaskError: A file is missing or is not what it must be, a clone lacks a commit, or
            there is no clone at all.
    """
    projects = [(bugs.parent, *_repository(folder, bugs.parent)) for bugs in _bug_files(folder)]
    cloned = [project for project in projects if project[2].is_dir()]
    if not cloned:
        _, name, clone = (
            projects[0] if projects else (None, "commons-csv", folder / "project_repos" / "x.git")
        )
        raise InvalidTaskError(
            f"{folder}: has no clones of the projects in project_repos; run its init.sh, or clone "
            f"those that you want, such as: git clone --bare https://github.com/apache/{name} "
            f"{clone}"
        )
    for project, name, repository in cloned:
        yield from _tasks(project, name, repository)


def _bug_files(folder: Path) -> list[Path]:
    return sorted((folder / "framework" / "projects").glob(f"*/{_BUGS}"))


def _repository(folder: Path, project: Path) -> tuple[str, Path]:
    """Returns the name of a project's repository, and its clone, or where that would be."""
    module = folder / "framework" / "core" / "Project" / f"{project.name}.pm"
    found = _NAME.search(_text(module)) if module.is_file() else None
    if found is None:
        raise InvalidTaskError(f"{module}: does not say the name of the project's repository")
    clones = [folder / "project_repos" / f"{found[1]}{end}" for end in (".git", "")]
    return found[1], next((clone for clone in clones if clone.is_dir()), clones[0])


def _tasks(project: Path, name: str, repository: Path) -> Iterator[tuple[str, Task]]:
    from coding_gym.workspace.commit_files import open_repository

    layouts = _layouts(project / "dir-layout.csv")
    path = project / _BUGS
    with open_repository(repository) as reader:
        for number, row in enumerate(csv.DictReader(_text(path).splitlines()), 2):
            where = f"{path} line {number}"
            bug = _Bug.read(project, name, row, layouts, where)
            try:
                task = bug.task(reader)
            except OSError as error:
                raise InvalidTaskError(
                    f"{where}: bug {bug.number}: {error.filename} cannot be read: {error.strerror}"
                ) from error
            if task is not None:
                yield where, task


@dataclass(frozen=True)
class _Failure:
    """A test that a bug breaks: its class, its method, and what was thrown in the project."""

    class_name: str
    method: str
    trace: tuple[str, ...]

    @property
    def test_id(self) -> str:
        return f"{self.class_name}::{self.method}"


@dataclass(frozen=True, kw_only=True)
class _Bug:
    """A line of ``active-bugs.csv``, with its project's metadata and source folders."""

    folder: Path
    project: str
    number: str
    buggy: str
    fixed: str
    report: str
    url: str
    source_root: str
    test_root: str

    @classmethod
    def read(
        cls,
        folder: Path,
        project: str,
        row: Mapping[str, str],
        layouts: Mapping[str, tuple[str, str]],
        where: str,
    ) -> "_Bug":
        def field(column: str, form: str = ".+", wanted: str = "") -> str:
            value = row.get(column)
            if not value:
                raise InvalidTaskError(f"{where}: field {column!r} is missing")
            if not re.fullmatch(form, value):
                raise InvalidTaskError(f"{where}: field {column!r} must be {wanted}, got {value!r}")
            return value

        sha = _SHA.pattern, "a commit of 40 hexadecimal digits"
        fixed = field("revision.id.fixed", *sha)
        if fixed not in layouts:
            raise InvalidTaskError(
                f"{where}: field 'revision.id.fixed' is {fixed}, which is not in dir-layout.csv"
            )
        source_root, test_root = layouts[fixed]
        return cls(
            folder=folder,
            project=project,
            number=field("bug.id", r"\d+", "a number"),
            buggy=field("revision.id.buggy", *sha),
            fixed=fixed,
            report=field("report.id"),
            url=field("report.url"),
            source_root=source_root,
            test_root=test_root,
        )

    def task(self, reader: "CommitReader") -> Task | None:
        """Returns the task; None where its own tests cannot run here."""
        before, after = (
            reader.texts(commit, _MAX_FILE_BYTES) for commit in (self.buggy, self.fixed)
        )
        sources, broken_sources = self._sources(after)
        old_tests, new_tests = (_below(files, _area(self.test_root)) for files in (before, after))
        rest = before.keys() - _below(before, _area(self.source_root)).keys() - sources.keys()
        tree = {path: before[path] for path in rest} | broken_sources
        gold = Patch.between(broken_sources, sources)
        files = broken_sources | new_tests
        failures = self._failures()
        classes = tuple(dict.fromkeys(failure.class_name for failure in failures))
        java = JavaTree(files, (self.source_root, self.test_root))
        jars = jars_of(java.libraries(self._path(name)) for name in classes)
        broken, working, left_out = self._tests(java, failures, classes, jars or frozenset())
        if jars is None or not broken:
            return None
        roots = self._roots(tree.keys() | new_tests.keys())
        encoding = _encoding(files)
        options = [*_class_path(jars), "--release 8", "-encoding", encoding]
        return Task(
            task_id=f"{self.folder.name}-{self.number}",
            tree=FilesTree(dict(sorted(tree.items()))),
            problem_statement=self._statement(failures, files),
            gold_patch=gold.text,
            test_patch=Patch.between(old_tests, new_tests).text,
            fail_to_pass=broken,
            pass_to_pass=working,
            excluded_tests=left_out,
            repo=self.project,
            created_at=reader.date(self.buggy),
            difficulty=_difficulty(gold),
            language="java",
            visible_test_command=self._visible(classes, jars, tree, encoding),
            runner="java",
            grading_timeout_s=120.0,  # up to a thousand tests
            test_command=" ".join([*roots, *options]),
        )

    def _sources(self, after: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """Returns the sources without and with the bug, with resources that its patch changes."""
        path = self.folder / "patches" / f"{self.number}.src.patch"
        try:
            patch = Patch(read_text(path))
            named = {name: after[name] for name in patch.paths & after.keys()}
            sources = _below(after, _area(self.source_root)) | named
            return sources, patch.apply(sources)
        except PatchError as error:
            message = f"{path}: does not fit commit {self.fixed}: {error}"
            raise InvalidTaskError(message) from None

    def _failures(self) -> tuple[_Failure, ...]:
        path = self.folder / "trigger_tests" / self.number
        failures: list[_Failure] = []
        for line in read_text(path).splitlines():
            if header := _FAILURE.match(line):
                failures.append(_Failure(header[1], header[2], ()))
            elif failures and line.strip() and not _MACHINERY.match(line):
                last = failures[-1]
                failures[-1] = _Failure(last.class_name, last.method, (*last.trace, line.rstrip()))
        if not failures:
            raise InvalidTaskError(f"{path}: names no test that the bug breaks")
        return tuple(failures)

    def _tests(
        self,
        java: JavaTree,
        failures: Iterable[_Failure],
        classes: Iterable[str],
        jars: frozenset[str],
    ) -> tuple[tuple[str, ...], ...]:
        """Returns the tests that the bug breaks, the others of relevant classes, and the unfit.

        Of other classes only those count that need no more jars.
        """
        triggers = tuple(dict.fromkeys(failure.test_id for failure in failures))
        listed = read_text(self.folder / "relevant_tests" / self.number).splitlines()
        found: list[str] = []
        for name in dict.fromkeys((*classes, *(line.strip() for line in listed if line.strip()))):
            needed = java.libraries(self._path(name))
            if needed is not None and needed <= jars:
                found += [f"{name}::{method}" for method in java.tests(self._path(name))]
        every = tuple(dict.fromkeys((*triggers, *found)))
        known = self._known_failures
        unfit = {
            test
            for test in every
            if is_unreliable(self.folder.name, test)
            or (test not in triggers and known & {test, test.partition("::")[0]})
        }
        broken = tuple(test for test in triggers if test not in unfit)
        working = tuple(test for test in found if test not in unfit.union(triggers))
        return broken, working, tuple(test for test in every if test in unfit)

    @cached_property
    def _known_failures(self) -> frozenset[str]:
        """Tests and classes that Defects4J itself leaves out of a bug's suite."""
        lists = (self.folder / "failing_tests" / self.fixed, self.folder / "dependent_tests")
        texts = [read_text(path) for path in lists if path.is_file()]
        found = [pair for text in texts for pair in _TEST.findall(text)]
        return frozenset(f"{name}::{method}" if method else name for name, method in found)

    def _path(self, name: str) -> str:
        """Returns where a test class is."""
        return f"{self.test_root}/{name.partition('$')[0].replace('.', '/')}.java"

    def _roots(self, tree: Iterable[str]) -> list[str]:
        """Returns the source folders, and those of resources beside them that there are."""
        roots = [self.source_root, self.test_root]
        tree = list(tree)
        for root in (self.source_root, self.test_root):
            resources = str(PurePosixPath(root).parent / "resources")
            if resources not in roots and any(path.startswith(f"{resources}/") for path in tree):
                roots.append(resources)
        return roots

    def _statement(self, failures: tuple[_Failure, ...], files: Mapping[str, str]) -> str:
        """Returns what a user would have written: the failing code and its traceback."""
        known = self.report if self.report.upper() != "UNKNOWN" else ""
        first = failures[0].trace[0].strip() if failures[0].trace else "wrong behaviour"
        parts = [f"{self.project}: {first}" + (f" ({known})" if known else "")]
        if known and self.url.startswith("http"):
            parts.append(f"Reported as {self.url}.")
        for failure in failures[:_MAX_FAILURES]:
            if code := self._code(failure, files):
                parts += ["This should go through:", _indented(code.splitlines())]
            if failure.trace:
                frames = [line.strip() for line in failure.trace[:_MAX_FRAMES]]
                parts += ["Instead:", _indented(frames)]
        if len(failures) > _MAX_FAILURES:
            parts.append(f"{len(failures) - _MAX_FAILURES} more cases fail in the same way.")
        return "\n\n".join(parts) + "\n"

    def _code(self, failure: _Failure, files: Mapping[str, str]) -> str:
        """Returns the text of a test, which may be one that its class inherits."""
        called = (re.match(rf"\s*at ([\w.]+)\.{failure.method}\(", line) for line in failure.trace)
        names = [failure.class_name, *(match[1] for match in called if match)]
        texts = (method_text(files.get(self._path(one), ""), failure.method) for one in names)
        return next(filter(None, texts), "")

    def _visible(
        self, classes: Iterable[str], jars: frozenset[str], tree: Mapping[str, str], encoding: str
    ) -> str:
        """Returns a command that compiles the base, and runs those of the tests that it has."""
        present = [name for name in classes if self._path(name) in tree]
        roots = ":".join(self._roots(tree))
        _, path = _class_path({"junit4", "hamcrest-core", *jars})
        sources = " ".join(map(self._path, present)) or f"$(find {self.source_root} -name '*.java')"
        compiled = (
            f"mkdir -p /tmp/classes && javac -nowarn --release 8 -encoding {encoding} -proc:none "
            f"-cp {path} -sourcepath {roots} -d /tmp/classes {sources}"
        )
        if not present:
            return compiled
        run = f"java -cp /tmp/classes:{path}:{roots} org.junit.runner.JUnitCore {' '.join(present)}"
        return f"{compiled} && {run}"


def _area(root: str) -> str:
    """Returns the folder of sources with that of resources, which Maven has beside it."""
    return root.removesuffix("/java") if root.endswith(("/main/java", "/test/java")) else root


def _below(files: Mapping[str, str], root: str) -> dict[str, str]:
    return {path: text for path, text in files.items() if path.startswith(f"{root}/")}


def _encoding(files: Mapping[str, str]) -> str:
    """Returns UTF-8 where all sources are, else the encoding in which old Java was written."""
    try:
        "".join(text for path, text in files.items() if path.endswith(".java")).encode()
    except UnicodeEncodeError:
        return "ISO-8859-1"
    return "UTF-8"


def _difficulty(gold: Patch) -> str:
    changed = sum(line[:1] in {"+", "-"} for line in gold.text.splitlines()) - 2 * len(gold.files)
    if len(gold.files) > 1 or changed > 20:
        return "hard"
    return "easy" if changed <= 3 else "medium"


def _class_path(jars: Iterable[str]) -> list[str]:
    paths = ":".join(f"{_JARS}/{jar}.jar" for jar in sorted(jars))
    return ["-cp", paths] if paths else []


def _indented(lines: Iterable[str]) -> str:
    return "\n".join(f"    {line}".rstrip() for line in lines)


def _layouts(path: Path) -> dict[str, tuple[str, str]]:
    """Returns the folders of sources and of tests, by commit."""
    layouts = {}
    for number, row in enumerate(csv.reader(_text(path).splitlines()), 1):
        if len(row) != 3:
            raise InvalidTaskError(f"{path} line {number}: must have three fields, got {row!r}")
        layouts[row[0]] = (row[1].strip("/"), row[2].strip("/"))
    return layouts


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except OSError as error:
        raise InvalidTaskError(f"{path}: cannot be read: {error.strerror}") from None


DEFECTS4J = Checkout(name="defects4j", reads=is_checkout, read=read_checkout)
