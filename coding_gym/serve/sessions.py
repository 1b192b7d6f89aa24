"""The sessions of a server: one env each, of one client, closed when idle for too long."""

import json
import logging
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from coding_gym import wrappers
from coding_gym.arguments import check_arguments, nearest
from coding_gym.envs import CodingRepairEnv
from coding_gym.envs.chat_request import chat_request
from coding_gym.envs.snapshot import EnvSnapshot, fork, restore, snapshot
from coding_gym.errors import CodingGymError, EpisodeError, InvalidArgumentError
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.serve.wire import Json, decode_action, encode, encode_space
from coding_gym.vector.sub_envs import check_env_arguments, make_envs

# What a client may choose. Tasks, sandbox, tokenizer and time limits are the server's: they name
# files and programs of its machine.
_CHOSEN_BY_CLIENTS = (
    *("task_ids", "sampler", "toolset", "tool_format", "max_obs_tokens", "max_turns", "limits"),
    *("grading", "challenge"),
)
# What decides the size of observations and actions has an upper bound here.
_MOST = {
    "": {"max_obs_tokens": 1 << 17},
    "TranscriptObservation": {"max_tokens": 1 << 17},
    "TokenActions": {"max_new_tokens": 1 << 14},
    "MenuActions": {"num_candidates": 1000},
}
_WRITES_FILES = ("RecordTrajectory",)
_MAX_SNAPSHOTS = 16
_NUM_OPENED = 4096  # answers to `open` that are kept for clients that lost them

_log = logging.getLogger(__name__)


class SessionLimitError(CodingGymError):
    """The server or the client has as many sessions or snapshots as it may have."""


class UnknownSessionError(CodingGymError, LookupError):
    """This client has no session of that id: it was closed, was idle too long, or never was."""


@dataclass(slots=True, eq=False)
class ClientSession:
    """An env, and what belongs to it.

    Attributes:
        id: Cannot be guessed.
        client: The name of the client that opened it.
        env: The env with its wrappers.
        snapshots: By id.
        lock: Held by the call that is under way.
        used_at: When the last call began or ended, by `time.monotonic`.
        last_reply: Number and name of its last numbered call, and the reply.
    """

    id: str
    client: str
    env: gym.Env[Any, Any]
    snapshots: dict[str, EnvSnapshot] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    used_at: float = field(default_factory=time.monotonic)
    last_reply: tuple[int, str, bytes] = (0, "", b"")


