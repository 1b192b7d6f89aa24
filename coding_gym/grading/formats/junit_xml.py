"""Reads XML reports in the format of JUnit, which Maven, Gradle, pytest, jest and others write.

Ids are ``classname::name``, or the name alone. An id of two cases has the status ``ERROR``. A
report with a document type is invalid: no test program writes a document type, and its entities can
make a small file large.
"""

from collections.abc import Iterable
from xml.etree import ElementTree

from coding_gym.grade import TestStatus
from coding_gym.grading.report import Run

_ENDINGS = {
    "failure": TestStatus.FAILED,
    "error": TestStatus.ERROR,
    "skipped": TestStatus.SKIPPED,
}


class _Builder(ElementTree.TreeBuilder):
    """Builds the tree of a report; raises a ValueError for a document type."""

    def doctype(self, *_: object) -> None:
        raise ValueError("the report has a document type")


def read_junit(reports: Iterable[bytes]) -> Run:
    """Returns the run in the contents of reports; a report that is not XML makes it incomplete."""
    run = Run(ended=True)
    for report in reports:
        try:
            parser = ElementTree.XMLParser(target=_Builder())  # noqa: S314 — no entities
            root = ElementTree.fromstring(report, parser)  # noqa: S314
        except (ElementTree.ParseError, ValueError, LookupError):
            run.ended = False
            continue
        for case in root.iter("testcase"):
            _add(case, run)
    return run


def _add(case: ElementTree.Element, run: Run) -> None:
    owner, name = case.get("classname", ""), case.get("name", "")
    endings = [child for child in case if child.tag in _ENDINGS]
    worst = next((e for tag in _ENDINGS for e in endings if e.tag == tag), None)
    status = TestStatus.PASSED if worst is None else _ENDINGS[worst.tag]
    message = "" if worst is None else worst.get("message") or worst.text or ""
    run.add(f"{owner}::{name}" if owner else name, status, message)
