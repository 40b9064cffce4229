"""
Reading the report
==================

``accord fit`` writes ``report.html`` and ``report.json``. This page shows how to read them, in the
order in which they are written.
"""

from accord import TableRegressor, datasets
from accord.workflows import fit_table

frame = datasets.load("diabetes").frame
model = TableRegressor(effort="quick", random_state=0)
result = fit_table(model, frame, "progression")

# %%
# **The verdict** weighs two questions: do the intervals hold on rows that the models had not seen,
# and are they any use, that is, narrower than without a model?

print(result.verdict.headline, result.verdict.summary, *result.verdict.remarks, sep="\n")

# %%
# **Coverage** at several levels, for usual rows and for the most unusual ones. The unusual rows
# were predicted by models that had seen none of their kind.

for stated, usual, unusual in result.levels():
    print(f"stated {stated:.0%}: usual rows {usual:.1%}, unusual rows {unusual:.1%}")

# %%
# **What the models use**: how far predictions move if a column is shuffled.

for effect in result.effects[:4]:
    print(f"{effect.name}: {effect.mean:.1f} in the mean, {effect.uncertainty:.1f} in σ")

# %%
# Everything in the report is also in ``report.json``, which ``result.to_json()`` gives.

print(*result.to_json(), sep=", ")
