package main

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

var drawn = sync.OnceValue(files)

// What is in the repository is what the program draws. Another processor may
// round a point on an edge differently, so the pictures are compared, and one
// sample a pixel may differ.
func TestFilesAreDrawn(t *testing.T) {
	for name, want := range drawn() {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(got, want) {
			continue
		}
		if filepath.Ext(name) != ".png" || !alike(t, got, want) {
			t.Errorf("%s is not what draw draws: run go generate ./bundle/icons", name)
		}
	}
}

func alike(t *testing.T, a, b []byte) bool {
	t.Helper()
	x, y := decode(t, a), decode(t, b)
	if x.Bounds() != y.Bounds() {
		return false
	}
	for i := range x.Bounds().Dx() * x.Bounds().Dy() {
		_, _, _, p := x.At(i%44, i/44).RGBA()
		_, _, _, q := y.At(i%44, i/44).RGBA()
		if d := int(p) - int(q); d > 0x1200 || d < -0x1200 {
			return false
		}
	}
	return true
}

func decode(t *testing.T, data []byte) image.Image {
	t.Helper()
	m, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The template has a shape and no colour; the icon file's chunks fill it.
func TestFormats(t *testing.T) {
	all := drawn()
	m := decode(t, all["template.png"])
	seen := false
	for y := range 44 {
		for x := range 44 {
			r, g, b, a := m.At(x, y).RGBA()
			if r|g|b != 0 {
				t.Fatalf("template has a colour at %d, %d", x, y)
			}
			seen = seen || a == 0xffff
		}
	}
	if !seen {
		t.Error("template is empty")
	}
	icon := all["Calla.icns"]
	if string(icon[:4]) != "icns" || int(binary.BigEndian.Uint32(icon[4:])) != len(icon) {
		t.Fatalf("header %q, length %d of %d", icon[:4], binary.BigEndian.Uint32(icon[4:]), len(icon))
	}
	for rest := icon[8:]; len(rest) > 0; {
		n := int(binary.BigEndian.Uint32(rest[4:]))
		decode(t, rest[8:n])
		rest = rest[n:]
	}
}
