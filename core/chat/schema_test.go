package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestKindsOfDeclarations(t *testing.T) {
	deep := func(n int) string {
		return strings.Repeat(`{"anyOf":[`, n) + `{"type":"integer"}` + strings.Repeat(`]}`, n)
	}
	for _, tt := range []struct {
		name, schema string
		want         kinds
	}{
		{"string", `{"type":"string"}`, isString},
		{"integer", `{"type":"integer"}`, isOther},
		{"nullable string", `{"type":["string","null"]}`, isString | isNull},
		{"any of", `{"anyOf":[{"type":"integer"},{"type":"null"}]}`, isOther | isNull},
		{"one of", `{"oneOf":[{"type":"boolean"},{"type":"string"}]}`, isOther | isString},
		{"all of a reference", `{"allOf":[{"$ref":"#/$defs/item"}]}`, isOther},
		{"reference", `{"$ref":"#/$defs/item"}`, isOther},
		{"reference with escapes", `{"$ref":"#/$defs/a~1b~0"}`, isNull},
		{"reference to nothing", `{"$ref":"#/$defs/none"}`, isString},
		{"reference elsewhere", `{"$ref":"https://example.com/x"}`, isString},
		{"circle", `{"$ref":"#/$defs/circle"}`, isString},
		{"circles without end", `{"$ref":"#/$defs/circles"}`, isString},
		{"strings listed", `{"enum":["a","b"]}`, isString},
		{"values listed", `{"enum":[1,null,"a"]}`, isOther | isNull | isString},
		{"constant", `{"const":3}`, isOther},
		{"object without a type", `{"properties":{}}`, isOther},
		{"array without a type", `{"items":{}}`, isOther},
		{"deep", deep(40), isOther},
		{"too deep to read", deep(1000), isString},
		{"says nothing", `{}`, isString},
		{"is no schema", `true`, isString},
		{"type unknown", `{"type":"varchar"}`, isString},
		{"type of the wrong type", `{"type":7,"enum":8}`, isString},
	} {
		t.Run(tt.name, func(t *testing.T) {
			raw := fmt.Sprintf(`{"type":"function","function":{"name":"f","parameters":{"properties":{"p":%s},"$defs":{"item":{"type":"object"},"a/b~":{"type":"null"},`+
				`"circle":{"$ref":"#/$defs/circle"},"circles":{"anyOf":[{"$ref":"#/$defs/circles"},{"$ref":"#/$defs/circles"}]}}}}}`, tt.schema)
			if got := declarations([]json.RawMessage{json.RawMessage(raw)})["f"].kinds("p"); got != tt.want {
				t.Errorf("kinds %03b, want %03b", got, tt.want)
			}
		})
	}
}

func TestToolsThatSayNothing(t *testing.T) {
	for _, raw := range []string{`null`, `7`, `"f"`, `{}`, `{"function":7}`, `{"name":"f","parameters":[]}`, `{"function":{"name":"f","parameters":{"properties":[]}}}`, `{`} {
		o := parsing{tools: []json.RawMessage{json.RawMessage(raw)}}
		o.check(t, "‹tool_call›\n<function=f>\n<parameter=p>\n1\n</parameter>\n</function>\n‹/tool_call›", `f {"p": "1"}`)
	}
}

func TestConvert(t *testing.T) {
	for _, tt := range []struct {
		kinds       kinds
		value, want string
	}{
		{isString, "null", `"null"`},
		{isString | isNull, "null", `null`},
		{isString | isNull, "None", `"None"`},
		{isString | isOther, "12", `"12"`},
		{isString | isOther | isNull, "null", `null`},
		{isOther, "12", `12`},
		{isOther, " 1.50\n", `1.50`},
		{isOther, "123456789012345678901234567890", `123456789012345678901234567890`},
		{isOther, "1e400", `1e400`},
		{isOther, "True", `true`},
		{isOther, "false", `false`},
		{isOther, "None", `null`},
		{isOther, `{"a" :[True,None],"a":1}`, `{"a": 1}`},
		{isOther, `"quoted"`, `"quoted"`},
		{isOther, "{'a': 1}", `"{'a': 1}"`},
		{isOther, "NaN", `"NaN"`},
		{isOther, "", `""`},
		{isOther, `["\ud800"]`, `"[\"\\ud800\"]"`},
	} {
		if got := tt.kinds.convert(tt.value); got != tt.want {
			t.Errorf("%q as %03b is %s, want %s", tt.value, tt.kinds, got, tt.want)
		}
	}
}
