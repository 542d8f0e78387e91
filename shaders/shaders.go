// Package shaders holds the Metal sources of all kernels and hands them out in
// the form that a compiler takes: one string, with the included headers in it.
//
// A source is written so that three compilers take it as it is: Metal's, at run
// time or ahead of it; clang for the emulated device; and clang's strict type
// pass. NOTES.md says what was tried, what was kept and with which numbers.
package shaders

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed *.metal *.h
var files embed.FS

// Names returns the names of all sources, sorted.
func Names() []string {
	names, err := fs.Glob(files, "*.metal")
	if err != nil {
		panic(err)
	}
	slices.Sort(names)
	return names
}

// Source returns one of the sources with its headers in it.
func Source(name string) (string, error) { return Inline(files, name) }

// Files returns sources and headers as they are.
func Files() fs.FS { return files }

var include = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*"([^"]+)".*$`)

// Inline returns a source of fsys with each header that it includes in quotes
// put in the place of its first mention; #line directives keep the numbers of
// lines. Metal compiles one string and knows no folder to look in.
func Inline(fsys fs.FS, name string) (string, error) {
	return inline(fsys, name, map[string]bool{name: true})
}

func inline(fsys fs.FS, name string, seen map[string]bool) (string, error) {
	content, err := fs.ReadFile(fsys, name)
	if err != nil {
		return "", fmt.Errorf("shaders: %w", err)
	}
	src := string(content)
	var b strings.Builder
	last := 0
	for _, m := range include.FindAllStringSubmatchIndex(src, -1) {
		header := path.Join(path.Dir(name), src[m[2]:m[3]])
		b.WriteString(src[last:m[0]])
		last = m[1]
		if seen[header] {
			continue
		}
		seen[header] = true
		text, err := inline(fsys, header, seen)
		if err != nil {
			return "", fmt.Errorf("%w, included by %s", err, name)
		}
		line := 1 + strings.Count(src[:m[0]], "\n")
		fmt.Fprintf(&b, "#line 1 %q\n%s\n#line %d %q", header, strings.TrimSuffix(text, "\n"), line+1, name)
	}
	b.WriteString(src[last:])
	return b.String(), nil
}
