"""Files that install commands make in a tree: egg-info, generated modules, built extensions."""

import os
from datetime import datetime
from pathlib import Path

from coding_gym.errors import TemplateError, last_line
from coding_gym.sandbox.images.store import BUILT
from coding_gym.sandbox.layer_union import united
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.workspace.scripts import COLLECT, ENV
from coding_gym.workspace.stamping import stamp
from coding_gym.workspace.template import BASE_GIT

_TIMEOUT_S = 600.0


def collect_artifacts(sandbox: Sandbox, folder: Path, date: datetime) -> None:
    """Copies every file that is new in the tree into ``folder``, with the date of the tree.

    Byte code is excluded: it would be stale for the next commit that shares the environment.

    Args:
        sandbox: The build's sandbox.
        folder: An empty folder, at `BUILT` in the sandbox.
        date: The modification time of the copies.

    Raises:
        TemplateError: The files cannot be copied.
    """
    paths = {"CG_TREE": sandbox.workdir, "CG_BASE": sandbox.path(BASE_GIT), "CG_INTO": BUILT}
    result = sandbox.run(COLLECT, timeout_s=_TIMEOUT_S, cwd="/", env=ENV | paths)
    if not result.ok:
        raise TemplateError(
            f"cannot copy the files of install commands: {last_line(result.output)}"
        )
    facts = folder.lstat()
    stamp(folder, date, (facts.st_uid, facts.st_gid))


def artifact_paths(folder: Path, tree: Path) -> tuple[str, ...]:
    """Returns the topmost artifact paths that a tree does not have, relative to the tree."""
    new = (name for name in united((folder,)) if not os.path.lexists(tree / name))
    return tuple(sorted(name for name in new if (tree / name).parent.is_dir()))
