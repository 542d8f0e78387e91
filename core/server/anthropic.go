package server

import (
	"encoding/json"
	"math"
	"net/http"

	"calla/core/completion"
	"calla/core/engine"
)

// messagesRequest is what POST /v1/messages honours; messagesFields has the
// rest.
type messagesRequest struct {
	Model     *string           `json:"model"`
	MaxTokens int               `json:"max_tokens"`
	Messages  []anthropicTurn   `json:"messages"`
	System    anthropicContent  `json:"system"`
	Stop      []string          `json:"stop_sequences"`
	Stream    bool              `json:"stream"`
	Tools     []anthropicTool   `json:"tools"`
	Choice    toolChoice        `json:"tool_choice"`
	Thinking  anthropicThinking `json:"thinking"`
	Output    struct {
		Effort *string      `json:"effort"`
		Format answerFormat `json:"format"`
	} `json:"output_config"`
	samplingParams
}

// promptFields are those that make the prompt, which count_tokens takes too.
func promptFields() object {
	return object{
		modelField(),
		anthropicMessagesField(),
		{Name: "system", Takes: either{text{}, list{of: textBlock()}}, Note: "texts become one, blank lines between them. A text that begins x-anthropic-billing-header: is no part of the prompt: Claude Code's line for the bill, different in each request"},
		{Name: "tools", Takes: list{max: maxTools, of: tagged{tag: "type", absent: "custom", cases: []variant{
			{values: []string{"custom"}, fields: object{
				{Name: "name", Takes: identifier{}, Required: true},
				{Name: "description", Takes: text{}},
				{Name: "input_schema", Takes: free{}, Required: true, Note: parametersNote},
				cacheControl(),
				{Name: "strict", Takes: boolean{}, Note: strictNote},
				{Name: "defer_loading", Takes: only{"false"}, Note: "the model sees all tools"},
				{Name: "eager_input_streaming", Takes: boolean{}, Note: "arguments are always sent as they come"},
				{Name: "allowed_callers", Takes: only{`["direct"]`}, Note: "the model itself calls"},
				{Name: "input_examples", Note: "the model's template has no examples"},
			}},
		}}}, Note: "the model sees them in the form of OpenAI's chat completions; tools that run at Anthropic are a 400"},
		{Name: "tool_choice", Takes: tagged{tag: "type", cases: []variant{
			{values: []string{"auto", "none", "any"}, fields: object{oneCallField()}},
			{values: []string{"tool"}, fields: object{{Name: "name", Takes: identifier{}, Required: true}, oneCallField()}},
		}}, Note: "none keeps the tools from the model; any, or tool with a name, makes the answer a call whose arguments fit"},
		{Name: "thinking", Takes: tagged{tag: "type", cases: []variant{
			{values: []string{"enabled"}, fields: object{
				{Name: "budget_tokens", Takes: integer{1, math.MaxInt32}, Required: true, Note: "most tokens of thought"},
				thinkingDisplay(),
			}},
			{values: []string{"adaptive"}, fields: object{thinkingDisplay()}},
			{values: []string{"disabled"}},
		}}, Note: "off by default; adaptive is on, with the budget of output_config.effort"},
		{Name: "output_config", Takes: object{
			{Name: "effort", Takes: oneOf{"low", "medium", "high", "xhigh", "max"}, Note: "bounds the thought, as OpenAI's reasoning_effort does; a 400 where thinking is off"},
			{Name: "format", Takes: tagged{tag: "type", cases: []variant{
				{values: []string{"json_schema"}, fields: object{{Name: "schema", Takes: free{}, Required: true, Note: schemaNote}}, note: heldNote},
			}}, Note: heldNote},
		}},
		cacheControl(),
	}
}

func oneCallField() Field {
	return Field{Name: "disable_parallel_tool_use", Takes: boolean{}, Note: "true allows one call at most"}
}

func thinkingDisplay() Field {
	return Field{Name: "display", Takes: only{`"summarized"`}, Note: "thoughts are given whole"}
}

// cacheControl is what Anthropic's clients mark the ends of prefixes with.
func cacheControl() Field {
	return Field{Name: "cache_control", Takes: object{
		{Name: "type", Takes: oneOf{"ephemeral"}, Required: true},
		{Name: "ttl", Takes: oneOf{"5m", "1h"}},
	}, Note: "ignored: the prefix cache finds its own places"}
}

