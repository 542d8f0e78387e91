package schema

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"
)

// Whatever a client sends as a schema, it is refused or it has answers, and
// soon.
func FuzzSchema(f *testing.F) {
	for _, s := range []string{ordinary, string(wide(12)), `{}`, `false`, `{"$ref":"#"}`, `{"enum":[]}`, `{"type":"string","pattern":"^(a|b)*$"}`, `[]`, `{"const":{"a":1e400}}`} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	v := vocabularyOf(f, fragments)
	f.Fuzz(func(t *testing.T, schema []byte, call bool) {
		start := time.Now()
		o := Output{Answer: schema}
		if call {
			if !json.Valid(schema) {
				return
			}
			o = Output{Tools: []Tool{{declaration("f", string(schema)), true}}}
		}
		g, err := o.Grammar()
		if took := time.Since(start); took > 10*time.Second {
			t.Fatalf("a schema of %d bytes took %v", len(schema), took)
		}
		if err != nil {
			return
		}
		newSpeaker(rand.New(rand.NewPCG(1, 1)), v).say(t, bind(t, v, g, nil))
	})
}
