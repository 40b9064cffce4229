"""Rules from words, for the command line: what a rule prints, this reads.

rule  = rule "or" rule | rule "and" rule | "not" rule | "(" rule ")"
      | "exact" | "within" number | "within" number "%" | "within" "-"number "+"number
      | "at least" | "at most" | "inside" number number
      | share "%" rule | "mean absolute error at most" number | "mean error within" number
      | "squared error at most" number | "area at most" number
"""

import re
from typing import NoReturn

from accord.agreement.dataset_rules import (
    AreaAtMost,
    DatasetRule,
    Limit,
    MeanAbsoluteErrorAtMost,
    MeanErrorWithin,
    Share,
    SquaredErrorAtMost,
)
from accord.agreement.rules import (
    Asymmetric,
    AtLeast,
    AtMost,
    ErrorInside,
    Exact,
    Inside,
    Rule,
    Within,
    WithinRelative,
)

_NUMBER = r"[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|inf)"
_TOKEN = re.compile(rf"\s*({_NUMBER}%?|[a-z]+|[()]|\S)")
_EXAMPLES = (
    "Write for instance 'within 0.5', 'within 5%', 'at least', 'inside 1 2', "
    "'within 0.5 and at least', or over all rows '95% within 0.5 and mean error within 0.1'."
)
_LIMITS = (MeanAbsoluteErrorAtMost, MeanErrorWithin, SquaredErrorAtMost, AreaAtMost)


def parse_rule(text: str) -> Rule | DatasetRule:
    """The rule that a text describes.

    Example:
        >>> parse_rule("within 0.5 and at least")
        Within(0.5) & AtLeast()
        >>> parse_rule("within 5%")
        WithinRelative(0.05)
        >>> str(parse_rule("95% within 0.5 and mean absolute error at most 0.2"))
        '95% within 0.5 and mean absolute error at most 0.2'
        >>> parse_rule("near 0.5")
        Traceback (most recent call last):
        ValueError: rule must be written in the known words, got 'near 0.5' (not understood from
        'near 0.5'). Write for instance 'within 0.5', ...
    """
    if not isinstance(text, str):
        raise TypeError(f"rule must be a text, got {text!r}. {_EXAMPLES}")
    reader = _Reader(text)
    rule = reader.any_of()
    if reader.next is not None:
        reader.fail()
    return rule


class _Reader:
    """Recursive descent over the tokens, one method per level of the grammar."""

    def __init__(self, text: str) -> None:
        # Brackets and commas of an interval, and the sign of a tolerance, are decoration.
        plain = re.sub(r"[\[\],;±]", " ", text.lower().replace("−", "-"))
        self._text = text
        self._tokens = _TOKEN.findall(plain)
        self._place = 0

    @property
    def next(self) -> str | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def fail(self, reason: str = "") -> NoReturn:
        rest = " ".join(self._tokens[self._place :])
        where = f"not understood from {rest!r}" if rest else "something is missing at the end"
        raise ValueError(
            f"rule must be written in the known words, got {self._text!r} ({reason or where}). "
            f"{_EXAMPLES}"
        )

    def any_of(self) -> Rule | DatasetRule:
        rule = self.all_of()
        while self.take("or"):
            rule = self.combined(rule, self.all_of(), "or")
        return rule

    def all_of(self) -> Rule | DatasetRule:
        rule = self.single()
        while self.take("and"):
            rule = self.combined(rule, self.single(), "and")
        return rule

    def combined(
        self, left: Rule | DatasetRule, right: Rule | DatasetRule, word: str
    ) -> Rule | DatasetRule:
        if isinstance(left, Rule) and isinstance(right, Rule):
            return left & right if word == "and" else left | right
        if isinstance(left, DatasetRule) and isinstance(right, DatasetRule):
            return left & right if word == "and" else left | right
        return self.fail("a rule for single rows beside one over all rows; write '100% ...'")

    def single(self) -> Rule | DatasetRule:
        if self.take("not"):
            return ~self.single()
        if self.take("("):
            rule = self.any_of()
            if not self.take(")"):
                self.fail("a bracket is not closed")
            return rule
        if self.next is not None and self.next.endswith("%"):
            return self.share()
        return self.limit() or self.row_rule()

    def share(self) -> Share:
        share = self.number(percent=True)
        rule = self.single()
        if isinstance(rule, DatasetRule):
            self.fail("a share is asked of a rule for single rows")
        return Share(rule, share)

    def limit(self) -> Limit | None:
        for limit in _LIMITS:
            if self.take(*limit._name.split()):
                return limit(self.number())
        return None

    def row_rule(self) -> Rule:
        if self.take("exact") or self.take("exactly"):
            return Exact()
        if self.take("inside"):
            return Inside(self.number(), self.number())
        if self.take("error", "inside"):
            return ErrorInside(self.number(), self.number())
        if self.take("within"):
            return self.within()
        for words, rule in ((("at", "least"), AtLeast()), (("at", "most"), AtMost())):
            if self.take(*words):
                self.take("the", "datum")
                return rule
        return self.fail()

    def within(self) -> Rule:
        signed = (self.next or "").startswith(("+", "-"))
        if (self.next or "").endswith("%"):
            relative = WithinRelative(self.number(percent=True))
            self.take("of", "the", "datum")
            return relative
        first = self.number()
        if not signed:
            return Within(first)
        second = self.number()
        if min(first, second) > 0 or max(first, second) < 0:
            self.fail("unequal tolerances need one '-' and one '+' number")
        return Asymmetric(below=-min(first, second), above=max(first, second))

    def number(self, *, percent: bool = False) -> float:
        token = self.next
        wanted = rf"{_NUMBER}%" if percent else _NUMBER
        if token is None or not re.fullmatch(wanted, token):
            self.fail()
        self._place += 1
        return float(token.rstrip("%")) / (100 if percent else 1)

    def take(self, *words: str) -> bool:
        """Move past the words if they come next."""
        found = tuple(self._tokens[self._place : self._place + len(words)]) == words
        self._place += len(words) if found else 0
        return found
