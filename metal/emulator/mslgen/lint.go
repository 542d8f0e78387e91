package main

import (
	"fmt"
	"strings"
)

// banned are words that Metal has not, or this house avoids, and why.
var banned = map[string]string{
	"double": "no double in Metal", "goto": "no goto in Metal", "new": "no new in Metal", "delete": "no delete in Metal",
	"throw": "no exceptions in Metal", "try": "no exceptions in Metal", "catch": "no exceptions in Metal",
	"virtual": "no virtual functions in Metal", "dynamic_cast": "no dynamic_cast in Metal", "typeid": "no typeid in Metal",
	"thread_local": "no thread_local in Metal", "std": "no C++ standard library in Metal", "asm": "no asm in Metal",
	"register": "no register in Metal", "volatile": "keep volatile out of kernels", "__attribute__": "keep clang attributes out of kernels",
}

var spaces = map[string]bool{"device": true, "constant": true, "threadgroup": true, "thread": true}

// lint reports what Apple's compiler rejects, or this project avoids, that the
// clang passes cannot see.
func (u *unit) lint() []string {
	u.lintTokens()
	u.lintKernels()
	u.lintFunctions()
	return u.faults
}

func (u *unit) lintTokens() {
	for i, t := range u.toks {
		if t.kind == ident {
			if why := banned[t.text]; why != "" {
				u.fault(t.pos, "%s: %s", t.text, why)
			}
			if t.text == "long" && i+1 < len(u.toks) && u.toks[i+1].text == "long" {
				u.fault(t.pos, "no long long in Metal")
			}
			if t.text == "static" && !(i+1 < len(u.toks) && (u.toks[i+1].text == "constexpr" || u.toks[i+1].text == "inline" || u.toks[i+1].text == "void")) &&
				!u.startsFunction(i) {
				u.fault(t.pos, "static variables: use `constant` at program scope")
			}
		}
		if t.text == "[" && i > 0 && i+1 < len(u.toks) {
			p, n := u.toks[i-1], u.toks[i+1].text
			if (n == "&" || n == "=" || n == "]") && p.kind == punct && !strings.ContainsAny(p.text, ")]>") {
				u.fault(t.pos, "no lambdas: older Metal versions reject them")
			}
		}
	}
}

func (u *unit) startsFunction(i int) bool {
	for ; i < len(u.toks); i++ {
		switch u.toks[i].text {
		case "(":
			return true
		case ";", "=", "{":
			return false
		}
	}
	return false
}

func (u *unit) lintKernels() {
	names := map[string]bool{}
	for _, e := range u.entries {
		if names[e.name] {
			u.fault(e.kernel.pos, "two kernels named %s", e.name)
		}
		names[e.name] = true
	}
	for _, f := range u.kernels {
		used := map[string]bool{}
		width := ""
		for _, p := range f.params {
			if len(p.attrs) != 1 {
				u.fault(f.pos, "%s: parameter %s needs exactly one attribute", f.name, p.name)
				continue
			}
			a := p.attrs[0]
			switch {
			case a.name == "buffer" || a.name == "threadgroup":
				key := a.name + a.arg
				if used[key] {
					u.fault(f.pos, "%s: [[%s(%s)]] is used twice", f.name, a.name, a.arg)
				}
				used[key] = true
				var n int
				if c, _ := fmt.Sscan(a.arg, &n); c != 1 || n < 0 || n > 30 {
					u.fault(f.pos, "%s: [[%s(%s)]] is not a slot from 0 to 30", f.name, a.name, a.arg)
				}
				if a.name == "buffer" && !strings.Contains(p.text, "device") && !strings.Contains(p.text, "constant") {
					u.fault(f.pos, "%s: buffer %s needs device or constant", f.name, p.name)
				}
			case builtins[a.name]:
				if strings.Contains(a.name, "position_in") || strings.HasPrefix(a.name, "threads_per_t") || strings.HasSuffix(a.name, "per_grid") {
					w := strings.TrimLeft(strings.Fields(p.text)[0], "abcdefghijklmnopqrstuvwxyz")
					if width != "" && width != w+"." {
						u.fault(f.pos, "%s: grid builtins must all be scalar or all vectors of one width", f.name)
					}
					width = w + "."
				}
			default:
				u.fault(f.pos, "%s: unknown attribute %s", f.name, a.name)
			}
		}
	}
}

// functions calls f for every function with a body: the tokens of its name, of
// the brackets that open its parameters and its body, and of that which closes it.
func (u *unit) functions(f func(name, open, body, end int)) {
	for i := 1; i+1 < len(u.toks); i++ {
		if u.toks[i].text != "(" || u.toks[i-1].kind != ident {
			continue
		}
		j := u.match(u.toks, i) + 1
		if j < len(u.toks) && u.toks[j].text == "const" {
			j++
		}
		if j >= len(u.toks) || u.toks[j].text != "{" {
			continue
		}
		switch u.toks[i-1].text {
		case "if", "for", "while", "switch":
			continue
		}
		f(i-1, i, j, u.match(u.toks, j))
	}
}

// lintFunctions checks parameters of every function for address spaces and the
// call graph for cycles.
func (u *unit) lintFunctions() {
	calls := map[string]map[string]bool{}
	pos := map[string]int{}
	u.functions(func(n, open, from, body int) {
		name := u.toks[n].text
		for _, p := range u.params(open) {
			if !strings.ContainsAny(p.text, "*&") {
				continue
			}
			ok := false
			for _, t := range lex(p.text) {
				ok = ok || spaces[t.text]
			}
			if !ok {
				u.fault(u.toks[open].pos, "%s: parameter `%s` needs an address space", name, p.text)
			}
		}
		set := map[string]bool{}
		for k := from; k < body; k++ {
			if u.toks[k].kind == ident && (u.toks[k+1].text == "(" || u.toks[k+1].text == "<") {
				set[u.toks[k].text] = true
			}
			u.lintLocal(k, body)
		}
		calls[name] = set
		pos[name] = u.toks[n].pos
	})
	for name := range calls {
		seen := map[string]bool{}
		var reach func(string) bool
		reach = func(f string) bool {
			for c := range calls[f] {
				if c == name {
					return true
				}
				if !seen[c] && calls[c] != nil {
					seen[c] = true
					if reach(c) {
						return true
					}
				}
			}
			return false
		}
		if reach(name) {
			u.fault(pos[name], "%s: recursion", name)
		}
	}
}

var scalars = map[string]bool{"float": true, "half": true, "bfloat": true, "int": true, "uint": true, "short": true,
	"ushort": true, "char": true, "uchar": true, "bool": true, "long": true, "ulong": true, "auto": true}

// lintLocal flags `float* p` and `float4& r` in a body without address space.
func (u *unit) lintLocal(k, end int) {
	if !strings.ContainsAny(u.toks[k].text, ";{}") || k+3 >= end {
		return
	}
	k++
	if u.toks[k].text == "const" {
		k++
	}
	base := strings.TrimRight(u.toks[k].text, "234")
	if u.toks[k].kind == ident && scalars[base] && base != "auto" && (u.toks[k+1].text == "*" || u.toks[k+1].text == "&") && u.toks[k+2].kind == ident {
		u.fault(u.toks[k].pos, "pointer or reference %s needs an address space", u.toks[k+2].text)
	}
}
