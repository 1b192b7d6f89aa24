"""The store of templates that the tests of tasks share."""

from grading_fixtures import store

__all__ = ["store"]
