"""A `gym.Env` whose episodes run on a server."""

import http.client
import itertools
import json
import os
import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from threading import Lock
from typing import Any, Self
from urllib.parse import quote, urlsplit

import gymnasium as gym

from coding_gym import errors
from coding_gym.errors import EpisodeError, InvalidArgumentError, MachineryError
from coding_gym.grade import Grade
from coding_gym.patch import Patch
from coding_gym.serve.wire import Json, decode, decode_space, encode, encode_action

TOKEN = "CODING_GYM_TOKEN"  # noqa: S105 - a variable's name
DEFAULT_URL = "http://127.0.0.1:7576"
_CONNECT_S = 10.0
_PAUSE_S = 0.2  # before the third try; twice as long before each further one
_LONGEST_OUTAGE_S = 5.0  # without a connection; a call that is under way has its own time
_TRIES = 8
_OF_PROXIES = (408, 502, 503, 504)  # tried again where the server itself said nothing


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
        timeout_s: Seconds that one call may take, with all tries: more than commands and grades.
        **env: Arguments of `CodingRepairEnv` that a server lets its clients choose: ``task_ids``,
            ``sampler``, ``toolset``, ``tool_format``, ``max_obs_tokens``, ``max_turns``,
            ``limits``, ``grading``, ``challenge``.

    Raises:
        InvalidArgumentError: The URL or the token cannot be used, or an argument is refused.
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
        self._asked = encode({"env": env, "wrappers": list(wrappers)})
        self._session, self._is_lost = "", False
        self._last: tuple[Any, dict[str, Any]] = {}, {}
        self._begin()

    def _begin(self) -> None:
        """Opens a session, and closes the one before, which may only have been out of reach."""
        self._end()
        try:
            key = secrets.token_urlsafe(12)
            self._take(self._link.call("POST", "/v1/sessions", {**self._asked, "key": key}))
        except BaseException:
            self._link.close()
            raise
        self._is_lost = False

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
        arguments = {"seed": seed, "options": options}
        if not self._is_lost:
            try:
                return self._seen(self._call("reset", arguments))
            except _LostSessionError:  # nobody needed it for too long
                pass
            except MachineryError:
                self._is_lost = True
                raise
        self._begin()
        return self._seen(self._call("reset", arguments))

    def _seen(self, found: Json) -> tuple[Any, dict[str, Any]]:
        self._last = decode(found["observation"]), decode(found["info"])
        return self._last

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Plays an action: a text, a `Completion`, a `Stop`, or what a wrapper makes of them.

        Raises:
            EpisodeError: There is no running episode.
            InvalidArgumentError: The server cannot read the action.
        """
        if self._is_lost:
            raise EpisodeError("the last episode was lost with its server; call reset first")
        try:
            found = self._call("step", {"action": encode_action(action)})
        except (MachineryError, _LostSessionError) as problem:
            self._is_lost = True
            observation, info = self._last
            end = {"stop_reason": "sandbox_error", "error": str(problem), "mask_sample": True}
            end |= {"text": "", "messages": [], "reward_parts": {}}
            end |= {"resolved": False, "patch": "", "grade": None}
            return observation, 0.0, False, True, {**info, **end}
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
        forked = copy(self)
        forked._link = self._link.copy()
        forked._take(self._call("fork"))
        return forked

    def chat_request(self, api: str = "chat") -> dict[str, Any]:
        """Returns what a chat model needs for its next reply; see `coding_gym.chat_request`."""
        found: dict[str, Any] = self._call("chat_request", {"api": api})
        return found

    def render(self) -> str:
        """Returns the transcript of the episode as text."""
        return str(self._call("render")["text"])

    def close(self) -> None:
        """Closes the session; idempotent. A server that is gone has closed it."""
        self._end()
        self._link.close()

    def _end(self) -> None:
        session, self._session = self._session, ""
        if session:
            with suppress(MachineryError, EpisodeError):
                self._link.call("DELETE", f"/v1/sessions/{quote(session)}")

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
        self._url, self._token, self._timeout_s = url, token.strip(), timeout_s
        try:
            parts = urlsplit(url)
            kind = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
            port = parts.port or {"http": 80, "https": 443}[parts.scheme]
            self._connection = kind[parts.scheme](parts.hostname or "", port, timeout=_CONNECT_S)
        except (KeyError, ValueError, http.client.InvalidURL):
            raise InvalidArgumentError(
                f"url must be like {DEFAULT_URL} or https://host/path, got {url!r}"
            ) from None
        if not self._token.isascii() or not self._token.isprintable():
            raise InvalidArgumentError("the token must be printable ASCII, on one line")
        self._path = parts.path.rstrip("/")
        self._headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
        }
        self._numbers, self._lock = itertools.count(1), Lock()

    def copy(self) -> "_Link":
        return _Link(self._url, self._token, self._timeout_s)

    def call(self, method: str, path: str, arguments: Mapping[str, Any] | None = None) -> Json:
        """Sends a request, again where no answer came, and returns the answer.

        Raises:
            MachineryError: There is no answer, or none of the server itself.
            CodingGymError: The server's own error.
        """
        with self._lock:
            body = None
            if arguments is not None:
                body = json.dumps({**arguments, "number": next(self._numbers)})
            until = time.monotonic() + self._timeout_s
            outage_until = min(until, time.monotonic() + _LONGEST_OUTAGE_S)
            for attempt in itertools.count():
                try:
                    return self._sent(method, self._path + path, body, until)
                except _NoAnswerError as problem:
                    self._connection.close()
                    pause = _PAUSE_S * 2 ** (attempt - 1) if attempt else 0.0
                    limit = until if problem.was_connected else outage_until
                    if time.monotonic() + pause >= limit or attempt == _TRIES:
                        raise MachineryError(
                            f"the server at {self._url} does not answer: {problem}; "
                            "is `coding-gym serve` running there?"
                        ) from None
                    time.sleep(pause)
        raise AssertionError  # not reached

    def _sent(self, method: str, path: str, body: str | None, until: float) -> Json:
        """Sends a request once."""
        link: Any = self._connection  # its `sock` is None until it is connected
        was_connected = False
        try:
            if link.sock is None:
                link.connect()
            was_connected = True
            link.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            link.sock.settimeout(max(0.1, until - time.monotonic()))
            link.request(method, path, body, self._headers)
            response = link.getresponse()
            status, text = response.status, response.read()
        except (OSError, http.client.HTTPException) as problem:
            raise _NoAnswerError(repr(problem), was_connected) from None
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if status == 200 and isinstance(answer, dict):
            return answer
        failure = answer.get("error") if isinstance(answer, dict) else None
        if isinstance(failure, Mapping):
            raise _error(status, failure)
        said = f"it answered {status}: {text[:200]!r}"
        if status in _OF_PROXIES:
            raise _NoAnswerError(said, False)
        raise MachineryError(f"the server at {self._url} is not one of episodes: {said}")

    def close(self) -> None:
        self._connection.close()


class _NoAnswerError(Exception):
    """No answer of the server came.

    Args:
        said: What happened.
        was_connected: Whether the request may have been received.
    """

    def __init__(self, said: str, was_connected: bool) -> None:
        super().__init__(said)
        self.was_connected = was_connected


def _error(status: int, found: Mapping[str, Any]) -> Exception:
    """Returns the error of the server as one of ours."""
    kind, message = getattr(errors, str(found.get("type")), None), str(found.get("message"))
    if found.get("type") == "UnknownSessionError":
        return _LostSessionError(message)
    if status in (408, 429):
        return MachineryError(message)
    is_ours = isinstance(kind, type) and issubclass(kind, errors.CodingGymError)
    return kind(message) if is_ours and kind else InvalidArgumentError(message)
