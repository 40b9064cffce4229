"""From a table to predictions that can be relied on: one estimator that does all of it."""

from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from accord import persistence
from accord._checks import check_count, check_probability
from accord._progress import Progress, parts, shown
from accord._types import Bools, Floats
from accord.distributions import Distribution, PredictiveModel
from accord.estimators import DistributionalRegressor, html_card
from accord.portfolio import Bounds, Effort, EncodedTable, MoreRows
from accord.splits import row_hashes
from accord.tables import (
    ConformedRows,
    Schema,
    check_columns,
    give_back_memory,
    input_arrays,
)
from accord.tabular.assessment import Assessment, assessed_part
from accord.tabular.card import (
    DistanceCurve,
    ModelCard,
    TableProfile,
    card_settings,
    make_card,
    remembered_rows,
    share_remembered,
)
from accord.tabular.engines import (
    bounds_for,
    check_engine,
    check_placed,
    export_table,
    make_engine,
)
from accord.tabular.pictures import plot_table
from accord.tabular.receipts import table_receipts
from accord.tabular.rows import Array, Rows, as_table, conformed, notes_on_splits
from accord.tabular.stream import SampledTable, all_rows
from accord.trust import Receipts
from accord.work import Checkpoint, kept_in

if TYPE_CHECKING:
    from distributed import Client

# Relative cost of reading, or of reading a whole file again, and of what follows.
_READ, _READ_AGAIN, _TRAIN, _JUDGE = 2.0, 12.0, 94.0, 4.0


