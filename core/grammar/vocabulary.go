package grammar

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// Vocabulary is the tokens of a tokenizer as a trie of their bytes, and what
// was found out about them. Any number of goroutines may use one.
type Vocabulary struct {
	tokens   int             // ids are below
	ends     []int32         // those that end a completion
	controls map[int32]int32 // Control by token
	ofToken  []int32         // token by Control

	// The trie's nodes in preorder, the root first. Node i is the byte label[i]
	// after the node above it, depth[i] bytes deep; all that is below it comes
	// before node after[i]. Its tokens are ids[first[i]:first[i+1]].
	label []byte
	depth []uint16
	after []int32
	first []int32
	ids   []int32

	deepest int // the bytes of the longest token

	isText  Mask   // the tokens of the trie
	text    []byte // of all tokens by id
	textEnd []int32

	mu     sync.Mutex
	locals localCache
}

// maxTokenBytes bounds a token.
const maxTokenBytes = 1 << 12

// Tokens says what NewVocabulary must know of a tokenizer.
type Tokens struct {
	// Count is the number of tokens. Bytes returns what one stands for.
	Count int
	Bytes func(id int32) []byte
	// Controls are tokens that a grammar may name, by their Control.
	Controls []int32
	// Apart are those that are no text: control tokens, named or not.
	Apart func(id int32) bool
	// Ends are the tokens that end a completion.
	Ends []int32
}

// NewVocabulary reads a tokenizer.
func NewVocabulary(t Tokens) (*Vocabulary, error) {
	v := &Vocabulary{tokens: t.Count, ends: t.Ends, ofToken: t.Controls, controls: map[int32]int32{}, isText: NewMask(t.Count)}
	for c, id := range t.Controls {
		v.controls[id] = int32(c)
	}
	var single [256]bool
	for id := range int32(t.Count) {
		b := t.Bytes(id)
		if len(b) > maxTokenBytes {
			return nil, fmt.Errorf("grammar: token %d of %d bytes, want at most %d", id, len(b), maxTokenBytes)
		}
		v.text = append(v.text, b...)
		v.textEnd = append(v.textEnd, int32(len(v.text)))
		if len(b) == 0 || t.Apart(id) {
			continue
		}
		if len(b) == 1 {
			single[b[0]] = true
		}
		v.isText.Add(id)
		v.ids = append(v.ids, id)
	}
	for b, ok := range single {
		if !ok {
			return nil, fmt.Errorf("grammar: no token for byte 0x%02x, want one for each", b)
		}
	}
	slices.SortFunc(v.ids, func(a, b int32) int {
		return cmp.Or(bytes.Compare(v.bytes(a), v.bytes(b)), cmp.Compare(a, b))
	})
	v.build()
	return v, nil
}

// bytes returns what a token stands for.
func (v *Vocabulary) bytes(id int32) []byte {
	if id == 0 {
		return v.text[:v.textEnd[0]]
	}
	return v.text[v.textEnd[id-1]:v.textEnd[id]]
}

// build makes the trie of the sorted tokens.
func (v *Vocabulary) build() {
	v.label, v.depth, v.after, v.first = []byte{0}, []uint16{0}, []int32{0}, []int32{0}
	path := []int32{0} // the nodes from the root to the last one
	close := func(depth int) {
		for len(path) > depth {
			v.after[path[len(path)-1]] = int32(len(v.label))
			path = path[:len(path)-1]
		}
	}
	var before []byte
	for i, id := range v.ids {
		b := v.bytes(id)
		same := 0
		for same < len(b) && same < len(before) && b[same] == before[same] {
			same++
		}
		close(same + 1)
		for n := same; n < len(b); n++ {
			path = append(path, int32(len(v.label)))
			v.label = append(v.label, b[n])
			v.depth = append(v.depth, uint16(n+1))
			v.after = append(v.after, 0)
			v.first = append(v.first, int32(i))
		}
		before = b
	}
	close(0)
	v.deepest = int(slices.Max(v.depth))
	v.first = append(v.first, int32(len(v.ids)))
}

// tokensAt returns the tokens that end at a node.
func (v *Vocabulary) tokensAt(node int32) []int32 { return v.ids[v.first[node]:v.first[node+1]] }

// Prepare finds out what the start of a lexeme says of the tokens, so that no
// request waits for it. The lexeme's table must be filled.
func (v *Vocabulary) Prepare(l *Lexeme) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.local(l, l.start().state)
}

// Text sets mask to the tokens that are text.
func (v *Vocabulary) Text(mask Mask) { copy(mask, v.isText) }

// Size returns the number of tokens.
func (v *Vocabulary) Size() int { return v.tokens }
