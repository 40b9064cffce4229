"""Each study's results as tables beside what was published."""

import math
from collections.abc import Callable, Sequence

from accord.experiments import published
from accord.experiments.estimates import Estimate
from accord.experiments.results import Results
from accord.experiments.studies import TABLE1_RECIPES, TABLE1_VARIANTS
from accord.experiments.tables import Column, Entry, Table, titles

__all__ = ["tables_of"]

_APART = "In parentheses: distance from the published value in combined standard errors."
_SINGLE = "The paper prints one run without an error; it is taken to vary as one of ours does."
_VARIANTS = ("model", "smoothed", "local")
_COSINE = "cosine, local"


def tables_of(study: str, results: Results) -> list[Table]:
    """The tables of a study; entries whose records are absent are left blank."""
    return _MAKERS[study](results)


def _table1(results: Results) -> list[Table]:
    tables = []
    for measure, name in (("nll", "NLL"), ("rmse", "RMSE")):
        rivals = [
            *_against("table1", measure, "PBP", {"ours": "plain"}, results),
            *_against("table1", measure, "MC-dropout", {"ours": "plain"}, results),
            *_against(
                "table1",
                measure,
                "Deep Ensembles",
                {recipe: recipe for recipe in TABLE1_RECIPES},
                results,
            ),
        ]
        bvm = {name: name for name in (f"{recipe}, {v}" for recipe, v in TABLE1_VARIANTS)}
        ours = _against("table1", measure, "BVM", bvm, results)
        tables += [
            _by_dataset(
                f"table1-{measure}-rivals", f"Table 1, test {name}: the rivals", _APART, rivals
            ),
            _by_dataset(f"table1-{measure}-bvm", f"Table 1, test {name}: BVM", _APART, ours),
        ]
    return [*tables, _exact("table1", _TABLE1_EXACT, results)]


def _table3(results: Results) -> list[Table]:
    shifts = []
    for measure, heading in (("mean_shift", "shift of mean"), ("variance_shift", "of variance")):
        entries = [
            Entry(
                dataset,
                measure,
                "targets",
                "outlier split",
                results.estimate("table3", dataset, "Deep Ensembles", "plain", measure),
                published.figure("table3", dataset, measure),
            )
            for dataset in published.datasets("table3")
        ]
        shifts += [
            Column(f"{heading}, paper", tuple(entries), is_printed=True),
            Column(f"{heading}, ours", tuple(entries)),
        ]
    columns = [
        *shifts,
        *_against(
            "table3", "nll", "Deep Ensembles", {"ours": "plain", "cosine": "cosine"}, results
        ),
        *_against("table3", "nll", "BVM", {v: v for v in (*_VARIANTS, _COSINE)}, results),
        *_ours("table3", "nll", "BVM eps=0.1", {v: v for v in _VARIANTS[:2]}, results),
    ]
    note = f"{_APART} {_SINGLE} Grey rows: " + ", ".join(
        titles([name for name in published.datasets("table3") if published.is_grey(name)])
    )
    main = _by_dataset("table3", "Table 3, test NLL on outliers", f"{note}.", columns)
    return [main, _exact("table3", _TABLE3_EXACT, results)]


def _calibration(results: Results) -> list[Table]:
    tables = []
    for measure in ("ece", "mce"):
        columns = []
        for recipe in TABLE1_RECIPES:
            columns += _calibration_columns(measure, recipe, results)
        printed = [
            Column(
                f"{method}, paper",
                tuple(
                    Entry(d, measure, method, "", None, _printed("calibration", d, measure, method))
                    for d in published.datasets("calibration")
                ),
                is_printed=True,
            )
            for method in published.methods("calibration", measure)
        ]
        note = (
            "Of the mean reliability curve over the splits, levels 10 % to 90 %; standard errors "
            f"by jackknife over splits. {_APART}"
        )
        tables.append(
            _by_dataset(f"calibration-{measure}", f"{measure.upper()}", note, [*printed, *columns])
        )
    return tables


def _calibration_columns(measure: str, recipe: str, results: Results) -> list[Column]:
    places = [
        ("calibration", "MSE Ensemble", recipe),
        ("table1", "Deep Ensembles", recipe),
        *(("table1", "BVM", f"{recipe}, {v}") for own, v in TABLE1_VARIANTS if own == recipe),
    ]
    return [
        Column(
            f"{method}, {variant}",
            tuple(
                Entry(
                    dataset,
                    measure,
                    method,
                    variant,
                    results.estimate(study, dataset, method, variant, measure),
                    _printed("calibration", dataset, measure, method),
                )
                for dataset in published.datasets("calibration")
            ),
        )
        for study, method, variant in places
    ]


def _table2(results: Results) -> list[Table]:
    rows = [
        ("Deep Ensembles", "plain"),
        *((f"BVM eps={eps}", variant) for eps in ("0.01", "0.1") for variant in _VARIANTS[:2]),
        ("BVM", "local"),
    ]
    note = (
        f"{_APART} {_SINGLE} The 95 % interval is that of a Gaussian with the predictive mean and "
        "variance, as in the paper."
    )
    return [
        _by_method(
            "table2", "Table 2, Google stocks", note, "google", rows, _STOCK_MEASURES, results
        )
    ]


