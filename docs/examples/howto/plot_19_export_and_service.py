"""
Out of Python: a file and a service
===================================

A fitted model can be exported as one ONNX file, which other languages run, or answer requests over
HTTP. Needs the extras ``export`` and ``serve``.
"""

import json
import socket
import tempfile
import threading
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import onnxruntime
import pandas as pd
import uvicorn

from accord import TableRegressor
from accord.service import Service, make_app

rng = np.random.default_rng(0)
flats = pd.DataFrame({"area": rng.uniform(40, 120, 150)})
flats["rent"] = 200 + 9 * flats["area"] + rng.normal(0, 40, 150)
model = TableRegressor(effort="quick", random_state=0).fit(flats, "rent")
folder = Path(tempfile.mkdtemp())

# %%
# **A file.** The graph takes numbers and gives quantiles, the same as Python's.

model.export(folder / "rent.onnx", levels=[0.05, 0.5, 0.95])
session = onnxruntime.InferenceSession(folder / "rent.onnx")
(quantiles,) = session.run(["y_quantiles"], {"numbers": np.array([[70.0]])})
print("graph: ", quantiles.round(1))
new = pd.DataFrame({"area": [70.0]})
print("Python:", model.predict_quantiles(new, [0.05, 0.5, 0.95]).to_numpy().round(1))

# %%
# **A service.** On a server, ``accord serve rent.accord`` is all that is needed. This page starts
# the same application beside itself, and asks it for one row.

model.save(folder / "rent.accord")
listener = socket.create_server(("127.0.0.1", 0))  # any port that is free
app = make_app(Service(folder / "rent.accord"))
server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
thread = threading.Thread(target=server.run, args=([listener],))
thread.start()

address = f"http://127.0.0.1:{listener.getsockname()[1]}/predict?coverage=0.9"
row = json.dumps([{"area": 70.0}]).encode()
with urlopen(Request(address, row, {"Content-Type": "application/json"})) as answer:
    found = json.load(answer)["predictions"][0]
print({name: value if name == "unusual" else round(value, 1) for name, value in found.items()})
server.should_exit = True
thread.join()

# %%
# All inputs and outputs of the file are in :doc:`/export`; keys, limits and metrics of the service
# in :doc:`/service`.
