"""The ``apptainer`` backend: containers of clusters, behind the channel of the ``docker`` one."""

from coding_gym.sandbox.apptainer.backend import ApptainerBackend

__all__ = ["ApptainerBackend"]
