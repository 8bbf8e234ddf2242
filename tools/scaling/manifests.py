"""Checks of the Kubernetes manifests: their fields by Kubernetes' own schemas, and what schemas cannot see."""

import json
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# The first version whose pods may sleep before they end, and the last one that there are schemas of.
VERSIONS = ["1.30", "1.37"]
# Seconds that a server takes besides its grace, at most.
MARGIN = 10
# What the gateway in a cluster has in place of addresses.
ELSEWHERE = {"host", "prometheus-host", "api-key", "tenant-api-key", "selector"}


def check(folder, kernmill):
    """What is wrong with them."""
    from gateways import environment, run

    python = environment(folder, "manifests") / "python"
    wrong = json.loads(run([python, __file__]))
    command = json.loads(run([python, __file__, "arguments"]))
    # Arguments are parsed up to the `--help` behind them, which then does nothing but print.
    parsed = subprocess.run([kernmill, *command, "--help"], capture_output=True, text=True)
    if parsed.returncode != 0:
        wrong.append(f"kernmill.yaml: {' '.join(command)}: {parsed.stderr.strip()}")
    return wrong + service_errors(folder, kernmill)


def service_errors(folder, kernmill):
    """What systemd says of the service, if it is there."""
    if not shutil.which("systemd-analyze"):
        return []
    text = (HERE / "kernmill.service").read_text()
    service = folder / "kernmill.service"
    service.write_text(text.replace("/usr/local/bin/kernmill", str(kernmill)))
    verified = subprocess.run(["systemd-analyze", "verify", service], capture_output=True, text=True)
    # Others' units may be wrong.
    wrong = [line for line in verified.stderr.splitlines() if "kernmill" in line]
    command = text.split("ExecStart=/usr/local/bin/kernmill ", 1)[1].replace("\\\n", " ").split("\n", 1)[0].split()
    parsed = subprocess.run([kernmill, *command, "--help"], capture_output=True, text=True)
    if parsed.returncode != 0:
        wrong.append(parsed.stderr.strip())
    stop = int(re.search(r"TimeoutStopSec=(\d+)", text)[1])
    if stop < int(command[command.index("--grace") + 1]) + MARGIN:
        wrong.append(f"TimeoutStopSec={stop} would cut a drain")
    return [f"kernmill.service: {one}" for one in wrong]


def options(arguments):
    """Options of a command: the last value of each."""
    pairs = (word[2:].partition("=") for word in arguments if word.startswith("--"))
    return {name: value for name, _, value in pairs}


def script_options():
    """Options of smg.sh with the values that it has by itself."""
    command = re.sub(r"\\\n", " ", (HERE / "smg.sh").read_text()).split("exec smg launch", 1)[1]
    command = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", command).replace('"', "")
    return options(word for word in command.split() if not word.startswith("$"))


def documents():
    import yaml

    found = {}
    for path in sorted((HERE / "k8s").glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            found[(path.name, document["kind"], document["metadata"]["name"])] = document
    return found


def schema_errors(document):
    """What Kubernetes' schemas say of a document, with unknown fields refused."""
    import kubernetes_validate

    wrong = []
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            place = ".".join(map(str, error.path))
            wrong.append(f"Kubernetes {version}: {place}: {error.message[:200]}")
    return wrong


def pod_errors(deployment):
    """What does not go together in a pod."""
    template = deployment["spec"]["template"]
    pod, labels = template["spec"], template["metadata"]["labels"]
    container = pod["containers"][0]
    wrong = []
    if deployment["spec"]["selector"]["matchLabels"].items() - labels.items():
        wrong.append("the selector is none of the pod's labels")
    ports = {port["name"] for port in container["ports"]}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        if probe in container and container[probe]["httpGet"]["port"] not in ports:
            wrong.append(f"{probe} asks a port that is not there")
    mounts = {mount["name"] for mount in container.get("volumeMounts", [])}
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    if mounts != volumes:
        wrong.append(f"volumes {sorted(volumes)} and mounts {sorted(mounts)} are not the same")
    return wrong


def server_errors(deployment):
    """What does not go together in a server's options and its pod."""
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]
    has = options(container["args"])
    wrong = []
    if int(has["port"]) != container["ports"][0]["containerPort"]:
        wrong.append("--port is not the container's port")
    paths = {probe: container[probe]["httpGet"]["path"] for probe in ("readinessProbe", "livenessProbe")}
    if paths != {"readinessProbe": "/ready", "livenessProbe": "/health"}:
        wrong.append(f"probes ask {paths}")
    sleep = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    least = sleep + int(has["grace"]) + MARGIN
    if pod["terminationGracePeriodSeconds"] < least:
        wrong.append(f"terminationGracePeriodSeconds is less than {least}: a drain would be cut")
    resources = container["resources"]
    if resources["limits"] != resources["requests"] or resources["limits"]["cpu"] != has["threads"]:
        wrong.append("--threads, requests and limits are not the same")
    places = [mount["mountPath"] for mount in container["volumeMounts"]]
    for option in ("api-keys", "kv-disk", "session-dir"):
        if not any(has[option].startswith(f"{place}/") for place in places):
            wrong.append(f"--{option} {has[option]} is on no volume")
    return wrong


def all_errors():
    found = documents()
    wrong = []
    for (file, kind, name), document in found.items():
        errors = schema_errors(document)
        if kind == "Deployment":
            errors += pod_errors(document)
        wrong += [f"{file}: {kind} {name}: {error}" for error in errors]
    server = found[("kernmill.yaml", "Deployment", "kernmill")]
    gateway = found[("gateway.yaml", "Deployment", "kernmill-gateway")]
    wrong += [f"kernmill.yaml: {error}" for error in server_errors(server)]
    labels = {name: one["spec"]["template"]["metadata"]["labels"] for name, one in [("s", server), ("g", gateway)]}
    for (file, kind, name), document in found.items():
        selector = document["spec"].get("selector") if kind in ("Service", "PodDisruptionBudget") else None
        selector = selector and selector.get("matchLabels", selector)
        if selector and not any(selector.items() <= one.items() for one in labels.values()):
            wrong.append(f"{file}: {kind} {name} selects nothing")
    # The gateway in a cluster is the one that is tested outside of it.
    inside = options(gateway["spec"]["template"]["spec"]["containers"][0]["args"])
    outside = script_options()
    for option in sorted((inside.keys() | outside.keys()) - ELSEWHERE):
        if not option.startswith("service-discovery") and inside.get(option) != outside.get(option):
            wrong.append(f"gateway.yaml: --{option} is {inside.get(option)}, in smg.sh {outside.get(option)}")
    # A check that refuses nothing would not be one.
    server["spec"]["replica"] = 2
    if not schema_errors(server):
        wrong.append("a field that does not exist was not refused")
    return wrong


if __name__ == "__main__":
    if sys.argv[1:] == ["arguments"]:
        print(json.dumps(documents()[("kernmill.yaml", "Deployment", "kernmill")]["spec"]["template"]["spec"]["containers"][0]["args"]))
    else:
        print(json.dumps(all_errors()))
