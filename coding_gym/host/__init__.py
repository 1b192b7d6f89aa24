"""Facts about this machine: its interpreters, toolchains, proxies and pip's configuration.

Everything here only looks: it reads files and variables, and asks a program for its version.
"""
