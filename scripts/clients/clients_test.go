package clients

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// request is one question to the model that a client asks.
type request struct {
	Model    string            `json:"model"`
	Messages []message         `json:"messages"`
	Stream   bool              `json:"stream"`
	Thinking bool              `json:"thinking,omitempty"`
	Tools    []json.RawMessage `json:"tools,omitempty"`
	Result   string            `json:"result,omitempty"` // of each call; the client gives it to the model
	Extra    map[string]any    `json:"extra,omitempty"`  // fields that the client does not know
}

// reply is what the client handed to its caller: the last answer, and the calls
// before it.
type reply struct {
	Text             string   `json:"text"`
	Reasoning        string   `json:"reasoning"`
	Calls            []call   `json:"calls"`
	Finish           string   `json:"finish"` // in OpenAI's words
	Deltas           int      `json:"deltas"` // with text, of a stream
	PromptTokens     int      `json:"prompt_tokens"`
	CompletionTokens int      `json:"completion_tokens"`
	Refusal          *refusal `json:"error"` // in place of all others
}

type call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

// refusal is an error of the API as the client has read it.
type refusal struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Param  string `json:"param"`
}

// client is one implementation of the API's other side.
type client interface {
	// models lists the ids of the models that the server has.
	models(ctx context.Context) ([]string, error)
	// chat asks for a completion. An answer of the server that the client
	// takes for an error is a reply with a refusal.
	chat(ctx context.Context, r request) (reply, error)
}

// publication is a client of the tests.
type publication struct {
	name string
	open func(t *testing.T, url string) client // for the API below a URL
	// all has the client ask every conversation; the others add nothing by more
	// than some of each shape.
	all bool
	// hides are the parts of a reply that the client does not hand on.
	hides []part
	// single is a client that takes no turns from before.
	single bool
}

// part is a part of a reply.
type part string

const (
	finish      part = "finish"
	usageOfRun  part = "usage after calls"
	reasoning   part = "reasoning"
	code        part = "code"         // and field of a refusal
	extraFields part = "extra fields" // which it can't send
)

var published = []publication{
	{name: "openai-go", open: openGo, all: true},
	{name: "openai-python", open: python("openai_chat.py")},
	{name: "openai-node", open: node("openai_chat.mjs")},
	{name: "anthropic-python", open: python("anthropic_messages.py"), hides: []part{code}},
	{name: "litellm", open: python("litellm_chat.py"), hides: []part{code}},
	{name: "langchain-openai", open: python("langchain_chat.py"), hides: []part{reasoning}},
	{name: "llm", open: python("llm_chat.py"), hides: []part{finish, reasoning, usageOfRun, extraFields}, single: true},
	{name: "openai-agents", open: python("openai_agents.py"), hides: []part{finish}},
	{name: "vercel-ai", open: node("vercel_ai.mjs")},
}

// shown takes out of a reply what the client hides.
func (p publication) shown(r reply) reply {
	if slices.Contains(p.hides, finish) {
		r.Finish = ""
	}
	if slices.Contains(p.hides, reasoning) {
		r.Reasoning = ""
	}
	if slices.Contains(p.hides, usageOfRun) && len(r.Calls) > 0 {
		r.PromptTokens, r.CompletionTokens = 0, 0
	}
	if slices.Contains(p.hides, code) && r.Refusal != nil {
		r.Refusal = &refusal{Status: r.Refusal.Status}
	}
	return r
}

// samples are conversations of each shape: a system message, several turns,
// characters of several bytes, several lines, a long prompt.
var samples = []string{"capital-france", "sys-pirate", "followup", "emoji", "chinese", "times-table", "needle-400"}

// TestClients opens each client once, since some take long to start.
func TestClients(t *testing.T) {
	for _, p := range published {
		t.Run(p.name, func(t *testing.T) {
			c := p.open(t, served.URL+"/v1")
			ids, err := c.models(limited(t))
			if err != nil {
				t.Fatalf("list models: %v", err)
			}
			if len(ids) != 1 {
				t.Fatalf("models = %q, want one", ids)
			}
			t.Run("chat", func(t *testing.T) { p.testChat(t, c, ids[0]) })
			t.Run("tools", func(t *testing.T) { p.testTools(t, c, ids[0]) })
			t.Run("thinking", func(t *testing.T) { p.testThinking(t, c, ids[0]) })
			t.Run("refusal", func(t *testing.T) { p.testRefusal(t, c, ids[0]) })
		})
	}
}

