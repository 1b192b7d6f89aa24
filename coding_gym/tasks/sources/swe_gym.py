"""SWE-Gym and SWE-Gym Lite: SWE-bench's schema, with other projects and images."""

from coding_gym.task_row import Row
from coding_gym.tasks.sources.swe_bench import fill_in, image_name

_PROJECTS = frozenset(
    {
        "Project-MONAI/MONAI", "bokeh/bokeh", "conan-io/conan", "dask/dask",
        "facebookresearch/hydra", "getmoto/moto", "iterative/dvc", "modin-project/modin",
        "pandas-dev/pandas", "pydantic/pydantic", "python/mypy",
    }
)  # fmt: skip


def reads(row: Row) -> bool:
    """Whether the repository is one of SWE-Gym's."""
    repo = row.get("repo")
    return isinstance(repo, str) and repo in _PROJECTS and "instance_id" in row


def to_row(row: Row, where: str) -> Row:
    """Returns a row with missing fields inferred, and the name of its image."""
    filled = fill_in(row, where)
    if "image" not in row:
        filled["image"] = image_name(str(row.get("instance_id")), "xingyaoww", "_s_")
    return filled
