"""Witnesses: small tables of deviations, up to the levels of a cell, that no attacker can exclude.

A pattern protects a primary if it suppresses the cells of the primary's witnesses. A cell that no witness
uses need not be suppressed. When a cell is published again, only the primaries whose witnesses use this cell
need new witnesses.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from microguard.sdc.errors import SolverFailed
from microguard.sdc.solver import INFINITY, Limits, Program, Status, solve
from microguard.sdc.stop import Deadline
from microguard.sdc.suppression.attackers import WATCHED
from microguard.sdc.suppression.knowledge import OUTSIDER, Knowledge
from microguard.sdc.suppression.local_cuts import Target
from microguard.sdc.suppression.neighbourhoods import Neighbourhoods, both_signs, sizes_up_to
from microguard.sdc.suppression.pattern import Pattern, Witness
from microguard.sdc.suppression.problem import LEVEL_TOLERANCE, SuppressionProblem
from microguard.sdc.suppression.unit_witnesses import UnitWitnesses
from scipy import sparse

#: Deviations below this share of the level are rounding errors.
_NOTHING = 1e-9
#: Share of a level that a witness must reach; the missing part is less than the tolerance of the audit.
_ENOUGH = 1 - 0.9 * LEVEL_TOLERANCE
#: Price of a suppressed cell, as a share of the mean cost, if witnesses may also use other cells.
_USED = 0.01
#: Relative gap and interrupt checks of the integer program of one witness.
_CHEAPEST = Limits(relative_gap=0.02, steps=20)
#: Relative tolerance of bounds on deviations.
_SLACK = 1e-9


class Witnesses:
    """Search for witnesses of the primary cells of one problem.

    Parameters
    ----------
    problem : SuppressionProblem
    knowledge : Knowledge
    cheapest : bool
        Whether integer programs choose the further cells of the outsider's witnesses. Otherwise linear
        programs do, in a tenth of the time.

    Attributes
    ----------
    searches : int
        Number of witness searches by programs so far: the unit in which the work on large tables is counted.
    """

    def __init__(self, problem: SuppressionProblem, knowledge: Knowledge, *, cheapest: bool = True) -> None:
        self._integer = cheapest
        self._units = UnitWitnesses(problem.relations, knowledge)
        self.searches = 0
        self.problem = problem
        self.knowledge = knowledge
        self.near = Neighbourhoods(problem.relations)
        self._sizes = sizes_up_to(problem.cells)
        self.watched = knowledge.watched
        lower, upper, sliding = problem.lower_level, problem.upper_level, problem.sliding_level
        up = np.minimum(np.maximum(upper, sliding / 2), np.maximum(knowledge.rise, upper))
        self._down = np.minimum(np.maximum(lower, sliding - up), np.maximum(knowledge.fall, lower))
        self._up = np.maximum(up, sliding - self._down)
        self._mean_cost = float(problem.costs.mean())
        self._most: dict[tuple[int, int, float], float] = {}
        self.level = np.maximum(self._down, self._up)

    def of(
        self, primary: int, pattern: Pattern, *, thorough: int, costs: np.ndarray | None = None
    ) -> tuple[dict[int, tuple[Witness, ...]], list[Target]]:
        """Return a cell's witnesses for the outsider and attackers who exclude his, and failed targets.

        Witnesses of the pattern are kept if all their cells are suppressed. A witness of one attacker is used
        for all others who cannot exclude it, so that few attackers need searches of their own.

        Parameters
        ----------
        thorough : -1, 0, 1 or 2
            How far from the primary to search. -1: for unit witnesses only. 2: a target fails only if no
            witness exists.
        costs : (cells,) array, optional
            If given, witnesses may also use other cells with finite costs, which are then suppressed.
        """
        old = {
            attacker: group
            for attacker, group in pattern.witnesses.get(primary, {}).items()
            if all(pattern.suppressed[one.cells].all() for one in group)
        }
        found: dict[int, tuple[Witness, ...]] = {}
        waiting = [OUTSIDER]
        while waiting:
            attacker = waiting.pop()
            group = old.get(attacker)
            if group is None:
                group, failed = self._search(primary, attacker, pattern.suppressed, thorough, costs)
                if failed:
                    return found, failed
                if attacker != OUTSIDER:
                    missing = [one for one in waiting if one not in old]
                    old |= dict.fromkeys(self._serving(primary, attacker, group, missing), group)
            found[attacker] = group
            if attacker == OUTSIDER and self.knowledge.count:
                waiting = self._excluding(primary, group)
        return found, []

    def share(self, pattern: Pattern, found: Iterable[Witness], waiting: np.ndarray) -> None:
        """Use witnesses also for further primary cells whose levels they and their negatives reach.

        In very large tables, use them only for primaries without unit witnesses, which have fewer cells.

        Parameters
        ----------
        waiting : (cells,) boolean array
            Primaries that have no witness yet.
        """
        for one in found:
            if not (self._allowed(OUTSIDER, one, 1.0) & self._allowed(OUTSIDER, one, -1.0)).all():
                continue
            for place in np.flatnonzero(waiting[one.cells]).tolist():
                cell, d = int(one.cells[place]), float(one.deviations[place])
                amount = max(self._demand(cell, OUTSIDER, side) for side in (1.0, -1.0))
                if abs(d) < amount or cell in pattern.witnesses:
                    continue
                few, failed = ({}, True) if self._integer else self.of(cell, pattern, thorough=-1)
                if failed:
                    few = {OUTSIDER: (Witness(one.cells, one.deviations * (amount / d)),)}
                pattern.put(cell, few)

    def trim(self, pattern: Pattern, cells: np.ndarray, deadline: Deadline, most: float = np.inf) -> None:
        """Publish cells again, most expensive first, if all primary cells that use them have other witnesses.

        Then publish all cells without users, because a cell can lose its last user after its turn.

        Parameters
        ----------
        most : number of `searches` after which no program is used. Then only cells without users are
            published, in very large tables also cells whose users all have other unit witnesses
        """
        for cell in cells[np.argsort(-self.problem.costs[cells], kind="stable")].tolist():
            if deadline.passed:
                break
            users = sorted(pattern.users.get(cell, ()))
            reach = 0 if self.searches < most else -1
            if users and reach < 0 and self._integer:
                continue
            pattern.suppressed[cell] = False
            before = {}
            for primary in users:
                found, failed = self.of(primary, pattern, thorough=reach)
                if failed:
                    break
                before[primary] = pattern.witnesses[primary]
                pattern.put(primary, found)
            else:
                continue
            for primary, old in before.items():
                pattern.put(primary, old)
            pattern.suppressed[cell] = True
        for cell in np.flatnonzero(pattern.suppressed & ~self.problem.must).tolist():
            pattern.suppressed[cell] = bool(pattern.users.get(cell))

    def _excluding(self, primary: int, group: tuple[Witness, ...]) -> list[int]:
        """Return the attackers who can exclude a witness or, if it serves both directions, its negative."""
        both = len(group) == 1 and self._down[primary] > 0 and self._up[primary] > 0
        found: set[int] = set()
        for one in group:
            other = (one.cells != primary) | (self.problem.sliding_level[primary] > 0)
            for side in (1, -1) if both else (1,):
                for cell, d in zip(
                    one.cells[other].tolist(), (side * one.deviations[other]).tolist(), strict=True
                ):
                    found.update(self.knowledge.excluding(cell, d).tolist())
        found.difference_update(self.knowledge.knowing(primary).tolist())
        return sorted(found)

    def _serving(
        self, primary: int, attacker: int, group: tuple[Witness, ...], others: list[int]
    ) -> list[int]:
        """Return those of some other attackers who cannot exclude the witnesses of an attacker either."""
        if not others:
            return []
        excluding = set(self._excluding(primary, group))
        return [one for one in self._alike(primary, attacker, others) if one not in excluding]

    def _alike(self, primary: int, attacker: int, others: list[int]) -> list[int]:
        """Return those of some attackers who need the same deviations of a primary as a given attacker."""
        asked = [self._demand(primary, attacker, side) for side in (1.0, -1.0)]
        return [one for one in others if [self._demand(primary, one, side) for side in (1.0, -1.0)] == asked]

    def _search(
        self,
        primary: int,
        attacker: int,
        suppressed: np.ndarray,
        thorough: int,
        costs: np.ndarray | None,
    ) -> tuple[tuple[Witness, ...], list[Target]]:
        found: list[Witness] = []
        for side in (1.0, -1.0):
            amount = self._demand(primary, attacker, side)
            if amount <= _SLACK * self.level[primary]:
                continue
            if found and self._serves(found[0], attacker, -1.0, primary, amount):
                continue
            one = self._witness(primary, attacker, side * amount, suppressed, thorough, costs)
            key = primary, attacker, side
            if one is None and thorough > 0 and attacker != OUTSIDER and key not in self._most:
                # no demand exceeds `asked`; `_most` is the part possible before any cell is published
                asked = max(float(self.level[primary]), float(self.problem.sliding_level[primary]))
                part = self._largest(primary, attacker, side * asked)
                self._most[key] = asked * part if part < 1 - _SLACK else np.inf
                return self._search(primary, attacker, suppressed, thorough, costs)
            if one is None:
                return (), [(primary, attacker, side * amount)]
            suppressed[one.cells] = True
            found.append(one)
        return tuple(found), []

    def _demand(self, primary: int, attacker: int, side: float) -> float:
        """Return the deviation in one direction that an attacker must consider possible."""
        fall, rise = (float(part[0]) for part in self.knowledge.bounds(attacker, np.array([primary])))
        sliding = float(self.problem.sliding_level[primary])
        rise = min(rise, self._most.get((primary, attacker, 1.0), np.inf))
        fall = min(fall, self._most.get((primary, attacker, -1.0), np.inf))
        up, down = min(self._up[primary], rise), min(self._down[primary], fall)
        up = min(max(up, sliding - down), rise)
        down = min(max(down, sliding - up), fall)
        return float(up if side > 0 else down) * _ENOUGH

    def _serves(self, one: Witness, attacker: int, side: float, primary: int, amount: float) -> bool:
        """Return whether the negative of a witness, scaled to the amount, serves the other direction."""
        d = abs(float(one.deviations[np.searchsorted(one.cells, primary)]))
        return d >= amount * (1 - _SLACK) and bool(
            self._allowed(attacker, one, side * min(1.0, amount / d)).all()
        )

    def _allowed(self, attacker: int, one: Witness, factor: float) -> np.ndarray:
        fall, rise = self.knowledge.bounds(attacker, one.cells)
        d = factor * one.deviations
        return (d >= -fall * (1 + 1e-7) - 1e-12) & (d <= rise * (1 + 1e-7) + 1e-12)

    def _largest(self, primary: int, attacker: int, amount: float) -> float:
        """Return the share of an amount that an attacker considers possible if no cell is published."""

        def prices(cells: np.ndarray) -> np.ndarray:
            fall, rise = self.knowledge.bounds(attacker, cells)
            return np.where((fall > 0) | (rise > 0), 1.0, np.inf)

        reached = 0.0
        for most in self._sizes:
            cells = self.near.around(np.array([primary]), prices, most)
            if primary in cells:
                reached = self._reached_in(cells, primary, attacker, amount)
            if reached >= 1 - _SLACK:
                break
        return reached

    def _reached_in(self, cells: np.ndarray, primary: int, attacker: int, amount: float) -> float:
        place = int(np.searchsorted(cells, primary))
        fall, rise = (np.minimum(part / abs(amount), 1e6) for part in self.knowledge.bounds(attacker, cells))
        sign = float(np.sign(amount))
        costs = np.zeros(len(cells))
        costs[place] = -sign
        end = fall if amount < 0 else rise
        end[place] = min(end[place], 1.0)
        matrix = self.near.part(cells)
        zeros = np.zeros(matrix.shape[0])
        solution = solve(Program(costs, matrix, zeros, zeros, -fall, rise))
        if solution.objective is None:
            raise SolverFailed(f"cell {primary}: its program stopped with status {solution.status.value}")
        return min(1.0, -solution.objective)

    def _witness(
        self,
        primary: int,
        attacker: int,
        amount: float,
        suppressed: np.ndarray,
        thorough: int,
        costs: np.ndarray | None,
    ) -> Witness | None:
        """Return deviations of few or cheap cells that move the primary cell as required, or None.

        Unit witnesses are tried first for contributors, and in very large tables for all. Integer programs
        serve the outsider only, because each primary has one witness of his and many of contributors.
        """
        if costs is None and (attacker != OUTSIDER or not self._integer):
            found = self._units.of(primary, attacker, amount, suppressed)
            if found is not None or thorough < 0:
                return None if found is None else Witness(*found)
        self.searches += 1
        size = abs(amount)
        unit = 1.0 if costs is None else _USED * self._mean_cost

        def prices(cells: np.ndarray) -> np.ndarray:
            fall, rise = self.knowledge.bounds(attacker, cells)
            part = np.minimum(np.maximum(fall, rise) / size, 1.0)
            use = np.where(self.watched[cells], WATCHED, 1.0) / np.maximum(part, 1e-9)
            if costs is None:
                return np.where((part > 0) & suppressed[cells], use, np.inf)
            return np.where(part > 0, use * (unit + np.where(suppressed[cells], 0.0, costs[cells])), np.inf)

        before = np.empty(0)
        sizes = self._sizes[
            min(thorough, 0 if costs is None else 1) : None if thorough == 2 else 1 + thorough
        ]
        for most in sizes:
            cells = self.near.around(np.array([primary]), prices, most)
            place = int(np.searchsorted(cells, primary))
            if place >= len(cells) or cells[place] != primary or np.array_equal(cells, before):
                continue
            before = cells
            one = self._solve(cells, place, attacker, amount, prices(cells))
            if one is None:
                continue
            if costs is None or not self._integer or attacker != OUTSIDER:
                return one
            fixed = np.where(suppressed[cells], 0.0, costs[cells])
            return self._cheapest(one, cells, place, OUTSIDER, amount, fixed)
        return None

    def _cheapest(
        self, one: Witness, cells: np.ndarray, place: int, attacker: int, amount: float, fixed: np.ndarray
    ) -> Witness:
        """Return the cheapest witness among some cells, by an integer program from a start witness.

        In a linear program the cost of a cell is proportional to its deviation: using a tenth of a margin
        costs a tenth. In the integer program each used cell has its full cost.
        """
        count, paid, size = len(cells), np.flatnonzero(fixed > 0), abs(amount)
        given = np.zeros(count)
        given[np.searchsorted(cells, one.cells)] = one.deviations / size
        if not fixed[given != 0].any():
            return one
        fall, rise = (np.minimum(part / size, 1e6) for part in self.knowledge.bounds(attacker, cells))
        most = np.minimum(np.maximum(fall, rise), np.maximum(np.abs(given), 1.0))[paid]
        lower, upper = np.zeros(2 * count), np.concatenate([rise, fall])
        used, other = (place, count + place) if amount > 0 else (count + place, place)
        lower[used] = upper[used] = 1.0
        upper[other] = 0.0
        matrix = self.near.part(cells)
        sums = sparse.csc_matrix((np.ones(len(paid)), (np.arange(len(paid)), paid)), (len(paid), count))
        relations, zeros = matrix.shape[0], np.zeros(matrix.shape[0] + len(paid))
        least = zeros.copy()
        least[relations:] = -INFINITY
        program = Program(
            np.concatenate([np.full(2 * count, _USED * fixed[paid].min()), fixed[paid]]) / fixed[paid].mean(),
            sparse.bmat([[matrix, -matrix, None], [sums, sums, -sparse.diags(most)]], format="csc"),
            least,
            zeros,
            np.concatenate([lower, np.zeros(len(paid))]),
            np.concatenate([upper, np.ones(len(paid))]),
            np.arange(2 * count + len(paid)) >= 2 * count,
        )
        start = np.concatenate([np.maximum(given, 0), np.maximum(-given, 0), given[paid] != 0])
        solution = solve(program, _CHEAPEST, start)
        if solution.values is None:
            return one
        kept = fixed == 0
        kept[paid] = solution.values[2 * count :] > 0.5
        kept[place] = True
        again = self._solve(cells[kept], int(kept[:place].sum()), attacker, amount, np.ones(int(kept.sum())))
        return one if again is None else again

    def _solve(
        self, cells: np.ndarray, place: int, attacker: int, amount: float, price: np.ndarray
    ) -> Witness | None:
        fall, rise = (np.minimum(part / abs(amount), 1e6) for part in self.knowledge.bounds(attacker, cells))
        count, matrix = len(cells), self.near.part(cells)
        lower, upper = np.zeros(2 * count), np.concatenate([rise, fall])
        used, other = (place, count + place) if amount > 0 else (count + place, place)
        lower[used] = upper[used] = 1.0
        upper[other] = 0.0
        zeros = np.zeros(matrix.shape[0])
        solution = solve(
            Program(
                np.concatenate([price, price]),
                both_signs(matrix),
                zeros,
                zeros,
                lower,
                upper,
            ),
            Limits(options={"presolve": "off"}),
        )
        if solution.status is not Status.OPTIMAL or solution.values is None:
            return None
        d = solution.values[:count] - solution.values[count:]
        there = np.abs(d) > _NOTHING
        return Witness(cells[there], abs(amount) * d[there])
