"""What all tests share: no settings from the developer's shell, and no run without a test."""

import os

import pytest


@pytest.fixture(autouse=True)
def _ignore_settings_of_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in os.environ:
        if variable.startswith("KPYRAMID_") and "__" in variable:
            monkeypatch.delenv(variable)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Ends as pytest does for an empty selection when every selected test was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if exitstatus == pytest.ExitCode.OK and reporter and not session.config.option.collectonly:
        ran = any(reporter.stats.get(outcome) for outcome in ("passed", "failed", "xfailed"))
        if not ran:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
