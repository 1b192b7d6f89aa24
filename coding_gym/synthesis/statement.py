"""Writes the issue of a synthesized task from failures, without source code of the tests."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from coding_gym.grading.selection import TEST_FOLDER_NAMES
from coding_gym.synthesis.project import is_test
from coding_gym.synthesis.suite import ObservedFailure

_MAX_SYMPTOMS = 3
_MAX_MESSAGE_LINES = 16
_MAX_FRAMES = 5
_MAX_NAMES = 3
_WRONG_RESULT = "The outcome is not the right one."
_IMPORT_ERRORS = ("ImportError", "ModuleNotFoundError")
_NEW_NAME = re.compile(r"(module|type object) '.*' has no attribute|unexpected keyword argument")


@dataclass(frozen=True, slots=True)
class Symptom:
    """One failure as a user of the project sees it.

    Attributes:
        title: A one-line summary.
        traceback: The exception with the project's frames; "" if the test itself raised the
            exception, because the message would reveal values of the hidden test.
    """

    title: str
    traceback: str


def find_symptoms(
    failures: Mapping[str, ObservedFailure], changed_paths: Iterable[str] = ()
) -> list[Symptom]:
    """Returns the distinct symptoms; symptoms with tracebacks and short titles come first.

    Args:
        failures: Failures by test id.
        changed_paths: The files that the repair changes. If no failure names a function, a symptom
            names these files, unless a test fails because the program lacks a name: the repair
            adds this name.
    """
    symptoms = {symptom for failure in failures.values() if (symptom := _symptom(failure))}
    files = _name_list(changed_paths)
    if not symptoms and files and not any(map(_lacks_name, failures.values())):
        return [Symptom(f"Wrong result of {files}", "")]
    return sorted(symptoms, key=lambda s: (not s.traceback, len(s.title), s.title, s.traceback))


def write_statement(symptoms: Sequence[Symptom], test_ids: Iterable[str]) -> str:
    """Returns an issue of up to three symptoms, without line numbers and names of tests.

    Args:
        symptoms: The result of `find_symptoms`; at least one.
        test_ids: Ids of all failing tests; the names of the tests are removed from the issue.
    """
    symptoms = symptoms[:_MAX_SYMPTOMS]
    sections = [f"```\n{s.traceback}\n```" if s.traceback else f"{s.title}." for s in symptoms]
    # The first title is the title of the issue; a section without traceback would repeat it.
    if not symptoms[0].traceback:
        sections[0] = _WRONG_RESULT
    return _without_tests("\n\n".join([symptoms[0].title, *sections]), test_ids) + "\n"


def _symptom(failure: ObservedFailure) -> Symptom | None:
    calls = [(path, function) for path, _, function in failure.frames if not is_test(path)]
    names = [function.rpartition("<locals>.")[2] for _, function in calls]
    outermost_name = list(filter(_is_public, names))[:1]
    used_names = [name for path, name in failure.uses if not is_test(path) and _is_public(name)]
    if _is_raised_by_test(failure):  # by an assertion about a result
        name = "" if _lacks_name(failure) else _name_list(outermost_name or used_names)
        return Symptom(f"Wrong result of {name}", "") if name else None
    innermost_module = [path for path, function in calls if function == "<module>"][-1:]
    name = _name_list(outermost_name or innermost_module or used_names[:1])
    if not name:
        return None
    lines = [f'  File "{path}", in {function}' for path, function in calls[-_MAX_FRAMES:]]
    lines = ["Traceback (most recent call last):", *lines, _shorten(failure.summary)]
    return Symptom(f"{name} fails with {failure.kind}", "\n".join(lines))


def _lacks_name(failure: ObservedFailure) -> bool:
    """Returns whether the test cannot be imported, or uses a name that the program lacks."""
    if failure.kind in _IMPORT_ERRORS or (failure.frames and failure.frames[-1][2] == "<module>"):
        return True
    return _is_raised_by_test(failure) and _NEW_NAME.search(failure.message) is not None


def _is_raised_by_test(failure: ObservedFailure) -> bool:
    return not failure.frames or is_test(failure.frames[-1][0])


def _is_public(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last.isidentifier() and not last.startswith("_")


def _name_list(names: Iterable[str]) -> str:
    distinct_names = dict.fromkeys(names)
    # A class is skipped if a method of the class is listed.
    classes = {name.rpartition(".")[0] for name in distinct_names}
    selected_names = [name for name in distinct_names if name not in classes][:_MAX_NAMES]
    return ", ".join(f"`{name}`" for name in selected_names)


def _shorten(message: str) -> str:
    lines = message.replace("```", "'''").splitlines()
    if len(lines) > _MAX_MESSAGE_LINES:
        lines = [*lines[:_MAX_MESSAGE_LINES], "…"]
    return "\n".join(lines)


def _without_tests(text: str, test_ids: Iterable[str]) -> str:
    """Removes the names of tests, with their modules and classes."""
    names = set()
    for test_id in test_ids:
        path, *rest = test_id.partition("[")[0].split("::")
        names |= {path, path.rpartition("/")[2].removesuffix(".py"), *rest}
    names = {n for n in names if "test" in n.lower() and n.lower() not in TEST_FOLDER_NAMES}
    removed_names = sorted(names, key=lambda n: (-len(n), n))
    if not removed_names:
        return text
    alternatives = "|".join(map(re.escape, removed_names))
    pattern = rf"(?<![\w.])(?:\w+\.)*(?:{alternatives})(?![\w])(?:\.<locals>)?\.?"
    return re.sub(pattern, "", text)
