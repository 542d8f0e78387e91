package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// attr is one attribute of a [[list]].
type attr struct {
	name, arg string
	pos, end  int // byte range of [[...]]
}

// param is a kernel's parameter.
type param struct {
	text  string // without attributes
	name  string
	attrs []attr
	ref   bool
}

// kernel is a kernel's definition, plain or template.
type kernel struct {
	name       string
	params     []param
	template   bool
	maxThreads string
	constants  []functionConstant // that it reaches
	pos, end   int                // of its name and of its body
}

// entry is one dispatchable kernel: a plain definition or a named instantiation.
type entry struct {
	name, call string
	kernel     *kernel
}

// edit replaces a byte range of the source.
type edit struct {
	pos, end int
	text     string
}

// unit is a source being read.
type unit struct {
	path, src string
	toks      []token
	attrs     []attr
	kernels   map[string]*kernel
	constants []functionConstant
	entries   []entry
	edits     []edit
	instances []edit // where specialisations are declared
	faults    []string
}

// fault notes what is wrong at a byte of the source, with file and line and, where
// it lies in one, the kernel.
func (u *unit) fault(pos int, format string, a ...any) {
	file, line := u.path, 1
	for _, l := range strings.SplitAfter(u.src[:pos], "\n") {
		if m := lineDirective.FindStringSubmatch(l); m != nil {
			line, _ = strconv.Atoi(m[1])
			file = m[2]
		} else if strings.HasSuffix(l, "\n") {
			line++
		}
	}
	where := ""
	for _, k := range u.kernels {
		if k.pos <= pos && pos < k.end {
			where = ", in kernel " + k.name
		}
	}
	u.faults = append(u.faults, fmt.Sprintf("%s:%d: %s%s", file, line, fmt.Sprintf(format, a...), where))
}

var lineDirective = regexp.MustCompile(`^#line (\d+) "(.*)"`)

// parse finds a source's kernels and what in it must be rewritten.
func parse(path, src string) (*unit, error) {
	u := &unit{path: path, src: src, kernels: map[string]*kernel{}}
	u.stripAttrs(lex(src))
	u.scan()
	u.bindConstants()
	if len(u.faults) > 0 {
		return nil, errors.New(strings.Join(u.faults, "\n"))
	}
	return u, nil
}

// stripAttrs takes [[...]] out of the token stream and blanks it in the text.
func (u *unit) stripAttrs(toks []token) {
	for i := 0; i < len(toks); i++ {
		t := toks[i]
		if t.text != "[" || i+1 >= len(toks) || toks[i+1].text != "[" || toks[i+1].pos != t.end {
			u.toks = append(u.toks, t)
			continue
		}
		depth, j := 0, i
		for ; j < len(toks); j++ {
			if toks[j].text == "[" {
				depth++
			} else if toks[j].text == "]" {
				if depth--; depth == 0 {
					break
				}
			}
		}
		if j >= len(toks) {
			u.fault(t.pos, "unterminated attribute")
			return
		}
		pos, end := t.pos, toks[j].end
		for k := i + 2; k < j-1; {
			a := attr{name: toks[k].text, pos: pos, end: end}
			k++
			if k < j-1 && toks[k].text == "(" {
				c := u.match(toks, k)
				a.arg = u.src[toks[k].end:toks[c].pos]
				k = c + 1
			}
			u.attrs = append(u.attrs, a)
			if k < j-1 && toks[k].text == "," {
				k++
			}
		}
		blank := []byte(u.src[pos:end])
		for b := range blank {
			if blank[b] != '\n' {
				blank[b] = ' '
			}
		}
		u.edits = append(u.edits, edit{pos, end, string(blank)})
		i = j
	}
}

var closer = map[string]string{"(": ")", "{": "}", "[": "]", "<": ">"}

// match returns the index of the bracket that closes toks[i].
func (u *unit) match(toks []token, i int) int {
	open, cl := toks[i].text, closer[toks[i].text]
	depth := 0
	for j := i; j < len(toks); j++ {
		switch toks[j].text {
		case open:
			depth++
		case cl:
			if depth--; depth == 0 {
				return j
			}
		}
	}
	u.fault(toks[i].pos, "no closing %s", cl)
	return len(toks) - 1
}

