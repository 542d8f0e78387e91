package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// bundle is an app bundle on disk.
type bundle struct {
	contents   string // the folder
	info       []byte // Info.plist
	id         string // CFBundleIdentifier
	executable string // the file
	minimum    string // LSMinimumSystemVersion
	links      string // a framework that the executable needs, or nothing
}

func openBundle(path string) (*bundle, error) {
	b := &bundle{contents: filepath.Join(path, "Contents")}
	var err error
	if b.info, err = os.ReadFile(filepath.Join(b.contents, "Info.plist")); err != nil {
		return nil, err
	}
	keys, err := readStrings(b.info)
	if err != nil {
		return nil, fmt.Errorf("Info.plist: %w", err)
	}
	for _, k := range []string{"CFBundleIdentifier", "CFBundleExecutable", "LSMinimumSystemVersion", "CFBundleShortVersionString", "CFBundleVersion"} {
		if keys[k] == "" {
			return nil, fmt.Errorf("Info.plist: no %s", k)
		}
		if strings.Contains(keys[k], "@") {
			return nil, fmt.Errorf("Info.plist: %s is %q, not filled in", k, keys[k])
		}
	}
	b.id, b.minimum = keys["CFBundleIdentifier"], keys["LSMinimumSystemVersion"]
	b.executable = filepath.Join(b.contents, "MacOS", keys["CFBundleExecutable"])
	return b, nil
}

func (b *bundle) resourcesFile() string {
	return filepath.Join(b.contents, "_CodeSignature", "CodeResources")
}

// readStrings returns the strings of a property list's outer dictionary.
func readStrings(plist []byte) (map[string]string, error) {
	out := map[string]string{}
	err := walk(plist, func(path []string, kind, text string) {
		if len(path) == 1 && kind == "string" {
			out[path[0]] = text
		}
	})
	return out, err
}

// walk calls visit for every value of a property list that holds no others,
// with the keys that lead to it.
func walk(plist []byte, visit func(path []string, kind, text string)) error {
	d := xml.NewDecoder(bytes.NewReader(plist))
	var keys []string // one for each open dictionary
	var text strings.Builder
	for {
		token, err := d.Token()
		if err != nil {
			if d.InputOffset() == int64(len(plist)) && len(keys) == 0 {
				return nil
			}
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			text.Reset()
			if t.Name.Local == "dict" {
				keys = append(keys, "")
			}
		case xml.CharData:
			text.Write(t)
		case xml.EndElement:
			switch kind := t.Name.Local; {
			case kind == "dict":
				keys = keys[:len(keys)-1]
			case len(keys) == 0:
			case kind == "key":
				keys[len(keys)-1] = text.String()
			default:
				visit(keys, kind, text.String())
			}
		}
	}
}