def _figure1(results: Results) -> list[Table]:
    rows = [
        ("MSE Ensemble", "plain"),
        *(("BVM single", variant) for variant in _VARIANTS[:2]),
        *(("BVM", variant) for variant in _VARIANTS),
    ]
    note = "Fresh targets on the grid from −6 to 6; the training data lie in [−4, 4]."
    return [
        _by_method("figure1", "Figure 1, the toy", note, "cubic", rows, _STOCK_MEASURES, results)
    ]


def _expansion(results: Results) -> list[Table]:
    names = {
        "order": "power of ε in the expansion's error",
        "error_at_0.1": "largest error for z up to 3 at ε = 0.1 σ",
        "error_at_0.5": "… at ε = 0.5 σ",
        "error_at_1": "… at ε = σ",
        "error_at_2": "… at ε = 2 σ",
        "expansion_minimiser": "minimiser σ/ε of the expansion at μ = t (1/√3 = 0.577)",
        "exact_at_minimiser": "exact loss there",
        "exact_at_zero": "exact loss as σ → 0: lower",
        "population_at_0.5": "trained σ/s on noise s, ε = 0.5 s (√(1 − ε²/3) = 0.957)",
        "population_at_1": "… ε = s (0.816)",
        "population_at_1.5": "… ε = 1.5 s (0.5)",
    }
    entries = tuple(
        Entry("formula", key, "BVM", "exact", _once(results, key), None) for key in names
    )
    return [
        Table(
            "expansion",
            "Appendix B, the expansion checked",
            "By quadrature and the exact loss in double precision.",
            "quantity",
            tuple(names.values()),
            (Column("value", entries),),
        )
    ]


_STOCK_MEASURES = {
    "nll": "NLL",
    "nll_exact": "NLL of the mixture",
    "rmse": "RMSE",
    "coverage95": "inside 95 %",
    "width95": "width 95 %",
}
_TABLE1_EXACT = [
    ("Deep Ensembles", "rate 3e-3"),
    *(("BVM", f"rate 3e-3, {variant}") for variant in _VARIANTS),
    ("Deep Ensembles", "cosine"),
    ("BVM", _COSINE),
]
_TABLE3_EXACT = [
    ("Deep Ensembles", "plain"),
    *(("BVM", variant) for variant in _VARIANTS),
    *(("BVM eps=0.1", variant) for variant in _VARIANTS[:2]),
    ("Deep Ensembles", "cosine"),
    ("BVM", _COSINE),
]
_MAKERS: dict[str, Callable[[Results], list[Table]]] = {
    "figure1": _figure1,
    "table1": _table1,
    "calibration": _calibration,
    "table2": _table2,
    "table3": _table3,
    "expansion": _expansion,
}


def _printed(
    table: published.Table, dataset: str, measure: str, method: str
) -> published.Figure | None:
    return published.figure(table, dataset, measure, method)


def _once(results: Results, measure: str) -> Estimate | None:
    found = results.estimate("expansion", "cubic", "BVM", "exact", measure)
    return found and Estimate(found.value, math.nan, 1)


def _against(
    study: published.Table, measure: str, method: str, variants: dict[str, str], results: Results
) -> list[Column]:
    """The paper's column, and one of ours per variant, by dataset."""
    entries = tuple(
        Entry(dataset, measure, method, "", None, _printed(study, dataset, measure, method))
        for dataset in published.datasets(study)
    )
    paper = Column(f"{method}, paper", entries, is_printed=True)
    return [paper, *_ours(study, measure, method, variants, results)]


def _ours(
    study: published.Table, measure: str, method: str, variants: dict[str, str], results: Results
) -> list[Column]:
    return [
        Column(
            f"{method}, {heading}",
            tuple(
                Entry(
                    dataset,
                    measure,
                    method,
                    variant,
                    results.estimate(study, dataset, method, variant, measure),
                    _printed(study, dataset, measure, method),
                )
                for dataset in published.datasets(study)
            ),
        )
        for heading, variant in variants.items()
    ]


def _exact(study: published.Table, rows: Sequence[tuple[str, str]], results: Results) -> Table:
    columns = [
        column
        for method, variant in rows
        for column in _ours(study, "nll_exact", method, {variant: variant}, results)
    ]
    note = "The predictive distribution's own likelihood, which the paper does not print."
    title = f"{study.replace('table', 'Table ')}, test NLL of the mixture itself"
    return _by_dataset(f"{study}-exact", title, note, columns)


def _by_dataset(name: str, title: str, note: str, columns: Sequence[Column]) -> Table:
    names = [entry.dataset for entry in columns[0].entries]
    return Table(name, title, note, "dataset", titles(names), tuple(columns))


def _by_method(
    study: str,
    title: str,
    note: str,
    dataset: str,
    rows: Sequence[tuple[str, str]],
    measures: dict[str, str],
    results: Results,
) -> Table:
    columns = []
    for measure, heading in measures.items():
        entries = tuple(
            Entry(
                dataset,
                measure,
                method,
                variant,
                results.estimate(study, dataset, method, variant, measure),
                published.figure("table2", dataset, measure, method),
            )
            for method, variant in rows
        )
        if any(entry.printed for entry in entries):
            columns.append(Column(f"{heading}, paper", entries, is_printed=True))
        columns.append(Column(heading, entries))
    names = tuple(f"{method}, {variant}".removesuffix(", plain") for method, variant in rows)
    return Table(study, title, note, "method", names, tuple(columns))
