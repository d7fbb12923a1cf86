"""Labels from names: what a person would have written where an ontology states none."""

import re
from urllib.parse import unquote

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[^\W\d_]+")


def derive_label(iri: str) -> str:
    """The words of an IRI's last part: `…#hasLegalPerson` gives "has legal person"."""
    local = unquote(re.split(r"[#/:]", iri.rstrip("#/"))[-1])
    parts = _PARTS.findall(local)
    words = [p if len(p) > 1 and p.isupper() else p.lower() for p in parts]
    return " ".join(words) or local or iri
