import crate

FIRST = {"one": ["Bergen", "Voss", "Bergen"], "two": ["Voss", "Oslo S", "Bergen"]}


def written(path, values, begin=crate.create):
    with begin(path) as writer:
        for name, value in values.items():
            writer.add(name, value)
    return path


def contents(path):
    return dict(crate.load(path))


def test_old_values_stay_when_something_is_appended(tmp_path):
    path = written(tmp_path / "a", FIRST)
    written(path, {"three": "Trondheim"}, crate.append)
    assert contents(path) == {**FIRST, "three": "Trondheim"}


def test_old_values_stay_when_nothing_is_appended(tmp_path):
    path = written(tmp_path / "a", FIRST)
    written(path, {}, crate.append)
    assert contents(path) == FIRST


def test_old_and_new_values_share_texts(tmp_path):
    path = written(tmp_path / "a", FIRST)
    size = path.stat().st_size
    more = {"three": ["Oslo S", "Hamar", "Bergen", "Hamar"], "four": ["Hamar", "Voss"]}
    written(path, more, crate.append)
    assert contents(path) == {**FIRST, **more}
    data = path.read_bytes()
    new = data[size:].partition(b"I")[0]
    assert (new.count(b"Bergen"), new.count(b"Hamar")) == (0, 1)


def test_many_sessions(tmp_path):
    path = written(tmp_path / "a", {})
    expected = {}
    for number in range(12):
        values = {
            f"session {number}": [f"text {number}", f"text {number // 2}", f"text {number}"],
            "last one": f"text {number}",
        }
        written(path, values, crate.append)
        expected.update(values)
        assert contents(path) == expected


def test_names_are_texts_as_well(tmp_path):
    path = written(tmp_path / "a", {"stations": 1, "names": ["stations"]})
    written(path, {"stations": 2, "more": {"names": "stations"}}, crate.append)
    assert contents(path) == {"stations": 2, "names": ["stations"], "more": {"names": "stations"}}


def test_deleting_leaves_the_texts_of_others(tmp_path):
    path = written(tmp_path / "a", FIRST)
    with crate.append(path) as writer:
        writer.delete("one")
        writer.add("three", "Bergen")
    assert contents(path) == {"two": FIRST["two"], "three": "Bergen"}


def test_compacting_keeps_the_values(tmp_path):
    path = written(tmp_path / "a", FIRST)
    crate.compact(path)
    assert contents(path) == FIRST


def test_compacting_without_the_value_in_which_a_text_first_came(tmp_path):
    path = written(tmp_path / "a", {**FIRST, "three": {"Bergen": ["Oslo S", "Oslo S"]}})
    with crate.append(path) as writer:
        writer.delete("one")
    crate.compact(path)
    assert contents(path) == {"two": FIRST["two"], "three": {"Bergen": ["Oslo S", "Oslo S"]}}


def test_compacting_after_many_sessions_and_going_on(tmp_path):
    path = written(tmp_path / "a", FIRST)
    for number in range(5):
        written(path, {"two": ["Bergen", f"stop {number}"]}, crate.append)
    crate.compact(path)
    written(path, {"three": ["stop 4", "stop 3", "stop 4"]}, crate.append)
    assert contents(path) == {
        "one": FIRST["one"],
        "two": ["Bergen", "stop 4"],
        "three": ["stop 4", "stop 3", "stop 4"],
    }


def test_compacting_forgets_texts_that_nobody_needs(tmp_path):
    path = written(tmp_path / "a", {"old one": "a secret", "kept": "known"})
    written(path, {"old one": "nothing"}, crate.append)
    crate.compact(path)
    assert contents(path) == {"old one": "nothing", "kept": "known"}
    assert path.read_bytes().count(b"secret") == 0


def test_a_compact_file_cannot_be_made_smaller(tmp_path):
    path = written(tmp_path / "a", {"a": 1, "b": [2.5, None]})
    assert (crate.compact(path), crate.compact(path)) == (0, 0)
    assert contents(path) == {"a": 1, "b": [2.5, None]}


def test_files_without_repeated_texts(tmp_path):
    path = written(tmp_path / "a", {"a": "Moss", "b": "Halden"})
    written(path, {"c": "Hamar"}, crate.append)
    assert contents(path) == {"a": "Moss", "b": "Halden", "c": "Hamar"}
