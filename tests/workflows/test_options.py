"""The jobs behind the commands describe each of their options in place."""

import inspect
import re
from collections.abc import Callable

import pytest

from accord import workflows

JOBS = [
    workflows.compare_methods,
    workflows.evaluate_table,
    workflows.export_dataset,
    workflows.export_demo,
    workflows.export_model,
    workflows.fit_table,
    workflows.monitor_table,
    workflows.predict_table,
    workflows.validate_predictions,
]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_every_option_is_described_in_the_order_of_the_signature(
    job: Callable[..., object],
) -> None:
    block = re.search(r"^Args:\n((?:    .*\n?)*)", inspect.getdoc(job) or "", flags=re.M)
    assert block is not None
    lines = re.findall(r"^    (\w[\w, ]*):", block[1], flags=re.M)
    assert [name for line in lines for name in line.split(", ")] == list(
        inspect.signature(job).parameters
    )
