"""Arrow streams from strangers: limited before they take memory, checked before they are used."""

import struct

import pyarrow as pa

from accord.service.limits import Refused, too_many_rows
from accord.tables import TableError, check_names

_BROKEN = "the body cannot be read as an Arrow stream ({}). Write it with pyarrow.ipc.new_stream."


def read_stream(body: bytes, *, most: int) -> pa.Table:
    """The table of an Arrow IPC stream with at most ``most`` rows.

    Compressed streams are refused: a few bytes could stand for gigabytes.
    """
    try:
        _refuse_compressed(body)
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            check_names("the body", [str(name) for name in reader.schema.names])
            batches, rows = [], 0
            for batch in reader:
                rows += batch.num_rows
                if rows > most:
                    raise too_many_rows(most, rows)
                batches.append(batch)
            table = pa.Table.from_batches(batches, schema=reader.schema)
        # lengths and offsets are the client's word, which nothing has checked yet
        table.validate(full=True)
    except (pa.ArrowException, OSError, struct.error, UnicodeDecodeError) as error:
        first = str(error).strip().partition("\n")[0][:120]
        raise TableError(_BROKEN.format(first.rstrip("."))) from None
    return table


def _refuse_compressed(body: bytes) -> None:
    reader = pa.ipc.MessageReader.open_stream(pa.py_buffer(body))
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        if message.type in ("record batch", "dictionary") and _is_compressed(
            message.metadata.to_pybytes(), nested=message.type == "dictionary"
        ):
            raise Refused(
                415, "an Arrow stream must not be compressed, got one. Write it uncompressed."
            )


def _is_compressed(metadata: bytes, *, nested: bool) -> bool:
    """Whether a message names a compression: field 3 of its record batch (format/Message.fbs).

    The metadata is a flatbuffer: a table begins with the distance back to a list of where its
    fields lie, 0 for a field that is not there.
    """
    place = struct.unpack_from("<I", metadata, 0)[0]
    place = _field(metadata, place, 2)  # the header of the message
    if nested:
        place = _field(metadata, place, 1)  # the record batch of a dictionary
    return _field(metadata, place, 3) != 0


def _field(metadata: bytes, table: int, number: int) -> int:
    """Where the table lies that a field refers to, 0 if the field is absent."""
    if table == 0:
        return 0
    fields = table - struct.unpack_from("<i", metadata, table)[0]
    size = struct.unpack_from("<H", metadata, fields)[0]
    if 4 + 2 * number + 2 > size:
        return 0
    offset: int = struct.unpack_from("<H", metadata, fields + 4 + 2 * number)[0]
    if not offset:
        return 0
    distance: int = struct.unpack_from("<I", metadata, table + offset)[0]
    return table + offset + distance
