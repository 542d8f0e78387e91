package checkpoint

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// quantization is what config.json says about how weights were quantised: one
// way for all matrices, and other ways for some.
type quantization struct {
	scheme
	overrides map[string]scheme // by name of the matrix
}

// scheme is one way to quantise. Its zero value is a matrix that is not
// quantised.
type scheme struct {
	bits, size int // of a code; weights in a quantisation group
	mode       string
}

func (s scheme) String() string {
	if s == (scheme{}) {
		return "not quantised"
	}
	return fmt.Sprintf("%d-bit %s in groups of %d", s.bits, s.mode, s.size)
}

var (
	fourBit  = scheme{4, quantGroup, "affine"}
	eightBit = scheme{8, quantGroup, "affine"}
)

// readQuantization reads and checks everything but which layers the overrides
// name. The files of the folder tell formats apart whose config.json is silent.
func readQuantization(root value, files []string) (*quantization, error) {
	repeated, isRepeated := root.get("quantization_config")
	if method, ok := repeated.get("quant_method"); ok {
		return nil, foreign(method, repeated)
	}
	v, ok := root.get("quantization")
	if !ok {
		return nil, unquantised(root, isRepeated, files)
	}
	q, err := parseQuantization(v)
	if err != nil {
		return nil, fmt.Errorf("quantization: %w", err)
	}
	if err := q.check(); err != nil {
		return nil, fmt.Errorf("%w; %s", err, wanted)
	}
	if !isRepeated {
		return q, nil
	}
	again, err := parseQuantization(repeated)
	if err != nil {
		return nil, fmt.Errorf("quantization_config: %w", err)
	}
	if q.scheme != again.scheme || !maps.Equal(q.overrides, again.overrides) {
		return nil, fmt.Errorf("quantization_config differs from quantization, want the same twice")
	}
	return q, nil
}

// foreign refuses what other tools quantised.
func foreign(method, config value) error {
	name, _ := method.text()
	known := map[string]string{
		"fp8":  "FP8",
		"gptq": "GPTQ",
		"awq":  "AWQ",
	}[strings.ToLower(name)]
	if known == "" {
		known = method.String()
	}
	// What the method alone does not say: the number format.
	for _, detail := range []string{"fmt", "format", "quant_algo", "load_in_8bit", "load_in_4bit", "bits"} {
		if v, ok := config.get(detail); ok && v != "false" {
			known += fmt.Sprintf(", %s %v", detail, v)
		}
	}
	return fmt.Errorf("quantization_config.quant_method: a checkpoint quantised by other tools (%s); %s", known, wanted)
}

// unquantised refuses a config.json without the object that MLX writes.
func unquantised(root value, otherConfig bool, files []string) error {
	switch {
	case otherConfig:
		return fmt.Errorf("quantization_config without quant_method and no quantization; %s", wanted)
	case slices.Contains(files, "hf_quant_config.json"):
		return fmt.Errorf("no quantization, but hf_quant_config.json: a ModelOpt checkpoint; %s", wanted)
	case slices.Contains(files, "quantize_config.json"):
		return fmt.Errorf("no quantization, but quantize_config.json: a GPTQ or AWQ checkpoint; %s", wanted)
	}
	text, _ := root.get("text_config")
	for _, at := range []value{text, root} {
		for _, name := range []string{"dtype", "torch_dtype"} {
			if v, ok := at.get(name); ok {
				return fmt.Errorf("no quantization: an unquantized checkpoint (%s %v); %s", name, v, wanted)
			}
		}
	}
	return fmt.Errorf("no quantization: an unquantized checkpoint; %s", wanted)
}

func parseQuantization(v value) (*quantization, error) {
	if !v.isObject() {
		return nil, fmt.Errorf("%v, want an object", v)
	}
	q := &quantization{overrides: map[string]scheme{}}
	q.mode = "affine"
	for name, m := range v.members() {
		if known, err := q.field(name, m); known {
			if err != nil {
				return nil, err
			}
			continue
		}
		s, err := parseOverride(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", quote(name), err)
		}
		q.overrides[name] = s
	}
	if q.bits == 0 || q.size == 0 {
		return nil, fmt.Errorf("want bits and group_size")
	}
	return q, nil
}

// field sets one field of a scheme; it reports whether name is one.
func (s *scheme) field(name string, v value) (known bool, err error) {
	number := func(into *int) error {
		n, ok := v.integer()
		if !ok || n < 1 {
			return fmt.Errorf("%s: %v, want an integer above 0", name, v)
		}
		*into = n
		return nil
	}
	switch name {
	case "bits":
		return true, number(&s.bits)
	case "group_size":
		return true, number(&s.size)
	case "mode":
		mode, ok := v.text()
		if !ok {
			return true, fmt.Errorf("mode: %v, want a string", v)
		}
		s.mode = mode
		return true, nil
	}
	return false, nil
}

// parseOverride reads how one matrix is quantised: false for not at all, or an
// object.
func parseOverride(v value) (scheme, error) {
	if v == "false" {
		return scheme{}, nil
	}
	if !v.isObject() {
		return scheme{}, fmt.Errorf("%v, want an object", v)
	}
	s := scheme{mode: "affine"}
	for name, m := range v.members() {
		known, err := s.field(name, m)
		if err != nil {
			return scheme{}, err
		}
		if !known {
			return scheme{}, fmt.Errorf("unknown field %s", quote(name))
		}
	}
	return s, nil
}

// check refuses everything but four bits with exceptions for the routers.
func (q *quantization) check() error {
	if q.mode != "affine" {
		return fmt.Errorf("quantization.mode: MLX %s, want affine", q.mode)
	}
	for _, name := range slices.Sorted(maps.Keys(q.overrides)) {
		if skipped(name) || mayDiffer(name) {
			continue
		}
		return fmt.Errorf("quantization: a mixed quantization: an entry for %s (%v), want entries only for %s and %s",
			quote(name), q.overrides[name], parts[Router].name, parts[SharedMix].name)
	}
	if q.bits != fourBit.bits {
		return fmt.Errorf("quantization.bits: %d-bit MLX, want 4-bit", q.bits)
	}
	if q.size != fourBit.size {
		return fmt.Errorf("quantization.group_size: group size %d, want %d", q.size, fourBit.size)
	}
	return nil
}

// mayDiffer reports whether a matrix of that name has 8 bits.
func mayDiffer(name string) bool {
	return strings.HasSuffix(name, "."+parts[Router].name) || strings.HasSuffix(name, "."+parts[SharedMix].name)
}

// checkRouters checks that the two 8-bit matrices of every layer, and no others,
// are declared to be so.
func (q *quantization) checkRouters(layers int) error {
	left := maps.Clone(q.overrides)
	for layer := range layers {
		for _, p := range []Part{Router, SharedMix} {
			name := p.Name(layer)
			got, ok := left[name]
			if !ok {
				got = q.scheme
			}
			if got != eightBit {
				return fmt.Errorf("quantization: %s is %v, want %v; %s", name, got, eightBit, wanted)
			}
			delete(left, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if !skipped(name) {
			return fmt.Errorf("quantization: %s is no matrix of the model's %d layers", quote(name), layers)
		}
	}
	return nil
}

// skipped reports whether a tensor or matrix belongs to what a text engine
// leaves out: the vision tower and the multi-token prediction head.
func skipped(name string) bool {
	for _, prefix := range []string{"vision_tower.", "model.visual.", "mtp."} {
		if strings.HasPrefix(name, prefix) || strings.Contains(name, "."+prefix) {
			return true
		}
	}
	return false
}
