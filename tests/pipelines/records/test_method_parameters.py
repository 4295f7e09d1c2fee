"""Parameters of a specification reach the nominal algorithm that is called."""

import numpy as np
from microguard.pipelines.records.combination_blocks import METHODS, Task, solve_task
from microguard.pipelines.records.method_parameters import cluster_parameters, combination_parameters
from microguard.schemas.specification.sections import Method
from microguard.sdc.microaggregation.heuristics.genetic import GeneticParams
from microguard.sdc.nominal.chi_exact import ChiExactParameters
from microguard.sdc.nominal.frequency import FrequencyVector
from microguard.sdc.nominal.partitioning.construction import Guidance
from microguard.sdc.safe.parameters import SafeParams


def method(**given):
    return Method.model_validate(given)


def test_what_is_left_out_is_as_the_paper_has_it():
    blocks = METHODS["chi-exact"].block_parameters
    assert combination_parameters(method(), "own-eee") is None
    assert combination_parameters(method(), "chi-exact", blocks) == blocks
    given = method(name="safe", safe={"slice": 2, "extra_error_from": [5, 50]})
    assert combination_parameters(given, "safe") == SafeParams(slice=2, extra_error_from=(5, 50))


def test_parameters_of_clusters_are_keywords_of_their_algorithm():
    assert cluster_parameters(method()) == {}
    assert cluster_parameters(method(algorithm="vmdav", vmdav={"gain": 1.1})) == {"gain": 1.1}
    assert cluster_parameters(method(algorithm="k-ward", k_ward={"ranking": "pv"})) == {"ranking": "pv"}
    bred = method(algorithm="genetic", genetic={"population": 20})
    assert cluster_parameters(bred) == {"genetic_parameters": GeneticParams(population=20)}


def test_gamma_and_lambda_and_the_second_term_of_chi_ex_are_taken():
    guided = method(algorithm="own-hhe", two_step={"gamma": 0.5, "reward": 1.5})
    assert combination_parameters(guided, "own-hhe") == Guidance(0.5, 1.5)
    weighed = method(algorithm="chi-exact", chi_exact={"deviation_weight": 2.0})
    blocks = METHODS["chi-exact"].block_parameters
    assert combination_parameters(weighed, "chi-exact", blocks) == ChiExactParameters(blocks.nodes, 2.0)


def test_a_block_is_solved_with_its_parameters():
    # the pair that is one record short is filled, or emptied: a change of one record is the cheaper one
    part = FrequencyVector(np.array([[0], [1], [2]]), np.array([6, 2, 4]), np.array([3]), ("a",))
    heavy = ChiExactParameters(nodes=20, deviation_weight=100.0)
    counts, report = solve_task(Task(0, part, (("a",),), 3, "chi-exact", seed=1, parameters=heavy))
    assert np.abs(counts - part.counts).sum() == 2
    step = report["certificates"][0]
    assert step["objective"] == "chi-square and deviations"
    assert step["value"] > 200
