package prefs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"calla/app/whole"
)

// maxFile bounds the file; what is larger is no preferences file.
const maxFile = 64 << 10

// DamagedError is a preferences file that holds no text. It has been moved
// aside, and the defaults apply.
type DamagedError struct {
	Path, Aside, Why string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("prefs: %s was damaged (%s); it is kept as %s, and the defaults apply", filepath.Base(e.Path), e.Why, filepath.Base(e.Aside))
}

// Load reads the file. One that does not exist says nothing; from one with
// mistakes all else counts. A file that holds no text is moved aside, which a
// *DamagedError tells.
func Load(path string) (Values, []Mistake, error) {
	text, err := read(path)
	if err != nil {
		return Values{}, nil, err
	}
	values, mistakes := Parse(text)
	return values, mistakes, nil
}

func read(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("prefs: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", fmt.Errorf("prefs: %w", err)
	}
	var why string
	switch {
	case len(data) > maxFile:
		why = fmt.Sprintf("more than %d KiB", maxFile>>10)
	case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data):
		why = "no text"
	default:
		return string(data), nil
	}
	return "", setAside(path, why)
}

// setAside moves a damaged file to a name that is free.
func setAside(path, why string) error {
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.damaged-%d", path, n)
		if _, err := os.Lstat(aside); err == nil {
			continue
		}
		if err := os.Rename(path, aside); err != nil {
			return fmt.Errorf("prefs: damaged (%s), and can't be moved aside: %w", why, err)
		}
		return &DamagedError{path, aside, why}
	}
}

// Parse reads the text of a file: "key = value" lines and comments.
func Parse(text string) (Values, []Mistake) {
	values, at := Values{}, map[string]int{}
	var mistakes []Mistake
	n := 0
	for line := range strings.Lines(text) {
		n++
		key, value, err := parseLine(line)
		switch {
		case err != nil:
			mistakes = append(mistakes, Mistake{n, err.Error()})
		case key == "":
		case at[key] != 0:
			mistakes = append(mistakes, Mistake{n, fmt.Sprintf("%s stands in line %d already", key, at[key])})
		default:
			values[key], at[key] = value, n
		}
	}
	return values, mistakes
}

// parseLine returns no key for a line that sets nothing.
func parseLine(line string) (key, value string, err error) {
	line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
	if line == "" || line[0] == '#' {
		return "", "", nil
	}
	key, value, ok := strings.Cut(line, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if !ok {
		return "", "", fmt.Errorf("%q, want key = value", line)
	}
	p, ok := Find(key)
	if !ok {
		return "", "", fmt.Errorf("no preference is called %q", key)
	}
	if err := p.Check(value); err != nil {
		return "", "", fmt.Errorf("%s is %q, %w", key, value, err)
	}
	return key, value, nil
}

// Store sets one preference in the file and leaves its other lines as people
// wrote them. The file is replaced as a whole or not at all.
func Store(path, key, value string) error {
	p, ok := Find(key)
	if !ok {
		return fmt.Errorf("prefs: no preference is called %q", key)
	}
	if err := p.Check(value); err != nil || strings.ContainsAny(value, "\r\n") {
		return fmt.Errorf("prefs: %s is %q, %w", key, value, errors.Join(err))
	}
	text, err := read(path)
	if damaged := (*DamagedError)(nil); err != nil && !errors.As(err, &damaged) {
		return err
	}
	if text == "" {
		text = Template()
	}
	return replace(path, set(text, key, value))
}

// set replaces a key's line, or puts one below its comment, or at the end.
func set(text, key, value string) string {
	lines := strings.SplitAfter(text, "\n")
	fresh := key + " = " + value + "\n"
	names := func(prefix string) func(string) bool {
		return func(line string) bool {
			name, _, ok := strings.Cut(line, "=")
			return ok && strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")) == prefix+key
		}
	}
	if i := slices.IndexFunc(lines, names("")); i >= 0 {
		lines[i] = fresh
	} else if i := slices.IndexFunc(lines, names("# ")); i >= 0 && strings.HasSuffix(lines[i], "\n") {
		lines = slices.Insert(lines, i+1, fresh)
	} else {
		if last := lines[len(lines)-1]; last != "" {
			lines[len(lines)-1] = last + "\n"
		}
		lines = append(lines, fresh)
	}
	return strings.Join(lines, "")
}

// Template is a file that sets nothing and explains everything.
func Template() string {
	var b strings.Builder
	b.WriteString("# Calla's preferences: one \"key = value\" a line. Calla reads this file as soon\n" +
		"# as it is saved. A line that begins with # says nothing to Calla, and what has\n" +
		"# no line has its default.\n")
	for _, p := range List {
		fmt.Fprintf(&b, "\n# %s.\n# %s = %s\n", strings.ToUpper(p.Help[:1])+p.Help[1:], p.Key, p.Default)
	}
	return b.String()
}

// Create makes the file for a person to edit, where there is none.
func Create(path string) error {
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return replace(path, Template())
}

// replace gives the file another text, so that a reader or a machine that stops
// sees the old one or the new.
func replace(path, text string) error {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = whole.WriteText(path, 0o600, text)
	}
	if err != nil {
		return fmt.Errorf("prefs: %w", err)
	}
	return nil
}
