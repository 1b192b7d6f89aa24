"""Multi-SWE-bench: pull requests whose tests are objects by name."""

import pytest
from rows import loaded, refusal

from coding_gym.task import GitTree

FIX = "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-a\n+b\n"
OUTCOME = {"run": "NONE", "test": "FAIL", "fix": "PASS"}


def row(**more: object) -> dict[str, object]:
    return {
        "org": "Owner",
        "repo": "name",
        "number": 12,
        "state": "closed",
        "title": "How it was repaired",
        "body": None,
        "base": {"label": "Owner:main", "ref": "main", "sha": "b" * 40},
        "resolved_issues": [{"number": 11, "title": "It is wrong", "body": "See here."}],
        "fix_patch": FIX,
        "test_patch": FIX.replace("src/", "tests/"),
        "fixed_tests": {"t::one": OUTCOME, "t::new": OUTCOME},
        "p2p_tests": {"t::kept": OUTCOME, "t::of another row": None},
        "f2p_tests": {"t::one": OUTCOME},
        "n2p_tests": {"t::new": OUTCOME},
        "s2p_tests": {},
    } | more


def load(**more: object):
    return loaded(row(**more))


def test_a_pull_request_is_a_task():
    task = load()
    assert task.task_id == "Owner__name-12"
    assert task.tree == GitTree("https://github.com/Owner/name")
    assert task.base_commit == "b" * 40
    assert task.problem_statement == "It is wrong\n\nSee here."
    assert (task.gold_patch, task.language) == (FIX, "rust")
    assert task.fail_to_pass == ("t::one", "t::new")
    assert task.pass_to_pass == ("t::kept",)
    assert task.image == "mswebench/owner_m_name:pr-12"


def test_tests_and_issues_may_be_kept_in_columns():
    columns = {"name": ["t::one", "t::two"], "fix": ["PASS", "PASS"]}
    issues = {"number": [1, 2], "title": ["First", "Second"], "body": ["a", None]}
    task = load(fixed_tests=None, f2p_tests=columns, resolved_issues=issues, lang="ts")
    assert task.fail_to_pass == ("t::one", "t::two", "t::new")
    assert task.problem_statement == "First\n\na\n\nSecond"
    assert task.language == "typescript"


def test_an_id_of_the_row_is_kept():
    assert load(instance_id="owner__name-pr12", number="12").task_id == "owner__name-pr12"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("number", "12a", "must be a whole number of at least 0, got '12a'"),
        ("number", None, "is missing"),
        ("base", {"ref": "main"}, "must be an object with the text 'sha', got {"),
        ("base", None, "is missing"),
        ("resolved_issues", [], "must be a list of at least one issue"),
        ("resolved_issues", [{}], "must be a list of objects with 'title"),
        ("resolved_issues", {"title": ["a"], "body": []}, "must be lists"),
        ("resolved_issues", {"title": "ab"}, "must be lists"),
        ("fix_patch", "nonsense", "is not a patch: not a unified diff"),
        ("test_patch", None, "is missing"),
        ("fixed_tests", ["a"], "must be an object of outcomes by test"),
        ("p2p_tests", "a", "must be an object of outcomes by test, got 'a'"),
        ("hints", 3, "must be text, got 3"),
    ],
)
def test_a_malformed_row_is_refused_with_row_field_and_value(field, value, said):
    assert refusal([row(**{field: value})]).startswith(f"row 1: field '{field}' {said}")


def test_a_row_without_tests_says_which_field_it_lacks():
    bare = {key: value for key, value in row().items() if not key.endswith("_tests")}
    assert refusal([bare]).startswith("row 1: field 'f2p_tests' is missing")
