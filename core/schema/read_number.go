package schema

import (
	"math/big"
	"strconv"
	"strings"

	"calla/core/grammar/dfa"
)

// numbers reads the bounds of numbers.
func (r *reader) numbers(n *node, v *value) *Error {
	for _, k := range []struct {
		name string
		to   **dfa.Bound
		low  bool
		out  bool
	}{
		{"minimum", &n.numbers.low, true, false}, {"exclusiveMinimum", &n.numbers.low, true, true},
		{"maximum", &n.numbers.high, false, false}, {"exclusiveMaximum", &n.numbers.high, false, true},
	} {
		m := v.get(k.name)
		if m == nil {
			continue
		}
		x, ok := rational(m.literal)
		if !ok {
			return n.at.to(k.name).fault("want a number of a reasonable length")
		}
		b := &dfa.Bound{Digits: decimal(x), Excluded: k.out}
		if old := *k.to; old != nil {
			y, _ := rational(old.Digits)
			if c := x.Cmp(y); k.low && c < 0 || !k.low && c > 0 {
				continue // the other one is stricter
			}
		}
		*k.to = b
	}
	return nil
}

// decimal writes a number that was read from one without its exponent.
func decimal(x *big.Rat) string {
	prec, _ := x.FloatPrec()
	return x.FloatString(prec)
}

// rational reads a number, unless its exponent makes it unreasonable.
func rational(literal string) (*big.Rat, bool) {
	if len(literal) > 200 {
		return nil, false
	}
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		if e, err := strconv.Atoi(literal[i+1:]); err != nil || e < -60 || e > 60 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(literal)
}

// count reads a keyword whose value is a number of things.
func count(n *node, v *value, name string, absent, most int) (int, *Error) {
	c := v.get(name)
	if c == nil {
		return absent, nil
	}
	r, ok := rational(c.literal)
	if !ok || r.Cmp(big.NewRat(int64(most), 1)) > 0 {
		return 0, n.at.to(name).fault("at most %d is supported", most)
	}
	return int(r.Num().Int64()), nil
}
