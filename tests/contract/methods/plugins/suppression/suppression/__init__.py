"""Cell suppression for microguard: what it is called, and what it promises."""

from microguard.schemas.method_registry import MethodRow

METHOD = MethodRow("cell_suppression", "table", ("suppressed table",), "suppression.adapter:CellSuppression")
