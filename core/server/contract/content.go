package contract

import (
	"fmt"
	"strings"
)

// contentChecks hold the forms of a message's content against each other, for
// each role: texts are joined, and nothing is nothing in every form.
func contentChecks() []check {
	var all []check
	for _, role := range []struct{ name, before, message, after string }{
		{"user", "", `{"role":"user"%s}`, ""},
		{"system", "", `{"role":"system"%s}`, `,{"role":"user","content":"Hello"}`},
		{"assistant", `{"role":"user","content":"Hello"},`, `{"role":"assistant"%s}`, `,{"role":"user","content":"Go on"}`},
		{"tool", `{"role":"user","content":"Hello"},` + callMessage + `,`, `{"role":"tool","tool_call_id":"call_1"%s}`, ""},
	} {
		with := func(content string) string {
			return askFor(fmt.Sprintf("[%s%s%s]", role.before, fmt.Sprintf(role.message, content), role.after), `"max_tokens":4`)
		}
		all = append(all,
			check{"contents", role.name + ": text in all its forms", func(s *session) error {
				return s.equal(
					with(`,"content":"one two"`),
					with(`,"content":[{"type":"text","text":"one two"}]`),
					with(`,"content":[{"type":"text","text":"one "},{"type":"text","text":"two"}]`))
			}},
			check{"contents", role.name + ": nothing in all its forms", func(s *session) error {
				return s.equal(with(`,"content":""`), with(`,"content":null`), with(""), with(`,"content":[]`))
			}},
			check{"contents", role.name + ": an image", func(s *session) error {
				body := with(`,"content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]`)
				index := 0
				if role.before != "" {
					index = 1 + strings.Count(role.before, `"role":"assistant"`)
				}
				return s.refuse(chatPath, body, refusal{status: 400, param: fmt.Sprintf("messages[%d].content[1].type", index)})
			}},
		)
	}
	return all
}

// callMessage is an assistant's message with a call and no content.
const callMessage = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]}`

// defaultChecks give fields the values that ask for what happens anyway.
func defaultChecks() []check {
	var all []check
	for _, field := range []string{
		`"parallel_tool_calls":true`, `"service_tier":"auto"`, `"modalities":["text"]`, `"store":false`,
		`"response_format":{"type":"text"}`, `"n":1`, `"user":"someone"`, `"metadata":{"a":"b"}`,
		`"prompt_cache_key":"a"`, `"top_p":1`, `"presence_penalty":0`, `"frequency_penalty":0`, `"logit_bias":{}`,
		`"logprobs":false`, `"tools":[]`, `"tool_choice":"none"`, `"tool_choice":"auto"`, `"stream":false`, `"stop":[]`,
		`"reasoning_effort":"none"`, `"stream_options":null`, `"stop":null`, `"tools":null`, `"n":null`, `"seed":null`,
		`"audio":null`, `"prediction":null`, `"response_format":null`, `"logit_bias":null`, `"reasoning_effort":null`,
	} {
		all = append(all, check{"defaults", field, func(s *session) error {
			_, err := s.chat(ask(field + `,"max_tokens":1`))
			return err
		}})
	}
	for _, field := range []string{
		`"temperature":2`, `"top_p":0.1`, `"presence_penalty":2`, `"presence_penalty":-2`, `"frequency_penalty":2`,
		`"frequency_penalty":-2`, `"seed":-1`, `"seed":9223372036854775807`, `"logit_bias":{"0":-100}`,
		`"logprobs":true,"top_logprobs":20`, `"reasoning_effort":"high"`, `"stop":["a","b","c","d"]`,
	} {
		all = append(all, check{"bounds", field, func(s *session) error {
			_, err := s.chat(ask(field + `,"max_tokens":1`))
			return err
		}})
	}
	return all
}
