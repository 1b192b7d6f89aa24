"""The ``docker`` backend: sandboxes in containers of Docker, or of Podman's compatible service."""

from coding_gym.sandbox.containers.docker_backend import DockerBackend

__all__ = ["DockerBackend"]
