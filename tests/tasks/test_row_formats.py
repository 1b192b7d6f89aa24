"""Rows of each dataset's format: the tasks that they become, and refused fields."""

import datetime
import json
import shlex

import pytest
from rows import loaded, refusal, row

from coding_gym.errors import InvalidTaskError
from coding_gym.task import FilesTree, GitTree, ImageTree
from coding_gym.tasks import load_tasks
from coding_gym.tasks.sources import areno, swe_bench, swe_rebench, swe_smith

GOLD = """\
diff --git a/pkg/core.py b/pkg/core.py
--- a/pkg/core.py
+++ b/pkg/core.py
@@ -1 +1 @@
-a
+b
"""


def script(*commands: str) -> str:
    return "\n".join(["x", ": '>>>>> Start Test Output'", *commands, ""])


FILES = {"calc.py": "def add(a, b):\n    return a - b\n", "test_calc.py": "…"}
TEST = "test_calc.py::test_add"
ARENO = row(files=FILES, FAIL_TO_PASS=[TEST], test_commands=["pytest test_calc.py"], max_turns=8)
NEMO = row(instance_id="getmoto__moto-1", repo="getmoto/moto")
SWE_BENCH = row() | {
    "patch": GOLD,
    "test_patch": GOLD.replace("pkg/core", "tests/test_core"),
    "FAIL_TO_PASS": '["tests/test_core.py::test_a[x::y]"]',
    "PASS_TO_PASS": ["tests/test_core.py::Case::test_b"],
}
CONFIG = {
    "python": "3.9",
    "install": "pip install -e .[dev]",
    "pre_install": ["apt-get update && apt-get install -y gcc", "touch local.cfg"],
    "pip_packages": ["pytest", "pytest-cov"],
    "reqs_path": ["requirements/dev.txt"],
    "packages": "requirements.txt",
    "test_cmd": "pytest --no-header -rA",
    "log_parser": "parse_log_pytest",
    "env_vars": None,
}
REBENCH = row(
    created_at=datetime.datetime(2024, 5, 14, 9, 30),  # as Parquet has it
    install_config=CONFIG,
    requirements="click==8.1.8\n-e git+https://h/o/n@1#egg=name\nFlask[async]==3.1.0\n",
    docker_image="swerebench/sweb.eval.x86_64.owner_1776_name-64",
)
SMITH = row(repo="swesmith/owner__name.0123abcd", patch=GOLD)
INSTANCE = "responses_create_params.metadata.instance_dict"


@pytest.mark.parametrize(
    ("base", "field", "value"),
    [
        (ARENO, "test_commands", None),
        (ARENO, "test_commands", [" "]),
        (ARENO, "files", {"a.py": 1}),
        (ARENO, "max_turns", True),
        (NEMO, "responses_create_params", 3),
        (NEMO, INSTANCE, "{"),
        (SWE_BENCH, "eval_script", "exit"),
        (SWE_BENCH, "log_parser", []),
        (REBENCH, "install_config.python", 3.9),
        (REBENCH, "install_config.pip_packages", [1]),
        (REBENCH, "requirements", 3),
        (SMITH, "repo", "swesmith/name"),
        *((SMITH, "patch", value) for value in (None, "nonsense", "")),
        (SMITH, "image_name", 3),
    ],
)
def test_malformed_row_is_refused_with_row_and_field(base, field, value):
    outer, *inner = field.split(".")
    changed = value
    for key in reversed(inner):
        changed = {key: changed}
    if base is REBENCH and inner:
        changed = CONFIG | changed
    bad = {outer: changed} if base is NEMO else base | {outer: changed}
    message = refusal([base, bad])
    assert message.startswith("row 2")
    assert f"field '{field}'" in message


def test_row_inside_a_request_is_refused_by_its_own_field():
    request = {"metadata": {"instance_dict": {}}}
    assert "field 'instance_id'" in refusal([{"responses_create_params": request}])


def test_pytest_ids_of_areno_rows_become_expected_tests():
    task = loaded(ARENO)
    assert task.tree == FilesTree(FILES)
    assert (task.runner, task.fail_to_pass, task.max_turns) == ("pytest", (TEST,), 8)
    assert task.visible_test_command == "pytest test_calc.py"
    assert load_tasks([task.to_row()]) == (task,)


@pytest.mark.parametrize("named", [[], None, ["adds two numbers"]])
def test_areno_commands_become_tests_without_pytest_ids(named):
    commands = ("make check", "./run all")
    task = loaded(ARENO | {"FAIL_TO_PASS": named, "test_commands": list(commands)})
    assert (task.runner, task.fail_to_pass, task.pass_to_pass) == ("command", commands, ())
    assert task.visible_test_command == "make check && ./run all"


