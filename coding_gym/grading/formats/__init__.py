"""Parsers of test output and report files: they return statuses by test id.

The code under test could have written all of this text. Each
module describes the forgeries that it detects; ``docs/threat-model.md`` names those that remain.
"""