// attrsIn returns the attributes within a byte range.
func (u *unit) attrsIn(pos, end int) []attr {
	var r []attr
	for _, a := range u.attrs {
		if a.pos >= pos && a.end <= end {
			r = append(r, a)
		}
	}
	return r
}

// find returns the attribute of a name, or nil.
func find(as []attr, name string) *attr {
	for i := range as {
		if as[i].name == name {
			return &as[i]
		}
	}
	return nil
}

// scan walks declarations at program scope and finds kernels, instantiations,
// constants and, in function bodies, threadgroup variables.
func (u *unit) scan() {
	start := 0 // first token of the current declaration
	for i := 0; i < len(u.toks); i++ {
		switch u.toks[i].text {
		case ";":
			u.declaration(start, i)
			start = i + 1
		case "(":
			i = u.match(u.toks, i)
		case "{":
			end := u.match(u.toks, i)
			if u.toks[start].text == "namespace" {
				start = i + 1
				continue
			}
			isKernel := u.definition(start, i)
			u.threadgroupVars(i, end, isKernel)
			i = end
			// `struct X {...};` and `constant T t[] = {...};` go on to the ;
			if !u.goesOn(start, i) {
				start = i + 1
			}
		case "}":
			start = i + 1
		}
	}
}

// goesOn reports whether a declaration continues behind its braces.
func (u *unit) goesOn(start, end int) bool {
	for k := start; k < end; k++ {
		switch u.toks[k].text {
		case "struct", "class", "enum", "union", "=":
			return true
		case "(":
			return false
		}
	}
	return false
}

func (u *unit) text(a, b int) string { // tokens [a,b) with attributes removed
	if a >= b {
		return ""
	}
	pos, end := u.toks[a].pos, u.toks[b-1].end
	var sb strings.Builder
	last := pos
	for _, at := range u.attrs {
		if at.pos >= last && at.end <= end {
			sb.WriteString(u.src[last:at.pos])
			last = at.end
		}
	}
	sb.WriteString(u.src[last:end])
	return strings.TrimSpace(sb.String())
}

// header locates name and parameter list of a function declared in [start,end).
func (u *unit) header(start, end int) (name, open int, template bool) {
	i := start
	if i < end && u.toks[i].text == "template" && i+1 < end && u.toks[i+1].text == "<" {
		template = true
		i = u.match(u.toks, i+1) + 1
	}
	for ; i < end; i++ {
		if u.toks[i].text == "=" {
			return -1, -1, template
		}
		if u.toks[i].text == "(" && i > start {
			return i - 1, i, template
		}
	}
	return -1, -1, template
}

// has reports whether a word is among tokens [start,end).
func (u *unit) has(start, end int, word string) bool {
	for i := start; i < end; i++ {
		if u.toks[i].text == word {
			return true
		}
	}
	return false
}

// declAttrs returns the attributes of the declaration that begins at start.
func (u *unit) declAttrs(start, end int) []attr {
	pos := 0
	if start > 0 {
		pos = u.toks[start-1].end
	}
	return u.attrsIn(pos, u.toks[end].pos)
}

// definition handles a body-bearing declaration; it reports whether it is a kernel.
func (u *unit) definition(start, brace int) bool {
	name, open, tmpl := u.header(start, brace)
	if name < 0 {
		return false
	}
	before := u.declAttrs(start, name)
	if !u.has(start, name, "kernel") && find(before, "kernel") == nil {
		return false
	}
	f := &kernel{name: u.toks[name].text, template: tmpl, pos: u.toks[name].pos, end: u.toks[u.match(u.toks, brace)].end}
	if a := find(before, "max_total_threads_per_threadgroup"); a != nil {
		f.maxThreads = a.arg
	}
	f.params = u.params(open)
	if u.kernels[f.name] != nil {
		u.fault(f.pos, "kernel %s is defined twice", f.name)
	}
	u.kernels[f.name] = f
	if !tmpl {
		host := f.name
		if a := find(before, "host_name"); a != nil {
			host = strings.Trim(a.arg, `"`)
		}
		u.entries = append(u.entries, entry{host, f.name, f})
	}
	return true
}

