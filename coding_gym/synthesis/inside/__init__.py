"""Observes runs of tests inside a sandbox; the host sends these modules as text.

The modules run under the Python of the project's environment, 3.8 or newer, and use only pytest and
the standard library. Imports are relative, as the package has another name in the sandbox.
"""
