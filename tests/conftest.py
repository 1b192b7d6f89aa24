"""Which suite each test belongs to, one cache for the whole run, and a small task.

`make test` runs the tests of the table `SUITES` that are ``fast``; `make test-all` adds the
``slow`` ones, `make test-trainers` runs those of the ``trainers`` and `make stress` the others.
"""

import json
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from grading_fixtures import grade_tree, store
from makers import Closing, MakeEnv
from turns import turn

from coding_gym.envs import CodingRepairEnv
from coding_gym.patch import Patch

__all__ = ["grade_tree", "store"]

# Prefixes of test ids, and the suite of the tests below; the longest prefix decides. A test that
# fits none is fast: it takes a second at most, and needs no daemon and no trainer.
SUITES = {
    "tests/extras/": "trainers",
    "tests/stress/": "stress",
    # Sandboxes: the automatic backend and what every backend shares are fast.
    "tests/abuse/": "slow",
    "tests/abuse/test_abuse_attacks.py::test_attack_is_blocked[promise": "fast",
    "tests/abuse/test_abuse_attacks.py::test_attack_succeeds_without_protection[promise": "fast",
    "tests/abuse/test_abuse_channel.py": "fast",
    "tests/abuse/test_abuse_filter_programs.py": "fast",
    "tests/abuse/test_abuse_kernel.py": "fast",
    "tests/abuse/test_abuse_owner_calls.py": "fast",
    "tests/sandbox/containers/": "slow",
    "tests/sandbox/images/": "slow",
    "tests/sandbox/test_conformance_backends.py": "slow",
    "tests/sandbox/test_doctor.py": "slow",
    "tests/sandbox/test_landlock.py": "slow",
    "tests/sandbox/test_leftovers.py": "slow",
    "tests/sandbox/test_memory.py": "slow",
    "tests/sandbox/test_ordinary_user.py": "slow",
    "tests/sandbox/test_output_streams.py": "slow",
    "tests/sandbox/test_shells_persistent.py": "slow",
    "tests/sandbox/test_snapshot_files.py": "slow",
    "tests/workspace/images/": "slow",
    "tests/workspace/test_workspace_builds.py": "slow",
    "tests/workspace/test_workspace_environments.py": "slow",
    "tests/workspace/test_workspace_garbage.py": "slow",
    "tests/workspace/test_workspace_patching.py": "slow",
    # Grading: pure parts, one grade of each outcome, one cheat per mechanism.
    "tests/grading/test_challenge.py": "slow",
    "tests/grading/test_django_runner.py": "slow",
    "tests/grading/test_runners_of_languages.py": "slow",
    "tests/grading/test_timeouts.py": "slow",
    "tests/grading/test_unittest_runner.py": "slow",
    "tests/redteam/": "slow",
    "tests/redteam/test_commands.py::test_changed_files_help_no_wrong_repair[mechanism-": "fast",
    "tests/redteam/test_episodes.py::test_a_policy_that_cheats_earns_nothing[mechanism-": "fast",
    "tests/redteam/test_patches.py::test_a_patch_that_cheats_earns_nothing[mechanism-": "fast",
    "tests/redteam/test_redteam_page.py": "fast",
    "tests/evaluation/test_faulty_server.py": "slow",
    "tests/evaluation/test_reports.py::test_plots_are_files": "slow",
    "tests/evaluation/test_statistics.py::test_errors_and_tests_agree_with_statsmodels": "slow",
    "tests/viewer/test_browser.py": "slow",
    "tests/test_docs_commands.py": "slow",
    "tests/test_examples.py::test_a_notebook": "slow",
    # Tasks, and the search for repairs.
    "tests/tasks/test_bundled_tasks.py::test_every_other_task_validates": "stress",
    "tests/tasks/test_defects4j.py": "slow",
    "tests/tasks/test_harbor_holes.py": "slow",
    "tests/tasks/test_leaks.py": "slow",
    "tests/tasks/test_quixbugs.py": "slow",
    "tests/tasks/test_recipe_tables.py": "slow",
    "tests/tasks/test_source_hub.py": "slow",
    "tests/synthesis/test_synthesis.py": "slow",
    "tests/synthesis/test_synthesis_history.py": "slow",
    "tests/tasks/test_tasks_new.py": "slow",
    "tests/tasks/test_validation.py": "slow",
    "tests/tasks/test_validation.py::test_a_good_task_is_ok_every_time": "fast",
    "tests/repair/test_repair_search.py": "slow",
    "tests/repair/test_repair_time_limit.py": "slow",
    "tests/repair/test_repair_candidate_trials.py": "slow",
    "tests/test_agents_template_repair.py": "slow",
    "tests/sandbox/images/test_pulling.py::test_a_pull_that_is_killed": "slow",
    "tests/workspace/images/test_published_images.py": "slow",
    # Tools, environments, wrappers, the command.
    "tests/tools/test_toolset_pdb.py": "slow",
    "tests/envs/test_snapshot_env.py::test_a_restored_env": "slow",
    "tests/vector/test_vector_equality.py::test_choices_from_menus": "slow",
    "tests/vector/test_vector_tasks.py::test_resetting_ahead": "slow",
    "tests/wrappers/test_menu_actions.py::test_a_bundled_task": "slow",
    "tests/wrappers/test_menu_actions_shared.py": "slow",
    "tests/wrappers/test_reward_wrappers.py": "slow",
    "tests/wrappers/test_visible_test_shaping.py": "slow",
    "tests/test_cli_replay.py::test_every_kind": "slow",
    "tests/test_cli_validate.py": "slow",
    "tests/test_docs.py::test_python_in_the_pages_runs": "slow",
    "tests/test_examples.py::test_the_best_of_six_branches": "slow",
    # Tests that need transformers, tokenizers, jinja2 or pyarrow.
    "tests/test_text_neutraliser.py::test_a_tokenizers_control_tokens_are": "slow",
    "tests/tasks/test_task_rows.py::test_a_file_that_cannot_be_read_is_named": "slow",
    "tests/tasks/test_task_rows.py::test_every_kind_of_file": "slow",
    "tests/test_text_chat.py::test_a_schema_that_spells_a_control_token": "slow",
    "tests/test_text_chat.py::test_a_template_": "slow",
    "tests/test_text_chat.py::test_without_jinja": "slow",
    "tests/test_text_huggingface.py": "slow",
    "tests/test_text_neutraliser.py::test_a_transcript_as_text": "slow",
    "tests/test_text_neutraliser.py::test_an_honest_transcript": "slow",
    "tests/test_text_neutraliser.py::test_no_content_becomes_a_control_token": "slow",
    "tests/tools/test_tools_functions.py::test_transformers_reads": "slow",
    "tests/wrappers/test_token_count.py::test_a_tokenizer_without_a_template": "slow",
    "tests/wrappers/test_token_count.py::test_tokens_counted_are": "slow",
}
# Prefixes of tests that count processes or measure processor time or memory: nothing of the same
# run goes on beside them.
_CONTRACT = "tests/sandbox/test_conformance.py::test_automatic_backend_keeps_the_contract"
ALONE = (
    "tests/abuse/test_abuse_memory.py",
    "tests/grading/test_timeouts.py",
    "tests/repair/test_repair_time_limit.py",
    "tests/sandbox/test_memory.py",
    "tests/sandbox/test_output_streams.py",
    f"{_CONTRACT}[memory",
    f"{_CONTRACT}[processors",
)

