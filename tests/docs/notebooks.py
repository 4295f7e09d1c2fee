"""Run a notebook of the examples in IPython, with its commands on one Spark session.

A line `!microguard ...` of a cell is a verb, which runs in this process. Ids, times and the folder of the run
are replaced, as on the pages of the manual, so that the output of two runs is equal.
"""

from __future__ import annotations

from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_output

from tests.docs.console import DOCS, output_of, plain, shared

NOTEBOOKS = sorted((DOCS / "examples").glob("*/*.ipynb"))


def execute(path: Path, place: Path, spark: object) -> Any:
    """Return a notebook with the outputs of this run.

    Parameters
    ----------
    path : Path
        The notebook.
    place : Path
        Folder to run in: a copy of that of the notebook.
    spark : SparkSession

    Raises
    ------
    Exception
        That of the first cell that fails.
    """
    from IPython.core.interactiveshell import InteractiveShell

    notebook = nbformat.read(path, as_version=4)
    shell = InteractiveShell()
    values: list[Any] = []
    shell.display_trap.hook = values.append
    shell.system = lambda command: print(output_of(shell.var_expand(command, depth=1), place))
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    with chdir(place), shared(spark):
        for number, cell in enumerate(cells, 1):
            values.clear()
            with redirect_stdout(StringIO()) as printed:
                shell.run_cell(cell.source, store_history=False).raise_error()
            text = plain(printed.getvalue(), place)
            shown = [shell.display_formatter.format(value)[0] for value in values if value is not None]
            cell.execution_count = number
            cell.outputs = [new_output("stream", name="stdout", text=text)] if text else []
            cell.outputs += [new_output("display_data", data=data) for data in shown]
    return notebook
