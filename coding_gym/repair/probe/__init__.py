"""A driver that runs inside the sandbox, sent there through the agent's shell.

It is a package of its own there: standard library and pytest only, any Python from 3.8 on,
relative imports among its files. The host only packs it, and uses `wire` to talk to it.
"""