_SHARED = pytest.StashKey[Path]()

BUGGY = "def area(width, height):\n    return width + height\n"
TESTS = (
    "from shapes import area\n\n\n"
    "def test_square():\n    assert area(2, 2) == 4\n\n\n"
    "def test_wide():\n    assert area(3, 5) == 15\n"
)
HIDDEN = (
    "from shapes import area\n\n\n"
    "def test_tall():\n    assert area(2, 7) == 14\n\n\n"
    "def test_flat():\n    assert area(9, 0) == 0\n"
)


def pytest_configure(config: pytest.Config) -> None:
    """Registers the suites as markers, and makes a folder that all workers of the run share."""
    for suite in ("slow", "trainers", "stress"):
        config.addinivalue_line("markers", f"{suite}: a test of that suite, by the table SUITES")
    config.addinivalue_line("markers", "alone: nothing of the same run goes on beside the test")
    given = getattr(config, "workerinput", {}).get("shared_folder")
    folder = Path(given or tempfile.mkdtemp(prefix="coding-gym-tests-"))
    config.stash[_SHARED] = folder
    if given is None:
        config.add_cleanup(lambda: shutil.rmtree(folder))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Names the shared folder to a worker of pytest-xdist."""
    node.workerinput["shared_folder"] = str(node.config.stash[_SHARED])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks each test with its suite, and puts the tests that run alone last."""
    unused = {prefix for prefix, suite in SUITES.items() if suite != "trainers"} | {*ALONE}
    for item in items:
        fitting = [prefix for prefix in SUITES if item.nodeid.startswith(prefix)]
        suite = SUITES[max(fitting, key=len)] if fitting else "fast"
        if suite != "fast":
            item.add_marker(suite)
        if item.nodeid.startswith(ALONE):
            item.add_marker("alone")
        unused -= {prefix for prefix in unused if item.nodeid.startswith(prefix)}
    if unused and config.args_source == pytest.Config.ArgsSource.TESTPATHS:
        raise pytest.UsageError(f"tests/conftest.py names tests that do not exist: {unused}")
    items.sort(key=lambda item: item.get_closest_marker("alone") is not None)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Lets a test that runs alone wait for the others, and the others wait for it."""
    alone = item.get_closest_marker("alone") is not None
    with turn(item.config.stash[_SHARED], alone=alone):
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def own_cache(pytestconfig: pytest.Config) -> Iterator[None]:
    """Keeps templates out of the user's cache; the workers of one run share them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(pytestconfig.stash[_SHARED] / "cache"))
        yield


