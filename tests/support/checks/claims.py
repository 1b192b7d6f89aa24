"""What the checks of toolsets are written with."""

from sandbox_fixtures import output

__all__ = ["expect", "output"]


def expect(what: str, got: object, wanted: object) -> None:
    """Raises AssertionError, which says what differs, unless the values are equal."""
    if got != wanted:
        raise AssertionError(f"{what}: wanted {wanted!r}, got {got!r}")
