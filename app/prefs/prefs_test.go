package prefs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultsPassTheirChecks(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range List {
		if err := p.Check(p.Default); err != nil {
			t.Errorf("%s: default %q: %v", p.Key, p.Default, err)
		}
		if seen[p.Key] {
			t.Errorf("%s stands twice in the list", p.Key)
		}
		seen[p.Key] = true
		if p.Help == "" || strings.HasSuffix(p.Help, ".") {
			t.Errorf("%s: help %q", p.Key, p.Help)
		}
	}
}

func TestChecks(t *testing.T) {
	for _, tt := range []struct {
		key, value string
		ok         bool
	}{
		{"max-seq", "131072", true},
		{"max-seq", "-1", false},
		{"max-seq", "64K", false},
		{"prefill-chunk", "1000", false},
		{"idle-unload", "2h", true},
		{"idle-unload", "never", true},
		{"idle-unload", "0s", false},
		{"idle-unload", "soon", false},
		{"port", "65536", false},
		{"port", "0", true},
		{"host", "localhost", true},
		{"host", "::1", true},
		{"host", "[::1]", true},
		{"host", "example.org", false},
		{"backend", "metal", true},
		{"backend", "Metal", false},
		{"allow-origin", "https://a.example, http://localhost:3000", true},
		{"allow-origin", "https://a.example/", false},
		{"allow-origin", "*", false},
		{"allow-host", "calla.example.org", true},
		{"allow-host", "http://a", false},
		{"endpoint", "https://mirror.example/hf", true},
		{"endpoint", "mirror.example", false},
		{"demo", "yes", false},
	} {
		if err := Must(tt.key).Check(tt.value); (err == nil) != tt.ok {
			t.Errorf("%s = %q: %v, want ok %v", tt.key, tt.value, err, tt.ok)
		}
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       Values
		mistakes   []string
	}{
		{"nothing", "", Values{}, nil},
		{"as made by us", Template(), Values{}, nil},
		{"blanks, comments and a byte order mark", "\ufeff port=1\r\n\n# max-seq = 5\nhost = ::1  \n", Values{"port": "1", "host": "::1"}, nil},
		{"a value with an equals sign", "key-file = /a=b\n", Values{"key-file": "/a=b"}, nil},
		{"no line end at the end", "queue = 3", Values{"queue": "3"}, nil},
		{"a bad value beside a good one", "port = many\nqueue = 3\n", Values{"queue": "3"},
			[]string{`line 1: port is "many", want a whole number, 0–65535`}},
		{"an unknown key", "prot = 1\n", Values{}, []string{`line 1: no preference is called "prot"`}},
		{"no key", "port 1\n", Values{}, []string{`line 1: "port 1", want key = value`}},
		{"twice", "port = 1\nport = 2\n", Values{"port": "1"}, []string{"line 2: port stands in line 1 already"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, mistakes := Parse(tt.text)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("values differ (-want +got):\n%s", d)
			}
			var says []string
			for _, m := range mistakes {
				says = append(says, m.String())
			}
			if d := cmp.Diff(tt.mistakes, says); d != "" {
				t.Errorf("mistakes differ (-want +got):\n%s", d)
			}
		})
	}
}

func TestStoreKeepsWhatPeopleWrote(t *testing.T) {
	for _, tt := range []struct{ name, before, key, value, after string }{
		{"in its line", "# mine\nport = 1 \nqueue = 3\n", "port", "2", "# mine\nport = 2\nqueue = 3\n"},
		{"below its comment", "# Port.\n# port = 11535\n\n# x\n", "port", "2", "# Port.\n# port = 11535\nport = 2\n\n# x\n"},
		{"at the end", "queue = 3", "port", "2", "queue = 3\nport = 2\n"},
		{"beside a mistake", "prot = 9\n", "port", "2", "prot = 9\nport = 2\n"},
		{"over a mistake", "port = many\n", "port", "2", "port = 2\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "preferences")
			if err := os.WriteFile(path, []byte(tt.before), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := Store(path, tt.key, tt.value); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.after, string(got)); d != "" {
				t.Errorf("file differs (-want +got):\n%s", d)
			}
			left, err := os.ReadDir(filepath.Dir(path))
			if err != nil || len(left) != 1 {
				t.Errorf("folder has %v, %v; want the file alone", left, err)
			}
		})
	}
}

func TestStoreMakesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "preferences")
	for _, v := range []string{"1000", "2000"} {
		if err := Store(path, "max-seq", v); err != nil {
			t.Fatal(err)
		}
	}
	got, mistakes, err := Load(path)
	if d := cmp.Diff(Values{"max-seq": "2000"}, got); d != "" || len(mistakes) > 0 || err != nil {
		t.Errorf("Load: %s%v, %v", d, mistakes, err)
	}
}

func TestStoreRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "preferences")
	for _, tt := range []struct{ name, key, value string }{
		{"an unknown key", "prot", "1"},
		{"a bad value", "port", "many"},
		{"a value that would be two lines", "key-file", "a\nport = 1"},
	} {
		if err := Store(path, tt.key, tt.value); err == nil {
			t.Errorf("%s is stored", tt.name)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file was made")
	}
}

// A damaged file is kept under another name, and told of once.
func TestDamaged(t *testing.T) {
	for _, tt := range []struct{ name, text string }{
		{"zeros, as after a crash of the machine", "port = 1\n\x00\x00\x00"},
		{"no UTF-8", "port = \xff\n"},
		{"huge", strings.Repeat("# x\n", maxFile/4+1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "preferences")
			for n := range 2 {
				if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
					t.Fatal(err)
				}
				_, _, err := Load(path)
				var damaged *DamagedError
				if !errors.As(err, &damaged) {
					t.Fatalf("Load, time %d: %v, want a *DamagedError", n, err)
				}
				if kept, err := os.ReadFile(damaged.Aside); err != nil || string(kept) != tt.text {
					t.Errorf("%s: %v", damaged.Aside, err)
				}
				if v, m, err := Load(path); len(v)+len(m) > 0 || err != nil {
					t.Errorf("second Load: %v, %v, %v", v, m, err)
				}
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("port = 1\n# x\n")
	f.Add(Template())
	f.Fuzz(func(t *testing.T, text string) {
		values, _ := Parse(text)
		for k, v := range values {
			if err := Must(k).Check(v); err != nil {
				t.Errorf("%s = %q passes, %v", k, v, err)
			}
		}
		// Setting a preference gives that value, and changes no other.
		after, _ := Parse(set(text, "port", "7"))
		if after.Get("port") != "7" {
			t.Errorf("after a set, port is %q in %q", after.Get("port"), set(text, "port", "7"))
		}
		delete(after, "port")
		delete(values, "port")
		if d := cmp.Diff(values, after); d != "" {
			t.Errorf("a set changed others: %s", d)
		}
	})
}
