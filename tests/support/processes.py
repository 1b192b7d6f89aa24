"""What runs on this machine."""

from pathlib import Path


def descendants(pid: int) -> list[int]:
    """Process ids below ``pid``, children before grandchildren."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *descendants(int(child))]
    return found
