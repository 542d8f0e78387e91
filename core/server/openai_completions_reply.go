package server

import (
	"time"

	"calla/core/completion"
	"calla/core/engine"
)

// textVoice answers in the words of OpenAI's completions.
type textVoice struct {
	unnamedEvents
	id, model string
	created   int64
	perPrompt int // choices
	usage     bool
	logProbs  bool
	tokenIDs  bool
	prompts   [][]int32
	offsets   []int // characters of each choice so far
}

func newTextVoice(model string, perPrompt int, c *completionRequest) *textVoice {
	return &textVoice{
		id: newID("cmpl-"), model: model, created: time.Now().Unix(), perPrompt: perPrompt,
		usage: c.StreamOptions.IncludeUsage, logProbs: c.LogProbs != nil, tokenIDs: c.ReturnTokenIDs,
	}
}

type textCompletion struct {
	ID       string        `json:"id"`
	Object   string        `json:"object"`
	Created  int64         `json:"created"`
	Model    string        `json:"model"`
	Choices  []textChoice  `json:"choices"`
	Usage    *openAIUsage  `json:"usage,omitempty"`
	Progress *progressBody `json:"progress,omitempty"` // beside OpenAI's fields
}

type textChoice struct {
	Index        int           `json:"index"`
	Text         string        `json:"text"`
	LogProbs     *textLogProbs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
	// Beside OpenAI's fields.
	Warning        string  `json:"warning,omitempty"`
	TokenIDs       []int32 `json:"token_ids,omitempty"`
	PromptTokenIDs []int32 `json:"prompt_token_ids,omitempty"`
}

type textLogProbs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogProbs []float64            `json:"token_logprobs"`
	TopLogProbs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"` // in characters
}

func (v *textVoice) begin(prompts [][]int32) {
	v.prompts, v.offsets = prompts, make([]int, len(prompts))
}

func (v *textVoice) body(choices ...textChoice) *textCompletion {
	if choices == nil {
		choices = []textChoice{}
	}
	return &textCompletion{ID: v.id, Object: "text_completion", Created: v.created, Model: v.model, Choices: choices}
}

func (v *textVoice) whole(answers []*answer) any {
	c := v.body()
	for i, a := range answers {
		choice := v.end(i, a.result)
		choice.Text = a.text(completion.Content)
		choice.LogProbs = v.logProbsOf(i, a.contentTokens())
		c.Choices = append(c.Choices, choice)
	}
	c.Usage = usageOf(answers, v.perPrompt)
	return c
}

// end returns what is known of a choice once it is done.
func (v *textVoice) end(choice int, r *completion.Result) textChoice {
	reason := string(r.Reason)
	c := textChoice{Index: choice, FinishReason: &reason, Warning: r.Warning}
	if v.tokenIDs {
		c.TokenIDs, c.PromptTokenIDs = r.Tokens, v.prompts[choice]
	}
	return c
}

func (v *textVoice) logProbsOf(choice int, tokens []completion.Token) *textLogProbs {
	if !v.logProbs {
		return nil
	}
	l := &textLogProbs{Tokens: []string{}, TokenLogProbs: []float64{}, TopLogProbs: []map[string]float64{}, TextOffset: []int{}}
	for _, t := range tokens {
		l.Tokens = append(l.Tokens, tokenText(t.Bytes))
		l.TokenLogProbs = append(l.TokenLogProbs, t.LogProb)
		l.TextOffset = append(l.TextOffset, v.offsets[choice])
		v.offsets[choice] += charactersBegun(t.Bytes)
		top := make(map[string]float64, len(t.Top))
		for _, x := range t.Top {
			top[tokenText(x.Bytes)] = x.LogProb
		}
		l.TopLogProbs = append(l.TopLogProbs, top)
	}
	return l
}

// charactersBegun counts the characters whose first byte is in b.
func charactersBegun(b []byte) (n int) {
	for _, c := range b {
		if c&0xC0 != 0x80 {
			n++
		}
	}
	return n
}

func (v *textVoice) open(*eventWriter) {}

func (v *textVoice) event(out *eventWriter, choice int, e completion.Event, a *answer) {
	switch e.Kind {
	case completion.Content:
		out.event("", v.body(textChoice{Index: choice, Text: e.Text, LogProbs: v.logProbsOf(choice, e.Tokens)}))
	case completion.Done:
		out.event("", v.body(v.end(choice, e.Result)))
	}
}

func (v *textVoice) progress(out *eventWriter, p engine.Progress) {
	c := v.body()
	c.Progress = &progressBody{string(p.Stage), p.Done, p.Total}
	out.event("", c)
}

func (v *textVoice) close(out *eventWriter, answers []*answer) {
	if v.usage {
		c := v.body()
		c.Usage = usageOf(answers, v.perPrompt)
		out.event("", c)
	}
	out.done()
}
