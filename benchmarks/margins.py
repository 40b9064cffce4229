"""How near the tests' numeric tolerances are to what this machine gives.

    python benchmarks/margins.py tests/distributions tests/losses

Runs the tests and prints those in which the largest error was more than a third of what is allowed:
on another CPU they may fail. Other CPUs are stood in for by the variables ATEN_CPU_CAPABILITY
(default, avx2), MKL_CBWR (COMPATIBLE), ONEDNN_MAX_CPU_ISA (SSE41) and OMP_NUM_THREADS.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

_TIGHT = 1 / 3


class Margins:
    """A plugin that notes the largest share of its tolerance that each test uses."""

    def __init__(self) -> None:
        self.used: dict[str, float] = {}
        self.test = ""

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.test = item.nodeid

    def note(self, actual: Any, expected: Any, rtol: float, atol: Any) -> None:
        """Keep the largest |actual − expected| / (atol + rtol |expected|)."""
        a, b, slack = (
            np.array(v.tolist() if torch.is_tensor(v) else v) for v in (actual, expected, atol)
        )
        with np.errstate(all="ignore"):
            error, allowed = np.abs(a - b), slack + rtol * np.abs(b)
            share = np.where(np.isfinite(error) & (allowed > 0), error / allowed, 0.0)
        self.used[self.test] = max(self.used.get(self.test, 0.0), share.max(initial=0.0))

    def of_numpy(self, check: Callable[..., None]) -> Callable[..., None]:
        def noted(
            actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 0, **more: Any
        ) -> None:
            self.note(actual, desired, rtol, atol)
            check(actual, desired, rtol=rtol, atol=atol, **more)

        return noted

    def of_torch(self, check: Callable[..., None]) -> Callable[..., None]:
        defaults = {torch.float64: (1e-7, 1e-7), torch.float32: (1.3e-6, 1e-5)}

        def noted(actual: Any, expected: Any, **more: Any) -> None:
            usual = defaults.get(getattr(actual, "dtype", None), (1e-3, 1e-5))
            rtol, atol = more.get("rtol", usual[0]), more.get("atol", usual[1])
            values = (torch.as_tensor(v).detach().double().numpy() for v in (actual, expected))
            self.note(*values, rtol, atol)
            check(actual, expected, **more)

        return noted


def main(arguments: list[str]) -> int:
    """Run the tests, then list the tight ones."""
    margins = Margins()
    np.testing.assert_allclose = margins.of_numpy(np.testing.assert_allclose)
    torch.testing.assert_close = margins.of_torch(torch.testing.assert_close)
    code = pytest.main(["-q", "-p", "no:cacheprovider", "-m", "not slow", *arguments], [margins])
    tight = {test: used for test, used in margins.used.items() if used > _TIGHT}
    for test, used in sorted(tight.items(), key=lambda pair: -pair[1]):
        print(f"{used:6.2f}  {test}")
    print(f"{len(tight)} of {len(margins.used)} tests use more than a third of their tolerance.")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
