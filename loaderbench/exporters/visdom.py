"""Visdom: an environment on a running server, with windows for the verdict, rates, rounds and heat maps.

Live: a window for each metric, with a curve for each loader.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from loaderbench.errors import MissingError, UsageError
from loaderbench.exporters.exporter import Exporter, LivePoint

if TYPE_CHECKING:
    from loaderbench.exporters.table import Row
    from loaderbench.result import Run

_PORTS = {"http": 8097, "https": 443}
_HOME = "http://localhost"
_RATE = "samples_per_s"
_FRAME = '<div style="color: #1f2328; padding: 8px 16px">{}</div>'


def _write(run: Run, out: str) -> str:
    import numpy as np

    from loaderbench.exporters.table import rows, run_name
    from loaderbench.report.heat_map_picture import heat_map_pictures

    client, place = _connected(out, run_name(run.record), f"--out {out}")
    all_rows = rows(run.record)
    opts = {"title": "Verdict", "width": 1000, "height": 700}
    client.text(_FRAME.format(run._repr_html_()), win="verdict", opts=opts)
    _draw(client, "rates", "Samples/s (95%)", _bars(all_rows), "")
    _draw(client, "rounds", "Samples/s by round", _lines(all_rows), "round")
    for metric, picture in heat_map_pictures(run.document):
        channels_first = np.asarray(picture).transpose(2, 0, 1)
        size = {"width": picture.width // 2, "height": picture.height // 2 + 40}
        client.image(channels_first, win=f"heat map {metric.id}", opts={"title": f"Heat map: {metric.label}", **size})
    client.save([client.env])
    return place


def _connected(out: str, run_name: str, flag: str) -> tuple[Any, str]:
    """Connect to the server and environment that `out` names, and return the client and the environment's address.

    `out` is `http://host:8097/env/NAME`, or a part of it. Error messages begin with the flag.
    """
    from visdom import Visdom

    for library in ("visdom", "urllib3"):
        logging.getLogger(library).setLevel(logging.ERROR)
    url = urlsplit(out if "://" in out else f"{_HOME}/env/{out}")
    try:
        port = url.port or _PORTS[url.scheme]
    except (KeyError, ValueError):
        raise UsageError(f"{flag}: expected a Visdom server such as {_HOME}:{_PORTS['http']}") from None
    base, _, env = url.path.partition("/env/")
    base, env = base.rstrip("/"), unquote(env) or run_name
    server = f"{url.scheme}://{url.hostname}"
    try:
        client = Visdom(
            server=server, port=port, base_url=base or "/", env=env, raise_exceptions=True, use_incoming_socket=False
        )
        answers = client.check_connection()
    except ConnectionError:
        answers = False
    if not answers:
        raise MissingError(
            f"{flag}: no Visdom server at {server}:{port}{base}; start one: python -m visdom.server -port {port}"
        )
    return client, f"{server}:{port}{base}/env/{env}"


def _draw(client: Any, win: str, title: str, traces: Sequence[dict[str, Any]], x_title: str) -> None:
    across = {"title": {"text": x_title}, "type": "category", "automargin": True}
    layout = {
        "title": {"text": title},
        "showlegend": len(traces) > 1,
        "legend": {"orientation": "h", "y": -0.2},
        "xaxis": across,
        "yaxis": {"rangemode": "tozero"},
    }
    opts = {"title": title, "width": 640, "height": 460}
    client._send({"data": traces, "layout": layout, "win": win, "eid": client.env, "opts": opts})


def _bars(found: Sequence[Row]) -> list[dict[str, Any]]:
    """A bar for each configuration's rate, with its interval."""
    own = [row for row in found if _RATE in row.numbers]
    up, down = ([_arm(row, end) for row in own] for end in ("_hi", "_lo"))
    interval = {"type": "data", "symmetric": False, "array": up, "arrayminus": down}
    names, rates = [row.name.replace(",", "<br>") for row in own], [row.numbers[_RATE] for row in own]
    return [{"type": "bar", "x": names, "y": rates, "error_y": interval}]


def _arm(row: Row, end: str) -> float | None:
    """The distance from the estimate to one end of the interval; `None` without an interval."""
    bound = row.numbers.get(f"{_RATE}{end}")
    return None if bound is None else abs(bound - row.numbers[_RATE])


def _lines(found: Sequence[Row]) -> list[dict[str, Any]]:
    """A line for each configuration: its rate in each round."""
    return [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": row.name,
            "x": [one.number for one in row.rounds if _RATE in one.numbers],
            "y": [one.numbers[_RATE] for one in row.rounds if _RATE in one.numbers],
        }
        for row in found
    ]


class _LiveWindows:
    """An environment with a window for each metric."""

    def __init__(self, out: str, run: str) -> None:
        self._client, _ = _connected(out, run, f"--live visdom={out}")

    def write(self, points: Sequence[LivePoint]) -> None:
        """Add a point to each curve."""
        import numpy as np

        from loaderbench.records.metrics import BY_ID

        self._client.get_env_list()  # raises if the server is gone; `line` would also print the error to stdout
        for point in points:
            for name, value in point.numbers.items():
                titles = {"title": BY_ID[name].label, "xlabel": "batches", "ylabel": BY_ID[name].unit}
                axes = {"plotly": {"yaxis": {"rangemode": "tozero"}, "legend": {"orientation": "h", "y": -0.25}}}
                self._client.line(
                    np.array([value]), np.array([point.batches]), win=name, name=point.series, update="append",
                    opts={**titles, "showlegend": True, "layoutopts": axes, "marginleft": 70},
                )  # fmt: skip

    def close(self) -> None:
        """Save the environment on the server."""
        self._client.save([self._client.env])


EXPORTER = Exporter(
    _write,
    package="visdom",
    libraries=("visdom",),
    live=lambda out, _, run: _LiveWindows(out, run),
    takes_address=True,
)
