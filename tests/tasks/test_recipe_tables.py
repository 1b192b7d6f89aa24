"""SWE-bench's tables: they are read once, in a sandbox, and become environments of rows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rows import loaded, refusal, row

from coding_gym.task import Task
from coding_gym.tasks import load_tasks, recipe_tables
from coding_gym.tasks.recipe_tables import read_tables
from coding_gym.workspace import Template, TemplateStore

pytestmark = pytest.mark.slow

ROW = row(repo="o/n", version="1.2")
OTHER = ROW | {"instance_id": "owner__name-2"}
SPEC = {"python": "3.9", "install": "python -m pip install -e .", "test_cmd": "pytest -rA"}
TABLES: dict[str, dict[str, Any]] = {
    "specs": {
        "o/n": {"1.2": SPEC, "1.3": SPEC | {"packages": "requirements.txt"}},
        "o/js": {"1": {}},
    },
    "requirements": {"o/n": ["dev.txt"]},
    "environments": {},
}

# A fake package with tables; a normal import of the package fails.
FAKE_PACKAGE = """\
cd "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
mkdir -p swebench/harness/constants
echo 'import something_that_is_not_there' | tee swebench/__init__.py > swebench/harness/__init__.py
echo 'from swebench.harness.constants.python import *' > swebench/harness/constants/__init__.py
cat > swebench/harness/constants/python.py <<'EOF'
MAP_REPO_VERSION_TO_SPECS = {"o/n": {"1.2": {"python": "3.9", "pip_packages": ["a"]}}}
MAP_REPO_TO_REQS_PATHS = {"o/n": ["dev.txt"]}
MAP_REPO_TO_ENV_YML_PATHS = {}
EOF
"""


@pytest.fixture
def fake_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe_tables, "read_tables", lambda: TABLES)


class OfflineStore(TemplateStore):
    def get(self, task: Task) -> Template:
        install, *others = task.install_commands
        assert install.endswith("swebench==4.1.0")
        return super().get(replace(task, install_commands=(FAKE_PACKAGE, *others)))


def test_tables_are_read_once_in_a_sandbox(tmp_path: Path) -> None:
    tables = read_tables(OfflineStore(folder=tmp_path))
    assert tables["specs"] == {"o/n": {"1.2": {"python": "3.9", "pip_packages": ["a"]}}}
    assert tables["requirements"] == {"o/n": ["dev.txt"]}
    [log] = tmp_path.glob("environments/*/build.log")
    facts = log.stat()
    assert read_tables(OfflineStore(folder=tmp_path)) == tables
    assert log.stat() == facts


def test_a_source_takes_its_environments_from_the_tables(fake_tables: None) -> None:
    other = OTHER | {"version": "9", "interpreter": "3.10"}
    task, untouched = load_tasks([ROW, other], environments="swebench")
    assert (task.interpreter, task.visible_test_command) == ("3.9", "pytest -rA")
    assert task.install_commands[-2:] == (SPEC["install"], "python -m pip install 'pytest<9'")
    assert "numpy<2" in task.install_commands[0]
    assert task.runner == "pytest"
    assert (untouched.interpreter, untouched.install_commands) == ("3.10", ())


def test_requirements_file_is_read_where_the_project_has_it(fake_tables: None) -> None:
    task = loaded(ROW | {"version": "1.3"}, environments="swebench")
    assert any("dev.txt" in command for command in task.install_commands)


@pytest.mark.parametrize("fields", [{"repo": "o/x"}, {"version": ""}, {"repo": "o/js"}])
def test_projects_that_no_table_knows_are_named(fake_tables: None, fields: dict[str, Any]) -> None:
    unknown = ROW | fields
    message = refusal([unknown], environments="swebench")
    assert f"{unknown['repo']} {unknown['version']}".strip() in message
