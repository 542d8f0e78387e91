package tokenizer

import "fmt"

// Load reads a tokenizer from the bytes of tokenizer.json and of
// tokenizer_config.json, which may be nil.
//
// It accepts this model's kind only: byte-level BPE with NFC, this model's split
// pattern or the one that older conversions have in its place, and ids without
// gaps. Any setting that would change an id and is not implemented is an error
// that names it. Of tokenizer_config.json it reads the added tokens, which must
// agree with those of tokenizer.json, the end-of-sequence token and the settings
// that would change an id. Neither slice is kept.
func Load(tokenizerJSON, tokenizerConfigJSON []byte) (*Tokenizer, error) {
	file, err := readTokenizer(tokenizerJSON)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: tokenizer.json: %w", err)
	}
	var config config
	if tokenizerConfigJSON != nil {
		if config, err = readConfig(tokenizerConfigJSON); err != nil {
			return nil, fmt.Errorf("tokenizer: tokenizer_config.json: %w", err)
		}
	}
	t, err := assemble(file, config)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return t, nil
}

func assemble(file *tokenizerFile, config config) (*Tokenizer, error) {
	added, err := joinAdded(file.vocab, append(file.added, config.added...)...)
	if err != nil {
		return nil, err
	}
	vocab, err := file.vocab.vocabulary(added)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{
		vocab:  vocab,
		merges: file.merges,
		added:  newAddedTokens(added, int32(len(file.vocab.tokens))),
		eos:    -1,
		words:  newWordCache(),
	}
	if config.eos != "" {
		id, ok := t.TokenID(config.eos)
		if !ok {
			return nil, fmt.Errorf("eos_token %s, want an added token", quote(config.eos))
		}
		t.eos = id
	}
	return t, nil
}

// tokenizerFile is what tokenizer.json holds.
type tokenizerFile struct {
	vocab  *spelledVocabulary
	merges mergeTable
	added  []addedToken
}

func readTokenizer(data []byte) (*tokenizerFile, error) {
	var f tokenizerFile
	r := &jsonReader{data: data}
	var early *jsonReader // at merges that come before the vocabulary
	s := settingsReader{json: r, seen: map[string]bool{}, parts: []part{
		{"added_tokens", func() (err error) { f.added, err = readAddedTokens(r); return }},
		{"model.vocab", func() (err error) { f.vocab, err = readVocabulary(r); return }},
		{"model.merges", func() (err error) {
			if f.vocab == nil {
				early = &jsonReader{data: data, pos: r.pos}
				_, err = r.skip()
				return err
			}
			f.merges, err = readMerges(r, f.vocab)
			return err
		}},
	}}
	if err := r.object(func(key []byte) error { return s.member("", string(key)) }); err != nil {
		return nil, err
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	if err := s.missing(); err != nil {
		return nil, err
	}
	if early != nil {
		var err error
		if f.merges, err = readMerges(early, f.vocab); err != nil {
			return nil, err
		}
	}
	return &f, nil
}
