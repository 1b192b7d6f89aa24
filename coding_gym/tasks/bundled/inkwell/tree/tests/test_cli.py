import io

from inkwell.__main__ import main


def test_converts_a_file(tmp_path):
    source, target = tmp_path / "notes.md", tmp_path / "notes.html"
    source.write_text("caf\u00e9 *au lait*", encoding="utf-8")
    assert main(["-o", str(target), str(source)]) == 0
    assert target.read_text(encoding="utf-8") == "<p>caf\u00e9 <em>au lait</em></p>\n"


def test_reads_standard_input(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("# Hi"))
    assert main([]) == 0
    assert capsys.readouterr().out == '<h1 id="hi">Hi</h1>\n'


def test_a_missing_file_is_an_error(tmp_path, capsys):
    assert main([str(tmp_path / "missing.md")]) == 1
    assert "missing.md" in capsys.readouterr().err