class Sessions:
    """All sessions of a server; every method may be called by many threads.

    Args:
        env_kwargs: Arguments of `CodingRepairEnv` that hold for all.
        max_sessions: The most at one time.
        max_per_client: The most of one client.
        idle_s: Seconds after its last call at which `reap` closes a session.
        max_snapshot_bytes: Of all sessions' snapshots; one more may exceed it.

    Raises:
        InvalidArgumentError, UnknownNameError, InvalidTaskError: An argument cannot be used.
    """

    def __init__(
        self,
        env_kwargs: Mapping[str, Any],
        *,
        max_sessions: int = 1000,
        max_per_client: int = 1000,
        idle_s: float = 600.0,
        max_snapshot_bytes: int = 1 << 30,
    ) -> None:
        self._env_kwargs = dict(env_kwargs)
        self._max_sessions, self._max_per_client = max_sessions, max_per_client
        self._idle_s, self._max_snapshot_bytes = idle_s, max_snapshot_bytes
        self._sessions: dict[str, ClientSession | None] = {}  # None while its env is being made
        self._clients: Counter[str] = Counter()
        self._opened: OrderedDict[tuple[str, str], Json] = OrderedDict()
        self._lock = threading.Lock()
        self.is_draining = False
        first = self._make({}, ())
        self.task_ids = [task.task_id for task in _core(first).factory.tasks]
        first.close()

    def __len__(self) -> int:
        return len(self._sessions)

    def open(
        self,
        client: str,
        env: Mapping[str, Any],
        wrapper_entries: Sequence[Mapping[str, Any]],
        key: str = "",
    ) -> Json:
        """Makes an env.

        Args:
            client: The name of the client.
            env: Arguments of `CodingRepairEnv` that clients may choose.
            wrapper_entries: As `coding_gym.vector.make_vec` takes them.
            key: Drawn by the client, for this call alone. Where it sends the key again, it had lost
                the answer and gets the same one.

        Returns:
            The session's id, and the spaces.

        Raises:
            SessionLimitError: There are as many sessions as there may be, or the server is ending.
            InvalidArgumentError, UnknownNameError, UnknownTaskError: An argument cannot be used.
        """
        known = self._opened.get((client, key)) if key else None
        if known is not None and known["session"] in self._sessions:
            return known
        found = self._added(client, lambda: self._make(env, wrapper_entries))
        if key:
            with self._lock:
                self._opened[client, key] = found
                while len(self._opened) > _NUM_OPENED:
                    self._opened.popitem(last=False)
        return found

    def _added(self, client: str, make: Callable[[], gym.Env[Any, Any]]) -> Json:
        name = secrets.token_urlsafe(16)
        with self._lock:
            if self.is_draining:
                raise SessionLimitError("the server is ending, and opens no more sessions")
            if len(self._sessions) >= self._max_sessions:
                raise SessionLimitError(f"the server has all of its {self._max_sessions} sessions")
            if self._clients[client] >= self._max_per_client:
                raise SessionLimitError(
                    f"client {client!r} has all of its {self._max_per_client} sessions; close some"
                )
            self._sessions[name] = None
            self._clients[client] += 1
        try:
            env = make()
            found = {
                "session": name,
                "observation_space": encode_space(env.observation_space),
                "action_space": encode_space(env.action_space),
            }
        except BaseException:
            self._forget(name, client)
            raise
        self._sessions[name] = ClientSession(name, client, env)
        return found

    def _make(
        self, env: Mapping[str, Any], wrapper_entries: Sequence[Mapping[str, Any]]
    ) -> gym.Env[Any, Any]:
        if not isinstance(env, Mapping):
            raise InvalidArgumentError(f"env must be an object of arguments, got {env!r:.80}")
        if not isinstance(wrapper_entries, list | tuple):
            raise InvalidArgumentError(f"wrappers must be a list, got {wrapper_entries!r:.80}")
        check_env_arguments(env)
        fixed = [name for name in env if name not in _CHOSEN_BY_CLIENTS]
        if fixed:
            raise InvalidArgumentError(
                f"{fixed[0]} is chosen by the server; a client chooses "
                f"{', '.join(_CHOSEN_BY_CLIENTS)}"
            )
        _check_size("", env)
        known = sorted(set(wrappers.__all__) - set(_WRITES_FILES))
        for entry in wrapper_entries:
            name = entry.get("name") if isinstance(entry, Mapping) else entry
            if name not in known:
                near = nearest(name, known)
                hint = f"did you mean {near!r}? " if near else ""
                raise InvalidArgumentError(
                    f"a server has no wrapper {name!r}; {hint}there are {', '.join(known)}"
                )
            _check_size(str(name), entry.get("kwargs", {}))
        kwargs = {**self._env_kwargs, "render_mode": "ansi", **env}
        return make_envs(1, wrapper_entries, kwargs)[0]

    def call(self, client: str, session_id: str, name: str, arguments: Mapping[str, Any]) -> bytes:
        """Returns the answer to a call, as JSON.

        A call with the ``number`` of the last one is answered in the same way again: the client had
        lost the answer. Numbers of a session grow.

        Args:
            client: The name of the client.
            session_id: The session.
            name: A key of `CALLS`.
            arguments: Of that call, by name, and ``number``.

        Raises:
            UnknownSessionError: The client has no such session.
            EpisodeError: A later call was answered before.
            CodingGymError: Whatever the call raises.
        """
        session = self._get(client, session_id)
        number = arguments.get("number")
        if not isinstance(number, int | None):
            raise InvalidArgumentError(f"number must be an integer, got {number!r:.80}")
        with session.lock:
            if self._sessions.get(session_id) is not session:
                raise _unknown(session_id)
            last, last_name, last_answer = session.last_reply
            if number is not None and number <= last:
                if (number, name) == (last, last_name):
                    return last_answer
                raise EpisodeError(f"call {number} comes too late: {last} was {last_name}")
            if name == "snapshot":
                self._check_snapshots()
            session.used_at = time.monotonic()
            call_arguments = {key: value for key, value in arguments.items() if key != "number"}
            try:
                if name == "fork":
                    check_arguments("fork", call_arguments, ())
                    found = self._added(client, lambda: fork(session.env))
                else:
                    found = _call(session, name, call_arguments)
            finally:
                session.used_at = time.monotonic()
            answer = json.dumps(found, separators=(",", ":")).encode()
            if number is not None:
                session.last_reply = number, name, answer
            return answer

    def _check_snapshots(self) -> None:
        kept = (one for session in self._all() for one in list(session.snapshots.values()))
        if sum(len(one.episode.files.data) for one in kept) >= self._max_snapshot_bytes:
            raise SessionLimitError(
                f"all snapshots of the server hold {self._max_snapshot_bytes} bytes; forget some"
            )

    def close(self, client: str, session_id: str) -> None:
        """Closes a session, after a call that is under way.

        Raises:
            UnknownSessionError: The client has no such session.
        """
        session = self._get(client, session_id)
        with session.lock:
            self._end(session)

    def reap(self) -> int:
        """Closes sessions that were idle for too long; returns how many."""
        count = 0
        for session in self._all():
            if session.lock.acquire(blocking=False):
                with _released(session.lock):
                    if time.monotonic() - session.used_at > self._idle_s:
                        self._end(session)
                        count += 1
        return count

    def close_all(self) -> None:
        """Closes all sessions but those with a call under way."""
        self.is_draining = True
        for session in self._all():
            if session.lock.acquire(blocking=False):
                with _released(session.lock):
                    self._end(session)

    def listed(self, client: str) -> list[Json]:
        """Returns the sessions of a client: id, and seconds since its last call."""
        now = time.monotonic()
        return [
            {"session": session.id, "idle_s": round(now - session.used_at, 1)}
            for session in self._all()
            if session.client == client
        ]

    def _get(self, client: str, session_id: str) -> ClientSession:
        session = self._sessions.get(session_id)
        if session is None or session.client != client:
            raise _unknown(session_id)
        return session

    def _all(self) -> Iterator[ClientSession]:
        return filter(None, list(self._sessions.values()))

    def _end(self, session: ClientSession) -> None:
        """Closes a session whose lock this thread holds."""
        if self._sessions.get(session.id) is not session:
            return
        try:
            session.env.close()
        except Exception:  # noqa: BLE001 - a wrapper's may be any, and the rest goes on
            _log.exception("the env of a session could not be closed")
        self._forget(session.id, session.client)

    def _forget(self, name: str, client: str) -> None:
        with self._lock:
            del self._sessions[name]
            self._clients[client] -= 1


