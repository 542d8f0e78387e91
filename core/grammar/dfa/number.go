package dfa

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Bound is one end of a range of numbers.
type Bound struct {
	// Digits is a decimal number without an exponent: "-12.5".
	Digits string
	// Excluded says that the number itself is out of the range.
	Excluded bool
}

// Digits that numbers without bounds have at most. An integer then fits 64
// bits, and no number is too large for a double.
const (
	maxIntegerDigits  = 18
	maxFractionDigits = 16
)

// Integers returns the whole numbers between two bounds, as JSON writes them:
// without leading zeros, point or exponent. A nil bound is none; numbers then
// have at most 18 digits, or as many as the other bound.
func (m *Maker) Integers(low, high *Bound) (*Chars, error) { return m.numbers(low, high, 0) }

// Numbers returns the numbers between two bounds as decimals of up to 16
// digits behind the point.
func (m *Maker) Numbers(low, high *Bound) (*Chars, error) {
	return m.numbers(low, high, maxFractionDigits)
}

// AnyNumber returns the numbers of JSON with up to 18 digits before the point,
// 16 behind it and an exponent of two.
func AnyNumber() *Chars {
	c, err := NewMaker(1 << 20).Pattern(fmt.Sprintf(`^-?(0|[1-9][0-9]{0,%d})(\.[0-9]{1,%d})?([eE][+-]?[0-9]{1,2})?$`, maxIntegerDigits-1, maxFractionDigits))
	if err != nil {
		panic("dfa: the pattern of numbers: " + err.Error())
	}
	return c
}

// numbers is the union of the negative numbers and the others, each between
// two bounds without a sign.
func (m *Maker) numbers(low, high *Bound, fraction int) (*Chars, error) {
	width := maxIntegerDigits
	ends := [2]*limit{}
	for i, b := range []*Bound{low, high} {
		if b == nil {
			continue
		}
		l, err := newLimit(*b)
		if err != nil {
			return nil, err
		}
		ends[i] = l
		width = max(width, len(l.whole))
		if fraction > 0 { // enough to come between two bounds
			fraction = max(fraction, len(l.fraction)+1)
		}
	}
	var all []digitRange
	if ends[1] == nil || !ends[1].negative { // from 0 on
		r := digitRange{high: ends[1]}
		if ends[0] != nil && !ends[0].negative {
			r.low = ends[0]
		}
		all = append(all, r)
	}
	if ends[0] == nil || ends[0].negative { // below, without their sign
		r := digitRange{minus: true, high: ends[0]}
		if ends[1] != nil && (ends[1].negative || ends[1].excluded && ends[1].isZero()) {
			r.low = ends[1] // -0 is no number below 0
		}
		all = append(all, r)
	}
	n := &numberSet{ranges: all, width: width, fraction: fraction}
	return n.chars(m)
}

// maxDigits bounds the digits of a bound, before and behind the point.
const maxDigits = 64

// limit is a bound without its sign.
type limit struct {
	negative        bool
	whole, fraction string
	excluded        bool
}

func newLimit(b Bound) (*limit, error) {
	r, ok := new(big.Rat).SetString(b.Digits)
	if !ok || len(b.Digits) > 2*maxDigits {
		return nil, errors.New("not a decimal number of a reasonable length")
	}
	l := &limit{negative: strings.HasPrefix(b.Digits, "-") && r.Sign() != 0, excluded: b.Excluded}
	l.whole, l.fraction, _ = strings.Cut(strings.TrimPrefix(b.Digits, "-"), ".")
	l.fraction = strings.TrimRight(l.fraction, "0")
	if l.whole = strings.TrimLeft(l.whole, "0"); l.whole == "" {
		l.whole = "0"
	}
	if len(l.whole) > maxDigits || len(l.fraction) > maxDigits || strings.Trim(l.whole+l.fraction, "0123456789") != "" {
		return nil, fmt.Errorf("want at most %d digits before the point and behind it", maxDigits)
	}
	return l, nil
}

func (l *limit) isZero() bool { return l.whole == "0" && l.fraction == "" }

// digitRange is a range of numbers of one sign. Nil bounds are none.
type digitRange struct {
	minus     bool
	low, high *limit
}

