"""The ``docker`` backend: sandboxes in containers of Docker, or of Podman's compatible service.

A container runs one bash script, ``loop.sh``, as its first process, and its owner talks to that
over its standard input and output.

- `container_sandbox`: the owner's handle; runs commands over a `Transport`.
- `loop_protocol`: the bytes of a request and of its answer, and what a `Transport` can do.
- `container_files`: shell scripts that read, write, save and restore files.
- `docker_backend`, `docker_engine`, `docker_images`: the backend, its daemon, its images.
"""

from coding_gym.sandbox.containers.docker_backend import DockerBackend

__all__ = ["DockerBackend"]
