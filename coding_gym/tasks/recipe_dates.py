"""Releases that broke many older projects, and when they came: pip cannot be told a date."""

from datetime import UTC, datetime

# First release that is ruled out, and its day. Days are those of the package index.
_BREAKING = (
    ("docutils", "0.18", "2021-10-26"),
    ("markupsafe", "2.1", "2022-02-17"),
    ("jinja2", "3.1", "2022-03-24"),
    ("click", "8.1", "2022-03-28"),
    ("importlib-metadata", "5", "2022-10-01"),
    ("sqlalchemy", "2", "2023-01-26"),
    ("pandas", "2", "2023-04-03"),
    ("urllib3", "2", "2023-04-26"),
    ("pydantic", "2", "2023-06-30"),
    ("pytest", "8", "2024-01-27"),
    ("setuptools", "70", "2024-05-21"),
    ("numpy", "2", "2024-06-16"),
    ("pip", "24.1", "2024-06-21"),
)
# Later ones drop what tests of any age still use: pkg_resources.
_ALWAYS = ("setuptools<81",)


def constraints_at(created_at: str) -> tuple[str, ...]:
    """Returns the constraints, in pip's spelling, that hold for a project of some day.

    Args:
        created_at: The day, ISO 8601; "" where it is not known, which rules out nothing.
    """
    try:
        day = datetime.fromisoformat(created_at)
    except ValueError:  # rows say what they like; then they get what is new
        return _ALWAYS
    day = day if day.tzinfo else day.replace(tzinfo=UTC)
    later = tuple(
        f"{name}<{release}"
        for name, release, since in _BREAKING
        if datetime.fromisoformat(since).replace(tzinfo=UTC) > day
    )
    return later if any(line.startswith("setuptools<") for line in later) else later + _ALWAYS