var messagesFields = join(
	promptFields(),
	object{
		{Name: "max_tokens", Takes: integer{1, math.MaxInt32}, Required: true, Note: "thinking counts"},
		{Name: "stop_sequences", Takes: list{of: text{min: 1, max: maxStopBytes}, max: maxStops}, Note: "end the completion and are no part of it; within the thought they are not looked for"},
		{Name: "stream", Takes: boolean{}, Note: "server-sent events; pings say how far queue, loading and prefill are"},
		{Name: "temperature", Takes: number{min: 0, max: 1}, Note: "0 is greedy, and the default; a request for thinking that gives no field of sampling takes the checkpoint's generation_config"},
		{Name: "top_p", Takes: number{min: 0, max: 1}, Note: "0 leaves the likeliest token alone"},
		{Name: "top_k", Takes: integer{0, math.MaxInt32}, Note: "0 is off"},
		{Name: "metadata", Takes: object{{Name: "user_id", Takes: text{}, Note: "taken; nothing is kept of it"}}},
		{Name: "service_tier", Takes: only{`"auto"`, `"standard_only"`}, Note: "there is one tier"},
		{Name: "container", Note: "nothing is run here"},
		{Name: "context_management", Note: "nothing is cut or compacted"},
		{Name: "inference_geo", Note: "this machine is where it is"},
		{Name: "mcp_servers", Takes: only{"[]"}, Note: "nothing is called from here"},
	},
)

var countFields = promptFields()

func (s *server) messages(w http.ResponseWriter, r *http.Request) {
	var request messagesRequest
	if err := readBody(w, r, messagesFields, &request); err != nil {
		writeError(w, r, err)
		return
	}
	j, err := s.messagesJob(&request)
	if err != nil {
		writeError(w, r, err)
		return
	}
	s.run(w, r, j)
}

// countTokens counts the prompt that the request would make.
func (s *server) countTokens(w http.ResponseWriter, r *http.Request) {
	var request messagesRequest
	if err := readBody(w, r, countFields, &request); err != nil {
		writeError(w, r, err)
		return
	}
	j, err := s.messagesJob(&request)
	if err != nil {
		writeError(w, r, err)
		return
	}
	tokens, failed := s.Encode(j.requests[0])
	if failed != nil {
		writeError(w, r, j.errorOf(failed))
		return
	}
	writeJSON(w, http.StatusOK, struct {
		InputTokens int `json:"input_tokens"`
	}{len(tokens)})
}

func (s *server) messagesJob(c *messagesRequest) (*job, *apiError) {
	if err := s.Model.is(c.Model); err != nil {
		return nil, err
	}
	conv, err := c.conversation()
	if err != nil {
		return nil, err
	}
	on, budget, err := c.thinking()
	if err != nil {
		return nil, err
	}
	base := completion.Request{
		Messages: conv.messages,
		Answer:   c.Output.Format.schema(),
		Thinking: on, ThinkingBudget: budget,
		MaxTokens: c.MaxTokens,
		Stop:      c.Stop,
		LogProbs:  engine.NoLogProbs,
	}
	if err := (toolSet{c.tools(), c.Choice, false, "tools[%d].name", "tool_choice"}).into(&base); err != nil {
		return nil, err
	}
	requests, err := s.choices(base, 1, &c.samplingParams)
	if err != nil {
		return nil, err
	}
	return &job{
		requests: requests, origins: conv.origins, schemas: schemaPlaces{"output_config.format.schema", "tools[%d].input_schema"},
		stream: c.Stream, progress: true, // in pings, which clients skip
		voice: newMessagesVoice(s.Model.ID),
	}, nil
}

type anthropicThinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens"`
}

// thinking returns whether the model thinks, and the smallest bound on that; 0
// is none.
func (c *messagesRequest) thinking() (on bool, budget int, err *apiError) {
	on = c.Thinking.Type == "enabled" || c.Thinking.Type == "adaptive"
	budget = c.Thinking.Budget
	if c.Output.Effort == nil {
		return on, budget, nil
	}
	const field = "output_config.effort"
	if !on {
		return on, budget, badField(codeValue, field, "%s bounds the thought, and thinking is off", field)
	}
	if e := findEffort(*c.Output.Effort); e.budget > 0 && (budget == 0 || e.budget < budget) {
		budget = e.budget
	}
	return on, budget, nil
}

type anthropicTool struct {
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Strict      bool            `json:"strict"`
}

// tools returns the tools in the form of OpenAI's chat completions.
func (c *messagesRequest) tools() []openAITool {
	list := make([]openAITool, len(c.Tools))
	for i, t := range c.Tools {
		list[i] = functionTool(t.Name, t.Description, t.InputSchema, t.Strict)
	}
	return list
}
