"""How an endpoint wants to be asked, found out before the first request is put into a file."""

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from kpyramid.errors import EndpointError
from kpyramid.keys import JsonValue
from kpyramid.llm.batch_submit import ShapeRequest
from kpyramid.llm.ledger import Ledger
from kpyramid.llm.responses import read_usage
from kpyramid.llm.transport import HttpTransport, open_transport
from kpyramid.llm.types import ReplyError, Request, TransientError
from kpyramid.model_settings import LLMSettings
from kpyramid.warehouse.layout import write_durably

Raw = Mapping[str, JsonValue]


def prepare_shape(settings: LLMSettings, ledger: Ledger, path: Path) -> ShapeRequest:
    """What makes a request's body; at the first one it probes the endpoint, counted like any call.

    `path` is the run's record of the probe: what it says of this endpoint is not asked again.
    """

    def pay(request: Request, call: Callable[[], Raw]) -> Raw:
        ticket = ledger.reserve(request, request.task)
        try:
            raw = call()
        except (ReplyError, EndpointError):
            ledger.settle(ticket, None, "refused", billed=False)
            raise
        except TransientError as e:
            ledger.settle(ticket, None, "transient", billed=e.sent)
            raise
        ledger.settle(ticket, read_usage(raw, request), "answered", billed=True)
        return raw

    def note(probe: Raw) -> None:
        write_durably(path, json.dumps(probe, indent=1).encode())

    @functools.cache
    def open_once() -> HttpTransport:
        try:
            return open_transport(settings, note, pay, _read_probe(path))
        except TransientError as e:
            raise EndpointError(
                f"{settings.base_url or 'the endpoint'} fails: {e}. Nothing was submitted: run "
                "the same command later"
            ) from None

    return lambda request: open_once().shape_request(request)


def _read_probe(path: Path) -> Raw | None:
    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None
