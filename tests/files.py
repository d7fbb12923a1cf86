"""Small files of the formats that are converted, made by hand: no writer of them is needed."""

import io
import zipfile
from collections.abc import Mapping, Sequence

_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"


def pack(members: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in members.items():
            packed.writestr(name, text)
    return buffer.getvalue()


def _relate(targets: Mapping[str, tuple[str, str]]) -> str:
    rows = "".join(
        f'<Relationship Id="{key}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for key, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{rows}</Relationships>'


def make_docx(*paragraphs: str, prolog: str = "") -> bytes:
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    document = f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'
    return pack(
        {
            "_rels/.rels": _relate({"r": ("officeDocument", "word/document.xml")}),
            "word/document.xml": prolog + document,
        }
    )


def make_pptx(*slides: Sequence[str]) -> bytes:
    names = f'xmlns:a="{_DRAWING}" xmlns:p="{_SLIDES}" xmlns:r="{_OFFICE}"'
    listed = "".join(f'<p:sldId id="{256 + n}" r:id="r{n}"/>' for n in range(len(slides)))
    members = {
        "_rels/.rels": _relate({"r": ("officeDocument", "ppt/presentation.xml")}),
        "ppt/presentation.xml": f"<p:presentation {names}><p:sldIdLst>{listed}</p:sldIdLst>"
        "</p:presentation>",
        "ppt/_rels/presentation.xml.rels": _relate(
            {f"r{n}": ("slide", f"slides/slide{n + 1}.xml") for n in range(len(slides))}
        ),
    }
    for number, texts in enumerate(slides, 1):
        shapes = "".join(
            f"<p:sp><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
            for text in texts
        )
        members[f"ppt/slides/slide{number}.xml"] = (
            f"<p:sld {names}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"
        )
    return pack(members)


def make_epub(title: str, *chapters: str) -> bytes:
    items = "".join(
        f'<item id="c{n}" href="c{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="i">x'
        f"</dc:identifier><dc:title>{title}</dc:title><dc:language>en</dc:language></metadata>"
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    root = '<rootfile full-path="c.opf" media-type="application/oebps-package+xml"/>'
    container = (
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        f"<rootfiles>{root}</rootfiles></container>"
    )
    members = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": container,
        "c.opf": package,
    }
    for number, text in enumerate(chapters):
        members[f"c{number}.xhtml"] = (
            '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head>'
            f"<body><p>{text}</p></body></html>"
        )
    return pack(members)


def make_pdf(*pages: Sequence[str], title: str = "") -> bytes:
    """Pages of lines, as a typesetter breaks them."""
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Title ({title}) >>",
    ]
    kids = []
    for lines in pages:
        shown = " ".join(f"({line}) Tj T*" for line in lines)
        stream = f"BT /F1 12 Tf 72 720 Td 14 TL {shown} ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Contents {len(objects)} 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out, places = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    out_at = len(out)
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer << /Size {size} /Root 1 0 R "
    return out + f"{end}/Info 4 0 R >>\nstartxref\n{out_at}\n%%EOF".encode()
