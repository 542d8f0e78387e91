package main

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// The rules that a seal states: what is sealed, and how much that matters. They
// are those of Apple's codesign for a bundle without nested code.
const rules = `	<key>rules</key>
	<dict>
		<key>^Resources/</key>
		<true/>
		<key>^version.plist$</key>
		<true/>
	</dict>
	<key>rules2</key>
	<dict>
		<key>^(.*/)?\.DS_Store$</key>
		<dict><key>omit</key><true/><key>weight</key><real>2000</real></dict>
		<key>^(Frameworks|SharedFrameworks|PlugIns|Plug-ins|XPCServices|Helpers|MacOS|Library/(Automator|Spotlight|LoginItems))/</key>
		<dict><key>nested</key><true/><key>weight</key><real>10</real></dict>
		<key>^.*</key>
		<true/>
		<key>^Info\.plist$</key>
		<dict><key>omit</key><true/><key>weight</key><real>20</real></dict>
		<key>^PkgInfo$</key>
		<dict><key>omit</key><true/><key>weight</key><real>20</real></dict>
		<key>^Resources/</key>
		<dict><key>weight</key><real>20</real></dict>
		<key>^[^/]+$</key>
		<dict><key>nested</key><true/><key>weight</key><real>10</real></dict>
	</dict>
`

// codeResources is the list of a bundle's files with their digests. The
// executable and Info.plist are bound by the signature itself. A bundle with
// other code than that is refused: it would need signatures of its own.
func (b *bundle) codeResources() ([]byte, error) {
	names, err := b.sealed()
	if err != nil {
		return nil, err
	}
	var old, new strings.Builder // of SHA-1, which old systems ask for, and SHA-256
	for _, n := range names {
		data, err := os.ReadFile(filepath.Join(b.contents, n))
		if err != nil {
			return nil, err
		}
		weak, strong := sha1.Sum(data), sha256.Sum256(data)
		fmt.Fprintf(&old, "\t\t<key>%s</key>\n\t\t<data>%s</data>\n", escape(n), base64.StdEncoding.EncodeToString(weak[:]))
		fmt.Fprintf(&new, "\t\t<key>%s</key>\n\t\t<dict>\n\t\t\t<key>hash2</key>\n\t\t\t<data>%s</data>\n\t\t</dict>\n",
			escape(n), base64.StdEncoding.EncodeToString(strong[:]))
	}
	return []byte(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>files</key>
	<dict>
` + old.String() + `	</dict>
	<key>files2</key>
	<dict>
` + new.String() + `	</dict>
` + rules + `</dict>
</plist>
`), nil
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// sealed are the names of the files that the list has, sorted.
func (b *bundle) sealed() (names []string, err error) {
	err = filepath.WalkDir(b.contents, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(b.contents, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		switch {
		case path == b.executable, name == "Info.plist", name == "PkgInfo", strings.HasPrefix(name, "_CodeSignature/"):
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is no regular file", name)
		case !strings.HasPrefix(name, "Resources/"):
			return fmt.Errorf("%s is neither the executable nor in Resources", name)
		}
		names = append(names, name)
		return nil
	})
	sort.Strings(names)
	return names, err
}

// digests are the SHA-256 digests, in base64, that a list states.
func digests(codeResources []byte) (map[string]string, error) {
	out := map[string]string{}
	err := walk(codeResources, func(path []string, kind, text string) {
		if len(path) == 3 && path[0] == "files2" && path[2] == "hash2" && kind == "data" {
			out[path[1]] = strings.Join(strings.Fields(text), "")
		}
	})
	return out, err
}
