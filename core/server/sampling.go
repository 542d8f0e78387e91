package server

import (
	"encoding/json"
	"math"
	"strconv"

	"calla/core/engine"
)

// samplingParams are the fields of OpenAI's APIs that say how tokens are chosen.
type samplingParams struct {
	Temperature       *float64           `json:"temperature"`
	TopP              *float64           `json:"top_p"`
	TopK              *int               `json:"top_k"`
	MinP              *float64           `json:"min_p"`
	PresencePenalty   *float64           `json:"presence_penalty"`
	FrequencyPenalty  *float64           `json:"frequency_penalty"`
	RepetitionPenalty *float64           `json:"repetition_penalty"`
	LogitBias         map[string]float64 `json:"logit_bias"`
	Seed              *json.Number       `json:"seed"`
}

const maxBiases = 1024

func samplingFields() object {
	return object{
		{Name: "temperature", Takes: number{min: 0, max: 2}, Note: "0 is greedy, and the default; see top_p for when the model thinks"},
		{Name: "top_p", Takes: number{min: 0, max: 1}, Note: "0 leaves the likeliest token alone. A request for thinking that gives no field of sampling takes the checkpoint's generation_config"},
		{Name: "top_k", Takes: integer{-1, math.MaxInt32}, Note: "beside OpenAI's fields; 0 and -1 are off"},
		{Name: "min_p", Takes: number{min: 0, max: 1}, Note: "beside OpenAI's fields"},
		{Name: "presence_penalty", Takes: number{min: -2, max: 2}, Note: "over the completion"},
		{Name: "frequency_penalty", Takes: number{min: -2, max: 2}, Note: "over the completion"},
		{Name: "repetition_penalty", Takes: number{min: 0.01, max: 10}, Note: "beside OpenAI's fields; over prompt and completion, 1 is off"},
		{Name: "logit_bias", Takes: free{of: number{min: -100, max: 100}, max: maxBiases, name: isTokenID, note: "object of token ids to numbers -100–100"}, Note: "added to the logits"},
		{Name: "seed", Takes: integer{math.MinInt64, math.MaxInt64}, Note: "the same seed, prompt and fields give the same tokens; choice i takes seed + i"},
	}
}

func isTokenID(name string) bool {
	id, err := strconv.ParseUint(name, 10, 31)
	return err == nil && strconv.FormatUint(id, 10) == name
}

// given reports whether the request shapes the choice of tokens. A seed alone
// does not.
func (p *samplingParams) given() bool {
	return p.Temperature != nil || p.TopP != nil || p.TopK != nil || p.MinP != nil ||
		p.PresencePenalty != nil || p.FrequencyPenalty != nil || p.RepetitionPenalty != nil || len(p.LogitBias) > 0
}

// sampling returns how tokens of one choice are chosen. A request that says
// nothing gets the greedy choice, or the model's own way where it thinks. One
// that says something gets what it says, and of the model's own way only the
// temperature, which would be greedy otherwise.
func (p *samplingParams) sampling(m Model, thinking bool, choice int) (engine.Sampling, *apiError) {
	var s engine.Sampling
	switch {
	case thinking && !p.given():
		s = m.Thinking
	case thinking:
		s.Temperature = m.Thinking.Temperature
	}
	set := func(to *float64, from *float64) {
		if from != nil {
			*to = *from
		}
	}
	set(&s.Temperature, p.Temperature)
	set(&s.TopP, p.TopP)
	set(&s.MinP, p.MinP)
	set(&s.PresencePenalty, p.PresencePenalty)
	set(&s.FrequencyPenalty, p.FrequencyPenalty)
	set(&s.RepetitionPenalty, p.RepetitionPenalty)
	if p.TopK != nil {
		s.TopK = max(*p.TopK, 0)
	}
	if p.TopP != nil && *p.TopP == 0 {
		s.TopP, s.TopK = 1, 1 // to the engine 0 is off
	}
	var err *apiError
	if s.LogitBias, err = p.biases(m.Vocab); err != nil {
		return s, err
	}
	s.Seed = p.seed(choice)
	return s, nil
}

func (p *samplingParams) biases(vocab int) (map[int32]float64, *apiError) {
	if len(p.LogitBias) == 0 {
		return nil, nil
	}
	biases := make(map[int32]float64, len(p.LogitBias))
	for name, bias := range p.LogitBias {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil || int(id) >= vocab {
			return nil, badField(codeValue, "logit_bias", "logit_bias names a token that is not below %d", vocab)
		}
		biases[int32(id)] = bias
	}
	return biases, nil
}

func (p *samplingParams) seed(choice int) *uint64 {
	if p.Seed == nil {
		return nil
	}
	n, err := p.Seed.Int64()
	if err != nil {
		panic("server: seed passed its check: " + err.Error())
	}
	seed := uint64(n) + uint64(choice)
	return &seed
}
