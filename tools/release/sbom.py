"""What other people's code is in a program or library: a bill of materials (CycloneDX), and texts of licences."""

import datetime
import json
import pathlib
import re
import subprocess
import tomllib
import uuid

from compiler import TARGET

# What the server's page has of others, by the names of its folders: the package of npm, and its licence.
EMBEDDED = {"katex": ("katex", "MIT AND OFL-1.1"), "highlight": ("@highlightjs/cdn-assets", "BSD-3-Clause")}
LICENCE = re.compile(r"(LICEN[CS]E|COPYING|NOTICE|COPYRIGHT|UNLICENSE)", re.IGNORECASE)


def metadata(root, features=()):
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", TARGET]
    command += ["--features", ",".join(features)]
    return json.loads(subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE).stdout)


def is_built(need):
    """Whether a need is more than one of tests. What builds the program can put something into it, too."""
    return any(kind["kind"] in (None, "build") for kind in need["dep_kinds"])


def packages(found, program):
    """Packages of the program by name and version, and the ids that each needs. Tests' needs are left out."""
    by_id = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    main = next(package for package in by_id.values() if package["name"] == program)
    needs, open = {}, [main["id"]]
    while open:
        id = open.pop()
        if id not in needs:
            needs[id] = sorted(need["pkg"] for need in nodes[id]["deps"] if is_built(need))
            open += needs[id]
    order = sorted(needs, key=lambda id: (by_id[id]["name"], by_id[id]["version"]))
    return main, [by_id[id] for id in order], needs


def name(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def expression(package):
    """A licence as SPDX writes it: some packages still have a slash for OR."""
    return (package["license"] or "").replace("/", " OR ").replace("  ", " ")


def embedded(all):
    """Libraries in the page of the server, where it is among the packages: what a bill says, and their folders."""
    for server in (package for package in all if package["name"] == "kernmill-server"):
        page = pathlib.Path(server["manifest_path"]).parent / "page"
        for folder in sorted(path for path in page.iterdir() if path.is_dir()):
            part, version = folder.name.rsplit("-", 1)
            npm, licence = EMBEDDED[part]
            purl = f"pkg:npm/{npm.replace('@', '%40')}@{version}"
            made = {"type": "library", "bom-ref": purl, "name": npm, "version": version}
            yield {**made, "licenses": [{"expression": licence}], "purl": purl}, folder


def component(package, sums):
    kind = "application" if package["name"] == "kernmill-cli" else "library"
    made = {"type": kind, "bom-ref": name(package), "name": package["name"], "version": package["version"]}
    if package["license"]:
        made["licenses"] = [{"expression": expression(package)}]
    made["purl"] = name(package)
    checksum = sums.get((package["name"], package["version"]))
    if checksum:
        made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return made


def bill(found, program, root, commit, time):
    """The bill of materials of a package whose workspace is in `root`, as a text of JSON."""
    lock = tomllib.loads((root / "Cargo.lock").read_text())["package"]
    sums = {(package["name"], package["version"]): package.get("checksum") for package in lock}
    main, all, needs = packages(found, program)
    names = {package["id"]: name(package) for package in all}
    page = [part for part, _ in embedded(all)]

    def also(package):
        return [part["bom-ref"] for part in page] if package["name"] == "kernmill-server" else []

    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        # It follows from the commit: the same sources have the same bill.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{program}:{commit}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(time, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": component(main, sums),
        },
        "components": [component(package, sums) for package in all if package is not main] + page,
        "dependencies": [
            {"ref": names[package["id"]], "dependsOn": sorted([names[id] for id in needs[package["id"]]] + also(package))}
            for package in all
        ] + [{"ref": part["bom-ref"], "dependsOn": []} for part in page],
    }
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def licences(found, program):
    """The texts of all licences of libraries, each once, with the packages that it comes with."""
    texts = {}
    _, all, _ = packages(found, program)
    lines = [f"Libraries of other people that are in {program}, with their licences.", ""]
    for package in all:
        if package["source"] is None:
            continue
        lines.append(f"{package['name']} {package['version']}: {expression(package)}")
        folder = pathlib.Path(package["manifest_path"]).parent
        files = sorted(file for file in folder.iterdir() if file.is_file() and LICENCE.match(file.name))
        if not files:
            origin = ", ".join(package["authors"]) or package["repository"] or f"crates.io/crates/{package['name']}"
            lines.append(f"    It comes without the text. Its origin: {origin}.")
        for file in files:
            text = file.read_text(errors="replace").strip()
            texts.setdefault(text, []).append(f"{package['name']} {package['version']}")
    for part, folder in embedded(all):
        lines.append(f"{part['name']} {part['version']}: {part['licenses'][0]['expression']}")
        for file in sorted(folder.rglob("LICENSE")):
            texts.setdefault(file.read_text().strip(), []).append(f"{part['name']} {part['version']}")
    for text, names in sorted(texts.items(), key=lambda item: item[1]):
        lines += ["", "=" * 80, ", ".join(names), "=" * 80, "", text]
    return "\n".join(lines) + "\n"
