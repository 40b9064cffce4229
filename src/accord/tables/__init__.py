"""Tables in and out: CSV and Parquet files, column types, and numbers for networks."""

from accord.tables.cells import CellFormat, CellKind, with_gaps
from accord.tables.conforming import (
    ConformedRows,
    Surprises,
    check_columns,
    conform,
    conform_rows,
)
from accord.tables.csv_files import TableStream, parse_csv
from accord.tables.encoder import ONE_HOT_CATEGORIES, TableEncoder
from accord.tables.features import Decision, Suspect, suspects
from accord.tables.files import (
    Table,
    TableFile,
    TableSource,
    TableWriter,
    as_file,
    file_sha256,
    give_back_memory,
    open_table,
    read_again,
    read_header,
    read_table,
    refuse_unknown_suffix,
)
from accord.tables.graph import TableInputs, described_inputs, input_arrays, state_unlike
from accord.tables.roles import number_column, time_column
from accord.tables.sampling import Records, ShuffledRows, part_count, sample_note
from accord.tables.schema import Column, Schema, TableError, as_numbers, check_names, check_present
from accord.tables.training_data import (
    FurtherTraining,
    TrainingData,
    prepare_training,
)

__all__ = [
    "ONE_HOT_CATEGORIES",
    "CellFormat",
    "CellKind",
    "Column",
    "ConformedRows",
    "Decision",
    "FurtherTraining",
    "Records",
    "Schema",
    "ShuffledRows",
    "Surprises",
    "Suspect",
    "Table",
    "TableEncoder",
    "TableError",
    "TableFile",
    "TableInputs",
    "TableSource",
    "TableStream",
    "TableWriter",
    "TrainingData",
    "as_file",
    "as_numbers",
    "check_columns",
    "check_names",
    "check_present",
    "conform",
    "conform_rows",
    "described_inputs",
    "file_sha256",
    "give_back_memory",
    "input_arrays",
    "number_column",
    "open_table",
    "parse_csv",
    "part_count",
    "prepare_training",
    "read_again",
    "read_header",
    "read_table",
    "refuse_unknown_suffix",
    "sample_note",
    "state_unlike",
    "suspects",
    "time_column",
    "with_gaps",
]
