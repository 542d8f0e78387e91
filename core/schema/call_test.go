package schema

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"calla/core/chat"
)

// called parses what a model wrote from its first control on.
func called(t testing.TB, tools []json.RawMessage, text string) *chat.Reply {
	t.Helper()
	p := chat.NewParser(tools, false)
	var r chat.Reply
	for text != "" {
		at, control := len(text), ""
		for _, c := range Controls() {
			if i := strings.Index(text, c); i >= 0 && i < at {
				at, control = i, c
			}
		}
		r.Add(p.Text(text[:at])...)
		if control != "" {
			r.Add(p.Control(control)...)
		}
		text = text[at+len(control):]
	}
	r.Add(p.Close(false)...)
	return &r
}

func TestCalls(t *testing.T) {
	v := byteVocabulary(t)
	weather := declaration("weather", `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":10},"unit":{"enum":["c","f"]},"at":{"type":["string","null"],"format":"date"}},"required":["city"],"additionalProperties":false}`)
	free := declaration("free", `{"type":"object","properties":{"x":{"multipleOf":2}}}`)
	bare := json.RawMessage(`{"type":"function","function":{"name":"bare"}}`)
	nested := declaration("nested", `{"type":"object","properties":{"o":{"type":"object"},"n":{"type":"integer"}}}`)
	one := Output{Tools: []Tool{{weather, true}, {free, false}, {bare, true}, {nested, true}}}
	several := one
	several.Parallel = true
	either := one
	either.Answer = AnyObject
	call := func(name string, parameters ...string) string {
		var b strings.Builder
		b.WriteString("<tool_call>\n<function=" + name + ">\n")
		for i := 0; i < len(parameters); i += 2 {
			b.WriteString("<parameter=" + parameters[i] + ">\n" + parameters[i+1] + "\n</parameter>\n")
		}
		return b.String() + "</function>\n</tool_call>"
	}
	paris := call("weather", "city", "Paris")
	for _, tt := range []struct {
		name   string
		output Output
		text   string
		want   bool
	}{
		{"a call", one, paris, true},
		{"all parameters", one, call("weather", "city", "<b>\n\nNew </York>", "days", "3", "unit", "c", "at", "2024-02-29"), true},
		{"a string that is empty", one, call("weather", "city", ""), true},
		{"null", one, call("weather", "city", "x", "at", "null"), true},
		{"a required one is missing", one, call("weather", "days", "3"), false},
		{"out of bounds", one, call("weather", "city", "x", "days", "11"), false},
		{"no constant", one, call("weather", "city", "x", "unit", "k"), false},
		{"quotation marks", one, call("weather", "city", "x", "unit", `"c"`), false},
		{"another order", one, call("weather", "unit", "c", "city", "x"), false},
		{"one that is not declared", one, call("weather", "city", "x", "y", "z"), false},
		{"a string that ends early", one, call("weather", "city", "a</parameter>b"), false},
		{"a string with the next one in it", one, call("weather", "city", "a\n<parameter=days>\n99"), false},
		{"a string within JSON", one, call("nested", "o", `{"a": ["</b>", "<\/parameter>"]}`, "n", "1"), true},
		{"a string within JSON with the end mark in it", one, call("nested", "o", `{"a": "</parameter>"}`), false},
		{"a name within JSON with the end mark in it", one, call("nested", "o", `{"</parameter>": 1}`), false},
		{"another tool", one, call("wether", "city", "x"), false},
		{"no parameters", one, call("bare"), true},
		{"not held", one, call("free", "x", "3", "y", "</parameter>"), true},
		{"two where one is wanted", one, paris + "\n" + paris, false},
		{"two", several, paris + "\n" + call("bare"), true},
		{"two without a line between", several, paris + paris, false},
		{"none", one, "", false},
		{"an answer instead", either, `{"a": 1}`, true},
		{"a call instead", either, paris, true},
		{"an answer and a call", either, `{}` + paris, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, err := tt.output.Grammar()
			if got := reads(bind(t, v, g, err), tt.text); got != tt.want {
				t.Errorf("%q: %v, want %v", tt.text, got, tt.want)
			}
		})
	}
}

func TestRefusedTools(t *testing.T) {
	for _, tt := range []struct{ name, parameters, want string }{
		{"a keyword", `{"type":"object","properties":{"a":{"type":"integer","multipleOf":3}}}`, "tool 1: properties.a.multipleOf: this keyword"},
		{"no object", `{"type":"string"}`, "tool 1: the parameters of a tool must be one object"},
		{"one of several", `{"anyOf":[{"type":"object"},{"type":"object","properties":{"a":{}}}]}`, "must be one object"},
		{"a name with a tag's end", `{"type":"object","properties":{"a>b":{}}}`, "properties.a>b: a call can't have"},
		{"only what reads as text, and none fits", `{"type":"object","properties":{"a":{"type":"string","minLength":3,"maxLength":2}},"required":["a"]}`, "properties.a: a call would have a string here"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Calls([]Tool{{declaration("ok", `{"type":"object"}`), true}, {declaration("f", tt.parameters), true}})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// Whatever the parameters and whatever the logits, the arguments that the parser
// reads fit.
func TestRandomCallsFit(t *testing.T) {
	v := vocabularyOf(t, fragments)
	rounds, said, silent := 120, 0, 0
	if testing.Short() {
		rounds = 100
	}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(uint64(seed), 14))
		parameters := (&generator{rng: rng}).document(true)
		tool := declaration("f", parameters)
		g, err := Output{Tools: []Tool{{tool, true}}}.Grammar()
		if err != nil {
			for _, may := range []string{"nothing fits", "refers to itself", "a call would have a string", "is not supported in"} {
				if strings.Contains(err.Error(), may) {
					err = nil
					break
				}
			}
			if err != nil {
				t.Errorf("seed %d: %s: %v", seed, parameters, err)
			}
			continue
		}
		a := bind(t, v, g, nil)
		valid := validator(t, json.RawMessage(parameters))
		s := newSpeaker(rng, v)
		for range 3 {
			text, ok := s.say(t, a)
			if !ok {
				silent++
				continue
			}
			said++
			r := called(t, []json.RawMessage{tool}, text)
			if len(r.Calls()) != 1 || r.Truncated() {
				t.Fatalf("seed %d: %s\n%q has %d calls", seed, parameters, text, len(r.Calls()))
			}
			if err := validate(valid, string(r.Calls()[0].Arguments)); err != nil {
				t.Fatalf("seed %d: %s\n%q\narguments %s\n%v", seed, parameters, text, r.Calls()[0].Arguments, err)
			}
		}
	}
	t.Logf("%d calls, %d came to no end", said, silent)
	if said < rounds || silent > said/5 {
		t.Errorf("%d calls of %d tools, %d came to no end: the test sees too little", said, rounds, silent)
	}
}
