"""The results page, and the README's table of results, from what a reproduction has written.

python -m accord.paper.page README.md results
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from accord._files import write_whole
from accord._wording import duration
from accord.datasets import info
from accord.paper.claims import RULE, JudgedClaim, counted
from accord.paper.results import Results
from accord.paper.study import AS_PRINTED, LOCAL, SMOOTHED, Source, published, published_datasets
from accord.paper.tables import ShownNumber, formatted, markdown_table, numbers_in

if TYPE_CHECKING:
    from accord.paper.reproduction import Reproduction, StudyResult


BEYOND = (
    "What the paper does not say or do: ten times its rate, the other heads for the stocks, ways "
    "to choose ε, and accord's local tolerance and cosine recipe. Every choice that a run makes, "
    "it makes on training rows. The form of the local tolerance itself was settled with splits of "
    "Boston, Concrete, Energy, Wine and Yacht in view, so that the other four sets test it."
)


class Row(NamedTuple):
    """A claim of the paper and its verdict under each predictive, as printed and smoothed."""

    where: str
    claim: str
    verdicts: tuple[JudgedClaim | None, JudgedClaim | None]


def claim_grid(verdicts: Sequence[JudgedClaim]) -> list[Row]:
    """The paper's claims down, {as printed, smoothed} across."""
    found: dict[tuple[str, str], dict[str, JudgedClaim]] = {}
    for verdict in verdicts:
        found.setdefault((verdict.where, verdict.claim), {})[verdict.predictive] = verdict
    return [
        Row(where, claim, (own.get(AS_PRINTED.name), own.get(SMOOTHED.name)))
        for (where, claim), own in found.items()
    ]


class ClaimGroup(NamedTuple):
    """What a study asks, how many of its claims hold under each predictive, and its claims."""

    where: str
    asks: str
    holding: tuple[str, str]
    rows: list[Row]


def claim_groups(parts: Sequence["StudyResult"]) -> list[ClaimGroup]:
    """The grid of the paper's claims, study by study."""
    groups = []
    for part in parts:
        if not part.is_ours:
            printed, smoothed = (_holding(verdicts) for verdicts in _by_predictive(part))
            rows = claim_grid(part.claims)
            groups.append(ClaimGroup(_where(part), part.study.asks, (printed, smoothed), rows))
    return groups


def group_sentences(parts: Sequence["StudyResult"]) -> list[str]:
    """Per study, what it asks and how many of its claims hold under each predictive.

    For example "Table 3. Is BVM better than Deep Ensembles on outliers? As printed, 0 of 2 claims
    hold (1 undecided); smoothed, 2 of 2."
    """
    sentences = []
    for part in parts:
        answer = f"{_holding(part.beyond, 'claims hold')}."
        if not part.is_ours:
            printed, smoothed = _by_predictive(part)
            answer = (
                f"As printed, {_holding(printed, 'claims hold')}; smoothed, {_holding(smoothed)}."
            )
        sentences.append(f"{_where(part)}. {part.study.asks} {answer}")
    return sentences


def _where(part: "StudyResult") -> str:
    return part.study.title.split(":")[0]


def _by_predictive(part: "StudyResult") -> list[list[JudgedClaim]]:
    return [
        [verdict for verdict in part.claims if verdict.predictive == predictive.name]
        for predictive in (AS_PRINTED, SMOOTHED)
    ]


def _holding(verdicts: Sequence[JudgedClaim], words: str = "") -> str:
    """How many hold, and in parentheses what is open."""
    counts = counted(verdicts)
    still = [f"{counts[o]} {o}" for o in ("undecided", "not run") if o in counts]
    parts = [f"{counts.get('holds', 0)} of {len(verdicts)}", words]
    return " ".join([part for part in parts if part] + ([f"({', '.join(still)})"] if still else []))


def markdown_page(outcome: "Reproduction") -> str:
    """Verdicts at a glance, then study by study, then what it took."""
    claims = ["## The paper's claims", _grid(claim_grid(outcome.claims)), RULE]
    beyond = ["## Beyond the paper", BEYOND, _evidence(outcome.beyond_the_paper)]
    parts = [
        f"# {outcome.title}",
        "\n".join(f"- {sentence}" for sentence in group_sentences(outcome.parts)),
        *(claims if outcome.claims else []),
        *(
            "## What was found" if text[3:] == outcome.title else text
            for part in outcome.parts
            for text in _study(part)
        ),
        *(beyond if outcome.beyond_the_paper else []),
        "## How it was made",
        _costs(outcome),
        *(_made(studies, run) for studies, run in outcome.made),
    ]
    if outcome.failed:
        parts.append("Failed, and so missing above: " + ", ".join(outcome.failed) + ".")
    return "\n\n".join(parts) + "\n"


def _grid(rows: Sequence[Row]) -> str:
    lines = (
        [row.where, row.claim, *(f"**{v.outcome}**" if v else "–" for v in row.verdicts)]
        for row in rows
    )
    return markdown_table(["where", "claim", AS_PRINTED.name, SMOOTHED.name], lines)


