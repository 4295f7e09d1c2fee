"""Run the jobs of a user of the wheel with the lowest, the pinned and the newest dependencies."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from pathlib import Path

from deploy.dependency_lanes.jobs import JOBS, Job
from deploy.dependency_lanes.lane import (
    InstallationFailed,
    Lane,
    build_wheel,
    missing_files,
    read_project,
    supported_versions,
)
from deploy.dependency_lanes.page import page, remember
from deploy.dependency_lanes.results import JobResult, exit_code_of, table_of

DEFAULT_LANES = (
    "lowest, pinned, newest, beside or spark-X.Y, a hyphen and a Python version (default: the first three on "
    "the oldest supported Python, and newest on the newest Python found)"
)
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks" / "environments.md"


def main(arguments: list[str] | None = None) -> int:
    """Run lanes one after the other and print the table of results; 1 if a job failed."""
    parsed = _parser().parse_args(arguments)
    source, folder = parsed.source.resolve(), parsed.dir.resolve()
    try:
        lanes = [Lane.from_name(name, folder) for name in parsed.lanes or default_lanes(source)]
    except ValueError as error:
        print(f"deploy/lanes: {error}", file=sys.stderr)
        return 2
    jobs = [job for job in JOBS if job.name in (parsed.jobs or [job.name])]
    results = run_lanes(lanes, jobs, source, folder)
    print(table_of(results))
    if parsed.page:
        PAGE.write_text(page(folder, [job.name for job in JOBS]), encoding="utf-8")
    return exit_code_of(results)


def default_lanes(source: Path) -> list[str]:
    """Return lowest, pinned and newest on the oldest supported Python, and newest on the newest one found."""
    versions = supported_versions(read_project(source)["requires-python"])
    available = [version for version in versions if Lane("newest", version, source).has_interpreter()]
    oldest, newest = versions[0], (available or versions)[-1]
    lanes = [f"{choice}-{oldest}" for choice in ("lowest", "pinned", "newest")]
    return lanes if newest == oldest else [*lanes, f"newest-{newest}"]


def run_lanes(
    lanes: list[Lane], jobs: list[Job], source: Path, folder: Path
) -> dict[str, dict[str, JobResult]]:
    """Install the wheel in each lane and run the jobs; a failure does not stop later lanes and jobs."""
    wheel: Path | None = None
    results: dict[str, dict[str, JobResult]] = {}
    for lane in lanes:
        done = results[lane.name] = {}
        began = time.monotonic()
        try:
            _say(f"{lane.name}: install")
            lane.create_environment()
            wheel = wheel or build_wheel(lane, source, folder)
            lane.install(wheel, source)
            installed = missing_files(lane, source)
        except (InstallationFailed, ValueError) as error:
            installed = JobResult(1, message=str(error))
        done["install"] = dataclasses.replace(installed, seconds=time.monotonic() - began)
        if installed.exit_code:
            continue
        installed_versions = lane.versions()
        (lane.folder / "versions.txt").write_text(installed_versions)
        for job in [each for each in jobs if lane.choice in (each.only_on or [lane.choice])]:
            _say(f"{lane.name}: {job.name}")
            done[job.name] = job.run(lane, folder / "key")
            remember(lane.folder, read_project(source)["version"], installed_versions, done)
    return results


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="deploy/lanes", description=__doc__)
    parser.add_argument("lanes", nargs="*", metavar="LANE", help=DEFAULT_LANES)
    parser.add_argument(
        "--dir", type=Path, default=ROOT / ".lanes", help="folder of environments and jobs (.lanes)"
    )
    parser.add_argument("--source", type=Path, default=ROOT, help="the checkout to test (this one)")
    parser.add_argument(
        "--page", action="store_true", help=f"write docs/benchmarks/{PAGE.name} from all results"
    )
    parser.add_argument("--jobs", nargs="+", choices=[job.name for job in JOBS], help="only these jobs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
