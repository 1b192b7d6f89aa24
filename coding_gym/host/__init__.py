"""Facts about this machine: its interpreters, toolchains, proxies and pip's configuration.

This package changes nothing: it reads files and variables, and asks programs for their versions.
"""