def _study(part: "StudyResult") -> list[str]:
    departures = ([d.paper, d.ours, d.why] for d in part.study.departures)
    tables = [table.to_markdown().rstrip() for table in part.tables]
    evidence = ["Evidence for the verdicts:", _evidence(part.claims or part.beyond)]
    figures = [f"![{figure.words}](figures/{figure.name}.svg)" for figure in part.figures]
    opening = [f"## {part.study.title}", part.study.about]
    if part.is_ours:  # the answer first, then how it came about
        terms = "\n".join(f"- {term}" for term in part.study.terms)
        return [*opening, *evidence, *figures, "### How it is set up", terms, *tables]
    table = markdown_table(["paper says", "we do", "why"], departures)
    return [*opening, table, *tables, *evidence, *figures]


def _evidence(verdicts: Sequence[JudgedClaim]) -> str:
    lines = ([v.where, v.claim, v.predictive, f"**{v.outcome}**", v.evidence] for v in verdicts)
    return markdown_table(["where", "claim", "tried with", "verdict", "evidence"], lines)


def _costs(outcome: "Reproduction") -> str:
    lines = ([c.study, f"{c.networks:,}", duration(c.seconds)] for c in outcome.costs)
    return markdown_table(["study", "networks", "time of one core"], lines)


def _made(studies: Sequence[str], run: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    return (
        f"By `accord reproduce` on {run['date']}, {run['protocol']} protocol, code "
        f"{run['code']}: {', '.join(studies)}. {versions}."
    )


START = "<!-- results: made by accord.paper.page -->"
END = "<!-- end of results -->"
# heading, file, source, whether the published number of Table 3 is shown below
_COLUMNS: tuple[tuple[str, str, Source, bool], ...] = (
    ("Deep Ensembles", "table3", Source("table3", "Deep Ensembles", "printed"), True),
    ("BVM as printed", "table3", Source("table3", "BVM", "printed", AS_PRINTED.name), True),
    ("BVM smoothed", "table3", Source("table3", "BVM", "printed", SMOOTHED.name), False),
    ("BVM local", "table3-ours", Source("table3", "BVM", "printed", LOCAL.name), False),
    (
        "random rows: Deep Ensembles",
        "table1-nll-rate",
        Source("table1", "Deep Ensembles", "rate 3e-3"),
        False,
    ),
    (
        "random rows: BVM local",
        "table1-nll-ours",
        Source("table1", "BVM", "rate 3e-3", LOCAL.name),
        False,
    ),
)


def results_table(folder: Path) -> str:
    """Test NLL on outliers and on random rows, as Markdown; in italics, what the paper prints.

    All are of the Gaussian with the ensemble's mean and variance, as the paper's are.

    Args:
        folder: Where :func:`~accord.paper.reproduce` has written tables 1 and 3.
    """
    files = {name: (folder / "tables" / f"{name}.csv") for _, name, *_ in _COLUMNS}
    numbers = {n: Results((), numbers_in(p.read_text("utf-8"))) for n, p in files.items()}
    lines = []
    for dataset in published_datasets("table3"):
        row = []
        for _, name, source, beside in _COLUMNS:
            found = formatted(numbers[name].estimate(dataset, source, "nll"), 2)
            figure = published("table3", dataset, "nll", source.method) if beside else None
            row.append(ShownNumber(found, False, formatted(figure) if figure else "").to_markdown())
        lines.append([info(dataset).title, *row])
    head = ["dataset", *(heading for heading, *_ in _COLUMNS)]
    return markdown_table(head, lines, numbers=True)


_COUNTS = (
    "Of #, # hold as printed, # do not and # are undecided; smoothed by the tolerance #, # and #."
)


def with_counts(text: str, folder: Path) -> str:
    """The text with the numbers of its sentence on the paper's claims as they are in the folder."""
    claims = json.loads((folder / "summary.json").read_text("utf-8"))["claims"]
    by_outcome = [
        [claims[predictive.name].get(o, 0) for o in ("holds", "does not hold", "undecided")]
        for predictive in (AS_PRINTED, SMOOTHED)
    ]
    numbers = iter([sum(by_outcome[0]), *by_outcome[0], *by_outcome[1]])
    words = (re.escape(word).replace(r"\#", r"\d+") for word in _COUNTS.split())

    def counted_again(found: re.Match[str]) -> str:
        return re.sub(r"\d+", lambda _: str(next(numbers)), found[0])

    return re.sub(r"\s+".join(words), counted_again, text, count=1)


def update_readme(readme: Path, folder: Path) -> None:
    """Put the table between the README's two markers, and the counts of verdicts into its words."""
    text = readme.read_text(encoding="utf-8")
    if START not in text or END not in text:
        raise ValueError(f"{readme} must hold the lines {START!r} and {END!r}, got none of them.")
    before, rest = text.split(START, 1)
    _, after = rest.split(END, 1)
    whole = f"{before}{START}\n{results_table(folder)}\n{END}{after}"
    write_whole(readme, with_counts(whole, folder))


if __name__ == "__main__":
    update_readme(*(Path(argument) for argument in sys.argv[1:]))
