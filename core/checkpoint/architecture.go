package checkpoint

import (
	"fmt"
	"slices"
)

// wanted ends the refusals of whole checkpoints: what to have instead.
const wanted = "get the MLX 4-bit conversion " + Repository

// architecture checks that config.json describes this architecture in the form
// of an MLX conversion, and returns its text_config.
func architecture(root value) (value, error) {
	if !root.isObject() {
		return "", fmt.Errorf("%v, want a JSON object", root)
	}
	kind, ok := root.get("model_type")
	if !ok {
		return "", fmt.Errorf("no model_type; %s", wanted)
	}
	switch t, _ := kind.text(); t {
	case "qwen3_5_moe":
	case "qwen3_5", "qwen3_5_text":
		return "", dense(fmt.Sprintf("model_type %v", kind))
	case "qwen3_5_moe_text":
		return "", textOnly(t)
	default:
		return "", unsupported("model_type", kind, `"qwen3_5_moe"`)
	}
	const class, textClass = "Qwen3_5MoeForConditionalGeneration", "Qwen3_5MoeForCausalLM"
	switch names := textItems(root, "architectures"); {
	case slices.Contains(names, class):
		return textConfig(root)
	case slices.Contains(names, textClass):
		return "", textOnly(textClass)
	}
	got, _ := root.get("architectures")
	return "", unsupported("architectures", got, `["`+class+`"]`)
}

// textConfig returns the part of config.json that is about the text model.
func textConfig(root value) (value, error) {
	text, ok := root.get("text_config")
	if !ok || !text.isObject() {
		return "", fmt.Errorf("no text_config, not an MLX conversion; %s", wanted)
	}
	kind, _ := text.get("model_type")
	switch t, _ := kind.text(); t {
	case "qwen3_5_moe_text":
	case "qwen3_5_text":
		return "", dense(fmt.Sprintf("text_config.model_type %v", kind))
	default:
		return "", unsupported("text_config.model_type", kind, `"qwen3_5_moe_text"`)
	}
	if _, ok := text.get("num_experts"); !ok {
		return "", dense("no text_config.num_experts")
	}
	return text, nil
}

func dense(why string) error {
	return fmt.Errorf("a dense model (%s), only the mixture of experts 35B-A3B runs; %s", why, wanted)
}

func unsupported(field string, got value, want string) error {
	return fmt.Errorf("unsupported architecture: %s %v, want %s; %s", field, got, want, wanted)
}

func textOnly(what string) error {
	return fmt.Errorf("a text-only export (%s), not an MLX conversion; %s", what, wanted)
}

// textItems returns the strings of an array member.
func textItems(v value, name string) []string {
	list, _ := v.get(name)
	var out []string
	for item := range list.items() {
		if t, ok := item.text(); ok {
			out = append(out, t)
		}
	}
	return out
}
