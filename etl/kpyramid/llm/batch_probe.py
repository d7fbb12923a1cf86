"""How an endpoint wants to be asked, found out before the first request is put into a file."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from kpyramid.errors import EndpointError
from kpyramid.keys import JsonValue
from kpyramid.llm.batch_submit import ShapeRequest
from kpyramid.llm.ledger import Ledger
from kpyramid.llm.probe import keep_probe, load_probe
from kpyramid.llm.responses import read_usage
from kpyramid.llm.transport import HttpTransport, open_transport
from kpyramid.llm.types import ReplyError, Request, TransientError
from kpyramid.model_settings import LLMSettings

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

    @cache
    def open_once() -> HttpTransport:
        try:
            return open_transport(settings, partial(keep_probe, path), pay, load_probe(path))
        except TransientError as e:
            raise EndpointError(
                f"{settings.base_url or 'the endpoint'} fails: {e}. Nothing was submitted: run "
                "the same command later"
            ) from None

    return lambda request: open_once().shape_request(request)
