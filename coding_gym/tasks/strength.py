"""How strong a task's tests are: whether they catch one new bug in what the gold patch writes.

Mutation testing as of DeMillo, Lipton and Sayward ("Hints on test data selection", IEEE Computer
1978), on the lines that the patch adds. Some mutants do what the gold patch does, in another way:
no test can catch those, so that a share of 1 is rare.
"""

import difflib
import random

from coding_gym.grading import grade
from coding_gym.mutation.catalogue import bugs
from coding_gym.mutation.sites import sites
from coding_gym.mutation.source import Source, apply_edits
from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.task import Task
from coding_gym.workspace import Template


def try_mutants(
    task: Task, template: Template, *, limit: int, backend: str = "auto"
) -> tuple[int, int]:
    """Grades mutants of a task's gold patch; returns how many there were, and how many were caught.

    Args:
        task: A task whose gold patch resolves it.
        template: Its template.
        limit: At most this many mutants, drawn by the task's id. Files that are no Python have
            none.
        backend: Name of the sandbox backend.

    Raises:
        SandboxError: No sandbox could be opened, or it died.
        PatchError: The gold patch does not fit its base.
    """
    mutants = make_mutants(task, template, limit=limit, backend=backend)
    caught = [not grade(task, template, one, backend=backend).resolved for one in mutants]
    return len(mutants), sum(caught)


def make_mutants(
    task: Task, template: Template, *, limit: int, backend: str = "auto"
) -> tuple[Patch, ...]:
    """Returns patches that are the gold patch with one bug each; raises as `try_mutants` does."""
    gold = Patch(task.gold_patch)
    base: dict[str, str] = {}
    with open_sandbox(template.spec, backend=backend) as sandbox:
        for change in gold.files:
            if change.old_path is not None:
                data = sandbox.read_file(change.old_path)
                base[change.old_path] = data.decode("utf-8", "surrogateescape")
    repaired = gold.apply(base)
    found: dict[str, Patch] = {}
    for path in sorted(repaired):
        for text in _with_bugs(path, base.get(path, ""), repaired[path]):
            patch = Patch.between(base, repaired | {path: text})
            if not patch.is_empty:
                found.setdefault(patch.text, patch)
    patches = list(found.values())
    draw = random.Random(task.task_id)  # noqa: S311 - the same mutants every time
    chosen = draw.sample(range(len(patches)), min(limit, len(patches)))
    return tuple(patches[number] for number in sorted(chosen))


def _with_bugs(path: str, before: str, after: str) -> list[str]:
    """Returns the texts of a file with one bug each, in lines that a patch adds."""
    source = Source.from_bytes(path, after.encode("utf-8", "surrogateescape"))
    if source is None or not path.endswith(".py"):
        return []
    added = _added_lines(before, after)
    return [
        apply_edits(after, change.edits)
        for site in sites(source)
        if site.line in added
        for change in bugs(site)
    ]


def _added_lines(before: str, after: str) -> set[int]:
    """Returns the numbers, from 1, of lines that are new."""
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    return {
        number + 1
        for tag, _, _, start, end in matcher.get_opcodes()
        if tag != "equal"
        for number in range(start, end)
    }
