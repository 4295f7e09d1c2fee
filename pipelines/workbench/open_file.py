"""Open a file or a specification in a workbench."""

from __future__ import annotations

from pathlib import Path

from microguard.pipelines.workbench.data import Data
from microguard.pipelines.workbench.specification_text import SpecificationText
from microguard.pipelines.workbench.workbench import Workbench
from microguard.schemas.specification.read import read_specification


def open_file(named: str) -> Workbench:
    """Read a file, or the input of a specification, and draft what is not specified yet.

    The draft of a file is saved in the working folder under the name of the file, or with a number behind it
    if there is such a specification already.

    Raises
    ------
    InputRejected, SpecificationError
    """
    if named.endswith(".toml"):
        path = Path(named)
        specification = read_specification(path)
        return Workbench(
            SpecificationText(path.read_text(encoding="utf-8"), path, saved=True),
            Data(specification.input_path),
        )
    data = Data(named)
    return Workbench(SpecificationText(data.draft.text, _free_path(named)), data)


def _free_path(named: str) -> Path:
    stem = Path(named).name.split(".")[0] or "release"
    names = [f"{stem}.toml", *(f"{stem}-{number}.toml" for number in range(2, 1000))]
    return next(path for path in map(Path.cwd().joinpath, names) if not path.exists())
