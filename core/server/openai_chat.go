package server

import (
	"encoding/json"
	"math"
	"net/http"

	"calla/core/completion"
	"calla/core/engine"
)

// chatRequest is what POST /v1/chat/completions honours; chatFields has the
// rest.
type chatRequest struct {
	Model    *string         `json:"model"`
	Messages []openAIMessage `json:"messages"`
	samplingParams
	thinkingParams
	limitParams
	streamParams
	parallelCalls
	N           *int         `json:"n"`
	LogProbs    bool         `json:"logprobs"`
	TopLogProbs *int         `json:"top_logprobs"`
	Tools       []openAITool `json:"tools"`
	ToolChoice  toolChoice   `json:"tool_choice"`
	Format      answerFormat `json:"response_format"`
	CacheKey    string       `json:"prompt_cache_key"`
}

// maxChoices bounds the completions of one request. Each takes a place in the
// queue.
const maxChoices = 16

var chatFields = join(
	object{modelField(), messagesField()},
	object{
		{Name: "max_tokens", Takes: integer{1, math.MaxInt32}, Note: "the smaller of this and max_completion_tokens; thinking counts. None runs to the end of the context"},
		{Name: "max_completion_tokens", Takes: integer{1, math.MaxInt32}, Note: "as max_tokens"},
		stopField("stop"),
		{Name: "n", Takes: integer{1, maxChoices}, Note: "each choice takes a place in the queue"},
		{Name: "logprobs", Takes: boolean{}, Note: "of the content's tokens, before sampling"},
		{Name: "top_logprobs", Takes: integer{0, engine.MaxTopLogProbs}, Note: "needs logprobs: true"},
	},
	samplingFields(),
	object{effortField()},
	thinkingFields(),
	toolsFields(),
	streamFields(),
	object{
		formatField("response_format", "json_schema"),
	},
	sharedFields(),
	object{
		{Name: "audio", Note: textOnly},
		{Name: "modalities", Takes: only{`["text"]`}, Note: "the model writes text only"},
		{Name: "moderation", Note: "answers are not judged"},
		{Name: "prediction", Note: "predicted outputs are not supported"},
		{Name: "web_search_options", Note: "nothing is looked up"},
	},
)

var chatSchemas = schemaPlaces{"response_format.json_schema.schema", "tools[%d].function.parameters"}

func (s *server) chatCompletions(w http.ResponseWriter, r *http.Request) {
	var request chatRequest
	if err := readBody(w, r, chatFields, &request); err != nil {
		writeError(w, r, err)
		return
	}
	j, err := s.chatJob(&request)
	if err != nil {
		writeError(w, r, err)
		return
	}
	s.run(w, r, j)
}

// chatJob turns a chat request into completions.
func (s *server) chatJob(c *chatRequest) (*job, *apiError) {
	if err := s.Model.is(c.Model); err != nil {
		return nil, err
	}
	conv, err := openAIConversation(c.Messages)
	if err != nil {
		return nil, err
	}
	base, err := c.completion()
	if err != nil {
		return nil, err
	}
	base.Messages = conv.messages
	n := 1
	if c.N != nil {
		n = *c.N
	}
	requests, err := s.choices(base, n, &c.samplingParams)
	if err != nil {
		return nil, err
	}
	return &job{
		requests: requests, origins: conv.origins, schemas: chatSchemas,
		stream: c.Stream, progress: c.StreamOptions.IncludeProgress,
		voice: newChatVoice(s.Model.ID, c),
	}, nil
}

// completion returns the request without its messages and sampling.
func (c *chatRequest) completion() (completion.Request, *apiError) {
	t, err := c.thinkingParams.resolve("reasoning_effort")
	if err != nil {
		return completion.Request{}, err
	}
	r := completion.Request{
		Answer:   c.Format.schema(),
		Thinking: t.on, ThinkingBudget: t.budget, PreserveThinking: t.preserve,
		MaxTokens: c.limitParams.limit(),
		Stop:      c.Stop,
		LogProbs:  engine.NoLogProbs,
		CacheKey:  c.CacheKey,
	}
	if err := (toolSet{c.Tools, c.ToolChoice, c.single(), "tools[%d].function.name", "tool_choice"}).into(&r); err != nil {
		return r, err
	}
	switch {
	case c.LogProbs && c.TopLogProbs != nil:
		r.LogProbs = *c.TopLogProbs
	case c.LogProbs:
		r.LogProbs = 0
	case c.TopLogProbs != nil:
		return r, badField(codeValue, "top_logprobs", "top_logprobs needs logprobs: true")
	}
	return r, nil
}

// choices returns n requests that differ in their seeds.
func (s *server) choices(base completion.Request, n int, p *samplingParams) ([]completion.Request, *apiError) {
	requests := make([]completion.Request, n)
	for i := range requests {
		var err *apiError
		requests[i] = base
		if requests[i].Sampling, err = p.sampling(s.Model, base.Thinking, i); err != nil {
			return nil, err
		}
	}
	return requests, nil
}

// stopTexts is a string, or several.
type stopTexts []string

func (t *stopTexts) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		*t = make([]string, 1)
		return json.Unmarshal(raw, &(*t)[0])
	}
	return json.Unmarshal(raw, (*[]string)(t))
}
