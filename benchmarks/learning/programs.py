"""A bench for learning: bugs of one edit in many programs, and no program on both sides.

    python benchmarks/learning/programs.py --out bench            # the tasks, in a few minutes
    python benchmarks/learning/programs.py --out bench --report   # prints what is there
    python benchmarks/learning/programs.py --make scratch         # looks for bugs anew, in an hour

The programs come with this package, or are source distributions that bring their tests and are
fetched. ``bugs.json.gz`` says where each program is broken, which tests fail, and which of these
are hidden: half of the functions that fail, as `coding-gym tasks synthesize --show-failing` chose
them; the agent sees the other half. The grader confirmed every bug when the file was made, as
`docs/synthesis.md` says. Tests that fail without any bug are excluded. ``train.jsonl`` and
``test.jsonl``
hold the tasks of three quarters and of one quarter of the programs, chosen by a digest of their
names.
"""

import argparse
import ast
import gzip
import hashlib
import json
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from coding_gym import load_tasks
from coding_gym.mutation.catalogue import BUG_KINDS
from coding_gym.patch import Patch
from coding_gym.syntax import Function, first_line
from coding_gym.synthesis import Project, copy_project, download, write_rows
from coding_gym.synthesis.hiding import hide
from coding_gym.task import FolderTree, Task
from coding_gym.tasks.bundled_tasks import bundled_folder

# Pure Python, their tests within seconds; tried with `synthesize` before they came to this list.
DISTRIBUTIONS = (
    "addict==2.4.0",
    "boolean.py==5.0",
    "cachetools==8.0.1",
    "deepmerge==4.0.0",
    "flatten-dict==0.5.0",
    "funcy==2.1",
    "glom==25.12.0",
    "hashids==1.3.1",
    "inflection==0.5.1",
    "itsdangerous==2.2.0",
    "money==1.3.0",
    "munch==4.0.0",
    "ordered-set==4.1.0",
    "python-slugify==9.2.0",
    "schema==0.7.8",
    "shortuuid==1.0.13",
    "simpleeval==1.0.8",
    "tabulate==0.10.0",
    "tinydb==4.9.0",
    "toolz==1.2.0",
    "uritemplate==4.2.0",
    "validators==0.36.0",
    "voluptuous==0.16.0",
    "w3lib==2.5.0",
    "webcolors==25.10.0",
)
SPLITS = ("train", "test")
BUGS = Path(__file__).with_name("bugs.json.gz")
_TEST_SHARE = 4  # one program in so many
_TIMEOUT_S = 3600.0
_GRADING_TIMEOUT_S = 10.0  # an episode with a patch that never ends waits so long for its grade
_INSTALL = "python -m pip install --quiet pytest --editable ."
_COMMAND = Path(sys.executable).with_name("coding-gym")
_MAX_NAMED = 3  # failing tests in a report

Bug = Mapping[str, Any]
"""A bug as ``bugs.json.gz`` has it: task_id, path, edits, hidden, failing, difficulty."""


def requirements() -> dict[str, str]:
    """Returns the distribution of each program by the program's name; "" for bundled ones."""
    folders = sorted(bundled_folder().iterdir())
    found = {folder.name: "" for folder in folders if list(folder.glob("tree/**/test_*.py"))}
    return found | {one.partition("==")[0]: one for one in DISTRIBUTIONS}


def split_of(name: str) -> str:
    """Returns the split of a program: always the same, whatever other programs there are."""
    digest = hashlib.sha256(name.encode()).digest()
    return SPLITS[digest[0] % _TEST_SHARE == 0]


def project_of(name: str, requirement: str, trees: Path) -> Project:
    """Returns a program, whose files will be in a folder of ``trees``."""
    if not requirement:
        name, folder = copy_project(bundled_folder() / name / "tree", trees, name=name)
        return Project(name=name, folder=folder)
    name, version, folder = download(requirement, trees)
    return Project(name=name, folder=folder, version=version, install_commands=(_INSTALL,))


# From the list of bugs to tasks.