// bothWays runs a test whole and streamed.
func bothWays(t *testing.T, test func(t *testing.T, stream bool)) {
	t.Run("whole", func(t *testing.T) { test(t, false) })
	t.Run("streamed", func(t *testing.T) { test(t, true) })
}

// check asks and compares what the client hands on. The number of deltas is the
// server's to choose.
func (p publication) check(t *testing.T, c client, r request, want reply) (deltas int) {
	t.Helper()
	got, err := c.chat(limited(t), r)
	if err != nil {
		t.Fatalf("chat: %v", err)
	}
	deltas, got.Deltas = got.Deltas, 0
	if len(got.Calls) == 0 {
		got.Calls = nil
	}
	if d := cmp.Diff(p.shown(want), p.shown(got)); d != "" {
		t.Errorf("reply differs (-want +got):\n%s", d)
	}
	return deltas
}

func (p publication) testChat(t *testing.T, c client, model string) {
	names := samples
	if p.all {
		names = nil
	}
	for _, conv := range conversations(t, names...) {
		if p.single && conv.turns() > 1 {
			continue
		}
		t.Run(conv.Name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, stream bool) {
				deltas := p.check(t, c, request{Model: model, Messages: conv.Messages, Stream: stream}, reply{
					Text: conv.Text, Finish: "stop", PromptTokens: len(conv.Prompt), CompletionTokens: len(conv.Answer) - 1,
				})
				// A token is rarely less than a character, so a stream of a text has
				// several parts; one part would be an answer held back until its end.
				if stream && deltas < 3 {
					t.Errorf("a stream of %d parts, want the tokens as they are made", deltas)
				}
			})
		})
	}
}

// testTools asks what a tool is there for. The client, or the program that
// drives it, gives the call's result back.
func (p publication) testTools(t *testing.T, c client, model string) {
	asks, answers := caseOf(t, "tool-call"), caseOf(t, "tool-result")
	_, text := answers.thoughtAndText(t)
	bothWays(t, func(t *testing.T, stream bool) {
		r := request{Model: model, Messages: asks.Messages, Tools: asks.Tools, Stream: stream, Result: answers.Messages[2].Content}
		got, err := c.chat(limited(t), r)
		if err != nil {
			t.Fatalf("chat: %v", err)
		}
		want := reply{
			Text: text, Calls: []call{{"get_weather", map[string]any{"city": "Oslo"}}}, Finish: "stop",
			// The template gives the turn of a call an empty thought.
			PromptTokens: got.PromptTokens, CompletionTokens: got.CompletionTokens, Deltas: got.Deltas,
		}
		if d := cmp.Diff(p.shown(want), p.shown(got)); d != "" {
			t.Errorf("reply differs (-want +got):\n%s", d)
		}
		if stream && got.Deltas < 3 {
			t.Errorf("a stream of %d parts, want the tokens as they are made", got.Deltas)
		}
	})
}

// testThinking wants the thought apart from the text, where the client knows
// such a thing, and nowhere else.
func (p publication) testThinking(t *testing.T, c client, model string) {
	for _, name := range []string{"capital-japan-think", "opposite", "add-5-think"} {
		t.Run(name, func(t *testing.T) {
			conv := caseOf(t, name)
			thought, text := conv.thoughtAndText(t)
			bothWays(t, func(t *testing.T, stream bool) {
				p.check(t, c, request{Model: model, Messages: conv.Messages, Thinking: true, Stream: stream}, reply{
					Text: text, Reasoning: thought, Finish: "stop", PromptTokens: len(conv.Prompt), CompletionTokens: len(conv.Answer) - 1,
				})
			})
		})
	}
}

func (p publication) testRefusal(t *testing.T, c client, model string) {
	hello := []message{{Role: "user", Content: "Hello"}}
	for _, tt := range []struct {
		name string
		req  request
		want refusal
	}{
		{"a model that is not there", request{Model: "gpt-4o", Messages: hello}, refusal{Status: 404, Code: "model_not_found", Param: "model"}},
		{"the same, streamed", request{Model: "gpt-4o", Messages: hello, Stream: true}, refusal{Status: 404, Code: "model_not_found", Param: "model"}},
		{"a field that nobody knows", request{Model: model, Messages: hello, Extra: map[string]any{"frobnicate": 1}}, refusal{Status: 400, Code: "unknown_parameter", Param: "frobnicate"}},
	} {
		if tt.req.Extra != nil && slices.Contains(p.hides, extraFields) {
			continue
		}
		t.Run(tt.name, func(t *testing.T) { p.check(t, c, tt.req, reply{Refusal: &tt.want}) })
	}
}

// limited is a context that ends with the test, or when a client hangs.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
