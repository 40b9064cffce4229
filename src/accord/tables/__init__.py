"""Tables in and out: CSV and Parquet files, column types, preprocessing, whole files or none."""

from accord.tables.cells import Kind, Reading
from accord.tables.preprocessing import ONE_HOT_CATEGORIES, make_preprocessor
from accord.tables.problems import (
    OptionError,
    TableError,
    absent_column,
    listed,
    near_matches,
    printable,
    quoted,
)
from accord.tables.reading import Table, file_sha256, open_table, read_header, read_table
from accord.tables.schema import Column, Schema, Surprises, check_columns, conform
from accord.tables.stream import TableStream
from accord.tables.training_data import TrainingData, number_column, prepare_training
from accord.tables.writing import (
    TableWriter,
    atomic_output,
    check_output,
    guard_formulas,
    refuse_unknown_suffix,
)

__all__ = [
    "ONE_HOT_CATEGORIES",
    "Column",
    "Kind",
    "OptionError",
    "Reading",
    "Schema",
    "Surprises",
    "Table",
    "TableError",
    "TableStream",
    "TableWriter",
    "TrainingData",
    "absent_column",
    "atomic_output",
    "check_columns",
    "check_output",
    "conform",
    "file_sha256",
    "guard_formulas",
    "listed",
    "make_preprocessor",
    "near_matches",
    "number_column",
    "open_table",
    "prepare_training",
    "printable",
    "quoted",
    "read_header",
    "read_table",
    "refuse_unknown_suffix",
]
