"""
Your own network in Lightning
=============================

In a ``LightningModule``, :class:`~accord.losses.BVMLoss` takes the place of
``torch.nn.GaussianNLLLoss``; nothing else changes.
"""

import logging
import warnings

import torch
from lightning import LightningModule, Trainer, seed_everything
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from accord import BVMLoss, Mixture, Normal, Smoothed, plots

seed_everything(0, verbose=False)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)  # without its notes
warnings.filterwarnings("ignore", module="lightning")
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
        loss = self.loss(mean, y, var)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.02)


# %%
# **Training.** Five networks make an ensemble, whose members disagree most beyond the data.


def train(module):
    trainer = Trainer(
        max_epochs=40,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=1,
    )
    trainer.fit(module, loader)
    return module


members = [train(Agreeing(tolerance=0.5)).eval() for _ in range(5)]

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
print(f"loss of the last batch: {members[-1].trainer.callback_metrics['loss']:.2f}")
for place in (145, 100, 199):  # among the data, between them, beyond them
    of = f"{dist.epistemic[place]:.2f} of {dist.std[place]:.2f}"
    print(f"x = {grid[place, 0]:.1f}: disagreement {of}")
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
