"""Other packages of disclosure control: the call of each, and its run in a separate environment.

A call gets `frame` (with a column `id`), `names` and `k`, and sets `published`, a frame with `id`. Its
processor time is limited. A finished run is kept, so that an interrupted benchmark continues.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parents[2] / "build/peers"
K = 3
NAMES = ["age", "income", "hours", "rent"]
#: Variables of the file of categories.
CATEGORIES = ["sex", "age_group", "education", "work", "district"]
#: Limit of the processor time of a call. The limit of the wall time of a run is ten times as long.
SECONDS = 120

_RUN = """
import json, resource, sys, time
import numpy as np, pandas as pd
frame, names, k = pd.read_csv(sys.argv[1]), {names!r}, {k}
{imports}
start = time.process_time()
limit = int(start) + {seconds}
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
{call}
seconds = time.process_time() - start
published.to_csv(sys.argv[2], index=False)
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({{"seconds": seconds, "memory": memory}}))
"""


@dataclass(frozen=True)
class Peer:
    """A package (with further packages that it needs and does not declare) and a call; without a package,
    microguard.
    """

    name: str
    package: str
    imports: str
    call: str
    cannot: str = ""
    joint: bool = True
    """Whether it protects the combination of the variables, and not each variable by itself."""


@dataclass(frozen=True)
class Run:
    """Processor seconds, MiB and published frame of a run, or the reason why there is none."""

    seconds: float = 0.0
    memory: float = 0.0
    published: pd.DataFrame | None = None
    failure: str = ""


_OURS = """clusters = microaggregate(frame[names].to_numpy(float), k, effort={effort!r})
published = frame[["id"]].assign(**{{name: clusters.labels for name in names}})"""
OURS = "microguard, standard"
PEERS = (
    Peer("microguard, fast", "", "from microguard import microaggregate", _OURS.format(effort="fast"),
         "start as soon as a package without compiled kernels; publish a finer value for one variable"),
    Peer(OURS, "", "from microguard import microaggregate", _OURS.format(effort="standard"),
         "the same"),
    Peer("umbra-k", "umbra-k", "from umbra_k import MondrianAnonymizer",
         "published = MondrianAnonymizer(k=k, quasi_id=names).fit_transform(frame)",
         "weights, households, sensitive variables, tables, files larger than memory"),
    Peer("polarfrost", "polarfrost pyspark",
         "import polars as pl\nfrom polarfrost.mondrian import mondrian_k_anonymity",
         "published = mondrian_k_anonymity(pl.from_pandas(frame), names, 'id', k).to_pandas()\n"
         "published = published.assign(id=published['id'].astype(str).str.split(',')).explode('id')",
         "weights, households, tables, a measure of loss"),
    Peer("project-lighthouse-anonymize", "project-lighthouse-anonymize pandas<3",
         "import logging\nfrom project_lighthouse_anonymize.wrappers.k_anonymize import k_anonymize",
         "numbers = frame.astype({name: float for name in names})\n"
         "published = k_anonymize(logging.getLogger('peer'), numbers, names, k, {}, 'id', "
         "parallelism=None)[0]",
         "weights, households, tables; keep every record"),
    Peer("anjana", "anjana", "from anjana.anonymity import k_anonymity",
         """levels = {}
for name in names:
    levels[name] = {0: frame[name].to_numpy()}
    for level, bins in enumerate((64, 16, 4, 1), 1):
        edges = np.unique(np.quantile(frame[name], np.linspace(0, 1, bins + 1)))
        levels[name][level] = np.digitize(frame[name], edges[1:-1]).astype(str)
published = k_anonymity(frame, [], names, k, 5, levels)""",
         "numbers without hierarchies of intervals, weights, households, tables"),
    Peer("microagg1d", "microagg1d", "from microagg1d import univariate_microaggregation",
         "published = frame[['id']].assign(**{name: univariate_microaggregation("
         "frame[name].to_numpy(float), k) for name in names})",
         "more than one variable: the combination is not k-anonymous", joint=False),
)  # fmt: skip
_CODES = "codes = np.column_stack([pd.factorize(frame[name])[0] for name in names])\n"
#: Methods for categories: the package of each, and our corresponding method.
METHODS = {
    "scores of special uniques": (
        Peer("suda", "suda", "from suda import suda",
             "published = suda(frame[names].copy(), max_msu=2)[['msu']].assign(id=frame['id'])",
             "protection; whether a unique combination is minimal"),
        Peer("microguard", "", "from microguard.sdc.risk.suda2 import suda2",
             _CODES + "published = frame[['id']].assign(msu=suda2(codes, 2).counts.sum(axis=1))"),
    ),
    "PRAM, at least 0.9 unchanged": (
        Peer("pram", "pram pandas<3", "from pram import pram\nnp.random.seed(1)",
             "published = pram(frame[names], m=0.9, alpha=1.0).assign(id=frame['id'])",
             "expected counts that stay; a key; households"),
        Peer("microguard", "", "from microguard.sdc.perturbation.pram import move, transition_matrix",
             """published = frame[["id"]].copy()
