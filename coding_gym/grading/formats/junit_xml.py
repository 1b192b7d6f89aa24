"""Reads XML reports in the format of JUnit, which Maven, Gradle, pytest, jest and others write.

Ids are ``classname::name``, or the name alone. An id of two cases has the status ``ERROR``. A
report with a document type is invalid: no test program writes a document type, and entities in a
document type can make a small file large.
"""

from collections.abc import Iterable
from xml.etree import ElementTree

from coding_gym.grade import TestStatus
from coding_gym.grading.report import TestRun

# Statuses by the tag of a child of a case, the most severe status first.
_STATUSES = {"failure": TestStatus.FAILED, "error": TestStatus.ERROR, "skipped": TestStatus.SKIPPED}


class _Builder(ElementTree.TreeBuilder):
    """Builds the tree of a report; raises a ValueError for a document type."""

    def doctype(self, *_: object) -> None:
        raise ValueError("the report has a document type")


def read_junit(reports: Iterable[bytes]) -> TestRun:
    """Returns the run in the contents of reports; the run is incomplete if a report is not XML."""
    run = TestRun(ended=True)
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


def _add(case: ElementTree.Element, run: TestRun) -> None:
    class_name, name = case.get("classname", ""), case.get("name", "")
    test_id = f"{class_name}::{name}" if class_name else name
    for tag, status in _STATUSES.items():
        child = case.find(tag)
        if child is not None:
            run.add(test_id, status, child.get("message") or child.text or "")
            return
    run.add(test_id, TestStatus.PASSED)
