"""Losses behind the call of ``torch.nn.GaussianNLLLoss``: ``loss(input, target, var)``.

A network predicts a mean (``input``) and a variance (``var``) for each target; of classes, their
logits. ``reduction`` is torch's: "none" for one value per element, "mean" or "sum".
"""

from accord.losses.agreement import AgreementLoss, DatasetAgreementLoss, JointAgreementLoss
from accord.losses.bvm import BVMLoss, ClassAgreementLoss, bvm_loss
from accord.losses.likelihoods import GaussianNLLLoss

__all__ = [
    "AgreementLoss",
    "BVMLoss",
    "ClassAgreementLoss",
    "DatasetAgreementLoss",
    "GaussianNLLLoss",
    "JointAgreementLoss",
    "bvm_loss",
]
