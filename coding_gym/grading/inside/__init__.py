"""Runs tests inside a sandbox. The host sends these modules as text and never executes them.

The modules run under the Python of the task's environment, 3.6 or newer, with the standard library
and pytest 4 or newer only.
"""
