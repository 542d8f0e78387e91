// Package demo holds the demo model, calla-tiny: the architecture of
// Qwen3.6-35B-A3B in 9 MB, so that a fresh machine has a working model without
// a download. The files are part of the program and are used where they lie;
// nothing is unpacked. MODEL_CARD.md says what the model can do, LICENSE and
// NOTICE what may be done with it.
package demo

import (
	_ "embed"

	"calla/core/checkpoint"
)

// Name is the model's name, for people and clients.
const Name = "calla-tiny"

// Config is the configuration of the demo model.
var Config = checkpoint.Config{
	Layers:                12,
	Hidden:                256,
	Vocab:                 5120,
	MaxPositions:          8192,
	FullAttentionInterval: 4,
	Heads:                 4,
	KVHeads:               2,
	HeadDim:               64,
	RotaryDims:            16,
	RopeTheta:             10_000,
	DeltaKeyHeads:         2,
	DeltaValueHeads:       4,
	DeltaKeyDim:           64,
	DeltaValueDim:         64,
	ConvTaps:              4,
	Experts:               16,
	ExpertsPerToken:       4,
	ExpertDim:             64,
	SharedExpertDim:       128,
	NormEps:               1e-6,
}

var (
	//go:embed config.json
	config []byte
	//go:embed generation_config.json
	generation []byte
	//go:embed model.safetensors
	model []byte
	//go:embed tokenizer.json
	tokenizer []byte
	//go:embed tokenizer_config.json
	tokenizerConfig []byte
	//go:embed chat_template.jinja
	chatTemplate []byte

	//go:embed LICENSE
	license []byte
	//go:embed NOTICE
	notice []byte
	//go:embed MODEL_CARD.md
	modelCard []byte
)

// Source returns the files of the demo model.
func Source() checkpoint.Source {
	return checkpoint.Memory(Name, map[string][]byte{
		"config.json":            config,
		"generation_config.json": generation,
		"model.safetensors":      model,
		"tokenizer.json":         tokenizer,
		"tokenizer_config.json":  tokenizerConfig,
		"chat_template.jinja":    chatTemplate,
		"LICENSE":                license,
		"NOTICE":                 notice,
		"MODEL_CARD.md":          modelCard,
	})
}
