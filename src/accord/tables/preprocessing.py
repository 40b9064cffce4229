"""Numbers from columns: scikit-learn's transformers, and skrub's for dates.

scikit-learn encodes numbers and categories; it has nothing for dates, where skrub's
``DatetimeEncoder`` gives the moment itself and its place in the year, the month, the week and
the day.
"""

from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder

from accord.tables.schema import Schema

# Up to this many categories get a column each; beyond, one column with the mean target is
# steadier than many columns that are almost always zero.
ONE_HOT_CATEGORIES = 20


def make_preprocessor(schema: Schema, *, random_state: int | None = None) -> Pipeline:
    """An unfitted pipeline from a frame with the schema's columns to a float matrix.

    Missing numbers and dates get the median and a column that says so; missing categories are a
    category of their own; rare and unseen categories share one.

    >>> from accord.tables.cells import Reading
    >>> from accord.tables.schema import Column
    >>> import pandas as pd
    >>> schema = Schema("y", (Column("a", Reading("number")),), {})
    >>> make_preprocessor(schema).fit_transform(pd.DataFrame({"a": [1.0, 3.0, None]})).round(2)
    array([[-1.22, -0.71],
           [ 1.22, -0.71],
           [ 0.  ,  1.41]])
    """
    # By place, not by name: ColumnTransformer looks names up one by one, each in all of them.
    numbers, few, many, dates = [], [], [], []
    for place, column in enumerate(schema.columns):
        if column.kind == "date":
            dates.append(place)
        elif column.kind != "category":
            numbers.append(place)
        elif len(column.categories) <= ONE_HOT_CATEGORIES:
            few.append(place)
        else:
            many.append(place)
    branches: list[tuple[str, Any, Any]] = []
    if numbers:
        branches.append(("numbers", _imputed(), numbers))
    if few:
        branches.append(("categories", _one_hot(), few))
    if many:
        branches.append(("many categories", _by_target(random_state), many))
    branches += [(f"date {place}", _calendar(), place) for place in dates]
    # A calendar column or a category can be constant in the rows at hand.
    return make_pipeline(
        ColumnTransformer(branches, sparse_threshold=0.0, verbose_feature_names_out=False),
        VarianceThreshold(),
    )


def _imputed() -> Pipeline:
    return make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())


def _one_hot() -> OneHotEncoder:
    return OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3, sparse_output=False)


def _by_target(random_state: int | None) -> Pipeline:
    folds = KFold(5, shuffle=True, random_state=random_state)
    encoder = TargetEncoder(target_type="continuous", cv=folds)
    return make_pipeline(encoder, StandardScaler())


def _calendar() -> Pipeline:
    from skrub import DatetimeEncoder

    encoder = DatetimeEncoder(add_weekday=True, periodic_encoding="circular")
    return make_pipeline(encoder, *(step for _, step in _imputed().steps))
