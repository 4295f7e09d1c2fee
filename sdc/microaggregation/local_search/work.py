"""Work limits of a local search by effort, counted in visits of records.

The work depends on n, k, the effort and the number of records of the run, never on the clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

#: Exponent of k with which the number of visits falls for k above COST_K. The cost of a visit grows faster,
#: so a search with larger k takes up to about twice as long.
COST_K, COST_POWER = 3, 0.6
#: Number of near records as a multiple of k, and its maximum. The cost of a visit increases with this number.
NEIGHBOURS_PER_K, MOST_NEIGHBOURS = 2, 64


@dataclass(frozen=True)
class Work:
    """Work limits of an effort, counted so that the result does not depend on the machine.

    Attributes
    ----------
    visits : int
        Total number of visits of a block at k = 3. For larger k the number of visits is smaller, because each
        visit costs more.
    searches, search_share : int, float
        Number of searches of a small file from the initial partition, and the share of the visits of each.
    again, again_share : float, float
        Number of repeated annealings of the best partition, and the share of the visits of each.
    run_visits : int, optional
        Total number of visits of all blocks of a run. The blocks also share the further searches and the
        repeated annealings. With None the limits apply to each block separately.
    step_entries : int
        Limit on steps times matrix entries of a set-partitioning program.
    fewest_sweeps, most_sweeps : int
        Limits on the mean number of visits per record.
    descents : int
        Number of sweeps at temperature zero if there is no annealing.
    neighbours, trees : int
        Minimum number of near records, and number of trees of the search for them.
    """

    visits: int
    searches: int
    search_share: float
    again: float
    again_share: float
    run_visits: int | None
    step_entries: int
    fewest_sweeps: int
    most_sweeps: int
    descents: int
    neighbours: int
    trees: int

    def sweeps(self, n: int, k: int) -> float:
        """Return the mean number of visits per record for these limits."""
        return max(_cheaper(k) * self.fewest_sweeps, self.affordable_sweeps(n, k))

    def affordable_sweeps(self, n: int, k: int) -> float:
        """Return the mean number of visits per record allowed by the limit on the total number of visits, at
        least 0.
        """
        return min(self.most_sweeps, _cheaper(k) * self.visits / n)

    def shared(self, share: float) -> Work:
        """Return the work limits of a block that contains this share of the run's records.

        A run with many small regions thus takes no longer than a run with a few large regions.
        """
        if self.run_visits is None:
            return self
        visits = min(self.visits, int(share * self.run_visits))
        searches = max(1, int(share * self.searches))
        return replace(self, visits=visits, searches=searches, again=share * self.again)

    def near(self, k: int) -> int:
        """Return the number of near records of a record."""
        return min(MOST_NEIGHBOURS, max(self.neighbours, NEIGHBOURS_PER_K * k))


def _cheaper(k: int) -> float:
    """Return the number of visits as a share of that at k = 3."""
    return float(min(1.0, COST_K / k) ** COST_POWER)


#: Work limits by effort. Effort fast takes as long as MDAV in blocks. Effort standard takes two seconds for a
#: large file, and two to three seconds for a small file that is the whole run. Effort thorough takes half a
#: minute.
WORK = {
    "fast": Work(0, 1, 1.0, 0, 0.0, None, 0, 0, 0, 3, 6, 2),
    "standard": Work(1_500_000, 2, 0.7, 15, 0.36, 160_000_000, 60_000, 60, 2_000, 0, 8, 5),
    "thorough": Work(20_000_000, 4, 0.075, 36, 0.047, None, 300_000, 100, 40_000, 0, 12, 8),
}
#: Work limits for the start solution of an optimality proof: one search of a small file.
WORK["start"] = replace(WORK["standard"], searches=1, again=0, run_visits=None)
