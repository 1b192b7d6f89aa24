"""Trains the bundled vocabulary on the standard library of the interpreter that runs this script.

    python scripts/train_tokenizer.py [--output FILE]

The text is every source file of the standard library without its tests, in sorted order, and each
docstring once more without its indentation, so that the share of prose is closer to the share in
problem statements. The same Python release gives the same file, byte for byte.
"""

import argparse
import ast
import base64
import hashlib
import inspect
import platform
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from coding_gym.text.tokenizers import (
    BUNDLED_SIZE,
    BUNDLED_SPECIAL_TOKENS,
    DEFAULT_TOKENIZER,
    SPLIT_PATTERN,
)

SKIPPED = {"test", "tests", "idle_test", "site-packages", "__pycache__"}
MAX_TOKEN_LENGTH = 32
DEFAULT_OUTPUT = (
    Path(__file__).parents[1] / "coding_gym/text/data" / f"{DEFAULT_TOKENIZER}.tiktoken"
)


def source_files(root: Path) -> list[Path]:
    """Returns the library's source files in an order that does not depend on the machine."""
    files = (path.relative_to(root) for path in root.rglob("*.py"))
    return [root / path for path in sorted(files) if SKIPPED.isdisjoint(path.parts)]


def docstrings(source: str) -> Iterator[str]:
    """Yields the docstrings of a source file, without their indentation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old escape sequences in the library's own files
        tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text:
                yield inspect.cleandoc(text)


def training_texts(root: Path) -> Iterator[str]:
    """Yields every source file and then its docstrings; unreadable files are skipped."""
    for path in source_files(root):
        try:
            source = path.read_text(encoding="utf-8")
            prose = list(docstrings(source))
        except (UnicodeDecodeError, SyntaxError):
            continue  # the library keeps a few broken files for its own tools
        yield source
        yield from prose


def train(texts: Iterator[str]) -> Tokenizer:
    """Returns a byte-level BPE trained on the texts, with the pattern that the encoding uses."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT_PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=BUNDLED_SIZE - len(BUNDLED_SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=MAX_TOKEN_LENGTH,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def byte_alphabet() -> dict[str, int]:
    """Returns the byte for each printable character of a byte-level BPE (GPT-2's mapping)."""
    printable = [b for b in range(256) if chr(b).isprintable() and chr(b) != " "]
    others = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


def mergeable_ranks(tokenizer: Tokenizer) -> dict[bytes, int]:
    """Returns the vocabulary in tiktoken's order: the bytes, then the merges, as trained."""
    alphabet = byte_alphabet()
    entries = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    tokens = [bytes(alphabet[char] for char in token) for token, _ in entries]
    merges = [token for token in tokens if len(token) > 1]
    return {token: i for i, token in enumerate([*(bytes([b]) for b in range(256)), *merges])}


def main() -> None:
    """Trains, writes the file, and prints its size and its digest."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT)
    output: Path = parser.parse_args().output
    ranks = mergeable_ranks(train(training_texts(Path(sysconfig.get_path("stdlib")))))
    lines = [base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()]
    output.write_bytes(b"".join(lines))
    digest = hashlib.sha256(output.read_bytes()).hexdigest()
    print(f"{output}: {len(ranks)} entries, {output.stat().st_size} bytes")
    print(f"sha256 {digest}, Python {platform.python_version()}")


if __name__ == "__main__":
    main()
