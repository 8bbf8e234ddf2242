"""The container image, in the layout of the Open Container Initiative. No daemon is needed to make it."""

import datetime
import hashlib
import json

from archive import Entry, directory, tar, with_parents, zipped

# A number that no distribution gives to anybody. 65534 is nobody, whose files are no one's for sure.
USER = 65532
STATE = "var/lib/kernmill"


def layer(program, documents):
    passwd = f"root:x:0:0::/:/usr/bin/kernmill\nkernmill:x:{USER}:{USER}::/{STATE}:/usr/bin/kernmill\n"
    found = [
        Entry("usr/bin/kernmill", program, 0o755),
        Entry("etc/passwd", passwd.encode()),
        Entry("etc/group", f"root:x:0:\nkernmill:x:{USER}:\n".encode()),
        directory("tmp", 0o1777),
        directory(STATE, 0o700, USER),
    ]
    found += [Entry(f"usr/share/doc/kernmill/{name}", data) for name, data in documents.items()]
    return with_parents(found)


def image(version, commit, program, documents, time):
    """The bytes of a tar archive that holds the layout: `podman load -i` and `skopeo copy oci-archive:` read it."""
    blobs = {}

    def blob(data, kind):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    def form(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    created = datetime.datetime.fromtimestamp(time, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    plain = tar(layer(program, documents), time)
    labels = {
        "org.opencontainers.image.title": "kernmill",
        "org.opencontainers.image.description": "Runs language models on x86-64 CPUs",
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": commit,
        "org.opencontainers.image.created": created,
    }
    config = {
        "created": created,
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "ExposedPorts": {"8080/tcp": {}},
            # The address of the container itself. The server wants --api-keys for it.
            "Env": ["PATH=/usr/bin", "KERNMILL_HOST=0.0.0.0"],
            "Entrypoint": ["/usr/bin/kernmill"],
            "Cmd": ["serve"],
            "WorkingDir": f"/{STATE}",
            "Labels": labels,
            "StopSignal": "SIGTERM",
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(plain).hexdigest()}"]},
        "history": [{"created": created, "created_by": "tools/release/build"}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(form(config), "config.v1+json"),
        "layers": [blob(zipped(plain), "layer.v1.tar+gzip")],
        "annotations": labels,
    }
    described = blob(form(manifest), "manifest.v1+json")
    described["platform"] = {"architecture": "amd64", "os": "linux"}
    # The first is the tag in the layout; the second is what Podman and Docker call the image that they load.
    described["annotations"] = {
        "org.opencontainers.image.ref.name": version,
        "io.containerd.image.name": f"localhost/kernmill:{version}",
    }
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [described]}
    found = [Entry("oci-layout", form({"imageLayoutVersion": "1.0.0"})), Entry("index.json", form(index))]
    found += [Entry(f"blobs/sha256/{digest}", data) for digest, data in blobs.items()]
    return tar(with_parents(found), time)
