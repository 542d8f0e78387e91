package server

import (
	"math"
	"net/http"

	"calla/core/completion"
)

// tokenizeRequest asks for the tokens of a text, or of the prompt that a
// conversation makes. Servers differ in what they call the text.
type tokenizeRequest struct {
	Model      *string         `json:"model"`
	Prompt     *string         `json:"prompt"`
	Content    *string         `json:"content"`
	Messages   []openAIMessage `json:"messages"`
	Tools      []openAITool    `json:"tools"`
	ToolChoice toolChoice      `json:"tool_choice"`
	parallelCalls
	thinkingParams
}

func anyModelField() Field {
	f := modelField()
	f.Note = "the served id or an alias; may be left out"
	return f
}

var tokenizeFields = join(
	object{
		anyModelField(),
		{Name: "prompt", Takes: text{}, Note: "text in which control tokens are matched, as in completions. One of prompt, content and messages must be there"},
		{Name: "content", Takes: text{}, Note: "as prompt"},
		optional(messagesField(), "the prompt that these would make in chat completions"),
		{Name: "add_special_tokens", Takes: boolean{}, Note: "the tokenizer has none to add"},
		{Name: "add_special", Takes: boolean{}, Note: "the tokenizer has none to add"},
		{Name: "parse_special", Takes: only{"true"}, Note: "control tokens are matched in prompt and never in messages"},
		{Name: "add_generation_prompt", Takes: only{"true"}, Note: "the prompt is one to complete"},
		{Name: "return_token_strs", Takes: only{"false"}, Note: "use /detokenize"},
		{Name: "with_pieces", Takes: only{"false"}, Note: "use /detokenize"},
		effortField(),
	},
	thinkingFields(),
	toolsFields(),
)

// optional returns a field that may be left out, with another note.
func optional(f Field, note string) Field {
	f.Required, f.Note = false, note
	return f
}

var detokenizeFields = object{
	anyModelField(),
	{Name: "tokens", Takes: list{of: integer{0, math.MaxInt32}}, Required: true, Note: "control tokens are spelt out; bytes that are no character become U+FFFD"},
}

func (s *server) tokenize(w http.ResponseWriter, r *http.Request) {
	var request tokenizeRequest
	err := readBody(w, r, tokenizeFields, &request)
	if err == nil && request.Model != nil {
		err = s.Model.is(request.Model)
	}
	var j *job
	if err == nil {
		j, err = request.job()
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	tokens := []int32{}
	if p := j.requests[0].Prompt; p == nil || *p != "" {
		var failed error
		if tokens, failed = s.Encode(j.requests[0]); failed != nil {
			writeError(w, r, j.errorOf(failed))
			return
		}
	}
	writeJSON(w, http.StatusOK, struct {
		Tokens      []int32 `json:"tokens"`
		Count       int     `json:"count"`
		MaxModelLen int     `json:"max_model_len"`
	}{tokens, len(tokens), s.Model.Context})
}

// job returns the request as a prompt, of which nothing will be completed.
func (t *tokenizeRequest) job() (*job, *apiError) {
	var given int
	for _, is := range []bool{t.Prompt != nil, t.Content != nil, t.Messages != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, badField(codeMissing, "prompt", "%d of prompt, content and messages are given, want one", given)
	}
	text := t.Prompt
	if text == nil {
		text = t.Content
	}
	if text != nil {
		return &job{requests: []completion.Request{{Prompt: text}}}, nil
	}
	chat := chatRequest{Tools: t.Tools, ToolChoice: t.ToolChoice, thinkingParams: t.thinkingParams}
	request, err := chat.completion()
	if err != nil {
		return nil, err
	}
	conv, err := openAIConversation(t.Messages)
	if err != nil {
		return nil, err
	}
	request.Messages = conv.messages
	return &job{requests: []completion.Request{request}, origins: conv.origins}, nil
}

func (s *server) detokenize(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Model  *string `json:"model"`
		Tokens []int32 `json:"tokens"`
	}
	err := readBody(w, r, detokenizeFields, &request)
	if err == nil && request.Model != nil {
		err = s.Model.is(request.Model)
	}
	for i := 0; err == nil && i < len(request.Tokens); i++ {
		if int(request.Tokens[i]) >= s.Model.Vocab {
			at := (&place{name: "tokens"}).item(i).String()
			err = badField(codeValue, at, "%s is no token, want one below %d", at, s.Model.Vocab)
		}
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	text, failed := s.Decode(request.Tokens)
	if failed != nil {
		writeError(w, r, errorOf(failed))
		return
	}
	writeJSON(w, http.StatusOK, struct {
		Prompt  string `json:"prompt"`
		Content string `json:"content"`
	}{text, text})
}
