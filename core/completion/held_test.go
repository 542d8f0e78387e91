package completion

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"calla/core/chat"
	"calla/core/engine"
	"calla/core/grammar"
	"calla/core/schema"
	"calla/core/tokenizer"
)

// noise is a stage whose model says nothing but noise: each token is as likely
// as the next.
func noise(t testing.TB) *stage {
	s := script(t, func(*tokenizer.Tokenizer) []int32 { return nil })
	s.device.Next = nil
	return s
}

func fits(t testing.TB, rawSchema, text string) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(rawSchema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("https://schema.invalid/s", doc); err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Errorf("%q: %v", text, err)
		return
	}
	if err := c.MustCompile("https://schema.invalid/s").Validate(value); err != nil {
		t.Errorf("%q does not fit: %v", text, err)
	}
}

const person = `{"type":"object","properties":{"name":{"type":"string","maxLength":12},"age":{"type":"integer","minimum":0,"maximum":150},
	"kind":{"enum":["a","b"]},"born":{"type":"string","format":"date"},"tags":{"type":"array","items":{"type":"string","maxLength":5},"maxItems":3},
	"next":{"anyOf":[{"type":"null"},{"type":"boolean"}]}},"required":["name","age","kind","born","tags"],"additionalProperties":false}`

func samplings() map[string]engine.Sampling {
	seed := uint64(4)
	return map[string]engine.Sampling{
		"greedy":    {},
		"sampled":   {Temperature: 1, Seed: &seed},
		"narrow":    {Temperature: 1.5, TopK: 20, TopP: 0.9, MinP: 0.01, Seed: &seed},
		"penalties": {Temperature: 1, FrequencyPenalty: 2, RepetitionPenalty: 1.5, LogitBias: map[int32]float64{5: 100}, Seed: &seed},
	}
}

func TestAnswersFitWhateverTheModelSays(t *testing.T) {
	s := noise(t)
	for name, sampling := range samplings() {
		for _, thinking := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, thinking %v", name, thinking), func(t *testing.T) {
				for i := range 4 {
					r := Request{Messages: user(fmt.Sprint("?", i)), Answer: json.RawMessage(person), Sampling: sampling, Thinking: thinking, LogProbs: 1}
					if thinking {
						r.ThinkingBudget = 10
					}
					got := complete(t, s, r)
					if got.result.Reason != ReasonStop || got.result.Warning != "" {
						t.Errorf("reason %s, warning %q", got.result.Reason, got.result.Warning)
					}
					if thinking != (got.reasoning != "") {
						t.Errorf("reasoning %q", got.reasoning)
					}
					fits(t, person, got.content)
					var text []byte
					for _, x := range got.tokens {
						text = append(text, x.Bytes...)
					}
					if !bytes.HasSuffix(text, []byte(got.content)) {
						t.Errorf("the tokens spell %q, want %q at their end", text, got.content)
					}
				}
			})
		}
	}
}

func TestCallsFitWhateverTheModelSays(t *testing.T) {
	s := noise(t)
	tools := []json.RawMessage{
		json.RawMessage(`{"type":"function","function":{"name":"first","parameters":` + person + `}}`),
		json.RawMessage(`{"type":"function","function":{"name":"second"}}`),
	}
	for name, sampling := range samplings() {
		for _, thinking := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, thinking %v", name, thinking), func(t *testing.T) {
				for i := range 4 {
					r := Request{Messages: user(fmt.Sprint("?", i)), Tools: tools, MustCall: true, Sampling: sampling, Thinking: thinking, ThinkingBudget: 10}
					if i%2 == 0 {
						r.Callee = "first"
					} else {
						r.SingleCall = true
					}
					got := complete(t, s, r)
					if len(got.names) != 1 || got.result.Reason != ReasonToolCalls || got.content != "" {
						t.Fatalf("calls %q, content %q, reason %s", got.names, got.content, got.result.Reason)
					}
					if i%2 == 0 && got.names[0] != "first" {
						t.Errorf("%s was called", got.names[0])
					}
					if got.names[0] == "first" {
						fits(t, person, got.arguments)
					} else if got.arguments != "{}" {
						t.Errorf("arguments %s", got.arguments)
					}
				}
			})
		}
	}
}

