package contract

import (
	"encoding/json"
	"fmt"
	"strings"
)

// leastBody is the smallest request that an endpoint takes. The fields of the
// server's own table are tried on top of it.
var leastBody = map[string]string{
	chatPath:                       ask(`"max_tokens":1`),
	completionsPath:                fmt.Sprintf(`{"model":%q,"prompt":"a","max_tokens":1}`, modelMark),
	responsesPath:                  fmt.Sprintf(`{"model":%q,"input":"a","max_output_tokens":1}`, modelMark),
	messagesPath:                   fmt.Sprintf(`{"model":%q,"max_tokens":1,"messages":[{"role":"user","content":"a"}]}`, modelMark),
	messagesPath + "/count_tokens": fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"a"}]}`, modelMark),
	"/tokenize":                    `{"prompt":"a"}`,
	"/detokenize":                  `{"tokens":[0]}`,
}

// field is a line of the server's own table.
type field struct {
	Name    string
	Support string
	Values  string
}

// fieldChecks hold a server to the table that it gives of itself.
func fieldChecks() []check {
	var all []check
	for _, path := range []string{chatPath, completionsPath, responsesPath, messagesPath, messagesPath + "/count_tokens", "/tokenize", "/detokenize"} {
		all = append(all,
			check{"fields", path + ": what the table refuses is refused", func(s *session) error {
				return s.eachField(path, "refused", func(f field) error {
					for _, value := range []string{`{"a":1}`, `"a"`, "1", "true", "[]"} {
						if err := s.withField(path, f.Name, value, 400); err != nil {
							return err
						}
					}
					return nil
				})
			}},
			check{"fields", path + ": what the table fixes is taken", func(s *session) error {
				return s.eachField(path, "fixed", func(f field) error {
					var values []json.RawMessage
					if err := json.Unmarshal([]byte("["+f.Values+"]"), &values); err != nil {
						return fmt.Errorf("the values %q of %s are no list of JSON", f.Values, f.Name)
					}
					for _, v := range values {
						if err := s.withField(path, f.Name, string(v), 200); err != nil {
							return err
						}
					}
					return s.withField(path, f.Name, `"something else"`, 400)
				})
			}},
			check{"fields", path + ": null is no value", func(s *session) error {
				return s.eachField(path, "", func(f field) error {
					if strings.Contains(leastBody[path], `"`+f.Name+`"`) {
						return nil
					}
					return s.withField(path, f.Name, "null", 200)
				})
			}},
			check{"fields", path + ": what the table does not have is refused", func(s *session) error {
				if err := s.have(path); err != nil {
					return err
				}
				return s.withField(path, "frobnicate", "1", 400)
			}},
		)
	}
	return all
}

// eachField calls f for the fields of an endpoint with this support, those of
// the body itself. Empty is any support.
func (s *session) eachField(path, support string, f func(field) error) error {
	a, err := s.get("/v1/capabilities")
	if err != nil {
		return err
	}
	if a.absent() {
		return skipped("the server has no /v1/capabilities")
	}
	var table struct{ Fields map[string][]field }
	if err := a.into(&table); err != nil {
		return err
	}
	if len(table.Fields[path]) == 0 {
		return skipped("the table has no fields for " + path)
	}
	for _, line := range table.Fields[path] {
		if strings.ContainsAny(line.Name, ".[") || support != "" && line.Support != support {
			continue
		}
		if err := f(line); err != nil {
			return err
		}
	}
	return nil
}

// withField sends the least body with one more field.
func (s *session) withField(path, name, value string, want int) error {
	a, err := s.post(path, strings.TrimSuffix(leastBody[path], "}")+fmt.Sprintf(`,%q:%s}`, name, value))
	if err != nil {
		return err
	}
	if want == 400 {
		if err := (refusal{status: 400, param: name}).matches(a, path); err != nil {
			return fmt.Errorf("%s of %s: %w", name, value, err)
		}
		return nil
	}
	if a.status != want {
		return fmt.Errorf("%s of %s: %w", name, value, a.wrong(fmt.Sprintf("want %d", want)))
	}
	return nil
}
