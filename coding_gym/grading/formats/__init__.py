"""Parsers of test output and report files: they return statuses by test id.

The code under test can write all of this text. Each module describes the forgeries that it detects;
``docs/threat-model.md`` names the forgeries that remain.
"""
