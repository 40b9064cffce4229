"""How estimators show themselves in notebooks: scikit-learn's picture, and a card below it."""

from collections.abc import Mapping
from html import escape
from typing import Any, Protocol

from sklearn.utils import estimator_html_repr


class Described(Protocol):
    """An estimator that can say what is known about it."""

    def _facts(self) -> Mapping[str, str]:
        """Titles and what is to be said under each; the first is its state."""


def html_card(estimator: Described) -> str:
    """scikit-learn's picture of an estimator, and under it its state and scores."""
    lines = "".join(
        f'<tr><th scope="row" style="{_CELL};font-weight:600">{escape(title)}</th>'
        f'<td style="{_CELL}">{escape(words)}</td></tr>'
        for title, words in estimator._facts().items()
    )
    # Colours are the notebook's own, light or dark.
    table = f'<table style="{_TABLE}"><tbody>{lines}</tbody></table>'
    return f"<div>{_picture(estimator)}{table}</div>"


_TABLE = "margin:.6em 0 0;border-collapse:collapse;font-size:.9em;color:inherit"
_CELL = "text-align:left;padding:2px 18px 2px 0;background:none;border:0;color:inherit"


def _picture(estimator: Any) -> str:
    return str(estimator_html_repr(estimator))
