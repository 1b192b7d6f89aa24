"""The files of an image at a path, copied out of it: a base tree, and files built beside it.

The image is not trusted. Its own programs read it, in a sandbox; the ``.git`` in it is only asked
which files it tracks, and stays behind.
"""

import contextlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from coding_gym.errors import InvalidArgumentError, InvalidTaskError, TemplateError, last_line
from coding_gym.sandbox.folder_cache import FolderCache, content_key
from coding_gym.sandbox.images import BUILT, build_sandbox
from coding_gym.sandbox.protocol import SandboxBackend
from coding_gym.sandbox.spec import SandboxLimits, SandboxSpec
from coding_gym.task import Task
from coding_gym.workspace.plain_tree import walk
from coding_gym.workspace.scripts import ENV
from coding_gym.workspace.stamping import stamp

_SCHEMA = 1
_TIMEOUT_S = 600.0
_MAX_BYTES = 64 << 20
_NO_FOLDER, _NO_TAR = 41, 127
_LIMITS = SandboxLimits(file_bytes=4 << 30)
# The list is empty where git fails, so that the tree's `.gitignore` decides.
_COPY = """\
cd "$CG_PATH" || exit 41
git ls-files -z > "$CG_TMP/tracked" 2> /dev/null || : > "$CG_TMP/tracked"
set -o pipefail
tar -c --exclude=.git --exclude=__pycache__ -f - . | tar -x -o -f - -C "$CG_INTO"
"""
_TMP = "/tmp"  # noqa: S108 - inside the sandbox


@dataclass(frozen=True, slots=True)
class ImageCopy:
    """The files that an image has at a path.

    Attributes:
        base: Those that belong to the project.
        artifacts: Files built beside them; all files, in both, where they cannot be told apart.
        is_sorted: Whether the image's git told them apart.
    """

    base: Path
    artifacts: Path
    is_sorted: bool


@dataclass(frozen=True, slots=True)
class ImageTrees:
    """Copies trees out of images and keeps them.

    Attributes:
        cache: Keeps them.
        backend: Runs the images.
    """

    cache: FolderCache
    backend: SandboxBackend

    def identity(self, task: Task) -> str:
        """Returns the id of a task's image, or its name if it has no id, as `open` reports.

        Raises:
            InvalidTaskError: The task cannot have an image.
        """
        if problem := task.image_problem():
            raise InvalidTaskError(f"task {task.task_id}: field {problem[0]!r} {problem[1]}")
        try:
            return self.backend.image_id(task.image)
        except InvalidArgumentError:
            return task.image

    def get(self, task: Task, date: datetime) -> ImageCopy:
        """Returns what the task's image has at its path, with the times of a date.

        Raises:
            InvalidTaskError: The image has no such folder.
            TemplateError: It cannot be copied out.
            SandboxError: No sandbox could be opened.
        """
        runs_on = (self.backend.owner(), self.backend.name)
        facts = (self.identity(task), task.image_path, date.isoformat())
        key = content_key(_SCHEMA, *facts, *runs_on)
        folder = self.cache.get(key, lambda part: self._copy(task, date, part))
        base, rest = folder / "base", folder / "rest"
        return ImageCopy(base if base.is_dir() else rest, rest, base.is_dir())

    def _copy(self, task: Task, date: datetime, folder: Path) -> None:
        rest = folder / "rest"
        rest.mkdir()
        rest.chmod(0o777)  # an image's own user may be another than the backend's owner
        tracked = self._read(task, rest)
        if tracked:
            (folder / "base").mkdir()
            _move(tracked, rest, folder / "base")
        stamp(rest, date, self.backend.owner())

    def _read(self, task: Task, into: Path) -> frozenset[str]:
        """Copies the image's folder, and returns the paths that the image's git tracks."""
        spec = SandboxSpec(image=task.image, limits=_LIMITS)
        with build_sandbox(self.backend, spec, {BUILT: into}) as sandbox:
            paths = {"CG_PATH": task.image_path, "CG_TMP": _TMP, "CG_INTO": BUILT}
            result = sandbox.run(_COPY, timeout_s=_TIMEOUT_S, cwd="/", env=ENV | paths)
            if result.exit_code == _NO_FOLDER:
                raise InvalidTaskError(
                    f"task {task.task_id}: field 'image_path' names {task.image_path!r}, which is "
                    f"no folder of the image: {last_line(result.output)}"
                )
            if not result.ok:
                hint = "; install tar in it" if result.exit_code == _NO_TAR else ""
                raise TemplateError(
                    f"task {task.task_id}: cannot copy {task.image_path} out of the image: "
                    f"{last_line(result.output)}{hint}"
                )
            listed = sandbox.read_file(f"{_TMP}/tracked", max_bytes=_MAX_BYTES)
        return frozenset(filter(None, listed.decode("utf-8", "surrogateescape").split("\0")))


def _move(names: frozenset[str], folder: Path, into: Path) -> None:
    """Moves files, and leaves no folder behind that has nothing else in it."""
    for path in tuple(walk(folder)):
        place = path.relative_to(folder)
        if str(place) not in names:
            continue
        (into / place).parent.mkdir(parents=True, exist_ok=True)
        path.rename(into / place)
        for parent in place.parents[:-1]:
            with contextlib.suppress(OSError):  # not empty
                (folder / parent).rmdir()
