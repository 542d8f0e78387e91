"""Simon Willison's llm, with the server as one of its extra OpenAI models."""
import json
import os
import pathlib
import tempfile
import urllib.request

from lines import refused, serve, url

home = tempfile.TemporaryDirectory()
os.environ["LLM_USER_PATH"] = home.name


def models():
    with urllib.request.urlopen(url + "/models") as got:
        return [m["id"] for m in json.load(got)["data"]]


def settings(name):
    return {"model_id": "served-" + name, "model_name": name, "api_base": url, "supports_tools": True, "reasoning": True, "api_key_name": "calla"}


served = models()
# JSON is YAML too.
pathlib.Path(home.name, "extra-openai-models.yaml").write_text(json.dumps([settings(n) for n in [*served, "gpt-4o"]]))

import llm
import openai


def answer(question):
    *before, last = question["messages"]
    conversation = llm.get_model("served-" + question["model"]).conversation()
    system = None
    for m in before:
        if m["role"] == "system":
            system = m["content"]
    options = {"reasoning_effort": "high"} if question.get("thinking") else {}
    calls = []

    def tool(f):
        def run(**arguments):
            calls.append({"name": f["name"], "arguments": arguments})
            return question["result"]
        return llm.Tool(name=f["name"], description=f["description"], input_schema=f["parameters"], implementation=run)

    tools = [tool(t["function"]) for t in question.get("tools") or []]
    try:
        if tools:
            got = conversation.chain(last["content"], system=system, tools=tools, stream=question["stream"], key="none", options=options)
        else:
            got = conversation.prompt(last["content"], system=system, stream=question["stream"], key="none", **options)
        deltas = [part for part in got if part]
    except openai.APIStatusError as e:
        return refused(e.status_code, e.body)
    reply = {"text": "".join(deltas), "calls": calls, "deltas": len(deltas) if question["stream"] else 0}
    if not tools:
        used = got.usage()
        reply |= {"prompt_tokens": used.input, "completion_tokens": used.output}
    return reply


serve(lambda: served, answer)
