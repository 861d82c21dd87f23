"""Two machines on this one: network namespaces with addresses and names of their own, joined by a cable."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ADDRESSES = {"lb-a": "10.77.0.1", "lb-b": "10.77.0.2"}


def _ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, capture_output=True)


def possible() -> bool:
    """Whether this process may make network namespaces."""
    try:
        _ip("netns add lb-try")
        _ip("netns delete lb-try")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


@contextmanager
def two_machines() -> Iterator[list[str]]:
    """Their names; both are gone afterwards."""
    first, second = ADDRESSES
    try:
        for name in ADDRESSES:
            _ip(f"netns add {name}")
        _ip(f"link add {first} netns {first} type veth peer name {second} netns {second}")
        for name, address in ADDRESSES.items():
            _ip(f"-n {name} address add {address}/24 dev {name}")
            _ip(f"-n {name} link set {name} up")
            _ip(f"-n {name} link set lo up")
        yield [first, second]
    finally:
        for name in ADDRESSES:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def start_on(
    machine: str, command: Sequence[str], place: Path, environment: Mapping[str, str]
) -> subprocess.Popen[str]:
    """Start a command there, with its host name."""
    named = 'hostname "$0" && exec "$@"'
    inside = ["ip", "netns", "exec", machine, "unshare", "--uts", "sh", "-c", named, machine, *command]
    return subprocess.Popen(
        inside,
        cwd=place,
        env={**os.environ, "GLOO_SOCKET_IFNAME": machine, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
