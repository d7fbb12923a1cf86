"""Nearest neighbours: the library faiss, loaded where it is used."""

import logging
from typing import Any


def load_faiss() -> Any:
    """The library faiss: a second to load, so only where it is used.

    Its loader says at INFO which build of it suits the processor, in every process.
    """
    logging.getLogger("faiss.loader").setLevel(logging.WARNING)
    import faiss

    return faiss
