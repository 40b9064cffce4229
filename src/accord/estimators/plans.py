"""Training plans: what an estimator wants trained, and how several are carried out together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from accord.networks import Architecture
from accord.training import Listener, Objective, Settings, Task, Trained, train


@dataclass(frozen=True)
class Plan:
    """Tasks to train as part of one stack, and what to do with the trained members.

    ``finish`` may return a plan that follows from what was learnt.
    """

    tasks: list[Task]
    architecture: Architecture
    objective: Objective
    settings: Settings
    finish: Callable[[list[Trained]], "Plan | None"]


def carry_out(plans: Sequence[Plan], *, listener: Listener | None = None) -> None:
    """Train the plans, alike ones as one stack, and then those that follow from them."""
    while plans:
        following: list[Plan | None] = []
        for group in _groups(plans):
            tasks = [task for plan in group for task in plan.tasks]
            first = group[0]
            trained = iter(
                train(tasks, first.architecture, first.objective, first.settings, listener=listener)
            )
            following += [plan.finish([next(trained) for _ in plan.tasks]) for plan in group]
        plans = [plan for plan in following if plan is not None]


def _groups(plans: Sequence[Plan]) -> list[list[Plan]]:
    groups: list[list[Plan]] = []
    for plan in plans:
        for group in groups:
            if _alike(plan, group[0]):
                group.append(plan)
                break
        else:
            groups.append([plan])
    return groups


def _alike(one: Plan, other: Plan) -> bool:
    return (
        one.architecture == other.architecture
        and one.objective == other.objective
        and one.settings == other.settings
        and list(one.tasks[0].columns) == list(other.tasks[0].columns)
        and (one.tasks[0].adversarial_step is None) == (other.tasks[0].adversarial_step is None)
    )
