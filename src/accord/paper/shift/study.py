"""The shift study: how it is set up, shown and judged."""

from accord.paper.shift import controls, work
from accord.paper.shift.families import FAMILIES, MOMENTS, STOCKS
from accord.paper.shift.methods import ACCORD, methods
from accord.paper.study import Group, Model, Protocol, Study

NAME = "shift"


def _groups() -> tuple[Group, ...]:
    found = []
    for family, datasets in FAMILIES.items():
        models = tuple(
            Model(method.name, family, "", {"package": method.package} if method.package else {})
            for method in methods()
        )
        protocol = Protocol(
            "own", datasets, splits=1, quick_splits=0, splits_on={STOCKS: len(MOMENTS)}
        )
        found.append(Group(NAME, family, protocol, models, answered_by=work.answered))
    models = tuple(Model(ACCORD, control, "", {}) for control in controls.CONTROLS)
    protocol = Protocol("own", controls.DATASETS, splits=1, quick_splits=0)
    found.append(Group(NAME, controls.GROUP, protocol, models, answered_by=work.answered))
    return tuple(found)


STUDY = Study(
    name=NAME,
    title="Away from the training data: six families of shift",
    asks="Can the default's uncertainty be trusted on rows unlike its training rows?",
    about="",
    departures=(),
    groups=_groups(),
    tables=lambda results: [],
)
