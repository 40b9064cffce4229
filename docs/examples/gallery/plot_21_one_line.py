"""
One line: model.plot()
======================

Four questions about a model, answered by rows that it was not trained on: ``model.plot()``.
"""

from accord import TableRegressor, datasets

frame = datasets.load("diabetes").frame
model = TableRegressor(effort="quick", random_state=0).fit(frame, "progression")
fig = model.plot()
