"""Which recipes of the default bring what, and would the library be another without one table?

    ACCORD_DATA=… python benchmarks/library.py [--rows 400] [--sets …]

Training rows only: of each of the seventeen tables, without the test rows of ``portfolio.py``'s
first random and outlier split, a quarter (at most 1,000 rows) judges and at most ``--rows`` train.
Every recipe is cross-fitted once; libraries without one or two kinds of recipe are then blended
from what is recorded, and judged by the mean NLL of the rows that judge, of targets in training
deviations. Leave one table out: for each table, the library that is best on all others is taken,
and judged on it. Records are kept in ``--records``, so that an interrupted run goes on.
"""

import argparse
import pickle
import warnings
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from accord._types import Floats
from accord.estimators import target_knowledge
from accord.portfolio.blend import Member, Prediction, blended, greedy_weights
from accord.portfolio.crossfit import TrainingTable, try_recipe
from accord.portfolio.encoding import TargetScale
from accord.portfolio.folds import held_out_parts
from accord.portfolio.recipes import recipes_for
from portfolio import SETS, split_rows, table

MOST_JUDGES = 1_000
# Recipes that are left out together: of the same models, on two scales of the target.
TOGETHER = {
    **dict.fromkeys(("additive", "log ridge", "log additive"), "ridge"),
    "log corrected process": "corrected process",
}


@dataclass(frozen=True)
class Recorded:
    """Log densities by recipe: of held-out training rows, and of the rows that judge.

    **Shape**: each of out_of_fold (n,), each of judging (m,).
    """

    out_of_fold: dict[str, Floats]
    judging: dict[str, Floats]
    sigma: float

    def nll(self, names: set[str]) -> tuple[float, dict[str, float]]:
        """The blend of some recipes: its NLL on the rows that judge, and its weights."""
        used = [name for name in self.out_of_fold if TOGETHER.get(name, name) in names]
        fitted = np.stack([self.out_of_fold[name] for name in used])
        weights = greedy_weights(fitted, np.ones(fitted.shape[1]))
        judged = blended(np.stack([self.judging[name] for name in used]), weights)
        loss = -float(judged.mean()) - np.log(self.sigma)
        return loss, dict(zip(used, weights.tolist(), strict=True))


def recorded(name: str, most: int, folder: Path) -> Recorded:
    path = folder / f"{name}-{most}.pickle"
    if not path.exists():
        record = measured(name, most)
        path.with_suffix(".part").write_bytes(pickle.dumps(record))
        path.with_suffix(".part").replace(path)
        print(f"{name}: done", flush=True)
    return pickle.loads(path.read_bytes())


def measured(name: str, most: int) -> Recorded:
    X, y = table(name)
    known = split_rows(X, "standard", 0)[0]
    rows = np.setdiff1d(known, split_rows(X, "outlier", 0)[1])
    rows = np.random.default_rng(3).permutation(rows)
    n_judges = min(len(rows) // 4, MOST_JUDGES)
    judges, own = rows[:n_judges], rows[n_judges:][:most]
    exact = target_knowledge(y[own][:, None], tolerance=None, lower=None, upper=None)
    training = TrainingTable.of(X[own], y[own], np.ones(len(own)), exact)
    parts = held_out_parts(
        training.x, training.y, training.measured, groups=None, time=None, seed=0
    )
    scale = TargetScale.of(training.y)
    rounding = training.rounding / scale.scale
    out_of_fold, judging = {}, {}
    for recipe in recipes_for("standard", training.x, training.y, rounding=rounding):
        tried = try_recipe(recipe, training, parts, seed=0, listener=None)
        member = Member(recipe.name, tried.model, tried.scale, tried.calibration, 1.0)
        prediction = Prediction.of(member, tried.model.components(X[judges]), scale)
        out_of_fold[recipe.name] = tried.log_density
        judging[recipe.name] = prediction.log_density(y[judges])
    return Recorded(out_of_fold, judging, float(y[own].std()))


def page(records: dict[str, Recorded]) -> str:
    sets = list(records)
    kinds = {TOGETHER.get(name, name) for r in records.values() for name in r.out_of_fold}
    kinds = sorted(kinds)
    without = [(), *((kind,) for kind in kinds), *combinations(kinds, 2)]
    losses = {
        left_out: np.array([r.nll(set(kinds) - set(left_out))[0] for r in records.values()])
        for left_out in without
    }
    whole = losses[()]
    weights = [r.nll(set(kinds))[1] for r in records.values()]
    lines = [
        "| without | mean NLL | most, on | mean weight in the blend | in the blend of |",
        "|---|---:|---:|---:|---:|",
    ]
    for kind in kinds:
        change = losses[kind,] - whole
        own = [sum(w for n, w in one.items() if TOGETHER.get(n, n) == kind) for one in weights]
        worst = f"{change.max():+.3f}, {sets[int(change.argmax())]}"
        used = f"{np.count_nonzero(own)} of {len(sets)}"
        lines.append(f"| {kind} | {change.mean():+.4f} | {worst} | {np.mean(own):.2f} | {used} |")
    chosen = [
        min(losses, key=lambda out, place=place: float(np.delete(losses[out], place).mean()))
        for place in range(len(sets))
    ]
    left_out = np.array([losses[out][place] for place, out in enumerate(chosen)])
    return "\n".join(
        [
            *lines,
            "",
            f"- mean NLL with all recipes: {whole.mean():.4f}",
            f"- with the best of {len(losses)} libraries, chosen on the other tables: "
            f"{left_out.mean():.4f}",
            f"- with the best library for each table, chosen on its own judging rows: "
            f"{np.min(list(losses.values()), axis=0).mean():.4f}",
        ]
    ).replace("-0", "−0")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--records", type=Path, default=Path(".records/library"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    options.records.mkdir(parents=True, exist_ok=True)
    print(page({name: recorded(name, options.rows, options.records) for name in options.sets}))


if __name__ == "__main__":
    main()
