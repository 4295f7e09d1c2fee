"""Cell suppression: choose the cells of a table to suppress, and audit every attacker's intervals."""

from microguard.sdc.suppression.audit import Audit, audit
from microguard.sdc.suppression.chunks import Mapper, in_turn
from microguard.sdc.suppression.problem import KINDS, Contributions, SuppressionProblem
from microguard.sdc.suppression.suppress import Suppression, suppress

__all__ = [
    "KINDS",
    "Audit",
    "Contributions",
    "Mapper",
    "Suppression",
    "SuppressionProblem",
    "audit",
    "in_turn",
    "suppress",
]
