package apple

import (
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"calla/shaders"
)

var (
	complaint   = regexp.MustCompile(`(?m)^"?([\w.]+)"?:(\d+):\d+: (?:fatal )?error:`)
	kernelStart = regexp.MustCompile(`\bkernel void (\w+)`)
)

// blame says where the first error of a compiler's report lies: file, line and,
// where the line is behind the start of a kernel, which. Name is the source that
// was compiled.
func blame(name, report string) string {
	m := complaint.FindStringSubmatch(report)
	if m == nil {
		return name
	}
	file := m[1]
	where := fmt.Sprintf("%s, line %s", file, m[2])
	if file != name {
		where += ", included by " + name
	}
	line, err := strconv.Atoi(m[2])
	if err != nil {
		return where
	}
	if k := kernelAt(file, line); k != "" {
		where += ", kernel " + k
	}
	return where
}

// kernelAt returns the last kernel that begins up to a line of a file.
func kernelAt(file string, line int) string {
	src, err := fs.ReadFile(shaders.Files(), file)
	if err != nil {
		return ""
	}
	kernel := ""
	for l := range strings.Lines(string(src)) {
		if line--; line < 0 {
			break
		}
		if m := kernelStart.FindStringSubmatch(l); m != nil {
			kernel = m[1]
		}
	}
	return kernel
}
