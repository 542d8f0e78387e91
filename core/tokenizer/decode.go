package tokenizer

// Decode returns the text of tokens. Ids outside the vocabulary, such as the
// padding of a model's matrices, stand for nothing; skipSpecial leaves out
// special tokens, but not those added tokens that are not special, such as
// <think>. Bytes that are no UTF-8 become U+FFFD, see the package comment.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	var text []byte
	for _, id := range ids {
		text = append(text, t.shown(id, skipSpecial)...)
	}
	return validUTF8(string(text))
}

// shown returns the bytes of a token, none where it is to be skipped.
func (t *Tokenizer) shown(id int32, skipSpecial bool) string {
	if skipSpecial && t.added.isSpecial(id) {
		return ""
	}
	return t.vocab.token(id)
}

// Decoder decodes tokens one by one. It holds back the first bytes of a
// character until the others come, so that what it returns is always whole
// characters; all of it together is what Decode returns for all the tokens.
// A Decoder belongs to one goroutine.
type Decoder struct {
	tokenizer   *Tokenizer
	skipSpecial bool
	held        []byte // 0 to 3 bytes that begin a character
}

// NewDecoder returns a decoder at the start of a text; skipSpecial is Decode's.
func (t *Tokenizer) NewDecoder(skipSpecial bool) *Decoder {
	return &Decoder{tokenizer: t, skipSpecial: skipSpecial}
}

// Add returns the text that is complete with the next token, often none.
func (d *Decoder) Add(id int32) string {
	text, held := appendValid(nil, append(d.held, d.tokenizer.shown(id, d.skipSpecial)...))
	d.held = append(d.held[:0], held...)
	return string(text)
}

// Flush returns what stands for bytes held back at the end of the text, and
// makes the decoder ready for another one.
func (d *Decoder) Flush() string {
	text := appendBroken(nil, d.held)
	d.held = d.held[:0]
	return string(text)
}
