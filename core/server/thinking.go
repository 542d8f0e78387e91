package server

import "math"

// effort is a value of reasoning_effort and what it means here.
type effort struct {
	name     string
	thinking bool
	budget   int // tokens of thought; 0 is no bound
}

// efforts are OpenAI's values, each with its budget.
var efforts = []effort{
	{"none", false, 0},
	{"minimal", true, 512},
	{"low", true, 2048},
	{"medium", true, 8192},
	{"high", true, 24576},
	{"xhigh", true, 65536},
	{"max", true, 0},
}

func effortNames() oneOf {
	var names oneOf
	for _, e := range efforts {
		names = append(names, e.name)
	}
	return names
}

func findEffort(name string) effort {
	for _, e := range efforts {
		if e.name == name {
			return e
		}
	}
	panic("server: effort passed its check: " + name)
}

const effortNote = "none is no thinking; the others bound the thought to 512, 2,048, 8,192, 24,576 and 65,536 tokens, max to nothing"

// thinkingParams are the fields of a request that say whether the model thinks
// first. Off is the default.
type thinkingParams struct {
	Effort   *string `json:"reasoning_effort"`
	Budget   *int    `json:"thinking_budget"`
	Template struct {
		Enable   *bool `json:"enable_thinking"`
		Preserve *bool `json:"preserve_thinking"`
	} `json:"chat_template_kwargs"`
}

func effortField() Field {
	return Field{Name: "reasoning_effort", Takes: effortNames(), Note: effortNote}
}

// thinkingFields are those beside OpenAI's own.
func thinkingFields() object {
	return object{
		{Name: "thinking_budget", Takes: integer{0, math.MaxInt32}, Note: "beside OpenAI's fields; most tokens of thought, over that of the effort; 0 is no thinking"},
		{Name: "enable_thinking", Note: "use chat_template_kwargs.enable_thinking or reasoning_effort"},
		{Name: "chat_template_kwargs", Takes: object{
			{Name: "enable_thinking", Takes: boolean{}, Note: "true lets the model think first; off by default"},
			{Name: "preserve_thinking", Takes: boolean{}, Note: "true keeps the thoughts of earlier turns in the prompt"},
		}, Note: "beside OpenAI's fields"},
	}
}

// thinking is what the fields come to.
type thinking struct {
	on       bool
	budget   int // 0 is no bound
	preserve bool
}

// resolve makes one of the fields, and refuses those that contradict each
// other. effort is the API's name of the field of that.
func (p *thinkingParams) resolve(effort string) (thinking, *apiError) {
	t := thinking{preserve: p.Template.Preserve != nil && *p.Template.Preserve}
	var said string // the field that decided
	decide := func(field string, on bool) *apiError {
		if said != "" && t.on != on {
			return badField(codeValue, field, "%s and %s contradict each other", field, said)
		}
		said, t.on = field, on
		return nil
	}
	if p.Template.Enable != nil {
		decide("chat_template_kwargs.enable_thinking", *p.Template.Enable)
	}
	if p.Effort != nil {
		e := findEffort(*p.Effort)
		if err := decide(effort, e.thinking); err != nil {
			return t, err
		}
		t.budget = e.budget
	}
	if p.Budget != nil {
		if err := decide("thinking_budget", *p.Budget > 0); err != nil {
			return t, err
		}
		t.budget = *p.Budget
	}
	return t, nil
}
