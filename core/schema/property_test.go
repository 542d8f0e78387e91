package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"calla/core/grammar"
)

// validator is the library's own reading of a schema, its patterns included.
func validator(t testing.TB, raw json.RawMessage) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("https://schema.invalid/s", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("https://schema.invalid/s")
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return s
}

func validate(s *jsonschema.Schema, text string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// fragments are tokens as vocabularies have them: they end strings and members
// in the middle, and cut characters.
var fragments = []string{
	`":`, `": `, `",`, `", `, `"}`, `{"`, `["`, `"]`, `},`, `}, {`, `[{`, `}]`, `":"`, `","`, `": "`, `":{"`, `": [`, `true`, `false`, `null`,
	` "`, "\n", "\n ", "\n  ", "  ", "\r\n", ",\n", "{\n", "00", "12", "1.", ".5", "e1", "E+", "-1", "10", "99", "2024", "-0", ":0", "T1", "Z\"",
	"ab", "abc", "a\"", "\\n", "\\\"", "\\u", "\\u00", "\\ud83d", "\\u00e9", "é", "\xc3", "\xa9\"", "\xf0\x9f", "\xf0\x9f\x98", "\x98\x80", "😀", "😀\"", "漢字",
	"<", "</", "</p", "</parameter>", "\n</", "\n</parameter>\n", "\n</parameter>\n</function>\n", "<parameter=", "\n<parameter=", ">\n", "null\n",
	`"na`, `me`, `"name"`, `"name": "`, `"id`, `"kind":`, `"next": `, `"x"`, `"value`,
}

// generator makes random schemas.
type generator struct {
	rng   *rand.Rand
	depth int
	refs  int // definitions that may be named
}

func (g *generator) one(all ...string) string { return all[g.rng.IntN(len(all))] }

func (g *generator) schema() string {
	g.depth++
	defer func() { g.depth-- }()
	n := 16
	if g.depth > 3 {
		n = 10
	}
	r := g.rng
	switch r.IntN(n) {
	case 0:
		return g.one(`{"type":"boolean"}`, `{"type":"null"}`, `{"type":["boolean","null"]}`, `{"type":["integer","string"]}`)
	case 1:
		low := r.IntN(200) - 100
		return fmt.Sprintf(`{"type":"integer","%s":%d,"%s":%d}`, g.one("minimum", "exclusiveMinimum"), low, g.one("maximum", "exclusiveMaximum"), low+2+r.IntN(300))
	case 2:
		return fmt.Sprintf(`{"type":"number","%s":%.2f}`, g.one("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), r.Float64()*20-10)
	case 3:
		return g.one(`{"type":"integer"}`, `{"type":"number"}`, `{"type":"string"}`)
	case 4:
		low := r.IntN(4)
		return fmt.Sprintf(`{"type":"string","minLength":%d,"maxLength":%d}`, low, low+r.IntN(12))
	case 5:
		return fmt.Sprintf(`{"type":"string","pattern":%q}`, g.one(`^[a-z]+$`, `^\\d{3}-\\d{2,4}$`, `ab`, `^(foo|bar)?$`, `^[^"]{2,5}$`, `^é+\\.$`, `^<.*>$`))
	case 6:
		return fmt.Sprintf(`{"type":"string","format":%q}`, g.one(Formats()...))
	case 7:
		return g.one(`{"enum":["a","b\"c",1,null,true]}`, `{"enum":["low","lower","lowest"]}`, `{"const":"x"}`, `{"const":{"a":[1,"é"]}}`, `{"enum":["null","</parameter>x","a\nb"]}`)
	case 8:
		if g.refs > 0 {
			return fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, r.IntN(g.refs))
		}
		return `{"type":"string","pattern":"^ab*$","maxLength":4}`
	case 9:
		return g.one(`{}`, `true`, `{"description":"anything"}`)
	case 10, 11:
		return fmt.Sprintf(`{"type":"array","items":%s%s}`, g.schema(), g.one(``, `,"minItems":1`, `,"maxItems":3`, `,"minItems":2,"maxItems":2`, `,"maxItems":0`))
	case 12:
		return fmt.Sprintf(`{"anyOf":[%s,%s]}`, g.schema(), g.schema())
	case 13:
		return fmt.Sprintf(`{"type":"array","prefixItems":[%s,%s],"items":%s}`, g.schema(), g.schema(), g.one(`false`, g.schema()))
	}
	return g.object()
}

func (g *generator) object() string {
	var properties, required []string
	for _, name := range []string{"name", "id", "kind", "next", "x", "value", "with space", "é\"q"} {
		if g.rng.IntN(3) > 0 {
			continue
		}
		properties = append(properties, fmt.Sprintf("%q:%s", name, g.schema()))
		if g.rng.IntN(2) == 0 {
			required = append(required, fmt.Sprintf("%q", name))
		}
	}
	return fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s]%s}`, strings.Join(properties, ","), strings.Join(required, ","),
		g.one(`,"additionalProperties":false`, `,"additionalProperties":false`, ``, `,"additionalProperties":`+g.schema()))
}

// document is a schema, an object at its root or not, with definitions.
func (g *generator) document(object bool) string {
	g.refs = 2
	root := g.schema
	if object {
		root = g.object
	}
	s := root()
	for !strings.HasPrefix(s, "{") || s == "{}" {
		s = root()
	}
	return fmt.Sprintf(`{"$defs":{"d0":%s,"d1":%s},%s`, g.schema(), g.object(), s[1:])
}

// speaker writes with a model that knows nothing: at each step it takes a random
// token of those allowed. After a while it prefers what ends things.
type speaker struct {
	rng  *rand.Rand
	mask grammar.Mask
	text func(token int32) string
}

// say returns a complete text, or ok false where it came to no end.
func (s *speaker) say(t testing.TB, a *grammar.Automaton) (text string, ok bool) {
	m := a.Matcher()
	for n := 0; n < 1500; n++ {
		if err := m.Allowed(s.mask); err != nil {
			t.Fatalf("after %q: %v", text, err)
		}
		token := s.choose(n)
		if token < 0 {
			t.Fatalf("after %q no token is allowed", text)
		}
		if token == endToken {
			if !m.Complete() {
				t.Fatalf("%q may end, but is not complete", text)
			}
			return text, true
		}
		if err := m.Next(token); err != nil {
			t.Fatalf("after %q: %v, though it is allowed", text, err)
		}
		text += s.text(token)
	}
	return text, false
}

func (s *speaker) choose(n int) int32 {
	if n > 60 {
		endOfArgument := firstWord + int32(slices.Index(fragments, "\n</parameter>\n"))
		for _, token := range []int32{endToken, callEndToken, endOfArgument, '}', ']', '"', '0', '1', 'Z', '\n', '/', 'a'} {
			if s.mask.Has(token) && (token != 'a' || s.rng.IntN(2) == 0) && s.rng.IntN(16) > 0 {
				return token
			}
		}
	}
	return pick(s.rng, s.mask)
}

func newSpeaker(rng *rand.Rand, v *grammar.Vocabulary) *speaker {
	return &speaker{rng: rng, mask: grammar.NewMask(v.Size()), text: func(token int32) string {
		switch {
		case token < endToken:
			return string([]byte{byte(token)})
		case token < firstWord:
			return Controls()[token-callStartToken]
		}
		return fragments[token-firstWord]
	}}
}

// Whatever the schema and whatever the logits, the answer fits.
func TestRandomAnswersFit(t *testing.T) {
	v := vocabularyOf(t, fragments)
	rounds, said, silent := 250, 0, 0
	if testing.Short() {
		rounds = 100
	}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(uint64(seed), 12))
		schema := (&generator{rng: rng}).document(false)
		g, err := Output{Answer: json.RawMessage(schema)}.Grammar()
		if err != nil {
			if !strings.Contains(err.Error(), "nothing fits") && !strings.Contains(err.Error(), "refers to itself") {
				t.Errorf("seed %d: %s: %v", seed, schema, err)
			}
			continue
		}
		a := bind(t, v, g, nil)
		valid := validator(t, json.RawMessage(schema))
		s := newSpeaker(rng, v)
		for range 3 {
			text, ok := s.say(t, a)
			if !ok {
				silent++
				continue
			}
			said++
			if err := validate(valid, text); err != nil {
				t.Fatalf("seed %d: %s\nanswer %s\n%v", seed, schema, text, err)
			}
		}
	}
	t.Logf("%d answers, %d came to no end", said, silent)
	if said < rounds || silent > said/5 {
		t.Errorf("%d answers of %d schemas, %d came to no end: the test sees too little", said, rounds, silent)
	}
}

// A mask allows a token if and only if its bytes, one after the other, have a
// place: no way to cut a text into tokens is ruled out.
func TestMasksRuleOutNothing(t *testing.T) {
	v := vocabularyOf(t, fragments)
	rounds := 90
	if testing.Short() {
		rounds = 40
	}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(uint64(seed), 13))
		g, err := Output{Answer: json.RawMessage((&generator{rng: rng}).document(false))}.Grammar()
		switch seed % 3 {
		case 0:
			g, err = Calls([]Tool{{Declaration: declaration("f", (&generator{rng: rng}).document(true)), Held: true}})
		case 1: // strings whose bounds and whose end mark meet
			g, err = Calls([]Tool{{Declaration: declaration("f", fmt.Sprintf(`{"properties":{"a":{"type":"string","minLength":%d,"maxLength":%d},"b":{"type":"string","maxLength":2}}}`,
				seed%5, seed%5+seed%4)), Held: true}})
		}
		if err != nil {
			continue
		}
		a := bind(t, v, g, nil)
		s := newSpeaker(rng, v)
		m, text := a.Matcher(), ""
		for n := range 60 {
			if err := m.Allowed(s.mask); err != nil {
				t.Fatal(err)
			}
			if s.mask.Has(endToken) != m.Complete() {
				t.Fatalf("seed %d: after %q: may end %v, complete %v", seed, text, s.mask.Has(endToken), m.Complete())
			}
			for token := range int32(v.Size()) {
				if token == endToken {
					continue
				}
				if want := bytewise(m, s.text(token), token); s.mask.Has(token) != want {
					t.Fatalf("seed %d: after %q: token %q is allowed %v, its bytes have a place %v", seed, text, s.text(token), !want, want)
				}
			}
			token := s.choose(n)
			if token == endToken || m.Next(token) != nil {
				break
			}
			text += s.text(token)
		}
	}
}

// bytewise reads a token's bytes one by one, with a copy of the matcher.
func bytewise(m *grammar.Matcher, text string, token int32) bool {
	c := *m
	if token >= endToken && token < firstWord {
		return c.Next(token) == nil
	}
	for i := range len(text) {
		if c.Next(int32(text[i])) != nil {
			return false
		}
	}
	return true
}

func declaration(name, parameters string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":"function","function":{"name":%q,"parameters":%s}}`, name, parameters))
}
