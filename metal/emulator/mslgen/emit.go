package main

import (
	"fmt"
	"slices"
	"strings"
)

// rewritten returns the source with all edits made.
func (u *unit) rewritten(mode string) string {
	if mode != "check" {
		// The entry points name the specialisations; the declarations, whose
		// attributes clang cannot place, are not needed.
		for _, s := range u.instances {
			u.replace(s.pos, s.end, "")
		}
	}
	slices.SortFunc(u.edits, func(a, b edit) int { return a.pos - b.pos })
	var b strings.Builder
	last := 0
	for _, e := range u.edits {
		if e.pos < last {
			continue
		}
		b.WriteString(u.src[last:e.pos])
		b.WriteString(e.text)
		last = e.end
	}
	b.WriteString(u.src[last:])
	return b.String()
}

// builtins are the kernel parameters that Metal fills in.
var builtins = map[string]bool{
	"thread_position_in_grid": true, "thread_position_in_threadgroup": true,
	"threadgroup_position_in_grid": true, "threads_per_threadgroup": true,
	"threadgroups_per_grid": true, "threads_per_grid": true,
	"thread_index_in_threadgroup": true, "thread_index_in_simdgroup": true,
	"simdgroup_index_in_threadgroup": true, "simdgroups_per_threadgroup": true,
	"threads_per_simdgroup": true,
}

// glue returns what follows the source: an entry point for each kernel, which
// takes its arguments from a launch. Types come from the compiler (decltype), so
// nothing here has to understand them.
func (u *unit) glue() string {
	var b strings.Builder
	for n, e := range u.entries {
		var args, sizes []string
		bound := uint32(0)
		for i, p := range e.kernel.params {
			switch a := p.attrs[0]; a.name {
			case "buffer":
				var slot int
				fmt.Sscan(a.arg, &slot)
				bound |= 1 << slot
				args = append(args, fmt.Sprintf("msl::host::buffer<F, %d>(L, %d)", i, slot))
				sizes = append(sizes, fmt.Sprintf("I.min_bytes[%d] = msl::wire<msl::arg_t<F, %d>>::bytes;", slot, i))
			case "threadgroup":
				args = append(args, fmt.Sprintf("msl::host::shared<F, %d>(%s)", i, a.arg))
			default:
				args = append(args, fmt.Sprintf("msl::builtin<msl::arg_t<F, %d>>(msl::host::%s())", i, a.name))
			}
		}
		threads := e.kernel.maxThreads
		if threads == "" {
			threads = "0"
		}
		specialise, register := e.kernel.specialise()
		fmt.Fprintf(&b, "namespace { namespace msl_entry_%d {\nusing F = decltype(%s);\n"+
			"void run(const msl_launch* L) { (void)L; %s(%s); }\n%s"+
			"msl::host::KernelInfo I(%q, run, %s, 0x%x);\nconst int init = [] { %s%s return 0; }();\n}}\n",
			n, e.call, e.call, strings.Join(args, ", "), specialise, e.name, threads, bound, strings.Join(sizes, " "), register)
	}
	return b.String()
}
