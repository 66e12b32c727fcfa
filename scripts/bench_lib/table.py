"""Rows to a terminal table and to JSON values. Pure."""

from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby
from statistics import median

from rich.table import Column, Table
from rich.text import Text

from .stats import Measure


def tables(measures: Iterable[Measure]) -> list[Table]:
    """One table for each run of rows that have the same columns."""
    return [_table(list(rows)) for _, rows in groupby(measures, lambda m: tuple(m.samples))]


def _table(rows: list[Measure]) -> Table:
    base, *others = rows[0].samples
    names = (base, *others, "target")
    table = Table("measure", *(Column(name, justify="right") for name in names))
    for row in rows:
        value = median(row.samples[base])
        cells = [Text(f"{_short(value)} {row.unit}{_also(row.unit, value)}")]
        cells += [_cell(row, column) for column in others]
        table.add_row(row.name, *cells, _target(row))
    return table


def _target(row: Measure) -> str:
    if row.limit is not None:
        return f"≤ {_short(row.limit)} {row.unit}"
    return "" if row.target is None else f"≤ {row.target:.2f}"


def _cell(row: Measure, column: str) -> Text:
    ratio = row.ratios[column]
    text = f"{ratio.median:.2f}"
    if row.limit is not None:
        text = f"{_short(median(row.samples[column]))} {row.unit}, {text}"
    if column in row.missed:
        text += " missed"
    if ratio.low != ratio.high:
        text += f"\n{ratio.low:.2f}-{ratio.high:.2f}"
    return Text(text, style="bold red" if column in row.missed else "")


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _also(unit: str, value: float) -> str:
    return f"\n{_short(1e3 / value)} MB/s" if unit == "ns/byte" else ""


def as_json(measure: Measure) -> dict[str, object]:
    """All of a row, raw samples included."""
    ratios = {column: asdict(ratio) for column, ratio in measure.ratios.items()}
    return {**asdict(measure), "ratios": ratios, "missed": measure.missed}
