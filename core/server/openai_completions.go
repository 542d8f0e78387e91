package server

import (
	"encoding/json"
	"math"
	"net/http"

	"calla/core/completion"
	"calla/core/engine"
	"calla/core/server/strictjson"
)

// completionRequest is what POST /v1/completions honours; completionFields has
// the rest.
type completionRequest struct {
	Model  *string   `json:"model"`
	Prompt rawPrompt `json:"prompt"`
	samplingParams
	streamParams
	MaxTokens      *int      `json:"max_tokens"`
	Stop           stopTexts `json:"stop"`
	N              *int      `json:"n"`
	LogProbs       *int      `json:"logprobs"`
	ReturnTokenIDs bool      `json:"return_token_ids"`
	CacheKey       string    `json:"prompt_cache_key"`
}

// oldMaxTokens is OpenAI's default for the length of these completions.
const oldMaxTokens = 16

var completionFields = join(
	object{
		modelField(),
		{Name: "prompt", Required: true, Takes: promptShape{}, Note: "text in which control tokens are matched, or token ids; each prompt has n choices"},
		{Name: "max_tokens", Takes: integer{1, math.MaxInt32}, Note: "16 where none is given, as OpenAI has it"},
		stopField("stop"),
		{Name: "n", Takes: integer{1, maxChoices}, Note: "each choice takes a place in the queue; at most 16 with all prompts"},
		{Name: "logprobs", Takes: integer{0, engine.MaxTopLogProbs}, Note: "before sampling; text_offset counts characters of the text"},
		{Name: "return_token_ids", Takes: boolean{}, Note: "beside OpenAI's fields; token_ids and prompt_token_ids in each choice, in the last event of a stream"},
		{Name: "best_of", Takes: only{"1"}, Note: "nothing is generated to be thrown away"},
		{Name: "echo", Takes: only{"false"}, Note: "prompts are not repeated"},
		{Name: "suffix", Note: "the model does not fill in"},
	},
	samplingFields(),
	streamFields(),
	sharedFields(),
)

func (s *server) completions(w http.ResponseWriter, r *http.Request) {
	var request completionRequest
	if err := readBody(w, r, completionFields, &request); err != nil {
		writeError(w, r, err)
		return
	}
	j, err := s.completionJob(&request)
	if err != nil {
		writeError(w, r, err)
		return
	}
	s.run(w, r, j)
}

func (s *server) completionJob(c *completionRequest) (*job, *apiError) {
	if err := s.Model.is(c.Model); err != nil {
		return nil, err
	}
	n, limit := 1, oldMaxTokens
	if c.N != nil {
		n = *c.N
	}
	if c.MaxTokens != nil {
		limit = *c.MaxTokens
	}
	if total := n * len(c.Prompt); total > maxChoices {
		return nil, badField(codeValue, "n", "%d choices in all, want at most %d", total, maxChoices)
	}
	base := completion.Request{
		MaxTokens: limit, Stop: c.Stop, LogProbs: engine.NoLogProbs, CacheKey: c.CacheKey,
	}
	if c.LogProbs != nil {
		base.LogProbs = *c.LogProbs
	}
	var requests []completion.Request
	for _, p := range c.Prompt {
		base.Prompt, base.Tokens = p.text, p.tokens
		choices, err := s.choices(base, n, &c.samplingParams)
		if err != nil {
			return nil, err
		}
		requests = append(requests, choices...)
	}
	return &job{
		requests: requests, stream: c.Stream, progress: c.StreamOptions.IncludeProgress,
		voice: newTextVoice(s.Model.ID, n, c),
	}, nil
}

// rawPrompt is one or several prompts, each text or token ids.
type rawPrompt []promptOf

type promptOf struct {
	text   *string
	tokens []int32 // not nil where text is
}

func (p *promptOf) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, &p.text)
	}
	p.tokens = []int32{}
	return json.Unmarshal(raw, &p.tokens)
}

func (p *rawPrompt) UnmarshalJSON(raw []byte) error {
	var many []promptOf
	if raw[0] == '[' && (raw[firstInside(raw)] == '"' || raw[firstInside(raw)] == '[') {
		err := json.Unmarshal(raw, &many)
		*p = many
		return err
	}
	var one promptOf
	err := one.UnmarshalJSON(raw)
	*p = rawPrompt{one}
	return err
}

// firstInside returns the index of the first byte in an array that is no white
// space.
func firstInside(raw []byte) int {
	i := 1
	for raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\n' || raw[i] == '\r' {
		i++
	}
	return i
}

// promptShape is the shape of rawPrompt.
type promptShape struct{}

var promptTokens = list{of: integer{0, math.MaxInt32}, min: 1}

func (promptShape) takes(k strictjson.Kind) bool {
	return k == strictjson.String || k == strictjson.Array
}

func (promptShape) says() string {
	return "string, array of token ids, or an array of up to 16 of either"
}

func (promptShape) check(p *place, v strictjson.Value) *apiError {
	if v.Kind == strictjson.String {
		return nil
	}
	var of shape = promptTokens
	if len(v.Items) > 0 {
		switch v.Items[0].Kind {
		case strictjson.String:
			of = list{of: text{}, max: maxChoices}
		case strictjson.Array:
			of = list{of: promptTokens, max: maxChoices}
		}
	}
	return of.check(p, v)
}
