"""Why torch's launcher could not bring the ranks of a training together, in one line."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FAMILIES = ("RendezvousError", "DistError")
_SAME = "the same command on every machine"


def why_no_ranks(error: BaseException | None) -> str:
    """What went wrong and what to do; empty where the error has another cause, such as a rank that failed."""
    chain = list(chain_of(error))
    known = [one for one in chain if _is_known(one)]
    if not known:
        return ""
    said = " ".join(f"{one}" for one in chain)
    if "EADDRINUSE" in said:
        port = re.search(r"port: (\d+)", said)
        named = f"port {port[1]}" if port else "the port"
        return f"{named} is in use on this machine; choose another one on all machines"
    if joined := re.search(r"(\d+)/(\d+) clients joined", said):
        return f"{joined[1]} of {joined[2]} machines joined in time; start {_SAME}, or correct --nnodes"
    if place := re.search(r"connect to \(?\[?([^,\]]+)\]?, (\d+)\)?", said):
        return (
            f"no answer from {place[1]}:{place[2]}; start the training on that machine too, "
            "and check address, port and firewall"
        )
    if any(type(one).__name__ == "RendezvousTimeoutError" for one in known):
        return f"the other machines did not join in time; start {_SAME}, or correct --nnodes, address and port"
    first = next(iter(f"{known[-1]}".splitlines()), "")
    return f"the machines could not meet: {type(known[-1]).__name__}: {first}".rstrip(": ")


def _is_known(error: BaseException) -> bool:
    return any(kind.__name__ in _FAMILIES for kind in type(error).__mro__)


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """An error, then what caused it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
