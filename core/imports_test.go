package core_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// floors is the house from the ground up: a package imports packages of lower
// floors only, so one that stands beside it is out of reach as well.
var floors = [][]string{
	{"core/tensor"},
	{"core/checkpoint"},
	{"core/backend"},
	{"core/cpu", "core/model", "metal"},
	{"core/conform"},
	{"core/engine"},
	{"core/completion"},
	{"core/server"},
	{"app"},
}

// apart are the packages beside the house. They know nothing of ours but what
// is named here; any floor may import them.
var apart = map[string][]string{
	"app/desktop":    {"app/whole"},
	"app/menu":       nil,
	"app/power":      nil,
	"app/prefs":      {"app/whole"},
	"app/supervise":  nil,
	"app/tray":       {"app/menu"},
	"app/whole":      nil,
	"bundle":         {"core/checkpoint"},
	"core":           nil,
	"core/chat":      nil,
	"core/crash":     nil,
	"core/download":  nil,
	"core/grammar":   nil,
	"core/schema":    {"core/chat", "core/grammar"},
	"core/tokenizer": nil,
	"scripts":        nil,
	"scripts/bench":  {"core/backend", "core/checkpoint", "core/cpu", "core/model", "core/tensor", "metal"},
	"shaders":        nil,
}

// homes says who may import a module of others. A test may import those with a
// home in tests beside those of its package.
var homes = map[string][]string{
	"fyne.io/systray":                       {"app/tray"},
	"github.com/ebitengine/purego":          {"metal"},
	"github.com/getlantern/systray":         {"app/tray"},
	"github.com/godbus/dbus":                {"app/tray", "app/desktop", "app/power", inTests},
	"github.com/google/go-cmp":              {inTests},
	"github.com/gorilla/mux":                {"core/server"},
	"github.com/hashicorp/golang-lru":       {"core/engine"},
	"github.com/progrium/darwinkit":         {"app/desktop", "metal"},
	"github.com/prometheus/client_golang":   {"core/server"},
	"github.com/santhosh-tekuri/jsonschema": {"core/schema", inTests},
	"github.com/spf13/cobra":                {"app"},
	"github.com/spf13/pflag":                {"app"},
	"github.com/vbauerster/mpb":             {"app"},
	"go.uber.org/goleak":                    {inTests},
	"golang.org/x/net":                      {"core/download"},
	"golang.org/x/sync":                     {"core/download", "core/server"},
	"golang.org/x/sys":                      {"core/checkpoint", "core/cpu", "app"},
	"golang.org/x/term":                     {"app"},
	"golang.org/x/text":                     {"core/tokenizer"},
	"golang.org/x/time":                     {"core/download"},
	"gonum.org/v1/plot":                     {"app/bench"},
}

const inTests = "tests"

func TestImports(t *testing.T) {
	sources := readSources(t)
	if len(sources) < 5 {
		t.Fatalf("found %d Go files, want the whole module", len(sources))
	}
	for _, v := range violations(sources) {
		t.Error(v)
	}
}

// violations returns a line for every breach of the rules.
func violations(sources []source) []string {
	var out []string
	for _, s := range sources {
		if _, ok := place(s.dir()); !ok {
			out = append(out, fmt.Sprintf("%s: folder has no place in the house: name it in floors or apart", s.path))
		}
		for _, i := range s.imports {
			if why := forbidden(s, i); why != "" {
				out = append(out, fmt.Sprintf("%s: imports %s: %s", s.path, i.path, why))
			}
		}
	}
	return append(out, undocumented(sources)...)
}

// forbidden says why a file must not import i, or nothing.
func forbidden(s source, i imported) string {
	switch {
	case i.path == "C" && under(s.dir(), "core"):
		return "core is pure Go"
	case i.blank && i.path != "embed" && s.pkg != "main" && !s.test():
		return "a blank import outside main and tests"
	case i.path == module || strings.HasPrefix(i.path, module+"/"):
		return forbiddenOurs(s, strings.TrimPrefix(i.path, module+"/"))
	case strings.Contains(strings.Split(i.path, "/")[0], "."):
		return forbiddenTheirs(s, i.path)
	}
	return ""
}

