"""What a task's repository may name."""

from pathlib import Path

import pytest

from coding_gym.addresses import find_repository, is_url, without_password


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("https://example.org/a", True),
        ("HTTPS://example.org/a", True),
        ("ssh://git@example.org/a", True),
        ("git@example.org:owner/name.git", True),
        ("some.user-1@host:a", True),
        (f"https://example.org/{'a' * 5000}", True),
        *((path, False) for path in ("a", "/a/b", "~/a", "a/b@c:d")),
        *((text, False) for text in ("https://a\nb", "https://a\0b", "")),
    ],
)
def test_what_git_would_clone_from_elsewhere_is_a_url(text: str, wanted: bool) -> None:
    assert is_url(text) is wanted


def test_what_lies_there_is_no_url_though_it_looks_like_one(tmp_path: Path) -> None:
    (tmp_path / "me@here:name").mkdir()
    assert is_url("me@here:name")
    assert not is_url("me@here:name", base=tmp_path)


def test_repositories_are_found_bare_or_not(tmp_path: Path) -> None:
    (tmp_path / "plain" / ".git").mkdir(parents=True)
    (tmp_path / "bare" / "objects").mkdir(parents=True)
    assert find_repository("bare", base=tmp_path) is None
    (tmp_path / "bare" / "HEAD").touch()
    (tmp_path / "link").symlink_to("plain")
    assert find_repository("bare", base=tmp_path) == (tmp_path / "bare").resolve()
    assert find_repository(tmp_path / "link") == (tmp_path / "plain").resolve()


@pytest.mark.parametrize("path", ["missing", "~nobody-here/a", "a\0b", "x/" * 5000])
def test_what_cannot_be_a_repository_is_none(tmp_path: Path, path: str) -> None:
    assert find_repository(path, base=tmp_path) is None


def test_passwords_are_not_shown() -> None:
    assert without_password("https://me:secret@example.org/a@b") == "https://example.org/a@b"
