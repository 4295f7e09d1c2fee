"""Cell suppression for microguard: its name and its guarantee."""

from microguard.schemas.method_registry import MethodRow

METHOD = MethodRow("cell_suppression", "table", ("suppressed table",), "suppression.adapter:CellSuppression")
