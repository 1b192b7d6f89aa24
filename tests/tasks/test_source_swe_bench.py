"""Rows of SWE-bench and its relatives: what they say, and what is told from the rest."""

import pytest
import rows

GOLD = """\
diff --git a/pkg/core.py b/pkg/core.py
--- a/pkg/core.py
+++ b/pkg/core.py
@@ -1 +1 @@
-a
+b
"""


def row(**more: object) -> dict[str, object]:
    fields = {
        "patch": GOLD,
        "test_patch": GOLD.replace("pkg/core", "tests/test_core"),
        "FAIL_TO_PASS": '["tests/test_core.py::test_a[x::y]"]',
        "PASS_TO_PASS": ["tests/test_core.py::Case::test_b"],
    }
    return rows.row(**fields | more)


def load(**more: object):
    return rows.loaded(row(**more))


def test_what_a_row_says_itself_is_kept():
    said = {"install_commands": ["make"], "image": "", "runner": "command", "test_report": "x"}
    task = load(eval_script=script("make"), **said)
    assert (task.install_commands, task.runner, task.test_report) == (("make",), "command", "x")
    assert load(repo="psf/requests", image="").image == ""


def script(*commands: str) -> str:
    return "\n".join(["x", ": '>>>>> Start Test Output'", *commands, ""])


DJANGO = "./tests/runtests.py --verbosity 2 --settings=test_sqlite test_core"
GO = {"eval_script": script("go test -v ./..."), "log_parser": "parse_log_gotest"}
UNITTEST = {"eval_script": script("cd src", "python -m unittest -v pkg")}


@pytest.mark.parametrize(
    ("test", "fields", "runner", "command", "report"),
    [
        ("t.py::test_x", {}, "pytest", "", ""),
        ("test_x (app.tests.Case)", {"repo": "django/django"}, "django", DJANGO, ""),
        (
            *("test_Idx", {"repo": "sympy/sympy"}, "swebench"),
            *("bin/test -C --verbose tests/test_core.py", ""),
        ),
        ("TestServe/no_body", GO, "swebench", "go test -v ./...", "gotest"),
        ("test_x (pkg.Case.test_x)", UNITTEST, "unittest", "python -m unittest -v pkg", ""),
    ],
)
def test_the_runner_is_told_by_the_ids_and_the_command(test, fields, runner, command, report):
    task = load(**fields, FAIL_TO_PASS=[test])
    assert (task.runner, task.test_command, task.test_report) == (runner, command, report)


def test_images_are_named_where_the_dataset_publishes_them():
    for repo, number, image in [
        ("django/django", 1, "swebench/sweb.eval.x86_64.django_1776_django-1:latest"),
        ("redis/redis", 2, "swebench/sweb.eval.x86_64.redis_1776_redis-2:latest"),
        ("Project-MONAI/MONAI", 3, "xingyaoww/sweb.eval.x86_64.project-monai_s_monai-3:latest"),
        ("owner/name", 4, ""),
    ]:
        task_id = f"{repo.replace('/', '__')}-{number}"
        assert load(repo=repo, instance_id=task_id).image == image, repo


@pytest.mark.parametrize(
    ("suffix", "language"),
    [("py", "python"), ("tsx", "typescript"), ("rs", "rust"), ("txt", "python"), ("h", "c")],
)
def test_the_language_is_that_of_the_repair(suffix, language):
    assert load(patch=GOLD.replace("core.py", f"core.{suffix}")).language == language


def test_a_language_that_the_row_names_is_spelt_as_ours():
    assert load(language="JS").language == "javascript"
    assert load(language="C++").language == "cpp"


def test_a_format_can_be_named(tmp_path):
    (tmp_path / "rows.json").write_text('{"instance_id": "a", "files": {}, "test_commands": []}')
    found = rows.refusal(tmp_path / "rows.json")
    assert "field 'test_commands' must be a list of at least" in found
    found = rows.refusal(f"swe-bench:{tmp_path}/rows.json")
    assert "field 'problem_statement' is missing" in found


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("eval_script", 3, "must be text, got 3"),
        ("eval_script", "exit", "must be a script that runs tests between its two markers, got "),
        ("log_parser", [], "must be text, got []"),
    ],
)
def test_a_malformed_row_is_refused_with_row_field_and_value(field, value, said):
    found = rows.refusal([row(**{field: value})])
    assert found.startswith(f"row 1 (owner__name-1): field '{field}' {said}")
