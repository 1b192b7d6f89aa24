"""unittest and Django's runner, with a result of ours in their process; ids as they spell them."""

import ast
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from coding_gym import syntax
from coding_gym.errors import GradingError, last_line
from coding_gym.grading.grading_files import read_files
from coding_gym.grading.report import RunReport, grouped
from coding_gym.grading.runners.patterns import PYTHON
from coding_gym.grading.supervision import supervise
from coding_gym.patch import Patch
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task

_PROGRAM = "unittest_program.py"
# Where modules are looked for that no command places.
_ROOTS = ("", "tests", "test")
# SWE-bench's for Django itself, with one process in place of many.
_DJANGO_ROOT = "tests/"
_DJANGO_SCRIPT = "tests/runtests.py"
_DJANGO_ARGUMENTS = ("--verbosity", "2", "--settings=test_sqlite")
# Ids as unittest prints them, and as it takes them.
_PRINTED = re.compile(r"(\w+) \(([\w.]+)\)")
_DOTTED = re.compile(r"\w+(?:\.\w+){2,}")
_PYTHON = re.compile(r"(?:[\w./-]*/)?python[\d.]*")
_SETTING = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_OPTION = re.compile("-(?:(W)|[bBu]+$)")
_SHELL = frozenset({"&&", "||", ";", "|", "&", ">", "<", "2>&1"})


@dataclass(frozen=True, slots=True)
class TestCommand:
    """A command, taken apart.

    Attributes:
        script: The script that it starts, relative to the workspace; "" for a module.
        module: The module that it starts (``-m``); "" for a script, and where there is no command.
        arguments: What follows.
        environment: The variables that it sets; Python's ``-W`` is one of them.
    """

    __test__ = False  # pytest collects classes called Test*

    script: str = ""
    module: str = ""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, command: str) -> Self | None:
        """Reads ``[NAME=value …] [python] (-m MODULE | SCRIPT) …``; None for anything else."""
        try:
            words = shlex.split(command)
        except ValueError:
            return None
        if _SHELL & set(words) or any(word.endswith(";") for word in words):
            return None
        environment = {}
        while words and (setting := _SETTING.fullmatch(words[0])):
            environment[setting[1]] = setting[2]
            words.pop(0)
        has_python = bool(words) and _PYTHON.fullmatch(words[0]) is not None
        if has_python:
            words = _without_options(words[1:], environment)
            if len(words) > 1 and words[0] == "-m":
                return cls("", words[1], tuple(words[2:]), environment)
        script = posixpath.normpath(words[0]) if words and words[0].endswith(".py") else ""
        if not script or script.startswith(("/", "..")):
            return None
        return cls(script, "", tuple(words[1:]), environment)

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that the names of test modules begin in; "" is the root of the tree."""
        if self.script:
            return tuple(dict.fromkeys([posixpath.dirname(self.script), ""]))
        if not self.module:
            return _ROOTS
        if self.arguments[:1] != ("discover",):
            return ("",)
        positional = [a for a in self.arguments[1:2] if not a.startswith("-")]
        start = self._option("-s", "--start-directory") or "".join(positional)
        top = self._option("-t", "--top-level-directory") or start
        root = posixpath.normpath(top or ".")
        return ("" if root == "." else root,)

    @property
    def collects(self) -> bool:
        """Whether it looks for test modules by their names."""
        has_names = any(not word.startswith("-") for word in self.arguments)
        return bool(self.script) or "discover" in self.arguments or not has_names

    def _option(self, short: str, long: str) -> str:
        """The last value of an option, written in any of the ways that argparse knows; or ""."""
        value = ""
        for word, following in zip(self.arguments, (*self.arguments[1:], ""), strict=True):
            if word in (short, long):
                value = following
            elif word.startswith(f"{long}="):
                value = word.partition("=")[2]
            elif word.startswith(short) and not word.startswith("--"):
                value = word.removeprefix(short)
        return value


@dataclass(frozen=True, slots=True)
class UnittestId:
    """A test method, as an id names it.

    Attributes:
        module: The module of its class, dotted.
        classes: Names of the classes around it, the outermost first.
        method: Its name.
    """

    module: str
    classes: tuple[str, ...]
    method: str

    @classmethod
    def parse(cls, test_id: str) -> Self | None:
        """Reads an id; None for those that name no place, such as the first line of a doc string.

        ``test_x (mod.Class)`` is what unittest prints up to Python 3.10, ``test_x
        (mod.Class.test_x)`` since; ``mod.Class.test_x`` is what it takes. Names before the last
        class that begin with a capital are classes, too.
        """
        if printed := _PRINTED.fullmatch(test_id):
            method, place = printed[1], printed[2].removesuffix(f".{printed[1]}")
        elif _DOTTED.fullmatch(test_id):
            place, _, method = test_id.rpartition(".")
        else:
            return None
        parts = place.split(".")
        start = len(parts) - 1
        while start > 1 and parts[start - 1].lstrip("_")[:1].isupper():
            start -= 1
        if start < 1:
            return None
        return cls(".".join(parts[:start]), tuple(parts[start:]), method)

    def paths(self, roots: Iterable[str]) -> tuple[str, ...]:
        """Returns where the module may lie below folders of modules; "" is the root of the tree."""
        return tuple(f"{root}/{file}" if root else file for root in roots for file in self._files)

    def node_id(self, path: str) -> str:
        """Returns the id by which reports know it, given its file."""
        return "::".join([path, *self.classes, self.method])

    def among(
        self, paths_by_name: Mapping[str, Sequence[str]], roots: Iterable[str]
    ) -> tuple[str, ...]:
        """Returns the reported node ids that are this test: in its file, or below another root.

        Args:
            paths_by_name: The files of the reported node ids, by what stands after the file.
            roots: Folders of modules.
        """
        paths = paths_by_name.get(self.node_id("").removeprefix("::"), ())
        below = tuple(f"/{file}" for file in self._files)
        own = [path for path in self.paths(roots) if path in paths]
        return tuple(map(self.node_id, own or [path for path in paths if path.endswith(below)]))

    @property
    def _files(self) -> tuple[str, str]:
        stem = self.module.replace(".", "/")
        return f"{stem}.py", f"{stem}/__init__.py"


def methods(
    tests: Iterable[str], files: Mapping[str, bytes], roots: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Returns node ids of those tests that lie in some files, as far as their spelling tells.

    Args:
        tests: Ids, in any spelling.
        files: Content of test files by path.
        roots: Folders of modules.
    """
    parsed = {test: UnittestId.parse(test) for test in tests}
    summaries = {} if all(parsed.values()) else _summaries(files)
    found = {
        test: tuple(one.node_id(path) for path in one.paths(roots) if path in files)[:1]
        if one
        else tuple(name for name, summary in summaries.items() if summary == test)
        for test, one in parsed.items()
    }
    return {test: names for test, names in found.items() if names}


