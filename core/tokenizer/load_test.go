package tokenizer

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

type object = map[string]any

// file is a small tokenizer.json: the bytes, "ab", "abc" and two added tokens.
func file() object {
	vocab := object{}
	for b, r := range alphabet {
		vocab[string(r)] = b
	}
	vocab["ab"], vocab["abc"] = 256, 257
	return object{
		"version": "1.0", "truncation": nil, "padding": nil, "post_processor": nil,
		"added_tokens": []any{addedEntry(258, "<s>", true), addedEntry(259, "<think>", false)},
		"normalizer":   object{"type": "NFC"},
		"pre_tokenizer": object{"type": "Sequence", "pretokenizers": []any{
			object{"type": "Split", "pattern": object{"Regex": pattern}, "behavior": "Isolated", "invert": false},
			object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
		}},
		"decoder": object{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
		"model": object{
			"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
			"vocab": vocab, "merges": []any{[]any{"a", "b"}, []any{"ab", "c"}},
		},
	}
}

func addedEntry(id int, content string, special bool) object {
	return object{"id": id, "content": content, "special": special,
		"single_word": false, "lstrip": false, "rstrip": false, "normalized": false}
}

// at follows keys and indices into a value, to the object that holds the last.
func at(v any, path ...any) object {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			v = v.(object)[step]
		case int:
			v = v.([]any)[step]
		}
	}
	return v.(object)
}

// set returns an edit of the member at a path.
func set(value any, path ...any) func(object) {
	last := len(path) - 1
	return func(f object) { at(f, path[:last]...)[path[last].(string)] = value }
}

