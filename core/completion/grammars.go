package completion

import (
	"fmt"
	"slices"
	"sync"

	"calla/core/chat"
	"calla/core/grammar"
	"calla/core/schema"
)

// grammars makes and keeps what completions are held to. Clients ask with the
// same schemas again and again.
type grammars struct {
	vocabulary func() (*grammar.Vocabulary, error)

	mu   sync.Mutex
	kept []keptGrammar // the last used at the end
}

type keptGrammar struct {
	key       string
	automaton *grammar.Automaton
}

// maxGrammars bounds the automata that are kept.
const maxGrammars = 16

// automaton returns the one of a key; write makes its grammar.
func (g *grammars) automaton(key string, write func() (*grammar.Grammar, error)) (*grammar.Automaton, error) {
	if a := g.find(key); a != nil {
		return a, nil
	}
	v, err := g.vocabulary()
	if err != nil {
		return nil, err
	}
	written, err := write()
	if err != nil {
		return nil, err
	}
	a, err := v.Bind(written)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.kept) == maxGrammars {
		g.kept = slices.Delete(g.kept, 0, 1)
	}
	g.kept = append(g.kept, keptGrammar{key, a})
	return a, nil
}

func (g *grammars) find(key string) *grammar.Automaton {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, k := range g.kept {
		if k.key == key {
			g.kept = append(slices.Delete(g.kept, i, i+1), k)
			return k.automaton
		}
	}
	return nil
}

// vocabulary reads the tokenizer.
func (s *Service) vocabulary() (*grammar.Vocabulary, error) {
	t := s.tokenizer
	tokens := grammar.Tokens{
		Count: t.VocabSize(),
		Bytes: t.Bytes,
		Apart: func(id int32) bool {
			added, ok := t.TokenID(string(t.Bytes(id)))
			return ok && added == id
		},
		Ends: []int32{s.ids[chat.TurnEnd]},
	}
	for _, name := range schema.Controls() {
		tokens.Controls = append(tokens.Controls, s.ids[name])
	}
	v, err := grammar.NewVocabulary(tokens)
	if err == nil {
		schema.Prepare(v)
	}
	return v, err
}

// held is what a request's completion is held to.
type held struct {
	// whole is the grammar of the completion after its thought. Nil: it is free
	// until a tool is called.
	whole *grammar.Automaton
	// call is the grammar of a tool call, from after its first control on. Nil:
	// calls are free.
	call *grammar.Automaton
}

// held returns what a request's completion is held to.
func (s *Service) held(r Request) (h held, err error) {
	strict := slices.Contains(r.Strict, true)
	if r.MustCall || r.Answer != nil {
		o := r.output()
		h.whole, err = s.grammars.automaton(fmt.Sprintf("output %v", o), o.Grammar)
		return h, err
	}
	if strict || r.SingleCall && len(r.Tools) > 0 {
		tools := r.tools(func(i int) bool { return i < len(r.Strict) && r.Strict[i] })
		h.call, err = s.grammars.automaton(fmt.Sprintf("call %v", tools), func() (*grammar.Grammar, error) { return schema.Calls(tools) })
	}
	return h, err
}

// output is all that a completion held from its start may be.
func (r Request) output() schema.Output {
	o := schema.Output{Answer: r.Answer, Parallel: !r.SingleCall && r.Callee == ""}
	if !r.MustCall {
		o.Tools = r.tools(func(i int) bool { return i < len(r.Strict) && r.Strict[i] })
		return o
	}
	o.Answer = nil
	o.Tools = r.tools(func(int) bool { return true })
	if r.Callee != "" {
		o.Tools = slices.DeleteFunc(o.Tools, func(t schema.Tool) bool { return t.Name() != r.Callee })
	}
	return o
}

func (r Request) tools(heldTo func(i int) bool) []schema.Tool {
	var all []schema.Tool
	for i, raw := range r.Tools {
		all = append(all, schema.Tool{Declaration: raw, Held: heldTo(i)})
	}
	return all
}