// params splits the parameter list that opens at token open.
func (u *unit) params(open int) []param {
	end := u.match(u.toks, open)
	var out []param
	depth, from := 0, open+1
	for i := open + 1; i <= end; i++ {
		switch u.toks[i].text {
		case "(", "<", "[", "{":
			depth++
		case ">", "]", "}":
			depth--
		case ")":
			if i != end {
				depth--
			}
		}
		if depth == 0 && (u.toks[i].text == "," || i == end) && i > from {
			p := param{text: u.text(from, i), attrs: u.attrsIn(u.toks[from].pos, u.toks[i].pos)}
			p.name = u.toks[i-1].text
			p.ref = u.has(from, i, "&")
			out = append(out, p)
			from = i + 1
		}
	}
	return out
}

// declaration handles what ends in ';' at program scope.
func (u *unit) declaration(start, semi int) {
	if start >= semi {
		return
	}
	first := u.toks[start]
	attrs := u.declAttrs(start, semi)
	if first.text == "template" && u.toks[start+1].text != "<" {
		u.instantiation(start, semi, attrs)
		return
	}
	if first.text != "constant" {
		return
	}
	if a := find(attrs, "function_constant"); a != nil {
		u.functionConstant(start, semi, a.arg)
		return
	}
	u.replace(first.pos, first.end, "MSL_CONST_VAR")
}

// instantiation: template [[host_name("x")]] kernel void f<A, B>(...);
func (u *unit) instantiation(start, semi int, attrs []attr) {
	h := find(attrs, "host_name")
	if h == nil {
		u.fault(u.toks[start].pos, "explicit instantiation without host_name")
		return
	}
	i := start + 1
	for ; i < semi; i++ {
		if i+1 < semi && u.toks[i].kind == ident && u.toks[i+1].text == "<" && u.kernels[u.toks[i].text] != nil {
			break
		}
	}
	if i >= semi {
		u.fault(u.toks[start].pos, "instantiation of an unknown kernel")
		return
	}
	end := u.match(u.toks, i+1)
	u.entries = append(u.entries, entry{strings.Trim(h.arg, `"`), u.text(i, end+1), u.kernels[u.toks[i].text]})
	u.instances = append(u.instances, edit{u.toks[start].pos, u.toks[semi].pos, ""})
}

// replace swaps a range for text, keeping its line breaks and dropping edits inside.
func (u *unit) replace(pos, end int, text string) {
	kept := u.edits[:0]
	for _, e := range u.edits {
		if e.pos < pos || e.end > end {
			kept = append(kept, e)
		}
	}
	text += strings.Repeat("\n", strings.Count(u.src[pos:end], "\n"))
	u.edits = append(kept, edit{pos, end, text})
}

// threadgroupVars rewrites `threadgroup T name[N];` in a body. A declarator with
// * or & is a pointer to threadgroup memory and stays.
func (u *unit) threadgroupVars(open, end int, isKernel bool) {
	depth := 0
	for i := open; i < end; i++ {
		switch u.toks[i].text {
		case "{":
			depth++
		case "}":
			depth--
		}
		t := u.toks[i]
		if t.text != "threadgroup" || !strings.ContainsAny(u.toks[i-1].text, ";{}") {
			continue
		}
		semi, angle, name, pointer := i, 0, -1, false
		for ; u.toks[semi].text != ";"; semi++ {
			switch u.toks[semi].text {
			case "<":
				angle++
			case ">":
				angle--
			case "*", "&":
				pointer = pointer || angle == 0 && name < 0
			case "[":
				if angle == 0 && name < 0 {
					name = semi - 1
				}
			case ",", "=":
				if angle == 0 && name < 0 && !pointer || angle == 0 && u.toks[semi].text == "=" && !pointer {
					u.fault(t.pos, "one threadgroup variable a declaration, without initialiser")
				}
			}
		}
		if pointer {
			continue
		}
		if !isKernel || depth != 1 {
			u.fault(t.pos, "threadgroup variables belong at the top level of a kernel's body")
		}
		if name < 0 {
			name = semi - 1
			u.replace(t.pos, u.toks[semi].pos, fmt.Sprintf("MSL_TGSCALAR(%s, %s)", u.toks[name].text, u.text(i+1, name)))
		} else {
			u.replace(t.pos, u.toks[semi].pos, fmt.Sprintf("MSL_TGVAR(%s, (%s), %s)",
				u.toks[name].text, u.text(name+1, semi), u.text(i+1, name)))
		}
	}
}
