import pytest

import crate


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "trip.crate"
    with crate.create(path) as writer:
        writer.add("title", "Bergen")
        writer.add("days", 3)
        writer.add("stops", ["Voss", "Geilo"])
    return path


def test_values_are_found_by_name(path):
    reader = crate.load(path)
    assert list(reader) == ["title", "days", "stops"]
    assert len(reader) == 3
    assert reader["stops"] == ["Voss", "Geilo"]
    assert "price" not in reader
    with pytest.raises(KeyError):
        reader["price"]


def test_a_crate_may_be_empty(tmp_path):
    with crate.create(tmp_path / "a"):
        pass
    assert dict(crate.load(tmp_path / "a")) == {}


def test_equal_texts_are_written_once(tmp_path):
    for name, words in (("a", ["the same words"] * 50), ("b", ["the same words"])):
        with crate.create(tmp_path / name) as writer:
            writer.add("words", words)
    sizes = [(tmp_path / name).stat().st_size for name in "ab"]
    assert sizes[0] - sizes[1] < 120
    assert crate.load(tmp_path / "a")["words"] == ["the same words"] * 50


def test_the_last_value_of_a_name_counts(path):
    with crate.create(path) as writer:
        writer.add("a", 1)
        writer.add("b", 2)
        writer.add("a", 3)
    assert dict(crate.load(path)) == {"a": 3, "b": 2}


def test_appending(path):
    with crate.append(path) as writer:
        writer.add("price", 12.5)
        writer.add("days", 4)
        writer.delete("stops")
    assert dict(crate.load(path)) == {"title": "Bergen", "days": 4, "price": 12.5}


def test_appending_leaves_everything_in_its_place(path):
    before = path.read_bytes()
    with crate.append(path) as writer:
        writer.add("price", 12.5)
    assert path.read_bytes().startswith(before)


def test_compacting_gives_back_room(path):
    for number in range(20):
        with crate.append(path) as writer:
            writer.add("days", number)
    size = path.stat().st_size
    saved = crate.compact(path)
    assert saved > size // 2
    assert path.stat().st_size == size - saved
    assert dict(crate.load(path)) == {"title": "Bergen", "days": 19, "stops": ["Voss", "Geilo"]}
    assert [file.name for file in path.parent.iterdir()] == ["trip.crate"]


def test_an_exception_leaves_the_file_alone(path):
    before = path.read_bytes()
    for begin in (crate.append, crate.create):
        with pytest.raises(RuntimeError), begin(path) as writer:
            writer.add("days", 7)
            raise RuntimeError
    assert path.read_bytes() == before


def test_a_value_that_is_refused_leaves_nothing(path):
    with crate.append(path) as writer:
        with pytest.raises(crate.ValueTypeError):
            writer.add("days", ["another text", object()])
        writer.add("more", "another text")
    assert crate.load(path)["days"] == 3
    assert crate.load(path)["more"] == "another text"


def test_other_files_are_refused(tmp_path):
    for content in (b"", b"hello world, this is no crate", b"CRATE2" + bytes(40)):
        (tmp_path / "a").write_bytes(content)
        with pytest.raises(crate.CorruptError):
            crate.load(tmp_path / "a")


def test_damage_is_found(path):
    data = bytearray(path.read_bytes())
    data[data.index(b"Bergen")] ^= 1
    path.write_bytes(data)
    reader = crate.load(path)
    with pytest.raises(crate.CorruptError):
        reader["title"]
    assert reader["days"] == 3
