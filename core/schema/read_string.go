package schema

import (
	"errors"
	"strings"

	"calla/core/grammar/dfa"
)

// strings reads the keywords of strings.
func (r *reader) strings(n *node, v *value) *Error {
	s := &n.strings
	var err *Error
	if s.min, err = count(n, v, "minLength", 0, maxLength); err != nil {
		return err
	}
	if s.max, err = count(n, v, "maxLength", -1, maxLength); err != nil {
		return err
	}
	if n.kinds&text == 0 {
		return nil
	}
	if s.max >= 0 && s.max < s.min {
		n.kinds &^= text
		return nil
	}
	for _, name := range []string{"pattern", "format"} {
		if err := r.restrict(n, v, name); err != nil {
			return err
		}
	}
	if s.set == nil || s.min == 0 && s.max < 0 {
		return nil
	}
	name := "maxLength"
	if s.max < 0 {
		name = "minLength"
	}
	length, e := r.maker.Length(s.min, s.max)
	if e == nil {
		s.set, e = r.maker.Intersect(s.set, length)
	}
	return settled(n, name, e)
}

// restrict takes a pattern or a format into the set of strings.
func (r *reader) restrict(n *node, v *value, name string) *Error {
	k := v.get(name)
	if k == nil || n.kinds&text == 0 {
		return nil
	}
	p := k.text
	if name == "format" {
		known, ok := formats[p]
		if !ok {
			return n.at.to(name).fault("this format is not supported; those that are: %s", strings.Join(Formats(), ", "))
		}
		p = known
	}
	set, err := r.maker.Pattern(p)
	if err == nil && n.strings.set != nil {
		set, err = r.maker.Intersect(n.strings.set, set)
	}
	n.strings.set = set
	return settled(n, name, err)
}

// settled takes strings away where there are none, and makes other errors of
// automata ours.
func settled(n *node, name string, err error) *Error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, dfa.ErrEmpty):
		n.kinds &^= text
		return nil
	case errors.Is(err, dfa.ErrTooLarge):
		return n.at.to(name).fault("it is too large or too laborious")
	}
	return n.at.to(name).fault("%v", err)
}