def test_nemo_gym_request_is_read_in_every_form():
    request = {"responses_create_params": {"input": []}, "subset": "gym", "split": "train"}
    task = loaded(NEMO | request)
    assert (task.task_id, task.split) == ("getmoto__moto-1", "train")
    assert task.image == "xingyaoww/sweb.eval.x86_64.getmoto_s_moto-1:latest"
    for instance in (json.dumps(NEMO), NEMO):
        metadata = {"instance_dict": instance, "split": "test"}
        task = loaded({"responses_create_params": {"input": [], "metadata": metadata}})
        assert (task.task_id, task.split) == ("getmoto__moto-1", "test")
        assert task.tree == GitTree("https://github.com/getmoto/moto")
    task = loaded({"responses_create_params": {"metadata": {"instance_dict": ARENO}}})
    assert (task.task_id, task.max_turns) == ("owner__name-1", 8)


def test_fields_of_a_row_override_what_is_inferred():
    fields = {"install_commands": ["make"], "image": "", "runner": "command", "test_report": "x"}
    task = loaded(SWE_BENCH | fields | {"eval_script": script("make")})
    assert (task.install_commands, task.runner, task.test_report) == (("make",), "command", "x")
    assert loaded(SWE_BENCH | {"repo": "psf/requests", "image": ""}).image == ""


DJANGO = "./tests/runtests.py --verbosity 2 --settings=test_sqlite test_core"
GO_SCRIPT = script("go test -v ./...")
GO = {"eval_script": GO_SCRIPT, "log_parser": "parse_log_gotest"}
UNITTEST = {"eval_script": script("cd src", "python -m unittest -v pkg")}


@pytest.mark.parametrize(
    ("test", "fields", "runner", "command", "report"),
    [
        ("t.py::test_x", {}, "pytest", "", ""),
        (
            "test_x (app.tests.Case)",
            {"repo": "django/django"},
            "swebench",
            f"DJANGO_TEST_PROCESSES=1 {DJANGO}",
            "django",
        ),
        (
            *("test_Idx", {"repo": "sympy/sympy"}, "swebench"),
            *("bin/test -C --verbose tests/test_core.py", ""),
        ),
        ("TestServe/no_body", GO, "swebench", GO_SCRIPT.strip(), "gotest"),
        (
            *("test_x (pkg.Case.test_x)", UNITTEST, "swebench"),
            *("cd src\npython -m unittest -v pkg", "django"),
        ),
    ],
)
def test_runner_follows_the_ids_and_the_command(test, fields, runner, command, report):
    task = loaded(SWE_BENCH | fields | {"FAIL_TO_PASS": [test]})
    assert (task.runner, task.test_command, task.test_report) == (runner, command, report)


@pytest.mark.parametrize(
    ("repo", "image"),
    [
        ("django/django", "swebench/sweb.eval.x86_64.django_1776_django-1:latest"),
        ("Project-MONAI/MONAI", "xingyaoww/sweb.eval.x86_64.project-monai_s_monai-1:latest"),
        ("owner/name", ""),
    ],
)
def test_image_is_the_one_that_the_dataset_publishes(repo, image):
    task_id = f"{repo.replace('/', '__')}-1"
    assert loaded(SWE_BENCH | {"repo": repo, "instance_id": task_id}).image == image


@pytest.mark.parametrize(
    ("fields", "language"),
    [
        ({"patch": GOLD}, "python"),
        ({"patch": GOLD.replace("core.py", "core.tsx")}, "typescript"),
        ({"patch": GOLD.replace("core.py", "core.h")}, "c"),
        ({"patch": GOLD.replace("core.py", "core.txt")}, "python"),
        ({"language": "JS"}, "javascript"),
        ({"language": "C++"}, "cpp"),
    ],
)
def test_language_comes_from_the_row_or_the_gold_patch(fields, language):
    assert loaded(SWE_BENCH | fields).language == language


def test_frozen_requirements_come_before_the_project():
    task = loaded(REBENCH)
    assert task.install_commands[1:] == (
        "touch local.cfg",
        "python -m pip install click==8.1.8 'Flask[async]==3.1.0'",
        "python -m pip install pytest pytest-cov",
        "pip install -e .[dev]",
    )
    assert (task.interpreter, task.runner) == ("3.9", "pytest")
    assert task.image == "swerebench/sweb.eval.x86_64.owner_1776_name-64"
    assert task.created_at == "2024-05-14T09:30:00"
    task = loaded(REBENCH | {"requirements": None})
    assert task.install_commands[2] == "python -m pip install -r requirements/dev.txt"


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("A=1 apt-get install -y x", ""),
        ("make", "make"),
        ("sudo make x && make", " && make"),
        ("(make && sudo make x)", ""),
        ("apt-get install -y x\nA=1\nmake $A", "\nA=1\nmake $A"),
        ("(make)\n  apt-get install -y x", ""),
        ("if ! make; then apt-get install -y x; fi", ""),
        ("bash -lc 'apt-get install -y x'", ""),
        ("if ! command -v gcc; then apt-get update && apt-get install -y gcc; fi", ""),
        *((text, text) for text in ("V=1.2 && pip install foo==$V", "cd sub && FLAG=1 && make")),
    ],
)
def test_commands_that_need_root_only_print_their_text(command, kept):
    config = CONFIG | {"pre_install": [], "install": command}
    install = loaded(REBENCH | {"install_config": config}).install_commands[-1]
    assert (install == command) is (kept == command)
    assert install.endswith(kept)
    assert install == command or shlex.split(install.removesuffix(kept))[0::2] == ["echo"]


