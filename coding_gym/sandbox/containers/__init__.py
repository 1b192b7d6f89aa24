"""The ``docker`` backend: containers of a Docker daemon, each behind one persistent channel."""

from coding_gym.sandbox.containers.backend import DockerBackend
from coding_gym.sandbox.containers.build import remove_images

__all__ = ["DockerBackend", "remove_images"]
