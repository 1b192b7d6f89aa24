"""Finds interpreters, toolchains, proxies and pip's settings on this machine.

This package only reads files and variables, and runs interpreters to get their versions.
"""