@pytest.mark.parametrize("date", [1715679000000, 1715679000])
def test_an_integer_date_counts_milliseconds_or_seconds(date):
    assert loaded(REBENCH | {"created_at": date}).created_at == "2024-05-14T09:30:00+00:00"


def test_other_languages_run_their_command_and_read_its_log():
    config = {"install": ["npm ci"], "test_cmd": ["npm run build", "npx jest"]}
    task = loaded(
        REBENCH
        | {
            "language": "ts",
            "FAIL_TO_PASS": ["suite > case"],
            "install_config": config | {"log_parser": "parse_log_jest"},
            "docker_image": None,
            "image_name": "docker.io/swerebenchv2/owner-name:1",
            "requirements": "",
        }
    )
    assert (task.runner, task.test_report, task.language) == ("swebench", "jest", "typescript")
    assert task.test_command == "npm run build\nnpx jest"
    assert (task.install_commands, task.interpreter) == (("npm ci",), "base")
    assert task.image == "docker.io/swerebenchv2/owner-name:1"


ODD = [None, 3, [], {}, "text", {"a": 1}, [1, "b"]]
KEYS = ("repo", "patch", "image_name", "FAIL_TO_PASS", "PASS_TO_PASS", "eval_script", "log_parser")
KEYS += ("language", "install_config", "requirements", "docker_image", "test_patch", "hints")
KEYS += ("problem_statement", "files", "test_commands", "instance_id", "responses_create_params")


def test_malformed_values_raise_only_invalid_task_errors():
    messages = []
    for key in KEYS:
        for value in ODD:
            for row_format in (areno, swe_bench, swe_rebench, swe_smith):
                try:
                    row_format.to_row({**dict.fromkeys(KEYS, "x"), key: value}, "row 1")
                except InvalidTaskError as error:
                    messages.append(str(error))
    assert messages
    assert all(text.startswith("row 1") and "\n" not in text for text in messages)


def test_environment_in_an_image_drops_install_commands():
    bug = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n"
    bare = row(install_commands=["make"], image="i", reverse_patch=bug)
    task = loaded(bare, environments={"owner__name-1": {"image_path": "/testbed"}})
    assert (task.install_commands, task.interpreter) == ((), "image")
    assert task.tree == ImageTree(bug)
    assert load_tasks([task.to_row()]) == (task,)
    task = loaded(bare, environments={"owner__name-1": {"interpreter": "3.9"}})
    assert task.install_commands == ("make",)
    assert task.tree == GitTree("https://github.com/owner/name", bug)


MARKED = "go test -v ./...\ncd sub && make check"
EVAL_SCRIPT = f"""\
#!/bin/bash
set -uxo pipefail
source /opt/miniconda3/bin/activate
cd /testbed
git config --global --add safe.directory /testbed
export LANG=en_US.UTF-8
for a in b c; do
  make $a
done
git checkout 1111111 tests/test_core.py
git apply -v - <<'EOF_114'
diff --git a/x b/x
+: '>>>>> Start Test Output'
make this no command
EOF_114
cat > setup.cfg <<END
git status
END
: '>>>>> Start Test Output'
{MARKED}
: '>>>>> End Test Output'
git checkout 1111111 tests/test_core.py
"""
GO_TEST = {"FAIL_TO_PASS": ["a"], "log_parser": "gotest"}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_eval_script_runs_without_commands_that_write_hidden_tests(newline):
    task = loaded(row(eval_script=EVAL_SCRIPT.replace("\n", newline), **GO_TEST))
    before, _, rest = EVAL_SCRIPT.partition("git checkout 1111111")
    kept = rest[rest.index("cat > setup.cfg") : rest.rindex("\ngit checkout")]
    assert (task.runner, task.test_command) == ("swebench", before + kept)
    task = loaded(row(eval_script=EVAL_SCRIPT))
    assert (task.runner, task.test_command) == ("pytest", MARKED)