def _summaries(files: Mapping[str, bytes]) -> dict[str, str]:
    """The first line of every method's doc string by node id; "" where there is none."""
    found: dict[str, str] = {}
    for path, data in files.items():
        try:
            tree = syntax.parse(data)
        except (SyntaxError, ValueError, RecursionError, LookupError):
            continue  # another Python's syntax, or no text at all
        for place, node in _methods(tree, path):
            text = (ast.get_docstring(node, clean=False) or "").strip()
            found[place] = text.partition("\n")[0].strip()
    return found


def _summarised(test: str, reported: Iterable[str], summaries: Mapping[str, str]) -> set[str]:
    """The reported node ids of methods whose doc string begins with a line.

    A class that does not define a reported method has it from one that does.
    """
    methods = {n.rpartition("::")[2] for n, summary in summaries.items() if summary == test}
    return {
        name
        for name in reported
        if summaries.get(name, test) == test and name.rpartition("::")[2] in methods
    }


def _methods(node: ast.Module | ast.ClassDef, place: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from _methods(child, f"{place}::{child.name}")
        elif isinstance(child, ast.FunctionDef) and isinstance(node, ast.ClassDef):
            yield f"{place}::{child.name}", child


@dataclass(slots=True)
class UnittestRunner:
    """Runs ``python -m unittest``, or a script such as Django's, as the task says.

    Without a ``test_command`` it runs the modules of the expected tests. ``--failfast`` and
    ``--parallel`` have no effect. A script runs as it is, in the process that reports: the suite
    that it hands to unittest's ``TextTestRunner``, as Django's runner does, counts. Django may be
    the code under test itself and forge all of it; the challenge detects that.

    Attributes:
        name: ``"unittest"``, or ``"django"`` for scripts.
    """

    name: str

    def problem(self, task: Task) -> str:
        """Returns what is wrong with the test command, or which test cannot be found, or ""."""
        command = TestCommand.parse(task.test_command)
        is_django = self.name == "django"
        fits = command and (command.script if is_django else command.module == "unittest")
        if fits or not task.test_command:
            return "" if fits else _unplaced(task)
        wrong = "is not 'python -m unittest …'"
        if is_django:
            wrong = (
                "starts no script of the tree, such as './tests/runtests.py …' or './manage.py …'"
            )
        return f"test_command {task.test_command!r} {wrong}"

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns where the modules of the expected tests may lie.

        Hidden files are among them where an id, such as a doc string's first line, names no module.
        """
        ids, hidden = _placed(task)
        roots = self._command(task).roots
        return tuple(sorted({*hidden, *(path for one in ids for path in one.paths(roots))}))

    def patterns(self, task: Task) -> tuple[str, ...]:
        """Returns what test modules are called, where a command collects them; Django's script."""
        command = self._command(task)
        script = (f"./{command.script}",) if command.script else ()
        return (*script, *(PYTHON if command.collects and task.test_command else ()))

    def functions(self, task: Task, files: Mapping[str, bytes]) -> Mapping[str, tuple[str, ...]]:
        """Returns the methods that the expected ids name, whatever their spelling."""
        return methods(task.expected_tests, files, self._command(task).roots)

    def run(
        self, sandbox: Sandbox, task: Task, paths: tuple[str, ...], *, timeout_s: float
    ) -> RunReport | None:
        """Runs them under a supervisor; see `coding_gym.grading.supervision.supervise`."""
        command = self._command(task)
        environment = dict(command.environment)
        if self.name == "django":
            environment["DJANGO_TEST_PROCESSES"] = "1"
        settings: dict[str, Any] = {"arguments": _in_one_process(command.arguments)}
        if command.script:
            settings["script"] = command.script
        elif not command.module:
            settings = {"modules": _modules(task, paths), "roots": list(_ROOTS)}
        report = supervise(
            sandbox, _PROGRAM, settings, timeout_s=timeout_s, environment=environment
        )
        if report is None:
            return None
        if report.never_began:
            raise GradingError(f"unittest could not be started: {last_line(report.tail)}")
        return _identified(report, task, read_files(sandbox, self.files(task)), command.roots)

    def _command(self, task: Task) -> TestCommand:
        """The task's command; for Django the default one with the labels of the expected tests."""
        if command := TestCommand.parse(task.test_command):
            return command
        if self.name != "django":
            return TestCommand()
        ids, hidden = _placed(task)
        labels = {one.module for one in ids}
        own = (path for path in hidden if path.startswith(_DJANGO_ROOT))
        labels.update(_module_of(path.removeprefix(_DJANGO_ROOT)) for path in own)
        return TestCommand(_DJANGO_SCRIPT, arguments=(*_DJANGO_ARGUMENTS, *sorted(labels)))


def _unplaced(task: Task) -> str:
    """Why a test cannot be found without a test command, or ""."""
    odd = [test for test in task.expected_tests if UnittestId.parse(test) is None]
    if not odd or _placed(task)[1]:
        return ""
    spellings = "'test_x (module.Class)', 'test_x (module.Class.test_x)' or 'module.Class.test_x'"
    return f"expected test {odd[0]!r} names no module; spell it {spellings}, or set test_command"


def _placed(task: Task) -> tuple[list[UnittestId], list[str]]:
    """The expected ids that name a place, and the hidden files where the others may be."""
    parsed = [UnittestId.parse(test) for test in task.expected_tests]
    hidden = [] if all(parsed) else sorted(Patch(task.test_patch).paths)
    return [one for one in parsed if one], [path for path in hidden if path.endswith(".py")]


def _module_of(path: str) -> str:
    """The dotted name that a file has as a module of the root."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _modules(task: Task, paths: tuple[str, ...]) -> list[str]:
    """The modules of the expected tests, dotted, as their spellings name them.

    Hidden files are among them where an id names no module, under the name that they have in the
    root; never a second time.
    """
    ids, hidden = _placed(task)
    known = {path for one in ids for path in one.paths(_ROOTS)}
    found = (path for path in hidden if path in paths and path not in known)
    return sorted({*(one.module for one in ids), *map(_module_of, found)})


def _in_one_process(arguments: tuple[str, ...]) -> list[str]:
    """The arguments without ``--parallel N``, whose tests would run where nothing reports."""
    kept: list[str] = []
    is_number = False
    for word in arguments:
        follows, is_number = is_number, word == "--parallel"
        if follows and (word.isdecimal() or word == "auto"):
            continue
        if not (is_number or word.startswith("--parallel=")):
            kept.append(word)
    return kept


def _identified(
    report: RunReport, task: Task, texts: Mapping[str, bytes], roots: tuple[str, ...]
) -> RunReport:
    """The report with the expected ids as spellings.

    The host finds out which tests they stand for, as far as it can: where the test process says it,
    a test that fails could give its name away to one that passes.
    """
    split = (name.partition("::") for name in report.statuses)
    paths_by_name = grouped((name, path) for path, _, name in split)
    summaries = _summaries(texts)
    spellings: dict[str, Sequence[str]] = {}
    messages = dict(report.messages)
    for test in task.expected_tests:
        if parsed := UnittestId.parse(test):
            spellings[test] = parsed.among(paths_by_name, roots)
            messages.setdefault(test, _blame(parsed, report))
        else:
            said = set(report.spellings.get(test, ()))
            spellings[test] = tuple(sorted(said | _summarised(test, report.statuses, summaries)))
    return replace(
        report,
        # A test of that very name beside those that the host found would be a name made up.
        statuses={name: s for name, s in report.statuses.items() if not spellings.get(name)},
        spellings=spellings,
        messages={name: message for name, message in messages.items() if message},
    )


def _blame(test: UnittestId, report: RunReport) -> str:
    """The message about the module or the class of a test; "" for one that ran."""
    place = ".".join([test.module, *test.classes])
    blamed = (test.module, f"setUpModule ({test.module})", f"setUpClass ({place})")
    return next((report.messages[b] for b in blamed if b in report.messages), "")


def _without_options(words: list[str], environment: dict[str, str]) -> list[str]:
    """Takes the interpreter's own options off, of which only ``-W`` means something here."""
    filters = []
    while words and (option := _OPTION.match(words[0])):
        word, *words = words
        if option[1] == "W":
            value = word[2:] or "".join(words[:1])
            filters.append(value)
            words = words if word[2:] else words[1:]
    if filters:
        environment["PYTHONWARNINGS"] = ",".join(filters)
    return words
