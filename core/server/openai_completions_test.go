package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"calla/core/completion"
	"calla/core/engine"
)

func TestCompletionsPrompts(t *testing.T) {
	for _, tt := range []struct {
		name, prompt string
		want         []string // "text" or token ids
	}{
		{"text", `"abc"`, []string{"abc"}},
		{"texts", `["a", "b"]`, []string{"a", "b"}},
		{"tokens", `[1, 2, 3]`, []string{"[1 2 3]"}},
		{"lists of tokens", `[ [1], [2, 3] ]`, []string{"[1]", "[2 3]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{}
			f.play = func(r completion.Request) ([]moment, error) {
				said := fmt.Sprint(r.Tokens)
				if r.Prompt != nil {
					said = *r.Prompt
				}
				if r.MaxTokens != 16 || r.Messages != nil {
					t.Errorf("request %+v", r)
				}
				return say(said), nil
			}
			url := testServer(t, f) + "/v1/completions"
			body := `{"model":"served","n":2,"prompt":` + tt.prompt
			var got textCompletion
			post(t, url, body+"}").into(t, &got)
			var texts []string
			for i, c := range got.Choices {
				if c.Index != i || *c.FinishReason != "stop" {
					t.Errorf("choice %d: %+v", i, c)
				}
				texts = append(texts, c.Text)
			}
			var want []string
			for _, w := range tt.want {
				want = append(want, w, w) // n is 2
			}
			if d := cmp.Diff(want, texts); d != "" {
				t.Error(d)
			}
			if u := got.Usage; u.PromptTokens != 5*len(tt.want) || u.CompletionTokens != len(want) || u.PromptDetails.CachedTokens != 2*len(tt.want) {
				t.Errorf("usage %+v", u)
			}
		})
	}
}

func TestCompletionsRefuse(t *testing.T) {
	url := testServer(t, &fake{play: always(say("x"))}) + "/v1/completions"
	for _, tt := range []struct{ fields, code, param string }{
		{`"n":1`, "missing_required_parameter", "prompt"},
		{`"prompt":null`, "missing_required_parameter", "prompt"},
		{`"prompt":[]`, "invalid_value", "prompt"},
		{`"prompt":[[]]`, "invalid_value", "prompt[0]"},
		{`"prompt":[1,"a"]`, "invalid_type", "prompt[1]"},
		{`"prompt":["a",1]`, "invalid_type", "prompt[1]"},
		{`"prompt":[[1],"a"]`, "invalid_type", "prompt[1]"},
		{`"prompt":[-1]`, "invalid_value", "prompt[0]"},
		{`"prompt":[1.5]`, "invalid_type", "prompt[0]"},
		{`"prompt":[true]`, "invalid_type", "prompt[0]"},
		{`"prompt":{}`, "invalid_type", "prompt"},
		{`"prompt":["a","b","c"],"n":6`, "invalid_value", "n"},
		{`"prompt":"a","suffix":"b"`, "unsupported_parameter", "suffix"},
		{`"prompt":"a","echo":true`, "unsupported_value", "echo"},
		{`"prompt":"a","best_of":2`, "unsupported_value", "best_of"},
		{`"prompt":"a","logprobs":true`, "invalid_type", "logprobs"},
		{`"prompt":"a","messages":[]`, "unknown_parameter", "messages"},
	} {
		r := post(t, url, `{"model":"served",`+tt.fields+"}")
		if got := r.fault(t); r.status != 400 || got.Code != tt.code || got.Param != tt.param {
			t.Errorf("%s: %d %+v, want %s %q", tt.fields, r.status, got, tt.code, tt.param)
		}
	}
}

func TestPromptFaultsBelow(t *testing.T) {
	for _, err := range []error{&engine.TokenError{Position: 3, Token: 5000, Vocab: 1000}, engine.ErrNoPrompt, &engine.SamplingError{Param: "top_p", Want: "x"}} {
		url := testServer(t, &fake{play: func(completion.Request) ([]moment, error) { return nil, err }}) + "/v1/completions"
		if r := post(t, url, `{"model":"served","prompt":"a"}`); r.status != 400 || r.fault(t).Param == "" {
			t.Errorf("%v: %d %s", err, r.status, r.body)
		}
	}
}

func tokenScript() []moment {
	top := []completion.Token{{ID: 7, Bytes: []byte("Hé"), LogProb: -0.5}, {ID: 8, Bytes: []byte{0xe6}, LogProb: -2}}
	content := func(text string, tokens ...completion.Token) moment {
		return moment{event: completion.Event{Kind: completion.Content, Text: text, Tokens: tokens}}
	}
	end := done(completion.ReasonLength, 4)
	end.event.Result.Tokens, end.event.Result.Warning = []int32{7, 8, 9, 10}, "cut short"
	return []moment{
		content("Hé", completion.Token{ID: 7, Bytes: []byte("Hé"), LogProb: -0.5, Top: top}),
		content("漢", completion.Token{ID: 8, Bytes: []byte{0xe6}, LogProb: -1}, completion.Token{ID: 9, Bytes: []byte{0xbc, 0xa2}, LogProb: -0.1}),
		content("!", completion.Token{ID: 10, Bytes: []byte("!"), LogProb: -3}),
		end,
	}
}

