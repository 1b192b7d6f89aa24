"""Copies the files at a path of an image: tracked files (the base tree) and untracked files.

The image is untrusted: only programs in a sandbox of the image read the files. The path's ``.git``
supplies the list of tracked files and is not copied.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from coding_gym.errors import InvalidArgumentError, InvalidTaskError, TemplateError
from coding_gym.program_output import error_line, last_line
from coding_gym.sandbox.folder_cache import BUILT, FolderCache, build_sandbox, content_key
from coding_gym.sandbox.inside.fixed import NO_PROGRAM_CODE
from coding_gym.sandbox.protocol import SandboxBackend
from coding_gym.sandbox.spec import TMP, SandboxLimits, SandboxSpec
from coding_gym.task import Task
from coding_gym.workspace.scripts import ENV, IMAGE_TREE_SCRIPT, TIMEOUT_S
from coding_gym.workspace.stamping import stamp

_SCHEMA = 3
_NO_FOLDER = 43  # the exit code of image_tree.sh
_LIMITS = SandboxLimits(file_bytes=4 << 30)


@dataclass(frozen=True, slots=True)
class ImageCopy:
    """The files that an image has at a path.

    Attributes:
        base: The folder of the tracked files.
        artifacts: The folder of the untracked files.
        has_tracked_files: Whether the image's git lists tracked files. If not, ``base`` and
            ``artifacts`` are one folder with all files.
    """

    base: Path
    artifacts: Path
    has_tracked_files: bool


@dataclass(frozen=True, slots=True)
class ImageTrees:
    """Copies trees out of images into a cache.

    Attributes:
        cache: Stores the trees.
        backend: Runs the images.
    """

    cache: FolderCache
    backend: SandboxBackend

    def identity(self, task: Task) -> str:
        """Returns the id of the task's image, or its name if the backend cannot find the image.

        For an image that the backend cannot find, `SandboxBackend.open` raises the error.

        Raises:
            InvalidTaskError: A field of the task contradicts its image.
        """
        if problem := task.image_problem():
            raise InvalidTaskError(f"task {task.task_id}: field {problem[0]!r} {problem[1]}")
        try:
            return self.backend.image_id(task.image)
        except InvalidArgumentError:
            return task.image

    def get(self, task: Task, date: datetime) -> ImageCopy:
        """Returns a copy of the files at ``image_path``, with ``date`` as modification time.

        Raises:
            InvalidTaskError: The image has no folder at ``image_path``.
            TemplateError: The folder cannot be copied.
            SandboxError: No sandbox could be opened.
        """
        runs_on = (self.backend.owner(), self.backend.name)
        source = (self.identity(task), task.image_path, date.isoformat())
        key = content_key(_SCHEMA, *source, *runs_on)
        folder = self.cache.get(key, lambda part: self._copy(task, date, part))
        base, untracked = folder / "base", folder / "rest"
        return ImageCopy(base if base.is_dir() else untracked, untracked, base.is_dir())

    def _copy(self, task: Task, date: datetime, folder: Path) -> None:
        folder.chmod(0o777)  # the image's user writes here; the parent folder is private
        spec = SandboxSpec(image=task.image, limits=_LIMITS)
        with build_sandbox(self.backend, spec, {BUILT: folder}) as sandbox:
            paths = {"CG_PATH": task.image_path, "CG_TMP": TMP, "CG_INTO": BUILT}
            env = ENV | paths
            result = sandbox.run(IMAGE_TREE_SCRIPT, timeout_s=TIMEOUT_S, cwd="/", env=env)
        if result.exit_code == _NO_FOLDER:
            raise InvalidTaskError(
                f"task {task.task_id}: field 'image_path' names {task.image_path!r}, which is "
                f"not a folder of the image: {last_line(result.output)}"
            )
        if not result.ok:
            remedy = "; install GNU tar in the image" if result.exit_code == NO_PROGRAM_CODE else ""
            raise TemplateError(
                f"task {task.task_id}: cannot copy {task.image_path} out of the image: "
                f"{error_line(result.output)}{remedy}"
            )
        stamp(folder, date, self.backend.owner())