// numberSet reads numbers digit by digit, for each range and each number of
// digits before the point.
type numberSet struct {
	ranges   []digitRange
	width    int // the most digits before the point
	fraction int // and behind it
}

// reading is a place in a number of one range.
type reading struct {
	of     int // the range
	length int // digits before the point
	at     int // digits read; behind the point one more, for it
	// low and high say that the digits are so far the first of that bound.
	low, high bool
}

func (n *numberSet) chars(m *Maker) (*Chars, error) {
	cuts := map[rune]bool{'-': true, '.': true, '/': true, '0': true, ':': true}
	for d := rune('0'); d <= '9'; d++ {
		cuts[d] = true
	}
	c := classed(cuts)
	type set = string
	states := map[set][]reading{}
	name := func(r []reading) set {
		s := fmt.Sprint(r)
		states[s] = r
		return s
	}
	var starts []reading
	for of, r := range n.ranges {
		for length := 1; length <= n.width; length++ {
			if x, ok := r.begin(of, length); ok {
				starts = append(starts, x)
			}
		}
	}
	const start = "start"
	x := explored[set]{
		maker: m,
		chars: c,
		accepts: func(s set) bool {
			for _, r := range states[s] {
				if n.accepts(r) {
					return true
				}
			}
			return false
		},
		step: func(s set, class int32) (set, bool) {
			b := c.spans[class].lo
			var from, next []reading
			switch {
			case s == start && b == '-':
				next = n.signed(starts, true)
				return name(next), len(next) > 0
			case s == start:
				from = n.signed(starts, false)
			default:
				from = states[s]
			}
			for _, r := range from {
				if to, ok := n.step(r, b); ok {
					next = append(next, to)
				}
			}
			return name(next), len(next) > 0
		},
	}
	return x.explore(start)
}

func (n *numberSet) signed(all []reading, minus bool) (out []reading) {
	for _, r := range all {
		if n.ranges[r.of].minus == minus {
			out = append(out, r)
		}
	}
	return out
}

// begin returns the start of the numbers of so many digits before the point.
func (r digitRange) begin(of, length int) (reading, bool) {
	x := reading{of: of, length: length}
	if r.low != nil {
		x.low = len(r.low.whole) == length
		if len(r.low.whole) > length {
			return x, false
		}
	}
	if r.high != nil {
		x.high = len(r.high.whole) == length
		if len(r.high.whole) < length {
			return x, false
		}
	}
	return x, true
}

// digit returns the digit of a bound where a number is read.
func (l *limit) digit(r reading) byte {
	i := r.at
	digits := l.whole
	if i >= r.length {
		i, digits = i-r.length-1, l.fraction
	}
	if i < len(digits) {
		return digits[i]
	}
	return '0'
}

func (n *numberSet) step(r reading, c rune) (reading, bool) {
	if c == '.' {
		ok := r.at == r.length && n.fraction > 0
		r.at++
		return r, ok
	}
	if c < '0' || c > '9' || r.at == r.length || r.at == r.length+1+n.fraction {
		return r, false
	}
	if r.at == 0 && c == '0' && r.length > 1 {
		return r, false
	}
	of := n.ranges[r.of]
	if r.low {
		d := rune(of.low.digit(r))
		if c < d {
			return r, false
		}
		r.low = c == d
	}
	if r.high {
		d := rune(of.high.digit(r))
		if c > d {
			return r, false
		}
		r.high = c == d
	}
	r.at++
	return r, true
}

// accepts reports whether a number may end: zeros in the place of what was not
// read keep it within its bounds.
func (n *numberSet) accepts(r reading) bool {
	if r.at < r.length || r.at == r.length+1 {
		return false
	}
	of := n.ranges[r.of]
	if r.low {
		if rest := of.low.fraction[min(max(r.at-r.length-1, 0), len(of.low.fraction)):]; rest != "" || of.low.excluded {
			return false
		}
	}
	if r.high && of.high.excluded {
		rest := of.high.fraction[min(max(r.at-r.length-1, 0), len(of.high.fraction)):]
		return rest != ""
	}
	return true
}
