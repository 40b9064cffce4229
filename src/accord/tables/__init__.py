"""Tables in and out: CSV and Parquet files, column types, preprocessing, whole files or none."""

from accord._files import (
    OptionError,
    atomic_output,
    atomic_outputs,
    check_output,
    check_outputs,
    printable,
    quoted,
)
from accord.tables.cells import Kind, Reading
from accord.tables.preprocessing import make_preprocessor
from accord.tables.problems import TableError, listed
from accord.tables.reading import Table, file_sha256, open_table, read_header, read_table
from accord.tables.schema import Column, Schema, Surprises, check_columns, conform
from accord.tables.stream import TableStream
from accord.tables.training_data import TrainingData, prepare_training
from accord.tables.writing import TableWriter, guard_formulas

__all__ = [
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
    "atomic_output",
    "atomic_outputs",
    "check_columns",
    "check_output",
    "check_outputs",
    "conform",
    "file_sha256",
    "guard_formulas",
    "listed",
    "make_preprocessor",
    "open_table",
    "prepare_training",
    "printable",
    "quoted",
    "read_header",
    "read_table",
]
