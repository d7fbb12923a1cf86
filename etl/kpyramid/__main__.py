"""`python -m kpyramid` is the command `kpyramid`."""

from kpyramid.cli.app import app

if __name__ == "__main__":
    app()