// What a model says that fits is left as it is, however it is cut into tokens.
func TestAnswerThatFitsIsLeftAlone(t *testing.T) {
	const text = `{"name": "Zoë 😀\n", "age": 7, "kind": "b", "born": "2024-02-29", "tags": ["x", "y"]}`
	for how, say := range map[string]func(*tokenizer.Tokenizer) []int32{
		"bytes":             func(tok *tokenizer.Tokenizer) []int32 { return spell(tok, text) },
		"tokens":            func(tok *tokenizer.Tokenizer) []int32 { return tok.Encode(text) },
		"tokens of a chunk": func(tok *tokenizer.Tokenizer) []int32 { return append(tok.Encode(text[:11]), tok.Encode(text[11:])...) },
	} {
		s := script(t, say)
		got := complete(t, s, Request{Messages: user("?"), Answer: json.RawMessage(person)})
		if want := say(s.tok); got.content != text || !slices.Equal(got.result.Tokens, want) {
			t.Errorf("%s: content %s", how, got.content)
		}
	}
}

func TestThoughtComesFirst(t *testing.T) {
	s := script(t, func(tok *tokenizer.Tokenizer) []int32 {
		// Neither the end of the turn nor a call ends the thought.
		return control(tok, "Hm, {\"not\": yet", chat.TurnEnd, chat.CallStart, ".\n", chat.ThinkEnd, "\n\n", `{"a": 1}`)
	})
	got := complete(t, s, Request{Messages: user("?"), Thinking: true, Answer: schema.AnyObject})
	if !strings.HasPrefix(got.reasoning, `Hm, {"not": yet`) || got.content != `{"a": 1}` {
		t.Errorf("reasoning %q, content %q", got.reasoning, got.content)
	}
}

// What the template has after a thought is there, whoever ends the thought.
func TestSeparatorsAfterTheThought(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    Request
		said []string
	}{
		{"the budget ends it", Request{ThinkingBudget: 2}, []string{"a b c d e f g h"}},
		{"the budget ends it before an answer", Request{ThinkingBudget: 2, Answer: schema.AnyObject}, []string{"a b c d e f g h"}},
		{"the model ends it before an answer", Request{Answer: schema.AnyObject}, []string{"a", chat.ThinkEnd, `{"a": 1}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := script(t, func(tok *tokenizer.Tokenizer) []int32 { return control(tok, tt.said...) })
			tt.r.Messages, tt.r.Thinking, tt.r.MaxTokens = user("?"), true, 20
			tokens := complete(t, s, tt.r).result.Tokens
			end := slices.Index(tokens, s.ids[chat.ThinkEnd])
			if end < 0 || end+1+len(s.afterThink) > len(tokens) || !slices.Equal(tokens[end+1:][:len(s.afterThink)], s.afterThink) {
				t.Errorf("tokens %v, want %d and %v after it", tokens, s.ids[chat.ThinkEnd], s.afterThink)
			}
		})
	}
}

func TestLimitCutsTheAnswerAndSaysSo(t *testing.T) {
	for _, thinking := range []bool{false, true} {
		got := complete(t, noise(t), Request{Messages: user("?"), Answer: json.RawMessage(person), MaxTokens: 5, Thinking: thinking})
		if got.result.Reason != ReasonLength || !strings.Contains(got.result.Warning, "not complete") {
			t.Errorf("thinking %v: reason %s, warning %q", thinking, got.result.Reason, got.result.Warning)
		}
	}
}

func TestStrictToolsAreHeldInTheMiddleOfProse(t *testing.T) {
	tool := func(name string, parameters string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"type":"function","function":{"name":%q,"parameters":%s}}`, name, parameters))
	}
	tools := []json.RawMessage{
		tool("weather", `{"type":"object","properties":{"days":{"type":"integer","maximum":9,"minimum":1}},"required":["days"],"additionalProperties":false}`),
		tool("other", `{"type":"object","properties":{"x":{"not":{}}}}`),
	}
	wrong := func(name string) func(*tokenizer.Tokenizer) []int32 {
		return func(tok *tokenizer.Tokenizer) []int32 {
			return control(tok, "Let me see.\n\n", chat.CallStart, "\n<function="+name+">\n<parameter=days>\nmany\n</parameter>\n</function>\n", chat.CallEnd)
		}
	}
	got := complete(t, script(t, wrong("weather")), Request{Messages: user("?"), Tools: tools, Strict: []bool{true, false}, MaxTokens: 60})
	if got.content != "Let me see." || !slices.Equal(got.names, []string{"weather"}) {
		t.Fatalf("content %q, calls %q", got.content, got.names)
	}
	var arguments struct{ Days int }
	if err := json.Unmarshal([]byte(got.arguments), &arguments); err != nil || arguments.Days < 1 || arguments.Days > 9 {
		t.Errorf("arguments %s, %v", got.arguments, err)
	}
	// A tool that is not strict keeps what the model makes of it.
	got = complete(t, script(t, wrong("other")), Request{Messages: user("?"), Tools: tools, Strict: []bool{true, false}, MaxTokens: 60})
	if !slices.Equal(got.names, []string{"other"}) || got.arguments != `{"days": "many"}` {
		t.Errorf("calls %q, arguments %s", got.names, got.arguments)
	}
}

