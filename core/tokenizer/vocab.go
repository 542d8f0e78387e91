package tokenizer

import (
	"fmt"
	"math"
)

// vocabulary holds the bytes of every token, in order of the ids.
type vocabulary struct {
	text   string
	ends   []uint32 // token id ends at ends[id] in text and begins where id-1 ends
	ofByte [256]int32
}

func (v *vocabulary) size() int { return len(v.ends) }

// token returns the bytes of a token, none for an id that is none.
func (v *vocabulary) token(id int32) string {
	if id < 0 || int(id) >= len(v.ends) {
		return ""
	}
	if id == 0 {
		return v.text[:v.ends[0]]
	}
	return v.text[v.ends[id-1]:v.ends[id]]
}

// The byte alphabet of GPT-2: files spell each byte of a token as one printable
// character. Printable Latin-1 stands for itself, the other bytes for the
// characters from U+0100 on.
var alphabet, byteOf = newAlphabet()

func newAlphabet() (alphabet [256]rune, byteOf map[rune]byte) {
	byteOf = make(map[rune]byte, len(alphabet))
	next := rune(0x100)
	for b := range alphabet {
		r := rune(b)
		if b <= ' ' || b > '~' && b < '¡' || b == 0xAD {
			r = next
			next++
		}
		alphabet[b] = r
		byteOf[r] = byte(b)
	}
	return alphabet, byteOf
}

// appendSpelled appends the bytes that a token is spelt for. A token that holds
// a character outside the alphabet stands for its own UTF-8, as in the reference.
func appendSpelled(dst []byte, spelled string) []byte {
	start := len(dst)
	for _, r := range spelled {
		b, ok := byteOf[r]
		if !ok {
			return append(dst[:start], spelled...)
		}
		dst = append(dst, b)
	}
	return dst
}

// spelledVocabulary is a vocabulary as a file has it, needed while loading only.
type spelledVocabulary struct {
	tokens []string // by id
	ids    map[string]int32
}

// vocabularyEntry is one member of model.vocab.
type vocabularyEntry struct {
	end int // of the token in the text of all; it begins where the one before ends
	id  int32
}

// readVocabulary reads model.vocab: an object of spelt token to id.
func readVocabulary(r *jsonReader) (*spelledVocabulary, error) {
	var text []byte // of all tokens: one allocation is cheaper than many
	var entries []vocabularyEntry
	err := r.object(func(key []byte) error {
		if len(key) == 0 {
			return fmt.Errorf("model.vocab: an empty token, want at least one character")
		}
		text = append(text, key...)
		id, err := r.id()
		entries = append(entries, vocabularyEntry{len(text), id})
		return err
	})
	if err != nil {
		return nil, err
	}
	return newSpelledVocabulary(string(text), entries)
}

// newSpelledVocabulary checks that each id and each token comes once.
func newSpelledVocabulary(text string, entries []vocabularyEntry) (*spelledVocabulary, error) {
	v := &spelledVocabulary{tokens: make([]string, len(entries)), ids: make(map[string]int32, len(entries))}
	start := 0
	for _, e := range entries {
		token := text[start:e.end]
		start = e.end
		if int(e.id) >= len(entries) {
			return nil, fmt.Errorf("model.vocab: id %d of %s in a vocabulary of %d, want ids without gaps", e.id, quote(token), len(entries))
		}
		if v.tokens[e.id] != "" {
			return nil, fmt.Errorf("model.vocab: id %d is %s and %s, want one token", e.id, quote(v.tokens[e.id]), quote(token))
		}
		v.tokens[e.id] = token
		v.ids[token] = e.id
	}
	if len(v.ids) < len(entries) {
		return nil, fmt.Errorf("model.vocab: %d tokens for %d ids, want each token once", len(v.ids), len(entries))
	}
	return v, nil
}

// vocabulary returns v with the added tokens behind it.
func (v *spelledVocabulary) vocabulary(added []addedToken) (vocabulary, error) {
	out := vocabulary{ends: make([]uint32, 0, len(v.tokens)+len(added))}
	for b := range out.ofByte {
		id, ok := v.ids[string(alphabet[b])]
		if !ok {
			return vocabulary{}, fmt.Errorf("model.vocab: no token for byte 0x%02x, want all 256", b)
		}
		out.ofByte[b] = id
	}
	var text []byte
	add := func(spelled string) {
		text = appendSpelled(text, spelled)
		out.ends = append(out.ends, uint32(len(text)))
	}
	for _, token := range v.tokens {
		add(token)
	}
	for _, token := range added {
		add(token.content)
	}
	if uint64(len(text)) > math.MaxUint32 {
		return vocabulary{}, fmt.Errorf("model.vocab: %d bytes of tokens, want less than 4 GiB", len(text))
	}
	out.text = string(text)
	return out, nil
}
