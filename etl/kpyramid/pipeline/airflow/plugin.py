"""Reports of nights on Airflow's server, for users who may see the DAG."""

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import requires_access_dag
from airflow.models.xcom import XComModel
from airflow.plugins_manager import AirflowPlugin
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import HTMLResponse

from kpyramid.errors import PyramidError
from kpyramid.pipeline.airflow.corpora import WAREHOUSE

_PREFIX = "/kpyramid"
_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
"""A report needs no script and loads nothing."""

app = FastAPI(title="kpyramid", docs_url=None, redoc_url=None, openapi_url=None)


@app.get(
    "/{dag_id}/{run_id}/report.html",
    dependencies=[Depends(requires_access_dag("GET", DagAccessEntity.XCOM))],
)
def show_report(dag_id: str, run_id: str, session: SessionDep) -> HTMLResponse:
    """The report of a DAG's run; the DAG's task `plan` left the run's name in an XCom."""
    from kpyramid.storage.layout import open_warehouse
    from kpyramid.storage.refs import check_ref_name

    query = XComModel.get_many(key="run", task_ids="plan", dag_ids=dag_id, run_id=run_id, limit=1)
    stored = session.scalars(query).first()
    if stored is None:
        raise HTTPException(404, f"{dag_id} has no run {run_id} whose task plan has ended")
    try:
        name = f"runs/{check_ref_name(XComModel.deserialize_value(stored))}/report.html"
        place = open_warehouse(WAREHOUSE)
        page = place.store.read(name)
    except (OSError, PyramidError) as e:
        raise HTTPException(503, f"the warehouse cannot be read here: {e}") from e
    if page is None:
        message = f"{place.locate(name)} is not there: the run has not come to publish, gc removed "
        message += "it, or the warehouse is not mounted where Airflow's server runs"
        raise HTTPException(404, message)
    return HTMLResponse(page, headers=_HEADERS)


class KpyramidPlugin(AirflowPlugin):
    """Mounts the reports; an entry point of the package names it."""

    name = "kpyramid"
    fastapi_apps = ({"app": app, "url_prefix": _PREFIX, "name": "kpyramid"},)
