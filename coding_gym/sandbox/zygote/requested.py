"""What a sandbox was asked to show besides its workspace: folders, files, links."""

import os
from collections.abc import Iterable
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from coding_gym.sandbox.zygote import image_root, parts
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.places import EPISODE, OLD, QUIET, WRITABLE, is_writable
from coding_gym.sandbox.zygote.plan import Plan
from coding_gym.sandbox.zygote.shelf import SHELF


def plan_mounts(plan: Plan, request: dict[str, Any]) -> None:
    """Mounts what is asked for, seen from the new root while the old one is still there."""
    for index, target in request["mounts"]:
        with plan.step(f"mount at {target}"):
            is_folder = request["are_folders"][index]
            if request["restores"] and is_writable(target):
                # A policy may have moved the way to it, and put something else there.
                folder = target if is_folder else os.path.dirname(target)
                plan.do(partial(image_root.make_real, folder))
            # A way through a symlink may lead out; those of the system's folders do not.
            if request["image"] or is_writable(target):
                plan.refuse_symlinks(target)
            if is_folder:
                plan.makedirs(target)
            else:
                plan.makedirs(os.path.dirname(target))
                plan.make_file(target)
            plan.bind(f"{OLD}{SHELF}/{request['names'][index]}", target)


def plan_files(plan: Plan, request: dict[str, Any]) -> None:
    """Makes the links and writes the files that are asked for."""
    with plan.step("write the sandbox's files"):
        for path, target in request["links"].items():
            plan.symlink(target, path)
        for count, (path, text) in enumerate(request["files"].items()):
            source = f"{OLD}{EPISODE}/file{count}"
            plan.write_text(source, text)
            plan.bind(source, path, recursive=False)
            plan.restrict(path, QUIET | sc.READ_ONLY)


def own_folders(request: dict[str, Any], prepared: parts.Parts, folders: Iterable[str]) -> set[str]:
    """Returns those folders, and those above requested mounts, that are in the sandbox's own root.

    Args:
        request: As that of `room.plan_room`.
        prepared: The parts that all sandboxes share.
        folders: Paths without symbolic links on their way.
    """
    targets = [target for _, target in request["mounts"]]
    foreign = ("/proc", *prepared.binds.values(), *prepared.links)
    is_own = {"/": True, **dict.fromkeys(foreign, False)}
    is_own |= {inside: True for _, inside, _ in WRITABLE}
    is_own["/workspace"] = not request["layers"]
    above = {str(folder) for path in targets for folder in PurePosixPath(path).parents}
    shown = {path for path in above.union(folders) if not _around(path, targets)}
    return {path for path in shown if is_own[max(_around(path, is_own), key=len)]}


def _around(path: str, places: Iterable[str]) -> list[str]:
    """Returns those places that a path is in."""
    return [place for place in places if f"{path}/".startswith(f"{place.rstrip('/')}/")]