@contextmanager
def _released(lock: threading.Lock) -> Iterator[None]:
    """Releases a lock at the end of the block."""
    try:
        yield
    finally:
        lock.release()


def _check_size(owner: str, arguments: Any) -> None:
    for name, most in _MOST.get(owner, {}).items():
        asked = arguments.get(name) if isinstance(arguments, Mapping) else None
        if isinstance(asked, int | float) and asked > most:
            raise InvalidArgumentError(f"{name} must be at most {most} on a server, got {asked}")


def _unknown(session_id: str) -> UnknownSessionError:
    return UnknownSessionError(
        f"there is no session {session_id!r:.60} of yours: it was closed, was idle for too long, "
        "or the server was restarted; open a new one"
    )


def _core(env: gym.Env[Any, Any]) -> CodingRepairEnv:
    core = env.unwrapped
    assert isinstance(core, CodingRepairEnv)  # noqa: S101 - sessions have no other
    return core


def _call(session: ClientSession, name: str, arguments: Mapping[str, Any]) -> Json:
    function, known = CALLS[name]
    check_arguments(name, arguments, known)
    return function(session, **arguments)


def _reset(session: ClientSession, seed: int | None = None, options: Json = None) -> Json:
    if options is not None:
        if not isinstance(options, Mapping):
            raise InvalidArgumentError(f"options must be an object, got {options!r:.80}")
        check_arguments("reset options", options, ("task_id",))
    observation, info = session.env.reset(seed=seed, options=options)
    return {"observation": encode(observation), "info": encode(info)}


def _step(session: ClientSession, action: Json = None) -> Json:
    observation, reward, terminated, truncated, info = session.env.step(decode_action(action))
    return {
        "observation": encode(observation),
        "reward": float(reward),
        "terminated": terminated,
        "truncated": truncated,
        "info": encode(info),
    }


def _patch(session: ClientSession) -> Json:
    return {"patch": _core(session.env).patch().text}


def _grade(session: ClientSession, patch: str | None = None) -> Json:
    """Grades a patch, by default the tree as it stands; the episode goes on."""
    if not isinstance(patch, str | None):
        raise InvalidArgumentError(f"patch must be a text, got {patch!r:.80}")
    core = _core(session.env)
    factory, task = core.factory, core.task
    change = core.patch() if patch is None else Patch(patch)
    verdict = grade(
        task,
        factory.template(task),
        change,
        backend=factory.sandbox.name,
        challenge=factory.challenge,
    )
    return {"grade": encode(verdict)}


def _snapshot(session: ClientSession) -> Json:
    if len(session.snapshots) >= _MAX_SNAPSHOTS:
        raise SessionLimitError(f"a session keeps {_MAX_SNAPSHOTS} snapshots; forget some")
    name = secrets.token_urlsafe(8)
    session.snapshots[name] = snapshot(session.env)
    return {"snapshot": name}


def _restore(session: ClientSession, snapshot: str = "") -> Json:
    observation, info = restore(session.env, _kept(session, snapshot))
    return {"observation": encode(observation), "info": encode(info)}


def _forget_snapshot(session: ClientSession, snapshot: str = "") -> Json:
    _kept(session, snapshot)
    del session.snapshots[snapshot]
    return {}


def _kept(session: ClientSession, name: str) -> EnvSnapshot:
    found = session.snapshots.get(str(name))
    if found is None:
        raise EpisodeError(f"this session keeps no snapshot {name!r:.60}")
    return found


def _render(session: ClientSession) -> Json:
    return {"text": session.env.render()}


def _chat_request(session: ClientSession, api: str = "chat") -> Json:
    return chat_request(session.env, api=api)


CALLS: Mapping[str, tuple[Callable[..., Json], tuple[str, ...]]] = {
    "reset": (_reset, ("seed", "options")),
    "step": (_step, ("action",)),
    "patch": (_patch, ()),
    "grade": (_grade, ("patch",)),
    "snapshot": (_snapshot, ()),
    "restore": (_restore, ("snapshot",)),
    "forget": (_forget_snapshot, ("snapshot",)),
    "render": (_render, ()),
    "chat_request": (_chat_request, ("api",)),
}
"""What can be called in a session, with the names of its arguments; ``fork`` besides."""
