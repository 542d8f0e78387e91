"""The parse helpers of OpenAI's SDK for Python, with Pydantic: answers and arguments come back as objects of a class."""
from enum import Enum
from typing import Optional

import openai
from pydantic import BaseModel, Field

from lines import refused, serve, url

client = openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=240)


class Kind(str, Enum):
    person = "person"
    company = "company"


class Place(BaseModel):
    city: str = Field(max_length=20)
    zip: Optional[str] = Field(pattern=r"^[0-9]{5}$")


class Record(BaseModel):
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)
    score: float = Field(ge=0, le=1)
    kind: Kind
    place: Place
    friends: list[Place] = Field(max_length=2)


class GetWeather(BaseModel):
    """Get the current weather in a city."""
    city: str = Field(max_length=20)


def answer(question):
    messages, model = question["messages"], question["model"]
    try:
        if question.get("tools"):
            got = client.chat.completions.parse(
                model=model, messages=messages, tool_choice="required", parallel_tool_calls=False,
                tools=[openai.pydantic_function_tool(GetWeather, name="get_weather")])
            (call,) = got.choices[0].message.tool_calls
            parsed = call.function.parsed_arguments
            assert isinstance(parsed, GetWeather), parsed
        elif question["stream"]:
            with client.chat.completions.stream(model=model, messages=messages, response_format=Record) as stream:
                parsed = stream.get_final_completion().choices[0].message.parsed
            assert isinstance(parsed, Record), parsed
        elif question.get("responses"):
            parsed = client.responses.parse(model=model, input=messages, text_format=Record).output_parsed
            assert isinstance(parsed, Record), parsed
        else:
            parsed = client.chat.completions.parse(model=model, messages=messages, response_format=Record).choices[0].message.parsed
            assert isinstance(parsed, Record), parsed
    except openai.APIStatusError as e:
        return refused(e.status_code, e.body)
    return parsed.model_dump(mode="json")


serve(lambda: [m.id for m in client.models.list()], answer)
