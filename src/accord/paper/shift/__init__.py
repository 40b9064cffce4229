"""The shift study, ours: what predictions are worth on rows unlike the training rows.

:mod:`~accord.paper.shift.families` says which rows, :mod:`~accord.paper.shift.methods` which
methods, :mod:`~accord.paper.shift.scores` what is measured, :mod:`~accord.paper.shift.controls`
what must change nothing, and :mod:`~accord.paper.shift.study` shows and judges it.
"""
