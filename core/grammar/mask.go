package grammar

import "math/bits"

// Mask is a set of tokens: token t is bit t%64 of word t/64.
type Mask []uint64

// NewMask returns an empty mask for so many tokens.
func NewMask(tokens int) Mask { return make(Mask, (tokens+63)/64) }

// Has reports whether a token is in the mask.
func (m Mask) Has(t int32) bool { return m[t>>6]>>(t&63)&1 != 0 }

// Add adds a token.
func (m Mask) Add(t int32) { m[t>>6] |= 1 << (t & 63) }

// Remove takes a token out.
func (m Mask) Remove(t int32) { m[t>>6] &^= 1 << (t & 63) }

// Count returns the number of tokens in the mask.
func (m Mask) Count() int {
	n := 0
	for _, w := range m {
		n += bits.OnesCount64(w)
	}
	return n
}

func (m Mask) addAll(o Mask) {
	for i, w := range o {
		m[i] |= w
	}
}

// tokenSet is a set of tokens that is kept: as a list where it is small.
type tokenSet struct {
	few  []int32
	many Mask
}

func (s *tokenSet) addTo(m Mask) {
	for _, t := range s.few {
		m.Add(t)
	}
	m.addAll(s.many)
}

// kept returns what to keep of a mask.
func kept(m Mask) tokenSet {
	if n := m.Count(); n < 2*len(m) {
		few := make([]int32, 0, n)
		for i, w := range m {
			for ; w != 0; w &= w - 1 {
				few = append(few, int32(64*i+bits.TrailingZeros64(w)))
			}
		}
		return tokenSet{few: few}
	}
	return tokenSet{many: append(Mask{}, m...)}
}
