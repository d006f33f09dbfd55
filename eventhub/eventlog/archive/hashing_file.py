"""A file whose content is hashed while it is written. Plain module."""

import hashlib
from typing import IO, Any

from eventhub.eventlog.errors import ArchiveUnavailable


class HashingFile:
    """A file for writing that computes the digest and the size of its content. Parquet's writer
    never seeks.
    """

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, data: Any) -> int:
        self._digest.update(data)
        self.size += len(data)
        try:
            self._file.write(data)
        except OSError as error:
            raise ArchiveUnavailable(f"The archive cannot be written: {error}") from error
        return len(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """Do nothing; the code that opened the file closes it."""

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()
