"""Install microguard in editable mode into the environment of the running Python: install.py [EXTRA ...].

uv needs a third of pip's processor time. It gets the package indexes for which pip is configured. If uv is
not available or fails, pip installs.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "deploy" / "constraints.txt"


def main(extras: list[str]) -> int:
    """Install, and return the exit code of the installer; its output is printed if it fails."""
    target = f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)
    done = install(Path(sys.executable), ["--constraint", str(CONSTRAINTS), "--editable", target])
    if done.returncode:
        sys.stderr.write(done.stdout)
    return done.returncode


def install(python: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Install into the environment of an interpreter, and return the result of the last installer."""
    uv = _uv(python)
    if uv is not None:
        options, environment = uv_options(pip_settings(python))
        command = [uv, "pip", "install", "--quiet", "--python", str(python), *options, *arguments]
        done = _run(command, environment)
        if done.returncode == 0:
            return done
    # uv upgrades all packages if it is told to upgrade; pip upgrades them only with this strategy.
    eager = {"PIP_UPGRADE_STRATEGY": "eager"}
    return _run([*pip_of(python), "install", "--quiet", "--no-compile", *arguments], eager)


def pip_of(python: Path) -> tuple[str, ...]:
    """Return the command line of the pip of an interpreter."""
    # -P: in a checkout, pip would take its egg-info for the installed package.
    return (str(python), "-P", "-m", "pip", "--disable-pip-version-check")


def _uv(python: Path) -> str | None:
    """Return the path of the machine's uv, or of one that is installed into the environment."""
    environment_uv = python.with_name("uv")
    if not environment_uv.exists():
        if machine_uv := shutil.which("uv"):
            return machine_uv
        constrained = ("--constraint", str(CONSTRAINTS), "uv")
        _run([*pip_of(python), "install", "--quiet", "--no-compile", *constrained], {})
    return str(environment_uv) if environment_uv.exists() else None


def pip_settings(python: Path) -> dict[str, str]:
    """Return the settings of a pip from its files and the environment, which takes precedence."""
    listed = _run([*pip_of(python), "config", "list"], {})
    settings: dict[str, str] = {}
    for line in sorted(listed.stdout.splitlines(), key=lambda line: line.startswith(":env:")):
        key, equals, value = line.partition("=")
        if equals and listed.returncode == 0:
            settings[key.rpartition(".")[2]] = " ".join(shlex.split(value))
    return settings


def uv_options(settings: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Convert pip's settings to options of uv, or to environment variables if they may contain a password."""
    options, environment = [], {}
    if "index-url" in settings:
        environment["UV_DEFAULT_INDEX"] = settings["index-url"]
    if "extra-index-url" in settings:
        environment["UV_INDEX"] = settings["extra-index-url"]
        options += [
            "--index-strategy",
            "unsafe-best-match",
        ]  # like pip, choose the best version of all indexes
    for place in settings.get("find-links", "").split():
        options += ["--find-links", place]
    for host in settings.get("trusted-host", "").split():
        options += ["--allow-insecure-host", host]
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        options += ["--no-index"]
    if "cert" in settings:
        environment["SSL_CERT_FILE"] = settings["cert"]
    return options, environment


def _run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | environment,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
