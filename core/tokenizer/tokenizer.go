// Package tokenizer turns text into the token ids of a byte-level BPE
// vocabulary and back, exactly as Hugging Face tokenizers does for this model.
//
// A Tokenizer is read from the bytes of tokenizer.json and does not change
// afterwards: any number of goroutines may use one. Encode takes text from
// people, in which nothing is a control token; EncodeWithAdded takes a whole
// prompt in which the control tokens are spelt out. Decode and Decoder give
// text that is always valid UTF-8.
//
// Encoding is Unicode normalisation (NFC), then a cut into pieces that no
// token crosses, then BPE merges within each piece. The time it takes grows in
// proportion to the text, but for a factor of log n within one piece. Text must
// be shorter than 2 GiB.
//
// Input that is not UTF-8 is read as Python's errors="replace" and Rust's
// from_utf8_lossy read it: each maximal part of a character that breaks off,
// and each byte that begins none, becomes one U+FFFD.
//
// Which characters are letters, marks, numbers and spaces, and which of them
// combine, is taken from the reference and not from Go's tables, so that a
// newer Go encodes as an older one does; see unicode_table.go.
package tokenizer

import "unicode/utf8"

// Tokenizer is a vocabulary with its merges. It is safe for concurrent use.
type Tokenizer struct {
	vocab  vocabulary
	merges mergeTable
	added  addedTokens
	eos    int32 // -1 where tokenizer_config.json names none
	words  wordCache
}

// VocabSize returns the number of tokens, added tokens included. Rows of a
// model's matrices from there on are padding.
func (t *Tokenizer) VocabSize() int { return t.vocab.size() }

// TokenID returns the id of the added token with this content.
func (t *Tokenizer) TokenID(content string) (id int32, ok bool) {
	id, ok = t.added.byContent[content]
	return id, ok
}

// EOS returns the end-of-sequence token that tokenizer_config.json names.
func (t *Tokenizer) EOS() (id int32, ok bool) { return t.eos, t.eos >= 0 }

// Bytes returns the bytes that a token stands for: none for an id outside the
// vocabulary. They may be part of a character only.
func (t *Tokenizer) Bytes(id int32) []byte { return []byte(t.vocab.token(id)) }

// Encode returns the token ids of text from people. Text that spells an added
// token is text like any other.
func (t *Tokenizer) Encode(text string) []int32 {
	return t.encode(newIDs(text), validUTF8(text))
}

// EncodeWithAdded returns the token ids of a text in which the content of each
// added token stands for that token; of two that begin at the same place, the
// longer.
func (t *Tokenizer) EncodeWithAdded(text string) []int32 {
	ids, text := newIDs(text), validUTF8(text)
	for text != "" {
		start, length, id := t.added.find(text)
		ids = t.encode(ids, text[:start])
		if length > 0 {
			ids = append(ids, id)
		}
		text = text[start+length:]
	}
	return ids
}

// newIDs has room for the ids of ordinary text.
func newIDs(text string) []int32 { return make([]int32, 0, len(text)/3+1) }

// encode appends the ids of valid UTF-8 without added tokens.
func (t *Tokenizer) encode(ids []int32, text string) []int32 {
	text = nfc(text)
	for text != "" {
		n := pieceLen(text)
		ids = t.encodePiece(ids, text[:n])
		text = text[n:]
	}
	return ids
}

// encodePiece appends the ids of one piece. Short pieces are mostly words that
// come again, so they go through the cache.
func (t *Tokenizer) encodePiece(ids []int32, piece string) []int32 {
	if len(piece) == 1 {
		return append(ids, t.vocab.ofByte[piece[0]])
	}
	if len(piece) > maxCachedWord {
		return t.merges.appendMerged(ids, piece, &t.vocab.ofByte)
	}
	slot := t.words.slot(piece)
	if word := slot.Load(); word != nil && word.text == piece {
		return append(ids, word.ids...)
	}
	start := len(ids)
	ids = t.merges.appendMerged(ids, piece, &t.vocab.ofByte)
	slot.Store(newCachedWord(piece, ids[start:]))
	return ids
}

// validUTF8 returns text with what is not UTF-8 replaced by U+FFFD.
func validUTF8(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	valid, rest := appendValid(nil, []byte(text))
	return string(appendBroken(valid, rest))
}
