"""One split from data to answers: what makes the records of this study."""

from accord.paper.shift import controls
from accord.paper.shift.families import case
from accord.paper.shift.methods import predictions
from accord.paper.shift.scores import answer
from accord.paper.study import Answer

__all__ = ["answered"]


def answered(group: str, dataset: str, split: int) -> dict[tuple[str, str], Answer]:
    """Every method's scores; the group's name is the family of shift."""
    if group == controls.GROUP:
        return controls.answered(group, dataset, split)
    rows = case(group, dataset, split)
    return {
        (name, group): answer(rows, dist, seconds=seconds)
        for name, dist, seconds in predictions(rows, seed=split)
    }
