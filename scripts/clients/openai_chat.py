"""OpenAI's SDK for Python as a client of the tests: a request a line, an answer a line (see script_test.go)."""
import json
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0, timeout=240)


def whole(**params):
    got = client.chat.completions.create(**params)
    (choice,) = got.choices
    return {"text": choice.message.content, "finish": choice.finish_reason, **usage(got.usage)}


def streamed(**params):
    text, finish, deltas, used = "", None, 0, None
    for chunk in client.chat.completions.create(stream=True, stream_options={"include_usage": True}, **params):
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            if choice.delta.content:
                text += choice.delta.content
                deltas += 1
        used = chunk.usage or used
    return {"text": text, "finish": finish, "deltas": deltas, **usage(used)}


def usage(u):
    return {"prompt_tokens": u.prompt_tokens, "completion_tokens": u.completion_tokens}


def answer(question):
    if question == "models":
        return [m.id for m in client.models.list()]
    ask = streamed if question["stream"] else whole
    try:
        return ask(model=question["model"], messages=question["messages"], extra_body=question.get("extra"))
    except openai.APIStatusError as e:
        return {"error": {"status": e.status_code, "code": e.code, "param": e.param}}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
