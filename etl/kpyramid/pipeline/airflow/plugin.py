"""Airflow's server shows the reports of nights, to who is logged in."""

import os
from pathlib import Path
from typing import Annotated

from airflow.api_fastapi.core_api.security import get_user
from airflow.plugins_manager import AirflowPlugin
from fastapi import Depends, FastAPI, HTTPException
from fastapi import Path as Part
from fastapi.responses import HTMLResponse

_PREFIX = "/kpyramid"
_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
"""A report needs no script and loads nothing."""

app = FastAPI(title="kpyramid", docs_url=None, redoc_url=None, openapi_url=None)


@app.get("/runs/{run}/report.html", dependencies=[Depends(get_user)])
def show_report(run: Annotated[str, Part(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]) -> HTMLResponse:
    """The report of a run in the warehouse that this server sees."""
    path = Path(os.environ.get("KPYRAMID_WAREHOUSE", "/warehouse")) / "runs" / run / "report.html"
    try:
        return HTMLResponse(path.read_text("utf-8"), headers=_HEADERS)
    except OSError as e:
        said = f"{path} cannot be read here: mount the warehouse where Airflow's server runs, too"
        raise HTTPException(404, said) from e


class KpyramidPlugin(AirflowPlugin):
    """Mounts the reports; an entry point of the package names it."""

    name = "kpyramid"
    fastapi_apps = ({"app": app, "url_prefix": _PREFIX, "name": "kpyramid"},)
