"""One bug of Defects4J as a task."""

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from coding_gym.errors import InvalidTaskError, PatchError
from coding_gym.patch import Patch
from coding_gym.task import FilesTree, Task
from coding_gym.tasks.sources.defects4j_statement import read_failures, statement
from coding_gym.tasks.sources.defects4j_tests import Bug, BugTests, files_below
from coding_gym.tasks.sources.file_text import read_text

if TYPE_CHECKING:
    from coding_gym.workspace.commit_files import CommitReader

_MAX_FILE_BYTES = 200_000  # larger ones are data of benchmarks, which no test here needs
_JARS = "/usr/share/java"


def bug_task(bug: Bug, reader: "CommitReader") -> Task | None:
    """Returns the task of a bug; None where its own tests cannot run here.

    They may need a library that is not known, or a JDK of their time.

    As in Defects4J the sources are those of the fixed commit with the minimised patch of the bug
    applied. All else, visible tests too, is as the buggy commit has it; the hidden tests are the
    changes that the fixed commit makes to the tests.

    Raises:
        OSError: A file of the metadata cannot be read; it says which.
        InvalidTaskError: The patch does not fit, or a commit is not in the clone.
    """
    before, after = (reader.texts(commit, _MAX_FILE_BYTES) for commit in (bug.buggy, bug.fixed))
    sources, broken_sources = _sources(bug, after)
    old_tests, new_tests = (files_below(files, _area(bug.test_root)) for files in (before, after))
    rest = before.keys() - files_below(before, _area(bug.source_root)).keys() - sources.keys()
    tree = {path: before[path] for path in rest} | broken_sources
    gold = Patch.between(broken_sources, sources)
    triggers = bug.folder / "trigger_tests" / bug.number
    failures = read_failures(read_text(triggers))
    if not failures:
        raise InvalidTaskError(f"{triggers}: names no test that the bug breaks")
    tests = BugTests(bug, broken_sources | new_tests, failures)
    if tests.libraries is None or not tests.broken:
        return None
    roots = _roots(bug, tree.keys() | new_tests.keys())
    encoding = ("-encoding", _encoding(broken_sources | new_tests))
    return Task(
        task_id=f"{bug.folder.name}-{bug.number}",
        tree=FilesTree(dict(sorted(tree.items()))),
        problem_statement=statement(bug.project, bug.report, bug.url, failures, tests.source),
        gold_patch=gold.text,
        test_patch=Patch.between(old_tests, new_tests).text,
        fail_to_pass=tests.broken,
        pass_to_pass=tests.working,
        excluded_tests=tests.left_out,
        repo=bug.project,
        created_at=reader.date(bug.buggy),
        difficulty=_difficulty(gold),
        language="java",
        visible_test_command=_visible(bug, tests, tree, encoding[1]),
        runner="java",
        grading_timeout_s=120.0,  # up to a thousand tests
        test_command=" ".join([*roots, *_class_path(tests.libraries), "--release 8", *encoding]),
    )


def _sources(bug: Bug, after: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the sources without and with the bug; resources that its patch changes count too."""
    path = bug.folder / "patches" / f"{bug.number}.src.patch"
    try:
        patch = Patch(read_text(path))
        named = {name: after[name] for name in patch.paths & after.keys()}
        sources = files_below(after, _area(bug.source_root)) | named
        return sources, patch.apply(sources)
    except PatchError as error:
        raise InvalidTaskError(f"{path}: does not fit commit {bug.fixed}: {error}") from None


def _area(root: str) -> str:
    """Returns the folder of sources with that of resources, which Maven has beside it."""
    return root.removesuffix("/java") if root.endswith(("/main/java", "/test/java")) else root


def _roots(bug: Bug, tree: Iterable[str]) -> list[str]:
    """Returns the source folders, and those of resources beside them that there are."""
    roots = [bug.source_root, bug.test_root]
    for root in (bug.source_root, bug.test_root):
        resources = str(PurePosixPath(root).parent / "resources")
        if resources not in roots and any(path.startswith(f"{resources}/") for path in tree):
            roots.append(resources)
    return roots


def _encoding(files: dict[str, str]) -> str:
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


def _visible(bug: Bug, tests: BugTests, tree: dict[str, str], encoding: str) -> str:
    """Returns a command that compiles the base, and runs those classes of the tests that it has."""
    present = [name for name in tests.classes if tests.path(name) in tree]
    roots = ":".join(_roots(bug, tree))
    _, jars = _class_path({"junit4", "hamcrest-core", *(tests.libraries or ())})
    sources = " ".join(map(tests.path, present)) or f"$(find {bug.source_root} -name '*.java')"
    compiled = (
        f"mkdir -p /tmp/classes && javac -nowarn --release 8 -encoding {encoding} -proc:none "
        f"-cp {jars} -sourcepath {roots} -d /tmp/classes {sources}"
    )
    if not present:
        return compiled
    run = f"java -cp /tmp/classes:{jars}:{roots} org.junit.runner.JUnitCore {' '.join(present)}"
    return f"{compiled} && {run}"
