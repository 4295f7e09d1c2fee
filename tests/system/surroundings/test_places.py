"""Tests that published bytes do not depend on locale, time zone, permissions, limits or paths."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from microguard.jobs.command import run_command

from tests.system.command import Ran
from tests.system.surroundings.runs import ROOT, Surroundings, published, specification

#: Replacement for a library of workers and driver that prints during its import, like highspy 1.16.
PRINTING = """
import os, sys
from pathlib import Path
print("a banner", flush=True)
os.write(1, b"a banner\\n")
places = [Path(each) / "highspy" for each in sys.path if Path(each) != Path(__file__).parents[1]]
real = next(each for each in places if each.is_dir())
__path__ = [str(real)]
exec(compile((real / "__init__.py").read_text(), str(real / "__init__.py"), "exec"))
"""
TURKISH = "-Duser.language=tr -Duser.country=TR"
GERMAN = "-Duser.language=de -Duser.country=DE -Dfile.encoding=ISO-8859-1"
#: The environment that most often makes a run fail, and the name of the folder of the run in it.
HOSTILE = Surroundings(
    {"LC_ALL": "C", "TZ": "America/St_Johns", "HOME": None, "JAVA_TOOL_OPTIONS": TURKISH},
    "umask 000; ulimit -S -n 100; cd /proc",
)
ODD_NAME = "a b'c\"d%20e#f&g;h=i é漢Ж$k:l"
#: Further environments by the name of the folder. Each value of each property occurs at least once.
FURTHER = {
    "new\nline\ttab": Surroundings(
        {
            "LC_ALL": "tr_TR.UTF-8",
            "TZ": "Pacific/Kiritimati",
            "HOME": "/proc/none",
            "JAVA_TOOL_OPTIONS": GERMAN,
        },
        "umask 077; cd /proc",
        "<&- >/dev/full",
    ),
    "~": Surroundings({"LC_ALL": "POSIX", "LANG": None, "TZ": "Europe/Berlin"}, "umask 027", ">&-"),
    "ünder": Surroundings({"LC_ALL": None, "LANG": "C", "TZ": None}, "ulimit -n 512", "2>/dev/full"),
    "-x": Surroundings({"LC_ALL": "de_DE.ISO-8859-1", "TZ": "Asia/Kathmandu"}, "cd /", "<&- >&- 2>&-"),
}


@pytest.fixture(scope="module")
def plain(plain_runs: dict[str, tuple[Path, Ran]]) -> dict[str, str]:
    """Return the checksums of the files that a run in the default environment publishes."""
    folder, run = plain_runs["register"]
    assert run.code == 0, run.err
    return published(folder / "lake")


def look_at(folder: Path, surroundings: Surroundings, plain: dict[str, str], pattern: str = "") -> None:
    """Run, and compare the published files, their permissions, and the remaining files."""
    printing = folder / "library" / "highspy"
    printing.mkdir(parents=True)
    (printing / "__init__.py").write_text(PRINTING)
    path = specification(folder, lake=f"lake{pattern}", evidence=f"evidence{pattern}")
    environment = {"PYTHONPATH": f"{ROOT}:{printing.parent}", **surroundings.environment}
    around = Surroundings(environment, surroundings.shell, surroundings.redirected)
    outcome = folder / "outcome.json"
    done = around.run("protect", path, "--json", "--outcome", outcome, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(outcome.read_text())["status"] == "done"
    if not surroundings.redirected:
        assert json.loads(done.stdout.splitlines()[-1])["status"] == "done"
        assert "banner" not in done.stdout + done.stderr
    lake, evidence = folder / f"lake{pattern}", folder / f"evidence{pattern}"
    assert published(lake) == plain
    assert evidence.stat().st_mode & 0o077 == 0
    left = {each.name for each in folder.iterdir()}
    assert left == {"library", "records.parquet", "release.toml", "outcome.json", lake.name, evidence.name}
    assert not list((evidence / ".work").glob("*"))


@pytest.mark.spark
def test_protect_publishes_the_same_bytes_in_a_hostile_environment(
    tmp_path: Path, plain: dict[str, str]
) -> None:
    look_at(tmp_path / ODD_NAME, HOSTILE, plain, pattern="[1]*{a}")


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("name", FURTHER)
def test_protect_publishes_the_same_bytes_in_further_environments(
    name: str, tmp_path: Path, plain: dict[str, str]
) -> None:
    look_at(tmp_path / name, FURTHER[name], plain)


@pytest.mark.spark
def test_protect_names_a_too_low_limit_of_open_files(tmp_path: Path) -> None:
    done = Surroundings(shell="ulimit -n 100").run("protect", specification(tmp_path))
    assert done.returncode == 1
    assert "Limit of open files (ulimit -n): expected at least 512" in " ".join(done.stderr.split())
    assert "found 100." in " ".join(done.stderr.split())


def test_protect_names_a_java_that_does_not_start(tmp_path: Path) -> None:
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("""#!/bin/sh\n[ "$1" = -version ] && echo 'openjdk version "17.0.1"' >&2\n""")
    java.chmod(0o755)
    home = {"JAVA_HOME": str(tmp_path / "java")}
    done = Surroundings(home).run("check", specification(tmp_path / "run"))
    assert done.returncode == 1
    assert "expected a process that starts, found one that ended" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("folder", "places", "key"),
    [
        ("a[1]", {}, "[input] path"),
        ("a*", {}, "[input] path"),
        ("a{b}", {}, "[input] path"),
        ("a", {"evidence": "b,c"}, "[publish] evidence"),
        ("a,b", {}, "[publish] evidence"),
        ("a", {"lake": "~nobody-of-this-name/lake"}, "~nobody-of-this-name"),
    ],
)
def test_protect_refuses_a_path_that_spark_would_interpret_as_another(
    folder: str, places: dict[str, str], key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["protect", str(specification(tmp_path / folder, **places))]) == 2
    assert key in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / folder / "lake").exists()


def test_tilde_is_expanded_in_specifications_and_on_the_command_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    specification(home / "survey")
    path = specification(
        tmp_path / "run", source="~/survey/absent.parquet", lake="~/lake", evidence="~/evidence"
    )
    at_home = Surroundings({"HOME": str(home)})
    said = at_home.run("draft", "~/survey/absent.parquet", "--outcome=~/outcome.json", cwd=tmp_path)
    assert said.returncode in (2, 3)
    assert (home / "outcome.json").exists()
    listed = at_home.run("pending", path, cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert not list(tmp_path.rglob("~*"))