@final
class TableRegressor(PredictiveModel, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor for tables as they are, whose intervals hold.

    It takes a data frame (or a CSV or Parquet file) with numbers, categories, dates and gaps;
    trains several kinds of model on parts of the rows; calibrates them on the rows that each part
    left out; and notices rows that are unlike those it has learnt from.

    Args:
        engine: What learns, in place of the portfolio: an estimator of this library, such as
            ``BVMRegressor.preset("table1")`` for the paper's method. It is trained on all rows with
            its own settings and predicts as it would by itself, without calibration; copies of it
            are judged on rows that they had not seen. ``effort``, ``time_budget``, ``tolerance``
            and ``bounds`` are the portfolio's.
        effort: "quick", "standard" or "best": how many configurations are tried, and for how long.
        time_budget: Seconds to spend on training; less is tried where it would take longer.
        coverage: Share of the values that intervals should contain.
        tolerance: Within which model and data agree: a number in the target's units, a share of
            its range such as "1%", or "choose" to have it chosen on held-out rows.
        bounds: Values that the target cannot pass, ``(0, None)`` for a price. "detect" takes 0 as
            the lower bound if no training value is below it; None sets no bound.
        group: A column whose rows belong together (a person, a machine): they are held out
            together, and the column is not used to predict.
        time: A column that orders the rows: they are held out in blocks of time.
        ignore: Columns not to be used, nor to be watched where they are the same in every row.
        use: Columns to be used although they look like row numbers or names of rows.
        category: Columns of numbers that are names of kinds, such as postcodes or machine types.
        max_rows: Of a file with more rows, which may be larger than memory, a random sample of so
            many is read, on which all is chosen and judged. Frames and arrays are used whole.
        passes: How often networks that were chosen on a sample are then trained on all rows of the
            file; 0 for the sample alone.
        n_jobs: Processes that train the portfolio, −1 for one per processor, where there is enough
            to do for them. None trains in this one. In a script, more than one needs the usual
            ``if __name__ == "__main__":``.
        random_state: The same number gives the same model.

    Attributes:
        held_out_: An :class:`Assessment` of the training rows, each predicted by models that had
            not seen it. Not saved with the model.
        shifted_: The same for the most unusual rows, by models that had seen no such rows; no rows
            of a table with hardly any.
        reference_rows_: The training rows among which neighbours are sought, numbered from 1.
        notes_: What was noticed and decided, in plain sentences.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> area = rng.uniform(40, 200, 60)
        >>> frame = pd.DataFrame({"area": area, "town": rng.choice(["Ulm", "Bonn"], 60)})
        >>> frame["price"] = 2 * area + 20 * (frame["town"] == "Ulm") + rng.normal(0, 5, 60)
        >>> model = TableRegressor(effort="quick", random_state=0).fit(frame, "price")
        >>> model.predict_interval(frame.head(3), coverage=0.9).columns.tolist()
        ['lower', 'upper']
    """

    def __init__(
        self,
        *,
        engine: DistributionalRegressor | None = None,
        effort: Effort = "standard",
        time_budget: float | None = None,
        coverage: float = 0.95,
        tolerance: float | str = "choose",
        bounds: Bounds | Literal["detect"] | None = "detect",
        group: str | None = None,
        time: str | None = None,
        ignore: Sequence[str] = (),
        use: Sequence[str] = (),
        category: Sequence[str] = (),
        max_rows: int = 1_000_000,
        passes: int = 1,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.engine = engine
        self.effort = effort
        self.time_budget = time_budget
        self.coverage = coverage
        self.tolerance = tolerance
        self.bounds = bounds
        self.group = group
        self.time = time
        self.ignore = ignore
        self.use = use
        self.category = category
        self.max_rows = max_rows
        self.passes = passes
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Rows,
        y: str | ArrayLike,
        *,
        sample_weight: str | ArrayLike | None = None,
        y_tolerance: str | ArrayLike | None = None,
        y_lower: str | ArrayLike | None = None,
        y_upper: str | ArrayLike | None = None,
        progress: Progress | bool | None = None,
        checkpoint: str | Path | Checkpoint | None = None,
        client: "Client | None" = None,
    ) -> Self:
        """Learn from a table.

        Args:
            X: A DataFrame, an array, or the path of a CSV or Parquet file or of a folder of Parquet
                files; an :class:`accord.tables.TableFile` says how a CSV file is written.
            y: The name of the target column, or the targets.
            sample_weight: How much each row counts in training and in choosing models; a column
                name or values. Rows with 0 are left out; standard deviations, intervals and the
                figures of held-out rows count every other row once. Gaussian processes of the
                portfolio learn without weights.
            y_tolerance: A tolerance for each row, in target units; a column name or values.
            y_lower, y_upper: Bounds of censored targets, NaN for no bound (one alone leaves the
                other side open; without any, the target is measured); a column name or values.
            progress: True for a bar, False for none; by default a bar in a notebook only. A
                function is called with the share of the work that is done and what is being done.
            checkpoint: A folder for what is finished, from which the same call goes on after it
                was stopped, at whatever moment; removed at the end.
            client: A Dask client, whose workers train.
        """
        self._check_settings()
        if y is None:
            raise TypeError("y must be the name of the target column, or the targets, got None.")
        check_placed(self.engine, {"checkpoint": checkpoint, "client": client})
        show = shown(progress)
        show(0.0, "Reading")
        known = {"weight": sample_weight, "tolerance": y_tolerance}
        sample = SampledTable.read(
            X,
            {"target": y, **known, "lower": y_lower, "upper": y_upper},
            tolerance=self.tolerance,
            group=self.group,
            time=self.time,
            ignore=self.ignore,
            use=self.use,
            category=self.category,
            max_rows=self.max_rows,
            passes=self.passes if self.engine is None else 0,
            watch=self.engine is None,
        )
        del X  # a file that was read is not needed twice in memory
        give_back_memory()
        self._schema, self.encoder_ = sample.data.schema.to_dict(), sample.encoder
        self.bounds_, bound_notes = bounds_for(self.bounds, sample.data, self.engine)
        work = (_READ_AGAIN if sample.passes else _READ, _TRAIN, _JUDGE)
        reading, training, judging = parts(show, work)
        with kept_in(checkpoint) as kept, all_rows(sample, kept, reading) as (more, notes):
            training(0.0, "Training")
            self._train(sample, training, more, checkpoint=kept, client=client)
        judging(0.0, "Judging")
        self._judge(sample)
        self.notes_ = (
            *notes,
            *notes_on_splits(self.suspects_, sample.together, group=self.group),
            *bound_notes,
            *self.engine_.notes_,
        )
        judging(1.0, "Judging")
        return self

    def predict_dist(self, X: Rows) -> Distribution:
        """The predictive distribution of each row: mean, std, pdf, cdf, quantile, sample, …

        **Shape**: (N,).
        """
        features = self.features(X)
        return self.engine_.predict_dist(features)

    def explain_uncertainty(
        self,
        X: Any,
        *,
        coverage: float | None = None,
        permutations: int = 0,
        random_state: int = 0,
    ) -> Receipts:
        """Why each interval is as wide as it is: its parts, by column, and what would narrow it.

        Noise, disagreement and distance, and distance by column, are exact and quick. With
        ``permutations`` (64 are many), noise and disagreement are split by column too, as Shapley
        values with standard errors, and the gain of filling in each missing value is estimated:
        about ``permutations`` × (columns + 1) predictions per row.
        """
        frame = self._conformed(X).X
        return self.explain_conformed(
            frame.set_axis(X.index) if isinstance(X, pd.DataFrame) else frame,
            coverage=coverage,
            permutations=permutations,
            random_state=random_state,
        )

    def explain_conformed(
        self,
        X: pd.DataFrame,
        *,
        coverage: float | None = None,
        permutations: int = 0,
        random_state: int = 0,
    ) -> Receipts:
        """:meth:`explain_uncertainty` of a frame that has the schema's columns and types."""
        check_is_fitted(self, "engine_")
        return table_receipts(
            self,
            self.engine_,
            X,
            answer=lambda rows: self.engine_.answer(rows)[0],
            as_known=lambda rows: self.engine_.answer(rows, as_known=True)[0],
            coverage=coverage,
            permutations=permutations,
            seed=random_state,
        )

    def is_unusual(self, X: Rows) -> Bools:
        """Whether a row is unlike those that the model has learnt from.

        **Shape**: (N,).
        """
        conformed = self._conformed(X)
        return self.engine_.is_unusual(self.transform(conformed.X)) | conformed.unlike

    def answer(self, features: Floats) -> tuple[Distribution, Bools]:
        """Distributions and flags of rows whose features are known already."""
        return self.engine_.answer(features)

    def features(self, X: Rows) -> Floats:
        """The matrix that the engine sees; columns are found by their names.

        **Shape**: (N, features).
        """
        return self.transform(self._conformed(X).X)

    def transform(self, X: pd.DataFrame) -> Floats:
        """The features of a frame that has the schema's columns and types already.

        **Shape**: (N, features).
        """
        check_is_fitted(self, "engine_")
        return self.encoder_.transform(X)

    plot = plot_table

    def save(self, path: str | Path) -> None:
        """Write everything to one file that is safe to load (``accord.load``)."""
        check_is_fitted(self, "engine_")
        card = self.card_
        metadata = {"kind": "table model", "target": card.target, "card": card.to_dict()}
        persistence.save(self, path, metadata=metadata)

    def export(self, path: str | Path, *, levels: Sequence[float] | None = None) -> None:
        """Write the model as one ONNX graph, for programs without Python.

        Outputs are ``y_mean``, ``y_std``, ``y_quantiles`` at ``levels`` (by default the model's
        interval, and the median), ``y_noise``, ``y_disagreement``, ``y_distance``,
        ``unusual_score`` and ``unusual``. A part that has no graph is named in a ``ValueError``,
        and nothing is written. Needs ``pip install 'accord[export]'``.
        """
        check_is_fitted(self, "engine_")
        export_table(self, path, levels=levels)

    def export_inputs(self, X: Rows) -> dict[str, Array]:
        """Rows as the exported graph takes them: a matrix of numbers, and one of category codes."""
        schema, table = self.schema_, as_table(X)
        check_columns(table.data.column_names, schema, source=table.name, by_name=True)
        return input_arrays(table.data, schema)

    @property
    def feature_names_in_(self) -> Array:
        """The columns that rows must have."""
        return np.array(self.schema_.names, dtype=object)

    @property
    def schema_(self) -> Schema:
        """The columns in use, how each is read, and why others are not."""
        check_is_fitted(self, "engine_")
        return Schema.from_dict(self._schema)

    @property
    def card_(self) -> ModelCard:
        """Where the model comes from, and its figures."""
        check_is_fitted(self, "engine_")
        state: Mapping[str, Any] = self._card
        low, high = state["target_range"]
        return ModelCard(**{**state, "target_range": (low, high)})

    @property
    def leaderboard_(self) -> pd.DataFrame:
        """Each configuration with its out-of-fold score and its weight."""
        return pd.DataFrame(self.card_.leaderboard)

    def seen_in_training(self, X: pd.DataFrame, y: Floats) -> float:
        """Estimated share of rows, as :func:`conform` gives them, that were trained on."""
        if not len(X):
            return 0.0
        hashes = row_hashes(X[self.schema_.names], y)
        n_rows = self._card.get("n_trained") or self._card["n_rows"]
        return share_remembered(hashes, self.remembered_, n_rows=n_rows)

    def _check_loaded(self) -> None:
        """Let a model that was loaded answer a row, so that parts that do not fit are found now."""
        self.answer(np.zeros((1, len(self.encoder_.feature_names()))))

    def __getstate__(self) -> dict[str, Any]:
        """What a model file holds: not the training rows."""
        state = dict(super().__getstate__())
        for name in ("held_out_", "shifted_", "training_", "suspects_"):
            state.pop(name, None)
        return state

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    _html_repr = html_card

    def _facts(self) -> dict[str, str]:
        return self.card_.facts() if hasattr(self, "engine_") else {"state": "not fitted"}

    def _check_settings(self) -> None:
        check_engine(self.get_params(deep=False))
        check_probability("coverage", self.coverage, strict=True, remedy="Write 0.95 for 95 %.")
        check_count("max_rows", self.max_rows, minimum=20)
        check_count("passes", self.passes, minimum=0)
        if not isinstance(self.random_state, Integral | None):
            raise TypeError(
                "random_state must be a whole number or None, got a "
                f"{type(self.random_state).__name__}. Draw a number from it first."
            )
        for name in ("ignore", "use", "category"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise TypeError(f"{name} must be a list of columns, got {value!r}. Use a list.")

    def _train(
        self, sample: SampledTable, progress: Progress, more: MoreRows | None, **for_portfolio: Any
    ) -> None:
        data = sample.data
        features: Any = sample.features
        if self.engine is None:  # features are of no use to anybody afterwards
            features = EncodedTable(features, self.encoder_.blanks(), more)
        self.engine_ = make_engine(self.get_params(deep=False), self.bounds_).fit(
            features,
            data.y,
            groups=sample.together,
            time=sample.moments,
            sample_weight=data.weight,
            y_tolerance=sample.tolerance,
            y_lower=data.lower,
            y_upper=data.upper,
            progress=progress,
            **(for_portfolio if self.engine is None else {}),
        )

    def _judge(self, sample: SampledTable) -> None:
        """What rows say about the models that had not seen them, and about the table."""
        data = self.training_ = sample.data
        usual = self.engine_.judged_
        unseen = [*usual, *self.engine_.shifted_]
        assessed = [assessed_part(data, part, sample.together, self.coverage) for part in unseen]
        self.held_out_ = Assessment.join(assessed[: len(usual)])
        nothing = self.held_out_[np.empty(0, np.intp)]
        self.shifted_ = Assessment.join([nothing, *assessed[len(usual) :]])
        self.suspects_ = sample.suspects
        self.profile_ = TableProfile(data.X)
        self.target_profile_ = TableProfile(pd.DataFrame({data.schema.target: data.y}))
        self.reference_rows_ = data.rows[self.engine_.proximity_.reference_rows_]
        self.remembered_ = remembered_rows(data.X, data.y)
        card = make_card(
            sample.table,
            data,
            held_out=self.held_out_,
            shifted=self.shifted_,
            by_distance=DistanceCurve.of(
                [(found, part.growth) for found, part in zip(assessed, unseen, strict=True)]
            ),
            n_trained=self.engine_.rows_seen_,
            leaderboard=[vars(entry) for entry in self.engine_.leaderboard_],
            settings=card_settings(
                self.get_params(deep=False), self.bounds_, self.engine_.leaderboard_[0].about
            ),
        )
        self._card = card.to_dict()

    def _conformed(self, X: Rows) -> ConformedRows:
        check_is_fitted(self, "engine_")
        return conformed(X, self.schema_)
