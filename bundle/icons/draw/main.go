// Command draw draws Calla's icons: a calla lily in a square for the bundle,
// and the flower alone for the menu bar. "go generate ./bundle/icons" runs it.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/png"
	"os"
)

func main() {
	for name, data := range files() {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "draw:", err)
			os.Exit(1)
		}
	}
}

// files are all icons by their names.
func files() map[string][]byte {
	return map[string][]byte{
		"menu.png":     encode(draw(44, flower)),
		"template.png": encode(draw(44, silhouette)),
		"Calla.icns":   icns(),
	}
}

func encode(m image.Image) []byte {
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, m); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}

// icns is an Apple icon image: a header and a chunk for each size, all PNG.
func icns() []byte {
	sizes := map[int][]byte{}
	for _, n := range []int{16, 32, 64, 128, 256, 512, 1024} {
		sizes[n] = encode(draw(n, badge))
	}
	var body bytes.Buffer
	for _, c := range []struct {
		kind string
		side int
	}{
		{"icp4", 16}, {"icp5", 32}, {"ic07", 128}, {"ic08", 256}, {"ic09", 512},
		{"ic11", 32}, {"ic12", 64}, {"ic13", 256}, {"ic14", 512}, {"ic10", 1024}, // twice as fine
	} {
		chunk(&body, c.kind, sizes[c.side])
	}
	var out bytes.Buffer
	chunk(&out, "icns", body.Bytes())
	return out.Bytes()
}

func chunk(b *bytes.Buffer, kind string, data []byte) {
	b.WriteString(kind)
	binary.Write(b, binary.BigEndian, uint32(8+len(data)))
	b.Write(data)
}
