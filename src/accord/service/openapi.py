"""The description of the service for machines, with the model's own columns and examples."""

import csv
import io
import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from accord.distributions import PARTS
from accord.service.bodies import MEDIA, encode
from accord.service.limits import Limits
from accord.service.model import Served

_ROWS = "#/components/schemas/{model}"
_ERRORS = {
    "400": "the body ended too early",
    "401": "the API key is missing or wrong",
    "413": "too many rows or bytes",
    "415": "a type of body that is not read",
    "422": "rows or options that do not fit; the message names the column",
    "503": "too much is waiting, or the service is stopping",
    "504": "it took too long",
}
_NUMBER = {"type": ["number", "null"]}
_PREDICTION: dict[str, Any] = {
    "type": "object",
    "description": "mean, std, lower and upper; noise, disagreement and distance, the parts of "
    "std (standard deviations); unusual, true for rows unlike those in training. With several "
    "coverages the ends are called lower_50, upper_50 and so on.",
    "properties": {
        **dict.fromkeys(("mean", "std", "lower", "upper", *PARTS), _NUMBER),
        "unusual": {"type": "boolean"},
    },
    "required": ["mean", "std", *PARTS, "unusual"],
    "additionalProperties": _NUMBER,
}
_WARNINGS = {"type": "array", "items": {"type": "string"}}
_PREDICTIONS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "predictions": {"type": "array", "items": {"$ref": "#/components/schemas/Prediction"}},
        "coverage": {"type": "array", "items": {"type": "number"}},
        "warnings": _WARNINGS,
    },
    "required": ["predictions", "coverage", "warnings"],
}
_RECEIPTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "receipts": {"type": "array", "items": {"type": "object"}},
        "coverage": {"type": "number"},
        "warnings": _WARNINGS,
    },
    "required": ["receipts", "coverage", "warnings"],
}
_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}


def describe(app: FastAPI, served: Served, limits: Limits) -> dict[str, Any]:
    """The OpenAPI document of the service with the model in use."""
    document = get_openapi(
        title=f"Accord: {served.records.schema.target}",
        version=app.version,
        description=f"Predictions of {served.file}, with intervals.",
        routes=app.routes,
    )
    rows = served.records.json_schema(template=_ROWS)
    definitions = rows.pop("$defs")
    rows |= {"minItems": 1, "maxItems": limits.rows}
    document["components"] = {
        "schemas": {**definitions, "Rows": rows, "Prediction": _PREDICTION, "Error": _ERROR},
        "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
    }
    for path, methods in document["paths"].items():
        for operation in methods.values():
            _complete(path, operation, served)
    return document


def _complete(path: str, operation: dict[str, Any], served: Served) -> None:
    """Bodies and answers, which the routes themselves do not state."""
    operation["responses"] = {"200": {"description": "fine", **_content(path, served)}}
    if path in ("/health", "/ready"):
        if path == "/ready":
            operation["responses"]["503"] = {"description": "not ready"}
        return
    operation["security"] = [{"key": []}, {}]
    if path in ("/predict", "/explain"):
        operation["requestBody"] = {"required": True, "content": _bodies(served)}
    error = {"content": {MEDIA["json"]: {"schema": {"$ref": "#/components/schemas/Error"}}}}
    known = _ERRORS if "requestBody" in operation else {"401": _ERRORS["401"]}
    for status, about in known.items():
        operation["responses"][status] = {"description": about, **error}


def _bodies(served: Served) -> dict[str, Any]:
    text = io.StringIO()
    writer = csv.DictWriter(text, served.records.schema.names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(served.examples)
    return {
        MEDIA["json"]: {
            "schema": {"$ref": "#/components/schemas/Rows"},
            "example": served.examples,
        },
        MEDIA["csv"]: {"schema": {"type": "string", "minLength": 1}, "example": text.getvalue()},
        MEDIA["arrow"]: {"schema": {"type": "string", "format": "binary", "minLength": 1}},
    }


def _content(path: str, served: Served) -> dict[str, Any]:
    if path == "/metrics":
        return {"content": {"text/plain": {"schema": {"type": "string"}}}}
    if path == "/explain":
        return {"content": {MEDIA["json"]: {"schema": _RECEIPTS}}}
    if path != "/predict":
        return {"content": {MEDIA["json"]: {"schema": {"type": "object"}}}}
    coverages = (served.model.coverage,)
    return {
        "content": {
            MEDIA["json"]: {
                "schema": _PREDICTIONS,
                "example": json.loads(encode(served.answer, "json", coverages)),
            },
            MEDIA["csv"]: {
                "schema": {"type": "string"},
                "example": encode(served.answer, "csv", coverages).decode(),
            },
            MEDIA["arrow"]: {"schema": {"type": "string", "format": "binary"}},
        }
    }