// forbiddenOurs judges an import of one of our packages. Tests may look at any
// floor, but core's stay within core: they must run on every system.
func forbiddenOurs(s source, target string) string {
	inCore := under(s.dir(), "core")
	switch {
	case inCore && under(target, "metal"), inCore && under(target, "app"):
		return "core imports neither metal nor app"
	case target == "app":
		return "nothing imports the executable"
	case forTests(target) && !s.test() && !forTests(s.dir()):
		return "it is for tests"
	case s.test():
		return ""
	}
	from, _ := place(s.dir())
	to, ok := place(target)
	switch {
	case !ok || from.name == to.name || slices.Contains(apart[from.name], to.name):
		return ""
	case from.apart:
		return from.name + " knows nothing of it"
	case !to.apart && to.floor >= from.floor:
		return fmt.Sprintf("%s stands on no lower floor than %s", to.name, from.name)
	}
	return ""
}

// forTests says whether a package serves tests alone: the suites, and those
// named like net/http/httptest.
func forTests(dir string) bool {
	return under(dir, "core/conform") || strings.HasSuffix(dir, "test")
}

// forbiddenTheirs judges an import of another module's package.
func forbiddenTheirs(s source, target string) string {
	for mod, dirs := range homes {
		if !under(target, mod) {
			continue
		}
		for _, d := range dirs {
			if under(s.dir(), d) || d == inTests && s.test() {
				return ""
			}
		}
		return "its home is " + strings.Join(dirs, ", ")
	}
	return "the module has no home: name one in homes"
}

// undocumented finds the packages without a package comment.
func undocumented(sources []source) []string {
	documented := map[string]bool{}
	for _, s := range sources {
		if s.test() {
			continue
		}
		want := "Package " + s.pkg + " "
		if s.pkg == "main" {
			want = "Command " + commandName(s.dir()) + " "
		}
		documented[s.dir()] = documented[s.dir()] || strings.HasPrefix(s.doc, want)
	}
	var out []string
	for dir, ok := range documented {
		if !ok {
			out = append(out, dir+": no package comment (Package name ..., Command name ...)")
		}
	}
	slices.Sort(out)
	return out
}

// commandName is the name that the main package of dir is built as.
func commandName(dir string) string {
	if dir == "app" {
		return module
	}
	return path.Base(dir)
}

// spot is where a package stands: on a floor, or apart.
type spot struct {
	name  string
	floor int
	apart bool
}

// place finds the nearest folder above dir that the house names.
func place(dir string) (spot, bool) {
	for d := dir; d != "."; d = path.Dir(d) {
		if _, ok := apart[d]; ok && (d != "core" || dir == "core") {
			return spot{name: d, apart: true}, true
		}
		for n, names := range floors {
			if slices.Contains(names, d) {
				return spot{name: d, floor: n}, true
			}
		}
	}
	return spot{}, false
}

