"""The installation tables of SWE-bench's harness, read once in a sandbox and cached.

Version 4.1.0 of the ``swebench`` package is the last release with these tables. A task made only
for this purpose installs the package, without dependencies, and a sandbox reads the tables.
"""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from coding_gym.errors import InvalidTaskError
from coding_gym.sandbox import open_sandbox
from coding_gym.task import FilesTree, Task
from coding_gym.tasks.recipes import make_recipe
from coding_gym.workspace import TemplateStore

_VERSION = "4.1.0"
_INSTALL = f"python -m pip install -q --no-deps swebench=={_VERSION}"
_TABLES = "tables.json"

# Empty packages replace the real packages, which import all dependencies of the harness; only the
# module of constants runs.
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


@cache
def read_tables(store: TemplateStore | None = None) -> dict[str, dict[str, Any]]:
    """Returns SWE-bench's tables; the first call on a machine downloads their package.

    The key ``specs`` has the specifications by repository and version; ``requirements`` and
    ``environments`` have the possible paths of pip's and conda's requirements, by repository.

    Args:
        store: The store that caches the tables; the user's cache by default.

    Raises:
        TemplateError: The package cannot be installed.
        SandboxError: No sandbox could be opened.
    """
    task = Task(
        task_id=f"swebench-{_VERSION}-tables",
        tree=FilesTree({"dump.py": _DUMP}),
        problem_statement="How does SWE-bench install its projects?",
        install_commands=(_INSTALL, "python dump.py"),
    )
    with open_sandbox((store or TemplateStore()).get(task).spec) as sandbox:
        tables: dict[str, dict[str, Any]] = json.loads(sandbox.read_file(_TABLES))
    return tables


def recipe_entries(tasks: Iterable[Task]) -> dict[str, dict[str, Any]]:
    """Returns a value for ``environments`` of `load_tasks`, from SWE-bench's tables.

    Args:
        tasks: Tasks with ``repo`` and ``version``; tasks without a Python entry are skipped.

    Raises:
        InvalidTaskError: None of the tasks has a Python entry in the tables.
        TemplateError: The package with the tables cannot be installed.
    """
    tables = read_tables()
    tasks = tuple(tasks)
    entries = {}
    for task in tasks:
        spec = tables["specs"].get(task.repo, {}).get(task.version)
        if spec is None or "python" not in spec:  # other languages need a container
            continue
        entries[task.task_id] = make_recipe(
            spec,
            requirements=tables["requirements"].get(task.repo, ()),
            environments=tables["environments"].get(task.repo, ()),
        )
    if not entries:
        projects = sorted({f"{task.repo} {task.version}".strip() or "(no repo)" for task in tasks})
        raise InvalidTaskError(
            f"SWE-bench's tables have no Python entry for {', '.join(projects[:5])}; "
            "remedy: add 'interpreter' and 'install_commands' to the rows, or to environments"
        )
    return entries
