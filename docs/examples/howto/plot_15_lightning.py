"""
Your own network in Lightning
=============================

In a ``LightningModule``, :class:`~accord.losses.BVMLoss` takes the place of
``torch.nn.GaussianNLLLoss``; nothing else changes.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from accord import BVMLoss, Mixture, Normal, Smoothed, plots

try:
    from lightning import LightningModule, Trainer
except ImportError:  # not needed to build this page: the loop below does the same
    LightningModule, Trainer = nn.Module, None

torch.manual_seed(0)
x = torch.cat([torch.linspace(-2, -0.5, 100), torch.linspace(0.5, 2, 100)]).unsqueeze(1)
y = x**3 + 0.5 * torch.randn_like(x)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

# %%
# **The module.** Two outputs per row, a mean and a variance; within 0.5 counts as right.


class Agreeing(LightningModule):
    def __init__(self, tolerance):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 2))
        self.loss = BVMLoss(tolerance=tolerance)

    def forward(self, x):
        mean, raw = self.net(x).split(1, dim=1)
        return mean, nn.functional.softplus(raw)

    def training_step(self, batch, batch_idx):
        x, y = batch
        mean, var = self(x)
        return self.loss(mean, y, var)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.02)


# %%
# **Training**, by Lightning's trainer, or by what it does inside. Five networks make an ensemble,
# whose members disagree where there are no data.


def train(module):
    if Trainer is not None:
        quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        Trainer(max_epochs=60, accelerator="cpu", enable_checkpointing=False, **quiet).fit(
            module, loader
        )
        return module
    optimizer = module.configure_optimizers()
    for _ in range(60):
        for number, batch in enumerate(loader):
            optimizer.zero_grad()
            module.training_step(batch, number).backward()
            optimizer.step()
    return module


members = [train(Agreeing(tolerance=0.5)) for _ in range(5)]

# %%
# **Predicting**: the mixture of the members, smoothed by the tolerance that they were trained with
# (:doc:`/theory`, section 4).

grid = torch.linspace(-2.2, 2.2, 200).unsqueeze(1)
with torch.no_grad():
    means, variances = zip(*(member(grid) for member in members), strict=True)
components = Normal(
    torch.stack(means)[..., 0].numpy(), torch.stack(variances)[..., 0].sqrt().numpy()
)
dist = Mixture(Smoothed(components, 0.5))
ax = plots.envelope(
    x=grid[:, 0].numpy(),
    dist=dist,
    n_std=2,
    truth=grid[:, 0].numpy() ** 3,
    x_data=x[:, 0].numpy(),
    y_data=y[:, 0].numpy(),
)

# %%
# For an ensemble of networks without a loop of your own, with early stopping, restarts and files,
# there is :doc:`ModuleRegressor </own-network>`.
