"""Rules from words: what a rule prints is read back as the same rule."""

import pytest

from accord.agreement import (
    AreaAtMost,
    Asymmetric,
    AtLeast,
    AtMost,
    ErrorInside,
    Exact,
    Inside,
    MeanAbsoluteErrorAtMost,
    MeanErrorWithin,
    Share,
    ShareWithin,
    SquaredErrorAtMost,
    Within,
    WithinRelative,
    parse_rule,
)

RULES = [
    Exact(),
    Within(0.5),
    Within(1e-7),
    WithinRelative(0.05),
    Asymmetric(below=0.1, above=0.3),
    Asymmetric(below=float("inf"), above=0.3),
    AtLeast(),
    AtMost(),
    Inside(-1, 2.5),
    ErrorInside(0.1, 0.3),
    ErrorInside(-float("inf"), -0.3),
    Inside(-float("inf"), 0),
    Within(0.5) & AtLeast(),
    (Within(0.5) | AtLeast()) & ~(Inside(0, 1) & AtMost()),
    Within(1) & (AtLeast() & ~Inside(0, 1)),
    Within(1) | (AtLeast() | AtMost()),
    MeanAbsoluteErrorAtMost(0.2),
    MeanErrorWithin(0.2) & ShareWithin(0.5, share=0.95),
    ~(SquaredErrorAtMost(3) | AreaAtMost(0.1)) & Share(Within(0.5) & AtLeast(), 0.5),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_what_a_rule_prints_is_read_back(rule) -> None:
    assert parse_rule(str(rule)) == rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("within 5%", WithinRelative(0.05)),
        ("WITHIN ±.5", Within(0.5)),
        ("within +0.3 −0.1", Asymmetric(below=0.1, above=0.3)),
        ("at least", AtLeast()),
        ("exactly", Exact()),
        ("inside [1, 2]", Inside(1, 2)),
        ("within 0.5 and at least", Within(0.5) & AtLeast()),
        ("within 1 or within 2 and at most", Within(1) | (Within(2) & AtMost())),
        ("99.5% within 1e-3", ShareWithin(1e-3, share=0.995)),
    ],
)
def test_ways_to_write_it(text: str, rule) -> None:
    assert parse_rule(text) == rule


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "something is missing at the end"),
        ("near 0.5", "not understood from 'near 0.5'"),
        ("within", "something is missing at the end"),
        ("within x", "not understood from 'x'"),
        ("within 0.5 0.6", "not understood from '0.6'"),
        ("within -0.5", "something is missing at the end"),
        ("within -0.5 -0.6", "one '-' and one '\\+'"),
        ("(within 0.5", "bracket is not closed"),
        ("within 0.5 and", "something is missing at the end"),
        ("within 0.5 and mean error within 1", "beside one over all rows"),
        ("95% mean error within 1", "a share is asked of a rule for single rows"),
        ("inside 2 1", "lower must not exceed upper"),
        ("150% within 1", "share must lie between 0 and 1, got 1.5"),
    ],
)
def test_errors_say_what_was_not_understood(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_rule(text)


def test_not_a_text() -> None:
    with pytest.raises(TypeError, match=r"rule must be a text, got 0\.5"):
        parse_rule(0.5)
