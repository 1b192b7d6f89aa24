"""Runs a project's tests inside a sandbox, over and over, with one thing broken at a time.

It is a package of its own there: standard library and pytest only, any Python from 3.8 on,
relative imports among its files. The host only writes it into the sandbox and never executes it.
"""
