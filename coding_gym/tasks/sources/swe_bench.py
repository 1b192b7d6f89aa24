"""Reads rows of SWE-bench, Lite, Verified, Multilingual, SWE-Gym and datasets in their schema.

Missing fields are inferred from other fields or the project: the language, the name of the image,
and the runner of the tests. The test command comes from the ``eval_script`` of the row, if present.
Fields that the row has, even if empty, are kept; only the spelling of ``language`` is changed.
"""

import re
import shlex
from collections.abc import Iterable
from typing import Any

from coding_gym.errors import PatchError
from coding_gym.patch import Patch
from coding_gym.tasks.sources.languages import language_named, language_of
from coding_gym.tasks.task_row import Row, Text, Texts, row_error, value_of

# pytest 9 shortens the ids of parameters; the datasets have the ids of older releases.
INSTALL_PYTEST = "python -m pip install 'pytest<9'"
_DJANGO_SETTINGS = "--settings=test_sqlite"
_IMAGE = "sweb.eval.x86_64"
# The projects of SWE-Gym, which publishes images of all its tasks.
_SWE_GYM = frozenset(
    {
        "Project-MONAI/MONAI", "bokeh/bokeh", "conan-io/conan", "dask/dask",
        "facebookresearch/hydra", "getmoto/moto", "iterative/dvc", "modin-project/modin",
        "pandas-dev/pandas", "pydantic/pydantic", "python/mypy",
    }
)  # fmt: skip
# Node ids of pytest, such as "path.py::Class::test[a]".
_PYTEST_ID = re.compile(r"[^:\n]+\.py::")
# Programs that print one line per test, as unittest does; the format `django` reads these lines.
_UNITTEST = re.compile(r"\b(runtests\.py|manage\.py test|python[\d.]* -m unittest)\b")
_MARKED_TESTS = re.compile(
    r"^(?::|echo) ['\"]?>>>>> Start Test Output['\"]?\n(.*?\S.*?)"
    r"(?:^(?::|echo) ['\"]?>>>>> End Test Output['\"]?$|\Z)",
    re.MULTILINE | re.DOTALL,
)
# The grader writes the hidden tests first; the script must not write them again.
_WRITES_TESTS = re.compile(
    r"^git checkout [0-9a-f]{7,40}\b[^\n]*\n|^git apply [^\n<]*<<-?\s*(['\"]?)(\w+)\1\n.*?^\2\n",
    re.MULTILINE | re.DOTALL,
)


def fill_in(row: Row, position: str) -> dict[str, Any]:
    """Returns a row with missing fields inferred from its other fields.

    Raises:
        InvalidTaskError: ``eval_script`` has no test command, or ``log_parser`` is not text.
    """
    filled_row = dict(row)
    patch = row.get("patch")
    language = row.get("language")
    if isinstance(language, str) and language:
        filled_row["language"] = language_named(language)
    elif language is None and isinstance(patch, str):
        filled_row["language"] = language_of(patch)
    if "runner" not in row:
        _fill_in_test_run(filled_row, row, position)
    return filled_row


def hidden_test_ids(row: Row, position: str) -> tuple[str, ...]:
    """Returns the ids of all hidden tests of a row in SWE-bench's schema.

    Raises:
        InvalidTaskError: ``FAIL_TO_PASS`` or ``PASS_TO_PASS`` is malformed.
    """
    ids: tuple[str, ...] = value_of(row, "FAIL_TO_PASS", Texts, position, ())
    ids += value_of(row, "PASS_TO_PASS", Texts, position, ())
    return ids


def _fill_in_test_run(filled_row: dict[str, Any], row: Row, position: str) -> None:
    command = tests = _default_command(row)
    if (text := value_of(row, "eval_script", Text, position)) is not None:
        script = _read_eval_script(text)
        if script is None:
            requirement = "must be a script that runs tests between its two markers"
            raise row_error(row, position, "eval_script", f"{requirement}, got {text!r:.80}")
        command, tests = script
    parser = value_of(row, "log_parser", Text, position, "")
    run = how_tests_run(hidden_test_ids(row, position), command, parser, tests)
    for key, value in run.items():
        filled_row.setdefault(key, value)


