"""Messages of OpenAI's chat API as a conversation of the native half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ._kernmill import InputError, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Message = Mapping[str, Any]

_EFFORTS = {
    "none": "none",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
}


def is_conversation(messages: Sequence[Any]) -> bool:
    """Whether these are the messages of one conversation, not several conversations."""
    return not messages or isinstance(messages[0], Mapping)


def conversation(
    messages: Sequence[Message],
    tools: Iterable[Mapping[str, Any]] | None,
    reasoning_effort: str | None,
    date: str | None,
) -> str:
    """The conversation as JSON."""
    import json

    if not messages:
        raise InputError("messages is empty, expected at least one")
    effort = "medium" if reasoning_effort is None else _EFFORTS.get(reasoning_effort)
    if effort is None:
        expected = ", ".join(_EFFORTS)
        raise InputError(f"reasoning_effort is {reasoning_effort!r}, expected one of {expected}")
    items: list[dict[str, Any]] = []
    called: dict[str, str] = {}
    for at, message in enumerate(messages):
        _add(items, called, message, f"messages[{at}]")
    value = {"items": items, "tools": _tools(tools), "effort": effort, "date": date}
    return json.dumps(value)


def _add(items: list[dict[str, Any]], called: dict[str, str], message: Message, place: str) -> None:
    if not isinstance(message, Mapping):
        raise InputError(f"{place} is {type(message).__name__}, expected a mapping with role and content")
    role = message.get("role")
    if role in ("system", "developer"):
        items.append({"instructions": _needed(message, place)})
    elif role == "user":
        items.append({"user": {"name": message.get("name"), "text": _needed(message, place)}})
    elif role == "assistant":
        _add_answer(items, called, message, place)
    elif role == "tool":
        call = message.get("tool_call_id")
        name = called.get(call) if isinstance(call, str) else None
        if name is None:
            raise InputError(f"{place}.tool_call_id is {call!r}, which no tool call before it has")
        items.append({"output": {"id": call, "name": name, "text": _content(message, place) or ""}})
    else:
        raise InputError(f"{place}.role is {role!r}, expected system, developer, user, assistant or tool")


def _add_answer(items: list[dict[str, Any]], called: dict[str, str], message: Message, place: str) -> None:
    reasoning = message.get("reasoning") or message.get("reasoning_content")
    if reasoning:
        items.append({"reasoning": reasoning})
    text = _content(message, place)
    calls = message.get("tool_calls") or []
    if text is None and not calls:
        raise InputError(f"{place}.content is missing")
    if text or not calls:
        # What is said before a call is for the user, and is not the answer yet.
        items.append({"preamble" if calls else "answer": text or ""})
    for at, call in enumerate(calls):
        where = f"{place}.tool_calls[{at}]"
        try:
            id_, name = call["id"], call["function"]["name"]
            arguments = call["function"].get("arguments", "{}")
        except (KeyError, TypeError) as error:
            raise InputError(f"{where} has no {error}, expected id and function.name") from None
        if not isinstance(arguments, str):
            import json

            arguments = json.dumps(arguments)
        items.append({"call": {"id": id_, "name": name, "arguments": arguments}})
        called[id_] = name


def _needed(message: Message, place: str) -> str:
    text = _content(message, place)
    if text is None:
        raise InputError(f"{place}.content is missing")
    return text


def _content(message: Message, place: str) -> str | None:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        raise InputError(f"{place}.content is {type(content).__name__}, expected a text or a list of parts")
    texts = []
    for at, part in enumerate(content):
        where = f"{place}.content[{at}]"
        if not isinstance(part, Mapping):
            raise InputError(f"{where} is {type(part).__name__}, expected a mapping with type and text")
        kind = part.get("type", "text")
        if kind not in ("text", "input_text", "output_text"):
            raise Unsupported(f"{where}.type is {kind!r}: models here read text only")
        if not isinstance(part.get("text"), str):
            raise InputError(f"{where}.text is missing")
        texts.append(part["text"])
    return "".join(texts)


def _tools(tools: Iterable[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
    found = []
    for at, tool in enumerate(tools or ()):
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise InputError(f"tools[{at}].function.name is missing")
        found.append(
            {
                "name": function["name"],
                "description": function.get("description") or "",
                "parameters": function.get("parameters") or None,
                "strict": bool(function.get("strict")),
            }
        )
    names = [tool["name"] for tool in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"tools has two functions with the name {name!r}")
    return found
