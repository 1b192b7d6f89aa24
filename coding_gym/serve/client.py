"""A `gym.Env` whose episodes run on a server."""

import http.client
import itertools
import json
import os
import time
from collections.abc import Mapping, Sequence
from copy import copy
from threading import Lock
from typing import Any, Self
from urllib.parse import quote, urlsplit

import gymnasium as gym

from coding_gym import errors
from coding_gym.errors import EpisodeError, InvalidArgumentError, MachineryError
from coding_gym.grade import Grade
from coding_gym.patch import Patch
from coding_gym.serve.wire import Json, decode, decode_space, encode_action

TOKEN = "CODING_GYM_TOKEN"  # noqa: S105 - a variable's name
DEFAULT_URL = "http://127.0.0.1:7576"
_TRIES = 5
_PAUSE_S = 0.2  # before the second try; twice as long before each further one


class RemoteEnv(gym.Env[Any, Any]):
    """A ``CodingRepair-v0`` on a server that ``coding-gym serve`` runs, wrapped there.

    Observations, rewards and infos are those of the same env here, with lists for the tuples in an
    info. Where the connection is lost, it is made again, and the call answered once: an action is
    never played twice. Where the server or the session is gone, `step` truncates the episode with
    ``info["mask_sample"]``, and the next `reset` opens a session anew. Envs do not share
    connections.

    Args:
        url: Of the server.
        token: Its token; by default that of the variable ``CODING_GYM_TOKEN``.
        wrappers: As `coding_gym.vector.make_vec` takes them, by name.
        timeout_s: Seconds that one call may take; more than commands and grades there.
        **env: Arguments of `CodingRepairEnv` that a server lets its clients choose: ``task_ids``,
            ``sampler``, ``toolset``, ``tool_format``, ``max_obs_tokens``, ``max_turns``,
            ``limits``, ``grading``, ``challenge``.

    Raises:
        InvalidArgumentError: The URL is none, the token is wrong, or an argument is refused.
        MachineryError: The server cannot be reached, or takes no more sessions.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 - Gymnasium's own form

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        wrappers: Sequence[Mapping[str, Any]] = (),
        timeout_s: float = 3600.0,
        **env: Any,
    ) -> None:
        self._link = _Link(url, os.environ.get(TOKEN, "") if token is None else token, timeout_s)
        self.render_mode = "ansi"
        self._asked = {"env": env, "wrappers": list(wrappers)}
        self._is_lost = False
        self._last: tuple[Any, dict[str, Any]] = {}, {}
        self._begin()

    def _begin(self) -> None:
        try:
            self._take(self._link.call("POST", "/v1/sessions", self._asked))
        except BaseException:
            self._link.close()
            raise

    def _take(self, found: Json) -> None:
        self._session = found["session"]
        self.observation_space = decode_space(found["observation_space"])
        self.action_space = decode_space(found["action_space"])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: Seeds the choice of tasks, which the server draws.
            options: ``{"task_id": id}`` picks one of the server's tasks.

        Returns:
            The observation, and info.

        Raises:
            MachineryError: The server cannot be reached, or takes no more sessions.
        """
        super().reset(seed=seed)
        if self._is_lost:
            self._begin()
            self._is_lost = False
        return self._seen(self._call("reset", {"seed": seed, "options": options}))

    def _seen(self, found: Json) -> tuple[Any, dict[str, Any]]:
        self._last = decode(found["observation"]), decode(found["info"])
        return self._last

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Plays an action: a text, a `Completion`, a `Stop`, or what a wrapper makes of them."""
        try:
            found = self._call("step", {"action": encode_action(action)})
        except (MachineryError, _LostSessionError) as problem:
            self._is_lost = True
            observation, info = self._last
            end = {"stop_reason": "sandbox_error", "error": str(problem), "mask_sample": True}
            unknown = {"resolved": False, "patch": "", "grade": None}
            return observation, 0.0, False, True, {**info, **unknown, **end}
        observation, info = self._seen(found)
        return observation, found["reward"], found["terminated"], found["truncated"], info

    def patch(self) -> Patch:
        """Returns the change so far, or the graded one once the episode has ended."""
        return Patch(self._call("patch")["patch"])

    def grade(self, patch: str | None = None) -> Grade:
        """Grades a patch for the task of the episode, which goes on.

        Args:
            patch: A unified diff; by default the tree as it stands.

        Raises:
            MachineryError: The grader failed.
        """
        found: Grade = decode(self._call("grade", {"patch": patch})["grade"])
        return found

    def snapshot(self) -> str:
        """Returns the name of a snapshot, which the server keeps as long as this env is open."""
        return str(self._call("snapshot")["snapshot"])

    def restore(self, snapshot: str) -> tuple[Any, dict[str, Any]]:
        """Brings the env to a snapshot of its own; returns observation and info of that time."""
        return self._seen(self._call("restore", {"snapshot": snapshot}))

    def forget(self, snapshot: str) -> None:
        """Frees a snapshot; a session keeps 16."""
        self._call("forget", {"snapshot": snapshot})

    def fork(self) -> Self:
        """Returns a new env that goes on from here by itself."""
        twin = copy(self)
        twin._link = self._link.copy()
        twin._take(self._call("fork"))
        return twin

    def chat_request(self, api: str = "chat") -> dict[str, Any]:
        """Returns what a chat model needs for its next reply; see `coding_gym.chat_request`."""
        found: dict[str, Any] = self._call("chat_request", {"api": api})
        return found

    def render(self) -> str:
        """Returns the transcript of the episode as text."""
        return str(self._call("render")["text"])

    def close(self) -> None:
        """Closes the session; idempotent. A server that is gone has closed it."""
        session, self._session = self._session, ""
        if session:
            try:
                self._link.call("DELETE", f"/v1/sessions/{quote(session)}")
            except (MachineryError, _LostSessionError):
                pass
            finally:
                self._link.close()

    def _call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Json:
        if not self._session:
            raise EpisodeError("this env is closed; make a new one")
        path = f"/v1/sessions/{quote(self._session)}/{name}"
        return self._link.call("POST", path, arguments or {})


class _LostSessionError(EpisodeError):
    """The server has no such session any more."""


class _Link:
    """A connection that is made again when it is lost."""

    def __init__(self, url: str, token: str, timeout_s: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidArgumentError(f"url must begin with http:// or https://, got {url!r}")
        self._arguments = url, token, timeout_s
        kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        self._connection = kinds[parts.scheme](parts.hostname, parts.port, timeout=timeout_s)
        self._path = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._numbers, self._lock = itertools.count(1), Lock()

    def copy(self) -> "_Link":
        return _Link(*self._arguments)

    def call(self, method: str, path: str, arguments: Mapping[str, Any] | None = None) -> Json:
        """Sends a request, again where no answer came, and returns the answer."""
        with self._lock:
            number = next(self._numbers)
            body = json.dumps({**(arguments or {}), "number": number})
            for attempt in itertools.count(1):
                try:
                    self._connection.request(method, self._path + path, body, self._headers)
                    response = self._connection.getresponse()
                    answer = json.loads(response.read())
                except (OSError, http.client.HTTPException, ValueError) as problem:
                    self._connection.close()
                    if attempt == _TRIES:
                        raise MachineryError(
                            f"the server at {self._arguments[0]} does not answer: {problem!r}; "
                            "is `coding-gym serve` running there?"
                        ) from None
                    time.sleep(_PAUSE_S * 2 ** (attempt - 1))
                else:
                    break
        if response.status != 200:
            raise _error(response.status, answer["error"])
        return answer

    def close(self) -> None:
        self._connection.close()


def _error(status: int, found: Mapping[str, str]) -> Exception:
    """Returns the error of the server as one of ours."""
    kind = getattr(errors, found["type"], None)
    if status == 404:
        return _LostSessionError(found["message"])
    if status == 429:
        return MachineryError(found["message"])
    is_ours = isinstance(kind, type) and issubclass(kind, errors.CodingGymError)
    return kind(found["message"]) if is_ours and kind else InvalidArgumentError(found["message"])
