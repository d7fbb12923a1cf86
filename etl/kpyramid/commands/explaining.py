"""`ask --explain`: how an answer was come by, for someone who has read nothing about the method."""

from rich.console import Console
from rich.markup import escape

from kpyramid.query.types import Answer

_out = Console(soft_wrap=True, highlight=False)


def print_explanation(answer: Answer) -> None:
    """The layers in the order they were asked, the answer, and the places it rests on."""
    for number, step in enumerate(answer.trace, 1):
        _out.print(f"{number}. {escape(str(step))}")
        for found in step.found:
            _out.print(f"   {escape(found)}")
    _out.print(f"[bold]{escape(answer.text or 'No answer.')}[/]")
    for place in answer.evidence:
        _out.print(f"  {escape(place.text)}")
        _out.print(f"  [dim]{escape(place.source)}, characters {place.start}-{place.end}[/]")
