"""Modules that are loaded when they are used: the same modules, only later."""

import subprocess
import sys

CODE = """
import sys
from accord.cli.postponed import postpone

postpone("scipy.stats", "torch._meta_registrations")
import scipy.stats
import sklearn.base
import torch

assert "scipy.stats._stats_py" not in sys.modules, "loaded before anybody asked"
assert "torch._decomp" not in sys.modules, "loaded before anybody asked"
early = scipy.stats
{use}
assert "scipy.stats._stats_py" in sys.modules
import scipy.stats as late

assert type(late).__name__ == "module"
assert early.norm is late.norm and early.norm.cdf(0.0) == 0.5
"""


def run(use: str) -> None:
    subprocess.run([sys.executable, "-c", CODE.format(use=use)], check=True)


def test_a_name_loads_the_module() -> None:
    run("from scipy.stats import rankdata")


def test_a_module_inside_loads_it() -> None:
    run("import scipy.stats.qmc")


def test_what_is_there_already_stays() -> None:
    code = (
        "import json.decoder, sys; from accord.cli.postponed import postpone; "
        "postpone('json.decoder'); assert sys.modules['json.decoder'] is json.decoder"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
