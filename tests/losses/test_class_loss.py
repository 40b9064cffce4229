"""Agreement of classes: the double sum, its limits, and what training on a rule gains."""

import numpy as np
import pytest
import torch
from torch import Tensor

from accord.agreement import AtLeast, Exact, Rule, Within
from accord.losses import ClassAgreementLoss


def drawn(n: int, n_classes: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    logits = 3 * torch.randn(n, n_classes, generator=generator, dtype=torch.float64)
    return logits, torch.randint(n_classes, (n,), generator=generator)


def confusable(predicted: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Each class is itself, and 3 may be taken for 0, though not 0 for 3."""
    return np.asarray((predicted == true) | ((predicted == 3) & (true == 0)))


RULES = {"within": Within(1), "at least": AtLeast(), "callable": Rule.from_callable(confusable)}


class TestProbability:
    def test_exact_agreement_is_the_cross_entropy(self) -> None:
        logits, target = drawn(50, 4)
        for loss in (ClassAgreementLoss(4), ClassAgreementLoss(4, Exact(), reduction="mean")):
            torch.testing.assert_close(
                loss(logits, target), torch.nn.functional.cross_entropy(logits, target)
            )

    @pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
    def test_it_is_the_double_sum(self, rule: Rule) -> None:
        """Known and uncertain classes, pair by pair in Python."""
        logits, target = drawn(20, 4)
        soft = torch.softmax(drawn(20, 4)[0].flip(0), -1)
        loss = ClassAgreementLoss(4, rule, reduction="none")
        for given, known in ((target, torch.eye(4).double()[target]), (soft, soft)):
            found = loss(logits, given)
            for row in range(20):
                model = torch.softmax(logits[row], -1)
                total = sum(
                    float(model[a] * known[row, b])
                    for a in range(4)
                    for b in range(4)
                    if bool(rule(float(a), float(b)))
                )
                assert float(found[row]) == pytest.approx(-np.log(total), rel=1e-12, abs=1e-14)

    def test_classes_may_be_any_numbers(self) -> None:
        logits, target = drawn(20, 3)
        apart = ClassAgreementLoss(3, Within(1), classes=[10, 20, 30])
        assert apart(logits, target) == ClassAgreementLoss(3)(logits, target)
        assert apart.accepts.equal(torch.eye(3, dtype=torch.bool))

    def test_it_holds_far_out(self) -> None:
        loss = ClassAgreementLoss(3, Within(1), reduction="none")
        far = loss(torch.tensor([[0.0, -400.0, 800.0]]).double(), torch.tensor([0]))
        assert float(far) == pytest.approx(800.0, rel=1e-12)

    @pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
    def test_gradient(self, rule: Rule) -> None:
        logits, target = drawn(6, 4)
        loss = ClassAgreementLoss(4, rule, reduction="sum")
        assert torch.autograd.gradcheck(lambda x: loss(x, target), logits.requires_grad_())

    def test_leading_axes(self) -> None:
        logits, target = drawn(12, 4)
        loss = ClassAgreementLoss(4, Within(1), reduction="none")
        stacked = loss(logits.reshape(3, 4, 4), target.reshape(3, 4))
        torch.testing.assert_close(stacked.flatten(), loss(logits, target))


def test_training_on_the_rule_is_rewarded_under_the_rule() -> None:
    """Five noisy grades along a curve, and a model that is too simple to follow it."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 4_000)
    grade = np.clip(np.round(2 + 2 * np.sin(3 * x) + 0.7 * rng.normal(size=len(x))), 0, 4)
    features = torch.from_numpy(np.stack([x, np.ones_like(x)], 1)).float()
    target = torch.from_numpy(grade).long()
    train, test = slice(0, 2_000), slice(2_000, None)

    def trained(loss: ClassAgreementLoss) -> Tensor:
        weights = torch.zeros(2, 5, requires_grad=True)
        optimizer = torch.optim.Adam([weights], lr=0.1)
        for _ in range(200):
            optimizer.zero_grad()
            loss(features[train] @ weights, target[train]).backward()
            optimizer.step()
        return (features[test] @ weights).detach()

    within = ClassAgreementLoss(5, Within(1))
    by_rule, exact = trained(within), trained(ClassAgreementLoss(5))
    assert within(by_rule, target[test]) < within(exact, target[test]) - 0.05
    passes = [(abs(x.argmax(-1) - target[test]) <= 1).float().mean() for x in (by_rule, exact)]
    assert passes[0] > passes[1] + 0.03


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ClassAgreementLoss(3, Within([1.0, 2.0, 1.0])), "the same for all rows"),
        (lambda: ClassAgreementLoss(3, Within(1) & ~Within(1)), "got none for class 0"),
        (lambda: ClassAgreementLoss(3, classes=[1, 2]), "each of 3 outputs"),
        (lambda: ClassAgreementLoss(3)(torch.zeros(2, 4), torch.zeros(2).long()), "3 outputs"),
        (lambda: ClassAgreementLoss(3)(torch.zeros(2, 3), torch.tensor([0, 3])), "from 0 to 2"),
        (lambda: ClassAgreementLoss(3)(torch.zeros(2, 3), torch.zeros(2)), "class numbers"),
        (lambda: ClassAgreementLoss(3)(torch.zeros(2, 3), torch.zeros(2, 3)), "add up to 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(make: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()  # type: ignore[operator]