func TestCompletionsLogProbsAndTokens(t *testing.T) {
	f := &fake{play: always(tokenScript())}
	url := testServer(t, f) + "/v1/completions"
	body := `{"model":"served","prompt":"a","logprobs":2,"return_token_ids":true`
	want := &textLogProbs{
		Tokens:        []string{"Hé", `bytes:\xe6`, `bytes:\xbc\xa2`, "!"},
		TokenLogProbs: []float64{-0.5, -1, -0.1, -3},
		TopLogProbs:   []map[string]float64{{"Hé": -0.5, `bytes:\xe6`: -2}, {}, {}, {}},
		TextOffset:    []int{0, 2, 3, 3},
	}
	var got textCompletion
	post(t, url, body+"}").into(t, &got)
	c := got.Choices[0]
	if d := cmp.Diff(want, c.LogProbs); d != "" {
		t.Error(d)
	}
	if c.Text != "Hé漢!" || *c.FinishReason != "length" || c.Warning != "cut short" {
		t.Errorf("choice %+v", c)
	}
	if d := cmp.Diff([][]int32{fakePrompt, {7, 8, 9, 10}}, [][]int32{c.PromptTokenIDs, c.TokenIDs}); d != "" {
		t.Error(d)
	}
	if f.last(t).LogProbs != 2 {
		t.Errorf("asked for %d log-probabilities", f.last(t).LogProbs)
	}

	streamed := &textLogProbs{}
	var text string
	for _, e := range post(t, url, body+`,"stream":true,"stream_options":{"include_usage":true}}`).events(t) {
		if e.data == "[DONE]" {
			continue
		}
		var part textCompletion
		if err := json.Unmarshal([]byte(e.data), &part); err != nil {
			t.Fatal(err)
		}
		for _, c := range part.Choices {
			text += c.Text
			if l := c.LogProbs; l != nil {
				streamed.Tokens = append(streamed.Tokens, l.Tokens...)
				streamed.TokenLogProbs = append(streamed.TokenLogProbs, l.TokenLogProbs...)
				streamed.TopLogProbs = append(streamed.TopLogProbs, l.TopLogProbs...)
				streamed.TextOffset = append(streamed.TextOffset, l.TextOffset...)
			}
			if c.FinishReason != nil && len(c.TokenIDs) != 4 {
				t.Errorf("last event of the choice: %+v", c)
			}
		}
		if part.Usage != nil && (len(part.Choices) != 0 || part.Usage.TotalTokens != 9) {
			t.Errorf("usage in %s", e.data)
		}
	}
	if d := cmp.Diff(want, streamed); d != "" || text != "Hé漢!" {
		t.Errorf("streamed %q: %s", text, d)
	}
}

func TestChatLogProbs(t *testing.T) {
	script := append([]moment{{event: completion.Event{
		Kind: completion.Reasoning, Text: "hm", Tokens: []completion.Token{{ID: 1, Bytes: []byte("hm")}},
	}}}, tokenScript()...)
	f := &fake{play: always(script)}
	url := testServer(t, f) + "/v1/chat/completions"
	var got chatCompletion
	r := post(t, url, helloWith(`"logprobs":true,"top_logprobs":2`))
	r.into(t, &got)
	l := got.Choices[0].LogProbs
	if len(l.Content) != 4 || l.Content[0].Token != "Hé" || len(l.Content[0].Top) != 2 || l.Content[0].Top[1].Token != `bytes:\xe6` {
		t.Errorf("log-probabilities %+v", l)
	}
	if d := cmp.Diff([]int{0xbc, 0xa2}, l.Content[2].Bytes); d != "" {
		t.Error(d)
	}
	if strings.Contains(r.body, "\ufffd") || !strings.Contains(r.body, `"top_logprobs":[]`) {
		t.Errorf("body %s", r.body)
	}
	events := post(t, url, helloWith(`"logprobs":true,"stream":true`)).events(t)
	var n int
	for _, e := range events[:len(events)-1] {
		var c chatChunk
		json.Unmarshal([]byte(e.data), &c)
		for _, ch := range c.Choices {
			if ch.LogProbs != nil {
				n += len(ch.LogProbs.Content)
			}
		}
	}
	if n != 4 {
		t.Errorf("%d tokens streamed, want the 4 of the content", n)
	}
}
