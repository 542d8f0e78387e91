package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"calla/core/grammar"
)

// byteVocabulary has a token for each byte, one that ends a completion, and
// the two of calls: texts are read byte by byte.
func byteVocabulary(t testing.TB) *grammar.Vocabulary {
	t.Helper()
	return vocabularyOf(t, nil)
}

// The tokens of test vocabularies: bytes, then these, then words.
const (
	endToken = 256 + iota
	callStartToken
	callEndToken
	firstWord
)

// vocabularyOf is byteVocabulary with some words as tokens.
func vocabularyOf(t testing.TB, words []string) *grammar.Vocabulary {
	t.Helper()
	v, err := grammar.NewVocabulary(grammar.Tokens{
		Count: firstWord + len(words),
		Bytes: func(id int32) []byte {
			switch {
			case id < endToken:
				return []byte{byte(id)}
			case id == callStartToken:
				return []byte("<tool_call>")
			case id == callEndToken:
				return []byte("</tool_call>")
			case id == endToken:
				return []byte("<|im_end|>")
			}
			return []byte(words[id-firstWord])
		},
		Controls: []int32{CallStart: callStartToken, CallEnd: callEndToken},
		Apart:    func(id int32) bool { return id >= endToken && id < firstWord },
		Ends:     []int32{endToken},
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func bind(t testing.TB, v *grammar.Vocabulary, g *grammar.Grammar, err error) *grammar.Automaton {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	a, err := v.Bind(g)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// reads reports whether an automaton has a text, control tokens spelt out.
func reads(a *grammar.Automaton, text string) bool {
	m := a.Matcher()
	for text != "" {
		token, length := int32(text[0]), 1
		for _, c := range []int32{callStartToken, callEndToken} {
			if name := Controls()[c-callStartToken]; strings.HasPrefix(text, name) {
				token, length = c, len(name)
			}
		}
		if m.Next(token) != nil {
			return false
		}
		text = text[length:]
	}
	return m.Complete()
}

func TestAnswers(t *testing.T) {
	v := byteVocabulary(t)
	for _, tt := range []struct {
		name, schema string
		in, out      []string
	}{
		{"true", `true`, []string{`1`, `"a"`, `null`, `{"a": [1, {"b": null}]}`, `[]`, `{}`, `{ }`, `[ ]`}, []string{``, `{`, `[1,]`, `01`, `nul`, `"a`, `{"a" : 1}`, `[1,  2]`, `1 `, ` 1`}},
		{"a new line", `{}`, []string{"{\n  \"a\": [\n    1,\n    2\n  ]\n}", "{\r\n\t\"a\": 1\r\n}"}, []string{"{\n\n\"a\": 1}", "{\"a\":\n\n1}"}},
		{"integer", `{"type":"integer"}`, []string{`0`, `-7`, `123`}, []string{`1.0`, `1e2`, `"1"`, `-`, `1234567890123456789`}},
		{"number", `{"type":"number"}`, []string{`0`, `-7.25`, `1e5`}, []string{`.5`, `true`}},
		{"several types", `{"type":["string","null"]}`, []string{`"x"`, `null`}, []string{`1`}},
		{"integer range", `{"type":"integer","minimum":-3,"exclusiveMaximum":12}`, []string{`-3`, `0`, `11`}, []string{`-4`, `12`, `100`}},
		{"two bounds of one end", `{"type":"integer","minimum":3,"exclusiveMinimum":3,"maximum":9,"exclusiveMaximum":20}`, []string{`4`, `9`}, []string{`3`, `10`}},
		{"number range", `{"type":"number","minimum":0,"maximum":1}`, []string{`0`, `0.5`, `1`, `1.0`}, []string{`1.01`, `-0.1`, `5e-1`, `2`}},
		{"bounds with exponents", `{"type":"number","minimum":1e2,"maximum":1.5E2}`, []string{`100`, `149.9`}, []string{`99`, `151`}},
		{"length", `{"type":"string","minLength":2,"maxLength":3}`, []string{`"ab"`, `"é😀x"`, `"\n\u00e9"`, `"\ud83d\ude00\""`}, []string{`"a"`, `"abcd"`, `""`, `"\ud83d\ude00"`}},
		{"pattern", `{"type":"string","pattern":"^[A-Z]{2}-\\d+$"}`, []string{`"AB-1"`}, []string{`"A-1"`, `"AB-"`, `"\u0041B-1"`}},
		{"pattern that escapes", `{"type":"string","pattern":"^\"\\\\$"}`, []string{`"\"\\"`}, []string{`"\"`}},
		{"pattern and length", `{"type":"string","pattern":"^(ab)*$","minLength":3,"maxLength":6}`, []string{`"abab"`, `"ababab"`}, []string{`"ab"`, `"abababab"`}},
		{"date", `{"type":"string","format":"date"}`, []string{`"2024-02-29"`, `"1999-12-31"`}, []string{`"2023-02-29"`, `"2024-04-31"`, `"2024-13-01"`}},
		{"date-time", `{"type":"string","format":"date-time"}`, []string{`"2024-02-29T23:59:59Z"`, `"2024-01-01T00:00:00.5+02:00"`}, []string{`"2024-01-01 00:00:00Z"`, `"2024-01-01T24:00:00Z"`}},
		{"email", `{"type":"string","format":"email"}`, []string{`"a.b+c@example.org"`}, []string{`"a@b"`, `"@x.org"`, `"a b@x.org"`}},
		{"uuid", `{"type":"string","format":"uuid"}`, []string{`"123e4567-e89b-12d3-a456-426614174000"`}, []string{`"123e4567"`}},
		{"ipv4", `{"type":"string","format":"ipv4"}`, []string{`"255.0.10.1"`}, []string{`"256.0.0.1"`, `"01.0.0.1"`}},
		{"uri", `{"type":"string","format":"uri"}`, []string{`"https://example.org/a?b=c#d"`, `"mailto:a@b.c"`}, []string{`"example"`, `"http://a b"`}},
		{"enum", `{"enum":["a",1,null,[1,{"b":true}],"\n"]}`, []string{`"a"`, `1`, `null`, `[1,{"b":true}]`, `[1, {"b": true}]`, `"\n"`}, []string{`"b"`, `2`, `[1]`, `"\u0061"`}},
		{"enum and type", `{"type":"string","enum":["a",1]}`, []string{`"a"`}, []string{`1`}},
		{"enum and pattern", `{"enum":["ab","cd"],"pattern":"^a"}`, []string{`"ab"`}, []string{`"cd"`}},
		{"const", `{"const":1.50}`, []string{`1.50`}, []string{`1.5`}},
		{"anyOf", `{"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]}`, []string{`1`, `"a"`}, []string{`"ab"`, `null`}},
		{"oneOf of different types", `{"oneOf":[{"type":"integer"},{"type":"string"}]}`, []string{`1`, `"a"`}, []string{`null`}},
		{"allOf of one", `{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"null"}}}`, []string{`null`}, []string{`1`}},
		{"array", `{"type":"array","items":{"type":"integer"}}`, []string{`[]`, `[1]`, `[1, 2,3]`}, []string{`["a"]`, `[1,"a"]`, `[,]`}},
		{"array bounds", `{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3}`, []string{`[1,2]`, `[1,2,3]`}, []string{`[]`, `[1]`, `[1,2,3,4]`}},
		{"array at least", `{"type":"array","items":{"type":"integer"},"minItems":2}`, []string{`[1,2]`, `[1,2,3,4,5]`}, []string{`[]`, `[1]`}},
		{"array of none", `{"type":"array","maxItems":0}`, []string{`[]`}, []string{`[1]`}},
		{"tuple", `{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false}`, []string{`[]`, `[1]`, `[1,"a"]`}, []string{`["a"]`, `[1,"a",2]`}},
		{"tuple and more", `{"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"string"},"minItems":1}`, []string{`[1]`, `[1,"a","b"]`}, []string{`[]`, `[1,2]`}},
		{"object", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a","b"],"additionalProperties":false}`,
			[]string{`{"a":1,"b":"x"}`, `{"a": 1, "b": "x"}`, "{\n  \"a\": 1,\n  \"b\": \"x\"\n}"}, []string{`{}`, `{"a":1}`, `{"b":"x","a":1}`, `{"a":1,"b":"x","c":1}`, `{"a":1,"b":2}`}},
		{"optional members", `{"type":"object","properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3},"d":{"const":4}},"required":["c"],"additionalProperties":false}`,
			[]string{`{"c":3}`, `{"a":1,"c":3}`, `{"b":2,"c":3,"d":4}`, `{"a":1,"b":2,"c":3,"d":4}`}, []string{`{}`, `{"a":1}`, `{"a":1,"d":4}`, `{,"c":3}`, `{"c":3,}`, `{"c":3,"c":3}`}},
		{"all optional", `{"type":"object","properties":{"a":{"const":1},"b":{"const":2}},"additionalProperties":false}`,
			[]string{`{}`, `{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`}, []string{`{"b":2,"a":1}`, `{"a":1,}`}},
		{"other members", `{"type":"object","properties":{"a":{"const":1},"ab":{"const":2}},"additionalProperties":{"type":"integer"}}`,
			[]string{`{}`, `{"x":5}`, `{"a":1,"x":5,"y":6}`, `{"b":3}`, `{"abc":3}`, `{"":1}`}, []string{`{"a":2}`, `{"x":"y"}`, `{"ab":7}`, `{"x":5,"a":1}`}},
		{"required but not declared", `{"type":"object","required":["k"]}`, []string{`{"k":null}`, `{"k":1,"z":2}`}, []string{`{}`, `{"z":1}`}},
		{"a member that can't be", `{"type":"object","properties":{"a":false,"b":{"type":"null"}},"additionalProperties":false}`, []string{`{}`, `{"b":null}`}, []string{`{"a":1}`}},
		{"recursion", `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["v","next"],"additionalProperties":false}}}`,
			[]string{`{"v":1,"next":null}`, `{"v":1,"next":{"v":2,"next":null}}`}, []string{`{"v":1}`, `{"v":1,"next":{}}`}},
		{"recursion to the root", `{"type":"array","items":{"$ref":"#"}}`, []string{`[]`, `[[],[[]]]`}, []string{`[1]`}},
		{"names that need escapes", `{"type":"object","properties":{"a\"b/~":{"type":"null"}},"required":["a\"b/~"],"additionalProperties":false}`, []string{`{"a\"b/~":null}`}, []string{`{"a":null}`}},
		{"a reference with escapes", `{"$ref":"#/$defs/a~1b%25","$defs":{"a/b%":{"type":"null"}}}`, []string{`null`}, []string{`1`}},
		{"alternatives that begin alike", `{"anyOf":[{"type":"object","properties":{"t":{"const":"a"},"x":{"type":"integer"}},"required":["t","x"],"additionalProperties":false},{"type":"object","properties":{"t":{"const":"ab"},"y":{"type":"null"}},"required":["t","y"],"additionalProperties":false}]}`,
			[]string{`{"t":"a","x":1}`, `{"t":"ab","y":null}`}, []string{`{"t":"a","y":null}`, `{"t":"ab","x":1}`}},
		{"many constants", `{"enum":[` + strings.Repeat(`"a",`, 3000) + `"aa","ab",1,12]}`, []string{`"a"`, `"ab"`, `12`}, []string{`"b"`, `"`, `2`}},
		{"descriptions", `{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"T","description":"d","default":1,"examples":[2],"type":"integer","uniqueItems":false}`, []string{`1`}, []string{`"a"`}},
		{"an older draft", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"null"}},"type":"array","items":{"$ref":"#/definitions/a"}}`, []string{`[null]`}, []string{`[1]`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, err := Output{Answer: json.RawMessage(tt.schema)}.Grammar()
			a := bind(t, v, g, err)
			for _, s := range tt.in {
				if !reads(a, s) {
					t.Errorf("%s is refused", s)
				}
			}
			for _, s := range tt.out {
				if reads(a, s) {
					t.Errorf("%s is taken", s)
				}
			}
		})
	}
}

func TestRefusedSchemas(t *testing.T) {
	deep := strings.Repeat(`{"type":"array","minItems":1,"items":`, 70) + `{"type":"null"}` + strings.Repeat(`}`, 70)
	long := func(n int, f string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(f, i))
		}
		return strings.Join(all, ",")
	}
	for _, tt := range []struct{ name, schema, want string }{
		{"no JSON", `{"a"`, "not JSON"},
		{"no schema", `{"type":"strange"}`, "type: it is not what JSON Schema has here"},
		{"no schema, deep", `{"properties":{"a":{"minLength":-1}}}`, "properties.a.minLength: it is not"},
		{"unknown", `{"properties":{"a":{"type":"integer","multipleOf":2}}}`, "properties.a.multipleOf: this keyword"},
		{"not", `{"not":{}}`, "not: this keyword"},
		{"if", `{"items":{"if":{}}}`, "items.if: this keyword"},
		{"unique items", `{"uniqueItems":true}`, "uniqueItems: this keyword"},
		{"an unknown format", `{"type":"string","format":"zip"}`, "format: this format"},
		{"look-ahead", `{"type":"string","pattern":"(?=a)"}`, "pattern: look-around"},
		{"a pattern that explodes", `{"type":"string","pattern":"(a|b)*a(a|b){20}"}`, "pattern: it is too large"},
		{"patterns that take long together", `{"anyOf":[` + long(300, `{"type":"string","pattern":"(a|b)*a(a|b){11}%d"}`) + `]}`, "pattern: it is too large"},
		{"a list of anyOf beside others", `{"type":"object","anyOf":[{}]}`, "type: beside anyOf"},
		{"beside $ref", `{"$ref":"#/$defs/a","minLength":1,"$defs":{"a":{}}}`, "minLength: beside $ref"},
		{"oneOf that overlaps", `{"oneOf":[{"type":"integer"},{"type":"number"}]}`, "oneOf: "},
		{"oneOf of many", `{"oneOf":[` + long(300, `{"const":"%d"}`) + `]}`, "oneOf: it has 300 alternatives"},
		{"many optional members", `{"type":"object","properties":{` + long(2000, `"p%d":{}`) + `},"additionalProperties":false}`, "properties: more than 1500 in a row"},
		{"a name within", `{"properties":{"a":{"$id":"b"}}}`, "properties.a.$id: only the whole schema"},
		{"allOf", `{"allOf":[{},{}]}`, "allOf: only"},
		{"elsewhere", `{"$ref":"https://example.org/x"}`, "refers to another document"},
		{"nowhere", `{"$ref":"#/$defs/x"}`, "leads nowhere"},
		{"itself", `{"$ref":"#"}`, "refers to itself"},
		{"itself in a circle", `{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"type":"null"}]},"b":{"$ref":"#/$defs/a"}}}`, "refers to itself"},
		{"nothing fits", `false`, "nothing fits"},
		{"no end", `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, "nothing fits"},
		{"an empty range", `{"type":"integer","minimum":2,"maximum":1}`, "nothing fits"},
		{"an empty range of lengths", `{"type":"string","minLength":2,"maxLength":1}`, "nothing fits"},
		{"too deep", deep, "nothing fits it that is nested less than"},
		{"too many items", `{"type":"array","minItems":100000000}`, "minItems: at most"},
		{"a huge exponent", `{"type":"integer","minimum":1e999999999}`, "minimum: want a number"},
		{"many items within many", `{"type":"array","maxItems":2000,"items":{"enum":[` + long(9000, `"value %d"`) + `]}}`, "too large"},
		{"members of one name", `{"type":"object","type":"string"}`, "two members"},
		{"nested too deep", strings.Repeat(`{"not":`, 200) + `{}` + strings.Repeat(`}`, 200), "nested deeper"},
		{"huge", `{"description":"` + strings.Repeat("x", maxBytes) + `"}`, "bytes, want at most"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Output{Answer: json.RawMessage(tt.schema)}.Grammar()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}