for place, name in enumerate(names):
    codes, categories = pd.factorize(frame[name], sort=True)
    matrix = transition_matrix(np.bincount(codes), 0.9)
    draws = np.random.default_rng(place).random(len(codes))
    published[name] = categories.to_numpy()[move(codes, matrix, draws)]"""),
    ),
    "noise by cell keys, one table": (
        Peer("cell-key-perturbation", "cell-key-perturbation",
             "from cell_key_perturbation.create_perturbed_table import create_perturbed_table\n"
             "from cell_key_perturbation.utils.generate_test_ptable import generate_ptable_10_5_rule\n"
             "rule = generate_ptable_10_5_rule()",
             """keyed = frame.assign(key=np.random.default_rng(1).integers(0, 256, len(frame)))
cells = create_perturbed_table(keyed, rule, [], names, "key", threshold=0)
cells = cells.rename(columns={"count": "new", "pre_sdc_count": "old"})
published = cells[cells["old"] > 0][["old", "new"]].fillna(0).assign(id=0)""",
             "other tables than its own p-table allows for; totals that are judged with their parts"),
        Peer("microguard", "",
             "from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN, CellKeyParameters, NoiseTable",
             """keys = np.random.default_rng(1).integers(0, KEY_SPAN, len(frame), dtype=np.uint64)
joined = frame[names].astype(str).agg("|".join, axis=1)
_, cells, old = np.unique(joined, return_inverse=True, return_counts=True)
sums = np.zeros(len(old), np.uint64)
np.add.at(sums, cells, keys)
new = NoiseTable.of(CellKeyParameters()).perturb(old, sums % np.uint64(KEY_SPAN))
published = pd.DataFrame({"old": old, "new": new}).assign(id=0)"""),
    ),
}  # fmt: skip


def run_package(peer: Peer, file: Path, names: list[str]) -> Run:
    """Run a package on a file, or return its finished run of an earlier call with the same script."""
    script = _RUN.format(names=names, k=K, imports=peer.imports, call=peer.call, seconds=SECONDS)
    python = _environment(peer.package)
    if python is None:
        return Run(failure="not installed")
    place = hashlib.sha256(f"{script}{peer.package}{file.name}".encode()).hexdigest()[:16]
    out, known = FOLDER / "runs" / f"{place}.csv", FOLDER / "runs" / f"{place}.json"
    if not peer.package or not known.exists():  # our code can change while this script does not
        out.parent.mkdir(exist_ok=True)
        known.write_text(json.dumps(_measure(python, script, file, out, peer)), encoding="utf-8")
    outcome = json.loads(known.read_text(encoding="utf-8"))
    published = None if outcome.get("failure") else pd.read_csv(out)
    return Run(**outcome, published=published)


def _measure(python: str, script: str, file: Path, out: Path, peer: Peer) -> dict[str, float | str]:
    environment = os.environ if not peer.package else {**os.environ, "PYTHONPATH": ""}
    path = out.with_suffix(".py")
    path.write_text(script, encoding="utf-8")
    try:
        done = subprocess.run([python, str(path), str(file), str(out)], capture_output=True, text=True,
                              timeout=10 * SECONDS, env=environment)  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"failure": f"more than {SECONDS}"}
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"failure": f"more than {SECONDS}" if done.returncode == -signal.SIGXCPU else "out of memory"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["?"])[-1]
        return {"failure": f"failed: {last.partition(':')[0]}"}
    figures: dict[str, float | str] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _environment(package: str) -> str | None:
    """Return the Python of the environment of a package, created once; None if installation fails."""
    if not package:
        return sys.executable
    folder = FOLDER / "environments" / package.split()[0]
    python = folder / "bin/python"
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", *package.split()]
        if not any(part.startswith("pandas") for part in package.split()):
            pip.append("pandas")
        if subprocess.run([*pip, "pyarrow"], capture_output=True).returncode:
            return None
        (folder / "installed").touch()
    return str(python)
