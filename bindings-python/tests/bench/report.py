"""The table and the file."""

import json
import os
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parents[3] / "target"))


class Report:
    """All figures so far, which end up in a file of the target directory."""

    def __init__(self, file):
        self._file = TARGET / file
        self._rows = []

    def section(self, title):
        print(f"\n{title:<62} {'ours':>10} {'baseline':>10} {'':<8} {'ratio':>7}  target", flush=True)

    def compare(self, name, ours, baseline, unit, at_most=None, at_least=None):
        """A figure beside its baseline. The bound is one of their ratio."""
        self._row(name, ours, baseline, unit, ours / baseline, at_most, at_least, ours / baseline)

    def note(self, name, ours, unit, at_most=None, at_least=None):
        """A figure that has no baseline. The bound is one of the figure."""
        self._row(name, ours, None, unit, None, at_most, at_least, ours)

    def _row(self, name, ours, baseline, unit, ratio, at_most, at_least, judged):
        target = met = None
        if at_most is not None:
            target, met = f"<= {at_most:g}", judged <= at_most
        if at_least is not None:
            target, met = f">= {at_least:g}", judged >= at_least
        columns = [f"{'-' if value is None else format(value, '.3f'):>10}" for value in (ours, baseline)]
        verdict = "" if target is None else f"{target}  {'met' if met else 'MISSED'}"
        shown = "-" if ratio is None else f"{ratio:.3f}"
        print(f"{name:<62} {' '.join(columns)} {unit:<8} {shown:>7}  {verdict}".rstrip(), flush=True)
        self._rows.append(dict(
            name=name, ours=ours, baseline=baseline, unit=unit, ratio=ratio, target=target, met=met))

    def finish(self):
        self._file.write_text(json.dumps(self._rows, indent=2) + "\n")
        missed = sum(row["met"] is False for row in self._rows)
        print(f"\n{missed} of {sum(row['met'] is not None for row in self._rows)} targets missed; written to {self._file}")


def percentile(samples, part):
    """The value below which this part of the samples lies."""
    return sorted(samples)[round((len(samples) - 1) * part)]


def jain(shares):
    """Jain's fairness index: 1 if all are equal, 1/n if one has everything."""
    return sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))
