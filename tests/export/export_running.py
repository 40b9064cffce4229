"""Running exported files, and comparing them with the model that they came from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime")

LEVELS = (0.01, 0.05, 0.5, 0.95, 0.99)
Arrays = dict[str, np.ndarray]


def answers(path: Path, inputs: Mapping[str, np.ndarray]) -> Arrays:
    """The outputs of a file by name."""
    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))


def difference(model: Any, rows: Any, path: Path, spread: float) -> tuple[float, Arrays]:
    """The largest difference between Python and the exported file, and what the file answers.

    Its unit is the target's spread plus the row's own deviation, which is many spreads far away.
    """
    model.export(path, levels=LEVELS)
    by_columns = hasattr(model, "export_inputs")
    found = answers(path, model.export_inputs(rows) if by_columns else {"X": rows})
    dist = model.predict_dist(rows)
    pairs = {"y_mean": dist.mean, "y_std": dist.std, "y_quantiles": dist.quantile(LEVELS)}
    parts = {f"y_{part}": getattr(dist, part) for part in ("noise", "disagreement", "distance")}
    pairs |= {name: values for name, values in parts.items() if name in found}
    unit = (spread + np.asarray(dist.std))[:, None]
    apart = [
        np.abs(found[name] - values).reshape(len(unit), -1) / unit for name, values in pairs.items()
    ]
    # a difference that is not a number is a failure, too
    return float(np.max([np.max(each) for each in apart])), found
