package contract

import (
	"fmt"
	"strings"
)

// wireChecks send what is no request.
func wireChecks() []check {
	hello := strings.Replace(ask(""), question, "Hello", 1)
	say := func(s string) string { return strings.Replace(hello, "Hello", s, 1) }
	bad := refusal{status: 400}
	var lines []refused
	for _, l := range []struct{ name, body string }{
		{"an empty body", ""},
		{"no JSON", "hello"},
		{"half a document", hello[:len(hello)/2]},
		{"an array", "[]"},
		{"a byte order mark", "\ufeff" + hello},
		{"bytes after the document", hello + "{}"},
		{"the byte 0xFF", say("\xff")},
		{"an overlong form of UTF-8", say("\xc0\xaf")},
		{"a surrogate in UTF-8", say("\xed\xa0\x80")},
		{"a lone surrogate escaped", say(`\ud800`)},
		{"two high surrogates", say(`\ud800\ud800`)},
		{"NUL in a string", say("\x00")},
		{"a depth of 10,000", strings.Repeat("[", 10000) + strings.Repeat("]", 10000)},
		{"a depth of 10,000 in a field", ask(`"metadata":` + strings.Repeat(`{"a":`, 10000) + "1" + strings.Repeat("}", 10000))},
		{"a duplicate key", ask(fmt.Sprintf(`"model":%q`, modelMark))},
		{"a duplicate key far below", ask(`"metadata":{"a":"x","a":"y"}`)},
		{"a number with a plus", ask(`"n":+1`)},
		{"a number with a leading zero", ask(`"n":01`)},
		{"NaN", ask(`"top_p":NaN`)},
		{"a comment", ask(`"n":1/**/`)},
		{"a comma at the end", strings.TrimSuffix(hello, "}") + ",}"},
		{"no messages", fmt.Sprintf(`{"model":%q}`, modelMark)},
		{"empty messages", askFor("[]", "")},
		{"messages that are a string", askFor(`"Hello"`, "")},
		{"a message without a role", askFor(`[{"content":"Hello"}]`, "")},
		{"an unknown role", askFor(`[{"role":"wizard","content":"Hello"}]`, "")},
		{"a system message late", askFor(`[{"role":"user","content":"a"},{"role":"system","content":"b"},{"role":"user","content":"c"}]`, "")},
	} {
		lines = append(lines, refused{l.name, chatPath, l.body, bad})
	}
	lines = append(lines, refused{"a body of 20 MB", chatPath, say(strings.Repeat("a", 20<<20)), refusal{status: 413}})
	return checksOf("wire", lines)
}

// refusalChecks send fields with values that cannot be honoured. Each refusal
// must name its field.
func refusalChecks() []check {
	var lines []refused
	for _, l := range []struct{ field, param string }{
		{`"frobnicate":1`, "frobnicate"},
		{`"Temperature":1`, "Temperature"},
		{`"max_tokens":0`, "max_tokens"},
		{`"max_tokens":-1`, "max_tokens"},
		{`"max_tokens":9223372036854775808`, "max_tokens"},
		{`"max_tokens":"12"`, "max_tokens"},
		{`"max_tokens":1.5`, "max_tokens"},
		{`"max_completion_tokens":0`, "max_completion_tokens"},
		{`"temperature":2.1`, "temperature"},
		{`"temperature":-0.1`, "temperature"},
		{`"temperature":1e999`, "temperature"},
		{`"temperature":"hot"`, "temperature"},
		{`"top_p":1.1`, "top_p"},
		{`"presence_penalty":3`, "presence_penalty"},
		{`"frequency_penalty":-3`, "frequency_penalty"},
		{`"seed":1.5`, "seed"},
		{`"seed":18446744073709551616`, "seed"},
		{`"n":0`, "n"},
		{`"n":129`, "n"},
		{`"stop":["a","b","c","d","e"]`, "stop"},
		{`"stop":1`, "stop"},
		{`"top_logprobs":21,"logprobs":true`, "top_logprobs"},
		{`"top_logprobs":2`, "top_logprobs"},
		{`"logit_bias":{"x":1}`, "logit_bias"},
		{`"logit_bias":{"2147483647":1}`, "logit_bias"},
		{`"logit_bias":{"0":101}`, "logit_bias"},
		{`"stream":"yes"`, "stream"},
		{`"stream_options":{"frobnicate":1}`, "stream_options.frobnicate"},
		{`"response_format":{"type":"xml"}`, "response_format.type"},
		{`"reasoning_effort":"enormous"`, "reasoning_effort"},
		{`"tool_choice":"perhaps"`, "tool_choice"},
		{`"tools":[{"type":"wand"}]`, "tools[0].type"},
		{`"tools":[{"type":"function","function":{"name":"a b"}}]`, "tools[0].function.name"},
		{`"modalities":["text","audio"]`, "modalities"},
		{`"audio":{"voice":"alloy","format":"wav"}`, "audio"},
		{`"prediction":{"type":"content","content":"a"}`, "prediction"},
		{`"web_search_options":{}`, "web_search_options"},
		{`"store":true`, "store"},
		{`"service_tier":"priority"`, "service_tier"},
		{`"functions":[]`, "functions"},
	} {
		lines = append(lines, refused{l.field, chatPath, ask(l.field), refusal{status: 400, param: l.param}})
	}
	for _, part := range []string{"input_audio", "file", "video_url"} {
		body := askFor(fmt.Sprintf(`[{"role":"user","content":[{"type":%q,%q:{}}]}]`, part, part), "")
		lines = append(lines, refused{"a part of the type " + part, chatPath, body, refusal{status: 400, param: "messages[0].content[0].type"}})
	}
	return checksOf("refusals", lines)
}
