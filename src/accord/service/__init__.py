"""A saved model as a service over HTTP; needs ``pip install accord[serve]``."""

from accord.service.application import make_app
from accord.service.limits import KEY_VARIABLE, Limits, read_key
from accord.service.running import serve
from accord.service.service import Service

__all__ = ["KEY_VARIABLE", "Limits", "Service", "make_app", "read_key", "serve"]
