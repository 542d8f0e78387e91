package cuda

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Source is a file of PTX that scripts/emulator --cuda wrote: a head, an entry
// for each kernel, and a tail. Kernels don't call one another.
type Source struct {
	head, tail string
	entries    map[string]entry
}

// entry is one kernel of a source.
type entry struct {
	text   string
	params int // an argument struct, then pointers
}

var (
	entryStart = regexp.MustCompile(`(?m)^\s*\.visible \.entry msl_(\w+)\(`)
	entryEnd   = regexp.MustCompile(`(?m)^}\n`)
	constant   = regexp.MustCompile(`ld\.const\.u32(\s+%(r|rd)\d+), \[msl_constant_(\d)\];`)
)

// Parse finds the kernels of a source.
func Parse(ptx string) (*Source, error) {
	starts := entryStart.FindAllStringSubmatchIndex(ptx, -1)
	if len(starts) == 0 || !strings.Contains(ptx, ".version") {
		return nil, fmt.Errorf("cuda: PTX without kernels: scripts/emulator --cuda writes it")
	}
	s := &Source{head: ptx[:starts[0][0]], entries: map[string]entry{}}
	for _, at := range starts {
		name := ptx[at[2]:at[3]]
		end := entryEnd.FindStringIndex(ptx[at[0]:])
		if end == nil {
			return nil, fmt.Errorf("cuda: PTX ends within kernel %s", name)
		}
		text := ptx[at[0] : at[0]+end[1]]
		params, _, _ := strings.Cut(text, ")")
		s.entries[name] = entry{text, strings.Count(params, ".param")}
		s.tail = ptx[at[0]+end[1]:]
	}
	if at := strings.Index(s.head+s.tail, ".func"); at >= 0 {
		return nil, fmt.Errorf("cuda: PTX with a function, %q: kernels must be whole", lineAt(s.head+s.tail, at))
	}
	return s, nil
}

// Kernels returns the names of the kernels, sorted.
func (s *Source) Kernels() []string {
	var names []string
	for name := range s.entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Params returns how many parameters a kernel has.
func (s *Source) Params(kernel string) int { return s.entries[kernel].params }

// Specialise returns the PTX of one kernel with the values of its function
// constants in it. A constant has a value if and only if the kernel reads it.
func (s *Source) Specialise(kernel string, constants [4]uint32) (string, error) {
	e, ok := s.entries[kernel]
	if !ok {
		return "", fmt.Errorf("cuda: no kernel %s", kernel)
	}
	var read [len(constants)]bool
	text := constant.ReplaceAllStringFunc(e.text, func(load string) string {
		m := constant.FindStringSubmatch(load)
		i, _ := strconv.Atoi(m[3])
		if i >= len(constants) {
			return load
		}
		read[i] = true
		width := map[string]string{"r": "32", "rd": "64"}[m[2]]
		return fmt.Sprintf("mov.u%s%s, %d;", width, m[1], constants[i])
	})
	if at := strings.Index(text, "msl_constant_"); at >= 0 {
		return "", fmt.Errorf("cuda: kernel %s: %q reads a function constant in an unknown way", kernel, lineAt(text, at))
	}
	for i, v := range constants {
		if read[i] != (v != 0) {
			return "", fmt.Errorf("cuda: kernel %s: function constant %d is %d; the kernel reads it: %v", kernel, i, v, read[i])
		}
	}
	return s.head + text + s.tail, nil
}

// lineAt returns the line around a byte.
func lineAt(text string, at int) string {
	start := strings.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := strings.Cut(text[start:], "\n")
	return strings.TrimSpace(line)
}
