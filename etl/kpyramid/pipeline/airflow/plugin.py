"""Airflow's server shows the reports of nights, to who is logged in."""

import os
from typing import Annotated

from airflow.api_fastapi.core_api.security import get_user
from airflow.plugins_manager import AirflowPlugin
from fastapi import Depends, FastAPI, HTTPException
from fastapi import Path as Part
from fastapi.responses import HTMLResponse

from kpyramid.errors import PyramidError
from kpyramid.storage.layout import open_warehouse

_PREFIX = "/kpyramid"
_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
"""A report needs no script and loads nothing."""

app = FastAPI(title="kpyramid", docs_url=None, redoc_url=None, openapi_url=None)


@app.get("/runs/{run}/report.html", dependencies=[Depends(get_user)])
def show_report(run: Annotated[str, Part(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]) -> HTMLResponse:
    """The report of a run in the warehouse that this server sees."""
    name = f"runs/{run}/report.html"
    try:
        warehouse = open_warehouse(os.environ.get("KPYRAMID_WAREHOUSE", "/warehouse"))
        page = warehouse.store.read(name)
    except (OSError, PyramidError) as e:
        raise HTTPException(502, str(e)) from e
    if page is None:
        said = "is not here: let Airflow's server have the warehouse of the workers, too"
        raise HTTPException(404, f"{warehouse.locate(name)} {said}")
    return HTMLResponse(page, headers=_HEADERS)


class KpyramidPlugin(AirflowPlugin):
    """Mounts the reports; an entry point of the package names it."""

    name = "kpyramid"
    fastapi_apps = ({"app": app, "url_prefix": _PREFIX, "name": "kpyramid"},)
