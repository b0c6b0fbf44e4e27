"""Functions and types of Python, described as JSON Schema."""
import dataclasses
import enum
import inspect
import typing

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", dict: "object", list: "array"}


def tool(function=None, *, name=None, description=None, parameters=None):
    """Describes a function as a tool: its name, its docstring, and its parameters by their annotations. A plain function
    that is given as a tool is described the same way; use this to say it differently."""

    def describe(function):
        function.parley = _description_of(function, name, description, parameters)
        return function

    return describe if function is None else describe(function)


def described(function):
    return getattr(function, "parley", None) or _description_of(function)


def _description_of(function, name=None, description=None, parameters=None):
    return {
        "name": name or function.__name__,
        "description": description or inspect.getdoc(function) or "",
        "parameters": parameters or _parameters_of(function),
    }


def schema_of(type_):
    """The JSON Schema of a type: a schema is returned as it is; a dataclass, a model of pydantic, or what annotations can say."""
    if isinstance(type_, dict):
        return type_
    if hasattr(type_, "model_json_schema"):
        return type_.model_json_schema()
    if dataclasses.is_dataclass(type_):
        hints = typing.get_type_hints(type_)
        missing = (dataclasses.MISSING, dataclasses.MISSING)
        required = [f.name for f in dataclasses.fields(type_) if (f.default, f.default_factory) == missing]
        return _object({field.name: schema_of(hints[field.name]) for field in dataclasses.fields(type_)}, required)
    if isinstance(type_, type) and issubclass(type_, enum.Enum):
        return {"enum": [one.value for one in type_]}
    origin, inner = typing.get_origin(type_), typing.get_args(type_)
    if origin is list:
        return {"type": "array", "items": schema_of(inner[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(inner[1])}
    if _is_union(origin):
        return {"anyOf": [schema_of(one) for one in inner]}
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if type_ in _SIMPLE:
        return {"type": _SIMPLE[type_]}
    raise TypeError(f"{type_!r} has no JSON Schema: use simple types, a dataclass, a model of pydantic, or give the schema")


def value_of(type_, value):
    """The value as an object of this type; for a schema, and where it does not fit the type, the value as it is."""
    origin, inner = typing.get_origin(type_), typing.get_args(type_)
    if _is_union(origin):
        return next((value_of(one, value) for one in inner if _fits(one, value)), value)
    if hasattr(type_, "model_validate"):
        return type_.model_validate(value)
    if isinstance(type_, type) and dataclasses.is_dataclass(type_):
        hints = typing.get_type_hints(type_)
        return type_(**{name: value_of(hints.get(name), one) for name, one in value.items()})
    if isinstance(type_, type) and issubclass(type_, enum.Enum):
        return type_(value)
    if origin is list and isinstance(value, list):
        return [value_of(inner[0], one) for one in value]
    if origin is dict and isinstance(value, dict):
        return {name: value_of(inner[1], one) for name, one in value.items()}
    return value


def called(function, arguments):
    """What the function returns for these arguments, as objects of the types of its parameters."""
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # a function that is described with `parameters` may have any annotations
        hints = {}
    return function(**{name: value_of(hints.get(name), one) for name, one in arguments.items()})


def _is_union(origin):
    return origin is typing.Union or getattr(origin, "__name__", "") == "UnionType"


def _fits(type_, value):
    """Whether a value of JSON may be one of this type of a union."""
    origin = typing.get_origin(type_)
    if dataclasses.is_dataclass(type_):
        return isinstance(value, dict) and set(schema_of(type_)["required"]) <= set(value) <= set(schema_of(type_)["properties"])
    if isinstance(type_, type) and issubclass(type_, enum.Enum):
        return value in [one.value for one in type_]
    if origin in (list, dict) or type_ in _SIMPLE:
        return isinstance(value, origin or type_)
    return hasattr(type_, "model_validate") and isinstance(value, dict)


def _parameters_of(function):
    hints = typing.get_type_hints(function)
    properties, required = {}, []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"{function.__name__} takes *{name}: name its parameters, or give `parameters`")
        properties[name] = schema_of(hints[name]) if name in hints else {}
        if parameter.default is parameter.empty:
            required.append(name)
    return _object(properties, required)


def _object(properties, required):
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
