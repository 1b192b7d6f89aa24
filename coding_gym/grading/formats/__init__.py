"""Parsers of test output and report files: they return statuses by test id.

The code under test can write all of this text; see ``docs/threat-model.md``.
"""
