"""A corpus's nights under Airflow: declarations, the DAGs made of them, and what their tasks do.

`dags/` imports the factory, Airflow the plugin, the command line `corpora`. Only the factory and
the plugin import Airflow; nothing that parsing a DAG loads is heavy.
"""
