"""What can be known of the images without Docker: lint, schema, variables, paths, pins."""

import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

CHECKOUT = Path(__file__).parent.parent
DOCKER = CHECKOUT / "docker"
DOCKERFILE = (DOCKER / "Dockerfile").read_text("utf-8")
COMPOSE = sorted(DOCKER.glob("compose*.yaml"))
SERVICES = {
    "compose.yaml": "postgres folders migrate api-server scheduler dag-processor triggerer",
    "compose.celery.yaml": "redis s3 bucket migrate api-server scheduler dag-processor triggerer"
    " worker",
    "compose.model.yaml": "model scheduler",
}


def read_services(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text("utf-8"))["services"])


def test_dockerfile_passes_hadolint() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    command = [str(hadolint), str(DOCKER / "Dockerfile")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_compose_files_fit_the_schema_of_compose(path: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(read_services(path)) == SERVICES[path.name].split()


def test_every_image_is_pinned_runs_without_root_and_says_how_it_is() -> None:
    images = re.findall(r"^(?:FROM|ARG PYTHON=) ?(\S+)", DOCKERFILE, re.M)
    images += [
        service["image"]
        for path in COMPOSE
        for service in read_services(path).values()
        if "image" in service
    ]
    stages = re.findall(r"^FROM \S+ AS (\S+)", DOCKERFILE, re.M)
    outside = {i for i in images if i not in stages and "$" not in i}
    assert outside
    assert all(re.search(r":v?\d+\.\d+", image) for image in outside), outside
    for target in ("serve", "build", "airflow"):
        (text,) = re.findall(rf"AS {target}\n(.*?)(?=\nFROM|\Z)", DOCKERFILE, re.S)
        assert "USER 10001:10001" in text, target
        assert "HEALTHCHECK" in text, target


def test_every_service_of_ours_has_a_root_that_cannot_be_written() -> None:
    for path in COMPOSE:
        for name, service in read_services(path).items():
            if "image" in service:
                assert service["read_only"] is True, f"{path.name}: {name}"
                assert "no-new-privileges:true" in service["security_opt"], name


def test_variables_of_compose_are_explained_in_the_example() -> None:
    known = set(re.findall(r"^(\w+)=", (DOCKER / ".env.example").read_text(), re.M))
    used = {
        name
        for path in COMPOSE
        for name in re.findall(r"(?<!\$)\$\{(\w+)", path.read_text("utf-8"))
    }
    assert used - {"KPYRAMID_VERSION"} == known
    secret = re.findall(
        r"^(\w*(?:PASSWORD|KEY|SECRET))=(.+)$", (DOCKER / ".env.example").read_text()
    )
    assert not secret, "an example holds no secret"


def test_what_the_images_copy_is_there_and_sent_to_the_builder() -> None:
    sent = [
        line[1:]
        for line in (CHECKOUT / ".dockerignore").read_text().splitlines()
        if line[:1] == "!"
    ]
    for words in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.M):
        for source in words.split()[:-1]:
            assert (CHECKOUT / source).exists(), source
            assert any(fnmatch(source, place) for place in sent), source
    for source in re.findall(r"--from=(\S+)", DOCKERFILE):
        assert f" AS {source}\n" in DOCKERFILE


def test_what_airflow_needs_besides_is_pinned_once() -> None:
    pins = [
        {line.split("==")[0].lower() for line in path.read_text().splitlines() if "==" in line}
        for path in (DOCKER / "requirements.txt", CHECKOUT / "constraints.txt")
    ]
    assert not pins[0] & pins[1]
