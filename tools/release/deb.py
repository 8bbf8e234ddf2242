"""The Debian package. No tool of Debian is needed to make it."""

import hashlib
import pathlib

from archive import Entry, ar, directory, tar, with_parents, xz, zipped

HERE = pathlib.Path(__file__).resolve().parent
DEFAULTS = "etc/default/kernmill"
# A package has one person or group to turn to; it must have the form of an address.
MAINTAINER = "The kernmill developers <kernmill@invalid>"

CONTROL = """\
Package: kernmill
Version: {version}
Architecture: amd64
Maintainer: {maintainer}
Installed-Size: {size}
Depends: passwd | systemd
Section: science
Priority: optional
Description: runs language models on x86-64 CPUs
 kernmill runs GPT-OSS-20B and other language models on ordinary CPUs. It is
 a compiler with a small runtime: kernels are made for the model and the CPU.
 .
 The package has the program, its man pages and completions, and a service
 for systemd that is neither enabled nor started by the installation.
"""


def files(program, parts):
    """What the package installs. `parts` is what build makes of the program: pages, completions, documents."""
    found = [
        Entry("usr/bin/kernmill", program, 0o755),
        Entry("usr/lib/systemd/system/kernmill.service", (HERE / "files/kernmill.service").read_bytes()),
        Entry("usr/lib/sysusers.d/kernmill.conf", (HERE / "files/kernmill.sysusers").read_bytes()),
        Entry(DEFAULTS, (HERE / "files/kernmill.default").read_bytes()),
        directory("usr/share/doc/kernmill"),
    ]
    found += [Entry(f"usr/share/man/man1/{name}.gz", zipped(data)) for name, data in parts.pages.items()]
    places = {
        "bash": "usr/share/bash-completion/completions/kernmill",
        "zsh": "usr/share/zsh/vendor-completions/_kernmill",
        "fish": "usr/share/fish/vendor_completions.d/kernmill.fish",
    }
    found += [Entry(places[shell], parts.completions[shell]) for shell in places]
    for name, data in parts.documents.items():
        # The names are those that Debian's tools look for.
        if name == "CHANGELOG.md":
            found.append(Entry("usr/share/doc/kernmill/changelog.gz", zipped(data)))
        else:
            found.append(Entry(f"usr/share/doc/kernmill/{name}", data))
    terms = b"Licence: MIT or Apache-2.0, at your choice.\n\n" + parts.documents["LICENSE-MIT"]
    terms += b"\nThe other licence is in LICENSE-APACHE, those of libraries are in THIRD-PARTY-LICENSES.\n"
    found.append(Entry("usr/share/doc/kernmill/copyright", terms))
    return with_parents(found)


def package(version, program, parts, time):
    """The bytes of the package."""
    entries = files(program, parts)
    whole = [entry for entry in entries if entry.data is not None]
    size = sum(len(entry.data) + 1023 >> 10 for entry in whole)
    hashes = [f"{hashlib.md5(e.data).hexdigest()}  {e.name}\n" for e in whole if e.name != DEFAULTS]
    control = CONTROL.format(version=version, maintainer=MAINTAINER, size=size)
    steering = [
        Entry("control", control.encode()),
        Entry("conffiles", f"/{DEFAULTS}\n".encode()),
        Entry("md5sums", "".join(hashes).encode()),
    ]
    scripts = ["postinst", "prerm", "postrm"]
    steering += [Entry(name, (HERE / f"files/{name}").read_bytes(), 0o755) for name in scripts]
    steering.sort(key=lambda entry: entry.name)
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.xz", xz(tar([directory("")] + steering, time, "./"))),
        ("data.tar.xz", xz(tar([directory("")] + entries, time, "./"))),
    ]
    return ar(members, time)