def build(out: Path, workers: int, *, is_offline: bool = False) -> None:
    """Writes the splits of the bench, which the list of bugs describes.

    Args:
        out: The folder of the bench.
        workers: Programs at a time.
        is_offline: Only of the programs that come with this package.

    Raises:
        ValueError: A program is not the one that was broken.
    """
    programs = json.loads(gzip.decompress(BUGS.read_bytes()))
    if is_offline:
        programs = {name: one for name, one in programs.items() if not one["requirement"]}

    def tasks_of(name: str) -> list[Task]:
        program = programs[name]
        project = project_of(name, program["requirement"], out / "trees")
        if project.digest() != program["digest"]:
            raise ValueError(f"{name} differs from the program that was broken; use --make")
        print(f"{name}: {len(program['bugs'])} tasks", flush=True)
        return [_task(name, project, program, bug) for bug in program["bugs"]]

    with ThreadPoolExecutor(workers) as pool:
        tasks = dict(zip(programs, pool.map(tasks_of, programs), strict=True))
    for split in SPLITS:
        chosen = [task for name in programs if split_of(name) == split for task in tasks[name]]
        write_rows(chosen, out / f"{split}.jsonl")


def _task(name: str, project: Project, program: Mapping[str, Any], bug: Bug) -> Task:
    """Returns the task of one bug."""
    hidden = [(path, line) for path, line in bug["hidden"]]
    paths = {bug["path"], *(path for path, _ in hidden)}
    texts = {path: data.decode("utf-8") for path, data in project.contents(paths).items()}
    visible = hide({path: texts[path] for path, _ in hidden}, hidden)
    if visible is None:
        raise ValueError(f"{bug['task_id']}: its tests cannot be hidden; use --make")
    broken = {bug["path"]: _edited(texts[bug["path"]], bug["edits"])}
    gold = Patch.between(broken, {bug["path"]: texts[bug["path"]]}).text
    tests = Patch.between(visible, {path: texts[path] for path in visible}).text
    failing = tuple(program["tests"][number] for number in bug["failing"])
    return replace(
        project.task(bug["task_id"], _report(failing, texts, hidden)),
        repo=name,
        tree=FolderTree(str(project.folder), gold + tests),
        gold_patch=gold,
        test_patch=tests,
        fail_to_pass=failing,
        pass_to_pass=tuple(test for test in program["tests"] if test not in failing),
        excluded_tests=tuple(program["excluded"]),
        visible_test_command=shlex.join(
            ["python", "-m", "pytest", "-q", *(f"--deselect={t}" for t in program["excluded"])]
        ),
        difficulty=bug["difficulty"],
        grading_timeout_s=_GRADING_TIMEOUT_S,
    )


def _edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _report(
    failing: Iterable[str], texts: Mapping[str, str], hidden: Iterable[tuple[str, int]]
) -> str:
    """Returns an issue that names a few of the failing tests that the agent sees."""
    names = [_functions(texts[path]).get(line, "") for path, line in hidden]
    gone = {name.rpartition(".")[2] for name in names}  # also where a class inherits them
    named: dict[str, None] = {}
    for test in failing:
        path, _, name = test.partition("[")[0].partition("::")
        if name.rpartition("::")[2] not in gone:
            named[f"{path}::{name}"] = None
    lines = [f"- {name}" for name in list(named)[:_MAX_NAMED]]
    return "\n".join(["These tests fail:", *lines, "Find the bug and repair it."]) + "\n"


def _functions(text: str) -> dict[int, str]:
    """Returns the dotted name of every function by its first line."""
    found = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (Function, ast.ClassDef)):
                if isinstance(child, Function):
                    found[first_line(child)] = prefix + child.name
                visit(child, f"{prefix}{child.name}.")
            else:
                visit(child, prefix)

    visit(ast.parse(text), "")
    return found


# From synthesized tasks to the list of bugs.


def make(scratch: Path, each: int, seed: int, workers: int) -> None:
    """Synthesizes tasks of every program that has none yet, and writes the list of bugs."""

    def bugs_of(name: str, requirement: str) -> tuple[str, dict[str, Any] | None]:
        file = scratch / f"{name}.jsonl"
        if not file.exists() and not _synthesize(file, name, requirement, each, seed):
            return name, None
        project = project_of(name, requirement, scratch / "trees")
        return name, {"requirement": requirement, **_program(project, load_tasks(str(file)))}

    with ThreadPoolExecutor(workers) as pool:  # one core each: a synthesis is one process
        found = dict(pool.map(lambda one: bugs_of(*one), requirements().items()))
    programs = {name: program for name, program in found.items() if program is not None}
    BUGS.write_bytes(gzip.compress(json.dumps(programs).encode(), mtime=0))