// under says whether a path is dir or below it.
func under(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func TestViolations(t *testing.T) {
	for _, tt := range []struct {
		name string
		file string
		imp  imported
		want string // part of the violation, or empty
	}{
		{"a lower floor", "core/engine/a.go", imported{path: "calla/core/model"}, ""},
		{"a package below a floor", "core/engine/a.go", imported{path: "calla/core/model/x"}, ""},
		{"a higher floor", "core/model/a.go", imported{path: "calla/core/engine"}, "no lower floor"},
		{"a package beside", "core/model/a.go", imported{path: "calla/core/cpu"}, "no lower floor"},
		{"one's own package from below it", "core/server/wire/a.go", imported{path: "calla/core/server"}, ""},
		{"the standard library", "core/tensor/a.go", imported{path: "encoding/json"}, ""},
		{"core imports metal", "core/engine/a.go", imported{path: "calla/metal"}, "neither metal nor app"},
		{"a core test imports metal", "core/engine/a_test.go", imported{path: "calla/metal"}, "neither metal nor app"},
		{"core imports a part of app", "core/server/a.go", imported{path: "calla/app/menu"}, "neither metal nor app"},
		{"app imports metal", "app/a.go", imported{path: "calla/metal"}, ""},
		{"the executable imported", "app/tray/a.go", imported{path: "calla/app"}, "nothing imports"},
		{"a package apart imports ours", "core/tokenizer/a.go", imported{path: "calla/core/tensor"}, "knows nothing"},
		{"a floor imports a package apart", "core/completion/a.go", imported{path: "calla/core/chat"}, ""},
		{"the tray draws the menu", "app/tray/a.go", imported{path: "calla/app/menu"}, ""},
		{"the menu draws nothing", "app/menu/a.go", imported{path: "calla/app/tray"}, "knows nothing"},
		{"a suite outside tests", "core/cpu/a.go", imported{path: "calla/core/conform"}, "it is for tests"},
		{"a fixture outside tests", "core/cpu/a.go", imported{path: "calla/core/backend/backendtest"}, "it is for tests"},
		{"a fixture in a fixture", "core/model/modeltest/a.go", imported{path: "calla/core/backend/backendtest"}, ""},
		{"a suite in a test", "core/cpu/a_test.go", imported{path: "calla/core/conform"}, ""},
		{"a folder that nobody placed", "core/extra/a.go", imported{path: "fmt"}, "no place in the house"},
		{"cgo in core", "core/cpu/a.go", imported{path: "C"}, "pure Go"},
		{"cgo in a test of core", "core/cpu/a_test.go", imported{path: "C"}, "pure Go"},
		{"cgo in metal", "metal/a.go", imported{path: "C"}, ""},
		{"a blank import", "core/server/a.go", imported{path: "net/http/pprof", blank: true}, "blank import"},
		{"a blank import in a test", "core/server/a_test.go", imported{path: "net/http/pprof", blank: true}, ""},
		{"a blank import of embed", "bundle/a.go", imported{path: "embed", blank: true}, ""},
		{"mux at home", "core/server/a.go", imported{path: "github.com/gorilla/mux"}, ""},
		{"mux elsewhere", "app/a.go", imported{path: "github.com/gorilla/mux"}, "its home is core/server"},
		{"a later major version", "core/server/a.go", imported{path: "github.com/hashicorp/golang-lru/v2"}, "its home is core/engine"},
		{"a test's module in a test", "core/chat/a_test.go", imported{path: "github.com/google/go-cmp/cmp"}, ""},
		{"a test's module elsewhere", "core/chat/a.go", imported{path: "github.com/google/go-cmp/cmp"}, "its home is tests"},
		{"a module without a home", "app/a.go", imported{path: "example.com/x"}, "no home"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := source{path: tt.file, pkg: "a", doc: "Package a is.\n", imports: []imported{tt.imp}}
			got := strings.Join(violations([]source{s}), "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("violations of %s importing %q = %q, want %q", tt.file, tt.imp.path, got, tt.want)
			}
		})
	}
}

func TestUndocumented(t *testing.T) {
	for _, tt := range []struct {
		name    string
		sources []source
		want    int
	}{
		{"in one of its files", []source{{path: "core/chat/a.go", pkg: "chat"}, {path: "core/chat/b.go", pkg: "chat", doc: "Package chat is.\n"}}, 0},
		{"none", []source{{path: "core/chat/a.go", pkg: "chat"}}, 1},
		{"of another name", []source{{path: "core/chat/a.go", pkg: "chat", doc: "Package cat is.\n"}}, 1},
		{"in a test only", []source{{path: "core/chat/a.go", pkg: "chat"}, {path: "core/chat/a_test.go", pkg: "chat", doc: "Package chat is.\n"}}, 1},
		{"tests alone", []source{{path: "core/chat/a_test.go", pkg: "chat"}}, 0},
		{"the executable", []source{{path: "app/main.go", pkg: "main", doc: "Command calla is.\n"}}, 0},
		{"the executable without one", []source{{path: "app/main.go", pkg: "main"}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := undocumented(tt.sources); len(got) != tt.want {
				t.Errorf("undocumented = %q, want %d", got, tt.want)
			}
		})
	}
}
