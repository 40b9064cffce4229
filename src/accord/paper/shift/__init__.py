"""The shift study, ours: what predictions are worth on rows unlike the training rows.

:mod:`~accord.paper.shift.families` says which rows of which sets,
:mod:`~accord.paper.shift.methods` which methods, :mod:`~accord.paper.shift.answers` what is
measured and what must change nothing; :mod:`~accord.paper.shift.verdicts` judges it,
:mod:`~accord.paper.shift.study` shows it.
"""
