// Command mslgen turns a .metal file into C++ that clang compiles: for the
// fibre runtime (-mode host), for PTX (-mode ptx) or for the strict type pass
// (-mode check).
//
// The source stays as it is, line for line, but for what clang has no words for:
// [[attributes]] become spaces, `threadgroup T x[N];` in a kernel becomes a macro,
// and so do program-scope `constant` variables and function constants. Entry points
// made from the kernels' signatures follow the source. On the way mslgen refuses
// what Apple's compiler refuses and clang would take (lint.go).
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"calla/shaders"
)

func main() {
	mode := flag.String("mode", "host", "host, ptx or check")
	out := flag.String("o", "", "output file")
	flag.Parse()
	if flag.NArg() != 1 || *out == "" || !slices.Contains([]string{"host", "ptx", "check"}, *mode) {
		flag.Usage()
		os.Exit(2)
	}
	if err := translate(*mode, flag.Arg(0), *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// translate writes the C++ of one source.
func translate(mode, source, out string) error {
	dir, name := filepath.Split(source)
	if dir == "" {
		dir = "."
	}
	text, err := shaders.Inline(os.DirFS(dir), name)
	if err != nil {
		return err
	}
	u, err := parse(name, text)
	if err != nil {
		return err
	}
	if faults := u.lint(); len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	text = fmt.Sprintf("#line 1 %q\n%s\n", name, u.rewritten(mode))
	switch mode {
	case "host":
		text += u.glue()
	case "ptx":
		text += u.ptxGlue()
	}
	if len(u.faults) > 0 {
		return errors.New(strings.Join(u.faults, "\n"))
	}
	return os.WriteFile(out, []byte(text), 0o644)
}
