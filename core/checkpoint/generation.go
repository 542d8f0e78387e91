package checkpoint

import (
	"fmt"
	"slices"
)

const generationFile = "generation_config.json"

// Generation is how the makers of a model want it sampled, from
// generation_config.json.
type Generation struct {
	DoSample    bool    // false: always the likeliest token
	Temperature float64 // 0 to 2
	TopK        int     // sample from that many tokens; 0: no limit
	TopP        float64 // above 0, at most 1
}

// readGeneration reads generation_config.json, which need not be there; the
// default is greedy. It also returns the stop tokens that the file names.
func readGeneration(src Source, vocab int) (Generation, []int32, error) {
	g := Generation{Temperature: 1, TopP: 1}
	v, ok, err := readOptional(src, generationFile)
	if err != nil || !ok {
		return g, nil, err
	}
	if !v.isObject() {
		return g, nil, fmt.Errorf("%s: %v, want a JSON object", generationFile, v)
	}
	for name, m := range v.members() {
		if want := g.set(name, m, vocab); want != "" && !m.isNull() {
			return g, nil, fmt.Errorf("%s: %s: %v, want %s", generationFile, name, m, want)
		}
	}
	stop, err := tokens(v, "eos_token_id", vocab)
	if err != nil {
		return g, nil, fmt.Errorf("%s: %w", generationFile, err)
	}
	return g, stop, nil
}

// set reads one field into g. It returns what a value that is out of range should
// be; null leaves the default.
func (g *Generation) set(name string, v value, vocab int) (want string) {
	switch name {
	case "do_sample":
		if is, ok := v.boolean(); ok {
			g.DoSample = is
			return ""
		}
		return "true or false"
	case "temperature":
		if x, ok := v.number(); ok && x >= 0 && x <= 2 {
			g.Temperature = x
			return ""
		}
		return "a number from 0 to 2"
	case "top_k":
		if n, ok := v.integer(); ok && n >= 0 && n <= vocab {
			g.TopK = n
			return ""
		}
		return fmt.Sprintf("an integer from 0 to %d", vocab)
	case "top_p":
		if x, ok := v.number(); ok && x > 0 && x <= 1 {
			g.TopP = x
			return ""
		}
		return "a number above 0, at most 1"
	}
	return ""
}

// publishedStops are <|endoftext|> and <|im_end|> of the published vocabulary:
// its own config.json may name one alone.
var publishedStops = []int32{248044, 248046}

// stopTokens unites the stop tokens of all files.
func stopTokens(root, text value, generation []int32, c Config) ([]int32, error) {
	stop := slices.Clone(generation)
	if c.Vocab == Published.Vocab {
		stop = append(stop, publishedStops...)
	}
	for _, at := range []struct {
		v    value
		name string
	}{{root, ""}, {text, "text_config."}} {
		more, err := tokens(at.v, "eos_token_id", c.Vocab)
		if err != nil {
			return nil, fmt.Errorf("%s: %s%w", configFile, at.name, err)
		}
		stop = append(stop, more...)
	}
	slices.Sort(stop)
	return slices.Compact(stop), nil
}

// tokens reads a member that is a token, a list of tokens, null or absent.
func tokens(v value, name string, vocab int) ([]int32, error) {
	m, ok := v.get(name)
	if !ok || m.isNull() {
		return nil, nil
	}
	list := []value{m}
	if m.isArray() {
		list = slices.Collect(m.items())
	}
	var out []int32
	for _, item := range list {
		t, ok := item.integer()
		if !ok || t < 0 || t >= vocab {
			return nil, fmt.Errorf("%s: %v, want a token below vocab_size %d", name, item, vocab)
		}
		out = append(out, int32(t))
	}
	return out, nil
}
