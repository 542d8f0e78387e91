package server

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"

	"calla/core/chat"
	"calla/core/completion"
	"calla/core/engine"
)

// responsesRequest is what POST /v1/responses honours; responsesFields has the
// rest.
type responsesRequest struct {
	Model        *string         `json:"model"`
	Input        responsesInput  `json:"input"`
	Instructions *string         `json:"instructions"`
	MaxTokens    *int            `json:"max_output_tokens"`
	Tools        []responsesTool `json:"tools"`
	ToolChoice   toolChoice      `json:"tool_choice"`
	Text         struct {
		Format answerFormat `json:"format"`
	} `json:"text"`
	TopLogProbs int      `json:"top_logprobs"`
	Include     []string `json:"include"`
	CacheKey    string   `json:"prompt_cache_key"`
	Reasoning   struct {
		Effort  *string `json:"effort"`
		Context string  `json:"context"`
	} `json:"reasoning"`
	Metadata json.RawMessage `json:"metadata"`
	User     *string         `json:"user"`
	samplingParams
	thinkingParams
	streamParams
	parallelCalls
}

// includeLogProbs is the value of include that asks for log-probabilities.
const includeLogProbs = "message.output_text.logprobs"

var responsesFields = join(
	object{
		modelField(),
		{Name: "input", Required: true, Takes: either{text{}, list{of: inputItem, min: 1}}, Note: "a user's text, or items; nothing is kept, so each request has the whole conversation. Images, audio and files are a 400"},
		{Name: "instructions", Takes: text{}, Note: "the first system message"},
		{Name: "max_output_tokens", Takes: integer{1, math.MaxInt32}, Note: "thinking counts. None runs to the end of the context"},
		{Name: "reasoning", Takes: object{
			{Name: "effort", Takes: effortNames(), Note: effortNote},
			{Name: "context", Takes: oneOf{"auto", "current_turn", "all_turns"}, Note: "all_turns keeps the thoughts of earlier turns in the prompt"},
			{Name: "mode", Takes: only{`"standard"`}, Note: "there is one mode"},
			{Name: "summary", Takes: only{`"auto"`}, Note: "thoughts are given whole, as reasoning_text"},
			{Name: "generate_summary", Note: "thoughts are given whole, as reasoning_text"},
		}},
		{Name: "include", Takes: list{of: oneOf{includeLogProbs, "reasoning.encrypted_content"}}, Note: "thoughts go in and out in the clear, so reasoning.encrypted_content changes nothing"},
		{Name: "top_logprobs", Takes: integer{0, engine.MaxTopLogProbs}, Note: "above 0 it asks for log-probabilities, as include does"},
	},
	responsesToolsFields(),
	samplingFields(),
	thinkingFields(),
	object{
		{Name: "text", Takes: object{
			formatField("format", ""),
			{Name: "verbosity", Takes: only{`"medium"`}, Note: "the model has no such switch"},
		}},
		{Name: "stream", Takes: boolean{}, Note: "server-sent events"},
		{Name: "stream_options", Takes: object{
			progressField(),
			{Name: "include_obfuscation", Takes: only{"false"}, Note: "events are not padded"},
		}},
		{Name: "truncation", Takes: only{`"disabled"`}, Note: "a prompt that is too long is refused, never cut"},
		{Name: "background", Takes: only{"false"}, Note: "nothing goes on without its client"},
		{Name: "previous_response_id", Note: "nothing is stored: send the conversation as input"},
		{Name: "conversation", Note: "nothing is stored: send the conversation as input"},
		{Name: "prompt", Note: "there are no stored prompts"},
		{Name: "context_management", Note: "nothing is cut or compacted"},
		{Name: "max_tool_calls", Note: "the model's calls are for the client to count"},
		{Name: "moderation", Note: "answers are not judged"},
	},
	sharedFields(),
)

