"""What the clients in Python share: a request a line, an answer a line (see script_test.go)."""
import json
import sys

url = sys.argv[1]  # of the API, with /v1 at its end


def serve(models, answer):
    """Answers each line of the input. Both functions return what is printed as JSON."""
    for line in sys.stdin:
        question = json.loads(line)
        print(json.dumps(models() if question == "models" else answer(question)), flush=True)


def refused(status, body):
    """An error of the API as the client has read it."""
    body = body or {}
    return {"error": {"status": status, "code": body.get("code") or "", "param": body.get("param") or ""}}


def function(tool):
    """The function of a tool: name, description and parameters."""
    return tool["function"]
