package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// setting is a value of tokenizer.json, by its path, with the values that this
// package implements; none where the value changes no id and no text.
type setting struct {
	path     string
	accepted []string // as jsonReader.scalar spells them
	optional bool
}

// settings are all values of tokenizer.json but the vocabulary, the merges and
// the added tokens.
var settings = []setting{
	{path: "version", accepted: []string{`"1.0"`}},
	{path: "truncation", accepted: []string{"null"}, optional: true},
	{path: "padding", accepted: []string{"null"}, optional: true},

	{path: "normalizer.type", accepted: []string{`"NFC"`}},

	{path: "pre_tokenizer.type", accepted: []string{`"Sequence"`}},
	{path: "pre_tokenizer.pretokenizers[0].type", accepted: []string{`"Split"`}},
	{path: "pre_tokenizer.pretokenizers[0].pattern.Regex", accepted: []string{quotedPattern, quotedOldPattern}},
	{path: "pre_tokenizer.pretokenizers[0].behavior", accepted: []string{`"Isolated"`}},
	{path: "pre_tokenizer.pretokenizers[0].invert", accepted: []string{"false"}},
	{path: "pre_tokenizer.pretokenizers[1].type", accepted: []string{`"ByteLevel"`}},
	{path: "pre_tokenizer.pretokenizers[1].add_prefix_space", accepted: []string{"false"}},
	{path: "pre_tokenizer.pretokenizers[1].use_regex", accepted: []string{"false"}},
	{path: "pre_tokenizer.pretokenizers[1].trim_offsets", optional: true},

	// The byte-level post-processor moves offsets and adds no token.
	{path: "post_processor", accepted: []string{"null"}, optional: true},
	{path: "post_processor.type", accepted: []string{`"ByteLevel"`}, optional: true},
	{path: "post_processor.add_prefix_space", optional: true},
	{path: "post_processor.trim_offsets", optional: true},
	{path: "post_processor.use_regex", optional: true},

	// The byte-level decoder reads none of its settings.
	{path: "decoder.type", accepted: []string{`"ByteLevel"`}},
	{path: "decoder.add_prefix_space", optional: true},
	{path: "decoder.trim_offsets", optional: true},
	{path: "decoder.use_regex", optional: true},

	{path: "model.type", accepted: []string{`"BPE"`}},
	{path: "model.dropout", accepted: []string{"null"}, optional: true},
	{path: "model.unk_token", accepted: []string{"null"}, optional: true},
	{path: "model.continuing_subword_prefix", accepted: []string{"null", `""`}, optional: true},
	{path: "model.end_of_word_suffix", accepted: []string{"null", `""`}, optional: true},
	{path: "model.fuse_unk", accepted: []string{"false"}, optional: true},
	{path: "model.byte_fallback", accepted: []string{"false"}, optional: true},
	{path: "model.ignore_merges", accepted: []string{"false"}, optional: true},
}

const (
	quotedPattern    = `"` + pattern + `"`
	quotedOldPattern = `"` + oldPattern + `"`
)

// wanted says which values a setting may have.
func (s setting) wanted() string {
	if s.accepted == nil {
		return "a simple value"
	}
	return strings.Join(s.accepted, " or ")
}

// read reads the setting's value and checks it.
func (s setting) read(r *jsonReader) error {
	if c := r.peek(); c == '{' || c == '[' {
		return fmt.Errorf("%s: %c…, want %s", s.path, c, s.wanted())
	}
	value, err := r.scalar()
	if err == nil && s.accepted != nil && !slices.Contains(s.accepted, value) {
		err = fmt.Errorf("%s: %s, want %s", s.path, clip(value), s.wanted())
	}
	return err
}

// settingsReader reads a file and checks the settings as it meets them.
type settingsReader struct {
	json  *jsonReader
	parts []part
	seen  map[string]bool
}

// part is a value that is no setting and is read by its own function.
type part struct {
	path string
	read func() error
}

// read reads the value at a path and all within it.
func (s *settingsReader) read(path string) error {
	at := slices.IndexFunc(s.parts, func(p part) bool { return p.path == path })
	leaf, within := findSetting(path)
	switch {
	case at < 0 && leaf == nil && !within:
		return fmt.Errorf("%s: an unknown setting", clip(path))
	case s.seen[path]:
		return fmt.Errorf("%s: given again, want it once", path)
	}
	s.seen[path] = true
	switch c := s.json.peek(); {
	case at >= 0:
		return s.parts[at].read()
	case within && c == '{':
		return s.json.object(func(key []byte) error { return s.member(path, string(key)) })
	case within && c == '[':
		return s.json.array(func(i int) error { return s.read(fmt.Sprintf("%s[%d]", path, i)) })
	case leaf == nil:
		return fmt.Errorf("%s: %w", path, s.json.unexpected("an object or an array"))
	}
	return leaf.read(s.json)
}

// member reads one member of the object at a path.
func (s *settingsReader) member(path, key string) error {
	if strings.ContainsAny(key, ".[") {
		return fmt.Errorf("%s: an unknown setting", quote(key)) // and no path
	}
	if path == "" {
		return s.read(key)
	}
	return s.read(path + "." + key)
}

// missing returns an error for the first setting that a file had to have.
func (s *settingsReader) missing() error {
	for _, in := range settings {
		if !in.optional && !s.seen[in.path] {
			return fmt.Errorf("%s: missing, want %s", in.path, in.wanted())
		}
	}
	for _, in := range s.parts {
		if !s.seen[in.path] {
			return fmt.Errorf("%s: missing, want it", in.path)
		}
	}
	return nil
}

// findSetting returns the setting at a path, and whether there are settings
// within the value at that path.
func findSetting(path string) (leaf *setting, within bool) {
	for i, in := range settings {
		rest, ok := strings.CutPrefix(in.path, path)
		switch {
		case ok && rest == "":
			leaf = &settings[i]
		case ok && (rest[0] == '.' || rest[0] == '['):
			within = true
		}
	}
	return leaf, within
}
