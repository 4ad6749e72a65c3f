"""Reads a compose file as Docker does: variables, paths, and what an image's
container would be allowed. Only the keys that deploy/compose/compose.yaml has;
another key is an error, so that no test overlooks one."""

import dataclasses
import pathlib
import re

import yaml

SERVICE_KEYS = {
    "image", "build", "user", "command", "environment", "volumes", "networks",
    "ports", "dns_opt", "tmpfs", "read_only", "cap_drop", "security_opt", "restart",
    "logging", "stop_grace_period", "stop_signal", "healthcheck", "deploy",
    "depends_on"}
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


@dataclasses.dataclass
class Volume:
    source: str  # absolute path, or the name of a volume
    target: str
    read_only: bool


@dataclasses.dataclass
class Port:
    address: str  # "": every address of the machine
    published: int
    target: int


@dataclasses.dataclass
class Service:
    name: str
    image: str
    user: str
    command: list
    environment: dict
    volumes: list
    ports: list
    networks: dict  # name: aliases in it
    dns_options: list
    read_only: bool
    drops_all_capabilities: bool
    no_new_privileges: bool
    stop_signal: str
    stop_seconds: float
    health: list  # command line
    limits: dict


def interpolate(value, variables):
    """`value` with every ${NAME:-default} of its texts replaced."""
    if isinstance(value, dict):
        return {k: interpolate(v, variables) for k, v in value.items()}
    if isinstance(value, list):
        return [interpolate(v, variables) for v in value]
    if not isinstance(value, str):
        return value
    return VARIABLE.sub(
        lambda m: variables.get(m[1]) or m[2] or "", value)


def parse_volume(text, folder):
    source, target, *mode = text.split(":")
    if source.startswith((".", "/")):
        source = str((folder / source).resolve())
    return Volume(source, target, mode == ["ro"])


def parse_port(text):
    *address, published, target = text.split(":")
    return Port("".join(address), int(published), int(target))


def parse_networks(value):
    if isinstance(value, list):
        return {name: [] for name in value}
    return {name: entry["aliases"] for name, entry in value.items()}


def parse_service(name, entry, folder):
    unknown = set(entry) - SERVICE_KEYS
    if unknown:
        raise ValueError(f"service {name}: unknown keys {sorted(unknown)}")
    health = entry["healthcheck"]["test"]
    if health[0] != "CMD":
        raise ValueError(f"service {name}: healthcheck is not CMD")
    deploy = entry.get("deploy", {})
    return Service(
        name=name,
        image=entry["image"],
        user=entry.get("user", ""),
        command=entry.get("command", []),
        environment=entry.get("environment", {}),
        volumes=[parse_volume(v, folder) for v in entry.get("volumes", [])],
        ports=[parse_port(p) for p in entry.get("ports", [])],
        networks=parse_networks(entry["networks"]),
        dns_options=entry.get("dns_opt", []),
        read_only=entry.get("read_only", False),
        drops_all_capabilities=entry.get("cap_drop") == ["ALL"],
        no_new_privileges=(
            "no-new-privileges:true" in entry.get("security_opt", [])),
        stop_signal=entry.get("stop_signal", "SIGTERM"),
        stop_seconds=float(
            entry.get("stop_grace_period", "10s").removesuffix("s")),
        health=health[1:],
        limits=deploy.get("resources", {}).get("limits", {}))


def merged(base, over):
    """Two files together, as Docker puts the second over the first; a service
    that extends another is that one and more."""
    document = {**base, "services": dict(base["services"])}
    for name, entry in over["services"].items():
        extended = entry.get("extends", {}).get("service", name)
        entry = {k: v for k, v in entry.items() if k != "extends"}
        document["services"][name] = _over(
            base["services"].get(extended, {}), entry)
    document["volumes"] = {**base["volumes"], **over.get("volumes", {})}
    return document


def _over(base, over, key=None):
    """Mappings one by one, volumes by where they are mounted; all else is
    replaced."""
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base,
                **{k: _over(base.get(k), v, k) for k, v in over.items()}}
    if key == "volumes" and base:
        return list({v.split(":")[1]: v for v in [*base, *over]}.values())
    return over


def parse(document, folder, variables=None):
    """{name: Service} and {network: is it internal?} of a loaded file."""
    document = interpolate(document, variables or {})
    services = {name: parse_service(name, entry, folder)
                for name, entry in document["services"].items()}
    networks = {name: bool((entry or {}).get("internal"))
                for name, entry in document["networks"].items()}
    return services, networks


def load(path, variables=None):
    path = pathlib.Path(path)
    return parse(yaml.safe_load(path.read_text(encoding="utf-8")),
                 path.parent, variables)


def weaknesses(services, networks, public="haproxy"):
    """What a stranger, or somebody who broke into a container, would like."""
    found = []
    for name, service in services.items():
        user = service.user.split(":")[0]
        for holds, text in (
                (service.read_only, "its root can be written"),
                (service.drops_all_capabilities, "it keeps capabilities"),
                (service.no_new_privileges, "it may gain privileges"),
                (user.isdigit() and int(user) > 0, "it runs as root"),
                ("memory" in service.limits, "its memory has no limit"),
                ("pids" in service.limits, "its processes have no limit"),
                (bool(service.health), "it has no health check")):
            if not holds:
                found.append(f"{name}: {text}")
        for port in service.ports:
            if name != public and port.address != "127.0.0.1":
                found.append(f"{name}: port {port.target} is public")
        if not service.ports and not all(networks[n] for n in
                                         service.networks):
            found.append(f"{name}: it is in a network with a way out")
    return found
