"""Talking with the Batch API: what its faults mean, and finding a batch whose id nobody noted."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import openai

from kpyramid.errors import EndpointError
from kpyramid.llm.batches import UNFINISHED, Record, read_record, save_record
from kpyramid.llm.responses import quote_text
from kpyramid.llm.stores import BlobStore

METADATA = "kpyramid_intent"
"""What a batch is found by when the process that created it died before it knew the id."""

FAULTS = (openai.OpenAIError, ValueError, TypeError, AttributeError)
"""What the client raises; the last three for web pages with status 200, which it takes for JSON."""

_HINTS = {
    401: "check the key in the variable that llm.api_key_env names",
    403: "the key may not do this: check its permissions for files and batches",
    404: "the endpoint may have no Batch API: then `kpyramid build` asks it directly",
    429: "wait, or check quota and billing",
}


def find_orphans(
    client: openai.OpenAI, blobs: BlobStore, records: Iterable[Record], now: float
) -> list[Record]:
    """The records of batches that exist although nobody noted their ids, noted now."""
    missing = {record.id: record for record in records if record.state in UNFINISHED}
    found: list[Record] = []
    if not missing:
        return found
    with name_faults(client, "list the batches"):
        for batch in client.with_options(max_retries=2).batches.list(limit=100):
            record = missing.pop((batch.metadata or {}).get(METADATA, ""), None)
            present = record and read_record(blobs, record.number)
            if present is not None and present.state in UNFINISHED:  # else it is noted by now
                noted = replace(present, state="submitted", batch=batch.id, submitted=now)
                found.append(save_record(blobs, noted))
            if not missing:
                break
    return found


@contextmanager
def name_faults(client: openai.OpenAI, act: str) -> Iterator[None]:
    """Turns what the client raises into an error that says what to do.

    Raises:
        EndpointError: the server refused or failed.
    """
    try:
        yield
    except FAULTS as e:
        raise describe_fault(client, act, e) from None


def describe_fault(client: openai.OpenAI, act: str, fault: Exception) -> EndpointError:
    """What the client raised, as an error that says what to do; without the key, if one echoes."""
    if not isinstance(fault, openai.APIStatusError):
        detail = f"{type(fault).__name__} {fault}"
        hint = "nothing is lost: check llm.base_url and run the same command again"
    else:
        detail = f"{fault.status_code} {fault.message}"
        hint = _HINTS.get(fault.status_code, "nothing is lost: run the same command again later")
    detail = detail.replace(client.api_key, "[key]") if len(client.api_key) > 7 else detail
    return EndpointError(f"{client.base_url}: cannot {act}: {quote_text(detail)}; {hint}")
