"""Arrow and Parquet through pyarrow: validated whole, so that damaged offsets cannot point outside of the file."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from iddm.demos.formats.common import check_unpacked
from iddm.errors import UserError
from iddm.utils.extras import need

MAX_COLUMNS = 100_000


def pyarrow(module: str = "pyarrow") -> Any:
    return need(module, "arrow", "Arrow and Parquet files")


def read_ipc(path: Path) -> Iterator[Any]:
    """The record batches of an Arrow stream, or of an Arrow file, which is a stream between a magic and a footer."""
    pa = pyarrow()
    with pa.memory_map(str(path)) as file:
        start = 8 if file.read(6) == b"ARROW1" else 0
        file.seek(start)
        for message in pa.ipc.MessageReader.open_stream(file):
            if _compressed(message.metadata.to_pybytes()):
                raise UserError(f"{path.name} is compressed, so its size cannot be known beforehand; write it uncompressed")
        file.seek(start)
        num_bytes = 0
        with pa.ipc.open_stream(file) as reader:
            for batch in reader:
                num_bytes += batch.nbytes
                yield _sound(batch, path, num_bytes)


def _compressed(message: bytes) -> bool:
    """Whether a message is a record batch with compressed buffers, from its flatbuffer (Arrow's Message.fbs)."""

    def follow(at: int) -> int:
        return at + int.from_bytes(message[at : at + 4], "little")

    def field(table: int, slot: int) -> int:
        """Where a table keeps a field, 0 where it has none."""
        vtable = table - int.from_bytes(message[table : table + 4], "little", signed=True)
        size = int.from_bytes(message[vtable : vtable + 2], "little")
        entry = 4 + 2 * slot
        offset = int.from_bytes(message[vtable + entry : vtable + entry + 2], "little") if entry + 2 <= size else 0
        return table + offset if offset else 0

    root = follow(0)
    kind, header = field(root, 1), field(root, 2)
    if not kind or not header or message[kind] not in (2, 3):  # a dictionary batch holds a record batch
        return False
    batch = follow(header)
    if message[kind] == 2:
        data = field(batch, 1)
        if not data:
            return False
        batch = follow(data)
    return field(batch, 3) != 0


def _sound(table: Any, path: Path, num_bytes: int) -> Any:
    table.validate(full=True)
    check_unpacked(num_bytes, path)
    return table


def read_parquet(path: Path, keep: Sequence[str] | None = None) -> Any:
    """A Parquet file as one table, after a look at what it says it unpacks to; of `keep`, the columns that are there."""
    pyarrow()
    with pyarrow("pyarrow.parquet").ParquetFile(path) as file:
        meta = file.metadata
        if meta.num_columns > MAX_COLUMNS:
            raise UserError(f"the file has {meta.num_columns} columns; at most {MAX_COLUMNS} are read")
        wanted = [name for name in file.schema_arrow.names if keep is None or name in keep]
        groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
        columns = [group.column(i) for group in groups for i in range(group.num_columns)]
        declared = sum(max(8 * c.num_values, c.total_uncompressed_size) for c in columns)
        check_unpacked(max(declared, 8 * meta.num_rows * len(wanted)), path)
        table = file.read(columns=wanted)
        return _sound(table, path, table.nbytes)


def arrays_of(table: Any, codes: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Columns of numbers by name, [rows] or [rows, n]; of text, only those in `codes`, each text as a number of its own."""
    arrays = {}
    for name in table.schema.names:
        column = table.column(name)
        if name in codes:
            column = column.combine_chunks().dictionary_encode()
            column = (column.combine_chunks() if hasattr(column, "chunks") else column).indices
        arrays[name] = array_of(column, name)
    return {name: array for name, array in arrays.items() if array is not None}


def array_of(column: Any, name: str) -> np.ndarray | None:
    """[rows] of numbers, or [rows, n] of lists of one length; None for other kinds."""
    types = pyarrow("pyarrow.types")
    if hasattr(column, "chunks"):
        column = pyarrow().concat_arrays(column.chunks) if column.num_chunks else pyarrow().array([], column.type)
    if column.null_count:
        row = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0]
        raise UserError(f"column '{name}' has no value in row {row}; fill it, or leave its row out")
    if types.is_list(column.type) or types.is_large_list(column.type) or types.is_fixed_size_list(column.type):
        inner = array_of(column.flatten(), name)
        if inner is None or inner.ndim != 1 or len(column) == 0:
            return None
        sizes = set(np.unique(np.asarray(pyarrow("pyarrow.compute").list_value_length(column))).tolist())
        if len(sizes) != 1:
            raise UserError(f"column '{name}' holds lists of different lengths")
        return inner.reshape(len(column), -1)
    if types.is_floating(column.type) or types.is_integer(column.type) or types.is_boolean(column.type):
        return column.to_numpy(zero_copy_only=False)
    return None


def rows_of_lists(column: Any) -> list[np.ndarray]:
    """Each row's nested lists as an array: [rows, columns] of an episode."""
    return [_nested(column[i]) for i in range(len(column))]


def _nested(scalar: Any) -> np.ndarray:
    values = getattr(scalar, "values", None)
    if values is None:
        return np.asarray(scalar.as_py())
    if hasattr(values, "storage"):
        values = values.storage
    array = array_of(values, "obs")
    return np.zeros((0, 1)) if array is None else array