def _default_command(row: Row) -> str:
    """Returns the test command of Django or SymPy, whose test ids are not pytest's; else ""."""
    if row.get("repo") not in ("django/django", "sympy/sympy"):
        return ""
    try:
        paths = sorted(Patch(str(row.get("test_patch") or "")).paths)
    except PatchError:  # reported later, with the name of the field
        paths = []
    if row["repo"] == "sympy/sympy":
        return shlex.join(["bin/test", "-C", "--verbose", *paths])
    # Runs only the modules that the test patch changes, because the whole suite takes an hour.
    modules = [path[:-3].removeprefix("tests/") for path in paths if path.endswith(".py")]
    labels = [module.replace("/", ".") for module in modules]
    arguments = ["./tests/runtests.py", "--verbosity", "2", _DJANGO_SETTINGS, *labels]
    return f"DJANGO_TEST_PROCESSES=1 {shlex.join(arguments)}"


def _read_eval_script(text: str) -> tuple[str, str] | None:
    """Returns two texts of an ``eval_script``; None if no command is between its markers.

    Such a script activates an environment, writes the hidden tests with ``git apply`` from a
    here-document, and runs them between two markers for the parser of its log. The first text is
    the script up to the end of the tests, without commands that write hidden tests; the second text
    has the lines between the markers.
    """
    text = _WRITES_TESTS.sub("", text.replace("\r\n", "\n") + "\n")
    match = _MARKED_TESTS.search(text)
    return (text[: match.end()].rstrip(), match[1].strip()) if match else None


def how_tests_run(
    ids: Iterable[str], command: str, log_parser: str, tests: str | None = None
) -> dict[str, str]:
    """Returns the fields ``runner``, ``test_command`` and ``test_report`` of a row.

    Args:
        ids: The ids of the row's hidden tests.
        command: The shell command that runs the tests; "" for a row without a command.
        log_parser: SWE-bench's name of the parser of the output; "" for a row without a parser.
        tests: The part of the command that starts the tests; by default the whole command.
    """
    from coding_gym.grading.formats.swebench import FORMATS  # late: imports the sandbox

    test_ids = tuple(ids)
    tests = command if tests is None else tests
    if not test_ids or has_pytest_ids(test_ids):
        return {"runner": "pytest", "test_command": tests, "test_report": ""}
    if _UNITTEST.search(tests):
        return {"runner": "swebench", "test_command": tests, "test_report": "django"}
    name = log_parser.removeprefix("parse_log_")
    # Other names are names of projects, whose formats the runner knows.
    report = name if name in FORMATS else ""
    runner = "swebench" if command else "pytest"
    return {"runner": runner, "test_command": command, "test_report": report}


def has_pytest_ids(ids: Iterable[str]) -> bool:
    """Returns whether all ids have the form of pytest's node ids."""
    return all(_PYTEST_ID.match(test_id) for test_id in ids)


def with_pytest(commands: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the commands and, if they do not install pytest, a command that installs it."""
    if any("pytest" in command for command in commands if not command.startswith("echo ")):
        return commands
    return (*commands, INSTALL_PYTEST)


def to_row(row: Row, position: str) -> Row:
    """Returns a row with missing fields inferred, and the name of its published image."""
    from coding_gym.grading.formats.swebench import FORMAT_BY_REPO  # late: imports the sandbox

    filled_row = fill_in(row, position)
    name, repo = str(row.get("instance_id")).lower(), str(row.get("repo"))
    if "image" not in row and repo in _SWE_GYM:
        filled_row["image"] = f"xingyaoww/{_IMAGE}.{name.replace('__', '_s_')}:latest"
    elif "image" not in row and repo.lower() in FORMAT_BY_REPO:
        # SWE-bench publishes images for the projects of all its datasets.
        filled_row["image"] = f"swebench/{_IMAGE}.{name.replace('__', '_1776_')}:latest"
    return filled_row