func TestSingleCall(t *testing.T) {
	tools := []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"f"}}`)}
	twice := func(tok *tokenizer.Tokenizer) []int32 {
		one := control(tok, chat.CallStart, "\n<function=f>\n</function>\n", chat.CallEnd)
		return append(append(one, tok.Encode("\n")...), one...)
	}
	for _, tt := range []struct {
		name string
		r    Request
		want int
	}{
		{"free", Request{}, 2},
		{"single", Request{SingleCall: true}, 1},
		{"required", Request{MustCall: true}, 2},
		{"required, single", Request{MustCall: true, SingleCall: true}, 1},
		{"by name", Request{MustCall: true, Callee: "f"}, 1},
		{"beside an answer in JSON", Request{Answer: schema.AnyObject}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.r.Messages, tt.r.Tools = user("?"), tools
			if got := complete(t, script(t, twice), tt.r); len(got.names) != tt.want || got.result.Reason != ReasonToolCalls {
				t.Errorf("calls %q, reason %s; want %d calls", got.names, got.result.Reason, tt.want)
			}
		})
	}
}

// A text that can be read in too many ways ends with an error of that name.
func TestAmbiguousAnswer(t *testing.T) {
	const either = `{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/x"},{"$ref":"#/$defs/y"},{"type":"null"}]}},"required":["a"]}`
	s := script(t, func(tok *tokenizer.Tokenizer) []int32 { return spell(tok, strings.Repeat(`{"a":`, 40)) })
	c, err := s.Start(t.Context(), Request{Messages: user("?"), LogProbs: engine.NoLogProbs,
		Answer: json.RawMessage(`{"$ref":"#/$defs/x","$defs":{"x":` + either + `,"y":` + either + `}}`)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for err == nil {
		_, err = c.Next()
	}
	if !errors.Is(err, grammar.ErrAmbiguous) {
		t.Errorf("error %v, want grammar.ErrAmbiguous", err)
	}
}

func TestSchemasThatCannotBeHeldTo(t *testing.T) {
	s := noise(t)
	for _, tt := range []struct {
		name string
		r    Request
		tool int
		at   string
	}{
		{"answer", Request{Answer: json.RawMessage(`{"not":{}}`)}, -1, "not"},
		{"tool", Request{MustCall: true, Tools: []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"not":{}}}}}}`)}}, 0, "properties.a.not"},
	} {
		tt.r.Messages = user("?")
		_, err := s.Start(t.Context(), tt.r)
		if fault, ok := err.(*schema.Error); !ok || fault.Tool != tt.tool || fault.At != tt.at {
			t.Errorf("%s: error %v, want one at %s", tt.name, err, tt.at)
		}
	}
}
