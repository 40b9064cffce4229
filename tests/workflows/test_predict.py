"""Predictions for files: order, columns, surprises, and memory that does not grow."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accord._files import OptionError
from accord.persistence import ModelFileError, save
from accord.tables import TableError
from accord.workflows import FitResult, load_model, predict_table


@pytest.fixture
def new(houses: pd.DataFrame, tmp_path: Path) -> Path:
    path = tmp_path / "new.csv"
    houses.drop(columns="price").to_csv(path, index=False)
    return path


def test_every_row_gets_an_answer_in_order(
    fitted: FitResult, houses: pd.DataFrame, new: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    result = predict_table(fitted.model, new, output=out, id_column="house")
    table = pd.read_csv(out)
    assert list(table.columns) == [
        *("house", "mean", "std", "lower", "upper"),
        *("noise", "disagreement", "distance", "unusual"),
    ]
    assert tuple(table.columns) == result.columns
    assert list(table["house"]) == list(houses["house"])
    assert result.n_rows == len(table) == 150
    assert (table["lower"] < table["mean"]).all()
    assert (table["mean"] < table["upper"]).all()
    squares = table[["noise", "disagreement", "distance"]].pow(2).sum(axis=1)
    np.testing.assert_allclose(np.sqrt(squares), table["std"], rtol=1e-6)


def test_several_columns_are_copied_in_the_order_asked_for(
    fitted: FitResult, houses: pd.DataFrame, new: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    result = predict_table(fitted.model, new, output=out, id_column=["town", "house"])
    table = pd.read_csv(out)
    assert list(table.columns[:3]) == ["town", "house", "mean"]
    assert tuple(table.columns) == result.columns
    pd.testing.assert_frame_equal(table[["town", "house"]], houses[["town", "house"]])
    with pytest.raises(OptionError, match="id columns must differ"):
        predict_table(fitted.model, new, output=tmp_path / "b.csv", id_column=["house"] * 2)


def test_several_coverages_nest(fitted: FitResult, new: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    predict_table(fitted.model, new, output=out, coverages=(0.5, 0.9))
    table = pd.read_parquet(out)
    assert (table["lower_90"] <= table["lower_50"]).all()
    assert (table["upper_50"] <= table["upper_90"]).all()
    with pytest.raises(OptionError, match="coverages must differ"):
        predict_table(fitted.model, new, output=tmp_path / "b.csv", coverages=(0.5, 0.5))


def test_batches_do_not_change_the_answer(
    fitted: FitResult, houses: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = pd.concat([houses.drop(columns="price")] * 4, ignore_index=True)
    many["sold"] = pd.to_datetime(many["sold"])
    pq.write_table(pa.Table.from_pandas(many, preserve_index=False), tmp_path / "many.parquet")
    predict_table(fitted.model, tmp_path / "many.parquet", output=tmp_path / "whole.parquet")
    monkeypatch.setattr("accord.workflows.predict._BATCH_ROWS", 64)
    predict_table(fitted.model, tmp_path / "many.parquet", output=tmp_path / "parts.parquet")
    whole, parts = (pd.read_parquet(tmp_path / f"{n}.parquet") for n in ("whole", "parts"))
    pd.testing.assert_series_equal(whole.pop("unusual"), parts.pop("unusual"))
    promise = 1e-6 * (whole["mean"].abs() + whole["std"]).to_numpy()[:, None]
    assert (np.abs(whole.to_numpy() - parts.to_numpy()) <= promise).all()
    assert (np.abs(whole.to_numpy()[:150] - whole.to_numpy()[450:]) <= promise[:150]).all()


def test_unseen_categories_and_gaps_are_predicted_and_counted(
    fitted: FitResult, houses: pd.DataFrame, tmp_path: Path
) -> None:
    odd = houses.drop(columns="price").iloc[:10].copy()
    odd["town"] = odd["town"].astype(object)
    odd.loc[odd.index[:3], "town"] = "Atlantis"
    odd.loc[odd.index[4], "area"] = np.nan
    odd.to_csv(tmp_path / "odd.csv", index=False)
    result = predict_table(fitted.model, tmp_path / "odd.csv", output=tmp_path / "out.csv")
    assert result.n_rows == 10
    assert any("3 categories not seen in training in 'town'" in w for w in result.warnings)
    assert any("'area'" in w and "missing value" in w for w in result.warnings)
    assert np.isfinite(pd.read_csv(tmp_path / "out.csv")["mean"]).all()


def test_a_wrong_cell_is_named_by_its_row_in_the_file(
    fitted: FitResult, houses: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accord.workflows.predict._BATCH_ROWS", 64)
    wrong = houses.drop(columns="price").astype({"area": object})
    wrong.loc[99, "area"] = "4 rooms"
    wrong.to_csv(tmp_path / "wrong.csv", index=False)
    with pytest.raises(TableError, match="'area' must hold numbers, got '4 rooms' in row 100"):
        predict_table(fitted.model, tmp_path / "wrong.csv", output=tmp_path / "out.csv")


@pytest.mark.parametrize("batch_rows", [99, 64])  # the word alone in the first batch's successor
def test_a_word_among_numbers_does_not_cost_the_other_rows(
    fitted: FitResult,
    houses: pd.DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    batch_rows: int,
) -> None:
    monkeypatch.setattr("accord.workflows.predict._BATCH_ROWS", batch_rows)
    odd, gap = tmp_path / "odd.csv", tmp_path / "gap.csv"
    new = houses.drop(columns="price").head(100).astype({"area": object})
    new.loc[99, "area"] = None
    new.to_csv(gap, index=False)
    new.loc[99, "area"] = "wide"
    new.to_csv(odd, index=False)
    result = predict_table(fitted.model, odd, output=tmp_path / "out.csv")
    assert (
        "1 value in 'area' is no number ('wide' in row 100): taken as missing, and its row as "
        "unusual."
    ) in result.warnings
    predict_table(fitted.model, gap, output=tmp_path / "gapped.csv")
    answers, gapped = pd.read_csv(tmp_path / "out.csv"), pd.read_csv(tmp_path / "gapped.csv")
    assert bool(answers["unusual"][99])
    pd.testing.assert_frame_equal(
        answers.drop(columns="unusual"), gapped.drop(columns="unusual"), rtol=1e-6
    )
    with pytest.raises(TableError, match="'area' must hold numbers, got 'wide' in row 100"):
        predict_table(fitted.model, odd, output=tmp_path / "b.csv", strict=True)


def test_a_row_from_another_world_is_flagged(
    fitted: FitResult, houses: pd.DataFrame, tmp_path: Path
) -> None:
    far = houses.drop(columns="price").iloc[:2].copy()
    far.loc[far.index[1], ["area", "age"]] = [5000.0, 900.0]
    far.to_csv(tmp_path / "far.csv", index=False)
    result = predict_table(fitted.model, tmp_path / "far.csv", output=tmp_path / "out.csv")
    table = pd.read_csv(tmp_path / "out.csv")
    assert bool(table["unusual"][1])
    assert result.n_unusual >= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="area"), "'area' is missing"),
        (lambda f: f.assign(colour="red"), "'colour' is not known to the model"),
        (lambda f: f[["age", "area", *f.columns[3:]]], "stand in another order"),
        (lambda f: f.assign(area="large"), "'area' must hold numbers, got 'large' in row 1"),
        (lambda f: f.iloc[:0], "no rows"),
    ],
    ids=["missing", "extra", "reordered", "wrong type", "no rows"],
)
def test_tables_that_do_not_fit_leave_no_output(
    fitted: FitResult, houses: pd.DataFrame, tmp_path: Path, change: object, message: str
) -> None:
    assert callable(change)
    change(houses.drop(columns="price")).to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(TableError, match=message):
        predict_table(fitted.model, tmp_path / "bad.csv", output=tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]


def test_names_alone_can_match_columns(
    fitted: FitResult, houses: pd.DataFrame, new: Path, tmp_path: Path
) -> None:
    plain = predict_table(fitted.model, new, output=tmp_path / "a.csv")
    mixed = pd.read_csv(new)[list(reversed(pd.read_csv(new).columns))].assign(more=1)
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    predict_table(fitted.model, tmp_path / "mixed.csv", output=tmp_path / "b.csv", by_name=True)
    a, b = pd.read_csv(tmp_path / "a.csv"), pd.read_csv(tmp_path / "b.csv")
    pd.testing.assert_frame_equal(a, b)
    assert plain.n_rows == len(b)


def test_ids_cannot_run_in_a_spreadsheet(
    fitted: FitResult, houses: pd.DataFrame, tmp_path: Path
) -> None:
    table = houses.drop(columns="price").iloc[:3].assign(house=["=1+1", "@x", "plain"])
    table.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    predict_table(fitted.model, tmp_path / "new.csv", output=out, id_column="house")
    assert list(pd.read_csv(out)["house"]) == ["'=1+1", "'@x", "plain"]


def test_files_that_are_no_models(tmp_path: Path, new: Path) -> None:
    with pytest.raises(OptionError, match="does not exist"):
        load_model(tmp_path / "absent.accord")
    (tmp_path / "text.accord").write_text("hello")
    with pytest.raises(ModelFileError, match="not a model"):
        predict_table(tmp_path / "text.accord", new, output=tmp_path / "out.csv")
    from sklearn.linear_model import LinearRegression

    save(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]), tmp_path / "other.accord")
    with pytest.raises(OptionError, match="must come from 'accord fit', got a LinearRegression"):
        predict_table(tmp_path / "other.accord", new, output=tmp_path / "out.csv")


@pytest.mark.parametrize("link", [None, "symbolic", "hard"])
def test_no_output_is_an_input(
    fitted: FitResult, new: Path, tmp_path: Path, link: str | None
) -> None:
    before, out = new.read_bytes(), tmp_path / "link.csv"
    if link == "symbolic":
        out.symlink_to(new)
    elif link == "hard":
        out.hardlink_to(new)
    else:
        out = new
    with pytest.raises(OptionError, match="which must not be overwritten"):
        predict_table(fitted.model, new, output=out, force=True)
    assert new.read_bytes() == before


def test_each_row_is_preprocessed_and_answered_once(
    fitted: FitResult, new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: dict[str, int] = {}

    def counted(name: str) -> None:
        original = getattr(type(fitted.model), name)

        def count(self: object, X: object) -> object:
            rows[name] = rows.get(name, 0) + len(X)  # type: ignore[arg-type]
            return original(self, X)

        monkeypatch.setattr(type(fitted.model), name, count)

    counted("transform")
    counted("answer")
    predict_table(fitted.model, new, output=tmp_path / "out.csv")
    assert rows == {"transform": 150, "answer": 150}


def test_outputs_have_a_known_suffix(fitted: FitResult, new: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"must end in \.csv or \.parquet"):
        predict_table(fitted.model, new, output=tmp_path / "out.xlsx")
