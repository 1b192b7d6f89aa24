"""Telling processes apart, although their numbers are used again."""

from pathlib import Path


def start_time(pid: int) -> str:
    """Returns when a process started, in clock ticks since boot; "" where there is no such one."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]
