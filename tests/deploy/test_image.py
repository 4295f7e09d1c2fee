"""The image: pinned, not root, and an entry point that starts what Spark on Kubernetes asks it for."""

from __future__ import annotations

import json
import os
import re
import subprocess
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.deploy.recipes import DEPLOY

ROOT, IMAGE = DEPLOY.parent, DEPLOY / "image"
INSTRUCTIONS = {"ARG", "FROM", "ENV", "RUN", "COPY", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}


def instructions() -> list[tuple[str, str]]:
    """Of the Containerfile, lines joined."""
    lines = [line for line in (IMAGE / "Containerfile").read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in joined.splitlines() if line.strip()]


def pins(name: str) -> dict[str, str]:
    """Lines of a requirements file, by package."""
    lines = (IMAGE / name).read_text().splitlines()
    return {line.partition("==")[0]: line.partition("==")[2] for line in lines}


def test_the_containerfile_is_made_of_known_instructions_and_of_files_that_are_there():
    found = instructions()
    assert {name for name, _ in found} <= INSTRUCTIONS
    copied = [words.split()[:-1] for name, words in found if name == "COPY" and "--from" not in words]
    assert copied
    for path in [path for paths in copied for path in paths]:
        assert (ROOT / path).exists(), path
    for name in ("ENTRYPOINT", "CMD"):
        [words] = [words for each, words in found if each == name]
        assert json.loads(words)


def test_the_image_is_run_by_a_user_without_rights():
    users = [words for name, words in instructions() if name == "USER"]
    assert users == ["10001:10001"]
    last_copy = max(at for at, (name, _) in enumerate(instructions()) if name == "COPY")
    assert [name for name, _ in instructions()].index("USER") > last_copy


def test_every_package_of_the_image_is_debians_or_pinned_by_checksum():
    commands = [command for name, words in instructions() if name == "RUN" for command in words.split("&&")]
    fetching = [each.strip() for each in commands if re.search(r"\b(pip|curl|wget|git|npm|uv)\b", each)]
    assert len(fetching) == 3
    for each in fetching:
        assert each.startswith("pip install"), each
        assert "--require-hashes" in each or "--no-index" in each, each
    assert not re.search(r"https?:", (IMAGE / "Containerfile").read_text())


@pytest.mark.parametrize("name", ["requirements.txt", "build.txt"])
def test_pins_are_versions_with_checksums_and_no_address(name):
    for package, rest in pins(name).items():
        assert re.fullmatch(r"[\w.+!-]+( --hash=sha256:[0-9a-f]{64})+", rest), package


def test_the_image_has_the_versions_that_are_tested_and_all_that_is_needed():
    constraints = dict(
        line.lower().split("==") for line in (DEPLOY / "constraints.txt").read_text().splitlines() if line
    )
    image = {re.sub(r"[-_.]+", "-", name): rest.split()[0] for name, rest in pins("requirements.txt").items()}
    tested = {re.sub(r"[-_.]+", "-", name): version for name, version in constraints.items()}
    assert image.items() <= tested.items()
    needed = [Requirement(line) for line in requires("microguard") or []]
    base = [each for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})]
    assert {re.sub(r"[-_.]+", "-", each.name.lower()) for each in base} <= image.keys()


@pytest.fixture
def started(tmp_path):
    """Run the entry point where java and spark-submit say what they are given."""
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


def test_a_driver_is_a_client_of_its_own_pod(started):
    said = started(
        "driver", "--properties-file", "/p", "local:///jobs/protect.py", SPARK_DRIVER_BIND_ADDRESS="10.0.0.7"
    )
    assert said[:3] == ["spark-submit", "--deploy-mode", "client"]
    assert "spark.driver.bindAddress=10.0.0.7" in said
    assert said[-3:] == ["--properties-file", "/p", "local:///jobs/protect.py"]


def test_an_executor_gets_its_options_in_their_order_whatever_blanks_they_hold(started):
    options = {f"SPARK_JAVA_OPT_{number}": f"-Dnumber={number} of them" for number in range(12)}
    said = started(
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


def test_any_command_has_compiled_kernels_in_a_folder_of_its_own(started, tmp_path):
    [folder] = started("printenv", "NUMBA_CACHE_DIR")
    assert Path(folder) != tmp_path / "kernels"
    assert (Path(folder) / "loop.nbi").read_text() == "compiled"
    assert Path(folder).parent.stat().st_mode & 0o077 == 0


def test_a_key_of_somebody_else_that_a_group_can_read_becomes_its_readers_alone(started, tmp_path):
    secret = Path("/etc/passwd")
    if os.getuid() == 0:
        secret = tmp_path / "secret"
        secret.write_text("0" * 64)
        secret.chmod(0o440)
        os.chown(secret, 1, 0)
    [key] = started("printenv", "MICROGUARD_KEY_FILE", MICROGUARD_KEY_FILE=str(secret))
    assert Path(key).read_text() == secret.read_text()
    assert Path(key).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("there", [True, False])
def test_a_key_of_ones_own_stays_where_it_is_or_is_to_be_made(started, tmp_path, there):
    mine = tmp_path / "mine"
    if there:
        mine.write_text("0" * 64)
    [key] = started("printenv", "MICROGUARD_KEY_FILE", MICROGUARD_KEY_FILE=str(mine))
    assert Path(key) == mine
