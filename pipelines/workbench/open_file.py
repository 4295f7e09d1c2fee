"""Opening of a file or a specification in a workbench."""

from __future__ import annotations

from pathlib import Path

from microguard.pipelines.drafting.argus_metadata import draft_with_metadata
from microguard.pipelines.drafting.finished_table import draft_finished_table
from microguard.pipelines.drafting.sniff import sniff
from microguard.pipelines.workbench.data import Data
from microguard.pipelines.workbench.files import Files
from microguard.pipelines.workbench.preview import preview
from microguard.pipelines.workbench.specification_text import SpecificationText
from microguard.pipelines.workbench.table_preview import Frames, preview_table
from microguard.pipelines.workbench.workbench import Workbench
from microguard.schemas.specification.read import read_specification


def open_file(named: str) -> Workbench:
    """Read a file, or the input of a specification, and draft the columns that the specification does not
    declare.

    The draft is saved in the working folder under the name of the file. A number is appended if a
    specification of this name exists already.

    Raises
    ------
    InputRejected, SpecificationError
    """
    if named.endswith(".toml"):
        path = Path(named)
        specification = read_specification(path)
        text = SpecificationText.from_file(path)
        if specification.table is not None and not specification.quasi_identifiers:
            return _of_table(text, specification.input_path)
        return _of_records(text, Data(specification.input_path))
    drafted = draft_with_metadata(named) or draft_finished_table(sniff(named))
    path = _free_path(named)
    if drafted is not None:
        return _of_table(SpecificationText(drafted, path), named)
    data = Data(named)
    return _of_records(SpecificationText(data.draft.text, path), data)


def _of_records(text: SpecificationText, data: Data) -> Workbench:
    return Workbench(
        text, data.files, lambda specification, show: preview(data, specification, show), data=data
    )


def _of_table(text: SpecificationText, named: str) -> Workbench:
    files, frames = Files(named), Frames()
    return Workbench(text, files, lambda specification, _: preview_table(specification, frames))


def _free_path(named: str) -> Path:
    stem = Path(named).name.split(".")[0] or "release"
    names = [f"{stem}.toml", *(f"{stem}-{number}.toml" for number in range(2, 1000))]
    return next(path for path in map(Path.cwd().joinpath, names) if not path.exists())
