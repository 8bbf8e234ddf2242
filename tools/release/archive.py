"""Archives whose bytes follow from their contents: tar, gzip, xz and Debian's ar."""

import dataclasses
import gzip
import io
import lzma
import pathlib
import tarfile


@dataclasses.dataclass(frozen=True)
class Entry:
    """A file of an archive; without data it is a directory. A name has no slash at its beginning."""

    name: str
    data: bytes | None = None
    mode: int = 0o644
    owner: int = 0


def directory(name, mode=0o755, owner=0):
    return Entry(name, None, mode, owner)


def with_parents(entries):
    """The entries by name, with every directory above them."""
    found = {entry.name: entry for entry in entries}
    for entry in entries:
        for parent in pathlib.PurePosixPath(entry.name).parents:
            if str(parent) != ".":
                found.setdefault(str(parent), directory(str(parent)))
    return [found[name] for name in sorted(found)]


def tar(entries, time, prefix=""):
    """A tar archive of the entries in their order: what `tar --sort=name --numeric-owner` makes of a folder."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for entry in entries:
            info = tarfile.TarInfo(prefix + entry.name)
            info.mode, info.mtime = entry.mode, time
            info.uid = info.gid = entry.owner
            if entry.data is None:
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                info.size = len(entry.data)
                archive.addfile(info, io.BytesIO(entry.data))
    return stream.getvalue()


def zipped(data):
    # Neither a name nor a time goes in.
    return gzip.compress(data, 9, mtime=0)


def xz(data):
    return lzma.compress(data, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, preset=6)


def ar(members, time):
    """An ar archive as Debian's packages are: names of at most 16 bytes, and no table of them."""
    parts = [b"!<arch>\n"]
    for name, data in members:
        if len(name) > 16:
            raise ValueError(f"{name}: the name of a member has at most 16 bytes")
        parts.append(f"{name:<16}{time:<12}{0:<6}{0:<6}{0o100644:<8o}{len(data):<10}`\n".encode())
        parts.append(data + b"\n" * (len(data) % 2))
    return b"".join(parts)
