"""What a comparison of methods says: a table, and a conclusion in words."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from accord.tables import TableWriter
from accord.workflows.assessment import Assessment
from accord.workflows.wording import count, listed_plainly, number, percent

SplitKind = Literal["random", "unusual"]
KINDS: tuple[SplitKind, ...] = ("random", "unusual")
SPLIT_WORDS: dict[SplitKind, str] = {"random": "random rows", "unusual": "unusual rows"}

_TITLES = {
    "nll": "NLL",
    "crps": "CRPS",
    "rmse": "RMSE",
    "coverage": "coverage",
    "typical_width": "width",
}


@dataclass(frozen=True)
class MethodScore:
    """One method on one sort of split: means over its splits, and their standard errors."""

    method: str
    split: SplitKind
    figures: dict[str, float]
    errors: dict[str, float]
    seconds: float

    @classmethod
    def of(
        cls, method: str, split: SplitKind, parts: list[Assessment], *, seconds: float
    ) -> "MethodScore":
        tables = [part.figures() for part in parts]
        columns = {name: np.array([table[name] for table in tables]) for name in tables[0]}
        root = np.sqrt(max(1, len(parts)))
        spread = {n: float(c.std(ddof=1) / root) if len(c) > 1 else 0.0 for n, c in columns.items()}
        return cls(method, split, {n: float(c.mean()) for n, c in columns.items()}, spread, seconds)


@dataclass(frozen=True)
class CompareResult:
    """All methods on the same splits."""

    source: str
    target: str
    n_rows: int
    scores: tuple[MethodScore, ...]
    assessments: dict[tuple[str, SplitKind], Assessment]
    about: dict[str, str]
    absent: tuple[str, ...]
    notes: tuple[str, ...]
    n_splits: int
    seconds: float

    def methods(self) -> list[str]:
        return list(dict.fromkeys(score.method for score in self.scores))

    def of(self, method: str, split: SplitKind) -> MethodScore:
        return next(s for s in self.scores if s.method == method and s.split == split)

    def best(self, split: SplitKind, figure: str = "nll") -> MethodScore:
        """The method with the lowest score on a sort of split."""
        return min((s for s in self.scores if s.split == split), key=lambda s: s.figures[figure])

    def level_with_best(self, split: SplitKind, figure: str = "nll") -> list[str]:
        """Other methods whose score differs from the best one's by less than its standard error."""
        best = self.best(split, figure)
        return [
            s.method
            for s in self.scores
            if s.split == split
            and s.method != best.method
            and s.figures[figure] - best.figures[figure]
            <= np.hypot(s.errors[figure], best.errors[figure])
        ]

    def table(self, split: SplitKind) -> tuple[list[str], list[list[str]]]:
        """Header and rows of text for one sort of split."""
        header = [SPLIT_WORDS[split], *_TITLES.values(), "s/fit"]
        rows = []
        for method in self.methods():
            score = self.of(method, split)
            cells = [
                percent(score.figures[name]) if name == "coverage" else number(score.figures[name])
                for name in _TITLES
            ]
            rows.append([method, *cells, f"{score.seconds:.1f}"])
        return header, rows

    def headline(self) -> str:
        """Which methods to take, in a sentence."""
        inside, outside = self.best("random").method, self.best("unusual").method
        if inside == outside:
            first = f"{inside} has the best likelihood on random and on unusual rows"
        else:
            first = f"{inside} has the best likelihood on random rows, {outside} on unusual ones"
        level = [
            name
            for name in self.level_with_best("random")
            if name in {*self.level_with_best("unusual"), outside}
        ]
        if level and self.n_splits > 1:
            first += f"; {listed_plainly(level)} cannot be told from the best on either"
        return f"{first}."

    def conclusion(self) -> str:
        """The headline with what it rests on."""
        missing = f" Not installed: {', '.join(self.absent)}." if self.absent else ""
        splits = count(self.n_splits, "split")
        return f"{self.headline()} (NLL: lower is better; {splits} of each sort.){missing}"

    def write_scores(self, path: Path) -> None:
        """All figures as a table, one row per method and sort of split."""
        lines = [
            {"method": s.method, "split": s.split, **s.figures, "seconds": s.seconds}
            for s in self.scores
        ]
        with TableWriter(path) as writer:
            writer.write(pa.Table.from_pylist(lines))

    def to_json(self) -> dict[str, Any]:
        return {
            "scores": [
                {"method": s.method, "split": s.split, **s.figures, "seconds": round(s.seconds, 2)}
                for s in self.scores
            ],
            "conclusion": self.conclusion(),
            "not_installed": list(self.absent),
            "notes": list(self.notes),
            "splits": self.n_splits,
            "seconds": round(self.seconds, 2),
        }
