package main

import (
	"fmt"
	"strings"
)

// functionConstant is a constant whose value comes when a kernel is made ready.
type functionConstant struct {
	name  string
	index int
}

// mostConstants is how many of them a launch has values for.
const mostConstants = 4

// functionConstant: constant uint NAME [[function_constant(0)]];
func (u *unit) functionConstant(start, semi int, index string) {
	c := functionConstant{name: u.toks[semi-1].text, index: -1}
	pos := u.toks[start].pos
	if n, _ := fmt.Sscan(index, &c.index); n != 1 || c.index < 0 || c.index >= mostConstants {
		u.fault(pos, "function constant %s: index %s, want 0 to %d", c.name, index, mostConstants-1)
		return
	}
	if typ := u.text(start+1, semi-1); typ != "uint" {
		u.fault(pos, "function constant %s: type %s, want uint", c.name, typ)
	}
	for _, other := range u.constants {
		if other.index == c.index {
			u.fault(pos, "function constant %s: index %d is that of %s", c.name, c.index, other.name)
		}
	}
	u.constants = append(u.constants, c)
	u.replace(pos, u.toks[semi].pos, fmt.Sprintf("MSL_FUNCTION_CONSTANT(%d, uint, %s)", c.index, c.name))
}

// bindConstants finds which function constants each kernel reaches: in its own
// body, or in that of a function that it calls.
func (u *unit) bindConstants() {
	if len(u.constants) == 0 {
		return
	}
	words := map[string]map[string]bool{} // by function
	u.functions(func(name, _, body, end int) {
		set := words[u.toks[name].text]
		if set == nil {
			set = map[string]bool{}
			words[u.toks[name].text] = set
		}
		for _, t := range u.toks[body:end] {
			if t.kind == ident {
				set[t.text] = true
			}
		}
	})
	for _, k := range u.kernels {
		reached := map[string]bool{}
		var reach func(string)
		reach = func(f string) {
			for w := range words[f] {
				if !reached[w] {
					reached[w] = true
					reach(w)
				}
			}
		}
		reach(k.name)
		for _, c := range u.constants {
			if reached[c.name] {
				k.constants = append(k.constants, c)
			}
		}
	}
}

// specialise returns the function that gives a kernel's constants the values of
// a launch, and what tells the library of it. It writes what kernels only read:
// nothing runs meanwhile, which a race detector cannot know.
func (k *kernel) specialise() (function, register string) {
	if len(k.constants) == 0 {
		return "", ""
	}
	var set, names strings.Builder
	for _, c := range k.constants {
		fmt.Fprintf(&set, " %s = values[%d];", c.name, c.index)
		fmt.Fprintf(&names, " I.constants[%d] = %q;", c.index, c.name)
	}
	return "__attribute__((no_sanitize(\"thread\"))) void specialise(const uint32_t* values) {" + set.String() + " }\n",
		names.String() + " I.specialise = specialise;"
}
