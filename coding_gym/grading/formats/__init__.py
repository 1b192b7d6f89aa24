"""Parsers of test output and report files: they return statuses by test id.

The code under test can write all of this text; ``docs/threat-model.md`` names the forgeries that
are not detected.
"""
