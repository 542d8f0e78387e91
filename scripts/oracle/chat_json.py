#!/usr/bin/env python3
"""What Python makes of JSON: json.dumps(json.loads(text), ensure_ascii=False), and which characters str.strip strips.

Needs nothing but Python 3.11 or later.

  chat_json.py > core/chat/testdata/python_json.json

An error of Python is null. Some of what Python accepts is refused by package chat on purpose; that list is in its test.
"""
import json
import random
import struct
import sys

r = random.Random(7)
NUMBERS = """0 -0 -0.0 0.0 1 -1 10 1.0 1.5 1.50 -1.50 1E5 1e5 1e+5 1E-5 1e0 0e0 -0e0 0.1 0.10 100.0 1e15 1e16 1e17 1e21 1e22 1e23 123456789012345678
9007199254740993 9007199254740993.0 123456789012345678901234567890 -123456789012345678901234567890 0.0001 0.00012 0.00001 0.000123456 1e-4 9.9999e-5
1e308 1.7976931348623157e308 1.7976931348623159e308 1e309 -1e309 1e400 1e-400 -1e-400 5e-324 4.9e-324 2e-324 2.2250738585072014e-308 3.14159265358979323846
0.30000000000000004 2.5e-7 1234567.0 12345678901234567.0 9999999999999998.0 9999999999999999.0 1e00016 1.e5 .5 5. 01 -01 00 1e 1e+ - -- +1 0x10 1_000 NaN
Infinity -Infinity 1.0e 1.0.0 ١ 1١""".split()
NUMBERS += ["9" * 4300, "-" + "9" * 4300, "9" * 4301, "0." + "3" * 5000]
for _ in range(150):
    f = struct.unpack("<d", struct.pack("<Q", r.getrandbits(64)))[0]
    if f == f and abs(f) != float("inf"):
        NUMBERS += [repr(f), "%.17g" % f, "%.3f" % (r.random() * 10 ** r.randrange(18)), "%.4E" % f]
STRINGS = [r'""', r'"a"', r'"\"\\\/\b\f\n\r\t"', r'"\u0000\u001f\u0020\u007f\u0080\u2028\u2029\ufeff\uffff"', '"\x7f"', '"</script>&<>\'"', r'"\u00e9"', '"é漢字🦊"',
           r'"\ud83e\udd8a"', r'"\uD83E\uDD8A"', r'"\ud83e"', r'"\udd8a"', r'"\ud83e\ud83e"', r'"\ud83ex"', r'"\ud83e\n"', r'"\udd8a\ud83e"', r'"\u12"', r'"\u12g4"', r'"\u+123"',
           r'"\x41"', r'"\a"', '"\n"', '"\t"', '"\x00"', '"', '"\\', r'"\"', r'"\u', r'"\u0_1f"', "'a'", '"a" "b"', '"\x1b[0m"', r'"\u001b\u000b"']
SHAPES = ["", " ", "null", "true", "false", "True", "None", "nul", "nulls", "[]", "{}", " [ ] ", "{ }", "[1,2]", "[1 ,2 , 3]", "[1,]", "[,1]", "[1 2]", "[", "]", "[1", "{", "}",
          '{"a":1}', '{"a" : 1 , "b":[ ]}', '{"a":1,}', '{,}', '{"a"}', '{"a":}', '{a:1}', "{'a':1}", '{1:2}', '{"a":1 "b":2}', '{"":{"":{}}}', '{"b":1,"a":2,"C":3,"1":4}',
          '{"a":1,"a":2}', '{"a":1,"b":2,"a":3}', '{"a":{"x":1,"x":[1]},"b":2,"a":{"y":1,"z":2,"y":null},"c":{}}', '[{"a":1,"a":2},{"a":1}]', '{"a":1,"\\u0061":2}', '{"a":1,"a":2,"a":3,"b":4,"b":5}',
          '{"k":[1,"é",{"v":[]},null,true,1.0]}', "\ufeff1", "1\x00", "\x0b1", "\u00a01", "1//x", "/**/1", '{"a":1}}', '[[[[]]]]', "[" * 100 + "]" * 100, '{"a":' * 60 + "1" + "}" * 60,
          "\t\r\n 1\t\r\n ", "tru", "trueX", "-null", '{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"q":{"type":"string","enum":["<a>","b&c"]}}}}}']


def printed(text):
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


cases = [[t, printed(t)] for t in dict.fromkeys(NUMBERS + STRINGS + SHAPES)]
space = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and not chr(c).strip()]
out = {"about": "Made by scripts/oracle/chat_json.py with Python %d.%d: [text, what Python prints or null]; code points that str.strip strips." % sys.version_info[:2],
       "space": space, "cases": cases}
json.dump(out, sys.stdout, separators=(",", ":"))
print()
