"""BC5CDR: BioC is read as it stands, bad files are refused, scores are those of the definition."""

import gzip
from pathlib import Path

import pytest
from sets.bc5cdr import parse_xml, read_abstracts

from kpyramid.errors import InputError
from tests.rows import read_text

HEAD = "<?xml version='1.0' encoding='UTF-8'?><!DOCTYPE collection SYSTEM 'BioC.dtd'>"
DOCUMENT = read_text("bc5cdr.xml")


def annotate(kind: str, mesh: str, *places: tuple[int, int]) -> str:
    spans = "".join(f"<location offset='{at}' length='{size}'/>" for at, size in places)
    return (
        f'<annotation><infon key="type">{kind}</infon><infon key="MESH">{mesh}</infon>{spans}'
        "<text>unused</text></annotation>"
    )


def write_bioc(folder: Path, name: str = "X.BioC.xml") -> Path:
    title = annotate("Chemical", "C1", (0, 7)) + annotate("Disease", "D1", (12, 6))
    abstract = (
        annotate("Chemical", "C1", (20, 7))
        + annotate("Disease", "D2|D3", (35, 5), (45, 13))
        + annotate("Chemical", "-1", (60, 7))
        + annotate("Gene", "G1", (60, 7))
    )
    body = DOCUMENT.format(title=title, abstract=abstract)
    data = f"{HEAD}<collection>{body}</collection>".encode()
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("name", ["X.BioC.xml", "X.BioC.xml.gz"])
def test_bioc_is_read_as_it_stands(tmp_path: Path, name: str) -> None:
    write_bioc(tmp_path, name)
    (abstract,) = read_abstracts(tmp_path)
    assert abstract.text.startswith("Lithium and tremor.\nLithium caused liver")
    assert abstract.title_end == 19
    assert abstract.pairs == {("C1", "D2")}
    assert [(m.entities, m.words.text) for m in abstract.diseases] == [
        (("D1",), "tremor"),
        (("D2", "D3"), "liver and kidney damage"),
    ]
    # without an id there is nothing to score, and a gene is no chemical
    assert [m.words.text for m in abstract.chemicals] == ["Lithium", "Lithium"]


def test_entities_are_refused_and_nothing_is_fetched() -> None:
    lol = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 15))
    bomb = f'<!DOCTYPE c [<!ENTITY l0 "lol">{lol}]><c>&l14;</c>'
    outside = '<!DOCTYPE c [<!ENTITY x SYSTEM "file:///etc/passwd">]><c>&x;</c>'
    for text in (bomb, outside):
        with pytest.raises(InputError, match=r"bad\.xml, line 1: declares the entity"):
            parse_xml(text.encode(), source="bad.xml")
    assert parse_xml(b'<!DOCTYPE c SYSTEM "http://192.0.2.1/x.dtd"><c/>', source="x").tag == "c"
