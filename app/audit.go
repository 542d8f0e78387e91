package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"calla/core/chat"
	"calla/core/completion"
	"calla/core/engine"
)

// audited is the proof for one conversation.
type audited struct {
	Name     string           `json:"conversation"`
	Tokens   int              `json:"tokens"`
	Findings []engine.Finding `json:"findings"`
}

func newAudit() *cobra.Command {
	var s settings
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Prove on the loaded model that cached and cold runs are equal to the bit",
		Long: "audit evaluates a few conversations in calls of several sizes and from every place\n" +
			"where the prefix cache may take a snapshot, and compares all logits bit by bit.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			show := func(a audited) error { return a.print(out) }
			if asJSON {
				show = func(a audited) error { return json.NewEncoder(out).Encode(a) }
			}
			equal, err := s.audit(cmd.Context(), cmd.ErrOrStderr(), show)
			if err == nil && !equal {
				err = exitCode(1)
			}
			return err
		},
	}
	s.modelFlags(cmd)
	s.engineFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a line of JSON for each conversation")
	return cmd
}

// audit runs the proof. It reports whether all was equal.
func (s *settings) audit(ctx context.Context, progress io.Writer, show func(audited) error) (equal bool, err error) {
	o, err := s.open()
	if err != nil {
		return false, err
	}
	defer o.Close()
	options, _, err := s.engineOptions(o, slog.New(slog.DiscardHandler))
	if err != nil {
		return false, err
	}
	e, err := engine.New(withProgress(o.loader(), newProgress(progress)), options)
	if err != nil {
		return false, err
	}
	defer o.end(ctx, e)
	c, err := completion.New(e, o.tokenizer)
	if err != nil {
		return false, err
	}
	equal = true
	for _, t := range auditTalks() {
		prompt, err := c.Encode(t.request)
		if err != nil {
			return false, err
		}
		a := audited{Name: t.name, Tokens: len(prompt)}
		err = e.Audit(ctx, prompt, func(f engine.Finding) {
			a.Findings = append(a.Findings, f)
			equal = equal && f.Equal
		})
		if err != nil {
			return false, fmt.Errorf("%s: %w", t.name, err)
		}
		if err := show(a); err != nil {
			return false, err
		}
	}
	return equal, nil
}

func (a audited) print(w io.Writer) error {
	same := 0
	for _, f := range a.Findings {
		if f.Equal {
			same++
			continue
		}
		if _, err := fmt.Fprintf(w, "%s: %s: differs at step %d, logit %d\n", a.Name, f.Way, f.Step, f.Logit); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s (%d tokens): %d of %d ways give the same bits\n", a.Name, a.Tokens, same, len(a.Findings))
	return err
}

// talk is a conversation to audit.
type talk struct {
	name    string
	request completion.Request
}

func auditTalks() []talk {
	say := func(role, text string) chat.Message { return chat.Message{Role: role, Content: chat.Text(text)} }
	weather := json.RawMessage(`{"type":"function","function":{"name":"get_weather","description":"Weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}`)
	call := chat.Message{Role: "assistant", ToolCalls: []chat.ToolCall{{Name: "get_weather", Arguments: json.RawMessage(`{"city":"Paris"}`)}}}
	long := strings.Repeat("The lighthouse keeper wrote a line in his book each night, and the sea read none of them. ", 100)
	return []talk{
		{"one question", completion.Request{Messages: []chat.Message{say("user", "What is the capital of France?")}}},
		{"several turns", completion.Request{Messages: []chat.Message{
			say("system", "You are a careful assistant."), say("user", "Hello"), say("assistant", "Hello! How can I help you?"),
			say("user", "What is 12 + 30?"), say("assistant", "12 + 30 = 42."), say("user", "And twice that?"),
		}}},
		{"an edited branch of it", completion.Request{Messages: []chat.Message{
			say("system", "You are a careful assistant."), say("user", "Hello"), say("assistant", "Hello! How can I help you?"),
			say("user", "What is 12 + 31?"), say("assistant", "12 + 31 = 43."), say("user", "And twice that?"),
		}}},
		{"tools", completion.Request{Tools: []json.RawMessage{weather}, Messages: []chat.Message{
			say("user", "What is the weather in Paris?"), call, say("tool", `{"temperature": 21, "sky": "clear"}`), call, say("tool", `{"temperature": 22, "sky": "clear"}`),
		}}},
		{"thinking", completion.Request{Thinking: true, Messages: []chat.Message{say("user", "Is 17 a prime number? 🙂 漢字")}}},
		{"a long message", completion.Request{Messages: []chat.Message{say("user", long), say("assistant", "I see."), say("user", "Who wrote?")}}},
	}
}
