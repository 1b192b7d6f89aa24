"""The reason of a failure, from the output of a program or the number of an error."""

import errno
import re

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_MAX_CHARS = 300  # of a quoted line
# Lines with an error of git, pip, Python or argparse; advice or a summary can follow them.
_ERROR = re.compile(
    r"^\s*(?:fatal|remote|error|ERROR|[\w.]+Error):(?! subprocess-exited-with-error)|: error: "
)


def last_line(output: str, otherwise: str = "it printed nothing") -> str:
    """Returns the last line of an output, truncated at its start; ``otherwise`` if it is empty."""
    lines = output.strip().splitlines()
    message = lines[-1].strip() if lines else otherwise
    return message if len(message) <= _MAX_CHARS else f"…{message[-_MAX_CHARS:]}"


def error_line(output: str, otherwise: str = "no output") -> str:
    """Returns the last line with an error of git, pip, Python or argparse, else the last line."""
    errors = [line for line in output.splitlines() if _ERROR.search(line)]
    return last_line(errors[-1] if errors else output, otherwise)
