"""The shift study, ours: what predictions are worth on rows unlike the training rows.

:mod:`~accord.paper.shift.methods` says which methods, :mod:`~accord.paper.shift.answers` which rows
of which sets, what is measured and what must change nothing;
:mod:`~accord.paper.shift.verdicts` judges it, :mod:`~accord.paper.shift.study` shows it.
"""
