package contract

import (
	"encoding/json"
	"fmt"
	"strings"
)

func tokenChecks() []check {
	return []check{
		{"tokens", "tokenize and back", func(s *session) error {
			const text = "Hello, 漢字 é 👩‍👩‍👧‍👦"
			for _, path := range []string{"/tokenize", "/detokenize"} {
				if err := s.have(path); err != nil {
					return err
				}
			}
			a, err := s.post("/tokenize", fmt.Sprintf(`{"prompt":%q}`, text))
			if err != nil {
				return err
			}
			var tokens struct {
				Tokens []int32
				Count  int
			}
			if err := a.into(&tokens); err != nil {
				return err
			}
			if tokens.Count != len(tokens.Tokens) || tokens.Count == 0 {
				return a.wrong("want tokens and how many they are")
			}
			ids, err := json.Marshal(tokens.Tokens)
			if err != nil {
				return err
			}
			a, err = s.post("/detokenize", `{"tokens":`+string(ids)+`}`)
			if err != nil {
				return err
			}
			var back struct{ Prompt string }
			if err := a.into(&back); err != nil {
				return err
			}
			if back.Prompt != text {
				return fmt.Errorf("%q came back, want %q", back.Prompt, text)
			}
			return nil
		}},
		{"tokens", "tokenize counts the prompt of a conversation", func(s *session) error {
			if err := s.have("/tokenize"); err != nil {
				return err
			}
			a, err := s.post("/tokenize", fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]}`, question))
			if err != nil {
				return err
			}
			var tokens struct{ Count int }
			if err := a.into(&tokens); err != nil {
				return err
			}
			c, err := s.chat(ask(`"max_tokens":1`))
			if err == nil && c.Usage.PromptTokens != tokens.Count {
				err = fmt.Errorf("%d tokens, usage has %d", tokens.Count, c.Usage.PromptTokens)
			}
			return err
		}},
	}
}

// operatorChecks look at what people and programs watch a server by.
func operatorChecks() []check {
	all := []check{
		{"operation", "GET /metrics", func(s *session) error {
			a, err := s.get("/metrics")
			if err != nil {
				return err
			}
			if a.absent() {
				return skipped("the server has no /metrics")
			}
			if a.status != 200 || !strings.Contains(string(a.body), "# TYPE ") {
				return a.wrong("want numbers in Prometheus' text format")
			}
			return nil
		}},
		{"operation", "GET /v1/status", func(s *session) error {
			return s.object("/v1/status", "state", "model", "receipt", "memory", "throughput", "queue", "recent_errors")
		}},
		{"operation", "GET /v1/capabilities", func(s *session) error {
			return s.object("/v1/capabilities", "endpoints", "fields", "limits", "model")
		}},
	}
	for _, path := range []string{"/health", "/health/live", "/health/ready"} {
		all = append(all, check{"operation", "GET " + path, func(s *session) error {
			a, err := s.get(path)
			if err != nil {
				return err
			}
			if a.absent() {
				return skipped("the server has no " + path)
			}
			if a.status != 200 {
				return a.wrong("want 200 from a server that answers")
			}
			return nil
		}})
	}
	return all
}

// object wants a JSON object with these names at a path.
func (s *session) object(path string, names ...string) error {
	a, err := s.get(path)
	if err != nil {
		return err
	}
	if a.absent() {
		return skipped("the server has no " + path)
	}
	var o map[string]json.RawMessage
	if err := a.into(&o); err != nil {
		return err
	}
	for _, n := range names {
		if o[n] == nil {
			return a.wrong("want the name " + n)
		}
	}
	return nil
}