// drop returns an edit that takes a member away.
func drop(path ...any) func(object) {
	last := len(path) - 1
	return func(f object) { delete(at(f, path[:last]...), path[last].(string)) }
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestLoadAccepts(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(object)
	}{
		{"merges as pairs, before the vocabulary", func(object) {}},
		{"merges as strings", set([]any{"a b", "ab c"}, "model", "merges")},
		{"the older pattern", set(oldPattern, "pre_tokenizer", "pretokenizers", 0, "pattern", "Regex")},
		{"empty affixes", func(f object) {
			set("", "model", "continuing_subword_prefix")(f)
			set("", "model", "end_of_word_suffix")(f)
		}},
		{"a byte-level post-processor", set(object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}, "post_processor")},
		{"no optional settings", func(f object) {
			for _, name := range []string{"dropout", "unk_token", "fuse_unk", "byte_fallback", "ignore_merges"} {
				drop("model", name)(f)
			}
			drop("truncation")(f)
			drop("padding")(f)
			drop("post_processor")(f)
		}},
		{"added tokens out of order", set([]any{addedEntry(259, "<think>", false), addedEntry(258, "<s>", true)}, "added_tokens")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := file()
			tt.edit(f)
			tok, err := Load(marshal(t, f), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := tok.VocabSize(), 260; got != want {
				t.Errorf("VocabSize() = %d, want %d", got, want)
			}
			diffIDs(t, "EncodeWithAdded", "<s>abcab", []int32{258, 257, 256}, tok.EncodeWithAdded("<s>abcab"))
			if id, ok := tok.TokenID("<think>"); id != 259 || !ok {
				t.Errorf("TokenID(<think>) = %d, %t, want 259", id, ok)
			}
			if id, ok := tok.TokenID("ab"); ok {
				t.Errorf("TokenID(ab) = %d, want none: it is no added token", id)
			}
			if id, ok := tok.EOS(); ok {
				t.Errorf("EOS() = %d, want none without tokenizer_config.json", id)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	split := []any{"pre_tokenizer", "pretokenizers", 0}
	bytesLevel := []any{"pre_tokenizer", "pretokenizers", 1}
	for _, tt := range []struct {
		name string
		edit func(object)
		want string
	}{
		{"another version", set("2.0", "version"), `version: "2.0", want "1.0"`},
		{"truncation", set(object{"max_length": 512}, "truncation"), `truncation: {…, want null`},
		{"padding", set(object{"strategy": "BatchLongest"}, "padding"), `padding: {…, want null`},
		{"another model", set("WordPiece", "model", "type"), `model.type: "WordPiece", want "BPE"`},
		{"a unigram model", set([]any{[]any{"a", -1.5}}, "model", "vocab"), `"[", want {`},
		{"byte fallback", set(true, "model", "byte_fallback"), `model.byte_fallback: true, want false`},
		{"ignored merges", set(true, "model", "ignore_merges"), `model.ignore_merges: true, want false`},
		{"fused unknowns", set(true, "model", "fuse_unk"), `model.fuse_unk: true, want false`},
		{"an unknown token", set("<unk>", "model", "unk_token"), `model.unk_token: "<unk>", want null`},
		{"dropout", set(0.1, "model", "dropout"), `model.dropout: 0.1, want null`},
		{"a subword prefix", set("##", "model", "continuing_subword_prefix"), `model.continuing_subword_prefix: "##", want null or ""`},
		{"a word suffix", set("</w>", "model", "end_of_word_suffix"), `model.end_of_word_suffix: "</w>", want null or ""`},
		{"an unknown model setting", set(1, "model", "max_input_chars_per_word"), `model.max_input_chars_per_word: an unknown setting`},
		{"an unknown section", set(nil, "postprocess"), `postprocess: an unknown setting`},
		{"a name that looks like a path", set("NFC", "normalizer.type"), `"normalizer.type": an unknown setting`},
		{"no normaliser", set(nil, "normalizer"), `normalizer: byte`},
		{"another normaliser", set("NFKC", "normalizer", "type"), `normalizer.type: "NFKC", want "NFC"`},
		{"several normalisers", set(object{"type": "Sequence", "normalizers": []any{object{"type": "NFC"}}}, "normalizer"), `normalizer.normalizers: an unknown setting`},
		{"another pattern", set(`\w+`, append(split, "pattern", "Regex")...), `pattern.Regex: "\w+", want "(?i:`},
		{"a literal pattern", set(object{"String": " "}, append(split, "pattern")...), `pattern.String: an unknown setting`},
		{"another behaviour", set("Removed", append(split, "behavior")...), `behavior: "Removed", want "Isolated"`},
		{"an inverted split", set(true, append(split, "invert")...), `invert: true, want false`},
		{"a prefix space", set(true, append(bytesLevel, "add_prefix_space")...), `add_prefix_space: true, want false`},
		{"the pattern of GPT-2 too", set(true, append(bytesLevel, "use_regex")...), `use_regex: true, want false`},
		{"no word on the pattern of GPT-2", drop(append(bytesLevel, "use_regex")...), `use_regex: missing, want false`},
		{"one pre-tokeniser", set(object{"type": "ByteLevel"}, "pre_tokenizer"), `pre_tokenizer.type: "ByteLevel", want "Sequence"`},
		{"a third pre-tokeniser", func(f object) {
			p := at(f, "pre_tokenizer")
			p["pretokenizers"] = append(p["pretokenizers"].([]any), object{"type": "Digits"})
		}, `pretokenizers[2]: an unknown setting`},
		{"no pre-tokenisers", set([]any{}, "pre_tokenizer", "pretokenizers"), `pretokenizers[0].type: missing`},
		{"a post-processor that adds tokens", set(object{"type": "TemplateProcessing"}, "post_processor"), `post_processor.type: "TemplateProcessing", want "ByteLevel"`},
		{"another decoder", set("WordPiece", "decoder", "type"), `decoder.type: "WordPiece", want "ByteLevel"`},
		{"no decoder", drop("decoder"), `decoder.type: missing, want "ByteLevel"`},
		{"no vocabulary", drop("model", "vocab"), `model.vocab: missing`},
		{"no merges", drop("model", "merges"), `model.merges: missing`},
		{"no added tokens", drop("added_tokens"), `added_tokens: missing`},

		{"a gap in the vocabulary", set(300, "model", "vocab", "abc"), `model.vocab: id 300 of "abc" in a vocabulary of 258`},
		{"an id twice in the vocabulary", set(256, "model", "vocab", "abc"), `model.vocab: id 256 is`},
		{"a negative id", set(-1, "model", "vocab", "abc"), `"-1", want a token id from 0 to 2147483647`},
		{"an id that is no whole number", set(1.5, "model", "vocab", "abc"), `"1.5", want a token id`},
		{"an id beyond 31 bits", set(int64(1)<<31, "model", "vocab", "abc"), `"2147483648", want a token id`},
		{"an id in quotes", set("7", "model", "vocab", "abc"), `want a token id`},
		{"an empty token", set(258, "model", "vocab", ""), `model.vocab: an empty token`},
		{"a byte without a token", func(f object) {
			drop("model", "vocab", "é")(f)
			set(0xe9, "model", "vocab", "zz")(f)
		}, `model.vocab: no token for byte 0xe9`},
		{"a merge of an unknown token", set([]any{"a q!"}, "model", "merges"), `model.merges[0]: "q!", want a token of model.vocab`},
		{"a merge to an unknown token", set([]any{[]any{"a", "b"}, []any{"a", "c"}}, "model", "merges"), `model.merges[1]: "ac", want a token of model.vocab`},
		{"a merge of one", set([]any{"ab"}, "model", "merges"), `model.merges[0]: "ab", want two tokens`},
		{"a merge of three", set([]any{"a b c"}, "model", "merges"), `model.merges[0]: "a b c", want two tokens`},
		{"a pair of one", set([]any{[]any{"ab"}}, "model", "merges"), `model.merges[0]: 1 tokens, want 2`},
		{"a pair of three", set([]any{[]any{"a", "b", "c"}}, "model", "merges"), `model.merges[0]: 3 tokens, want 2`},
		{"a merge twice", set([]any{"a b", "a b"}, "model", "merges"), `model.merges[1]: "a" and "b" again`},
		{"a merge that is a number", set([]any{5}, "model", "merges"), `model.merges[0]: byte`},

		{"an added token in the vocabulary's ids", set([]any{addedEntry(256, "<s>", true)}, "added_tokens"), `added token "<s>": id 256, which the vocabulary has for "ab"`},
		{"an added token of the vocabulary", set([]any{addedEntry(258, "ab", true)}, "added_tokens"), `added token "ab": id 258, but the vocabulary has it as 256`},
		{"a gap before the added tokens", set([]any{addedEntry(259, "<s>", true)}, "added_tokens"), `added token "<s>": id 259, want 258`},
		{"two added tokens of one id", set([]any{addedEntry(258, "<s>", true), addedEntry(258, "<t>", true)}, "added_tokens"), `added token "<t>": id 258 and special true, but also "<s>"`},
		{"two ids of one added token", set([]any{addedEntry(258, "<s>", true), addedEntry(259, "<s>", true)}, "added_tokens"), `added token "<s>": id 259, but also id 258`},
		{"an added token without content", set([]any{addedEntry(258, "", true)}, "added_tokens"), `added_tokens[0]: no content`},
		{"an added token without id", set([]any{object{"content": "<s>"}}, "added_tokens"), `added_tokens[0]: no id`},
		{"an added token that strips", set([]any{object{"id": 258, "content": "<s>", "lstrip": true}}, "added_tokens"), `added_tokens[0]: lstrip: true, want false`},
		{"an added token of the normal text", set([]any{object{"id": 258, "content": "<s>", "normalized": true}}, "added_tokens"), `added_tokens[0]: normalized: true, want false`},
		{"an added token with a new setting", set([]any{object{"id": 258, "content": "<s>", "priority": 1}}, "added_tokens"), `added_tokens[0]: "priority": an unknown setting`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := file()
			tt.edit(f)
			refused(t, marshal(t, f), nil, "tokenizer: ", tt.want)
		})
	}
}

// refused checks that Load fails with an error that holds all of parts.
func refused(t *testing.T, tokenizer, config []byte, parts ...string) {
	t.Helper()
	_, err := Load(tokenizer, config)
	if err == nil {
		t.Fatalf("Load: no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("Load: %v, want an error with %q", err, part)
		}
	}
	if len(err.Error()) > 1000 {
		t.Errorf("Load: an error of %d bytes, want a short one", len(err.Error()))
	}
}

func TestLoadRefusesText(t *testing.T) {
	good := string(marshal(t, file()))
	long := strings.Repeat("x", 1<<20)
	for _, tt := range []struct{ name, text, want string }{
		{"no file", "", "byte 0: end of file, want {"},
		{"a web page", "<!DOCTYPE html>", `byte 0: "<", want {`},
		{"an array", "[]", `byte 0: "[", want {`},
		{"cut off", good[:len(good)/2], "byte "},
		{"more behind it", good + "{}", "want the end of the file"},
		{"a vocabulary twice", strings.Replace(good, `"type":"BPE"`, `"vocab":{}`, 1), "model.vocab: given again"},
		{"a section twice", strings.Replace(good, `"padding":null`, `"normalizer":{}`, 1), "normalizer: given again"},
		{"a token twice", strings.Replace(good, `"abc":257`, `"ab":257`, 1), "model.vocab: 257 tokens for 258 ids"},
		{"an added token's name twice", strings.Replace(good, `"lstrip":false`, `"id":258`, 1), `added_tokens[0]: "id": given again`},
		{"a very long name", `{"` + long + `":1}`, "xxx…: an unknown setting"},
		{"a very long value", strings.Replace(good, `"NFC"`, `"`+long+`"`, 1), `…, want "NFC"`},
		{"deep nesting", strings.Replace(good, `"a","b"`, strings.Repeat("[", 1000), 1), "want"},
	} {
		t.Run(tt.name, func(t *testing.T) { refused(t, []byte(tt.text), nil, "tokenizer: tokenizer.json: ", tt.want) })
	}
}

func TestLoadConfig(t *testing.T) {
	f := marshal(t, file())
	added := object{"258": object{"content": "<s>", "special": true}, "259": object{"content": "<think>", "special": false}}
	for _, tt := range []struct {
		name   string
		config object
	}{
		{"empty", object{}},
		{"the same added tokens", object{"added_tokens_decoder": added, "add_prefix_space": false, "pretokenize_regex": pattern}},
		{"members for others", object{"chat_template": "{{ x }}", "extra": []any{object{"deep": 1.5e3}}, "bos_token": nil}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Load(f, marshal(t, tt.config)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("one more added token", func(t *testing.T) {
		added := maps.Clone(added)
		added["260"] = object{"content": "<e>", "special": true}
		tok, err := Load(f, marshal(t, object{"added_tokens_decoder": added}))
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.EncodeWithAdded("<e>"); !slices.Equal(got, []int32{260}) {
			t.Errorf("EncodeWithAdded(<e>) = %v, want 260", got)
		}
	})
}

func TestLoadConfigEOS(t *testing.T) {
	f := marshal(t, file())
	for _, tt := range []struct {
		name string
		eos  any
		want int32 // -1 for none
	}{
		{"a string", "<s>", 258},
		{"an object", object{"__type": "AddedToken", "content": "<think>", "lstrip": false}, 259},
		{"null", nil, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tok, err := Load(f, marshal(t, object{"eos_token": tt.eos}))
			if err != nil {
				t.Fatal(err)
			}
			if id, ok := tok.EOS(); id != tt.want || ok != (tt.want >= 0) {
				t.Errorf("EOS() = %d, %t, want %d", id, ok, tt.want)
			}
		})
	}
}

func TestLoadConfigRefuses(t *testing.T) {
	f := marshal(t, file())
	for _, tt := range []struct {
		name   string
		config object
		want   string
	}{
		{"another pattern", object{"pretokenize_regex": `\w+`}, `tokenizer_config.json: pretokenize_regex: "\w+", want "(?i:`},
		{"a prefix space", object{"add_prefix_space": true}, `add_prefix_space: true, want false or null`},
		{"a BOS token", object{"add_bos_token": true}, `add_bos_token: true, want false or null`},
		{"an unknown EOS token", object{"eos_token": "</s>"}, `eos_token "</s>", want an added token`},
		{"an EOS token that is a number", object{"eos_token": 3}, `eos_token: 3, want null`},
		{"other content", object{"added_tokens_decoder": object{"258": object{"content": "<x>", "special": true}}},
			`added token "<x>": id 258 and special true, but also "<s>" and special true`},
		{"special in one file only", object{"added_tokens_decoder": object{"258": object{"content": "<s>"}}},
			`added token "<s>": id 258 and special false, but also "<s>" and special true`},
		{"a key that is no id", object{"added_tokens_decoder": object{"0258": object{"content": "<s>"}}},
			`added_tokens_decoder: "0258", want a token id`},
		{"an id beside its key", object{"added_tokens_decoder": object{"258": object{"id": 3, "content": "<s>"}}},
			`added_tokens_decoder[258]: id 3, want the same`},
	} {
		t.Run(tt.name, func(t *testing.T) { refused(t, f, marshal(t, tt.config), "tokenizer: ", tt.want) })
	}
	t.Run("no JSON", func(t *testing.T) { refused(t, f, []byte("{"), "tokenizer_config.json: byte 1: end of file") })
	t.Run("empty", func(t *testing.T) { refused(t, f, []byte{}, "tokenizer_config.json: byte 0: end of file") })
}
