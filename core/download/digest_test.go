package download

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"calla/core/download/hubtest"
)

// The digests were made with sha256sum and git hash-object.
func TestDigest(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		file          File
	}{
		{"SHA-256", "hello\n", File{SHA256: "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"}},
		{"git's name of a blob", "hello\n", File{GitSHA1: "ce013625030ba8dba906f756967f9e9ca394464a"}},
		{"both, of which SHA-256 counts", "hello\n", File{SHA256: "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03", GitSHA1: "0000000000000000000000000000000000000000"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.file.Size = int64(len(tt.content))
			d := newDigest(tt.file)
			d.Write([]byte(tt.content))
			if got := d.text(); got != tt.file.Digest() {
				t.Errorf("digest of %q = %s, want %s", tt.content, got, tt.file.Digest())
			}
		})
	}
}

// TestChain proves pieces alone, and finds exactly those that were changed.
func TestChain(t *testing.T) {
	const size, piece = 1000, 129
	content := hubtest.Random(1, size)
	for _, byGit := range []bool{false, true} {
		m := manifestOf(t, hubtest.New(t, hubtest.File{Name: "x", Content: content, ByGit: byGit}))
		path := filepath.Join(t.TempDir(), "x")
		known := examined(t, m.Files[0], path, content, piece, nil)
		if !known.right() {
			t.Fatalf("git %v: the right content: %v", byGit, known.verdict())
		}
		for _, tt := range []struct {
			name  string
			wrong []int // bytes
			want  []int // pieces
		}{
			{"nothing changed", nil, nil},
			{"the first byte", []int{0}, []int{0}},
			{"the last byte", []int{size - 1}, []int{7}},
			{"the last byte of a piece", []int{2*piece - 1}, []int{1}},
			{"the first byte of a piece", []int{2 * piece}, []int{2}},
			{"three pieces", []int{5, 3 * piece, 4*piece + 1}, []int{0, 3, 4}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				changed := slices.Clone(content)
				for _, i := range tt.wrong {
					changed[i] ^= 1
				}
				e := examined(t, m.Files[0], path, changed, piece, known.states)
				if got := e.damaged(); !slices.Equal(got, tt.want) {
					t.Errorf("git %v: damaged pieces %v, want %v", byGit, got, tt.want)
				}
				if e.right() != (tt.want == nil) {
					t.Errorf("git %v: right is %v", byGit, e.right())
				}
			})
		}
		t.Run("a shorter file", func(t *testing.T) {
			e := examined(t, m.Files[0], path, content[:3*piece], piece, known.states)
			if got, want := e.damaged(), []int{3, 4, 5, 6, 7}; !slices.Equal(got, want) || e.right() {
				t.Errorf("damaged pieces %v, want %v", got, want)
			}
		})
		t.Run("a longer file", func(t *testing.T) {
			if e := examined(t, m.Files[0], path, append(slices.Clone(content), 0), piece, known.states); e.right() {
				t.Error("a file with a byte too many is right")
			}
		})
		t.Run("states that don't lead to the digest", func(t *testing.T) {
			other := examined(t, m.Files[0], path, bytes.Repeat([]byte{1}, size), piece, nil)
			if e := examined(t, m.Files[0], path, bytes.Repeat([]byte{1}, size), piece, other.states); e.right() {
				t.Error("another file is right by its own states")
			}
		})
	}
}

func examined(t *testing.T, f File, path string, content []byte, piece int64, known chain) *exam {
	t.Helper()
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	e := &exam{file: f, path: path, cut: pieces{f.Size, piece}, known: known}
	if err := examine(context.Background(), []*exam{e}, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestPieces(t *testing.T) {
	for _, tt := range []struct {
		name        string
		size, piece int64
		count       int
		last        Span
	}{
		{"one byte", 1, 16, 1, Span{0, 1}},
		{"one piece", 16, 16, 1, Span{0, 16}},
		{"a byte more", 17, 16, 2, Span{16, 17}},
		{"beyond 32 bits", 5_368_472_749, PieceSize, 320, Span{319 * PieceSize, 5_368_472_749}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := pieces{tt.size, tt.piece}
			if n := p.count(); n != tt.count || p.span(n-1) != tt.last || p.at(tt.size-1) != n-1 {
				t.Errorf("%d pieces, the last %v, want %d, %v", n, p.span(n-1), tt.count, tt.last)
			}
		})
	}
}

// TestChangedWhileRead: what is written to meanwhile is not proved by it.
func TestChangedWhileRead(t *testing.T) {
	content := hubtest.Random(1, 1000)
	m := manifestOf(t, hubtest.New(t, hubtest.File{Name: "x", Content: content}))
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	e := &exam{file: m.Files[0], path: path, cut: pieces{1000, 300}}
	err := examine(context.Background(), []*exam{e}, func(int64) { os.Chtimes(path, later, later) })
	if err != nil || e.right() || e.err == nil {
		t.Errorf("examine = %v, right %v, want that it changed", err, e.right())
	}
}
