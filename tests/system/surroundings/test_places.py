"""The same bytes are published in all surroundings: locale, time zone, rights, limits, paths, streams."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.system.surroundings.runs import ROOT, Surroundings, published, specification

#: A library of workers and driver that prints as it is imported, as highspy 1.16 does, and is itself then.
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
#: Name of the folder of a run -> its surroundings. Each value of each of them is in one at least.
SURROUNDINGS = {
    "a b'c\"d%20e#f&g;h=i é漢Ж$k:l": Surroundings(
        {"LC_ALL": "C", "TZ": "America/St_Johns", "HOME": None, "JAVA_TOOL_OPTIONS": TURKISH},
        "umask 077; ulimit -S -n 100",
    ),
    "new\nline\ttab": Surroundings(
        {
            "LC_ALL": "tr_TR.UTF-8",
            "TZ": "Pacific/Kiritimati",
            "HOME": "/proc/none",
            "JAVA_TOOL_OPTIONS": GERMAN,
        },
        "umask 000; cd /proc",
        "<&- >/dev/full",
    ),
}
FURTHER = {
    "~": Surroundings({"LC_ALL": "POSIX", "LANG": None, "TZ": "Europe/Berlin"}, "umask 027", ">&-"),
    "ünder": Surroundings({"LC_ALL": None, "LANG": "C", "TZ": None}, "ulimit -n 512", "2>/dev/full"),
    "-x": Surroundings({"LC_ALL": "de_DE.ISO-8859-1", "TZ": "Asia/Kathmandu"}, "cd /", "<&- >&- 2>&-"),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is published in plain surroundings."""
    folder = tmp_path_factory.mktemp("plain")
    done = Surroundings().run("protect", specification(folder), "--quiet")
    assert done.returncode == 0, done.stderr
    return published(folder / "lake")


def look_at(folder: Path, surroundings: Surroundings, plain: dict[str, str], pattern: str = "") -> None:
    """Run, and compare what is published, who may read it, and what stays behind."""
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
@pytest.mark.parametrize("name", SURROUNDINGS)
def test_the_same_bytes_are_published_in_hostile_surroundings(
    name: str, tmp_path: Path, plain: dict[str, str]
) -> None:
    look_at(tmp_path / name, SURROUNDINGS[name], plain, pattern="[1]*{a}" if "\n" in name else "")


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("name", FURTHER)
def test_the_same_bytes_are_published_in_further_surroundings(
    name: str, tmp_path: Path, plain: dict[str, str]
) -> None:
    look_at(tmp_path / name, FURTHER[name], plain)


@pytest.mark.spark
def test_a_limit_of_open_files_that_is_too_low_is_named(tmp_path: Path) -> None:
    done = Surroundings(shell="ulimit -n 100").run("protect", specification(tmp_path))
    assert done.returncode == 1
    assert "The limit of open files (ulimit -n): expected at least 512" in " ".join(done.stderr.split())
    assert "found 100." in " ".join(done.stderr.split())


def test_java_that_does_not_start_is_named(tmp_path: Path) -> None:
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
def test_a_path_that_spark_would_take_for_another_is_refused(
    folder: str, places: dict[str, str], key: str, tmp_path: Path
) -> None:
    done = Surroundings().run("protect", specification(tmp_path / folder, **places))
    assert done.returncode == 2
    assert key in " ".join(done.stderr.split())
    assert not (tmp_path / folder / "lake").exists()


def test_a_tilde_is_the_home_folder_in_a_specification_and_on_the_command_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    specification(home / "work")
    path = specification(
        tmp_path / "run", source="~/work/absent.parquet", lake="~/lake", evidence="~/evidence"
    )
    at_home = Surroundings({"HOME": str(home)})
    said = at_home.run("draft", "~/work/absent.parquet", "--outcome=~/outcome.json", cwd=tmp_path)
    assert said.returncode in (2, 3)
    assert (home / "outcome.json").exists()
    listed = at_home.run("pending", path, cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert not list(tmp_path.rglob("~*"))
