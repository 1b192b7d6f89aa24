"""Converts recorded episodes to samples of token ids for trainers."""

import logging
from collections.abc import Sequence
from typing import Any

from coding_gym.errors import InvalidArgumentError
from coding_gym.text.chat import get_chat, turns_of
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.trajectory import Trajectory

_log = logging.getLogger(__name__)


def training_example(trajectory: Trajectory, *, include_inexact: bool = False) -> dict[str, Any]:
    """Returns a whole episode as one sample of token ids, ready for TRL.

    - ``prompt_ids``: system prompt with tools, task, and the generation prompt.
    - ``completion_ids``: the replies, and between them the results of tools, in the form of
      `TranscriptObservation`; ends with the last reply.
    - ``env_mask``: the loss mask, by TRL's name: 1 on ids that the policy sampled.
    - ``logprobs``: a list with a value per completion id, 0.0 at mask 0; None if a value is absent.
    - ``exact``: for each reply, whether its ids are the sampled ids.
    - ``weight_versions``: for each reply, the version of the weights that sampled it, or None.

    If the record has the ids of the model's prompts, the example has exactly these ids up to the
    last recorded reply; replies without ids have mask 0, also with ``include_inexact``. Otherwise
    the record's tokenizer encodes the prompts.

    Args:
        trajectory: The record.
        include_inexact: Whether the mask is 1 also on replies whose ids are an encoding of their
            text, and on the control token that ends such a reply: labels for supervised training.

    Raises:
        InvalidArgumentError: No reply has sampled ids, and ``include_inexact`` is False; or the
            recorded prompts form several `segments`; or the record has no ids of prompts and cannot
            be encoded: it has no tools, or its tokenizer lacks an id or a suitable chat template.
        TokenizerError, MissingDependencyError: The tokenizer cannot be loaded.
    """
    if not any(turn.has_prompt_ids for turn in trajectory.turns):
        return _encoded_example(trajectory, include_inexact)
    samples = segments(trajectory)
    if len(samples) > 1:
        raise InvalidArgumentError(
            f"the prompts of this episode form {len(samples)} segments, because a prompt does not "
            "continue the previous ids; use coding_gym.adapters.samples.segments"
        )
    turns = [turn for turn in trajectory.turns if turn.model_call is not None]
    return {
        **samples[0],
        "exact": [turn.has_prompt_ids for turn in turns],
        "weight_versions": [turn.weight_version for turn in turns],
    }


def _encoded_example(trajectory: Trajectory, include_inexact: bool) -> dict[str, Any]:
    """Returns the example of a record without the ids of prompts."""
    if not trajectory.tools:
        raise InvalidArgumentError(
            "the trajectory has no tools and no ids of prompts; record it again, with a server "
            "that returns the ids of prompts (vLLM, SGLang)"
        )
    tool_format = trajectory.settings.get("tool_format", "auto")
    chat = get_chat(get_tokenizer(trajectory.tokenizer), trajectory.tools, tool_format)
    (opening, _), *replies = turns_of(trajectory.messages, trajectory.turns)
    turns = [(messages, turn) for messages, turn in replies if turn is not None]
    chat.check_ids(i for _, turn in turns for i in turn.token_ids)
    encoded = chat.opening(opening)
    sample = _new_sample([*encoded.ids, *encoded.prompt])
    context: list[int] = []
    for messages, turn in turns:
        is_label, reply = turn.exact or include_inexact, list(turn.token_ids)
        encoded = chat.answers(messages[1:])
        results = chat.join(reply, encoded.ids)[len(reply) :]
        if is_label and not turn.exact and chat.is_control(results[:1]):
            reply.append(results.pop(0))  # the control token that ends an encoded reply
        _add(sample, context, reply, turn.logprobs, is_label=is_label)
        context = [*results, *encoded.prompt]
    is_exact = [turn.exact for _, turn in turns]
    if not include_inexact and is_exact and not any(is_exact):
        raise InvalidArgumentError(
            "no reply has sampled ids, so no id would be trained; use coding_gym.Completion(text, "
            "token_ids) as actions, or pass include_inexact=True to train on the encoded replies"
        )
    return {
        **sample,
        "exact": is_exact,
        "weight_versions": [turn.weight_version for _, turn in turns],
    }


def segments(trajectory: Trajectory) -> list[dict[str, Any]]:
    """Returns an episode as samples of token ids, one per segment; most episodes are one segment.

    A prompt that begins with all ids of a segment continues this segment; the prompt's new ids have
    mask 0. Any other prompt begins a new segment, for example after an agent summarised its
    history. Replies without ids, or without the ids of their prompt, are skipped.

    Returns:
        For each segment ``prompt_ids``, ``completion_ids``, ``env_mask`` (1 on ids that were
        sampled) and ``logprobs`` (0.0 at mask 0; None if a sampled id has no log-probability), as
        in `training_example`.
    """
    samples: list[dict[str, Any]] = []
    history: list[int] = []
    for turn in trajectory.turns:
        call = turn.model_call
        if call is None or not turn.has_prompt_ids:
            continue
        prompt = [*history[: call.prefix_length], *call.prompt_ids]
        history = [*prompt, *turn.token_ids]
        for sample in reversed(samples):
            length = len(sample["prompt_ids"]) + len(sample["completion_ids"])
            if prompt[:length] == [*sample["prompt_ids"], *sample["completion_ids"]]:
                break
        else:
            length, sample = len(prompt), _new_sample(prompt)
            samples.append(sample)
        _add(sample, prompt[length:], turn.token_ids, turn.logprobs)
    if not samples and any(turn.model_call for turn in trajectory.turns):
        _log.warning(
            "%s: no training sample, because no turn has the token ids of prompt and reply; use a "
            "server that returns both (vLLM, SGLang)",
            trajectory.task_id,
        )
    return samples


def longest_segment(trajectory: Trajectory, end_id: int) -> dict[str, Any]:
    """Returns the segment with the most sampled ids, the last such segment on a tie.

    ``trained_part`` is the fraction of the episode's sampled ids that are in this segment. If the
    episode has no segment or ended with an error, ``trained_part`` is 0.0, and prompt and
    completion are one ``end_id`` each, with mask 0, because trainers reject an empty completion.
    """
    samples = [] if trajectory.error_class else segments(trajectory)
    if not samples:
        ids = {"prompt_ids": [end_id], "completion_ids": [end_id], "env_mask": [0]}
        return {**ids, "logprobs": None, "trained_part": 0.0}
    counts = [sum(sample["env_mask"]) for sample in samples]
    longest = max(range(len(samples)), key=lambda index: (counts[index], index))
    return {**samples[longest], "trained_part": counts[longest] / sum(counts)}


def _new_sample(prompt_ids: list[int]) -> dict[str, Any]:
    return {"prompt_ids": prompt_ids, "completion_ids": [], "env_mask": [], "logprobs": []}


def _add(
    sample: dict[str, Any],
    context: Sequence[int],
    reply: Sequence[int],
    logprobs: Sequence[float] | None,
    *,
    is_label: bool = True,
) -> None:
    """Adds to a sample the ids before a reply, with mask 0, and the ids of the reply."""
    sample["completion_ids"] += [*context, *reply]
    sample["env_mask"] += [0] * len(context) + [int(is_label)] * len(reply)
    if not is_label:
        logprobs = [0.0] * len(reply)
    if logprobs is None or sample["logprobs"] is None:
        sample["logprobs"] = None
    else:
        sample["logprobs"] += [*[0.0] * len(context), *logprobs]
