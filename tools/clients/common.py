"""What all clients are asked, and what they are to answer."""

import asyncio
import json

FEATURES = ("chat", "stream", "tools", "structured", "reasoning", "other")
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Name of the city."}},
    "required": ["city"],
    "additionalProperties": False,
}
FUNCTION = {"name": "get_weather", "description": "Gets the weather of a city.", "parameters": PARAMETERS}
PERSON = {
    "title": "person",
    "description": "A person.",
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
HELLO, WEATHER, JSON = "Hi", "What is the weather in Oslo?", "As JSON: name: Alice, age: 30"
RESULT = json.dumps({"sky": "rainy", "degrees": 7}, separators=(",", ":"))
SUMMARY = "It is rainy in Oslo, 7 degrees."
ALICE = {"name": "Alice", "age": 30}
# One loop for all: clients close their connections in the loop that they were opened in.
LOOP = asyncio.new_event_loop()
# What the models say to "Hi".
GREETINGS = {"gpt-oss-20b": "Hello! One, two, three, four, five.", "nano": "Hello! How can I help you?"}


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"{found!r}, expected {expected!r}")


def some(text):
    if not text:
        raise AssertionError("there is nothing")


def user(text):
    return [{"role": "user", "content": text}]


def person():
    """The class of a person, by pydantic."""
    from pydantic import BaseModel

    class Person(BaseModel):
        name: str
        age: int

    return Person


def get_weather(city: str) -> str:
    """Gets the weather of a city.

    Args:
        city: Name of the city.
    """
    return RESULT


class Client:
    """A client: a method for each of the features that it has. What it imports is `package`, and `beyond` are
    features that the models are too small for, with what they do."""

    beyond = {}

    def __init__(self, args):
        self.base, self.root, self.model = args.base, args.base.removesuffix("/v1"), args.model
        self.greeting, self.args = GREETINGS[args.model], args
