package tokenizer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// addedToken is a token behind the base vocabulary, found in text by its
// content and not by merging.
type addedToken struct {
	id      int32
	content string
	special bool // left out of text for people
}

// addedTokens finds added tokens. Their ids are consecutive from first on.
type addedTokens struct {
	first     int32
	special   []bool
	byContent map[string]int32
	byByte    [256][]addedToken // by the first byte of the content, the longest first
}

// newAddedTokens takes tokens in order of their ids.
func newAddedTokens(tokens []addedToken, first int32) addedTokens {
	a := addedTokens{first: first, byContent: make(map[string]int32, len(tokens))}
	for _, token := range tokens {
		a.special = append(a.special, token.special)
		a.byContent[token.content] = token.id
		at := &a.byByte[token.content[0]]
		*at = append(*at, token)
	}
	for _, list := range a.byByte {
		slices.SortFunc(list, func(a, b addedToken) int { return cmp.Compare(len(b.content), len(a.content)) })
	}
	return a
}

// isSpecial reports whether an id is an added token that decoding may skip.
func (a *addedTokens) isSpecial(id int32) bool {
	i := int(id) - int(a.first)
	return i >= 0 && i < len(a.special) && a.special[i]
}

// find returns the first added token in text; without one, start is the length
// of text and length is 0.
func (a *addedTokens) find(text string) (start, length int, id int32) {
	for i := range len(text) {
		for _, token := range a.byByte[text[i]] {
			if strings.HasPrefix(text[i:], token.content) {
				return i, len(token.content), token.id
			}
		}
	}
	return len(text), 0, 0
}

// readAddedTokens reads added_tokens, an array of objects.
func readAddedTokens(r *jsonReader) ([]addedToken, error) {
	var tokens []addedToken
	err := r.array(func(i int) error {
		token := addedToken{id: -1}
		err := token.read(r)
		if err == nil && token.id < 0 {
			err = fmt.Errorf("no id, want one")
		}
		if err != nil {
			return fmt.Errorf("added_tokens[%d]: %w", i, err)
		}
		tokens = append(tokens, token)
		return nil
	})
	return tokens, err
}

// readAddedTokensDecoder reads what tokenizer_config.json calls
// added_tokens_decoder, an object of id to token.
func readAddedTokensDecoder(r *jsonReader) ([]addedToken, error) {
	var tokens []addedToken
	err := r.object(func(key []byte) error {
		id, err := parseID(key)
		if err != nil {
			return fmt.Errorf("added_tokens_decoder: %w", err)
		}
		token := addedToken{id: id}
		if err := token.read(r); err != nil {
			return fmt.Errorf("added_tokens_decoder[%d]: %w", id, err)
		}
		if token.id != id {
			return fmt.Errorf("added_tokens_decoder[%d]: id %d, want the same", id, token.id)
		}
		tokens = append(tokens, token)
		return nil
	})
	return tokens, err
}

// read reads the members of one token.
func (t *addedToken) read(r *jsonReader) error {
	err := r.members(func(name string) error { return t.readMember(r, name) })
	if err == nil && t.content == "" {
		err = fmt.Errorf("no content, want some")
	}
	return err
}

func (t *addedToken) readMember(r *jsonReader, name string) (err error) {
	switch name {
	case "id":
		t.id, err = r.id()
	case "content":
		var text []byte
		text, err = r.str()
		t.content = string(text)
	case "special":
		t.special, err = r.boolean()
	case "single_word", "lstrip", "rstrip", "normalized":
		// Each of these changes what matches; no token of this model has them.
		var on bool
		if on, err = r.boolean(); on {
			err = fmt.Errorf("%s: true, want false", name)
		}
	default:
		err = fmt.Errorf("%s: an unknown setting", quote(name))
	}
	return err
}

// joinAdded returns the added tokens of both files in order of id: those that
// follow the base vocabulary without a gap.
func joinAdded(base *spelledVocabulary, tokens ...addedToken) ([]addedToken, error) {
	slices.SortStableFunc(tokens, func(a, b addedToken) int { return cmp.Compare(a.id, b.id) })
	var joined []addedToken
	ids := make(map[string]int32, len(tokens))
	for _, token := range tokens {
		if n := len(joined); n > 0 && joined[n-1] == token {
			continue // both files have it
		}
		name := fmt.Sprintf("added token %s: id %d", quote(token.content), token.id)
		if int(token.id) < len(base.tokens) {
			return nil, fmt.Errorf("%s, which the vocabulary has for %s", name, quote(base.tokens[token.id]))
		}
		if n := len(joined); n > 0 && joined[n-1].id == token.id {
			return nil, fmt.Errorf("%s and special %t, but also %s and special %t",
				name, token.special, quote(joined[n-1].content), joined[n-1].special)
		}
		if want := len(base.tokens) + len(joined); int(token.id) != want {
			return nil, fmt.Errorf("%s, want %d: ids without gaps", name, want)
		}
		if id, ok := base.ids[token.content]; ok {
			return nil, fmt.Errorf("%s, but the vocabulary has it as %d", name, id)
		}
		if id, ok := ids[token.content]; ok {
			return nil, fmt.Errorf("%s, but also id %d", name, id)
		}
		ids[token.content] = token.id
		joined = append(joined, token)
	}
	return joined, nil
}
