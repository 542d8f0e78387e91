package core_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "calla"

// source is what the rules look at in one Go file.
type source struct {
	path    string // below the module's root, slash-separated
	pkg     string // the package clause
	doc     string // the comment before it
	imports []imported
}

type imported struct {
	path  string
	blank bool
}

func (s source) dir() string { return path.Dir(s.path) }

func (s source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

// readSources parses every Go file of the module, whatever its build
// constraints: a rule holds on all systems or on none.
func readSources(t *testing.T) []source {
	t.Helper()
	root := ".."
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("the module's root is not the parent of this package: %v", err)
	}
	var all []source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case d.IsDir() && skipDir(name, rel):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(rel, ".go"):
			return nil
		}
		s, err := parseSource(name, rel)
		if err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatalf("read the module's sources: %v", err)
	}
	return all
}

// skipDir says whether a folder belongs to another module or to none.
func skipDir(name, rel string) bool {
	base := path.Base(rel)
	if rel == "." {
		return false
	}
	if strings.HasPrefix(base, ".") || base == "testdata" || base == "build" {
		return true
	}
	_, err := os.Stat(filepath.Join(name, "go.mod"))
	return err == nil
}

func parseSource(name, rel string) (source, error) {
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return source{}, err
	}
	s := source{path: rel, pkg: f.Name.Name, doc: f.Doc.Text()}
	for _, spec := range f.Imports {
		i, err := parseImport(spec)
		if err != nil {
			return source{}, err
		}
		s.imports = append(s.imports, i)
	}
	return s, nil
}

func parseImport(spec *ast.ImportSpec) (imported, error) {
	p, err := strconv.Unquote(spec.Path.Value)
	return imported{path: p, blank: spec.Name != nil && spec.Name.Name == "_"}, err
}
