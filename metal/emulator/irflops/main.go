// Command irflops makes compiled kernels count the arithmetic that they do. It
// copies LLVM's text from its input to its output and adds, to every basic block
// with floating-point arithmetic, that the block's operations are added to the
// counter msl_flops: one for each addition, subtraction, multiplication and
// division of floats, two for a fused multiply-add, times the lanes of a vector.
//
// What is counted is so what runs, also where a loop ends early or a branch is
// not taken, and not what a launch declares. Conversions, comparisons and calls
// of functions such as exp count nothing.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	if err := count(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "irflops:", err)
		os.Exit(1)
	}
}

// count copies a module. Nothing in a block runs another one but its last
// instruction, so where in it the sum is added does not matter.
func count(r io.Reader, w io.Writer) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 64<<20)
	out := bufio.NewWriter(w)
	var block []string // since the last label
	blocks := 0
	flush := func() {
		sum, first := 0, 0
		for i, line := range block {
			if n := flops(line); n > 0 {
				if sum == 0 {
					first = i
				}
				sum += n
			}
		}
		for i, line := range block {
			if sum > 0 && i == first {
				blocks++
				fmt.Fprintf(out, "  %%flops.%d = load i64, ptr @msl_flops\n  %%flops.more.%d = add i64 %%flops.%d, %d\n"+
					"  store i64 %%flops.more.%d, ptr @msl_flops\n", blocks, blocks, blocks, sum, blocks)
			}
			fmt.Fprintln(out, line)
		}
		block = block[:0]
	}
	for in.Scan() {
		line := in.Text()
		if line == "}" || label.MatchString(line) || strings.HasPrefix(line, "define ") {
			flush()
		}
		block = append(block, line)
	}
	flush()
	fmt.Fprintln(out, "@msl_flops = external global i64")
	if err := in.Err(); err != nil {
		return err
	}
	return out.Flush()
}

var (
	label = regexp.MustCompile(`^[-\w.$"]+:`)
	// %3 = fmul contract <2 x float> %1, %2
	plain = regexp.MustCompile(`^\s+%\S+ = f(?:add|sub|mul|div) (?:\w+ )*?(?:<(\d+) x )?float\b`)
	// %3 = tail call <2 x float> @llvm.fmuladd.v2f32(<2 x float> ..
	fused = regexp.MustCompile(`^\s+%\S+ = .*call .*@llvm\.f(?:ma|muladd)\.(?:v(\d+))?f32\(`)
)

// flops returns how many operations an instruction does.
func flops(line string) int {
	each, m := 1, plain.FindStringSubmatch(line)
	if m == nil {
		each, m = 2, fused.FindStringSubmatch(line)
	}
	if m == nil {
		return 0
	}
	lanes, err := strconv.Atoi(m[1])
	if err != nil {
		lanes = 1
	}
	return each * lanes
}
