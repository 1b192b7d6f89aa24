"""The installation tables of SWE-bench's harness, read once in a sandbox and kept in the cache.

Version 4.1.0 of the ``swebench`` package is the last that has them. It is installed without what it
depends on, as the environment of a separate task, so that nothing of it touches this process.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from coding_gym.arguments import unknown_name
from coding_gym.errors import InvalidTaskError, TemplateError
from coding_gym.sandbox import open_sandbox
from coding_gym.task import FilesTree, Task
from coding_gym.tasks.excluded_commands import log_once
from coding_gym.tasks.recipes import make_recipe
from coding_gym.workspace import TemplateStore

_log = logging.getLogger(__name__)

_VERSION = "4.1.0"
_INSTALL = f"python -m pip install -q --no-deps swebench=={_VERSION}"
_TABLES = "tables.json"
_MAX_BYTES = 64 << 20

# Packages of that name stand in for the real ones, whose imports want everything that the harness
# depends on; only the module of constants is run.
_DUMP = """\
import importlib.util, json, os, sys, types

root = os.path.join(sys.prefix, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
for name in ("swebench", "swebench.harness"):
    package = types.ModuleType(name)
    package.__path__ = [os.path.join(root, *name.split("."))]
    sys.modules[name] = package
from swebench.harness import constants

names = {
    "specs": "MAP_REPO_VERSION_TO_SPECS",
    "requirements": "MAP_REPO_TO_REQS_PATHS",
    "environments": "MAP_REPO_TO_ENV_YML_PATHS",
}
with open("tables.json", "w") as file:
    json.dump({key: getattr(constants, name) for key, name in names.items()}, file, default=str)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeTables:
    """How SWE-bench installs each version of its projects.

    Attributes:
        specs: Specifications by repository and version.
        requirements: Where projects have their requirements file, by repository.
        environments: Where they have their conda environment file.
    """

    specs: Mapping[str, Mapping[str, Mapping[str, Any]]]
    requirements: Mapping[str, tuple[str, ...]]
    environments: Mapping[str, tuple[str, ...]]

    def of(self, repo: str) -> Mapping[str, Mapping[str, Any]]:
        """Returns the specifications of a repository, by version.

        Raises:
            UnknownNameError: The tables do not have it.
        """
        if repo not in self.specs:
            raise unknown_name("repository of SWE-bench's tables", repo, self.specs)
        return self.specs[repo]


def read_tables(store: TemplateStore | None = None) -> RecipeTables:
    """Returns SWE-bench's tables; the first call of all installs them, which needs the network.

    Args:
        store: Where they are kept; the user's cache by default.

    Raises:
        TemplateError: They cannot be installed, or are not what they were.
        SandboxError: No sandbox could be opened.
    """
    return _default_tables() if store is None else _read(store)


@cache
def _default_tables() -> RecipeTables:
    return _read(TemplateStore())


def _read(store: TemplateStore) -> RecipeTables:
    task = Task(
        task_id=f"swebench-{_VERSION}-tables",
        tree=FilesTree({"dump.py": _DUMP}),
        problem_statement="How does SWE-bench install its projects?",
        install_commands=(_INSTALL, "python dump.py"),
    )
    with open_sandbox(store.get(task).spec) as sandbox:
        content = sandbox.read_file(_TABLES, max_bytes=_MAX_BYTES)
    return parse_tables(content)


def parse_tables(content: bytes) -> RecipeTables:
    """Returns the tables that a JSON text holds.

    Raises:
        TemplateError: It holds none.
    """
    try:
        found = json.loads(content)
        return RecipeTables(
            specs={repo: dict(versions) for repo, versions in found["specs"].items()},
            requirements={repo: tuple(p) for repo, p in found["requirements"].items()},
            environments={repo: tuple(p) for repo, p in found["environments"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TemplateError(f"SWE-bench's tables cannot be read: {error!r}") from error


def recipe_entries(
    tasks: Iterable[Task], tables: RecipeTables | None = None
) -> dict[str, dict[str, Any]]:
    """Returns what `load_tasks` takes as ``environments``, for those tasks that the tables know.

    Args:
        tasks: Tasks with ``repo`` and ``version``.
        tables: SWE-bench's tables; read where they are needed by default.

    Raises:
        InvalidTaskError: No task has a repository and version that the tables know.
        TemplateError: The tables cannot be had.
    """
    tables = tables or read_tables()
    tasks = tuple(tasks)
    entries = {}
    for task in tasks:
        spec = tables.specs.get(task.repo, {}).get(task.version)
        if spec is None or "python" not in spec:  # of another language, and for containers only
            continue
        recipe = make_recipe(
            spec,
            requirements=tables.requirements.get(task.repo, ()),
            environments=tables.environments.get(task.repo, ()),
            where=f"task {task.task_id}: the table of {task.repo} {task.version}",
        )
        if recipe.excluded:
            log_once(f"task {task.task_id}", recipe.excluded)
        entries[task.task_id] = recipe.to_entry()
    if not entries:
        named = sorted({f"{task.repo} {task.version}".strip() or "(no repo)" for task in tasks})
        raise InvalidTaskError(
            f"SWE-bench's tables know none of the tasks' projects: {', '.join(named[:5])}; give "
            "'interpreter' and 'install_commands' in the rows, or in a file of environments"
        )
    return entries
