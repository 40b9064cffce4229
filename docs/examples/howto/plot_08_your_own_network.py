"""
Your own torch network
======================

:class:`~accord.losses.BVMLoss` has the call of ``torch.nn.GaussianNLLLoss``: input, target,
variance. It is a module, so it goes wherever that one goes, also into the ``training_step`` of a
Lightning module.
"""

import torch
from torch import nn

from accord import BVMLoss, Normal, Smoothed, plots

torch.manual_seed(0)
x = torch.linspace(-2, 2, 200).unsqueeze(1)
y = x**3 + torch.randn(200, 1)

# %%
# A network with two outputs, and a loss: within 1 counts as right.

net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 2))
loss_function = BVMLoss(tolerance=1.0)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(800):
    mean, raw = net(x).split(1, dim=1)
    loss = loss_function(mean, y, nn.functional.softplus(raw))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"mean probability of agreement: {torch.exp(-loss):.2f}")

# %%
# **Predict with the smoothed density.** Training has made the *smoothed* model match the data; the
# σ of the network alone is too small by what the tolerance stands for (:doc:`/theory`, section 4).

with torch.no_grad():
    mean, raw = net(x).split(1, dim=1)
model = Normal(mean[:, 0].numpy(), nn.functional.softplus(raw[:, 0]).sqrt().numpy())
dist = Smoothed(model, 1.0)
print(f"σ of the network {model.std.mean():.2f}, smoothed {dist.std.mean():.2f}, truth 1.00")
ax = plots.envelope(
    x=x[:, 0].numpy(), dist=dist, n_std=2, x_data=x[:, 0].numpy(), y_data=y[:, 0].numpy()
)

# %%
# **Another rule**: :class:`~accord.losses.AgreementLoss` takes any rule, for instance
# ``AgreementLoss(Within(0.5) & AtLeast())``.
