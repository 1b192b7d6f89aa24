"""An agent that samples from a local Hugging Face model, in batches, on a CPU or a GPU."""

import asyncio
import hashlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from coding_gym.action import Completion
from coding_gym.agents.chat import Sampling
from coding_gym.agents.local_chat import LocalChat, play_by_ids
from coding_gym.agents.model_errors import ModelError, PromptTooLongError
from coding_gym.agents.player import Complete, LiveEpisode, Player
from coding_gym.calls import ModelCall
from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import import_extra
from coding_gym.text.tokenizers import get_tokenizer

# A batch starts after COLLECT_S seconds or COLLECT_SHARE of the last batch's duration, whichever is
# longer. Otherwise, episodes whose commands ran during that batch would form a separate batch.
COLLECT_S, COLLECT_SHARE = 0.005, 0.1

Request = tuple[list[int], int, int]
"""The ids of a prompt, the maximum number of tokens of the reply, and the seed."""

Sampled = tuple[list[int], list[float]]
"""Sampled ids, and the log-probability of each."""


class HuggingFaceAgent(Player):
    """Plays episodes with a causal language model of ``transformers`` in this process.

    *Replies*: a stop token ends a reply and is in its ids. Log-probabilities are computed before
    temperature and cut-offs. Settings that ``sampling`` lacks come from the model's generation
    config: temperature (by default 1; 0 is greedy), top_p, top_k and min_p.

    *Batches*: replies to all waiting requests are generated together. The prompts' common
    prefix is processed once; the remaining ids are padded on the left. Each request has a random
    generator, seeded by the attempt and the turn. A reply can still depend on its batch: padding
    and the number of rows change the last bits of the logits (more bits with 16-bit weights), which
    rarely changes a token. With concurrency 1, runs on the same machine with the same versions of
    all packages have the same replies.

    Args:
        model: A folder, or a name in the local Hugging Face cache; no file is downloaded. The model
            runs on a GPU if torch finds a GPU, in the dtype of the checkpoint.
        sampling: Sampling settings without ``thinking``, ``reasoning_effort`` and ``extra``, which
            are for servers.
        loaded: A ``transformers`` model in memory, for example of a trainer; then the folder
            ``model`` needs only the tokenizer. The model's generation config is replaced.

    Attributes:
        tokenizer: The name of the tokenizer that the episodes must use.
        context: Maximum tokens of a prompt and its reply together; `sys.maxsize` if unknown.

    Raises:
        InvalidArgumentError: The model is not on this machine, or an argument is invalid.
        MissingDependencyError: torch or transformers is not installed.
        TokenizerError: The model has no tokenizer.
    """

    name = "hf"

    def __init__(self, model: str, sampling: Sampling | None = None, *, loaded: Any = None) -> None:
        settings = sampling or Sampling()
        options = (settings.thinking, settings.reasoning_effort, settings.extra or None)
        if any(option is not None for option in options):
            raise InvalidArgumentError(
                "agent 'hf' does not support the sampling settings thinking, reasoning_effort and "
                f"extra, got {settings.body()}; serve the model, and use the agent 'chat'"
            )
        self.model, self.tokenizer = model, f"hf:{model}"
        self._torch = import_extra("torch", "hf", " torch")
        self._transformers = import_extra("transformers", "hf", " torch")
        self._model = self._load() if loaded is None else loaded
        self._tokenizer = get_tokenizer(self.tokenizer)
        model_config = self._model.generation_config
        self._model.generation_config = self._transformers.GenerationConfig()
        explicit_values = {k: v for k, v in asdict(settings).items() if v is not None}
        names = ("temperature", "top_p", "top_k", "min_p")
        defaults = {k: v for k in names if (v := getattr(model_config, k, None)) is not None}
        self._sampling = replace(settings, **{"temperature": 1.0, **defaults, **explicit_values})
        eos_ids = model_config.eos_token_id
        eos_ids = eos_ids if isinstance(eos_ids, list) else [eos_ids]
        self._stop_ids = sorted({*eos_ids, *self._tokenizer.end_ids} - {None})
        config = self._model.config.get_text_config()
        self.context = getattr(config, "max_position_embeddings", None) or sys.maxsize
        self._waiting: list[tuple[Request, asyncio.Future[Sampled]]] = []
        self._work: asyncio.Task[None] | None = None
        self._last_batch_s = 0.0
        self._is_closed = False

    def _load(self) -> Any:
        device = "cuda" if self._torch.cuda.is_available() else "cpu"
        load = self._transformers.AutoModelForCausalLM.from_pretrained
        try:
            return load(self.model, dtype="auto", local_files_only=True).to(device).eval()
        except Exception as problem:  # transformers passes on exceptions of many file readers
            first_line = str(problem).partition("\n")[0]
            raise InvalidArgumentError(
                f"cannot load the model {self.model} on {device} from this machine "
                f"({type(problem).__name__}: {first_line}); name a folder with a model, or "
                f"download the model first: hf download {self.model}"
            ) from problem

    def describe(self) -> Mapping[str, Any]:
        """Returns the sampling settings, and the model's device and dtype."""
        return {
            "sampling": self._sampling.body(),
            "device": self._model.device.type,
            "dtype": str(self._model.dtype).removeprefix("torch."),
        }

    async def play(self, live: LiveEpisode) -> None:
        """Generates actions until the episode has ended."""
        await play_by_ids(live, self.tokenizer, self.reply)

    def chat(self, seed: int) -> Complete:
        """Returns the function that replies to requests; see `Player`."""
        return LocalChat(self.tokenizer, self.reply, seed).complete

    async def reply(
        self, prompt_ids: list[int], max_tokens: int | None, attempt_seed: int, turn: int
    ) -> Completion:
        """Samples a reply, in a batch with other waiting requests; see `local_chat.Sample`."""
        start_s = time.perf_counter()
        if len(prompt_ids) >= self.context:
            raise PromptTooLongError(
                f"the prompt must have fewer than {self.context} tokens, the model's context "
                f"length, got {len(prompt_ids)}"
            )
        num_free = self.context - len(prompt_ids)
        limit = min(self._sampling.max_tokens or num_free, num_free)
        if max_tokens is not None:
            limit = max(1, min(limit, max_tokens))
        ids, logprobs = await self._sample((prompt_ids, limit, _seed(attempt_seed, turn)))
        is_ended = ids[-1] in self._stop_ids
        text = self._tokenizer.decode(ids[:-1] if is_ended else ids)
        call = ModelCall(
            prompt_tokens=len(prompt_ids),
            completion_tokens=len(ids),
            finish_reason="stop" if is_ended else "length",
            duration_s=time.perf_counter() - start_s,
            prompt_ids=tuple(prompt_ids),
        )
        return Completion(text, ids, logprobs, is_cut=not is_ended, model_call=call)

    async def _sample(self, request: Request) -> Sampled:
        """Adds a request to the waiting requests, and waits for its reply."""
        future: asyncio.Future[Sampled] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._work is None or self._work.done():
            self._is_closed = False
            self._work = asyncio.create_task(self._generate_waiting())
        return await future

    async def _generate_waiting(self) -> None:
        """Generates batches, one at a time in a thread, until no request waits."""
        while self._waiting:
            await asyncio.sleep(max(COLLECT_S, COLLECT_SHARE * self._last_batch_s))
            batch, self._waiting = self._waiting, []
            start_s = time.perf_counter()
            try:
                replies = await asyncio.to_thread(self._generate, [request for request, _ in batch])
            except Exception as problem:  # noqa: BLE001 - raised in each waiting episode
                message = (
                    f"the model failed ({problem!r}); if memory is short, lower the concurrency"
                )
                for _, future in batch:
                    if not future.done():  # a done future was cancelled
                        future.set_exception(ModelError(message))
                continue
            self._last_batch_s = time.perf_counter() - start_s
            for (_, future), reply in zip(batch, replies, strict=True):
                if not future.done():
                    future.set_result(reply)

    def _generate(self, requests: Sequence[Request]) -> list[Sampled]:
        """Returns the replies to requests, generated in one batch."""
        torch, device, pad_id = self._torch, self._model.device, self._tokenizer.pad_id
        prompts, bounds, seeds = zip(*requests, strict=True)
        num_shared, cache = self._cached_prefix(prompts)
        width = max(map(len, prompts))
        rows = [(p[:num_shared], [pad_id] * (width - len(p)), p[num_shared:]) for p in prompts]
        ids = torch.tensor([[*start, *pads, *end] for start, pads, end in rows], device=device)
        mask = torch.ones_like(ids)
        for row, (_, pads, _) in zip(mask, rows, strict=True):
            row[num_shared : num_shared + len(pads)] = 0
        limits = torch.tensor(bounds, device=device)
        logprobs: list[Any] = []

        def is_done(ids: Any, *_: Any, **__: Any) -> Any:
            return (ids.shape[1] - width >= limits) | self._is_closed

        output = self._model.generate(
            input_ids=ids,
            attention_mask=mask,
            generation_config=self._transformers.GenerationConfig(
                do_sample=False,  # `_sampler` draws the token and sets other scores to -inf
                max_new_tokens=max(bounds),
                eos_token_id=self._stop_ids,
                pad_token_id=pad_id,
            ),
            logits_processor=[self._sampler(seeds, logprobs)],
            stopping_criteria=[is_done],
            **cache,
        )
        sampled_rows = output[:, width:].tolist(), torch.cat(logprobs, 1).tolist()
        replies = []
        for row_ids, row_logprobs, bound in zip(*sampled_rows, bounds, strict=True):
            stops = (n for n, token in enumerate(row_ids, 1) if token in self._stop_ids)
            length = min(next(stops, len(row_ids)), bound)
            replies.append((row_ids[:length], row_logprobs[:length]))
        return replies

    def _cached_prefix(self, prompts: Sequence[list[int]]) -> tuple[int, dict[str, Any]]:
        """Returns the length of the prompts' common prefix, and the model's cache of it.

        The prefix is processed once for the batch: the system prompt with the tools, or the whole
        prompt of several attempts at one task.
        """
        columns = [len(set(column)) == 1 for column in zip(*prompts, strict=False)]
        num_shared = [*columns[:-1], False].index(False)
        if len(prompts) == 1 or not num_shared:
            return 0, {}
        torch = self._torch
        with torch.no_grad():
            ids = torch.tensor([prompts[0][:num_shared]], device=self._model.device)
            output = self._model(input_ids=ids, use_cache=True, logits_to_keep=1)
        name = "cache" if "cache" in output else "past_key_values"  # transformers before 5.24
        cache = output.get(name)
        if type(cache).__name__ != "DynamicCache" or any(cache.is_sliding):
            return 0, {}  # a sliding window would count the padding in the middle
        cache.batch_repeat_interleave(len(prompts))
        return num_shared, {name: cache}

    def _sampler(self, seeds: Sequence[int], logprobs: list[Any]) -> Callable[[Any, Any], Any]:
        """Returns a logits processor that samples for each row and appends to ``logprobs``."""
        torch, transformers, sampling = self._torch, self._transformers, self._sampling
        generators = [torch.Generator(self._model.device).manual_seed(seed) for seed in seeds]
        settings = (
            (transformers.TemperatureLogitsWarper, float(sampling.temperature or 0)),
            (transformers.TopKLogitsWarper, sampling.top_k),
            (transformers.TopPLogitsWarper, sampling.top_p),
            (transformers.MinPLogitsWarper, sampling.min_p),
        )
        warpers = [kind(value) for kind, value in settings if value and value > 0]

        def draw(ids: Any, scores: Any) -> Any:
            scores[:, self._tokenizer.vocab_size :] = -torch.inf  # padding of the vocabulary
            model_logprobs = scores.log_softmax(-1)
            if sampling.temperature:
                for warp in warpers:
                    scores = warp(ids, scores)
                rows = zip(scores.softmax(-1), generators, strict=True)
                tokens = torch.stack([torch.multinomial(row, 1, generator=g) for row, g in rows])
            else:
                tokens = scores.argmax(-1, keepdim=True)
            logprobs.append(model_logprobs.gather(1, tokens))
            return torch.full_like(scores, -torch.inf).scatter_(1, tokens, 0.0)

        return draw

    async def close(self) -> None:
        """Stops a running generation; the model stays loaded."""
        self._is_closed = True


def _seed(attempt_seed: int, turn: int) -> int:
    digest = hashlib.sha256(f"{attempt_seed}\0{turn}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1
