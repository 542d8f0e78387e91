package checkpoint

import (
	"path"
	"strings"
)

// Repository is where the one checkpoint that this engine is made for can be
// had.
const Repository = "mlx-community/Qwen3.6-35B-A3B-4bit"

// identify names what a file is by its first bytes, where it is something that
// people take for a checkpoint, and returns "" otherwise.
func identify(head string) string {
	text := strings.ToLower(strings.TrimLeft(head[:min(len(head), 512)], "\ufeff \t\r\n"))
	for _, known := range []struct{ prefix, name string }{
		{"gguf", "a GGUF file"},
		{"version https://git-lfs", "a git-lfs pointer instead of the file it points to"},
		{"<!doctype html", "an HTML page"},
		{"<html", "an HTML page"},
		{"<head", "an HTML page"},
		{"<?xml", "an XML page"},
		{"pk\x03\x04", "a zip archive, as PyTorch writes"},
	} {
		if strings.HasPrefix(text, known.prefix) {
			return known.name
		}
	}
	return ""
}

// identifyFolder names what kind of checkpoint a folder without our files
// holds, by the names of its files, and returns "" where it cannot tell.
func identifyFolder(names []string) string {
	if len(names) == 0 {
		return "an empty folder"
	}
	has := func(want func(name string) bool) bool {
		for _, n := range names {
			if want(n) {
				return true
			}
		}
		return false
	}
	switch {
	case has(func(n string) bool { return strings.EqualFold(path.Ext(n), ".gguf") }):
		return "a GGUF checkpoint"
	case has(func(n string) bool { return n == "quantize_config.json" }):
		return "a GPTQ or AWQ checkpoint"
	case has(func(n string) bool { return n == "hf_quant_config.json" }):
		return "a ModelOpt checkpoint"
	case has(func(n string) bool { return strings.HasSuffix(n, ".safetensors") }):
		return ""
	case has(isPyTorch):
		return "a PyTorch checkpoint"
	}
	return ""
}

func isPyTorch(name string) bool {
	switch path.Ext(name) {
	case ".bin", ".pt", ".pth", ".ckpt":
		return true
	}
	return false
}
