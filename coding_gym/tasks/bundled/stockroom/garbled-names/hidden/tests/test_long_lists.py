import pytest

from stockroom import ListError, read_list
from stockroom.__main__ import main

HEADER = "item,quantity,unit,name\n"


def save(folder, data):
    path = folder / "long.csv"
    path.write_bytes(data)
    return path


def rows_named(name, count, first=0):
    return "".join(f"{number:05},1,pcs,{name}\n" for number in range(first, first + count))


def names(path):
    return [delivery.name for delivery in read_list(path)]


@pytest.mark.parametrize("shift", range(4))
@pytest.mark.parametrize(
    "character", ["\u00e9", "\u20ac", "\U0001f529"], ids=["two-bytes", "three-bytes", "four-bytes"]
)
def test_a_name_of_many_bytes_keeps_its_characters(tmp_path, character, shift):
    name = "x" * shift + character * 30_000
    text = HEADER + f"A,1,pcs,{name}\n"
    assert names(save(tmp_path, text.encode("utf-8"))) == [name]


@pytest.mark.parametrize("shift", range(16))
def test_adding_a_letter_does_not_change_the_encoding(tmp_path, shift):
    name = "\u00d6lf\u00e4\u00dfchen \u20ac"
    text = HEADER + "A,1,pcs," + "x" * shift + "\n" + rows_named(name, 900)
    assert names(save(tmp_path, text.encode("utf-8")))[1:] == [name] * 900


@pytest.mark.parametrize("plain", [50, 150, 400, 2_000])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_the_first_accent_may_come_late(tmp_path, encoding, plain):
    text = HEADER + rows_named("nut", plain) + rows_named("Caf\u00e9", 2, first=plain)
    found = names(save(tmp_path, text.encode(encoding)))
    assert found == ["nut"] * plain + ["Caf\u00e9"] * 2


def test_one_odd_byte_at_the_very_end_decides(tmp_path):
    data = (HEADER + rows_named("Caf\u00e9", 500)).encode("utf-8") + b"Z,1,pcs,caf\xe9"
    found = names(save(tmp_path, data))
    assert found == ["Caf\u00c3\u00a9"] * 500 + ["caf\u00e9"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_mark_still_decides(tmp_path, encoding):
    text = HEADER + rows_named("Caf\u00e9 \u20ac", 900)
    assert set(names(save(tmp_path, text.encode(encoding)))) == {"Caf\u00e9 \u20ac"}


def test_a_file_that_breaks_its_mark_is_refused(tmp_path):
    data = (HEADER + rows_named("nut", 900)).encode("utf-8-sig") + b"Z,1,pcs,caf\xe9\n"
    with pytest.raises(ListError, match="long.csv: not valid utf-8-sig"):
        read_list(save(tmp_path, data))


def test_long_lists_on_the_command_line(tmp_path, capsys):
    data = (HEADER + rows_named("nut", 600) + "Z,3,pcs,Caf\u00e9\n").encode("cp1252")
    assert main([str(save(tmp_path, data))]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["Z", "Caf\u00e9", "3", "pcs"]
