"""Bits turned in the files of a snapshot, one at a time, and what verification says of them."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kpyramid.storage.verification import check_bytes


@dataclass(frozen=True, slots=True)
class Flip:
    """A turned bit: where it is, and what was found wrong."""

    name: str
    place: int
    bit: int
    problems: tuple[str, ...]

    @property
    def is_found(self) -> bool:
        """Whether the damage is told; of any file but the two that vouch for all, by its name."""
        vouching = self.name in ("manifest.json", "SHA256SUMS")
        return any(vouching or self.name in problem for problem in self.problems)


def turn_bits(folder: Path, count: int, seed: int) -> Iterator[Flip]:
    """Turns so many bits, each drawn from all of a snapshot's, and turns each back at once."""
    drawn = random.Random(seed)  # noqa: S311
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sizes = [path.stat().st_size for path in files]
    for number in range(count):
        # every other one from all bytes, the rest from all files: small ones are drawn too
        (path,) = drawn.choices(files, sizes if number % 2 else None)
        data = bytearray(path.read_bytes())
        place, bit = drawn.randrange(len(data)), drawn.randrange(8)
        whole = bytes(data)
        data[place] ^= 1 << bit
        path.write_bytes(data)
        try:
            problems = tuple(check_bytes(folder))
        finally:
            path.write_bytes(whole)
        yield Flip(path.relative_to(folder).as_posix(), place, bit, problems)
