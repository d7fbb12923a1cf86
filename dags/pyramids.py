"""The DAGs of the corpora that `corpora/*.toml` declares; Airflow reads this file."""

from pathlib import Path

from kpyramid.pipeline.airflow.factory import make_dags

globals().update(make_dags(Path(__file__).parent / "corpora"))