@pytest.fixture
def tiny_row() -> dict[str, Any]:
    """A task row with inline files: ``area`` adds where it should multiply."""
    return {
        "instance_id": "shapes-area",
        "problem_statement": "area(3, 5) gives 8\n\nI expected 15.",
        "files": {"shapes.py": BUGGY, "test_shapes.py": TESTS},
        "patch": Patch.between({"shapes.py": BUGGY}, {"shapes.py": BUGGY.replace("+", "*")}).text,
        "test_patch": Patch.between({}, {"test_hidden.py": HIDDEN}).text,
        "FAIL_TO_PASS": ["test_hidden.py::test_tall", "test_hidden.py::test_flat"],
        "PASS_TO_PASS": ["test_shapes.py::test_square"],
        "created_at": "2024-01-01T00:00:00Z",
        "split": "train",
    }


@pytest.fixture
def rows(tiny_row: dict[str, Any], tmp_path: Path) -> Path:
    """A file with that row."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(tiny_row) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def closing() -> Iterator[Closing]:
    """Returns a function that gives back what it is called with, closed after the test."""
    with ExitStack() as stack:

        def close_later(each: Any) -> Any:
            stack.callback(each.close)
            return each

        yield close_later


@pytest.fixture
def make_env(tiny_row: dict[str, Any], closing: Closing) -> MakeEnv:
    """Makes envs of the tiny task, or of the tasks that it is called with."""

    def make(**arguments: Any) -> CodingRepairEnv:
        env: CodingRepairEnv = closing(CodingRepairEnv(**{"tasks": [tiny_row]} | arguments))
        return env

    return make
