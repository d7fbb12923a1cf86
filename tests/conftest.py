"""What all tests share: repeatable cases, no settings of the shell, no run without a test."""

import os

import hypothesis
import pytest

hypothesis.settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, print_blob=True
)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def _ignore_settings_of_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in os.environ:
        if variable.startswith("KPYRAMID_") and variable != "KPYRAMID_BENCH":
            monkeypatch.delenv(variable)


@pytest.fixture(autouse=True, scope="session")
def _verdicts_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["PYTEST_KPYRAMID_VERDICTS"] = str(tmp_path_factory.mktemp("verdicts"))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Ends as pytest does for an empty selection when every selected test was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if exitstatus == pytest.ExitCode.OK and reporter and not session.config.option.collectonly:
        ran = any(reporter.stats.get(outcome) for outcome in ("passed", "failed", "xfailed"))
        if not ran:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
