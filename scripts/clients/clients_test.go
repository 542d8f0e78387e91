package clients

import (
	"context"
	"testing"
	"time"
)

// request is one chat completion that a client asks for.
type request struct {
	Model    string         `json:"model"`
	Messages []message      `json:"messages"`
	Stream   bool           `json:"stream"`
	Extra    map[string]any `json:"extra,omitempty"` // fields that the client does not know
}

// reply is what the client handed to its caller.
type reply struct {
	Text             string   `json:"text"`
	Finish           string   `json:"finish"`
	Deltas           int      `json:"deltas"` // with text, of a stream
	PromptTokens     int      `json:"prompt_tokens"`
	CompletionTokens int      `json:"completion_tokens"`
	Refusal          *refusal `json:"error"` // in place of all others
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

// published are the clients of the tests; each opens one for the API below a
// URL.
var published = []struct {
	name string
	open func(t *testing.T, url string) client
	// few limits the conversations, for a client that adds nothing by more.
	few []string
}{
	{name: "openai-go", open: openGo},
	{name: "openai-python", open: script("CALLA_PYTHON", "openai_chat.py"), few: samples},
}

// samples are conversations of each shape: a system message, several turns,
// characters of several bytes, several lines, a long prompt.
var samples = []string{"capital-france", "sys-pirate", "followup", "emoji", "chinese", "times-table", "needle-400"}

func TestChat(t *testing.T) {
	for _, p := range published {
		t.Run(p.name, func(t *testing.T) {
			c := p.open(t, served.url+"/v1")
			model := onlyModel(t, c)
			for _, conv := range conversations(t, p.few...) {
				t.Run(conv.Name, func(t *testing.T) {
					for _, stream := range []bool{false, true} {
						checkAnswer(t, c, model, conv, stream)
					}
				})
			}
		})
	}
}

func onlyModel(t *testing.T, c client) string {
	t.Helper()
	ids, err := c.models(limited(t))
	if err != nil {
		t.Fatalf("list models: %v", err)
	}
	if len(ids) != 1 {
		t.Fatalf("models = %q, want one", ids)
	}
	return ids[0]
}

func checkAnswer(t *testing.T, c client, model string, conv conversation, stream bool) {
	t.Helper()
	got, err := c.chat(limited(t), request{Model: model, Messages: conv.Messages, Stream: stream})
	if err != nil {
		t.Fatalf("chat (stream %t): %v", stream, err)
	}
	want := reply{
		Text: conv.Text, Finish: "stop", Deltas: got.Deltas,
		PromptTokens: len(conv.Prompt), CompletionTokens: len(conv.Answer) - 1,
	}
	if got != want {
		t.Errorf("chat (stream %t) = %+v, want %+v", stream, got, want)
	}
	// A token is rarely less than a character, so a stream of a text has
	// several parts; one part would be an answer held back until its end.
	if stream && got.Deltas < 3 {
		t.Errorf("stream of %q came in %d parts, want the tokens as they are made", got.Text, got.Deltas)
	}
}

func TestRefusal(t *testing.T) {
	for _, p := range published {
		t.Run(p.name, func(t *testing.T) {
			c := p.open(t, served.url+"/v1")
			model := onlyModel(t, c)
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
				t.Run(tt.name, func(t *testing.T) {
					got, err := c.chat(limited(t), tt.req)
					if err != nil {
						t.Fatalf("chat: %v", err)
					}
					if got.Refusal == nil || *got.Refusal != tt.want {
						t.Errorf("refusal = %+v of reply %+v, want %+v", got.Refusal, got, tt.want)
					}
				})
			}
		})
	}
}

// limited is a context that ends with the test, or when a client hangs.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
