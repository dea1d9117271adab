"""Office files are zip archives: refused when they would unpack to more than a file may hold."""

import zipfile
from pathlib import Path

from tasks.errors import InputError

MAX_UNPACKED = 2**30  # bytes


def check_archive(path: Path, member: str) -> None:
    """Check that an archive can be opened, holds `member` and stays in bounds.

    Raises:
        InputError: it does not.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            unpacked = sum(entry.file_size for entry in archive.infolist())  # zipfile reads no more than it says here
    except zipfile.BadZipFile as error:
        raise InputError(f"broken archive: {error}") from error
    if member not in names:
        raise InputError(f"its archive lacks {member}; is the file name's ending right?")
    if unpacked > MAX_UNPACKED:
        raise InputError(f"unpacks to {unpacked:,} bytes; at most {MAX_UNPACKED:,} are read")
