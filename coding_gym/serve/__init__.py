"""Episodes for programs on other machines: a server, and a client that is a `gym.Env`."""

from coding_gym.serve.client import RemoteEnv

__all__ = ["RemoteEnv"]
