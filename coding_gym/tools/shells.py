"""What tools that run a shell command are called, here and in other projects."""

SHELLS = ("shell", "bash", "run_command", "execute_bash")
"""Their names; where a toolset has several, the first of these is meant."""

COMMANDS = ("cmd", "command")
"""The names of the argument that holds the command."""
