"""Finds interpreters, toolchains, proxies and pip's settings on this machine.

This package changes nothing: it reads files and variables, and asks programs for their versions.
"""
