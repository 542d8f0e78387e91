package main

import (
	"fmt"
	"strings"
)

// ptxGlue returns what follows the source of PTX: a global function msl_NAME for
// each kernel. It takes what is at buffers 0 and on, in order: an argument
// struct by value, pointers as they are. Types come from the compiler (decltype).
func (u *unit) ptxGlue() string {
	var b strings.Builder
	for _, e := range u.entries {
		var args []string
		takes := map[int]string{} // buffer: its parameter
		for i, p := range e.kernel.params {
			switch a := p.attrs[0]; a.name {
			case "buffer":
				var slot int
				fmt.Sscan(a.arg, &slot)
				if p.ref && slot != 0 {
					u.fault(e.kernel.pos, "%s: buffer %d: an argument struct belongs at 0", e.name, slot)
				}
				takes[slot] = fmt.Sprintf("msl::wire_t<decltype(%s), %d> b%d", e.call, i, slot)
				args = append(args, fmt.Sprintf("msl::ptx::global(b%d)", slot))
			case "threadgroup":
				args = append(args, fmt.Sprintf("msl::ptx::shared<F, %d>()", i))
			default:
				args = append(args, fmt.Sprintf("msl::builtin<msl::arg_t<F, %d>>(msl::ptx::%s())", i, a.name))
			}
		}
		var params []string
		for slot := range len(takes) {
			if takes[slot] == "" {
				u.fault(e.kernel.pos, "%s: no buffer %d, but one beyond", e.name, slot)
			}
			params = append(params, takes[slot])
		}
		bounds := ""
		if e.kernel.maxThreads != "" {
			bounds = fmt.Sprintf(" __attribute__((launch_bounds(%s)))", e.kernel.maxThreads)
		}
		fmt.Fprintf(&b, "extern \"C\" __attribute__((global))%s void msl_%s(%s) {\nusing F = decltype(%s);\n%s(%s);\n}\n",
			bounds, e.name, strings.Join(params, ", "), e.call, e.call, strings.Join(args, ", "))
	}
	return b.String()
}
