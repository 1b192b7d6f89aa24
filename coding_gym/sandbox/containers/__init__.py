"""Sandboxes in containers: the ``docker`` and the experimental ``apptainer`` backend.

Both run one bash script, ``loop.sh``, as the first process of a container, and talk to it over its
standard input and output.

- `container_sandbox`: the owner's handle, the same for both; runs commands over a `Transport`.
- `loop_protocol`: the bytes of a request and of its answer, and what a `Transport` can do.
- `container_files`: shell scripts that read, write, save and restore files.
- `docker_backend`, `docker_engine`, `docker_images`: containers of a Docker daemon, or of
  Podman's Docker-compatible service.
- `apptainer`: containers of the ``apptainer`` program.

`DockerBackend.open` finds or builds an image (`docker_images`), starts a container of it
(`DockerTransport`), and returns a `ContainerSandbox`, whose `run` writes a request to ``loop.sh``
and reads the answer.
"""

from coding_gym.sandbox.containers.docker_backend import DockerBackend

__all__ = ["DockerBackend"]
