"""Files that install commands write into a tree: egg-info, generated modules, extensions."""

import os
from datetime import datetime
from pathlib import Path

from coding_gym.errors import TemplateError
from coding_gym.program_output import last_line
from coding_gym.sandbox.images.store import BUILT
from coding_gym.sandbox.layer_union import united
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.workspace.scripts import run_base_git
from coding_gym.workspace.stamping import stamp


def collect_artifacts(sandbox: Sandbox, folder: Path, date: datetime) -> None:
    """Copies every file that is in the tree but not in the base commit into ``folder``.

    Byte code is excluded, because it is stale for other commits that share the environment.

    Args:
        sandbox: The sandbox of the build.
        folder: An empty folder, which the sandbox has at `BUILT`.
        date: The modification time of the copies.

    Raises:
        TemplateError: The files cannot be copied.
    """
    result = run_base_git(sandbox, "collect", CG_INTO=BUILT)
    if not result.ok:
        raise TemplateError(
            f"cannot copy files that install commands wrote: {last_line(result.output)}"
        )
    status = folder.lstat()
    stamp(folder, date, (status.st_uid, status.st_gid))


def artifact_paths(folder: Path, tree: Path) -> tuple[str, ...]:
    """Returns the topmost artifact paths that a tree lacks, relative to the tree."""
    paths = (path for path in united((folder,)) if not os.path.lexists(tree / path))
    return tuple(sorted(path for path in paths if (tree / path).parent.is_dir()))
