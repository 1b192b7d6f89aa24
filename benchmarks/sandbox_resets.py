"""What a fresh start costs: of a sandbox, a large repository, a snapshot, an image."""

import subprocess
import tempfile
from functools import cache
from pathlib import Path

from figures import Figure, interleaved, median, ratio
from fixtures import docker_engine, repository, row, template
from image_fixtures import docker_archive, system, tar_of

from coding_gym.errors import CodingGymError
from coding_gym.sandbox import SandboxSpec, open_sandbox
from coding_gym.workspace import TemplateStore

FEW, MANY = 50, 10_000
SIZES = f"{MANY:,} files / {FEW}"
_NUM_CHANGED = 10


class Repositories:
    """A small and a large repository, with their templates, in a folder of their own.

    Attributes:
        folders: The repositories, by their number of files.
        rows: Their task rows.
        specs: What a sandbox with a clean checkout is made of.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        store = TemplateStore(folder=folder / "templates")
        self.folders = {num: repository(folder / str(num), num) for num in (FEW, MANY)}
        self.rows = {num: row(path, f"files-{num}") for num, path in self.folders.items()}
        self.specs = {num: template(store, made)[1].spec for num, made in self.rows.items()}


@cache
def repositories() -> Repositories:
    """Returns the repositories of this run, made when first asked for."""
    return Repositories(Path(_folder().name))


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    """Keeps the folder until this process ends."""
    return tempfile.TemporaryDirectory(prefix="coding_gym-bench-")


def reset(spec: SandboxSpec, command: str = "true") -> None:
    """Opens a sandbox, runs a first command in it, and closes it."""
    with open_sandbox(spec) as sandbox:
        assert sandbox.run(command).ok


def resets(rounds: int) -> list[Figure]:
    """Times opening with a first command, for few and for many files, in turn."""
    specs = repositories().specs
    took = interleaved(
        {"few": lambda: reset(specs[FEW]), "many": lambda: reset(specs[MANY])}, rounds
    )
    return [
        median("sandbox reset + first command", took["few"], "ms", 6),
        ratio(f"sandbox reset + first command, {SIZES}", took["many"], took["few"], 1.2),
        _first_status(rounds),
    ]


def _first_status(rounds: int) -> Figure:
    samples = []
    for _ in range(max(5, rounds // 5)):
        with open_sandbox(repositories().specs[MANY]) as sandbox:
            samples.append(sandbox.run("git status --porcelain").duration_s * 1e3)
    return median(f"first git status at {MANY:,} files", samples, "ms", 80)


def snapshots(rounds: int) -> list[Figure]:
    """Times a snapshot and its restore with ten changed files."""
    with open_sandbox(repositories().specs[FEW]) as sandbox:
        names = " ".join(f"package_0/module_{number}.py" for number in range(_NUM_CHANGED))
        sandbox.run(f"for f in {names}; do echo '# changed' >> $f; done")
        took = interleaved({"both": lambda: sandbox.restore(sandbox.snapshot())}, rounds)
    name = f"snapshot + restore with {_NUM_CHANGED} changed files"
    return [median(name, took["both"], "ms", 10)]


def images(rounds: int) -> list[Figure]:
    """Times opening a container image, unpacked before, with a first command."""
    name = "an OCI image's reset with a first command"
    path = Path(_folder().name) / "image.tar"
    docker_archive(path, [tar_of(system())])
    spec = SandboxSpec(image=str(path))
    try:
        reset(spec)  # unpacks it
    except CodingGymError as error:
        return [Figure(name=name, absent=str(error))]
    took = interleaved({"image": lambda: reset(spec)}, rounds)
    return [median(name, took["image"], "ms", 20)]


def docker_clone(rounds: int) -> list[Figure]:
    """Times a container that clones the large repository against our reset of it."""
    name = f"docker run --rm + git clone of {MANY:,} files / our reset"
    if reason := docker_engine():
        return [Figure(name=name, absent=reason)]
    from sandbox_docker import git_image

    source = repositories().folders[MANY]
    command = f"git clone -q {source} /clone"
    run = ["docker", "run", "--rm", "--network=none", "-v", f"{source}:{source}:ro"]
    argv = [*run, git_image(), "bash", "-c", f"git config --global safe.directory '*'; {command}"]
    spec = repositories().specs[MANY]
    took = interleaved(
        {
            "docker": lambda: subprocess.run(argv, check=True, capture_output=True),
            "ours": lambda: reset(spec),
        },
        max(3, rounds // 20),
    )
    return [ratio(name, took["docker"], took["ours"], 100, is_floor=True)]