func responsesToolsFields() object {
	return object{
		{Name: "tools", Takes: list{max: maxTools, of: tagged{tag: "type", cases: []variant{
			{values: []string{"function"}, fields: object{
				{Name: "name", Takes: identifier{}, Required: true},
				{Name: "description", Takes: text{}},
				{Name: "parameters", Takes: free{}, Note: parametersNote},
				{Name: "strict", Takes: boolean{}, Note: strictNote},
				{Name: "defer_loading", Takes: only{"false"}, Note: "the model sees all tools"},
				{Name: "allowed_callers", Takes: only{`["direct"]`}, Note: "the model itself calls"},
				{Name: "output_schema", Note: "what a tool gives is not looked at"},
			}},
			{values: []string{
				"custom", "file_search", "web_search", "web_search_preview", "computer", "computer_use_preview",
				"mcp", "code_interpreter", "image_generation", "local_shell", "shell", "apply_patch", "namespace", "tool_search",
			}, refused: "only functions are called"},
		}}}, Note: "the model sees them in the form of chat completions"},
		toolChoiceField(""),
		parallelField(),
	}
}

func (s *server) responses(w http.ResponseWriter, r *http.Request) {
	var request responsesRequest
	if err := readBody(w, r, responsesFields, &request); err != nil {
		writeError(w, r, err)
		return
	}
	j, err := s.responsesJob(&request)
	if err != nil {
		writeError(w, r, err)
		return
	}
	s.run(w, r, j)
}

func (s *server) responsesJob(c *responsesRequest) (*job, *apiError) {
	if err := s.Model.is(c.Model); err != nil {
		return nil, err
	}
	conv, err := c.conversation()
	if err != nil {
		return nil, err
	}
	base, err := c.completion()
	if err != nil {
		return nil, err
	}
	base.Messages = conv.messages
	requests, err := s.choices(base, 1, &c.samplingParams)
	if err != nil {
		return nil, err
	}
	return &job{
		requests: requests, origins: conv.origins, schemas: schemaPlaces{"text.format.schema", "tools[%d].parameters"},
		stream: c.Stream, progress: c.StreamOptions.IncludeProgress,
		voice: newResponsesVoice(s.Model.ID, c, requests[0]),
	}, nil
}

func (c *responsesRequest) completion() (completion.Request, *apiError) {
	c.thinkingParams.Effort = c.Reasoning.Effort
	t, err := c.thinkingParams.resolve("reasoning.effort")
	if err != nil {
		return completion.Request{}, err
	}
	r := completion.Request{
		Answer:   c.Text.Format.schema(),
		Thinking: t.on, ThinkingBudget: t.budget, PreserveThinking: t.preserve || c.Reasoning.Context == "all_turns",
		LogProbs: engine.NoLogProbs,
		CacheKey: c.CacheKey,
	}
	if err := (toolSet{c.tools(), c.ToolChoice, c.single(), "tools[%d].name", "tool_choice"}).into(&r); err != nil {
		return r, err
	}
	if c.MaxTokens != nil {
		r.MaxTokens = *c.MaxTokens
	}
	if c.TopLogProbs > 0 || slices.Contains(c.Include, includeLogProbs) {
		r.LogProbs = c.TopLogProbs
	}
	return r, nil
}

// responsesTool is a tool of OpenAI's responses: a flat form of that of its
// chat completions.
type responsesTool struct {
	raw         json.RawMessage
	Name        string          `json:"name"`
	Description *string         `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Strict      bool            `json:"strict,omitempty"`
}

func (t *responsesTool) UnmarshalJSON(raw []byte) error {
	type plain responsesTool
	err := json.Unmarshal(raw, (*plain)(t))
	t.raw = slices.Clone(raw)
	return err
}

// MarshalJSON shows the tool as it was sent.
func (t responsesTool) MarshalJSON() ([]byte, error) { return t.raw, nil }

// tools returns the tools in the form of chat completions.
func (c *responsesRequest) tools() []openAITool {
	list := make([]openAITool, len(c.Tools))
	for i, t := range c.Tools {
		list[i] = functionTool(t.Name, t.Description, t.Parameters, t.Strict)
	}
	return list
}

// conversation turns instructions and input into the model's messages.
func (c *responsesRequest) conversation() (*conversation, *apiError) {
	conv := &conversation{}
	if c.Instructions != nil {
		if err := conv.system("instructions", chat.Text(*c.Instructions)); err != nil {
			return nil, err
		}
	}
	if c.Input.text != nil {
		return conv, conv.user("input", chat.Text(*c.Input.text))
	}
	for i, item := range c.Input.items {
		if err := conv.responsesItem(fmt.Sprintf("input[%d]", i), item); err != nil {
			return nil, err
		}
	}
	return conv, conv.settle()
}
