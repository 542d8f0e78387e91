package demo

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"calla/core/checkpoint"
)

func open(t *testing.T) *checkpoint.Checkpoint {
	t.Helper()
	c, err := checkpoint.Open(Source(), checkpoint.Options{Exact: []checkpoint.Config{Config}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestConfig compares Config with config.json, whatever size that says.
func TestConfig(t *testing.T) {
	c, err := checkpoint.Open(Source(), checkpoint.Options{AnySize: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Config() != Config {
		t.Errorf("config.json says %+v, want %+v", c.Config(), Config)
	}
}

func TestOpen(t *testing.T) {
	c := open(t)
	if got, want := c.Name(), "calla-tiny"; got != want {
		t.Errorf("name %q, want %q", got, want)
	}
	// MODEL_CARD.md has these.
	if got, want := c.StopTokens(), []int32{5094, 5096}; !slices.Equal(got, want) {
		t.Errorf("stop tokens %v, want %v", got, want)
	}
	if got, want := c.Generation(), (checkpoint.Generation{DoSample: true, Temperature: 1, TopK: 20, TopP: 0.95}); got != want {
		t.Errorf("generation %+v, want %+v", got, want)
	}
	if got, want := c.Bytes(), int64(9_333_584); got != want {
		t.Errorf("%d bytes of weights, want %d", got, want)
	}
	for _, name := range []string{"tokenizer.json", "chat_template.jinja", "LICENSE", "NOTICE"} {
		if b, err := c.ReadFile(name); err != nil || len(b) == 0 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
}

// TestWeights reads weights at the place and with the digest that Python reads
// from the file, and where the program has them, uncopied.
func TestWeights(t *testing.T) {
	c := open(t)
	for _, tt := range []struct {
		name   string
		offset int64
		sha256 string
	}{
		{"language_model.model.embed_tokens.scales", 4380131,
			"34254dfab11ac3f232c012b3d92a05b55a264eb687b5138b5b72818df49044cb"},
		{"language_model.model.layers.11.mlp.gate.weight", 3660795,
			"f4ce12e49949865279ad60a0a894a11d241c33941f650fd0ea5543f5114ec883"},
	} {
		w, ok := c.Weight(tt.name)
		if !ok {
			t.Errorf("no weight %s", tt.name)
			continue
		}
		if w.Offset != tt.offset {
			t.Errorf("%s: at %d, want %d", tt.name, w.Offset, tt.offset)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(w.Bytes())); got != tt.sha256 {
			t.Errorf("%s: SHA-256 %s, want %s", tt.name, got, tt.sha256)
		}
		if unsafe.SliceData(w.Bytes()) != &model[w.Offset] {
			t.Errorf("%s: copied, want it in place", tt.name)
		}
	}
}

// TestServedByNobodyElse refuses the demo model where the published one is
// wanted.
func TestServedByNobodyElse(t *testing.T) {
	_, err := checkpoint.Open(Source(), checkpoint.Options{})
	if err == nil || !strings.Contains(err.Error(), "text_config.num_hidden_layers is 12, want 40") {
		t.Errorf("error %v, want the first field that differs", err)
	}
}
