import datetime as dt
import zlib

import pytest

import crate


def outcome(data):
    """What comes of reading everything in a file with this content."""
    try:
        return dict(crate.Reader(data))
    except crate.CorruptError:
        return "corrupt"


def chunk(kind, content):
    assert len(content) < 128
    return kind + bytes([len(content)]) + content + zlib.crc32(kind + content).to_bytes(4)


def crafted(value, texts=b"l\x00"):
    """A file whose checksums are right and that holds one value, ``a``."""
    data = b"CRATE1" + chunk(b"V", b"s\x01a" + value)
    index = chunk(b"I", texts + b"m\x01s\x01ai\x0c")
    return data + index + len(data).to_bytes(8) + b"CEND"


@pytest.fixture
def whole(tmp_path):
    path = tmp_path / "whole.crate"
    with crate.create(path) as writer:
        writer.add("title", "blåbær and blåbær")
        writer.add("moment", dt.datetime(2024, 5, 1, tzinfo=dt.UTC))
        writer.add("list", [1.5, "title", "moment", b"bytes", None, -70_000])
    return path.read_bytes()


def test_files_that_are_cut_short(whole):
    found = [outcome(whole[:size]) for size in range(len(whole))]
    assert found == ["corrupt"] * len(whole)


def test_files_that_have_lost_their_beginning(whole):
    found = [outcome(whole[:6] + whole[size:]) for size in range(7, len(whole))]
    assert found == ["corrupt"] * len(found)


def test_bytes_that_have_changed(whole):
    found = set()
    for place in range(len(whole)):
        for flip in (0x01, 0x80, 0xFF):
            data = bytearray(whole)
            data[place] ^= flip
            found.add(str(outcome(bytes(data))))
    assert found == {"corrupt"}


def test_the_index_may_be_anywhere(whole):
    places = [0, 5, len(whole) - 12, len(whole), len(whole) + 1, 2**63, 2**64 - 1]
    found = [outcome(whole[:-12] + p.to_bytes(8) + b"CEND") for p in places]
    assert found == ["corrupt"] * len(places)


@pytest.mark.parametrize(
    "value",
    [b"s\x02\xff\xfe", b"s\x01\xe5", b"l\x01s\x03a\xc3(", b"m\x01s\x01\x80N"],
    ids=["start", "cut", "nested", "key"],
)
def test_texts_that_are_not_valid(value):
    assert outcome(crafted(value)) == "corrupt"


@pytest.mark.parametrize(
    "value",
    [b"r\x00", b"r\x05", b"l\x02Nr\x01", b"m\x01r\x00N"],
    ids=["none", "far", "nested", "key"],
)
def test_shared_texts_that_are_not_there(value):
    assert outcome(crafted(value)) == "corrupt"


def test_moments_out_of_range():
    numbers = [b"\xff" * 9 + b"\x01", b"\xfe" * 9 + b"\x01", b"\x80" * 20 + b"\x01"]
    assert [outcome(crafted(b"t" + n)) for n in numbers] == ["corrupt"] * 3


def test_values_that_end_too_early():
    values = [b"", b"i", b"i\x80", b"f\x00\x00", b"t\xff", b"s\x05abc", b"b\x02a", b"s\x90"]
    values += [b"l\x02N", b"m\x01s\x01k", b"m\x01", b"l", b"r", b"l\xff\xff\xff\xff\x7f"]
    assert [outcome(crafted(value)) for value in values] == ["corrupt"] * len(values)


def test_unknown_tags_and_leftovers():
    values = [b"x", b"NN", b"l\x01z", b"m\x01NN", b"i\x01\x01"]
    assert [outcome(crafted(value)) for value in values] == ["corrupt"] * len(values)


def test_files_that_are_whole(whole):
    assert outcome(crafted(b"l\x02i\x01s\x02\xc3\xa5")) == {"a": [-1, "å"]}
    assert outcome(crafted(b"r\x00", b"l\x01s\x04long")) == {"a": "long"}
    assert outcome(whole)["list"] == [1.5, "title", "moment", b"bytes", None, -70_000]
