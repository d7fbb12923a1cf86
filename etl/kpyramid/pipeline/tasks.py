"""All tasks of a language model in builds and questions: a new task is a module and a line."""

from kpyramid.completion.task import TASK as NAMING
from kpyramid.condensation.condenser import TASK as CONDENSATION
from kpyramid.condensation.statements import TASK as SUMMARY
from kpyramid.extraction.cascade.review import CHECK, SECOND
from kpyramid.extraction.cascade.tasks import STEPS
from kpyramid.extraction.cascade.windows import MERGED
from kpyramid.graph.duplicates import TASK as DUPLICATES
from kpyramid.llm.task import Expected, Task
from kpyramid.ontology.population.inducer import TASKS as POPULATION
from kpyramid.pipeline.learning.statements import TASK as LEARNING
from kpyramid.query.calling import QUERY_TOOLS
from kpyramid.query.model import polyrag, reading, walks
from kpyramid.settings import Settings

TASKS: tuple[Task, ...] = (
    MERGED,
    SECOND,
    CHECK,
    *STEPS,
    DUPLICATES,
    *POPULATION.values(),
    NAMING,
    CONDENSATION,
    SUMMARY,
    polyrag.QUERY_ONTO,
    polyrag.QUERY_KG,
    reading.READ,
    reading.RECALL,
    *walks.TASKS,
    QUERY_TOOLS,
    LEARNING,
)
"""The tasks in the order in which they are asked."""

EXPECTED: dict[str, Expected] = {task.name: task.expected for task in TASKS}


def list_tasks(stage: str, settings: Settings) -> list[Task]:
    """The tasks that a stage asks of a model, in their order; empty if rules do all of it."""
    return [task for task in TASKS if task.stage == stage and task.is_asked(settings)]
