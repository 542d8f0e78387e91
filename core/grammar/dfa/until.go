package dfa

// Until returns the texts of c that hold none of the marks in never, each
// followed by the mark end. Marks are ASCII, and one of never is an ending of
// end: then the first end that comes is the one.
func (m *Maker) Until(c *Chars, end string, never ...string) (*Chars, error) {
	return m.until(c, newMarks(append([]string{end}, never...), true))
}

// Without returns the texts of c that hold none of the marks. Marks are ASCII.
func (m *Maker) Without(c *Chars, marks ...string) (*Chars, error) {
	return m.until(c, newMarks(marks, false))
}

func (m *Maker) until(c *Chars, k *marks) (*Chars, error) {
	cuts := map[rune]bool{}
	for _, s := range c.spans {
		cuts[s.lo] = true
	}
	for _, r := range k.alphabet {
		cuts[r], cuts[r+1] = true, true
	}
	out := classed(cuts)
	of := make([]int32, out.classes)
	for i, s := range out.spans {
		of[i] = c.classOf(s.lo)
	}
	x := explored[untilState]{
		maker:   m,
		chars:   out,
		accepts: func(s untilState) bool { return s.ended || !k.ends && s.whole },
		step: func(s untilState, class int32) (untilState, bool) {
			return k.step(c, s, of[class], out.spans[class].lo)
		},
	}
	if k.ends {
		x.tail = func(s untilState) uint8 { return uint8(k.nodes[s.mark].ofEnd) }
	}
	return x.explore(untilState{whole: c.accept[0]})
}

// untilState is a place in a text that may have an end mark after it.
type untilState struct {
	text int32 // of the set; dead where the end mark must go on
	mark int32 // the longest beginning of a mark that was just read
	// whole says that what was read before the end mark's beginning, if mark is
	// one, else all that was read, is a text of the set.
	whole bool
	ended bool
}

// marks finds marks in a text: Aho and Corasick's automaton.
type marks struct {
	ends     bool // the first mark ends a text
	nodes    []markNode
	alphabet []rune
}

type markNode struct {
	next  map[rune]int32
	fail  int32
	ofEnd int  // length, where it is a beginning of the end mark
	hit   bool // a mark ends here
	isEnd bool // and it is the end mark
}

func newMarks(all []string, ends bool) *marks {
	m := &marks{ends: ends, nodes: []markNode{{next: map[rune]int32{}}}}
	for i, mark := range all {
		var at int32
		for n, r := range mark {
			m.alphabet = append(m.alphabet, r)
			to, ok := m.nodes[at].next[r]
			if !ok {
				to = int32(len(m.nodes))
				m.nodes[at].next[r] = to
				m.nodes = append(m.nodes, markNode{next: map[rune]int32{}})
			}
			at = to
			if ends && i == 0 {
				m.nodes[at].ofEnd = n + 1
			}
		}
		m.nodes[at].hit, m.nodes[at].isEnd = true, ends && i == 0
	}
	m.link()
	return m
}

// link sets where each node goes on when what it stands for does not.
func (m *marks) link() {
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for r, to := range m.nodes[at].next {
			if at != 0 {
				m.nodes[to].fail = m.find(m.nodes[at].fail, r)
				m.nodes[to].hit = m.nodes[to].hit || m.nodes[m.nodes[to].fail].hit
			}
			queue = append(queue, to)
		}
	}
}

// find returns the longest beginning of a mark after one more character.
func (m *marks) find(at int32, r rune) int32 {
	for {
		if to, ok := m.nodes[at].next[r]; ok {
			return to
		}
		if at == 0 {
			return 0
		}
		at = m.nodes[at].fail
	}
}

// step reads a character r, which the set's automaton has in class.
func (m *marks) step(c *Chars, s untilState, class int32, r rune) (untilState, bool) {
	if s.ended {
		return s, false
	}
	next := untilState{text: dead, mark: m.find(s.mark, r)}
	if s.text != dead {
		next.text = c.step(s.text, class)
	}
	node := m.nodes[next.mark]
	switch {
	case node.ofEnd == 1:
		next.whole = s.text != dead && c.accept[s.text]
	case node.ofEnd > 1:
		next.whole = s.whole
	default:
		next.whole = next.text != dead && c.accept[next.text]
	}
	switch {
	case node.isEnd:
		return untilState{text: dead, mark: next.mark, ended: true}, next.whole
	case node.hit:
		return s, false
	}
	return next, next.text != dead || node.ofEnd > 0 && next.whole
}
