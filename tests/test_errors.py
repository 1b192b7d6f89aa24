import pickle

import gymnasium as gym

from coding_gym import errors

ALL = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, errors.CodingGymError)
]


def test_every_error_is_built_from_one_message_and_pickles() -> None:
    for kind in ALL:
        error = pickle.loads(pickle.dumps(kind("what, got, way out")))  # noqa: S301 - our own bytes
        assert type(error) is kind, kind
        assert str(error) == "what, got, way out", kind


def test_what_is_unavailable_keeps_its_remedy_across_processes() -> None:
    error = errors.SandboxUnavailableError("no mounts", "run as root")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (str(copy), copy.problem, copy.remedy) == (
        *("no mounts; run as root", "no mounts", "run as root"),
    )


def test_errors_can_be_caught_by_the_types_they_refine() -> None:
    assert issubclass(errors.InvalidTaskError, ValueError)
    assert issubclass(errors.UnknownTaskError, LookupError)
    assert issubclass(errors.EpisodeError, gym.error.ResetNeeded)
    assert issubclass(errors.SandboxError, errors.MachineryError)
    assert not issubclass(errors.PatchError, errors.MachineryError)
