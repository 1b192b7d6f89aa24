"""What git says when it fails, in one line."""

from coding_gym.errors import last_line

_COMPLAINTS = ("fatal:", "error:", "remote:")


def git_complaint(output: str, otherwise: str = "it said nothing") -> str:
    """Returns the last of git's complaints in ``output``; its last line where it made none.

    Advice may follow a complaint, over several lines.
    """
    lines = [line for line in output.splitlines() if line.lstrip().startswith(_COMPLAINTS)]
    return last_line("\n".join(lines) or output, otherwise)
