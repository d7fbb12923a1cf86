"""`python -m kpyramid` is the command `kpyramid`."""

from kpyramid.cli import app

if __name__ == "__main__":
    app()
