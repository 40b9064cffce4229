"""A saved model as a service over HTTP; needs ``pip install accord[serve]``."""

from accord.service.application import make_app
from accord.service.limits import Limits, read_key
from accord.service.running import serve
from accord.service.service import Service

__all__ = ["Limits", "Service", "make_app", "read_key", "serve"]
