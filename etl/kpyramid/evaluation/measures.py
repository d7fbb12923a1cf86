"""All measures of answers, with those that the installed embedding model makes."""

from collections.abc import Mapping

from kpyramid.evaluation.metrics import Metric, OnnxTokenEncoder, open_metrics
from kpyramid.identity import identify_embedding
from kpyramid.settings import EmbedSettings


def open_measures() -> Mapping[str, Metric]:
    """Every metric by name, with similarity and BERTScore by the MiniLM of the package.

    Whatever a snapshot was embedded with: figures of several snapshots can be compared, and no
    endpoint is paid for them.

    Raises:
        SettingsError: the model is not installed.
    """
    found = identify_embedding(EmbedSettings())
    files = found.files
    encoder = OnnxTokenEncoder(found.name, files["model.onnx"], files["tokenizer.json"])
    return open_metrics(encoder, encoder)
