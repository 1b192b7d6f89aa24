"""What is known about earlier runs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from millrace.jobs import Job

STATE_FILE = ".millrace.json"


class State:
    """Remembers, for every job, a fingerprint of all that it depended on and wrote."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / STATE_FILE
        self._fingerprints = self._load()

    def is_stale(self, job: Job) -> bool:
        """Whether ``job`` has to run, judged by the files as they are now."""
        fingerprint = self._fingerprint(job)
        return fingerprint is None or self._fingerprints.get(job.name) != fingerprint

    def record(self, job: Job) -> None:
        """Remember that ``job`` has just run."""
        fingerprint = self._fingerprint(job)
        if fingerprint is None:
            self._fingerprints.pop(job.name, None)
        else:
            self._fingerprints[job.name] = fingerprint
        self._save()

    def forget(self, job: Job) -> None:
        """Remember that ``job`` has to run, whatever its files look like."""
        if self._fingerprints.pop(job.name, None) is not None:
            self._save()

    def _fingerprint(self, job: Job) -> str | None:
        """A digest of the job and the content of its files, or ``None`` if one cannot be read."""
        digests = []
        inputs = job.files_read(self._folder)
        for path in (*inputs, *job.outputs):
            try:
                content = (self._folder / path).read_bytes()
            except OSError:
                return None
            digests.append(hashlib.sha256(content).hexdigest())
        known = [job.action, inputs, job.outputs, sorted(job.options.items()), digests]
        return hashlib.sha256(json.dumps(known).encode()).hexdigest()

    def _load(self) -> dict[str, str]:
        """The saved fingerprints; without a readable file nothing is known, and all jobs run."""
        try:
            saved = json.loads(self._path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return saved if isinstance(saved, dict) else {}

    def _save(self) -> None:
        text = json.dumps(self._fingerprints, indent=2, sort_keys=True) + "\n"
        partial = self._path.with_name(STATE_FILE + ".new")
        partial.write_text(text, encoding="utf-8")
        partial.replace(self._path)
