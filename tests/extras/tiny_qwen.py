"""A random language model for tests, of Qwen2's shape, and its tokenizer.

Nothing is downloaded: the tokenizer is trained here.
"""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MARKUP = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]


def train_tokenizer(
    texts: Sequence[str], vocab_size: int = 8192, chat_template: str | None = None
) -> Any:
    """Returns a byte-level BPE tokenizer with Qwen's control tokens.

    The default chat template is Qwen2.5's, as TRL ships it.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    lines = pre_tokenizers.Split("\n", "isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.pre_tokenizer = pre_tokenizers.Sequence([lines, as_bytes])
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=CONTROL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, padding_side="left")
    tokenizer.add_special_tokens({"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"})
    tokenizer.add_tokens(MARKUP)
    if chat_template is None:  # TRL parses calls by a template that it knows byte for byte
        template = files("trl").joinpath("chat_templates", "qwen2_5.jinja")
        chat_template = template.read_text(encoding="utf-8")
    tokenizer.chat_template = chat_template
    return tokenizer


def build_model(tokenizer: Any, num_more_rows: int = 0) -> Any:
    """Returns a random model with 0.5 million parameters.

    Args:
        tokenizer: The model's tokenizer.
        num_more_rows: Rows of the embedding without a token, as in many models.
    """
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer) + num_more_rows,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return Qwen2ForCausalLM(config)
