package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const info = `<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict>
	<key>CFBundleIdentifier</key><string>org.example.Sealed</string>
	<key>CFBundleExecutable</key><string>sealed</string>
	<key>CFBundleShortVersionString</key><string>1.2</string>
	<key>CFBundleVersion</key><string>3</string>
	<key>LSMinimumSystemVersion</key><string>12.0</string>
	<key>Nested</key><dict><key>CFBundleIdentifier</key><string>not this</string></dict>
</dict></plist>
`

// compiled is a Mach-O file: any Go program for a Mac.
func compiled(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(1) }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", "sealed", source)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "sealed"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// lay puts files into a folder.
func lay(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSeal(t *testing.T) {
	files := map[string][]byte{
		"Contents/Info.plist":            []byte(info),
		"Contents/PkgInfo":               []byte("APPL????"),
		"Contents/MacOS/sealed":          compiled(t),
		"Contents/Resources/a&b.txt":     []byte("a"),
		"Contents/Resources/demo/c.json": []byte("{}"),
	}
	sealed := func(t *testing.T) string {
		t.Helper()
		app := filepath.Join(t.TempDir(), "Sealed.app")
		lay(t, app, files)
		b, err := openBundle(app)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.seal(); err != nil {
			t.Fatal(err)
		}
		return app
	}
	verify := func(app string) (string, error) {
		b, err := openBundle(app)
		if err != nil {
			return "", err
		}
		return b.verify()
	}

	app := sealed(t)
	report, err := verify(app)
	if err != nil || !strings.Contains(report, "org.example.Sealed") || !strings.Contains(report, "2 files") {
		t.Fatalf("a fresh seal: %q, %v", report, err)
	}
	t.Run("linked to a framework", func(t *testing.T) {
		b, err := openBundle(app)
		if err != nil {
			t.Fatal(err)
		}
		b.links = "Metal"
		if _, err := b.verify(); err == nil || !strings.Contains(err.Error(), "not linked to Metal") {
			t.Errorf("a program without Metal: %v", err)
		}
	})
	t.Run("again the same", func(t *testing.T) {
		other := sealed(t)
		for _, name := range []string{"Contents/MacOS/sealed", "Contents/_CodeSignature/CodeResources"} {
			a, _ := os.ReadFile(filepath.Join(app, name))
			b, _ := os.ReadFile(filepath.Join(other, name))
			if !bytes.Equal(a, b) {
				t.Errorf("%s differs", name)
			}
		}
	})

	// Each change is found, and told where.
	change := func(name string, at func(data []byte) int) func(*testing.T, string) {
		return func(t *testing.T, app string) {
			path := filepath.Join(app, name)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			data[at(data)] ^= 1
			if err := os.WriteFile(path, data, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*testing.T, string)
		want   string
	}{
		{"code", change("Contents/MacOS/sealed", func(d []byte) int { return len(d) / 3 }), "page"},
		{"the header of the code", change("Contents/MacOS/sealed", func(d []byte) int { return bytes.Index(d, []byte("__TEXT")) + 3 }), ""},
		{"Info.plist", change("Contents/Info.plist", func(d []byte) int { return bytes.Index(d, []byte("1.2")) }), "Info.plist was changed"},
		{"a resource", change("Contents/Resources/demo/c.json", func([]byte) int { return 0 }), "demo/c.json was changed"},
		{"the list's rules", change("Contents/_CodeSignature/CodeResources", func(d []byte) int { return bytes.Index(d, []byte("DS_Store")) }), "CodeResources was changed"},
		{"a file more", func(t *testing.T, app string) {
			lay(t, app, map[string][]byte{"Contents/Resources/new": nil})
		}, "new was added"},
		{"a file less", func(t *testing.T, app string) {
			if err := os.Remove(filepath.Join(app, "Contents/Resources/a&b.txt")); err != nil {
				t.Fatal(err)
			}
		}, "a&b.txt is sealed and missing"},
		{"other code", func(t *testing.T, app string) {
			lay(t, app, map[string][]byte{"Contents/MacOS/other": nil})
		}, "neither the executable nor in Resources"},
		{"a link", func(t *testing.T, app string) {
			if err := os.Symlink("/etc/passwd", filepath.Join(app, "Contents/Resources/link")); err != nil {
				t.Fatal(err)
			}
		}, "no regular file"},
		{"one address", func(t *testing.T, app string) {
			path := filepath.Join(app, "Contents/MacOS/sealed")
			data := bytes.Clone(files["Contents/MacOS/sealed"])
			data[26] &^= 0x20 // MH_PIE
			if err := os.WriteFile(path, data, 0o755); err != nil {
				t.Fatal(err)
			}
		}, "at one address only"},
		{"no seal", func(t *testing.T, app string) {
			if err := os.RemoveAll(filepath.Join(app, "Contents/_CodeSignature")); err != nil {
				t.Fatal(err)
			}
		}, "not sealed"},
		{"another program, as its linker signed it", func(t *testing.T, app string) {
			lay(t, app, map[string][]byte{"Contents/MacOS/sealed": files["Contents/MacOS/sealed"]})
		}, "signed as"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			app := sealed(t)
			tt.change(t, app)
			if report, err := verify(app); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("verify: %q, %v; want an error with %q", report, err, tt.want)
			}
		})
	}
}

func TestInfoIsFilledIn(t *testing.T) {
	for _, tt := range []struct{ name, from, to string }{
		{"a version that was left open", "1.2", "@VERSION@"},
		{"no identifier", "<key>CFBundleIdentifier</key><string>org.example.Sealed</string>", ""},
	} {
		app := t.TempDir()
		lay(t, app, map[string][]byte{"Contents/Info.plist": []byte(strings.Replace(info, tt.from, tt.to, 1))})
		if _, err := openBundle(app); err == nil {
			t.Errorf("%s is accepted", tt.name)
		}
	}
}
