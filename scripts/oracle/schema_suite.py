#!/usr/bin/env python3
"""Pack the cases of the JSON-Schema-Test-Suite that core/schema is held against.

  git clone https://github.com/json-schema-org/JSON-Schema-Test-Suite SUITE
  schema_suite.py SUITE core/schema/testdata/suite.json.gz

The suite is (c) 2012 Julian Berman, MIT licence: its LICENSE goes into the file's head.
"""
import gzip
import json
import os
import subprocess
import sys

KEYWORDS = """additionalProperties allOf anyOf boolean_schema const default defs enum exclusiveMaximum exclusiveMinimum
infinite-loop-detection items maxItems maxLength maximum minItems minLength minimum oneOf pattern prefixItems properties ref
required type""".split()
FORMATS = "date-time date duration email hostname ipv4 ipv6 time uri uuid".split()


def main(suite, out):
    tests = os.path.join(suite, "tests", "draft2020-12")
    names = KEYWORDS + [os.path.join("optional", "format", f) for f in FORMATS]
    groups = []
    for name in names:
        with open(os.path.join(tests, name + ".json"), encoding="utf-8") as f:
            groups += [{"file": name, **group} for group in json.load(f)]
    with open(os.path.join(suite, "LICENSE"), encoding="utf-8") as f:
        licence = f.read()
    revision = subprocess.run(["git", "rev-parse", "HEAD"], cwd=suite, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    text = json.dumps({"revision": revision, "licence": licence, "groups": groups}, ensure_ascii=False, separators=(",", ":"))
    with open(out, "wb") as f, gzip.GzipFile("", "wb", 9, f, 0) as packed:
        packed.write(text.encode())


main(*sys.argv[1:])
