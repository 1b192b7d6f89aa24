"""Many episodes at once: ordinary envs on threads of one process."""

import atexit
import inspect
import weakref
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, suppress
from operator import methodcaller
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from coding_gym.arguments import at_least_one, is_integer, true_or_false
from coding_gym.envs import ENV_ID
from coding_gym.envs.snapshot import EnvSnapshot, snapshot
from coding_gym.errors import EpisodeError, InvalidArgumentError
from coding_gym.vector.batching import (
    Batch,
    Seed,
    merge_infos,
    seeds_of_slots,
    split_options,
    stack,
    to_batch,
    unstack,
)
from coding_gym.vector.slots import Slot, Transition
from coding_gym.vector.sub_envs import WrapperEntry, check_env_arguments, make_envs
from coding_gym.vector.thread_pool import ThreadPool


class CodingRepairVectorEnv(VectorEnv[Any, Any, NDArray[Any]]):
    """N ``CodingRepair-v0`` envs, each with its wrappers, on the threads of one process.

    Episodes wait for their sandboxes nearly all the time, so threads are enough: what `reset` and
    `step` return is what Gymnasium's ``SyncVectorEnv`` of the same envs returns, infos included,
    without waiting for one env after the other. An episode that ended is followed by a new one at
    the next action, which is ignored (``AutoresetMode.NEXT_STEP``).

    `send` and `recv` do the same for some of the envs at a time, in the manner of EnvPool
    (https://github.com/sail-sg/envpool); they return ready episodes while others are being graded.

    A failure of our own side truncates its env and no other. A mistake of the caller raises, as
    in a single env; then no action is left under way, and the other envs are well.

    Args:
        num_envs: N.
        wrappers: For each wrapper of each env, the innermost first,
            ``{"name": "TokenBudget", "kwargs": {...}}``, where the name is that of a class in
            `coding_gym.wrappers` or ``"module:Class"``; or a callable from env to env.
        group_size: So many neighbours have the same tasks: the k-th episode of each env of a group
            since the last seed is of one task, seeded or not. Divides ``num_envs``.
        prefetch: Whether the end of an episode begins the next one in the background at once. The
            tasks are the same as without; but what `call` and `get_attr` see after an end is
            already the next episode.
        num_threads: How many envs work at once; all of them by default.
        **env_kwargs: Arguments of `CodingRepairEnv`.

    Raises:
        InvalidArgumentError, UnknownNameError: An argument cannot be used.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        wrappers: Sequence[WrapperEntry] = (),
        group_size: int = 1,
        prefetch: bool = False,
        num_threads: int | None = None,
        **env_kwargs: Any,
    ) -> None:
        self.closed = True  # until there is something to close
        check_env_arguments(env_kwargs, _ARGUMENTS)
        self.num_envs = at_least_one("num_envs", num_envs)
        self.group_size = at_least_one("group_size", group_size)
        if self.num_envs % self.group_size:
            raise InvalidArgumentError(
                f"num_envs must be a multiple of group_size {group_size}, got {num_envs}"
            )
        threads = self.num_envs if num_threads is None else at_least_one("num_threads", num_threads)
        self.envs = make_envs(self.num_envs, wrappers, env_kwargs, group_size)
        first = self.envs[0]
        self.metadata = first.metadata | {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.render_mode = first.render_mode
        self.single_action_space = first.action_space
        self.single_observation_space = first.observation_space
        self.action_space = batch_space(first.action_space, self.num_envs)
        self.observation_space = batch_space(first.observation_space, self.num_envs)
        self._pool = ThreadPool(threads)
        self._slots = [
            Slot(index, env, self._pool, prefetch=true_or_false("prefetch", prefetch))
            for index, env in enumerate(self.envs)
        ]
        own_seeds = np.random.SeedSequence().generate_state(self.num_envs // self.group_size)
        self._own_seeds = [int(seed) for seed in own_seeds]  # of groups before they are seeded
        self._let_go = weakref.finalize(self, _interrupt, self._pool, self._slots)
        self._let_go.atexit = False
        # Not before the envs are made, which imports the sandbox package: what is registered later
        # runs earlier, and threads shall stop before what they work with does.
        atexit.register(self._let_go)
        self.closed = False

    @property
    def np_random_seed(self) -> Any:
        """The envs' last seeds."""
        return self.get_attr("np_random_seed")

    @property  # type: ignore[misc] # without a setter, as in Gymnasium's own
    def np_random(self) -> Any:
        """The envs' random number generators."""
        return self.get_attr("np_random")

    def reset(
        self, *, seed: Seed = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins new episodes in all envs; whatever was under way is waited for and dropped.

        Args:
            seed: One for the first env (or group), each further one adding 1; or a list of one for
                each. None goes on in each env's own sequence of tasks; envs of a group that are
                behind then leave out what the others had, so that all begin the same task.
            options: As for a single env, for each of them, ``snapshot`` too; ``reset_mask``, a bool
                array of shape (N,), resets only some.

        Returns:
            The batch of the N observations, and the infos merged.

        Raises:
            InvalidArgumentError: An argument cannot be used.
            UnknownTaskError, InvalidTaskError: As for a single env.
            EpisodeError: Only some were to be reset while an action is under way, or at first.
        """
        seeds = seeds_of_slots(seed, self.num_envs, self.group_size)
        chosen, env_options = split_options(options, self.num_envs)
        self._check_open()
        if len(chosen) < self.num_envs:
            _check_idle("reset of some envs", self._slots)
            _check_started(self._slots)
        self._drop_all()
        self._begin_resets([self._slots[index] for index in chosen], seeds, env_options)
        transitions = self._take_all()
        infos = [(index, t.info) for index, t in zip(chosen, transitions, strict=True)]
        observations = [slot.observation for slot in self._slots]
        return stack(self.single_observation_space, observations), merge_infos(infos, self.num_envs)

    def step(self, actions: Any) -> Batch:
        """Plays one action in each env.

        Args:
            actions: A batch of N, such as a list of texts.

        Returns:
            The batch of the N observations; rewards, float64 (N,); terminations and truncations,
            bool (N,); the infos merged.

        Raises:
            InvalidArgumentError: Not a batch of N actions, or one of them is not an action.
            EpisodeError: There was no reset, or an action is under way: `recv` its result first.
        """
        self._check_open()
        _check_idle("step", self._slots)
        self.send(actions)
        return to_batch(self.single_observation_space, self._take_all())

    def send(self, actions: Any, env_ids: Sequence[int] | NDArray[Any] | None = None) -> None:
        """Begins one action in each of some envs, and returns at once.

        Args:
            actions: A batch of M actions of the form that `step` takes.
            env_ids: The M envs, each at most once, none with an action under way; all by default.

        Raises:
            InvalidArgumentError, EpisodeError: As for `step`; then nothing was begun.
        """
        self._check_open()
        slots = self._slots if env_ids is None else self._chosen(env_ids)
        single = unstack(self.action_space, actions, len(slots))
        _check_idle("send", slots)
        _check_started(slots)
        for slot, action in zip(slots, single, strict=True):
            slot.begin_step(action)

    def recv(self, min_envs: int = 1) -> Batch:
        """Waits until some envs are ready, and returns all that are.

        Args:
            min_envs: How many to wait for; at most as many as have an action under way.

        Returns:
            What `step` returns, but for M envs, min_envs ≤ M ≤ N, in the order of their numbers;
            every array is M long, those in the infos too. ``infos["env_id"]``, int64 (M,), says
            which envs they are.

        Raises:
            InvalidArgumentError: So many will never be ready.
            Exception: What one env raised, as `step` would; that env may be sent another action,
                and the results of the others are kept for the next `recv`.
        """
        self._check_open()
        slots = self._wait(at_least_one("min_envs", min_envs))
        transitions = _take(slots)
        named = [
            transition._replace(info=transition.info | {"env_id": slot.index})
            for slot, transition in zip(slots, transitions, strict=True)
        ]
        return to_batch(self.single_observation_space, named)

    def snapshot(self, index: int) -> EnvSnapshot:
        """Returns a snapshot of one env with its wrappers: `coding_gym.snapshot`.

        Raises:
            EpisodeError: No episode is running in it, or an action is under way.
        """
        self._check_open()
        (slot,) = self._chosen([index])
        _check_idle("snapshot", [slot])
        if slot.is_started and slot.is_ended:  # with prefetch, its env is in the next one already
            raise EpisodeError(f"the episode of env {index} has ended; the next action begins one")
        taken: EnvSnapshot
        (taken,) = _results([slot.begin_call(snapshot)])
        return taken

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Returns what a method (or attribute) of that name gives in each env, N values.

        The envs work at once. Wrappers are asked from the outside in.

        Raises:
            InvalidArgumentError: It is ``reset``, ``step`` or ``close``, which are for all at once.
            EpisodeError: An action is under way.
            AttributeError: Neither the env nor a wrapper has it.
        """
        if name in {"reset", "step", "close"}:
            raise InvalidArgumentError(f"call cannot {name} envs; use the vector env's own {name}")

        def ask(env: gym.Env[Any, Any]) -> Any:
            found = env.get_wrapper_attr(name)
            return found(*args, **kwargs) if callable(found) else found

        self._check_open()
        _check_idle("call", self._slots)
        return _results([slot.begin_call(ask) for slot in self._slots])

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Returns an attribute of each env; see `call`."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of each env, where it is: in a wrapper or the env.

        Args:
            name: The attribute.
            values: A list or tuple of N values, or one value for all.

        Raises:
            InvalidArgumentError: Not N values.
            EpisodeError: An action is under way.
        """
        each = list(values) if isinstance(values, list | tuple) else [values] * self.num_envs
        if len(each) != self.num_envs:
            raise InvalidArgumentError(
                f"values must be one value or a list of {self.num_envs}, got {len(each)} values"
            )
        self._check_open()
        _check_idle("set_attr", self._slots)
        asks = [methodcaller("set_wrapper_attr", name, value) for value in each]
        _results([slot.begin_call(ask) for slot, ask in zip(self._slots, asks, strict=True)])

    def render(self) -> tuple[Any, ...]:
        """Returns what each env renders."""
        return self.call("render")

    def close_extras(self, **_kwargs: Any) -> None:
        """Ends all episodes and threads; commands are killed, a grading under way is waited for."""
        with ExitStack() as closing:  # all of it, last in first out, whatever one of them raises
            for env in self.envs:
                closing.callback(env.close)
            closing.callback(self._pool.join)
            closing.callback(atexit.unregister, self._let_go)
            closing.callback(self._let_go)

    def __del__(self) -> None:
        """Does nothing; Gymnasium 1.2's would wait for threads wherever garbage is collected."""

    def _check_open(self) -> None:
        if self.closed or not self._pool.is_mine:
            why = "is closed" if self.closed else "belongs to the process that made it"
            raise EpisodeError(f"this vector env {why}; make another")

    def _begin_resets(
        self, slots: Sequence[Slot], seeds: Sequence[int | None], options: dict[str, Any] | None
    ) -> None:
        """Begins a reset of each of some idle slots.

        Without seed and options, the slots of a group leave out what the one furthest ahead had.

        Args:
            slots: Which.
            seeds: A seed or None for each slot of the vector env.
            options: As for a single env.
        """
        furthest: dict[int, int] = {}
        for slot in slots:
            group = slot.index // self.group_size
            furthest[group] = max(furthest.get(group, 0), slot.num_episodes)
        for slot in slots:
            group = slot.index // self.group_size
            seed = seeds[slot.index]
            if seed is None and self.group_size > 1 and not slot.is_seeded:
                seed = self._own_seeds[group]
            slot.begin_reset(seed, options, furthest[group] - slot.num_episodes)

    def _chosen(self, env_ids: Sequence[int] | NDArray[Any]) -> list[Slot]:
        """Returns the slots of these numbers, in that order; InvalidArgumentError for others."""
        ids = list(env_ids)
        are_numbers = all(is_integer(index) for index in ids)
        ids = [int(index) for index in ids] if are_numbers else ids
        if not are_numbers or len(set(ids)) < len(ids) or not set(ids) <= set(range(self.num_envs)):
            raise InvalidArgumentError(
                f"env_ids must be different numbers from 0 to {self.num_envs - 1}, got {ids}"
            )
        return [self._slots[index] for index in ids]

    def _wait(self, num: int) -> list[Slot]:
        """Waits until so many are done, and returns all that are; see `recv`."""
        pending = [slot.pending for slot in self._slots if slot.pending is not None]
        if num > len(pending):
            raise InvalidArgumentError(
                f"recv cannot wait for {num} envs: an action is under way in {len(pending)}; "
                "send actions first"
            )
        if num == len(pending):
            wait(pending)
        while sum(future.done() for future in pending) < num:
            wait([future for future in pending if not future.done()], return_when=FIRST_COMPLETED)
        return [slot for slot in self._slots if slot.is_done]

    def _take_all(self) -> list[Transition]:
        """Waits for all busy slots and takes their results; an error drops what is under way."""
        try:
            return _take(self._wait(sum(slot.pending is not None for slot in self._slots)))
        except Exception:  # whatever an env raised goes on, and no other result is left under way
            self._drop_all()
            raise

    def _drop_all(self) -> None:
        """Waits for every busy slot, and forgets the results."""
        for slot in self._slots:
            if slot.pending is not None:
                with suppress(Exception):  # no caller waits for the result or its failure
                    slot.take()


_ARGUMENTS = [n for n in inspect.signature(CodingRepairVectorEnv).parameters if n != "env_kwargs"]


def make_vec(
    num_envs: int = 1,
    *,
    wrappers: Sequence[WrapperEntry] = (),
    env_wrappers: Sequence[WrapperEntry] = (),
    **kwargs: Any,
) -> CodingRepairVectorEnv:
    """Returns a vector env of ``CodingRepair-v0`` with a spec that makes it again.

    The same as ``gym.make_vec("CodingRepair-v0", num_envs=..., env_wrappers=[...], ...)``.

    Args:
        num_envs: How many envs.
        wrappers: As for `CodingRepairVectorEnv`; with callables the spec cannot be written as JSON.
        env_wrappers: The same; `gym.make_vec` refuses the name ``wrappers`` for this env.
        **kwargs: Further arguments of `CodingRepairVectorEnv` and of `CodingRepairEnv`.

    Raises:
        InvalidArgumentError, UnknownNameError: An argument cannot be used.
    """
    check_env_arguments(kwargs, _ARGUMENTS)
    if wrappers and env_wrappers:
        raise InvalidArgumentError("wrappers and env_wrappers are the same; give one of the two")
    entries = wrappers or env_wrappers
    if entries:  # a tuple would not come back from JSON as one
        kwargs["env_wrappers"] = list(entries) if isinstance(entries, tuple) else entries
    env = gym.make_vec(ENV_ID, num_envs=num_envs, vectorization_mode="vector_entry_point", **kwargs)
    return cast("CodingRepairVectorEnv", env)


def vector_entry_point(
    num_envs: int, *, env_wrappers: Sequence[WrapperEntry] = (), **kwargs: Any
) -> CodingRepairVectorEnv:
    """Returns the vector env; Gymnasium calls this with what ``gym.make_vec`` was given."""
    return CodingRepairVectorEnv(num_envs, wrappers=env_wrappers, **kwargs)


def _check_idle(what: str, slots: Sequence[Slot]) -> None:
    """Raises EpisodeError where an action is under way in one of the slots."""
    busy = [slot.index for slot in slots if slot.pending is not None]
    if busy:
        raise EpisodeError(
            f"{what} was called while an action is under way in env {busy[0]}"
            + (f" and {len(busy) - 1} more" if len(busy) > 1 else "")
            + "; recv its result first, or reset"
        )


def _check_started(slots: Sequence[Slot]) -> None:
    """Raises EpisodeError where one of the slots had no reset yet."""
    if not all(slot.is_started for slot in slots):
        raise EpisodeError("there are no episodes yet; call reset first")


def _take(slots: Sequence[Slot]) -> list[Transition]:
    """Takes the results of slots that are done; where one failed, the others keep theirs."""
    for slot in slots:
        if slot.pending is not None and slot.pending.exception() is not None:
            slot.take()  # raises
    return [slot.take() for slot in slots]


def _results(futures: Sequence[Future[Any]]) -> tuple[Any, ...]:
    """Waits for calls in envs; none of them is under way afterwards, come what may."""
    try:
        wait(futures)
    except BaseException:  # an interrupt; the next action shall not meet a call in its env
        for future in futures:
            future.cancel()
        wait(futures)
        raise
    return tuple(future.result() for future in futures)


def _interrupt(pool: ThreadPool, slots: Sequence[Slot]) -> None:
    pool.stop()
    with ExitStack() as interrupting:
        for slot in slots:
            interrupting.callback(slot.interrupt)
