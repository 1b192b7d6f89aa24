"""Finds the Python of an image, and the required programs that the image lacks."""

import shlex
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from coding_gym.errors import TemplateError
from coding_gym.program_output import last_line
from coding_gym.sandbox.folder_cache import FolderCache, content_key
from coding_gym.sandbox.protocol import Sandbox, SandboxBackend
from coding_gym.sandbox.spec import Mount, SandboxSpec
from coding_gym.task import Task
from coding_gym.workspace.scripts import ENV
from coding_gym.workspace.template import IMAGE_BIN

_SCHEMA = 1
_TIMEOUT_S = 120.0
# The programs that base_git.sh runs in images, without `patch`, which few patches need.
_PROGRAMS = "base64 cat chmod comm cp find git mkdir mv rm sed sort tr xargs"
_FIND_PROGRAMS = f'for name in {_PROGRAMS}; do command -v "$name" > /dev/null || echo "$name"; done'
_BIN = "bin"
_FIND_PYTHON = """\
python=${CG_PYTHON:-$(command -v python || command -v python3)} || exit 1
[ -x "$python" ] || exit 1
"$python" -c 'import pytest' || exit 42
command -v python > /dev/null || echo nameless
printf 'python:%s' "$python"
"""
_NO_PYTEST = 42


def missing_programs(sandbox: Sandbox) -> str:
    """Returns the problem and remedy if a sandbox's image lacks a required program, else "".

    Raises:
        SandboxError: The sandbox is closed or died.
    """
    result = sandbox.run(_FIND_PROGRAMS, timeout_s=_TIMEOUT_S, cwd="/", env=ENV)
    if not result.ok:
        return f"has no bash that runs: {result.output.strip()}"
    if not result.output.strip():
        return ""
    names = ", ".join(result.output.split())
    return f"lacks {names}; install git, findutils, coreutils and sed in it"


@dataclass(frozen=True, slots=True)
class ImagePythons:
    """Finds the Pythons of images; caches the results.

    Attributes:
        cache: Stores the results.
        backend: Runs the images.
    """

    cache: FolderCache
    backend: SandboxBackend

    def get(self, task: Task, identity: str) -> tuple[str, SandboxSpec]:
        """Returns the key of a task's Python, and a spec with this Python in ``PATH``.

        The spec adds to ``PATH`` the folder of the Python that the task names, and a folder with a
        script ``python`` if the image has no program of this name.

        Args:
            task: A task in an image.
            identity: The id of the image's content, as from `ImageTrees.identity`.

        Raises:
            TemplateError: The Python, its pytest or another program is missing in the image.
            SandboxError: No sandbox could be opened.
        """
        runs_on = (self.backend.owner(), self.backend.name)
        key = content_key(_SCHEMA, identity, task.interpreter, _needs_python(task), *runs_on)
        folder = self.cache.get(key, lambda part: self._find(task, part))
        scripts = folder / _BIN
        mounts = (Mount(source=scripts, target=IMAGE_BIN),) if scripts.is_dir() else ()
        path = (*_interpreter_folder(task), *(mount.target for mount in mounts))
        return key, SandboxSpec(image=task.image, mounts=mounts, path=path)

    def _find(self, task: Task, folder: Path) -> None:
        interpreter = "" if task.interpreter == "image" else task.interpreter
        spec = SandboxSpec(image=task.image, path=_interpreter_folder(task))
        with self.backend.open(spec) as sandbox:
            problem = missing_programs(sandbox)
            env = {"CG_PYTHON": interpreter}
            result = sandbox.run(_FIND_PYTHON, timeout_s=_TIMEOUT_S, cwd="/", env=env)
        label = f"task {task.task_id}: the image {task.image!r}"
        if problem:
            raise TemplateError(f"{label} {problem}")
        if not _needs_python(task):
            return
        if result.exit_code == _NO_PYTEST:
            raise TemplateError(
                f"{label} has no pytest for its Python: {last_line(result.output)}; install pytest "
                "there, or set 'interpreter' to another Python of the image"
            )
        if not result.ok:
            place = f"at {interpreter}" if interpreter else "in its PATH"
            raise TemplateError(
                f"{label} has no Python {place}; set 'interpreter' to the path of its Python, such "
                "as /opt/venv/bin/python"
            )
        # The last match, because Python may print warnings before its path.
        messages, _, python = result.output.rpartition("python:")
        if messages.strip().endswith("nameless"):
            # A script, because a Python that starts through a link may not find its environment.
            script = folder / _BIN / "python"
            script.parent.mkdir()
            script.write_text(f'#!/bin/bash\nexec {shlex.quote(python)} "$@"\n')
            script.chmod(0o755)


def _needs_python(task: Task) -> bool:
    """Returns whether the hidden tests need the image's Python; only Harbor's scripts do not."""
    return task.runner != "harbor"


def _interpreter_folder(task: Task) -> tuple[str, ...]:
    """Returns the folder of the Python that a task names; empty for the image's default."""
    has_path = task.interpreter != "image"
    return (str(PurePosixPath(task.interpreter).parent),) if has_path else ()