def _synthesize(file: Path, name: str, requirement: str, each: int, seed: int) -> bool:
    source = ["--pypi", requirement] if requirement else ["--repo", _tree(name)]
    operators = [word for kind in BUG_KINDS for word in ("--operator", kind)]  # one edit each
    command = [str(_COMMAND), "tasks", "synthesize", *source, "--show-failing", *operators]
    command += ["--num-tasks", str(each), "--seed", str(seed), "--out", str(file)]
    ended = subprocess.run(
        command, timeout=_TIMEOUT_S, check=False, capture_output=True, text=True, errors="replace"
    )
    if ended.returncode:
        print(f"{name}: no tasks: {ended.stderr.strip()[-500:]}", file=sys.stderr)
    else:
        print(f"{name}: {len(file.read_text().splitlines())} tasks", flush=True)
    return not ended.returncode


def _tree(name: str) -> str:
    return str(bundled_folder() / name / "tree")


def _program(project: Project, tasks: Iterable[Task]) -> dict[str, Any]:
    """Returns a program's entry in the list of bugs; holds no text of the program."""
    tasks = list(tasks)
    tests = sorted({test for task in tasks for test in task.expected_tests})
    excluded = sorted({test for task in tasks for test in task.excluded_tests})
    program = {"digest": project.digest(), "tests": tests, "excluded": excluded}
    numbers = {test: number for number, test in enumerate(tests)}
    bugs = []
    for task in tasks:
        (path,) = Patch(task.gold_patch).paths
        changed = {path, *Patch(task.test_patch).paths}
        texts = {p: data.decode("utf-8") for p, data in project.contents(changed).items()}
        before = Patch(task.gold_patch + task.test_patch).apply(texts, reverse=True)
        bug = {
            "task_id": task.task_id.replace("tree__", f"{project.name}__"),
            "path": path,
            "edits": _edits(texts[path], before[path]),
            "hidden": sorted(
                (p, line) for p in before if p != path for line in _hidden(texts[p], before[p])
            ),
            "failing": [numbers[test] for test in task.fail_to_pass],
            "difficulty": task.difficulty,
        }
        again = _task(project.name, project, program, bug)
        if (again.gold_patch, again.test_patch) == (task.gold_patch, task.test_patch):
            bugs.append(bug)
        else:  # a hidden test that shares its name with another one
            print(f"{task.task_id} is left out: the list cannot describe it", file=sys.stderr)
    return {**program, "bugs": bugs}


def _edits(text: str, other: str) -> list[tuple[int, int, str]]:
    """Returns the spans to replace, and with what, to come from one text to another."""
    start = _num_shared(text, other)
    rest = text[start:], other[start:]
    tail = _num_shared(*(one[::-1] for one in rest))
    old, new = (one[: len(one) - tail] for one in rest)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        (start + a, start + b, new[c:d])
        for kind, a, b, c, d in matcher.get_opcodes()
        if kind != "equal"
    ]


def _num_shared(one: str, other: str) -> int:
    """Returns how many characters two texts have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _hidden(text: str, visible: str) -> list[int]:
    """Returns the first lines of the functions that are missing from the visible text."""
    left = Counter(_functions(visible).values())
    return [line for line, name in _functions(text).items() if not left[name]]


def report(out: Path) -> None:
    """Prints how many tasks there are, by split, program and difficulty."""
    for split in SPLITS:
        rows = [json.loads(line) for line in (out / f"{split}.jsonl").read_text().splitlines()]
        names = sorted({row["repo"] for row in rows})
        for name in names:
            found = Counter(row["difficulty"] for row in rows if row["repo"] == name)
            print(f"{split:<6}{name:<24}{found.total():>5}  {dict(sorted(found.items()))}")
        print(f"{split}: {len(rows)} tasks of {len(names)} programs\n")


def main() -> None:
    """Builds the bench, prints what is there, or looks for bugs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="the folder of the bench")
    parser.add_argument("--offline", action="store_true", help="only programs of this package")
    parser.add_argument("--report", action="store_true", help="only print what is there")
    parser.add_argument("--make", type=Path, metavar="SCRATCH", help="look for bugs; a folder")
    parser.add_argument("--each", type=int, default=40, help="bugs of a program (default 40)")
    parser.add_argument("--seed", type=int, default=0, help="decides which (default 0)")
    parser.add_argument("--workers", type=int, default=2, help="programs at a time (default 2)")
    options = parser.parse_args()
    if options.make:
        options.make.mkdir(parents=True, exist_ok=True)
        make(options.make, options.each, options.seed, options.workers)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        if not options.report:
            build(options.out, options.workers, is_offline=options.offline)
        report(options.out)
    elif not options.make:
        parser.error("name the folder of the bench (--out), or --make")


if __name__ == "__main__":
    main()
